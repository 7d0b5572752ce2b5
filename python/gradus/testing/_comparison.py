"""Implements assert_close. Nested sequences and mappings are first split into pairs of leaves (values that contain no other values), which are then
compared one by one. The error names the first pair that differs."""
from __future__ import annotations

import cmath
import collections.abc
import contextlib
import warnings
from dataclasses import dataclass

import numpy

import gradus
from gradus._C import Tensor

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

_EXACT = 0.0, 0.0
# Maps a dtype to its default (rtol, atol). Dtypes that are missing here are compared exactly.
_TOLERANCES = {gradus.float16: (1e-3, 1e-5), gradus.bfloat16: (1.6e-2, 1e-5), gradus.float32: (1.3e-6, 1e-5), gradus.float64: (1e-7, 1e-7),
               gradus.complex32: (1e-3, 1e-5), gradus.complex64: (1.3e-6, 1e-5), gradus.complex128: (1e-7, 1e-7)}
_OLD_TOLERANCES = {gradus.float16: (1e-3, 1e-3), gradus.float32: (1e-4, 1e-5), gradus.float64: (1e-5, 1e-8)}
_DTYPE_OF_NUMBER = {int: gradus.int64, float: gradus.float64, complex: gradus.complex128}
_UNSIGNED = {gradus.uint16, gradus.uint32, gradus.uint64}


class _Mismatch(Exception):
    """The first difference that a comparison has found. kind: the class of the exception to raise for the user. text: its text. path: the keys and
    indices that lead to the item that differs."""

    def __init__(self, kind, text, path):
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path

    def error(self, msg):
        """Returns the exception for the user. msg: the text, a function that converts the generated text, or None for the generated text."""
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.path:
            text += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in self.path)}"
        return self.kind(msg(text) if callable(msg) else text)


@dataclass(frozen=True)
class _Options:
    """The arguments of assert_close."""

    allow_subclasses: bool = True
    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False

    def tolerances(self, path, *dtypes):
        """Returns the user's (rtol, atol), or default_tolerances(*dtypes) if both are None. Raises _Mismatch if only one of them is None."""
        if (self.rtol is None) != (self.atol is None):
            raise _Mismatch(ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if self.rtol is None else 'atol'}.", path)
        return default_tolerances(*dtypes) if self.rtol is None else (self.rtol, self.atol)


def default_tolerances(*inputs, dtype_precisions=None):
    """Returns (rtol, atol), each the maximum of the defaults of the given dtypes or tensors. TypeError: an argument is neither a dtype nor a tensor.

    >>> default_tolerances(gradus.float32, gradus.float64)
    (1.3e-06, 1e-05)
    """
    for given in inputs:
        if not isinstance(given, (Tensor, gradus.dtype)):
            raise TypeError(f"Expected a {gradus.__name__}.Tensor or a {gradus.__name__}.dtype, but got {type(given)} instead.")
    table = dtype_precisions or _TOLERANCES
    found = [table.get(given.dtype if isinstance(given, Tensor) else given, _EXACT) for given in inputs]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


# ---- Error texts --------------------------------------------------------------------------------------------------------------


def _difference_text(what, extra, rtol, atol, differences):
    """Returns the error text for a mismatch. `differences` maps "absolute" and "relative" to (the largest difference, its index or None)."""
    exact = rtol == 0 and atol == 0
    lines = [f"{what} are not {'equal' if exact else 'close'}!", "", extra]
    for name, tolerance in (("absolute", atol), ("relative", rtol)):
        value, index = differences[name]
        text = f"{name.title()} difference: {value}" if index is None else f"Greatest {name} difference: {value} at index {index}"
        lines.append(text if exact else f"{text} (up to {tolerance} allowed)")
    return "\n".join(lines)


def _number_text(actual, expected, rtol, atol):
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    return _difference_text("Scalars", f"Expected {expected} but got {actual}.", rtol, atol, {"absolute": (absolute, None), "relative": (relative, None)})


def _tensor_text(actual, expected, matches, rtol, atol):
    count = matches.numel()
    mismatches = count - int(matches.sum())
    extra = f"Mismatched elements: {mismatches} / {count} ({mismatches / count:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:
        first = tuple(gradus.nonzero(~matches)[0].tolist())
        return f"Tensor-likes are not 'equal'!\n\n{extra}\nThe first mismatched element is at index {first}."
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(gradus.int64), expected.to(gradus.int64)
    absolute = abs(actual - expected)
    absolute[matches] = 0
    relative = absolute / abs(expected)
    relative[matches] = 0
    return _difference_text("Tensor-likes", extra, rtol, atol, {"absolute": _greatest(absolute), "relative": _greatest(relative)})


def _greatest(differences):
    """Returns (value, index) of the largest element of `differences`, or of the first NaN if there is one."""
    value, place = gradus.max(differences.flatten(), 0)
    return value.item(), tuple(int(i) for i in numpy.unravel_index(int(place), differences.shape))


# ---- Pairs of leaves ----------------------------------------------------------------------------------------------------------


def _none_pair(actual, expected, options, path):
    if actual is not None and expected is not None:
        return None

    def compare():
        if actual is not None or expected is not None:
            raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", path)

    return compare


def _bool_pair(actual, expected, options, path):
    if not all(isinstance(value, (bool, numpy.bool_)) for value in (actual, expected)):
        return None

    def compare():
        if bool(actual) is not bool(expected):
            raise _Mismatch(AssertionError, f"Booleans mismatch: {bool(actual)} is not {bool(expected)}", path)

    return compare


def _number_pair(actual, expected, options, path):
    if not all(isinstance(value, (int, float, complex, numpy.number)) for value in (actual, expected)):
        return None
    actual, expected = (value.item() if isinstance(value, numpy.number) else value for value in (actual, expected))
    rtol, atol = options.tolerances(path, *(_DTYPE_OF_NUMBER.get(type(value), gradus.int64) for value in (actual, expected)))

    def compare():
        if options.check_dtype and type(actual) is not type(expected):
            raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
        if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        if not cmath.isfinite(difference) or difference > atol + rtol * abs(expected):
            raise _Mismatch(AssertionError, _number_text(actual, expected, rtol, atol), path)

    return compare


def _tensor_pair(actual, expected, options, path):
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not options.allow_subclasses and type(actual) is not type(expected):
        return None
    try:
        actual, expected = (value if isinstance(value, Tensor) else gradus.as_tensor(value) for value in (actual, expected))
    except Exception:  # as in PyTorch, values that as_tensor cannot convert cannot be compared
        return None
    rtol, atol = options.tolerances(path, actual, expected)

    def compare():
        _compare_attributes(actual, expected, options, path)
        if "meta" not in (actual.device.type, expected.device.type):
            _compare_values(actual.detach(), expected.detach(), rtol, atol, options.equal_nan, path)

    return compare


def _compare_attributes(actual, expected, options, path):
    attributes = [("shape", actual.shape, expected.shape)]
    if options.check_layout:
        attributes.append(("layout", actual.layout, expected.layout))
    if options.check_stride:
        attributes.append(("stride()", actual.stride(), expected.stride()))
    if options.check_device:
        attributes.append(("device", actual.device, expected.device))
    if options.check_dtype:
        attributes.append(("dtype", actual.dtype, expected.dtype))
    for name, ours, theirs in attributes:
        if ours != theirs:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {ours} != {theirs}.", path)


def _compare_values(actual, expected, rtol, atol, equal_nan, path):
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        dtype = gradus.promote_types(*(gradus.int64 if tensor.dtype in _UNSIGNED else tensor.dtype for tensor in (actual, expected)))
        actual, expected = actual.to(dtype), expected.to(dtype)
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (rtol != 0 or atol != 0):
        raise _Mismatch(AssertionError, f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low dimensional floats. Please use rtol=0.0 and atol=0.0.",
                        path)
    matches = gradus.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if matches.all():
        return
    if actual.dim() == 0:
        raise _Mismatch(AssertionError, _number_text(actual.item(), expected.item(), rtol, atol), path)
    raise _Mismatch(AssertionError, _tensor_text(actual, expected, matches, rtol, atol), path)


def _pairs(actual, expected, options, path=()):
    """Returns a list of functions, one for each pair of leaves of `actual` and `expected`. Each compares its pair and raises _Mismatch if the two
    differ. Raises _Mismatch if the structures of `actual` and `expected` differ."""
    if all(isinstance(value, collections.abc.Sequence) and not isinstance(value, str) for value in (actual, expected)):
        if len(actual) != len(expected):
            raise _Mismatch(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        return [pair for i in range(len(actual)) for pair in _pairs(actual[i], expected[i], options, (*path, i))]
    if all(isinstance(value, collections.abc.Mapping) for value in (actual, expected)):
        keys = _common_keys(actual, expected, path)
        return [pair for key in keys for pair in _pairs(actual[key], expected[key], options, (*path, key))]
    for kind in (_none_pair, _bool_pair, _number_pair, _tensor_pair):
        pair = kind(actual, expected, options, path)
        if pair is not None:
            return [pair]
    raise _Mismatch(TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", path)


def _common_keys(actual, expected, path):
    ours, theirs = set(actual), set(expected)
    if ours != theirs:
        raise _Mismatch(AssertionError, f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(theirs - ours)}\n"
                        f"Additional keys in the actual mapping: {sorted(ours - theirs)}", path)
    with contextlib.suppress(TypeError):  # the keys may have no order
        return sorted(ours)
    return list(actual)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True, check_layout=True,
                 check_stride=False, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements, and attributes are equal.

    `actual` and `expected` are tensors or objects that as_tensor accepts, numbers, None, and nested sequences and mappings of these. `rtol` and
    `atol` must be given together; by default they depend on the dtypes. `msg` replaces the error text, or is a function that converts it.

    >>> assert_close(gradus.tensor([1.0, 2.0]), gradus.tensor([1.0, 2.0 + 1e-6]))
    >>> assert_close([gradus.tensor([1.0, 2.0])], [gradus.tensor([1.0, 2.5])])
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    <BLANKLINE>
    The failure occurred for item [0]
    """
    __tracebackhide__ = True
    options = _Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    used = None  # `msg` replaces the texts of errors from compare(), but not those from _pairs().
    try:
        pairs = _pairs(actual, expected, options)
        used = msg
        for compare in pairs:
            compare()
    except _Mismatch as mismatch:
        error = mismatch.error(used)
    else:
        return
    raise error


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """Raises AssertionError unless the tensors are close. Unlike in assert_close, the default tolerances are larger, the dtypes may differ, and NaN
    equals NaN. Deprecated; gives a FutureWarning."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use `torch.testing.assert_close()` instead. "
                  "You can find detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    actual = actual if isinstance(actual, Tensor) else gradus.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else gradus.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=_OLD_TOLERANCES)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
