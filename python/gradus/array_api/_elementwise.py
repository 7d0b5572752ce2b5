"""Implements the elementwise functions of the Python array API standard. Most of them call an operator after promoting the arguments."""
import builtins

import gradus
from gradus import _C
from gradus.array_api._types import isdtype, of_one_array, promoted

UNARY = {
    name: name for name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos", "cosh", "exp", "expm1", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10",
                            "logical_not", "negative", "real", "reciprocal", "signbit", "sin", "sinh", "square", "sqrt", "tan")
} | {"bitwise_invert": "bitwise_not"}
BINARY = {
    name: name for name in ("add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign", "divide", "greater",
                            "greater_equal", "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
                            "nextafter", "not_equal", "pow", "subtract")
} | {"equal": "eq"}
__all__ = [*UNARY, *BINARY, "ceil", "clip", "floor", "floor_divide", "imag", "positive", "remainder", "round", "sign", "tanh", "trunc"]


def _binary(name, operator):
    def function(x1, x2, /):
        return operator(*promoted(x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The standard's ``{name}``: ``gradus.{operator.__name__}`` of two arrays, or of an array and a number, in the dtype they promote to."
    return function


globals().update({name: of_one_array(name, f"gradus.{of}", getattr(gradus, of)) for name, of in UNARY.items()})
globals().update({name: _binary(name, getattr(gradus, of)) for name, of in BINARY.items()})


def ceil(x, /):
    """Returns each element rounded up to an integer, in the dtype of `x`. Integers stay unchanged."""
    return gradus.ceil(x) if isdtype(x.dtype, "real floating") else x.clone()


def floor(x, /):
    """Returns each element rounded down to an integer, in the dtype of `x`. Integers stay unchanged."""
    return gradus.floor(x) if isdtype(x.dtype, "real floating") else x.clone()


def floor_divide(x1, x2, /):
    """Returns x1 / x2 rounded down, elementwise. If the quotient is infinite, the result is that infinity, whereas gradus.floor_divide returns
    NaN."""
    x1, x2 = promoted(x1, x2)
    return _C._array_function(x1, x2, "floor_divide") if isdtype(x1.dtype, "real floating") else gradus.floor_divide(x1, x2)


def remainder(x1, x2, /):
    """Returns the remainder of x1 / x2, elementwise. The remainder has the sign of x2, even a remainder of zero."""
    x1, x2 = promoted(x1, x2)
    return _C._array_function(x1, x2, "remainder") if isdtype(x1.dtype, "real floating") else gradus.remainder(x1, x2)


def trunc(x, /):
    """Returns each element rounded towards 0, in the dtype of `x`. Integers stay unchanged."""
    return gradus.trunc(x) if isdtype(x.dtype, "real floating") else x.clone()


def round(x, /):
    """Returns each element rounded to the nearest integer, with ties to even. For complex numbers both parts are rounded."""
    if isdtype(x.dtype, "complex floating"):
        return gradus.view_as_complex(gradus.round(gradus.view_as_real(x.resolve_conj())))
    return gradus.round(x) if isdtype(x.dtype, "real floating") else x.clone()


def imag(x, /):
    """Returns the imaginary part of each element, which is 0 for real numbers."""
    return gradus.imag(x) if isdtype(x.dtype, "complex floating") else gradus.zeros_like(x)


def positive(x, /):
    """Returns a copy of x."""
    return x.clone()


def sign(x, /):
    """Returns the sign of each element. The sign of a real number is -1, 0, 1 or NaN. For a complex number z it is z / abs(z), or 0 if z is 0."""
    if isdtype(x.dtype, "complex floating"):
        return gradus.sgn(x)
    return _C._array_function(x, x, "sign") if isdtype(x.dtype, "real floating") else gradus.sign(x)


def tanh(x, /):
    """Returns the hyperbolic tangent. If the real part is infinite, the imaginary part of the result is a zero with the sign of imag(x). In
    gradus.tanh that zero has the sign of sin(2 imag(x)), as in C."""
    return _C._array_function(x, x, "tanh")


def clip(x, /, min=None, max=None):
    """Returns `x` limited to the interval [min, max], in the dtype of `x`. A bound outside the range of an integer dtype has no effect."""
    def bound(value):
        if isinstance(value, gradus.Tensor) or value is None:
            return value if value is None else value.to(x.dtype)
        if isdtype(x.dtype, "integral"):
            info = gradus.iinfo(x.dtype)
            value = int(builtins.max(info.min, builtins.min(info.max, value)))
        return gradus.tensor(value, dtype=x.dtype, device=x.device)

    low, high = bound(min), bound(max)
    return x.clone() if low is None and high is None else gradus.clamp(x, low, high)



