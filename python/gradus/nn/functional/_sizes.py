"""Arguments that are one value for all dimensions, or one for each."""
from collections.abc import Iterable


def _ntuple(n):
    """Returns a function that gives what is iterable as a tuple, and another value n times."""
    return lambda value: tuple(value) if isinstance(value, Iterable) else (value,) * n


_pair = _ntuple(2)
