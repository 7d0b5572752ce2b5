"""Compares gradus.testing with torch.testing: the results and error texts of assert_close, and the random numbers of make_tensor."""
from collections import OrderedDict

import numpy
from both import submodule
from nn_programs import attempt, same

VALUES = ["3", "3.0", "3.5", "3j", "True", "False", "None", "'a'", "numpy.float32(3)", "numpy.bool_(True)", "numpy.int64(3)", "t.tensor(3)", "t.tensor(3.0)", "t.tensor([3.0, 4.0])",
          "t.tensor([3.0, 4.00001])", "t.tensor([3.0, 4.5])", "t.tensor([3, 4])", "t.tensor([[3.0, 4.0]])", "t.tensor([3.0, float('nan')])", "t.tensor([3.0, 4.0]).double()",
          "t.tensor([True, False])", "t.tensor([3.0, 4.0]).half()", "t.tensor([3j, 4.0])", "t.ones(2, device='meta')", "t.nn.Parameter(t.tensor([3.0, 4.0]))",
          "numpy.array([3.0, 4.0])", "[3.0, 4.0]", "[3.0, t.tensor(4.0)]", "(3.0, 4.0)", "{'a': 3.0}", "{'b': 3.0, 'a': t.tensor([1.0, 2.0])}", "{'a': t.tensor([1.0, 2.5]), 'b': 3.0}",
          "[[1, [2, 3]]]", "[[1, [2, 4]]]", "[]", "object", "t.empty(0)", "t.zeros(2, 3).t()", "t.zeros(3, 2)", "t.tensor([float('inf'), 1.0])", "t.tensor([0.0, 1.0])",
          "t.tensor([200, 3], dtype=t.uint8)", "t.tensor([3, 3], dtype=t.uint8)", "float('nan')", "float('inf')"]
OPTIONS = [{}, {"rtol": 0, "atol": 0}, {"rtol": 1e-5, "atol": 0.6}, {"equal_nan": True, "check_dtype": False}, {"rtol": 0.1}, {"atol": 0.1}, {"check_stride": True},
           {"msg": "said"}, {"msg": lambda text: f"[{text}]"}, {"allow_subclasses": False, "check_dtype": False}]


def compared(t, actual, expected, **options):
    """Returns the outcome of assert_close, or None if one value is a bool and the other a number. PyTorch fails there with an internal error, and
    Gradus takes the bool as an integer."""
    kinds = {type(value) for value in (actual, expected)}
    return None if kinds & {bool, numpy.bool_} and kinds & {int, float, complex, numpy.float32, numpy.int64} else attempt(t.testing.assert_close, actual, expected, **options)


@same(tolerance=1e-6)
def test_assert_close(t):
    names = {"t": t, "numpy": numpy, "OrderedDict": OrderedDict}
    for first in VALUES:
        for second in VALUES:
            yield first, second, compared(t, eval(first, names), eval(second, names))
    for options in OPTIONS:
        for first in VALUES[::3]:
            for second in VALUES[::2]:
                yield first, second, compared(t, eval(first, names), eval(second, names), **options)


@same(tolerance=0)
def test_assert_close_names_the_index_of_the_greatest_difference(t):
    a = t.randn(3, 4, 5)
    b = a.clone()
    b[1, 2, 3] += 5
    b[2, 0, 1] *= 1.5
    yield attempt(t.testing.assert_close, a, b), attempt(t.testing.assert_close, a.mT, b.mT), attempt(t.testing.assert_close, {"x": [a, a], "y": b}, {"x": [a, b], "y": b})
    yield attempt(t.testing.assert_close, a.to(t.int64), b.to(t.int64)), attempt(t.testing.assert_close, (a > 0), (b > 1))


@same
def test_assert_allclose(t):
    for a, b in ((1.0, 1.00001), ([1.0, 2.0], [1, 2]), (t.ones(2), t.ones(2).double() + 1e-3), (t.tensor(float("nan")), float("nan")), (t.ones(2), t.ones(3))):
        yield attempt(t.testing.assert_allclose, a, b), attempt(t.testing.assert_allclose, a, b, rtol=0, atol=1)


@same(tolerance=0)
def test_make_tensor(t):
    make = t.testing.make_tensor
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        for shape in ((), (3,), ((2, 3),), (2, 0), ([4],)):
            for kwargs in ({}, {"low": 0}, {"low": -1.5, "high": 3}, {"exclude_zero": True}, {"noncontiguous": True}, {"requires_grad": True}, {"low": 3, "high": 1},
                           {"low": float("nan")}, {"low": 1, "high": 1}, {"low": -float("inf"), "high": float("inf")}):
                result = attempt(make, *shape, dtype=getattr(t, name), device="cpu", **kwargs)
                yield name, shape, kwargs, result, list(result.stride()) if hasattr(result, "stride") else None
    x = make(2, 3, 4, 5, dtype=t.float32, device="cpu", memory_format=t.channels_last)
    yield x, x.stride(), attempt(make, 2, dtype=t.float32, device="cpu", memory_format=t.channels_last, noncontiguous=True)


@same
def test_default_tolerances(t):
    found = submodule(t, "testing._comparison").default_tolerances
    for dtypes in ((t.float16, t.float64), (t.int64,), (t.ones(2), t.complex128)):
        yield found(*dtypes)
    yield attempt(found, 3)
