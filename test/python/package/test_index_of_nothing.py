"""Checks that Gradus refuses out-of-range indices of tensors without elements exactly where PyTorch refuses them."""
import itertools
import re

import pytest

import gradus
from oracle import torch

SIZES = ["(2, 0)", "(0, 2)", "(0,)", "(0, 0)", "(2, 0, 3)", "(2, 3, 0)"]
INDICES = ["torch.tensor([5])", "torch.tensor([-7])", "torch.tensor([], dtype=torch.int64)", "torch.tensor([0])", "torch.tensor([[5, 0]])"]
READS = "x[i]|x[:, i]|x[..., i]|x[i, i]|x[i, 0:0]|x[:0, i]|x[i, torch.zeros(0, 1, dtype=torch.int64)]|torch.take(x, i)".split("|")
WRITES = """
x[i] = 1|x[:, i] = 1|x[i, i] = 1|x[i, 0:0] = 1|x[i] = torch.zeros(0)|x.index_put_((i,), torch.tensor(1.), accumulate=True)|x[i] += 1
x.index_fill_(0, i.reshape(-1), 1)|x.index_add_(0, i.reshape(-1), torch.zeros(i.numel(), *x.shape[1:]))|x.index_copy_(0, i.reshape(-1), torch.zeros(i.numel(), *x.shape[1:]))
""".replace("\n", "|").strip("|").split("|")


def outcome(module, size, index, statement):
    names = {"torch": module, "x": module.zeros(eval(size)), "i": eval(index, {"torch": module})}
    try:
        if statement in READS:
            return eval(statement, names).tolist()
        exec(statement, names)
        return names["x"].tolist()
    except Exception as error:
        # The number of the dimension is removed from the text, because PyTorch reorders the dimensions before it numbers them.
        return type(error).__name__, re.sub(r"^(\w+(\(\))?: )+", "", re.sub("dimension .", "a dimension", str(error).split("\n")[0]))


@pytest.mark.parametrize("statement", [*READS, *WRITES])
def test_out_of_range_indices_of_empty_tensors_behave_as_in_pytorch(statement):
    for size, index in itertools.product(SIZES, INDICES):
        if "x.index_" in statement and "put" not in statement and eval(size)[0] == 0:
            # Not compared, because PyTorch's error is about the memory of an internal view.
            continue
        assert outcome(gradus, size, index, statement) == outcome(torch, size, index, statement), (size, index)


def test_gradient_of_indexing_an_empty_tensor():
    for module in (gradus, torch):
        x = module.zeros(2, 0, requires_grad=True)
        x[module.tensor([5])].sum().backward()
        assert x.grad.shape == (2, 0)
