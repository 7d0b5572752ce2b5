"""Runs random programs that write through real(), imag(), view_as_real() and view_as_complex() of a tensor with autograd history. Values and
gradients of first and second order must be PyTorch's."""
import random
import re

import pytest

import gradus
from oracle import torch


def view_of(module, draw, t):
    if t.is_complex():
        return draw.choice([module.real, module.imag, module.view_as_real, lambda t: t[0] if t.dim() else t, lambda t: t.t() if t.dim() == 2 else t.imag])(t)
    if t.dim() and t.shape[-1] == 2 and t.stride(-1) == 1 and draw.random() < 0.6:
        return module.view_as_complex(t)
    if t.dim() and t.shape[-1] == 4 and t.is_contiguous() and draw.random() < 0.6:
        return module.view_as_complex(t.view(*t.shape[:-1], 2, 2))
    return draw.choice([lambda t: t[0], lambda t: t[..., :2], lambda t: t.t() if t.dim() == 2 else t])(t) if t.dim() else t


def write(draw, t, w):
    """Writes once to the tensor `t` in a random way. PyTorch has no gradient for a real tensor that is copied into a complex one, so that case is
    avoided."""
    kind = draw.randrange(7)
    if kind == 0 or t.is_complex() and kind in (2, 5, 6):
        t.mul_(w)
    elif kind == 1:
        t.add_(2.0)
    elif kind == 2:
        t.copy_(t.detach() * 2 + w)
    elif kind == 3:
        t.zero_()
    elif kind == 4:
        t.tanh_()
    elif kind == 5 and t.dim():
        t[0] = w
    else:
        t.fill_(w)


def numbers(tensors):
    return [None if t is None else torch.tensor(t.detach().tolist(), dtype=torch.complex128) for t in tensors]


def square(t):
    return (t * t.conj()).real.sum() if t.is_complex() else (t * t).sum()


def program(module, seed):
    draw = random.Random(seed)
    if draw.random() < 0.6:
        leaf = module.tensor([[1 + 2j, 3 - 1j, 0.5 + 0.25j], [2 - 2j, -1 + 1j, 4j]], dtype=module.complex128, requires_grad=True)
    else:
        leaf = module.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8], [-1, -2, 0.5, 0.25]], dtype=module.float64, requires_grad=True)
    w = module.tensor(1.5, dtype=module.float64, requires_grad=True)
    tensors = [leaf * 1]
    try:
        for _ in range(draw.randrange(2, 7)):
            t = draw.choice(tensors)
            if draw.random() < 0.5:
                tensors.append(view_of(module, draw, t))
            else:
                write(draw, t, w)
        total = sum(square(t) * (i + 1) for i, t in enumerate(tensors))
        first = module.autograd.grad(total, [leaf, w], create_graph=True, allow_unused=True)
        again = sum(square(t) for t in first if t is not None)
        second = module.autograd.grad(again, [leaf, w], allow_unused=True) if again.requires_grad else []
    except RuntimeError as error:
        return re.sub(r"^(\w+(\(\))?: )+", "", str(error).split("\n")[0])[:60]
    return numbers([total, *first, *second])


@pytest.mark.parametrize("seed", range(400))
def test_gradients_through_writes_to_complex_views_are_those_of_pytorch(seed):
    ours, theirs = program(gradus, seed), program(torch, seed)
    if isinstance(theirs, str):
        assert ours == theirs
        return
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10 * max(1.0, b.abs().max().item()))


def test_in_place_writes_to_complex_views_of_a_leaf_are_refused():
    for module in (gradus, torch):
        x = module.ones(2, dtype=module.complex64, requires_grad=True)
        for view in (x.real, x.imag, module.view_as_real(x)):
            with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
                view.mul_(2)


def test_view_dtype_has_no_gradient_history():
    """view(dtype) has no gradient and no history, so writes through it are not recorded."""
    for module in (gradus, torch):
        x = module.ones(2, 4, requires_grad=True) * 1
        for dtype in (module.complex64, module.int32, module.float16):
            y = x.view(dtype)
            assert not y.requires_grad and y.grad_fn is None
            y.zero_()
        assert x.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0]]
        x.sum().backward()


@pytest.mark.parametrize("name", ["real", "imag", "view_as_real", "view_as_complex"])
def test_complex_views_have_no_out_argument(name):
    for module in (gradus, torch):
        given = module.zeros(3, 2) if name == "view_as_complex" else module.zeros(3, dtype=module.complex64)
        with pytest.raises(TypeError, match="out"):
            getattr(module, name)(given, out=module.zeros(3))
