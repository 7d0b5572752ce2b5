"""Implements SymInt, the size of the ragged dimension of a nested tensor."""
import itertools
import weakref

__all__ = ["SymInt", "ragged_size"]


class SymInt:
    """The size of the ragged dimension of a nested tensor. Along this dimension the sequences have different lengths.

    A size prints as ``j1``, ``j2`` and so on. Two sizes are equal only if they belong to the same offsets tensor; a different offsets tensor with
    equal elements gives a different size. Multiplied by an int, for example in strides, a size prints as ``4*j1``. As in PyTorch, the comparisons >=,
    >, < and <= assume that every size is at least 2. They compare two multiples of the same size by their factors. ValueError: the result depends on
    the actual size.

    >>> nt = gradus.nested.as_nested_tensor([gradus.ones(2), gradus.ones(3)], layout=gradus.jagged)
    >>> isinstance(nt.size(1), gradus.SymInt), nt.size(1) == (nt + 1).size(1)
    (True, True)
    """

    __slots__ = ("_source", "_number", "_factor", "__weakref__")

    def __init__(self, source, number, factor=1):
        self._source, self._number, self._factor = source, number, factor  # keeps `source` alive, because _sizes is keyed by id(source)

    def __repr__(self):
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    def __eq__(self, other):
        return isinstance(other, SymInt) and (self._number, self._factor) == (other._number, other._factor)

    def __hash__(self):
        return hash((self._number, self._factor))

    def __ge__(self, other):
        if isinstance(other, SymInt) and other._number == self._number:
            return self._factor >= other._factor
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other):
        return not other >= self if isinstance(other, SymInt) else self >= other + 1

    def __lt__(self, other):
        return not self >= other

    def __le__(self, other):
        return not self > other

    def __mul__(self, factor):
        return SymInt(self._source, self._number, self._factor * factor) if isinstance(factor, int) else NotImplemented

    __rmul__ = __mul__


_sizes = weakref.WeakValueDictionary()  # maps id(t) to the SymInt of t, a tensor of offsets or lengths
_numbers = itertools.count(1)


def ragged_size(source):
    """Returns the SymInt for a tensor of offsets or lengths. As long as that SymInt exists, all calls with the tensor return it."""
    size = _sizes.get(id(source))
    if size is None:
        size = _sizes[id(source)] = SymInt(source, next(_numbers))
    return size
