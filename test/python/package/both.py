"""Helpers for programs that are run with gradus and with PyTorch and must give the same results."""
import importlib

import pytest

import gradus
from oracle import needs_torch, torch


def plain(value):
    """Replaces tensors by lists, so that results of both libraries can be compared."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return type(value)(plain(item) for item in value)
    return value


def same(program, *args):
    """Runs program(module, *args) with both libraries, checks that the results are equal, and returns them without tensors."""
    needs_torch()
    ours, theirs = plain(program(gradus, *args)), plain(program(torch, *args))
    assert ours == theirs, f"gradus: {ours}\ntorch:  {theirs}"
    return ours


def caught(call, *args, **kwargs):
    """Returns the class and the text of the exception that the call raises."""
    with pytest.raises(Exception) as info:
        call(*args, **kwargs)
    return type(info.value).__name__, str(info.value)


def part(module, name):
    """Returns a submodule of gradus or torch, for example part(torch, "utils.hooks")."""
    return importlib.import_module(f"{module.__name__}.{name}")


def saving_function(torch, reads=True):
    """Returns a custom function that doubles its argument and saves it; its backward reads the saved tensor or does not."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 + (ctx.saved_tensors[0] * 0 if reads else 0)

    return Double
