"""Checks that every function that makes new tensors writes its results into the tensors given as out=."""
import re

import pytest

import gradus as torch

pytestmark = pytest.mark.filterwarnings("ignore:.*out tensor")  # test_out_dtypes.py tests these warnings

x = torch.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
i = torch.tensor([[0, 2, 1], [1, 1, 0]])
b = x > 0
NAMES = {"torch": torch, "x": x, "i": i, "b": b}

ONE = """
torch.cat([x, x])|torch.stack([x, x], 1)|torch.hstack([x, x])|torch.gather(x, 1, i)|torch.index_select(x, 1, i[0])|torch.take(x, i)|torch.masked_select(x, b)
torch.nonzero(x)|torch.matmul(x, x.t())|torch.outer(x[0], x[1])|torch.inner(x, x)|torch.kron(x, x)|torch.cross(x, x.flip(0), dim=1)|torch.diag(x[0])
torch.tril(x)|torch.triu(x, 1)|torch.var(x, 1)|torch.std(x)|torch.norm(x, "fro")|torch.median(x)|torch.nanmean(x)|torch.searchsorted(x[0].sort()[0], x)
torch.arange(5)|torch.linspace(0, 1, 5)|torch.zeros(2, 3)|torch.full((2,), 7)|torch.eye(3)|torch.maximum(x, -x)|torch.complex(x, x)|torch.angle(x)
torch.diff(x)|torch.take_along_dim(x, i, 1)|torch.bucketize(x, x[0].sort()[0])|torch.add(x, x)|torch.sum(x, 1)|torch.where(b, x, -x)|torch.max(x, -x)
""".replace("\n", "|").strip("|").split("|")
SEVERAL = """
torch.max(x, 1)|torch.min(x, 0, keepdim=True)|torch.sort(x)|torch.sort(x, dim=0, descending=True)|torch.topk(x, 2)|torch.kthvalue(x, 1)|torch.median(x, 1)
torch.cummax(x, 1)|torch.cummin(x, 0)|torch.aminmax(x)|torch.var_mean(x)
""".replace("\n", "|").strip("|").split("|")


def with_out(call):
    return re.sub(r"\)$", ", out=out)", call)


@pytest.mark.parametrize("call", ONE)
def test_out_of_functions_with_one_result(call):
    expected = eval(call, NAMES)
    for out in (torch.empty(0, dtype=expected.dtype), torch.empty_like(expected), torch.empty(tuple(reversed(expected.shape)), dtype=expected.dtype).permute([*reversed(range(expected.dim()))])):
        assert eval(with_out(call), {**NAMES, "out": out}) is out
        assert torch.equal(out, expected) and out.dtype == expected.dtype


@pytest.mark.parametrize("call", SEVERAL)
def test_out_of_functions_with_several_results(call):
    expected = eval(call, NAMES)
    out = tuple(torch.empty(0, dtype=e.dtype) for e in expected)
    given = eval(with_out(call), {**NAMES, "out": out})
    assert type(given) is type(expected)
    assert all(g is o and torch.equal(o, e) for g, o, e in zip(given, out, expected))


def test_out_may_be_an_argument():
    y = x.clone()
    assert torch.deg2rad(y, out=y) is y
    assert torch.equal(y, torch.deg2rad(x))


def test_results_are_converted_to_the_dtype_of_out():
    assert torch.arange(4, out=torch.empty(0)).dtype == torch.float32
    assert torch.zeros(2, out=torch.ones(2, dtype=torch.int8)).tolist() == [0, 0]
    assert torch.kron(x, x, out=torch.empty(4, 9, dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        torch.cat([x, x], out=torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("call, error, message", [
    ("torch.cat([x, g], out=torch.empty(0))", RuntimeError, "functions with out=... arguments don't support automatic differentiation"),
    ("torch.cat([x], out=g)", RuntimeError, "don't support automatic differentiation"),
    ("torch.cat([x, x], out=torch.zeros(1).expand(4, 3))", RuntimeError, "refers to a single memory location"),
    ("torch.max(x, 1, out=(v,))", TypeError, "1 tensors were given for 2 results"),
    ("torch.sort(x, out=v)", TypeError, "argument 'out' must be tuple of Tensors, not"),
    ("torch.cat([x, x], out=3)", TypeError, "argument 'out' must be Tensor, not int"),
])
def test_invalid_out_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        eval(call, {**NAMES, "g": torch.ones(2, 3, requires_grad=True), "v": torch.empty(0)})


def test_nothing_is_written_if_one_out_tensor_is_refused():
    values, low = torch.full((2,), 9.0), torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        torch.aminmax(x, dim=1, out=(values, low))
    assert values.tolist() == [9, 9]
    indices = torch.zeros(2, dtype=torch.int64)
    torch.max(x, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([3, 4], [0, 1])


FUNCTIONS = {
    "mode": lambda outs: torch.mode(x, 1, out=outs), "vecdot": lambda outs: torch.linalg.vecdot(x, x, out=outs[0]), "msort": lambda outs: torch.msort(x, out=outs[0]),
    "sort": lambda outs: torch.sort(x, 1, out=outs), "max": lambda outs: torch.max(x, 1, out=outs), "median": lambda outs: torch.median(x, 1, out=outs),
    "digamma": lambda outs: torch.digamma(x, out=outs[0]), "gather": lambda outs: torch.gather(x, 1, i, out=outs[0]), "take": lambda outs: torch.take(x, i, out=outs[0]),
}
BAD = {
    "a dtype": lambda: torch.full((2,), 9, dtype=torch.bool), "a device": lambda: torch.empty(2, device="meta"), "a gradient": lambda: torch.full((2,), 9.0, requires_grad=True),
    "expanded": lambda: torch.full((1,), 9.0).expand(2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("where", [0, 1])
def test_nothing_is_written_into_invalid_out_tensors(name, bad, where):
    outs = [torch.full((2,), 9.0), torch.full((2,), 9)]
    outs[where] = BAD[bad]()
    before = [None if out.device.type == "meta" else out.tolist() for out in outs]
    try:
        FUNCTIONS[name](tuple(outs))
    except RuntimeError:
        assert [None if out.device.type == "meta" else out.tolist() for out in outs] == before
        assert all(out.shape == (2,) for out in outs)
    else:
        assert where == 1 and name in ("vecdot", "msort", "digamma", "gather", "take")  # these functions take one out tensor


@pytest.mark.parametrize("name, least", [("flipud", 1), ("fliplr", 2)])
def test_flipud_and_fliplr_refuse_too_few_dimensions(name, least):
    with pytest.raises(RuntimeError, match=f"Input must be >= {least}-d"):
        getattr(torch, name)(torch.zeros((2,) * (least - 1)))


def test_fill_with_a_zero_dimensional_tensor():
    value = torch.tensor(2.0, requires_grad=True)
    y = torch.ones(3).fill_(value)
    y.sum().backward()
    assert (y.tolist(), value.grad.item()) == ([2, 2, 2], 3)
    assert torch.ones(3, dtype=torch.int64).fill_(torch.tensor(4.7)).tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions"):
        torch.ones(3).fill_(torch.ones(1))
    assert torch.cumulative_trapezoid(torch.zeros(0)).tolist() == []
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        torch.nn.functional.one_hot(torch.tensor([0, 1]), num_classes=-2)
    for z in (1e20 + 1j, -1e300j, 1e308 + 1e308j, -1 + 1e-20j, -1e20 + 3j):
        w = torch.log1p(torch.tensor(z, dtype=torch.complex128)).item()
        assert abs(w.real) < 1000 and -3.2 < w.imag < 3.2


@pytest.mark.parametrize("call", """
zeros(2, dtype=torch.float32)|ones(2, dtype=torch.float32)|eye(2, dtype=torch.float32)|full((2,), 1, dtype=torch.float32)|empty(2, dtype=torch.float32)|arange(2, dtype=torch.float32)
linspace(0, 1, 2, dtype=torch.float32)|logspace(0, 1, 2, dtype=torch.float32)|rand(2, dtype=torch.float32)|randn(2, dtype=torch.float32)|randint(0, 2, (2,), dtype=torch.float32)|randperm(2, dtype=torch.float32)
""".replace("\n", "|").strip("|").split("|"))
def test_factories_refuse_a_dtype_that_differs_from_out(call):
    out = torch.full((3,), 7.0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"^dtype Float does not match dtype of out parameter \(Double\)$"):
        eval("torch." + with_out(call), {"torch": torch, "out": out})
    assert out.tolist() == [7, 7, 7]
    same = torch.full((3,), 7.0)
    assert eval("torch." + with_out(call), {"torch": torch, "out": same}) is same


def test_sum_with_dtype_and_out():
    assert torch.sum(x, 1, dtype=torch.float64, out=torch.empty(2, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize("function", ["max", "min", "sort", "topk", "kthvalue", "median", "mode", "cummax", "cummin"])
@pytest.mark.parametrize("dtype, name", [(torch.int32, "Int"), (torch.float32, "Float"), (torch.float64, "Double")])
def test_out_tensors_for_indices_must_be_int64(function, dtype, name):
    values, indices = torch.full((1,), 7.0), torch.full((1,), 7, dtype=dtype)
    in_c = name.lower()
    expected = {"kthvalue": "output indices must be of scalar type Long", "mode": f"expected scalar type 'Long' but got '{name}' for indices output",
                "cummax": f"expected scalar_type Long but found {name}", "cummin": f"expected scalar_type Long but found {name}"}
    with pytest.raises(RuntimeError, match="^" + expected.get(function, f"Expected out tensor to have dtype long int, but got {in_c} instead")):
        getattr(torch, function)(x, 1, out=(values, indices))
    assert values.tolist() == [7] and indices.tolist() == [7]
