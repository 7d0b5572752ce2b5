"""Names of nodes, as they are printed: grad_fn=<MulBackward0>."""
import pytest
from both import gradus, torch

# x: 2 by 2, y: the same, i: indices.
ALIKE = """x + y | x - 2 | x * y | x / y | x.sum() | x.sum(0) | x.sum((0, 1)) | x.mean() | x.mean(1) | x.prod() | x.prod(0) | x.max() | x.max(0)[0] | x.min() |
x.min(1)[0] | x.median() | x.median(0)[0] | x ** 2 | x ** y | x.fmod(2) | x.fmod(y) | x.remainder(2) | x.remainder(y) | torch.lerp(x, y, 0.5) |
torch.lerp(x, y, y) | x.unsqueeze(0).squeeze(0) | x.squeeze() | x.masked_fill(x > 1, 0) | x.masked_fill(x > 1, y[0, 0]) | x.index_fill(0, i, 0) |
x.index_fill(0, i, y[0, 0]) | x.scatter(0, i[None], 1.5) | x.scatter(0, i[None], y) | x.log1p() | x.norm() | torch.linalg.vector_norm(x) | x.clamp(0, 1) |
x.clamp(y, y) | torch.nn.functional.layer_norm(x, (2,)) | torch.nn.functional.nll_loss(x, i) | x.exp() | x.relu() | x.sigmoid() | x.tanh() | x.softmax(0) |
x.log_softmax(1) | x @ y | x.t() | x.transpose(0, 1) | x.view(4) | x.reshape(4) | x[0] | x[:, 0] | x[i] | x.gather(0, i[None]) | torch.cat([x, y]) | x.clone() |
x.expand(3, 2, 2) | x.permute(1, 0) | x.flip(0) | x.cumsum(0) | x.std() | x.var(0) | x.logsumexp(0) | torch.where(x > 1, x, y) | x.abs() | x.sqrt() |
x.neg() | x.unbind()[0] | x.diagonal() | x.index_select(0, i) | x.sort()[0] | x.topk(1)[0] | x.double() | torch.addmm(x, x, y) | torch.nn.functional.elu(x) |
torch.normal(x, 1.0) | torch.normal(x, y) | x.amax(0) | x.tril() | torch.nn.functional.embedding(i, x)"""

# An operator made of others shows the node of the last of them: the name by which it is printed here.
OF_ITS_LAST_PART = {
    "torch.nn.functional.mse_loss(x, y)": "MeanBackward0",
    "torch.nn.functional.smooth_l1_loss(x, y)": "MeanBackward0",
    "torch.nn.functional.huber_loss(x, y)": "MeanBackward0",
    "torch.nn.functional.binary_cross_entropy_with_logits(x, y)": "MeanBackward0",
    "torch.stack([x, y])": "CatBackward0",
    "1 - x": "SubBackward0",
    "2 % x": "RemainderBackward1",
    "x.repeat(2, 1)": "ViewBackward0",
    "x.split(1)[0]": "SplitWithSizesBackward0",
    "x.chunk(2)[0]": "SplitWithSizesBackward0",
    "x.trace()": "SumBackward0",
    "2 ** x": "PowBackward1",
    "x.repeat_interleave(2, 0)": "CloneBackward0",
    "x.square()": "SquareBackward0",
    "torch.nn.functional.glu(x)": "MulBackward0",
    "torch.nn.functional.prelu(x, y[0, :1])": "WhereBackward0",
}


def name_of(torch, expression):
    x = torch.tensor([[0.5, 2.0], [1.5, 3.0]], requires_grad=True)
    y = torch.tensor([[1.0, 0.25], [0.75, 2.0]], requires_grad=True)
    result = eval(expression, {"torch": torch, "x": x, "y": y, "i": torch.tensor([0, 1])})
    node = type(result.grad_fn).__name__
    assert f"grad_fn=<{node}>" in repr(result)
    return node


def found(expressions, expected):
    return {e: (name_of(gradus, e), expected(e)) for e in expressions if name_of(gradus, e) != expected(e)}


@pytest.mark.filterwarnings("ignore")
def test_names_are_those_of_torch():
    expressions = [e.strip() for e in ALIKE.split("|")]
    assert found(expressions, lambda e: name_of(torch, e)) == {}


@pytest.mark.filterwarnings("ignore")
def test_names_of_operators_made_of_others():
    assert found(OF_ITS_LAST_PART, OF_ITS_LAST_PART.get) == {}
    alike = [e for e in OF_ITS_LAST_PART if name_of(torch, e) == name_of(gradus, e)]
    assert alike == [], "these belong to the others now"
