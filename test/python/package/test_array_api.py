"""Tests the namespace of the Python array API standard: names and signatures (test/data/array_api.json), types, special cases and functions that are
no operators.

The standard's own test suite (data-apis/array-api-tests) is run by hand: ARRAY_API_TESTS_MODULE=gradus.array_api ARRAY_API_TESTS_VERSION=2025.12
pytest array_api_tests --xfails-file=.../test/data/array_api_exceptions.txt. The exceptions file lists the standard's tests that fail, and why.
"""
import inspect
import json
import math
from pathlib import Path

import pytest

import gradus
from gradus import array_api as xp
from both import caught

SIGNATURES = json.loads((Path(__file__).resolve().parents[2] / "data" / "array_api.json").read_text())
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
INF, NAN = math.inf, math.nan


def find(name):
    found = xp
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signatures_are_those_of_the_standard(name):
    """The parameters have the names, order and kinds of the standard. A parameter may have a default where the standard has none."""
    wanted = inspect.signature(eval(f"lambda {SIGNATURES[name]}: None"))
    ours = inspect.signature(find(name))
    assert [(p.name, p.kind) for p in ours.parameters.values()] == [(p.name, p.kind) for p in wanted.parameters.values()]
    for parameter in wanted.parameters.values():
        if parameter.default is not parameter.empty:
            assert ours.parameters[parameter.name].default == parameter.default
    assert find(name).__doc__


def test_methods_array_namespace_and_to_device():
    x = gradus.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2024.12") is xp
    assert caught(x.__array_namespace__, api_version="1999.1")[0] == "ValueError"
    assert x.to_device("cpu") is x and caught(x.to_device, "cpu", stream=1)[0] == "ValueError"


@pytest.mark.parametrize("a", INTEGERS)
@pytest.mark.parametrize("b", INTEGERS)
def test_integers_promote_to_a_dtype_that_represents_both(a, b):
    signed, bits = [name for name in (a, b) if name[0] == "i"], {name: int(name.lstrip("uint")) for name in (a, b)}
    x, y = xp.ones(2, dtype=getattr(xp, a)), xp.ones((), dtype=getattr(xp, b))
    if len(signed) == 1:
        unsigned = b if signed[0] == a else a
        needed = max(bits[signed[0]], 2 * bits[unsigned])
        if needed > 64:
            assert caught(xp.add, x, y) == ("RuntimeError", f"no integer dtype holds what {gradus_name(a)} and {gradus_name(b)} do")
            return
        expected = f"int{needed}"
    else:
        expected = max((a, b), key=bits.get)
    assert xp.result_type(x, y) == xp.add(x, y).dtype == (x + y.reshape(1)).dtype == getattr(xp, expected)


def gradus_name(name):
    names = {"int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "uint8": "Byte", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}
    return names[name]


@pytest.mark.parametrize("dtype,number,expected", [("bool", 1, "int64"), ("int8", 2, "int8"), ("int8", 2.0, "float32"), ("float64", 1, "float64"), ("float64", 1j, "complex128"), ("uint16", 1j, "complex64")])
def test_python_numbers_promote_within_the_kind_of_the_array(dtype, number, expected):
    assert xp.result_type(xp.ones(2, dtype=getattr(xp, dtype)), number) == getattr(xp, expected)


@pytest.mark.parametrize("function,x1,x2,expected", [
    ("floor_divide", INF, 2.0, INF), ("floor_divide", -INF, 2.0, -INF), ("floor_divide", 3.0, -INF, -0.0), ("floor_divide", 7.0, -2.0, -4.0), ("remainder", -0.0, 2.0, 0.0),
    ("remainder", 0.0, -2.0, -0.0), ("remainder", 5.0, -3.0, -1.0), ("pow", -8.0, 1 / 3, NAN), ("atan2", 0.0, -0.0, math.pi), ("hypot", INF, NAN, INF), ("logaddexp", -INF, -INF, -INF),
    ("copysign", 1.0, -0.0, -1.0), ("maximum", NAN, 1.0, NAN), ("nextafter", 0.0, 1.0, 5e-324),
])
def test_special_values_of_binary_functions(function, x1, x2, expected):
    made = float(getattr(xp, function)(xp.asarray(x1, dtype=xp.float64), xp.asarray(x2, dtype=xp.float64)))
    assert math.isnan(made) and math.isnan(expected) or made == expected and math.copysign(1, made) == math.copysign(1, expected)


@pytest.mark.parametrize("z,expected", [(complex(-0.0, 0.0), 0j), (complex(INF, 0.0), complex(INF, 0.0)), (complex(-INF, INF), complex(-1, 0)), (complex(INF, INF), complex(INF, NAN)),
                                        (complex(NAN, 0.0), complex(NAN, 0.0))])
def test_expm1_of_complex_special_values(z, expected):
    for dtype in (xp.complex64, xp.complex128):
        made = complex(xp.expm1(xp.asarray(z, dtype=dtype)))
        assert str(made) == str(expected)


def test_sum_and_prod_of_integers_have_64_bits():
    for name in INTEGERS:
        made = xp.sum(xp.ones(3, dtype=getattr(xp, name)))
        assert int(made) == 3 and made.dtype == (xp.uint64 if name[0] == "u" else xp.int64)
    x = xp.reshape(xp.arange(24.0), (2, 3, 4))
    for axis in (None, 0, -1, (0, 2), ()):
        for keepdims in (False, True):
            assert xp.prod(x, axis=axis, keepdims=keepdims).shape == xp.sum(x, axis=axis, keepdims=keepdims).shape == xp.max(x, axis=axis, keepdims=keepdims).shape
    assert xp.cumulative_sum(xp.arange(4), include_initial=True).tolist() == [0, 0, 1, 3, 6]
    for name in INTEGERS:
        made = xp.cumulative_prod(xp.ones((2, 0), dtype=getattr(xp, name)), axis=1, include_initial=True)
        assert made.tolist() == [[1], [1]] and made.dtype == (xp.uint64 if name[0] == "u" else xp.int64)
    assert float(xp.std(xp.asarray([1.0, 2.0, 3.0]), correction=1.0)) == 1.0


def test_set_functions_and_sorting():
    x = xp.asarray([[3, 1], [3, 2]])
    every = xp.unique_all(x)
    assert every.values.tolist() == [1, 2, 3] and every.indices.tolist() == [1, 3, 0] and every.counts.tolist() == [1, 1, 2] and every.inverse_indices.tolist() == [[2, 0], [2, 1]]
    assert xp.unique_values(xp.asarray([NAN, NAN])).shape == (2,) and xp.unique_counts(x).counts.tolist() == [1, 1, 2]
    z = xp.asarray([[1j, 1], [1j, complex(NAN, 0)]])
    every = xp.unique_all(z)
    assert str(every.values.tolist()) == str([1j, complex(1, 0), complex(NAN, 0)]) and every.indices.tolist() == [0, 1, 3] and every.inverse_indices.tolist() == [[0, 1], [0, 2]] and every.counts.tolist() == [2, 1, 1]
    assert xp.isin(x, xp.asarray([3, 7], dtype=xp.int8)).tolist() == [[True, False], [True, False]] and xp.isin(3, x, invert=True).tolist() is False
    assert xp.sort(x, axis=0, descending=True).tolist() == [[3, 2], [3, 1]] and xp.argsort(x, axis=1).tolist() == [[1, 0], [1, 0]]
    assert xp.searchsorted(xp.asarray([1, 2, 4]), xp.asarray([2.0, 3.0]), side="right").tolist() == [2, 2]


def test_manipulation_and_creation_functions():
    x = xp.reshape(xp.arange(6), (2, 3))
    assert xp.take(x, xp.asarray([0, -1]), axis=1).tolist() == [[0, 2], [3, 5]] and xp.expand_dims(x, (0, -1)).shape == (1, 2, 3, 1)
    assert xp.concat([x, xp.ones((1,))], axis=None).dtype == xp.float32 and xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert caught(xp.squeeze, x, 0)[0] == "ValueError" and caught(xp.reshape, x.mT, (6,), copy=False)[0] == "ValueError"
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75] and xp.arange(3, 0).shape == (0,)
    assert xp.clip(xp.asarray([1, 200], dtype=xp.uint8), -5, 1000).tolist() == [1, 200]


def test_broadcasting_functions_and_expand_dims():
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3) and caught(xp.broadcast_shapes, (2,), (3,))[0] == "ValueError"
    x, y = xp.ones((2, 1)), xp.ones((3,))
    assert isinstance(xp.broadcast_arrays(x, y), tuple) and isinstance(xp.meshgrid(x[0], y), tuple) and [z.shape for z in xp.broadcast_arrays(x, y)] == [(2, 3)] * 2
    for axes in ((0, 0), (0, -4), (1, -3)):
        assert caught(xp.expand_dims, x, axes)[0] == "ValueError"
    assert caught(xp.expand_dims, x, (0, 4))[0] == "IndexError"


def test_cross_vecdot_and_solve_broadcast():
    a, b = xp.reshape(xp.arange(6.0), (2, 3)), xp.asarray([1.0, 0.0, 2.0])
    assert xp.linalg.cross(a, b).tolist() == [[2, 2, -1], [8, -1, -4]] == (-xp.linalg.cross(b, a)).tolist() and xp.vecdot(a, b).tolist() == [4, 13]
    for function in (xp.vecdot, xp.linalg.vecdot, xp.linalg.cross):
        assert caught(function, a, xp.ones((1,)))[0] == caught(function, a, xp.ones((2, 1)))[0] == "ValueError"
    matrices = xp.reshape(xp.asarray([2.0, 0, 0, 4.0, 1.0, 0, 0, 1.0]), (2, 2, 2))
    assert xp.linalg.solve(matrices, xp.asarray([2.0, 4.0])).tolist() == [[1, 1], [2, 4]]
    assert xp.linalg.solve(matrices[:1, :1, :1], xp.ones((1,))).tolist() == [[0.5]]


@pytest.mark.parametrize("z,expected", [(complex(INF, 2.0), complex(1, 0.0)), (complex(INF, -1.0), complex(1, -0.0)), (complex(-INF, 2.0), complex(-1, 0.0)), (complex(INF, INF), complex(1, 0.0)),
                                        (complex(0.0, 0.0), 0j)])
def test_tanh_of_complex_infinities(z, expected):
    for dtype in (xp.complex64, xp.complex128):
        assert str(complex(xp.tanh(xp.asarray(z, dtype=dtype)))) == str(expected)
    x = xp.asarray([0.5j, 1.0])
    assert xp.tanh(x).tolist() == gradus.tanh(x).tolist() and xp.tanh(x.real).tolist() == gradus.tanh(x.real).tolist()


@pytest.mark.parametrize("x1,x2", [(-4.0, 2.0), (4.0, -2.0), (-0.0, 3.0), (0.0, -INF)])
def test_zeros_of_the_remainder_have_the_sign_of_the_divisor(x1, x2):
    a, b = xp.asarray(x1), xp.asarray(x2)
    c = xp.asarray(x1, copy=True)
    c %= b
    assert math.copysign(1, a % b) == math.copysign(1, c) == math.copysign(1, x2) and float(a % b) == float(c) == 0


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: build/venv/bin/pip install -r tools/requirements-oracle.txt")
    x = gradus.ones(2)
    assert compat.array_namespace(x, 1.0, None) is xp and compat.is_array_api_obj(x) and compat.device(x) == x.device and compat.to_device(x, "cpu") is x and compat.size(x) == 2


def test_namespace_info_isdtype_can_cast_and_finfo():
    info = xp.__array_namespace_info__()
    assert info.dtypes(kind="signed integer") == {"int8": xp.int8, "int16": xp.int16, "int32": xp.int32, "int64": xp.int64} and info.default_dtypes()["integral"] == xp.int64
    assert xp.isdtype(xp.uint8, ("bool", "integral")) and not xp.isdtype(xp.float32, "integral") and caught(xp.isdtype, xp.int8, "numbers")[0] == "ValueError"
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.uint64, xp.int64) and xp.finfo(xp.complex64).dtype == xp.float32 and xp.iinfo(xp.ones(2, dtype=xp.int8)).max == 127
