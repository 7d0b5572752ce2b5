"""Tests calls that read and write overlapping memory, or write an element twice. Gradus refuses or warns about a call exactly where PyTorch does so,
with PyTorch's texts."""
import re
import warnings

import pytest

import gradus
from oracle import torch


# x is a vector of 12 floats, m is the 3 x 4 matrix over the memory of x, i contains indices and b is a mask.
SETUP = "x = torch.arange(12.0); m = x.view(3, 4); i = torch.tensor([0, 2]); b = torch.tensor([True, False, True]); "

REFUSED = """
x[1:] = x[:-1]|x[1:].copy_(x[:-1])|x[:-1].copy_(x[1:])|x[:9].view(3, 3).copy_(x[:9].view(3, 3).t())|x[1:].add_(x[:-1])|torch.add(x[1:], 1, out=x[:-1])
x[:3].scatter_(0, i, x[1:3])|x[:3].scatter_add_(0, i, x[:2])|m.scatter_add_(1, torch.zeros(3, 4, dtype=torch.int64), m)|x[:3].scatter_reduce_(0, i, x[:2], 'sum')
x[:3].index_copy_(0, i, x[:2])|x[:3].index_add_(0, i, x[2:4])|x[:3].index_reduce_(0, i, x[2:4], 'prod')|x[:3].index_put_((i,), x[2:4])|x[:3].index_put_((i,), x[2:4], accumulate=True)
j = torch.tensor([0, 1, 2]); j.index_fill_(0, j[:2], 7)|j = torch.tensor([0, 1, 2]); j.scatter_(0, j, 1)|j = torch.tensor([0, 1, 2]); j[j[:2]] = 5
torch.gather(x, 0, i, out=x[:2])|torch.gather(x[:2], 0, torch.tensor([1, 0]), out=x[:2])|torch.index_select(x, 0, i, out=x[1:3])|torch.take(x, i, out=x[:2])
torch.cross(x[:3], x[3:6], dim=0, out=x[:3])|torch.cross(x[:3], x[3:6], dim=0, out=x[2:5])|torch.masked_select(x[:3], b, out=x[:2])|torch.nan_to_num(x[1:], out=x[:-1])
torch.clamp(x[1:], 3., out=x[:-1])|torch.round(x[1:], out=x[:-1])|torch.deg2rad(x[1:], out=x[:-1])|torch.sgn(x[1:], out=x[:-1])
x[1:5].clamp_max_(x[:4])|m.clamp_min_(m[0])|x[1:5].heaviside_(x[:4])|m.heaviside_(m[1])|torch.logaddexp(x[1:5], x[:4], out=x[:4])|torch.logaddexp2(x[1:5], x[5:9], out=x[:4])
torch.heaviside(x[1:5], x[5:9], out=x[:4])|torch.cumsum(x[1:5], 0, out=x[:4])|torch.cumprod(x[1:5], 0, out=x[:4])|torch.addmm(x[1:5].view(2, 2), x[5:9].view(2, 2), x[5:9].view(2, 2), out=x[:4].view(2, 2))
torch.addmv(x[1:3], x[5:9].view(2, 2), x[5:7], out=x[:2])|x[:3].index_add_(0, i, x[2:4], alpha=2)|j = torch.tensor([0, 1, 2]); j.scatter_(0, j[:2], 2, reduce='add')|x[:2].addcmul_(x[1:3], x[5:7])
torch.maximum(x[1:5], x[5:9], out=x[:4])|torch.clamp_min(x[1:5], x[5:9], out=x[:4])|torch.xlogy(x[1:5], x[5:9], out=x[:4])|x[1:5].lerp_(x[:4], 0.5)
x[:3].put_(i, x[2:4])|x[:3].put_(i, x[1:3], accumulate=True)|x.put_(torch.arange(12), x)|y = x[::2]; y.put_(torch.arange(6), y)|j = torch.tensor([0, 1, 2]); j.put_(j[:2], j[1:])
x[:1].expand(3).add_(1)|x[:1].expand(3).copy_(x[3:6])|x[:1].expand(3).scatter_(0, i, x[3:5])|x[:1].expand(3).index_copy_(0, i, x[3:5])|x[:1].expand(3).index_add_(0, i, x[3:5])
torch.arange(3., out=x[:1].expand(3))|torch.linspace(0, 1, 3, out=x[:1].expand(3))|torch.add(x[3:6], 1, out=x[:1].expand(3))|torch.gather(x, 0, i, out=x[:1].expand(2))
""".replace("\n", "|").strip("|").split("|")

ALLOWED = """
x.copy_(x)|x[3:].copy_(x[:9].clone())|x[:3].copy_(x[3:6])|x.add_(x)|x[::2].copy_(x[1::2])|torch.deg2rad(x, out=x)|torch.add(x, 1, out=x)|x[:1].expand(3).fill_(5.)|x[:1].expand(3).zero_()
k = i[:1]; m[:, k] = m[:, 2:3]|m.index_copy_(1, i[:1], m[:, 2:3])|m.index_add_(1, i[:1], m[:, 2:3])|m[i] = m[1:3, ::2].repeat(1, 2)|m[:2, i] = m[1:, 1:3]
m.scatter_(1, torch.zeros(3, 1, dtype=torch.int64), m[:, 2:3])|m.scatter_add_(1, torch.zeros(3, 1, dtype=torch.int64), m[:, 2:3])|m[i, 1] = m[:2, 2]
m.put_(i, m[:2, 3:])|m.put_(i, m[:2, 3:], accumulate=True)
m.scatter_reduce_(1, torch.zeros(3, 1, dtype=torch.int64), m[:, 2:3], 'sum')|m.scatter_reduce_(1, torch.zeros(3, 1, dtype=torch.int64), m[:, 2:3], 'amin', include_self=False)
x = torch.arange(12).view(3, 4) % 4; x[:, :3][x[0, 1:3]] = 7|x = torch.arange(12).view(3, 4) % 4; x[:, :3].put_(x[0, 1:3], torch.tensor([7, 8]))
torch.gather(m, 1, torch.tensor([[3]] * 3), out=m[:, 2:3])|torch.index_select(m, 1, i[:1], out=m[:, 2:3])|torch.take(m, i, out=m[:2, 3])
x[:3].scatter_(0, i, x[4:6])|x[:3].index_copy_(0, i, x[4:6])|torch.gather(x[4:], 0, i, out=x[:2])
torch.linspace(1, 6, 6, out=m.narrow(1, 1, 2))|torch.linspace(1, 4, 4, out=m.narrow(1, 1, 2))|torch.arange(6., out=m.narrow(1, 1, 2))|torch.logspace(0, 1, 6, out=m.t()[1:3])
torch.linspace(1, 12, 12, out=m.t())|torch.ones(2, 2, out=m.narrow(1, 1, 2))|torch.full((3, 2), 4., out=m.narrow(1, 1, 2))|torch.eye(2, out=m[:, 1:3])|torch.arange(4., out=torch.zeros(0))
""".replace("\n", "|").strip("|").split("|")

# Calls that read a part of the tensor that they write.
COPIED = [
    "m.put_(torch.tensor([5, 1, 9]), m[:, 1:2]{})", "m.put_(torch.tensor([5, 1, 9]), m[:, 1:2]{}, accumulate=True)", "m[:, :2].put_(torch.tensor([2, 0, 1]), m[1, :3]{})",
    "m[:, :2].index_reduce_(0, torch.tensor([1, 2, 0]), m[:, 1:3]{}, 'mean')", "m.scatter_reduce_(1, torch.tensor([[1], [2], [1]]), m[:, 1:2]{}, 'prod', include_self=False)",
    "m[:, :2].scatter_(0, torch.tensor([[1, 2], [0, 1], [2, 0]]), m[:, 1:3]{}, reduce='multiply')", "torch.gather(m{}, 1, torch.tensor([[0, 1]] * 3), out=m[:, 1:3])",
    "x = torch.arange(12).view(3, 4) % 3; x[:, :2].index_put_((x[0, :2]{},), torch.tensor(90))", "x = torch.arange(12).view(3, 4) % 3; x[:, :2].put_(x[0, :2]{}, torch.tensor([90, -90]))",
]

WARNED = [
    "x[:1].expand(3).index_fill_(0, i, 9.)", "x[:1].expand(3).masked_fill_(b, 9.)", "x[:1].expand(3).index_put_((i,), x[4:6])", "x[:4].expand(3, 4)[i] = x[4:8]",
]


def run(module, call):
    """Executes SETUP, then `call`. Returns ("gives", elements of x, texts of the warnings). If a statement raises an exception, returns ("raises",
    class of the exception, its text, elements of x)."""
    names = {"torch": module}
    *before, last = (SETUP + call).split("; ")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            for statement in [*before, last]:
                exec(statement, names)
        except Exception as error:
            return "raises", type(error).__name__, re.sub(r"^([a-z_0-9]+: )+", "", str(error)), names["x"].tolist()
    return "gives", names["x"].tolist(), [str(one.message).split(" (Triggered")[0] for one in seen]


@pytest.mark.parametrize("call", REFUSED)
def test_overlapping_writes_that_are_refused(call):
    ours, theirs = run(gradus, call), run(torch, call)
    assert theirs[0] == "raises"
    assert ours == theirs


@pytest.mark.parametrize("call", ALLOWED)
def test_overlapping_writes_that_are_allowed(call):
    ours, theirs = run(gradus, call), run(torch, call)
    assert theirs[0] == "gives"
    assert ours == theirs


@pytest.mark.parametrize("call", COPIED)
def test_a_part_of_the_written_tensor_is_read_before_it_is_written(call):
    ours = run(gradus, call.format(""))
    assert ours[0] == "gives"
    assert ours == run(gradus, call.format(".clone()"))


@pytest.mark.parametrize("call", WARNED)
def test_writes_to_expanded_tensors_that_warn(call):
    ours, theirs = run(gradus, call), run(torch, call)
    assert theirs[0] == "gives" and "on expanded tensors is deprecated" in theirs[2][0]
    assert ours == theirs


def test_a_warning_turned_into_an_error_leaves_the_tensor_unchanged():
    x = gradus.zeros(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Use of masked_fill_ on expanded tensors"):
            x.expand(3).masked_fill_(gradus.tensor([True, False, True]), 9.0)
    assert x.tolist() == [0]
