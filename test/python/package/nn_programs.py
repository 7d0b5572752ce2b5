"""Runs programs with PyTorch and with Gradus. Both must yield the same values.

@same turns a generator function into a test. The argument of the generator function is the framework, and the values that it yields are compared.
attempt() replaces an exception by its class and text.
"""
import functools
import numbers
import warnings

import pytest

import gradus
from oracle import needs_torch, torch


def attempt(function, *args, **kwargs):
    """Returns the result of a call, or (class, text) of its exception. If the call gives warnings, returns (result or exception, [class of each
    warning])."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            result = type(error).__name__, str(error).split(': "none", "mean"')[0]  # PyTorch does not list the strings that are allowed
    return (result, [warning.category.__name__ for warning in caught]) if caught else result


def comparable(value):
    """Returns the value as numbers, strings and lists, which can be compared between the libraries."""
    if isinstance(value, (gradus.Tensor, torch.Tensor)):
        values = comparable(value.detach().tolist())
        return [str(value.dtype).split(".")[-1], list(value.shape), value.requires_grad, values]
    if isinstance(value, dict):
        return [[comparable(key), comparable(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [comparable(item) for item in value]
    if value is None or isinstance(value, (bool, numbers.Number)):
        return value
    return str(value).replace("gradus", "torch").replace("Gradus", "Torch")


def assert_same(got, wanted, tolerance, path):
    if isinstance(wanted, list):
        assert isinstance(got, list) and len(got) == len(wanted), f"{path}: {got} is not {wanted}"
        for i, (g, w) in enumerate(zip(got, wanted)):
            assert_same(g, w, tolerance, f"{path}[{i}]")
    elif isinstance(wanted, float) and tolerance:
        assert got == pytest.approx(wanted, rel=tolerance, abs=tolerance, nan_ok=True), f"{path}: {got} is not {wanted}"
    else:
        assert got == wanted or (got != got and wanted != wanted), f"{path}: {got!r} is not {wanted!r}"


def observations(program, framework, *args):
    framework.manual_seed(0)
    return [comparable(observation) for observation in program(framework, *args)]


def same(program=None, *, tolerance=1e-5):
    """Decorator that turns a generator function program(framework) into a test. The test runs the program with Gradus and with PyTorch and compares
    the values that the two runs yield. With tolerance=0 numbers must have the same bits."""
    if program is None:
        return functools.partial(same, tolerance=tolerance)

    def test():
        # Skips the test before the program begins. A program that was skipped midway would leave its hooks registered.
        needs_torch()
        got, wanted = observations(program, gradus), observations(program, torch)
        assert_same(got, wanted, tolerance, program.__name__)

    test.__name__, test.__doc__ = program.__name__, program.__doc__
    return test
