"""Tests torch.ops.aten, which offers PyTorch's operators by their ATen names, with overloads."""
import pytest

from nn_programs import gradus
from oracle import torch

CALLS = [
    "a.add.Tensor(x, 2)", "a.add(x, x, alpha=2)", "a.mul_.Tensor(x, x)", "a.sum.dim_IntList(x, [1], True)", "a.sum.default(x)", "a.addmm.default(x[:, 0], x, x.T)",
    "a.slice.Tensor(x, 1, 0, 3, 2)", "a.slice.Tensor(x, 0, -1)", "a.t.default(x)", "a.view.default(x, [-1])", "a.max.dim(x, 1)[0]", "a.relu.default(x - 3)",
    "a.add.out(x, x, out=x)",
]


@pytest.mark.parametrize("call", CALLS)
def test_aten_operators_agree_with_pytorch(call):
    def run(t):
        return eval(call, {"a": t.ops.aten, "x": t.arange(12.0).reshape(3, 4)[:, :3].contiguous()}).tolist()

    assert run(gradus) == run(torch)


@pytest.mark.parametrize("n", [2, 3])
def test_max_pool_with_indices_backward(n):
    def run(t):
        t.manual_seed(0)
        x = t.randn(2, 3, *(5, 6, 4)[:n], requires_grad=True)
        output, indices = getattr(t.nn.functional, f"max_pool{n}d_with_indices")(x, 2, 1)
        grad = t.rand_like(output).requires_grad_()
        made = getattr(t.ops.aten, f"max_pool{n}d_with_indices_backward").default(grad, x, [2] * n, [1] * n, [0] * n, [1] * n, False, indices)
        made.square().sum().backward()
        return made.tolist(), grad.grad.tolist(), x.grad.tolist()

    for ours, theirs in zip(run(gradus), run(torch)):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_unknown_aten_operators_are_attribute_errors():
    for t in (gradus, torch):
        with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
            t.ops.aten.nothing
        with pytest.raises(AttributeError):
            t.ops.aten.add._nothing
    assert repr(gradus.ops.aten.add) == "<OpOverloadPacket(op='aten.add')>" and gradus.ops.aten.add is gradus.ops.aten.add
