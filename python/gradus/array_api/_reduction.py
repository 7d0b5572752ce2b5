"""Implements the statistical and utility functions of the Python array API standard. `axis` is an int, a tuple of ints, or None for all axes. If
`keepdims` is true the reduced axes stay in the result with size 1."""
import gradus
from gradus import _C
from gradus.array_api._types import UNSIGNED, isdtype, promoted

__all__ = ["all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]


def _axes(x, axis):
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _sum_dtype(x, dtype):
    """Returns `dtype` if given, otherwise the default dtype of a sum: int64 for signed integers and bool, uint64 for unsigned integers, and the dtype
    of `x` for all others."""
    if dtype is not None:
        return dtype
    return gradus.uint64 if x.dtype in UNSIGNED else gradus.int64 if isdtype(x.dtype, ("integral", "bool")) else x.dtype


def all(x, /, *, axis=None, keepdims=False):
    """Returns a bool array that is True where all elements along `axis` are true, i.e. not zero."""
    return gradus.all(x.to(gradus.bool), _axes(x, axis), keepdims) if axis != () else (x != 0)


def any(x, /, *, axis=None, keepdims=False):
    """Returns a bool array that is True where at least one element along `axis` is true, i.e. not zero."""
    return gradus.any(x.to(gradus.bool), _axes(x, axis), keepdims) if axis != () else (x != 0)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """Returns the number of elements along `axis` that are not zero, as int64."""
    return sum(x.to(gradus.bool), axis=axis, dtype=gradus.int64, keepdims=keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """Returns the maximum of the elements along `axis`, which is NaN if an element is NaN."""
    return gradus.amax(x, _axes(x, axis), keepdims) if axis != () else x.clone()


def min(x, /, *, axis=None, keepdims=False):
    """Returns the minimum of the elements along `axis`, which is NaN if an element is NaN."""
    return gradus.amin(x, _axes(x, axis), keepdims) if axis != () else x.clone()


def mean(x, /, *, axis=None, keepdims=False):
    """Returns the arithmetic mean of the elements along `axis`."""
    return gradus.mean(x, _axes(x, axis), keepdims) if axis != () else x.clone()


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Returns the standard deviation of the elements along `axis`, which is the square root of var(x, axis=axis, correction=correction)."""
    return gradus.std(x, _axes(x, axis), correction=correction, keepdim=keepdims) if axis != () else gradus.zeros_like(x)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Returns the variance of the elements along `axis`. It is the sum of squared deviations from the mean, divided by (number of elements -
    correction)."""
    return gradus.var(x, _axes(x, axis), correction=correction, keepdim=keepdims) if axis != () else gradus.zeros_like(x)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Returns the sum of the elements along `axis`. The default dtype is int64 for signed integers and bool, uint64 for unsigned integers, and the
    dtype of `x` for all others."""
    dtype = _sum_dtype(x, dtype)
    return gradus.sum(x, _axes(x, axis), keepdims, dtype=dtype) if axis != () and x.ndim > 0 else x.to(dtype, copy=True)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Returns the product of the elements along `axis`. The default dtype is int64 for signed integers and bool, uint64 for unsigned integers, and
    the dtype of `x` for all others."""
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
    """Returns the cumulative sums along an axis. If `include_initial` is true they begin with an additional 0."""
    return _cumulative(x, axis, dtype, include_initial, gradus.cumsum, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Returns the cumulative products along an axis. If `include_initial` is true they begin with an additional 1."""
    return _cumulative(x, axis, dtype, include_initial, gradus.cumprod, 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Returns the n-th discrete differences along an axis, i.e. x[i + 1] - x[i], applied n times. `prepend` and `append` are concatenated to `x`
    first."""
    parts = promoted(*(part for part in (prepend, x, append) if part is not None))
    return gradus.diff(gradus.cat(parts, axis), n=n, dim=axis)
