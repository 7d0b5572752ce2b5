"""Implements the data types of the Python array API standard and their promotion."""
import builtins
from typing import NamedTuple

import gradus

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

SIGNED = (gradus.int8, gradus.int16, gradus.int32, gradus.int64)
UNSIGNED = (gradus.uint8, gradus.uint16, gradus.uint32, gradus.uint64)
REAL = (gradus.float32, gradus.float64)
COMPLEX = (gradus.complex64, gradus.complex128)
KINDS = {"bool": (gradus.bool,), "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": SIGNED + UNSIGNED, "real floating": REAL, "complex floating": COMPLEX,
         "numeric": SIGNED + UNSIGNED + REAL + COMPLEX}


def isdtype(dtype, kind):
    """True if `dtype` equals `kind`, belongs to the kind named by the str `kind`, or matches one of the items of the tuple `kind`. ValueError:
    unknown kind."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not '{kind}'")
        return dtype in KINDS[kind]
    return dtype == kind


def of_number(dtype, number):
    """Returns the dtype of an operation on an array of `dtype` and a Python number."""
    if isinstance(number, builtins.complex):
        return gradus.promote_types(dtype, gradus.complex64) if isdtype(dtype, ("real floating", "complex floating")) else gradus.get_default_dtype().to_complex()
    if isinstance(number, float) and not isdtype(dtype, ("real floating", "complex floating")):
        return gradus.get_default_dtype()
    if isinstance(number, int) and not isinstance(number, builtins.bool) and dtype == gradus.bool:
        return gradus.int64
    return dtype


def result_type(*arrays_and_dtypes):
    """Returns the dtype to which arrays, dtypes and Python numbers promote. A zero-dimensional array counts like any other. ValueError: there is
    no array and no dtype."""
    dtypes = [one.dtype if isinstance(one, gradus.Tensor) else one for one in arrays_and_dtypes if isinstance(one, (gradus.Tensor, gradus.dtype))]
    if not dtypes:
        raise ValueError("result_type takes at least one array or dtype")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = gradus.promote_types(result, dtype)
    for number in arrays_and_dtypes:
        if not isinstance(number, (gradus.Tensor, gradus.dtype)):
            result = of_number(result, number)
    return result


def promoted(*arrays):
    """Returns the given arrays and Python numbers as arrays of their common dtype."""
    dtype = result_type(*arrays)
    device = next(one.device for one in arrays if isinstance(one, gradus.Tensor))
    return [one.to(dtype) if isinstance(one, gradus.Tensor) else gradus.tensor(one, dtype=dtype, device=device) for one in arrays]


def can_cast(from_, to, /):
    """True if `from_` can be cast to the dtype `to`, i.e. if type promotion of the two dtypes gives `to`. For example, int32 can be cast to int64.
    `from_` is an array or a dtype."""
    dtype = from_.dtype if isinstance(from_, gradus.Tensor) else from_
    try:
        return gradus.promote_types(dtype, to) == to
    except RuntimeError:
        return False


def astype(x, dtype, /, *, copy=True, device=None):
    """Returns `x` cast to `dtype`. The result is a copy, unless `copy` is False and the dtype does not change. Casting complex to real numbers,
    which the standard does not define, returns the real part."""
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


def of_one_array(name, path, operator):
    """Returns a function called `name` that applies `operator` to one array."""
    def function(x, /):
        return operator(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The standard's ``{name}``: ``{path}``."
    return function


class _FloatInfo(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: gradus.dtype


class _IntInfo(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: gradus.dtype


def _dtype_of(type):
    return type.dtype if isinstance(type, gradus.Tensor) else type


def finfo(type, /):
    """Returns the limits of a floating-point dtype. `type` is the dtype or an array of it. For a complex dtype these are the limits of its real and
    imaginary parts."""
    dtype = _dtype_of(type).to_real()
    info = gradus.finfo(dtype)
    return _FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, dtype)


def iinfo(type, /):
    """Returns the limits of an integer dtype. `type` is the dtype or an array of it."""
    info = gradus.iinfo(_dtype_of(type))
    return _IntInfo(info.bits, info.max, info.min, _dtype_of(type))
