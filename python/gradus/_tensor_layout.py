"""Implements the method Tensor.dim_order."""
from gradus._C import Tensor, channels_last, contiguous_format, memory_format
from gradus._overridable import add_methods

__all__ = []


def _compare(stride, other, size, other_size):
    """Compares dimension a, which has the stride `stride` and the size `size`, with dimension b, which has the stride `other` and the size
    `other_size`. Returns 1 if a is outside b, i.e. has the larger stride or, for equal strides, the larger size. Returns -1 if a has the smaller
    stride, and 0 if both orders are possible."""
    if stride == 0 or other == 0:
        return 0
    if stride == other:
        return int(size > other_size)
    return -1 if stride < other else 1


def _from_inside(sizes, strides):
    """Returns the dimensions sorted by stride, the innermost (smallest stride) first. This is an insertion sort. If _compare returns 0, the sort does
    not swap the two dimensions, but goes on to the next comparison."""
    order = []
    for dim in reversed(range(len(sizes))):
        order.append(dim)
        place = len(order) - 1
        for before in reversed(range(len(order) - 1)):
            relation = _compare(strides[order[before]], strides[order[place]], sizes[order[before]], sizes[order[place]])
            if relation > 0:
                order[before], order[place] = order[place], order[before]
                place = before
            elif relation < 0:
                break
    return order


def dim_order(self, *, ambiguity_check=False):
    """Returns the dimensions sorted by their position in memory, the outermost (largest stride) first.

    Args:
        ambiguity_check (bool or list of memory_format, optional): False allows several possible orders. With True, several possible orders
            raise RuntimeError. With a list, they raise it unless the tensor is contiguous in exactly one memory format of the list.

    >>> torch.empty(2, 3, 5, 7).transpose(1, 2).dim_order()
    (0, 2, 1, 3)
    """
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(one, memory_format) for one in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    sizes, strides = tuple(self.shape), self.stride()
    has_several = 1 in sizes or any(a == b for a, b in zip(strides, strides[1:]))
    if ambiguity_check is not False and has_several and sum(self.is_contiguous(memory_format=one) for one in formats) != 1:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    by_rows, by_channels = (self.is_contiguous(memory_format=one) for one in (contiguous_format, channels_last))
    if len(sizes) < 2 or by_rows != by_channels:
        return tuple(range(len(sizes))) if by_rows or len(sizes) < 2 else (0, *range(2, len(sizes)), 1)
    order = _from_inside(sizes, strides)
    if ambiguity_check and any(_compare(strides[a], strides[b], sizes[a], sizes[b]) >= 0 for a, b in zip(order, order[1:])):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(reversed(order))


add_methods(dim_order)
