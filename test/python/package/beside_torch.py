"""Evaluates an expression in PyTorch and in Gradus and compares the results."""
import copy
import pickle
import re
import warnings

import numpy
import pytest

import gradus
from oracle import torch


def normalized(text):
    """Returns an error text or a repr without addresses and with PyTorch's module names."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"\n\s+didn't match because.*", "", text).strip()
    text = re.sub(r"\b(gradus|torch)\._C\.|\bgradus\.", "torch.", text)
    text = text.replace("torch.Tensor", "Tensor").replace("TensorBase", "Tensor").replace("torch.torch.", "torch.")
    text = text.replace("Gradus not compiled", "Torch not compiled").replace("positional arguments:", "positional argument:")
    text = re.sub(r"got \((.*?),? ?\), but", r"got (\1), but", text)
    text = re.sub(r"got \(dtype|, dtype", lambda m: m[0].replace("dtype", "torch.dtype"), text)
    return text


def outcome(module, expression):
    """Returns ("is", repr, type) of the value of `expression`, or ("raises", class, text) if it raises an exception."""
    names = {"torch": module, "pickle": pickle, "copy": copy, "np": numpy, "zeros": module.zeros, "ones": module.ones, "tensor": module.tensor}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            *statements, last = expression.split("; ")
            for statement in statements:
                exec(statement, names)
            value = eval(last, names)
            return "is", normalized(repr(value)), type(value).__name__
        except Exception as error:
            return "raises", type(error).__name__, normalized(str(error))


def check(expression):
    """Fails unless both libraries give the same value or the same error. The text of Gradus's error may end with a list of the allowed strings, which
    PyTorch's lacks."""
    expected, found = outcome(torch, expression), outcome(gradus, expression)
    if expected[0] == found[0] == "raises" and found[2].startswith(expected[2] + ': "'):
        found = (*found[:2], expected[2])
    assert found == expected
