"""Programs that are run with PyTorch and with Gradus and must observe the same.

@same makes a test of a generator function: its argument is the framework, what it yields is compared. attempt() turns an exception into its
class and text.
"""
import functools
import numbers
import warnings

import pytest

import gradus
from oracle import needs_torch, torch


def attempt(function, *args, **kwargs):
    """What the call returns, or the class and text of what it raises; and the warnings before that."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            result = type(error).__name__, str(error).split(': "none", "mean"')[0]  # PyTorch does not say which words there are
    return (result, [warning.category.__name__ for warning in caught]) if caught else result


def plain(value):
    """Numbers, strings and lists of these: what can be compared between the two."""
    if isinstance(value, (gradus.Tensor, torch.Tensor)):
        values = plain(value.detach().tolist())
        return [str(value.dtype).split(".")[-1], list(value.shape), value.requires_grad, values]
    if isinstance(value, dict):
        return [[plain(key), plain(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
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
    return [plain(observation) for observation in program(framework, *args)]


def same(program=None, *, tolerance=1e-5):
    """tolerance 0: the same bits."""
    if program is None:
        return functools.partial(same, tolerance=tolerance)

    def test():
        needs_torch()  # before a program begins, which leaves hooks behind where it is not finished
        got, wanted = observations(program, gradus), observations(program, torch)
        assert_same(got, wanted, tolerance, program.__name__)

    test.__name__, test.__doc__ = program.__name__, program.__doc__
    return test
