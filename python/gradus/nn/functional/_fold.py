"""Sliding windows of images as columns, and back: the operators."""
from collections.abc import Iterable

from gradus._C import nn as _nn

__all__ = ["fold", "unfold"]

fold = _nn.fold
unfold = _nn.unfold


def _ntuple(n):
    """Returns a function that gives what is iterable as a tuple, and another value n times."""
    return lambda value: tuple(value) if isinstance(value, Iterable) else (value,) * n


_pair = _ntuple(2)
