"""Checks that in-place writes to a view, or to its base, are refused or recorded exactly where PyTorch refuses or records them. Covers every operator
that makes views, and every grad mode."""
import itertools
import re

import pytest

import gradus
from oracle import torch

VIEWS = {
    "unbind": lambda t: t.unbind(0)[0], "split": lambda t: t.split(2)[0], "chunk": lambda t: t.chunk(2)[0], "split of sizes": lambda t: t.split([1, 3])[1],
    "tensor_split": lambda t: t.tensor_split(2)[0], "hsplit": lambda t: t.hsplit(2)[0], "vsplit": lambda t: t.vsplit(2)[1], "iteration": lambda t: next(iter(t)),
    "select": lambda t: t.select(0, 0), "a view of a part": lambda t: t.split(2)[0].narrow(0, 0, 1), "a part of a view": lambda t: t[0:4].split(2)[0],
    "detached": lambda t: t.detach(), "a detached part": lambda t: t.split(2)[0].detach(),
}
WRITES = {
    "mul_": lambda m, base, view, other: view.mul_(other), "zero_": lambda m, base, view, other: view.zero_(), "set": lambda m, base, view, other: view.__setitem__(0, other),
    "copy_": lambda m, base, view, other: view.copy_(other.expand(view.shape)), "out": lambda m, base, view, other: m.mul(view.detach(), other.detach(), out=view),
    "the base": lambda m, base, view, other: base.mul_(other), "nothing": lambda m, base, view, other: None,
}
BASES = ["plain", "leaf", "history", "made a leaf later"]


def outcome(module, make, base_is, made, written, write, with_grad):
    """Writes to a view or to its base, then runs backward. Returns [requires_grad of the view, requires_grad of the base, True if the view has no
    grad_fn, elements of the base, gradient of `other` if backward ran]. Returns the text of the error if there is one."""
    base = module.ones(4, 2, requires_grad=base_is in ("leaf", "history"))
    base = base * 1 if base_is == "history" else base
    other = module.full((), 2.0, requires_grad=with_grad)
    modes = {"grad": module.enable_grad, "no_grad": module.no_grad}
    try:
        with modes[made]():
            view = make(base)
        if base_is == "made a leaf later":
            base.requires_grad_()
        with modes[written]():
            write(module, base, view, other)
        found = [view.requires_grad, base.requires_grad, view.grad_fn is None, base.detach().tolist()]
        if base.requires_grad or view.requires_grad:
            (base.sum() + view.sum()).backward()
            found.append(None if other.grad is None else other.grad.item())
        return found
    except RuntimeError as error:
        text = re.sub(r"^(\w+(\(\))?: )+", "", str(error).split("\n")[0])
        # The text names the autograd node of the view, which may be Split or SplitWithSizes. This difference is ignored.
        return re.sub("Output (.) of Split(WithSizes)?", r"Output \1 of Split", text)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_in_place_writes_to_views_and_bases(view, write):
    for base_is, made, written, with_grad in itertools.product(BASES, ("grad", "no_grad"), ("grad", "no_grad"), (False, True)):
        case = base_is, made, written
        ours, theirs = (outcome(module, VIEWS[view], *case, WRITES[write], with_grad) for module in (gradus, torch))
        assert ours == theirs, (case, with_grad)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_writes_to_real_and_imag_of_a_conjugated_tensor(part):
    """Gradus refuses a write to real or imag of a conjugated tensor if the write would be recorded. PyTorch records the write and raises an error in
    backward."""
    for module in (gradus, torch):
        root, factor = module.tensor([1 + 2j, 3 - 1j]).conj().detach(), module.full((2,), 3.0, requires_grad=True)
        with pytest.raises(RuntimeError, match="conjugated"):
            getattr(root, part).mul_(factor)
            module.view_as_real(root.resolve_conj()).sum().backward()
        if module is gradus:
            assert root.tolist() == [1 - 2j, 3 + 1j] and not root.requires_grad
    # This write needs no gradient, so it is not recorded and is allowed.
    getattr(root, part).mul_(2)
    # A conjugated view. Its base is not conjugated, so a recorded write to real or imag of the view is allowed.
    whole = gradus.tensor([1 + 2j, 3 - 1j]).conj()
    factor = gradus.full((2,), 3.0, requires_grad=True)
    before = getattr(whole, part).tolist()
    getattr(whole, part).mul_(factor)
    gradus.view_as_real(whole.resolve_conj()).sum().backward()
    assert factor.grad.tolist() == before and getattr(whole, part).tolist() == [3 * x for x in before]
