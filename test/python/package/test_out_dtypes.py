"""Tests out= with every dtype and three shapes, for every function that has out=. Gradus accepts, refuses or warns about an out tensor exactly where
PyTorch does, with PyTorch's texts."""
import re
import warnings

import pytest

import gradus
import operator_calls
from oracle import torch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]

# Functions for which Gradus and PyTorch accept different dtypes of out=. PyTorch converts to the dtype of out=, and fails if it has no kernel for
# that dtype (docs/differences.md).
LOSES = {"sum", "prod", "mean", "nansum", "nanmean", "logsumexp", "cumsum", "cumprod", "var", "std", "linspace"}
# Functions whose error texts are not compared, because PyTorch's text comes from an internal function or an internal check.
WORDS = {"geqrf", "householder_product", "orgqr", "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "solve_triangular", "multigammaln", "mvlgamma", "max", "min", "mv", "matmul", "inner", "median", "nanmedian", "searchsorted", "bucketize", "heaviside", "diag", "mean", "logsumexp", "abs", "absolute", "lerp", "ihfftn", "ihfft2", "lstsq", "narrow_copy", "matrix_power"}
# Functions for which PyTorch chooses an implementation by shapes and dtypes. Its implementations accept different dtypes of out=, and some warn.
SEVERAL_WAYS = {"diff", "ldexp", "matmul", "inner", "lerp", "abs", "absolute", "ifft", "ihfft", "ihfftn", "ihfft2", "lstsq", "mode", "narrow_copy", "addbmm"}


def functions():
    """Returns {name: (module, operators)} of the functions that have out= in Gradus and in PyTorch."""
    found = {}
    for (home, name), function in operator_calls.functions(operator_calls.OPERATORS).items():
        operators = [s.operator for s in function.signatures if any(p.name == "out" for p in s.parameters)]
        if home != "method" and operators and not name.startswith("_"):
            found[name] = (home, operators)
    return found


FUNCTIONS = functions()


def to_torch(value):
    if isinstance(value, gradus.Tensor):
        return torch.tensor(value.tolist(), dtype=getattr(torch, str(value.dtype).split(".")[1])).reshape(tuple(value.shape))
    if isinstance(value, list):
        return [to_torch(item) for item in value]
    return getattr(torch, str(value).split(".")[1]) if isinstance(value, gradus.dtype) else value


def calls(operator):
    """Yields {name: value} of the sample arguments that the schema gives for an operator, with float32, int64 and complex64 tensors."""
    for text in operator_calls.sample_texts(operator):
        for dtype in ("float32", "int64", "complex64"):
            yield operator_calls.arguments(operator, text, getattr(gradus, dtype))


def outs(module, results, where, dtype, kind):
    """Returns out tensors for the results of a call. The tensor for result number `where` has the given dtype. As `kind` says, all
    tensors are empty, fit the results, or are larger."""
    def out(i, result):
        shape = {"empty": (0,), "fits": tuple(result.shape), "larger": (*result.shape, 2)}[kind]
        return module.zeros(shape, dtype=getattr(module, dtype if i == where else str(result.dtype).split(".")[1]))

    return [out(i, result) for i, result in enumerate(results)]


def resized(seen):
    """Returns the first 40 characters of each warning about the size of out=. The sizes come later in the text and are not compared, because some
    functions of PyTorch name sizes of intermediate results."""
    return {text[:40] for text in (str(one.message) for one in seen) if "out tensor" in text}


def without_name(text):
    return re.sub(r"^([a-z_0-9]+: )+", "", text.split("\n")[0])


def outcome(function, operator, values, given):
    """Calls the function with the out tensors `given`. Returns what the call returned or raised, and the elements of these tensors after the call."""
    before = [out.tolist() for out in given]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            operator_calls.call(function, operator, values, out=given[0] if len(given) == 1 else tuple(given))
        except Exception as error:
            assert isinstance(given[0], torch.Tensor) or [out.tolist() for out in given] == before
            return "raises", type(error).__name__, without_name(str(error))
    return "gives", [tuple(out.shape) for out in given], resized(seen)


def same(name, ours, theirs):
    if theirs[0] == "gives":
        return ours == theirs or name in LOSES and ours[0] == "raises" or name in SEVERAL_WAYS
    if name in LOSES:
        return ours[0] == "gives" or ours[1] in (theirs[1], "RuntimeError")
    return name in SEVERAL_WAYS or ours == theirs or name in WORDS and ours[:2] == theirs[:2] or "step must be nonzero" in theirs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_of_every_dtype_and_shape_behaves_as_in_pytorch(name):
    home, operators = FUNCTIONS[name]
    ours, theirs = getattr(operator_calls.HOMES[home], name), getattr({"function": torch, "linalg": torch.linalg, "special": torch.special, "fft": torch.fft, "windows": torch.signal.windows}.get(home, torch._C._nn), name, None)
    for operator in operators:
        for values in calls(operator):
            given = {key: to_torch(value) for key, value in values.items()}
            try:
                results = operator_calls.call(theirs, operator, given)
                operator_calls.call(ours, operator, values)
            except Exception:
                continue
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            for where in range(len(results)):
                for dtype in DTYPES:
                    for kind in ("empty", "fits", "larger"):
                        expected = outcome(theirs, operator, given, outs(torch, results, where, dtype, kind))
                        if expected[:2] == ("raises", "TypeError"):
                            break  # PyTorch has no out= for this call
                        found = outcome(ours, operator, values, outs(gradus, results, where, dtype, kind))
                        assert same(name, found, expected), (values, dtype, kind, found, expected)


def test_a_resize_warning_turned_into_an_error_leaves_out_unchanged():
    x, out = gradus.ones(2), gradus.zeros(3)
    for call in (lambda: gradus.add(x, x, out=out), lambda: gradus.cat([x], out=out), lambda: gradus.sort(x, out=(gradus.zeros(2), out.long())),
                 lambda: gradus.arange(2.0, out=out), lambda: gradus.sum(x, out=out)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="resized"):
                call()
        assert out.tolist() == [0, 0, 0]


IN_PYTHON = """
torch.polygamma(1, x, out=o)|torch.logit(x, out=o)|torch.digamma(x, out=o)|torch.addr(x, x[0, :2], x[1], out=o)|torch.msort(x, out=o)|torch.quantile(x, 0.5, dim=1, out=o)
torch.nanquantile(x, 0.5, dim=1, out=o)|torch.linalg.cross(x, x, out=o)|torch.linalg.vector_norm(x, out=o)|torch.linalg.vecdot(x, x, out=o)|torch.tensordot(x, x, 2, out=o)
torch.mode(x, 1, out=(o, l))|torch.mode(x, 1, out=(v, o))|torch.norm(x, 'fro', out=o)|torch.nonzero(x, out=o)|torch.special.round(x, out=o)|torch.special.expit(x, out=o)
torch.nn.functional.normalize(x, out=o)
""".replace("\n", "|").strip("|").split("|")


@pytest.mark.parametrize("call", IN_PYTHON)
def test_out_of_functions_written_in_python(call):
    for dtype in DTYPES:
        for size in (0, 7):
            results = []
            for module in (gradus, torch):
                names = {"torch": module, "x": module.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]]), "o": module.zeros(size, dtype=getattr(module, dtype)),
                         "l": module.zeros(0, dtype=module.int64), "v": module.zeros(0)}
                with warnings.catch_warnings(record=True) as seen:
                    warnings.simplefilter("always")
                    try:
                        eval(call, names)
                        results.append((tuple(names["o"].shape), resized(seen)))
                    except Exception as error:
                        results.append((type(error).__name__, without_name(str(error))))
            assert results[0] == results[1], dtype


@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "mean", "nanmean", "var", "std", "logsumexp", "cumsum", "cumprod"])
def test_out_refuses_lossy_conversions(name):
    """Floating-point results are refused if out= has an integer dtype. If out= has a wider dtype, they are computed in that dtype."""
    x, function = gradus.tensor([1.5, 2.7]), getattr(gradus, name)
    for dtype in (gradus.int16, gradus.bool):
        out = gradus.zeros(2 if name.startswith("cum") else (), dtype=dtype)
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type"):
            function(x, 0, out=out)
        assert not out.any()
    for dtype, wide in ((gradus.float32, gradus.float64), (gradus.float16, gradus.float32), (gradus.complex64, gradus.complex128)):
        if dtype.is_complex and name in ("nansum", "nanmean", "var", "std", "logsumexp"):
            continue
        out = gradus.zeros(2 if name.startswith("cum") else (), dtype=wide)
        found, wanted = function(x.to(dtype), 0, out=out), function(x.to(dtype).to(wide), 0)
        # logsumexp computes exp in the dtype of the input (16-bit dtypes in float32), so `found` is not exact. Its error must be less than
        # half the error of a result rounded to the dtype of the input.
        if name == "logsumexp":
            assert (found - wanted).abs() < (found.to(dtype) - wanted).abs() / 2
        else:
            assert gradus.equal(found, wanted)
    out = gradus.zeros(2 if name.startswith("cum") else (), dtype=gradus.complex128)
    assert gradus.allclose(function(x, 0, out=out).real, function(x.double(), 0), rtol=1e-7 * (name == "logsumexp"), atol=0) and not out.imag.any()
    out = gradus.zeros(2 if name.startswith("cum") else (), dtype=gradus.bfloat16)
    assert gradus.equal(function(x, 0, out=out), function(x, 0).bfloat16())


RESIZED = """
m.add(x, 1, out=o)|m.exp(x, out=o)|m.where(x > 0, x, x * 2, out=o)|m.mul(x, x[..., :1], out=o)|m.lerp(x, x, x, out=o)|m.sum(x, 0, out=o)|m.cumsum(x, 0, out=o)|m.matmul(x, x.transpose(1, 2), out=o)
m.float_power(x.abs(), 2, out=o)|m.polygamma(1, x + 3, out=o)|m.diff(x, out=o)|m.msort(x, out=o)|m.sort(x, 0, out=(o, i))|m.frexp(x, out=(o, i.int()))|m.add(last, 1, out=o)|m.tril(x, out=o)|m.cat([x, x], out=o)
m.linalg.inv(q, out=o)|m.linalg.cholesky(q @ q.mT, out=o)|m.linalg.solve(q, q, out=o)|m.linalg.lu_factor(q, out=(o, i.int()))|m.geqrf(q, out=(o, o.clone()))|m.linalg.qr(q, out=(o, o.clone()))|m.linalg.eigh(q @ q.mT, out=(o.clone(), o))
""".replace("\n", "|").strip("|").split("|")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", RESIZED)
def test_a_resized_out_has_the_strides_of_the_result(call):
    found = []
    for m in (gradus, torch):
        x = m.arange(24, dtype=m.float64).reshape(2, 3, 4).sin().transpose(0, 2)
        names = {"m": m, "x": x, "q": m.arange(2, 5, dtype=m.float64).diag() + 0.1, "last": m.ones(2, 3, 4, 5, dtype=m.float64).to(memory_format=m.channels_last),
                 "o": m.empty(0, dtype=m.float64), "i": m.empty(0, dtype=m.int64)}
        eval(call, names)
        found.append((tuple(names["o"].shape), names["o"].stride(), names["o"].tolist()))
    assert found[0][:2] == found[1][:2] and gradus.allclose(gradus.tensor(found[0][2]).abs(), gradus.tensor(found[1][2]).abs())
