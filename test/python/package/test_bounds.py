"""Calls operators with each of NUMBERS as one argument, e.g. `dim`. The numbers lie on both sides of the argument's limits. Checks that results have
PyTorch's values, dtypes and sizes, and that errors have PyTorch's classes."""
import warnings

import pytest

import gradus
from oracle import needs_torch, torch

NUMBERS = (-(2**63), -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 2**63 - 1)
BEYOND_MEMORY = """
torch.eye({k})|torch.eye(2, {k})|torch.arange({k})|torch.arange(0, 3, {k})|torch.linspace(0, 1, {k})|torch.logspace(0, 1, {k})|torch.zeros({k})|torch.full((2, {k}), 1)
torch.tril_indices({k}, 3)|torch.tril_indices(3, 3, {k})|torch.triu_indices(3, {k})|torch.combinations(x[0], {k})|torch.randperm({k}).numel()|torch.cov(x, correction={k})
x.chunk({k}, 1)|x.tensor_split({k}, 1)|x.repeat_interleave({k})|x.repeat_interleave({k}, dim=1)|x.repeat({k}, 2)|x.expand({k}, 2, 4)|x.rot90({k})|x.diff({k})|x.round(decimals={k})
F.one_hot(torch.tensor([0, 2]), {k})|F.one_hot(torch.tensor([{k}]))|torch.bincount(torch.tensor([1, 3]), minlength={k})|torch.bincount(torch.tensor([{k}]))
F.pad(x, ({k}, 1))|F.pad(x, (0, {k}), mode="reflect")|F.pad(x, ({k}, 0), mode="circular")|F.pad(x, ({k}, {k}), mode="replicate")|F.pad(x, (0, 0, {k}, 1))
torch.multinomial(x.abs() + 1, {k}).shape|x.roll({k})|x.roll({k}, 1)|F.pixel_shuffle(x[None, None], {k})
""".replace("\n", "|").strip("|").split("|")
CALLS = """
x.kthvalue({k})|x.kthvalue({k}, dim=0)|x.topk({k})|x.topk({k}, dim=0, largest=False)|x.narrow(1, {k}, 2)|x.narrow(1, 1, {k})|x.select(1, {k})|x.select({k}, 0)|x[{k}]|x[:, {k}]
x.unflatten(1, ({k}, -1))|x.unflatten(1, (-1, {k}))|x.unflatten({k}, (1, -1))|x.view({k}, -1)|x.reshape(-1, {k})|x.unfold(1, {k}, 1)|x.unfold(1, 2, {k})
x.diagonal({k})|x.diag({k})|torch.diag(x[0], {k})|x.tril({k})|x.triu({k})|torch.diag_embed(x, {k})|x.split({k}, 1)|x.tensor_split(({k}, 2), 1)
x.movedim(0, {k})|x.unsqueeze({k})|x.squeeze({k})|x.flatten({k})|x.flatten(0, {k})|x.transpose(0, {k})|x.permute({k}, 0)|x.flip({k})|x.unbind({k})|x.diff(dim={k})
x.sum({k})|x.mean({k})|x.prod({k})|x.amax({k})|x.argmax({k})|x.cumsum({k})|x.logsumexp({k})|x.softmax({k})|x.var({k})|x.norm(dim={k})|x.sort({k})|x.median({k})|x.mode({k})
x.gather(1, torch.tensor([[{k}], [0]]))|x.take(torch.tensor([{k}]))|x.index_fill(1, torch.tensor([{k}]), 9)|x.scatter(1, torch.tensor([[{k}]]), 9)|x[torch.tensor([{k}])]
x.index_add(1, torch.tensor([{k}]), x[:, :1])|x.index_copy(1, torch.tensor([{k}]), x[:, :1])|F.embedding(torch.tensor([{k}]), x)|F.embedding(torch.tensor([0]), x, padding_idx={k})
torch.cat([x, x], {k})|torch.stack([x, x], {k})|torch.hstack([x, x[:, :{k}]])|torch.as_strided(x, (2,), ({k},))|torch.as_strided(x, ({k},), (1,))|torch.as_strided(x, (2,), (1,), {k})
torch.tensordot(x, x.t(), {k})|F.cross_entropy(x, torch.tensor([0, {k}]))|F.nll_loss(x, torch.tensor([1, {k}]), ignore_index={k})|F.huber_loss(x, x + 1, delta={k})
F.smooth_l1_loss(x, x + 1, beta={k})|F.dropout(x, {k}).shape|F.gumbel_softmax(x, dim={k}).shape|F.layer_norm(x, ({k},))|F.normalize(x, dim={k})|F.glu(x, {k})
F.cosine_similarity(x, x + 1, dim={k})|torch.cdist(x, x, p={k})|torch.trapezoid(x, dim={k})|torch.bucketize({k}, x[0])|x.bernoulli({k}).shape
torch.cat([torch.tensor([], dtype=torch.int64), x[0, :{k}]])|torch.cat([torch.tensor([], dtype=torch.float64), x[0, :{k}]])|x.quantile({k})
torch.unique(torch.tensor([{k}, float("nan"), 1, float("nan"), {k}]), return_counts=True)|torch.unique_consecutive(torch.tensor([1, float("nan"), float("nan"), {k}]))
""".replace("\n", "|").strip("|").split("|")
# Calls that Gradus accepts. PyTorch refuses padding that removes a row completely, except with mode="constant".
OTHERWISE = {'F.pad(x, (0, -4), mode="reflect")', 'F.pad(x, (-2, -2), mode="replicate")'}


def comparable(value):
    if hasattr(value, "tolist"):
        return str(value.dtype).split(".")[1], tuple(value.shape), str(value.double().round(decimals=4).add(0.0).tolist())
    return [comparable(item) for item in value] if isinstance(value, (tuple, list)) else value


def outcome(module, expression):
    """Returns the value of `expression` in a form that can be compared, or the class of the error that it raises."""
    names = {"torch": module, "F": module.nn.functional, "x": module.tensor([[3.0, 1, 2, 2], [0, 5, 4, 1]])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return comparable(eval(expression, names))
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("call", CALLS + BEYOND_MEMORY)
def test_arguments_at_and_beyond_their_bounds_behave_as_in_pytorch(call):
    needs_torch()
    for k in NUMBERS[1:-1] if call in BEYOND_MEMORY else NUMBERS:
        expression = call.replace("{k}", str(k))
        assert outcome(gradus, expression) == outcome(torch, expression) or expression in OTHERWISE, expression
