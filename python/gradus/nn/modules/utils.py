"""Arguments that are one number for every dimension, or a number for each."""
from __future__ import annotations

from ..functional._arguments import ntuple as _ntuple

_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(t, n):
    """Returns the elements from the last to the first, each n times: the padding of a convolution in the order of F.pad."""
    return tuple(x for x in reversed(t) for _ in range(n))
