"""Helpers for programs that are run with gradus and with PyTorch and must give the same results."""
import importlib

import pytest

import gradus
from oracle import needs_torch, torch


def without_tensors(value):
    """Returns `value` with each tensor in it replaced by a list, so that results of both libraries can be compared."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return type(value)(without_tensors(item) for item in value)
    return value


def same(program, *args):
    """Runs program(module, *args) with both libraries and checks that the results are equal. Returns the result, in which tensors are replaced by
    lists."""
    needs_torch()
    ours, theirs = without_tensors(program(gradus, *args)), without_tensors(program(torch, *args))
    assert ours == theirs, f"gradus: {ours}\ntorch:  {theirs}"
    return ours


def caught(call, *args, **kwargs):
    """Returns the class and the text of the exception that the call raises."""
    with pytest.raises(Exception) as info:
        call(*args, **kwargs)
    return type(info.value).__name__, str(info.value)


def submodule(module, name):
    """Returns a submodule of gradus or torch, for example submodule(torch, "utils.hooks")."""
    return importlib.import_module(f"{module.__name__}.{name}")


def saving_function(torch, reads=True):
    """Returns a custom function that doubles its argument and saves it. If `reads` is true, backward reads the saved tensor."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 + (ctx.saved_tensors[0] * 0 if reads else 0)

    return Double
