"""Statistical and utility functions of the standard, along axes or over all elements."""
import gradus
from gradus import _C
from gradus.array_api._types import UNSIGNED, isdtype, promoted

__all__ = ["all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]


def _axes(x, axis):
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _sum_dtype(x, dtype):
    """Returns the dtype of a sum: no narrower than the default integer, and unsigned if x is."""
    if dtype is not None:
        return dtype
    return gradus.uint64 if x.dtype in UNSIGNED else gradus.int64 if isdtype(x.dtype, ("integral", "bool")) else x.dtype


def all(x, /, *, axis=None, keepdims=False):
    """True if all elements are true."""
    return gradus.all(x.to(gradus.bool), _axes(x, axis), keepdims) if axis != () else (x != 0)


def any(x, /, *, axis=None, keepdims=False):
    """True if some element is true."""
    return gradus.any(x.to(gradus.bool), _axes(x, axis), keepdims) if axis != () else (x != 0)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """Returns the number of elements that are not zero."""
    return sum(x.to(gradus.bool), axis=axis, dtype=gradus.int64, keepdims=keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """Returns the greatest element; NaN if there is one."""
    return gradus.amax(x, _axes(x, axis), keepdims) if axis != () else x.clone()


def min(x, /, *, axis=None, keepdims=False):
    """Returns the least element; NaN if there is one."""
    return gradus.amin(x, _axes(x, axis), keepdims) if axis != () else x.clone()


def mean(x, /, *, axis=None, keepdims=False):
    """Returns the arithmetic mean."""
    return gradus.mean(x, _axes(x, axis), keepdims) if axis != () else x.clone()


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Returns the standard deviation, whose sum of squares is divided by the number of elements without `correction`."""
    return gradus.std(x, _axes(x, axis), correction=correction, keepdim=keepdims) if axis != () else gradus.zeros_like(x)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Returns the variance, whose sum of squares is divided by the number of elements without `correction`."""
    return gradus.var(x, _axes(x, axis), correction=correction, keepdim=keepdims) if axis != () else gradus.zeros_like(x)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Returns the sum of elements; of integers that of the widest of their kind."""
    dtype = _sum_dtype(x, dtype)
    return gradus.sum(x, _axes(x, axis), keepdims, dtype=dtype) if axis != () and x.ndim > 0 else x.to(dtype, copy=True)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Returns the product of elements; of integers that of the widest of their kind."""
    dtype = _sum_dtype(x, dtype)
    return _C._prod_dims(x, _axes(x, axis), keepdims, dtype) if axis != () and x.ndim > 0 else x.to(dtype, copy=True)


def _cumulative(x, axis, dtype, include_initial, scan, initial):
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"an array of {x.ndim} dimensions needs an axis")
        axis = 0
    made = scan(x, axis, dtype=_sum_dtype(x, dtype))
    if not include_initial:
        return made
    shape = list(made.shape)
    shape[axis] = 1
    return gradus.cat([gradus.full(shape, initial, dtype=made.dtype, device=made.device), made], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Returns running sums along an axis, behind a 0 if include_initial."""
    return _cumulative(x, axis, dtype, include_initial, gradus.cumsum, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Returns running products along an axis, behind a 1 if include_initial."""
    return _cumulative(x, axis, dtype, include_initial, gradus.cumprod, 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along an axis, n times."""
    parts = promoted(*(part for part in (prepend, x, append) if part is not None))
    return gradus.diff(gradus.cat(parts, axis), n=n, dim=axis)
