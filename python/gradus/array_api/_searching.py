"""Searching, sorting and set functions of the standard."""
from typing import NamedTuple

import gradus
from gradus.array_api._types import promoted

__all__ = ["argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


def argmax(x, /, *, axis=None, keepdims=False):
    """Returns the index of the greatest element, the first of several."""
    return gradus.argmax(x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Returns the index of the least element, the first of several."""
    return gradus.argmin(x, axis, keepdims)


def nonzero(x, /):
    """Returns for each axis the indices of the elements that are not zero."""
    if x.ndim == 0:
        raise ValueError("nonzero takes an array of at least one dimension")
    return gradus.nonzero(x, as_tuple=True)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Returns the places of elements of x2 in the sorted vector x1, before elements that are the same or, side "right", behind them."""
    x1, x2 = promoted(x1, x2)
    return gradus.searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition, x1, x2, /):
    """Returns x1 where the condition is true, x2 elsewhere."""
    return gradus.where(condition, *promoted(x1, x2))


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """Returns x sorted along an axis."""
    return gradus.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """Returns the indices that sort x along an axis."""
    return gradus.sort(x, dim=axis, descending=descending, stable=stable).indices


def isin(x1, x2, /, *, invert=False):
    """True for each element of x1 that is among those of x2 or, if inverted, is not."""
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
    """Returns the different elements, where each is first, which of them each element is, and how often it occurs. NaNs differ."""
    values, inverse, counts = gradus.unique(x, return_inverse=True, return_counts=True)
    places = gradus.arange(x.numel(), device=x.device)
    first = gradus.full_like(counts, x.numel()).scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return _UniqueAll(values, first, inverse, counts)


def unique_counts(x, /):
    """Returns the different elements, and how often each occurs. NaNs differ."""
    return _UniqueCounts(*gradus.unique(x, return_counts=True))


def unique_inverse(x, /):
    """Returns the different elements, and which of them each element is. NaNs differ."""
    return _UniqueInverse(*gradus.unique(x, return_inverse=True))


def unique_values(x, /):
    """Returns the different elements. NaNs differ."""
    return gradus.unique(x)
