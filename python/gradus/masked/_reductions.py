"""Reductions and normalizations with a mask, with PyTorch's names. Elements where `mask` is False are ignored.

A mask is a bool tensor, or is converted to bool, and broadcasts to the input. Without a mask all elements are used. A masked element is replaced by
the identity of the operation, which does not change the result. If all elements of a reduction are masked the result is that identity and has no
meaning. `dtype` is the dtype of the result and defaults to that of the input. `dim` is an int, a tuple of ints, or None for all dimensions. If
`keepdim` is true, reduced dimensions stay with size 1.
"""
import functools as _functools
import math as _math

from gradus import _C
from gradus.nn import functional as _F

from ._tensor import MaskedTensor as _MaskedTensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _of_data(function):
    """Decorator: returns `function` extended to masked tensors. A masked tensor is split into its data and its mask, and the argument `mask` is
    replaced by that mask."""
    @_functools.wraps(function)
    def of_data(input, *args, **options):
        if isinstance(input, _MaskedTensor):
            input, options["mask"] = input.get_data(), input.get_mask()
        return function(input, *args, **options)
    return of_data


def _dims(dim, ndim):
    """Returns `dim` as a tuple of non-negative dimensions, or all dimensions if it is None or empty. IndexError: a dimension is out of range."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found, limit = [], max(ndim, 1)
    for d in dim if isinstance(dim, (tuple, list)) else (dim,):
        if not -limit <= d < limit:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {d})")
        if d % limit in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % limit)
    return tuple(found)


def _mask_of(input, mask):
    """Returns the mask as bool with the sizes of the input, or None if there is no mask. IndexError: the mask has more dimensions than the input."""
    if mask is None:
        return None
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return (mask if mask.shape == input.shape else _C.broadcast_to(mask, input.shape)).to(_C.bool)


def _filled(input, mask, value):
    return input if mask is None else _C.where(_mask_of(input, mask), input, _C.full((), value, dtype=input.dtype, device=input.device))


def _extreme(name, input, sign):
    """Returns the smallest value of the input's dtype if `sign` is -1 (the identity of max), the largest if it is 1 (the identity of min).
    NotImplementedError: the dtype is complex or bool."""
    if input.is_floating_point():
        return sign * float("inf")
    if input.is_complex() or input.dtype == _C.bool:
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    return _C.iinfo(input.dtype).max if sign > 0 else _C.iinfo(input.dtype).min


def _sum_dtype(input, dtype):
    narrow = dtype is None and input.dtype in (_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32)
    return _C.int64 if narrow else dtype or input.dtype


@_of_data
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the sum of the unmasked elements over `dim`. Integers of fewer than 64 bits are summed in int64.

    >>> import gradus as torch
    >>> torch.masked.sum(torch.tensor([1, 2, 3]), mask=torch.tensor([True, False, True]))
    tensor(4)
    """
    return _C.sum(_filled(input, mask, 0), _dims(dim, input.dim()), bool(keepdim), dtype=_sum_dtype(input, dtype))


@_of_data
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the product of the unmasked elements over `dim`. Integers of fewer than 64 bits are multiplied in int64."""
    return _C._prod_dims(_filled(input, mask, 1), _dims(dim, input.dim()), bool(keepdim), _sum_dtype(input, dtype))


def _scan(scan, identity, input, dim, dtype, mask):
    dtype = dtype or input.dtype
    return scan(_filled(input, mask, identity), _dims(dim, input.dim())[0], dtype=dtype).to(dtype)


@_of_data
def cumsum(input, dim, *, dtype=None, mask=None):
    """Returns the cumulative sums along `dim`, in which masked elements count as 0."""
    return _scan(_C.cumsum, 0, input, dim, dtype, mask)


@_of_data
def cumprod(input, dim, *, dtype=None, mask=None):
    """Returns the cumulative products along `dim`, in which masked elements count as 1."""
    return _scan(_C.cumprod, 1, input, dim, dtype, mask)


def _of_extreme(name, input, sign, mask):
    return input if mask is None else _filled(input, mask, _extreme(name, input, sign))


@_of_data
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the maximum of the unmasked elements over `dim`."""
    return _C.amax(_of_extreme("amax", input, -1, mask), _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


@_of_data
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the minimum of the unmasked elements over `dim`."""
    return _C.amin(_of_extreme("amin", input, 1, mask), _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


@_of_data
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the index of the maximum of the unmasked elements along `dim`, or in the flattened input if `dim` is None. The index has the input's
    dtype unless `dtype` is given."""
    return _C.argmax(_of_extreme("argmax", input, -1, mask), dim, bool(keepdim)).to(dtype or input.dtype)


@_of_data
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the index of the minimum of the unmasked elements along `dim`, or in the flattened input if `dim` is None. The index has the input's
    dtype unless `dtype` is given."""
    return _C.argmin(_of_extreme("argmin", input, 1, mask), dim, bool(keepdim)).to(dtype or input.dtype)


@_of_data
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the mean of the unmasked elements over `dim`, which is NaN if all are masked. ValueError: the dtype is neither floating-point nor
    complex."""
    kind = dtype or input.dtype
    if not (kind.is_floating_point or kind.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: {kind}")
    return _C._masked_mean(input, _mask_of(input, mask), _dims(dim, input.dim()), bool(keepdim), kind)


def _check_numbers(medians):
    if medians.numel() > 0 and _math.isnan(medians.amin().item()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")


@_of_data
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Returns the lower median of the unmasked elements along `dim`. ValueError: all elements along `dim` are masked and the dtype is an integer,
    which has no NaN."""
    along = _dims(dim, input.dim())[0]
    is_float = input.is_floating_point()
    found = _C.nanmedian(_filled(input if is_float else input.to(_C.float32), mask, float("nan")), along, keepdim).values
    if is_float:
        return found
    _check_numbers(found)
    return found.to(dtype or input.dtype)


@_of_data
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns log(sum(exp(x))) of the unmasked elements x over `dim`."""
    least = 0 if mask is None else float("-inf") if input.is_complex() else _extreme("logsumexp", input, -1)
    return _C.logsumexp(_filled(input, mask, least), _dims(dim, input.dim()), keepdim=keepdim).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """Returns log(exp(input) + exp(other)), elementwise. Each tensor has a mask of its own, and a masked element counts as -inf."""
    if isinstance(input, _MaskedTensor):
        input, input_mask = input.get_data(), input.get_mask()
    if isinstance(other, _MaskedTensor):
        other, other_mask = other.get_data(), other.get_mask()
    return _C.logaddexp(_of_extreme("logaddexp", input, -1, input_mask), _of_extreme("logaddexp", other, -1, other_mask)).to(dtype or input.dtype)


@_of_data
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Returns the vector norm of order `ord` of the unmasked elements over `dim`."""
    identity = float("inf") if ord == float("-inf") else 0
    return _C.linalg.vector_norm(_filled(input, mask, identity), ord, _dims(dim, input.dim()), bool(keepdim), dtype=dtype or input.dtype)


def _variance(root, input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    given = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else _C.float32
    kind = dtype or given
    inexact = kind if kind.is_floating_point or kind.is_complex else _C.float32
    return _C._masked_var(input, _mask_of(input, mask), _dims(dim, input.dim()), bool(keepdim), less, root, kind, inexact)


@_of_data
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Returns the variance of the unmasked elements over `dim`. It is the sum of squared deviations from the mean, divided by (number of unmasked
    elements - correction). The correction defaults to 1, or to 0 if `unbiased` is False."""
    return _variance(False, input, dim, unbiased, correction, keepdim, dtype, mask)


@_of_data
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Returns the standard deviation of the unmasked elements over `dim`, which is the square root of their variance."""
    return _variance(True, input, dim, unbiased, correction, keepdim, dtype, mask)


@_of_data
def softmax(input, dim, *, dtype=None, mask=None):
    """Returns the softmax of the unmasked elements along `dim`. Masked elements are 0, or NaN if all are masked.

    >>> import gradus as torch
    >>> torch.masked.softmax(torch.tensor([1.0, 9.0, 1.0]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _F.softmax(_of_extreme("amax", input, -1, mask), _dims(dim, input.dim())[0], dtype=dtype or input.dtype)


@_of_data
def log_softmax(input, dim, *, dtype=None, mask=None):
    """Returns the logarithm of the softmax of the unmasked elements along `dim`. Masked elements are -inf, or NaN if all are masked."""
    return _F.log_softmax(_of_extreme("amax", input, -1, mask), _dims(dim, input.dim())[0], dtype=dtype or input.dtype)


@_of_data
def softmin(input, dim, *, dtype=None, mask=None):
    """Returns the softmin, i.e. softmax(-input), of the unmasked elements along `dim`. Masked elements are 0, or NaN if all are masked."""
    return _F.softmin(_of_extreme("amin", input, 1, mask), _dims(dim, input.dim())[0], dtype=dtype or input.dtype)


@_of_data
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """Returns the input divided by max(norm, eps), where norm is the vector norm of order `ord` of the unmasked elements along `dim`. Masked
    elements are 0."""
    return _C._masked_normalize(input, _mask_of(input, mask), ord, _dims(dim, input.dim()), eps, dtype or input.dtype)
