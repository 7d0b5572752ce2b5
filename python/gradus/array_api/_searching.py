"""Implements the searching, sorting and set functions of the Python array API standard."""
from typing import NamedTuple

import gradus
from gradus.array_api._types import promoted

__all__ = ["argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


def argmax(x, /, *, axis=None, keepdims=False):
    """Returns the index of the maximum along an axis, or in the flattened array if `axis` is None. Ties go to the first element."""
    return gradus.argmax(x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Returns the index of the minimum along an axis, or in the flattened array if `axis` is None. Ties go to the first element."""
    return gradus.argmin(x, axis, keepdims)


def nonzero(x, /):
    """Returns the positions of the elements that are not zero, as a tuple of one index vector for each axis. ValueError: `x` is zero-dimensional."""
    if x.ndim == 0:
        raise ValueError("nonzero takes an array of at least one dimension")
    return gradus.nonzero(x, as_tuple=True)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Returns, for each element of `x2`, the index at which it would be inserted into the sorted vector `x1`. side="left" inserts it before equal
    elements of `x1`, side="right" after them."""
    x1, x2 = promoted(x1, x2)
    return gradus.searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition, x1, x2, /):
    """Returns elements of `x1` where `condition` is true and of `x2` elsewhere."""
    return gradus.where(condition, *promoted(x1, x2))


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """Returns `x` sorted along an axis, in descending order if `descending` is true."""
    return gradus.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """Returns the indices that would sort `x` along an axis, in descending order if `descending` is true."""
    return gradus.sort(x, dim=axis, descending=descending, stable=stable).indices


def isin(x1, x2, /, *, invert=False):
    """Returns, for each element of `x1`, True if it occurs in `x2`. If `invert` is true the result is negated."""
    return gradus.isin(*promoted(x1, x2), invert=invert)


class _UniqueAll(NamedTuple):
    values: gradus.Tensor
    indices: gradus.Tensor
    inverse_indices: gradus.Tensor
    counts: gradus.Tensor


class _UniqueCounts(NamedTuple):
    values: gradus.Tensor
    counts: gradus.Tensor


class _UniqueInverse(NamedTuple):
    values: gradus.Tensor
    inverse_indices: gradus.Tensor


def unique_all(x, /):
    """Returns a named tuple. `values` are the unique elements of `x`, where each NaN counts as a different element. `indices` and `counts` give the
    first occurrence and the number of occurrences of each unique element. `inverse_indices` gives the position in `values` of each element of `x`."""
    values, inverse, counts = gradus.unique(x, return_inverse=True, return_counts=True)
    places = gradus.arange(x.numel(), device=x.device)
    first = gradus.full_like(counts, x.numel()).scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return _UniqueAll(values, first, inverse, counts)


def unique_counts(x, /):
    """Returns a named tuple of the unique elements (values) and the number of occurrences of each (counts). Each NaN counts as a different
    element."""
    return _UniqueCounts(*gradus.unique(x, return_counts=True))


def unique_inverse(x, /):
    """Returns a named tuple of the unique elements (values) and the position in `values` of every element of `x` (inverse_indices). Each NaN
    counts as a different element."""
    return _UniqueInverse(*gradus.unique(x, return_inverse=True))


def unique_values(x, /):
    """Returns the unique elements. Each NaN counts as a different element."""
    return gradus.unique(x)
