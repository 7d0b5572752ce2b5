"""out=: every function that makes new tensors writes into those it is given, as the operator's result would be written."""
import re

import pytest

import gradus as torch

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
def test_one_result(call):
    expected = eval(call, NAMES)
    for out in (torch.empty(0, dtype=expected.dtype), torch.empty_like(expected), torch.empty(tuple(reversed(expected.shape)), dtype=expected.dtype).T):
        assert eval(with_out(call), {**NAMES, "out": out}) is out
        assert torch.equal(out, expected) and out.dtype == expected.dtype


@pytest.mark.parametrize("call", SEVERAL)
def test_several_results(call):
    expected = eval(call, NAMES)
    out = tuple(torch.empty(0, dtype=e.dtype) for e in expected)
    given = eval(with_out(call), {**NAMES, "out": out})
    assert type(given) is type(expected)
    assert all(g is o and torch.equal(o, e) for g, o, e in zip(given, out, expected))


def test_an_argument_may_be_written():
    y = x.clone()
    torch.gather(y, 1, i, out=y)
    assert torch.equal(y, torch.gather(x, 1, i))
    torch.cat([y[:1], y[:1]], out=y)
    assert torch.equal(y[0], y[1])


def test_dtypes():
    assert torch.arange(4, out=torch.empty(0)).dtype == torch.float32
    assert torch.zeros(2, out=torch.ones(2, dtype=torch.int8)).tolist() == [0, 0]
    assert torch.matmul(x, x.t(), out=torch.empty(2, 2, dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(RuntimeError, match="cat: result type Float can't be cast to the desired output type Long"):
        torch.cat([x, x], out=torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("call, error, message", [
    ("torch.cat([x, g], out=torch.empty(0))", RuntimeError, "cat: functions with out=... arguments don't support automatic differentiation"),
    ("torch.cat([x], out=g)", RuntimeError, "don't support automatic differentiation"),
    ("torch.cat([x, x], out=torch.zeros(1).expand(4, 3))", RuntimeError, "refers to a single memory location"),
    ("torch.max(x, 1, out=(v,))", TypeError, "1 tensors were given for 2 results"),
    ("torch.sort(x, out=v)", TypeError, "argument 'out' must be tuple of Tensors, not"),
    ("torch.cat([x, x], out=3)", TypeError, "argument 'out' must be Tensor, not int"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        eval(call, {**NAMES, "g": torch.ones(2, 3, requires_grad=True), "v": torch.empty(0)})


def test_nothing_is_written_unless_all_can_be():
    values, indices = torch.full((2,), 9.0), torch.zeros(2)
    indices.requires_grad_(True)
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        torch.max(x, 1, out=(values, indices))
    assert values.tolist() == [9, 9]
    with torch.no_grad():
        torch.max(x, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([3, 4], [0, 1])
