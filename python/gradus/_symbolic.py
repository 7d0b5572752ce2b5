"""Implements sym_int, sym_max and so on. Programs call them on sizes, because PyTorch can trace such calls symbolically. In Gradus all sizes are
ordinary numbers, except the size of a ragged dimension, which is a SymInt.
"""
import math

from gradus._overridable import overridable
from gradus.nested._size import SymInt

__all__ = ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]


@overridable
def sym_int(a):
    """Returns a number as an int, rounded towards zero. Returns a SymInt unchanged.

    >>> gradus.sym_int(2.7)
    2
    """
    return a if isinstance(a, SymInt) else int(a)


@overridable
def sym_float(a):
    """Returns a number as a float."""
    return float(a)


@overridable
def sym_not(a):
    """Returns the negation of a truth value."""
    return not a


def _number(function, a, b):
    for x in (a, b):
        if not isinstance(x, (int, float)):
            raise AssertionError(f"expected {(int, float)}, got {type(x)}")
    return float(function(a, b)) if isinstance(a, float) or isinstance(b, float) else function(a, b)


@overridable
def sym_max(a, b):
    """Returns the larger of two numbers. The result is a float if one of the numbers is a float.

    >>> gradus.sym_max(3, 2.0)
    3.0
    """
    return _number(max, a, b)


@overridable
def sym_min(a, b):
    """Returns the smaller of two numbers. The result is a float if one of the numbers is a float."""
    return _number(min, a, b)


@overridable
def sym_sum(*args):
    """Returns the sum of the arguments, which are numbers or a single list of numbers."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


@overridable
def sym_ite(b, t, f):
    """Returns t if the bool b is True, otherwise f. AssertionError: b is not a bool, or t and f have different types."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


@overridable
def sym_sqrt(a):
    """Returns the square root of a number."""
    return math.sqrt(a)
