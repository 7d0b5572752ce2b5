"""Checks that values, shapes and errors of jagged nested tensors are PyTorch's. Gradients are compared with finite differences, because PyTorch does
not have all of them."""
import copy
import functools
import pickle
import re

import pytest

import gradus
from both import caught, submodule
from oracle import torch

SIZES = {"nt": (5, 4), "square": (5, 3, 4), "other": (5, 4)}


def numbers(module, shape, start=1.0):
    count = gradus.Size(shape).numel()
    return (module.arange(count, dtype=module.float64) * 0.37 + start + 0.1).sin().reshape(shape)


def scope(module, leaves=None):
    """Returns {name: value} for the names in the expressions of the tests. Some values are jagged nested tensors."""
    jagged = functools.partial(module.nested.nested_tensor_from_jagged, min_seqlen=2, max_seqlen=3)
    offsets = module.tensor([0, 2, 5])
    leaves = dict(zip(SIZES, leaves or [numbers(module, shape, i) for i, shape in enumerate(SIZES.values())]))
    names = {"torch": module, "F": module.nn.functional, "leaves": leaves, "offsets": offsets, "x": lambda *shape: numbers(module, shape, 7),
             "holes": jagged(numbers(module, (10, 4)), module.tensor([0, 6, 9]), module.tensor([2, 3])),
             "second": jagged(leaves["other"], module.tensor([0, 2, 5]))}
    names.update((name, jagged(leaf, offsets)) for name, leaf in leaves.items())
    names["heads"] = names["square"].transpose(1, 2)
    names["indices"] = jagged(module.tensor([3, 1, 2, 0, 3]), offsets)
    return names


def as_lists(module, t):
    """Returns the values and sizes of a tensor as lists. Symbolic sizes such as j1 lose their number, which differs between the libraries."""
    if isinstance(t, (tuple, list)):
        return [as_lists(module, item) for item in t]
    if not isinstance(t, module.Tensor):
        return re.sub(r"j\d+", "j", str(t))
    shape = re.sub(r"j\d+", "j", str(t.shape))
    if not t.is_nested:
        return shape, t.detach().double().reshape(-1).tolist()
    return shape, str(t.dtype), [sequence.detach().double().reshape(-1).tolist() for sequence in t.unbind()]


def close(ours, theirs):
    if isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == pytest.approx(theirs, rel=1e-9, abs=1e-12, nan_ok=True) if isinstance(theirs, float) else ours == theirs


EQUAL = """
nt | nt.values() | nt.offsets() | nt.lengths() | holes.lengths() | nt.unbind() | holes.unbind() | nt.size() | nt.size(0) | nt.size(-1) | nt.dim() | nt.ndim | nt.stride() | nt.numel()
holes.numel() | len(nt) | nt.is_nested | nt.layout | nt.is_contiguous() | holes.is_contiguous() | nt.dtype | nt.device | nt.requires_grad | nt.is_leaf | square.stride()
nt.to_padded_tensor(0.5) | torch.nested.to_padded_tensor(nt, 0.0) | nt.to_padded_tensor(-1.0, output_size=(2, 6, 4)) | nt.to_padded_tensor(0.0, output_size=(2, 2, 4))
heads.to_padded_tensor(0.0) | indices.to_padded_tensor(-1) | (nt > 0).to_padded_tensor(False)
-nt | nt.abs() | torch.exp(nt) | nt.sigmoid() | F.relu(nt) | F.gelu(nt) | F.silu(nt) | nt.clamp(0, 0.5) | nt.pow(2) | nt.float() | nt.to(torch.float32) | nt.to(torch.int64)
nt.clone() | nt.detach() | holes * 2 | torch.zeros_like(nt) | torch.ones_like(nt) | torch.full_like(nt, 2.0) | nt.logical_not() | nt.isnan() | heads * 2
nt + nt | nt * nt | nt / 3 | 1 + nt | 2 - nt | 2 / (nt + 3) | nt ** 2 | nt == nt | nt > 0 | 0 < nt | torch.maximum(nt, -nt) | nt % 0.3 | nt - x(4)
nt + x(4) | x(4) - nt | nt * x(1, 4) | nt * x(1, 1, 4) | nt + x(2, 1, 4) | x(2, 1, 1) - nt | nt + x(2, 3, 4) | nt + x(2, 3, 1) | nt * x() | nt + x(1) | square * x(3, 1) | square + x(2, 1, 3, 1)
torch.where(nt > 0, nt, 0.0) | torch.where(nt > 0, nt, -nt) | nt.masked_fill(nt > 0, 2.0) | torch.lerp(nt, nt * 2, 0.25) | nt.detach().clone().add_(nt.detach()) | nt.detach().clone().zero_()
nt.detach().clone().fill_(2.0) | nt.detach().clone().copy_(nt.detach())
nt.sum() | nt.sum(dtype=torch.float32) | nt.sum(1) | nt.sum(1, keepdim=True) | nt.sum(2) | nt.sum(-1, keepdim=True) | nt.sum((0, 1)) | nt.sum((0, 1), keepdim=True) | nt.sum((0, 1, 2))
nt.mean() | nt.mean(1) | nt.mean(1, keepdim=True) | nt.mean(-1) | nt.mean((0, 1)) | square.sum(1) | square.mean(1) | square.sum((2, 3)) | heads.sum(2) | heads.mean(2) | heads.sum(1) | heads.sum(-1)
nt.amax(1) | nt.amin(1) | nt.max(1) | nt.max(-1) | nt.min(1) | nt.max() | nt.min() | nt.argmax(1) | nt.argmin(2) | nt.prod(1) | nt.prod(-1) | (nt > 0).any(1) | (nt > 0).all(1) | (nt > 0).any()
(nt > 0).all() | indices.amax(1) | indices.amin(1) | indices.sum(1) | indices.max(1)
torch.softmax(nt, 1) | nt.softmax(-1) | F.softmax(nt, 2) | F.log_softmax(nt, -1) | square.softmax(1)
F.layer_norm(nt, (4,)) | F.layer_norm(nt, (4,), x(4), x(4)) | F.layer_norm(square, (3, 4)) | F.rms_norm(nt, (4,)) | F.dropout(nt, training=False) | F.linear(nt, x(7, 4), x(7)) | F.linear(square, x(2, 4))
F.embedding(indices, x(4, 3)) | nt @ x(4, 6) | torch.matmul(nt, x(2, 4, 3)) | torch.bmm(nt, x(2, 4, 3)) | square @ x(4, 2) | nt.transpose(1, 2) @ nt | nt.transpose(1, 2) @ (nt * 2)
F.scaled_dot_product_attention(heads, heads, heads) | F.scaled_dot_product_attention(heads, heads * 2, heads * 3, scale=0.5) | F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(-2)
nt.transpose(1, 2) | nt.mT | square.transpose(-1, -2) | heads.transpose(1, 2) | square.permute(0, 2, 1, 3) | square.permute(0, 3, 2, 1) | nt.unsqueeze(1) | nt.unsqueeze(2) | nt.unsqueeze(-1)
nt.unsqueeze(-1).squeeze(-1) | nt.view(2, -1, 2, 2) | nt.view(*nt.shape[:2], 2, 2) | nt.reshape(2, -1, 2, 2) | nt.unflatten(-1, [2, 2]) | square.flatten(-2) | nt.unsqueeze(-1).expand(*nt.shape, 3)
torch.cat([nt, nt * 2], -1) | torch.cat([square, square], 2) | torch.stack([nt, nt * 2], -1) | torch.stack([nt, nt], 2) | nt.chunk(2, -1) | nt.chunk(2, 0) | nt.split(2, -1) | nt.split([1, 3], -1)
nt[0] | nt[1, 2] | nt[0, 1:] | nt[-1, :, 2] | nt[..., 0] | nt[..., :2] | square[..., 0, :] | nt.select(0, 1) | nt.select(-1, 2) | nt.narrow(-1, 1, 2) | holes.contiguous() | nt.transpose(1, 2).contiguous()
torch.nested.nested_tensor([x(2, 4), x(3, 4)], layout=torch.jagged) | torch.nested.nested_tensor([x(2, 3), x(2, 4)], layout=torch.jagged) | torch.nested.nested_tensor([x(2, 3), x(2, 3)], layout=torch.jagged)
torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged) | torch.nested.nested_tensor([x(1), x(0), x(2)], dtype=torch.float32, layout=torch.jagged)
torch.nested.as_nested_tensor([leaves["nt"], leaves["other"][:2]], layout=torch.jagged) | torch.nested.as_nested_tensor(leaves["square"], layout=torch.jagged) | torch.nested.as_nested_tensor(nt, layout=torch.jagged)
torch.nested.as_nested_tensor((leaves["nt"], leaves["other"]), dtype=torch.float32, layout=torch.jagged) | torch.nested.nested_tensor_from_jagged(leaves["nt"], lengths=torch.tensor([4, 1]))
torch.nested.nested_tensor_from_jagged(leaves["nt"].T, offsets, jagged_dim=2) | torch.nested.nested_tensor_from_jagged(leaves["nt"], offsets, min_seqlen=2, max_seqlen=3).to_padded_tensor(0.0)
torch.nested.narrow(leaves["square"], 1, torch.tensor([0, 1, 0, 2, 0]), torch.tensor([1, 2, 3, 1, 2]), layout=torch.jagged) | torch.nested.narrow(leaves["square"], 1, 1, 2, layout=torch.jagged)
torch.nested.masked_select(leaves["nt"], leaves["nt"] > 0) | torch.nested.masked_select(leaves["nt"], torch.tensor([False]))
nt.movedim(1, 2) | torch.moveaxis(square, -1, -2) | square.movedim((1, 2), (2, 3)) | square.movedim(3, 1) | nt.view_as(nt + 1) | nt.reshape_as(nt) | nt.unsqueeze(-1).expand_as(nt.unsqueeze(-1) * x(3))
torch.special.psi(nt) | torch.special.expit(nt) | torch.special.entr(nt.abs()) | torch.special.ndtr(nt) | torch.special.xlog1py(nt, nt) | torch.special.log_softmax(nt, -1) | torch.linalg.matmul(nt, x(4, 6))
nt.is_same_size(nt * 2) | nt.is_same_size(second) | nt.diff() | torch.diff(square, 2, 2) | torch.diff(nt, prepend=nt) | nt.diff(append=nt[..., :1])
nt.shape[1] == (nt + 1).shape[1] | nt.shape[1] == second.shape[1] | nt.shape[1] == 3 | nt.shape == (nt * 2).shape | nt.shape == second.shape | (nt.transpose(1, 2) + nt.transpose(1, 2)).shape
isinstance(nt.shape[1], torch.SymInt) | nt.shape[1] > 1 | nt.shape[1] >= 2 | 1 < nt.shape[1] | nt.shape[1] < 2 | nt.shape[1] <= 1 | nt.shape[1] * 2 >= nt.shape[1] | nt.shape[1] > nt.shape[1] * 2
hash(nt.shape[1]) == hash(nt.size(1)) | nt.shape[1] * 3 | nt.shape.__class__ is torch.Size
"""
EXPRESSIONS = [e.strip() for e in re.split(r" \| |\n", EQUAL.strip())]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_functions_of_nested_tensors_agree_with_pytorch(expression):
    ours, theirs = (as_lists(module, eval(expression, scope(module))) for module in (gradus, torch))
    assert close(ours, theirs), f"gradus: {ours}\ntorch:  {theirs}"


@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if "float" not in e and e != "nt % 0.3"] + ["heads.softmax(2)", "nt.log_softmax(1)"])
def test_gradcheck_of_functions_of_nested_tensors(expression):
    def function(*leaves):
        made = eval(expression, scope(gradus, leaves))
        return tuple(t.values() if t.is_nested else t for t in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(t, gradus.Tensor) and t.requires_grad)

    leaves = [numbers(gradus, shape, i).requires_grad_() for i, shape in enumerate(SIZES.values())]
    assert not function(*leaves) or gradus.autograd.gradcheck(function, leaves)


ERRORS = """
nt + second | nt + x(3, 4) | nt + x(1, 3, 4) | x(5, 4) * nt | nt * x(1, 1, 1, 4) | nt.sum(0) | nt.mean(0) | nt.sum((1, 2)) | nt.sum((0, 2)) | holes.sum(1) | nt.softmax(0) | holes.softmax(1)
nt.transpose(0, 1) | square.permute(1, 2, 0, 3) | square.permute(0, 1) | square.permute(0, 1, 1, 2) | nt.T | nt.unsqueeze(0) | nt.squeeze(1) | nt.view(8, -1) | nt.view(-1, 4) | square.flatten(1, 2)
nt.flatten() | torch.cat([nt, nt], 1) | torch.cat([nt, nt], 0) | torch.stack([nt, nt], 0) | torch.stack([nt, second], -1) | torch.stack([nt, x(2, 3, 4)], -1) | nt.chunk(2, 1) | nt.split(1, 0) | nt.split(1, 1)
nt.unbind(1) | nt.select(1, 0) | nt.narrow(1, 0, 2) | nt[0:1] | nt[None] | holes.to_padded_tensor(0.0) | nt @ x(4) | nt @ nt.transpose(1, 2) | nt.transpose(1, 2) @ second | nt.tolist() | nt.numpy()
F.scaled_dot_product_attention(heads, heads, heads, attn_mask=x(5, 5)) | F.scaled_dot_product_attention(heads, x(2, 3, 5, 4), x(2, 3, 5, 4))
torch.nested.nested_tensor([], layout=torch.jagged) | torch.nested.nested_tensor([1, 2], layout=torch.jagged) | torch.nested.nested_tensor([x(2), x(2, 3)], layout=torch.jagged)
torch.nested.nested_tensor([x(2), x(2).float()], layout=torch.jagged) | torch.nested.nested_tensor([x(2, 3), x(3, 4)], layout=torch.jagged) | torch.nested.nested_tensor([x(2)], layout="strided")
torch.nested.as_nested_tensor(x(2), layout=torch.jagged) | torch.nested.as_nested_tensor(nt) | torch.nested.as_nested_tensor([[1.0]], layout=torch.jagged)
torch.nested.nested_tensor_from_jagged(x(5, 4)) | torch.nested.nested_tensor_from_jagged(x(5, 4), offsets, jagged_dim=0) | torch.nested.nested_tensor_from_jagged(x(5, 4), offsets[None])
torch.nested.nested_tensor_from_jagged(x(5, 4), offsets, offsets) | torch.nested.narrow(x(2, 5), 0, 0, 2, layout=torch.jagged) | torch.nested.narrow(x(2, 5), 1, 0.5, 2, layout=torch.jagged)
nt.movedim(0, 1) | torch.moveaxis(nt, (1, 2), (0, 1)) | nt.view_as(second) | nt.view_as(x(5, 4)) | nt.is_same_size(x(5, 4)) | x(5, 4).is_same_size(nt)
torch.nested.narrow(x(2, 5), 1, torch.tensor([1, 2, 3]), 2, layout=torch.jagged) | nt.shape[1] > 2 | nt.shape[1] >= 3 | nt.shape[1] < 5 | nt.shape[1] >= second.shape[1] | nt.shape[1] < second.shape[1]
"""


@pytest.mark.parametrize("expression", [e.strip() for e in re.split(r" \| |\n", ERRORS.strip())])
def test_errors_are_those_of_pytorch(expression):
    ours, theirs = (caught(eval, expression, scope(module)) for module in (gradus, torch))
    ours, theirs = ((name, re.sub(r"j\d+", "j", text)) for name, text in (ours, theirs))
    assert ours == theirs, f"gradus: {ours}\ntorch:  {theirs}"


@pytest.mark.parametrize("call, text", [
    ("torch.nested.nested_tensor([x(2)])", "only layout=torch.jagged is supported"),
    ("torch.nested.as_nested_tensor([x(2)], layout=torch.strided)", "only layout=torch.jagged is supported"),
    ("torch.nested.narrow(x(2, 3), 1, 0, 1)", "only layout=torch.jagged is supported"),
    ("torch.add(nt, nt, out=nt)", "out= is not supported"), ("nt.sort()", "sort(): not implemented for nested tensors"), ("nt[torch.tensor([0])]", "is indexed by integers"),
    ("torch.zeros(2, layout=torch.jagged)", "argument 'layout'"), ("nt.squeeze()", "needs a dim"), ("nt.softmax(None)", "dim"), ("F.layer_norm(nt, (3, 4))", "ragged dimension is not supported"),
    ("torch.cat([nt, second], -1)", "the same nested structure"), ("torch.cat([nt, x(2, 3, 4)], -1)", "all nested tensors"), ("nt.to_padded_tensor(0.0, (2, 6, 5))", "ragged dimension only"),
    ("copy.deepcopy(nt * 2)", "Only Tensors created explicitly by the user (graph leaves)"), ("nt.expand(2, 4)", "cannot view shape"), ("x(3, 4).add_(nt)", "cannot call binary pointwise function add_"), ("torch.nested.to_padded_tensor(x(2), 0.0)", "only nested tensors"), ("nt.size(3)", "Dimension out of range"),
    ("torch.nested.nested_tensor_from_jagged(x(5, 4), torch.tensor([0, 2, 9])).unbind()", "exceeds dimension size"), ("nt.select(0, 2)", "out of range"),
    ("torch.nested.nested_tensor_from_jagged(x(5, 4), torch.tensor([0, 2, 9])).to_padded_tensor(0.0)", "index out of range"),
])
def test_errors_with_texts_of_gradus(call, text):
    leaves = [numbers(gradus, shape).requires_grad_() for shape in SIZES.values()]
    assert text in caught(eval, call, {**scope(gradus, leaves), "copy": copy})[1]


def test_a_nested_leaf_and_its_hooks_get_nested_gradients():
    nt = gradus.nested.nested_tensor([gradus.ones(2, 4), gradus.ones(3, 4)], layout=gradus.jagged, requires_grad=True)
    seen = []
    nt.register_hook(lambda grad: seen.append(grad.shape == nt.shape))
    (nt * 3).backward(gradus.ones_like(nt))
    assert nt.is_leaf and seen == [True] and nt.grad.is_nested and nt.grad.shape == nt.shape and nt.grad.values().unique().tolist() == [3.0]
    grad, = gradus.autograd.grad((nt * nt).sum(), nt)
    assert (grad == 2 * nt).values().all()


def test_gradients_of_a_subclass_have_the_type_of_pytorch():
    def program(module):
        class Kind(module.Tensor):
            pass

        x = module.ones(2).as_subclass(Kind).requires_grad_()
        return [type(g).__name__ for g in module.autograd.grad((x * x).sum(), [x], retain_graph=True)]

    assert program(gradus) == program(torch)


def test_gradgradcheck_of_nested_tensors():
    def function(values, weight):
        nt = gradus.nested.nested_tensor_from_jagged(values, gradus.tensor([0, 2, 5]))
        nt = gradus.nn.functional.layer_norm(nt @ weight, (3,)).softmax(1) * nt.mean(1, keepdim=True)[..., :3]
        return nt.to_padded_tensor(0.5), nt.amax(1), gradus.nn.functional.scaled_dot_product_attention(nt, nt, nt).values()

    leaves = numbers(gradus, (5, 4)).requires_grad_(), numbers(gradus, (4, 3)).requires_grad_()
    assert gradus.autograd.gradcheck(function, leaves) and gradus.autograd.gradgradcheck(function, leaves)


def test_training_with_nested_tensors():
    gradus.manual_seed(0)
    model = gradus.nn.Sequential(gradus.nn.Linear(4, 8), gradus.nn.LayerNorm(8), gradus.nn.GELU(), gradus.nn.Dropout(0.1), gradus.nn.Linear(8, 1))
    optimizer = gradus.optim.Adam(model.parameters(), lr=0.05)
    nt = gradus.nested.nested_tensor([gradus.randn(n, 4) for n in (2, 5, 3)], layout=gradus.jagged)
    target, losses = nt.sum(-1).mean(1), []
    for _ in range(40):
        optimizer.zero_grad()
        loss = (model(nt).squeeze(-1).mean(1) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize("make", [copy.deepcopy, copy.copy, lambda nt: pickle.loads(pickle.dumps(nt))])
@pytest.mark.parametrize("name", ["nt", "holes", "heads"])
def test_copies_of_nested_tensors(make, name):
    nt = scope(gradus)[name].detach().requires_grad_()
    nt.grad = gradus.ones_like(nt)
    made = make(nt)
    assert made.requires_grad and made.is_leaf and as_lists(gradus, made) == as_lists(gradus, nt) and made.values().data_ptr() != nt.values().data_ptr() or make is copy.copy
    assert make is not copy.deepcopy or (made.grad.shape == made.shape and made.shape != nt.shape)


@pytest.mark.parametrize("name", ["nt", "holes", "heads"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_nested_tensors_are_exchanged_with_pytorch(name, weights_only, tmp_path):
    nt = scope(gradus)[name].detach().requires_grad_()
    gradus.save({"nt": nt}, tmp_path / "nt.pt")
    ours = gradus.load(tmp_path / "nt.pt", weights_only=weights_only)["nt"]
    assert type(ours) is type(nt) and ours.requires_grad and as_lists(gradus, ours) == as_lists(gradus, nt)
    theirs = torch.load(tmp_path / "nt.pt", weights_only=weights_only)["nt"]
    assert theirs.requires_grad and as_lists(torch, theirs) == as_lists(gradus, nt)


@pytest.mark.parametrize("facts", [3, {}, {"values": 1}, {"values": "t", "offsets": 1.0, "_ragged_idx": 1}, {"values": "t", "offsets": "t"}, {"values": "t", "offsets": "t", "_ragged_idx": 9}])
def test_files_with_invalid_nested_tensors_are_refused(facts, tmp_path):
    t = gradus.tensor([0, 1])
    facts = {k: t if v == "t" else v for k, v in facts.items()} if isinstance(facts, dict) else facts
    kind = type(scope(gradus)["nt"])

    class Wrong:
        def __reduce__(self):
            return gradus._utils._rebuild_from_type_v2, (submodule(gradus, "nested._tensor")._rebuild_njt, kind, (facts,), {})

    gradus.save({"nt": Wrong()}, tmp_path / "nt.pt")
    with pytest.raises((pickle.UnpicklingError, IndexError)):
        gradus.load(tmp_path / "nt.pt")


def test_repr_of_nested_tensors():
    nt = gradus.nested.nested_tensor([gradus.ones(2, 4), gradus.ones(3, 4)], layout=gradus.jagged, requires_grad=True)
    text = [re.sub(r"j\d+", "j1", re.sub(" at 0x[0-9a-f]+", "", repr(t))) for t in (nt, nt.detach(), nt * 2, nt.shape)]
    assert text == ["NestedTensor(size=(2, j1, 4), offsets=tensor([0, 2, 5]), requires_grad=True, contiguous=True)",
                    "NestedTensor(size=(2, j1, 4), offsets=tensor([0, 2, 5]), contiguous=True)",
                    "NestedTensor(size=(2, j1, 4), offsets=tensor([0, 2, 5]), grad_fn=<MulBackward0 object>, contiguous=True)", "torch.Size([2, j1, 4])"]
    assert re.fullmatch(r"\(4\*j\d+, 4, 1\)", str(nt.stride()))


def test_symbolic_sizes_stay_distinct_after_their_tensor_is_freed():
    shape = gradus.nested.nested_tensor([gradus.ones(1), gradus.ones(2)], layout=gradus.jagged).shape
    others = {gradus.nested.nested_tensor([gradus.ones(1), gradus.ones(2)], layout=gradus.jagged).shape for _ in range(20)}
    assert shape not in others and len(others) == 20


def test_padding_preserves_large_integers():
    nt = submodule(gradus, "nested").nested_tensor([gradus.tensor([1]), gradus.tensor([2, 3])], layout=gradus.jagged)
    assert nt.to_padded_tensor(2**63 - 1).tolist() == [[1, 2**63 - 1], [2, 3]]
    assert nt.amin(1).tolist() == [1, 2] and nt.amax(1).tolist() == [1, 3]
