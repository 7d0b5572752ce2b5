"""Argument checks for functions that are written in Python, with the error texts that operators use."""
from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable

from gradus import _C

KINDS = {"Tensor": lambda value: isinstance(value, _C.Tensor), "bool": lambda value: isinstance(value, bool),
         "Number": lambda value: isinstance(value, numbers.Real) or isinstance(value, _C.Tensor) and value.dim() == 0,
         "float": lambda value: isinstance(value, numbers.Real) or isinstance(value, _C.Tensor) and value.dim() == 0}


def _is_int(value):
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


KINDS["int"] = _is_int


def require(function, kind, **arguments):
    """Raises TypeError unless each argument is of the given kind: "Tensor", "bool", "int", "float" or "Number"."""
    for name, value in arguments.items():
        if not KINDS[kind](value):
            raise TypeError(f"{function}(): argument '{name}' must be {kind}, not {type(value).__name__}")


def require_ints(function, **arguments):
    """Raises TypeError unless each argument is a tuple of integers."""
    for name, values in arguments.items():
        for i, value in enumerate(values):
            if not _is_int(value):
                raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, but found element of type {type(value).__name__} at pos {i}")


def ntuple(n):
    """Returns a function that converts an iterable to a tuple and repeats any other value `n` times."""
    return lambda value: tuple(value) if isinstance(value, Iterable) else (value,) * n
