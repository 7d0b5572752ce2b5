"""Implements make_tensor, which creates random tensors for tests. The numbers equal those of PyTorch for equal seeds."""
from __future__ import annotations

import collections.abc
import math
import warnings

import gradus

__all__ = ["make_tensor"]

_INTEGERS = {gradus.uint8, gradus.int8, gradus.int16, gradus.int32, gradus.int64, gradus.uint16, gradus.uint32, gradus.uint64}
_BYTE_FLOATS = {gradus.float8_e4m3fn, gradus.float8_e5m2}
_FLOATS = {gradus.float16, gradus.bfloat16, gradus.float32, gradus.float64}
_COMPLEX = {gradus.complex32, gradus.complex64, gradus.complex128}


def _limits(dtype):
    """Returns (smallest value of the dtype, end of its range, default of `low`, default of `high`). For an integer dtype the end is one more than
    the largest value."""
    if dtype is gradus.bool:
        return 0, 2, 0, 2
    if dtype in _INTEGERS:
        info = gradus.iinfo(dtype)
        # For int64 the end is the maximum, not one more, because randint takes no bound beyond int64.
        return info.min, info.max + (dtype is not gradus.int64), -9, 10
    info = gradus.finfo(dtype)
    return info.min, info.max, -9, 9


def _range(dtype, low, high):
    """Returns the bounds (low, high), clamped to the range of the dtype; None becomes a default.

    ValueError: a bound is NaN, low >= high, or no value of the dtype is in [low, high). For the dtypes in _FLOATS and _COMPLEX, low == high only
    gives a FutureWarning.
    """
    lowest, end, default_low, default_high = _limits(dtype)
    low, high = default_low if low is None else low, default_high if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype in _FLOATS | _COMPLEX:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be removed in 2.3. "
                      "Use `torch.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= end:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{lowest}, {end})")
    low, high = (min(max(value, lowest), end) for value in (low, high))
    return (math.ceil(low), math.ceil(high)) if dtype in _INTEGERS or dtype is gradus.bool else (low, high)


def _uniform(tensor, low, high):
    """Fills the tensor with uniform random numbers in [low, high), even if high - low exceeds the largest number of the dtype."""
    if high - low >= gradus.finfo(tensor.dtype).max:
        return tensor.uniform_(low / 2, high / 2).mul_(2)
    return tensor.uniform_(low, high)


def _drawn(shape, dtype, device, low, high):
    if dtype in _INTEGERS or dtype is gradus.bool:
        return gradus.randint(low, high, shape, device=device, dtype=dtype)
    if dtype in _BYTE_FLOATS:
        return _uniform(gradus.empty(shape, device=device), low, high).to(dtype)
    result = gradus.empty(shape, device=device, dtype=dtype)
    _uniform(gradus.view_as_real(result) if dtype in _COMPLEX else result, low, high)
    return result


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False, memory_format=None):
    """Returns a tensor of the given shape with random numbers in [low, high). The default is [-9, 9] for integers and [-9, 9) for all other dtypes.
    If `noncontiguous` is true, the tensor is every second element of a larger one. If `exclude_zero` is true, zeros are replaced by 1 or by the
    smallest positive number. ValueError: arguments contradict each other.

    >>> tuple(make_tensor(2, 3, dtype=gradus.float32, device="cpu", noncontiguous=True).stride())
    (6, 2)
    """
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence) else shape
    is_exact = dtype in _INTEGERS or dtype is gradus.bool
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}")
    if requires_grad and is_exact:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if not is_exact and dtype not in _FLOATS | _COMPLEX | _BYTE_FLOATS:
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To request support, file an issue at: "
                        "https://github.com/pytorch/pytorch/issues")
    low, high = _range(dtype, low, high)
    if noncontiguous and math.prod(shape) > 1:
        result = _drawn((*shape[:-1], 2 * shape[-1]), dtype, device, low, high)[..., 1::2]
    else:
        result = _drawn(shape, dtype, device, low, high)
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if is_exact else gradus.finfo(dtype).tiny
    return result.requires_grad_(requires_grad) if dtype in _FLOATS | _COMPLEX else result
