"""The size of a dimension whose length differs from sequence to sequence."""
import itertools
import weakref

__all__ = ["SymInt", "ragged_size"]


class SymInt:
    """The size of the ragged dimension of a nested tensor, which no single number says.

    It prints as ``j1``, ``j2``, …; two are equal if they are of the same offsets, the same tensor and not another with equal elements. A multiple by an
    int, as in strides, prints as ``4*j1``. Of the order it is known that it is at least 2, as PyTorch has it, and which of two multiples is greater; ValueError for all else.

    >>> nt = gradus.nested.as_nested_tensor([gradus.ones(2), gradus.ones(3)], layout=gradus.jagged)
    >>> isinstance(nt.size(1), gradus.SymInt), nt.size(1) == (nt + 1).size(1)
    (True, True)
    """

    __slots__ = ("_source", "_number", "_factor", "__weakref__")

    def __init__(self, source, number, factor=1):
        self._source, self._number, self._factor = source, number, factor  # The reference keeps the source alive, so that no other tensor gets its id.

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


_sizes = weakref.WeakValueDictionary()  # keys: ids of the sources
_numbers = itertools.count(1)


def ragged_size(source):
    """Returns the SymInt of a tensor of offsets or lengths: always the same while anyone has it."""
    size = _sizes.get(id(source))
    if size is None:
        size = _sizes[id(source)] = SymInt(source, next(_numbers))
    return size
