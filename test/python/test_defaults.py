"""Checks that the defaults of operators are those of PyTorch's Python functions and operators, which are recorded in test/data/defaults.json.

`python test/python/test_defaults.py` records them again, if PyTorch is installed."""
import inspect
import json
import sys
from pathlib import Path

import pytest

from oracle import torch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from codegen.python import names  # noqa: E402
from codegen.schema import read_schema  # noqa: E402

RECORDED = ROOT / "test/data/defaults.json"
REDUCTIONS = ("none", "mean", "sum")
OPERATORS = {name: operator for name, operator in read_schema(ROOT / "schema").items() if not operator.hidden}
WANTED = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}

# Defaults of Gradus that mean the same as the recorded defaults of PyTorch but are written in another way.
DIFFERENT = {
    # torch.embedding_bag has mode=0, but the recorded default is the mode="mean" of nn.functional.embedding_bag. The recorded ignore_index of
    # nn.functional.linear_cross_entropy is None, which stands for -100.
    "embedding_bag": {"mode": 0}, "linear_cross_entropy": {"ignore_index": -100},
    "meshgrid": {"indexing": "ij"}, "clone": {"memory_format": "preserve"}, "contiguous": {"memory_format": "contiguous"}, "embedding": {"padding_idx": -1},
    "norm": {"p": None}, **{name: {"dim": None} for name in ("amax", "amin")},
    # The recorded default of dtype is the number by which PyTorch's schema denotes int64.
    **{name: {"dtype": None} for name in ("randint", "randint_high", "randperm", "tril_indices", "triu_indices")},
    **{name: {"correction": 1} for name in ("var", "std", "var_mean", "std_mean")},
    **{f"conv{n}d_padded": {"padding": "valid"} for n in (1, 2, 3)},  # the overload of PyTorch that takes a string
    **{f"lp_pool{n}d": {"stride": []} for n in (1, 2, 3)},  # an empty stride stands for the kernel's size
    **{f"max_pool{n}d_with_indices": {"stride": [], "padding": [0] * n, "dilation": [1] * n} for n in (1, 2, 3)},  # PyTorch's defaults are a single number
    **{name: {"dilation": [1, 1], "padding": [0, 0], "stride": [1, 1]} for name in ("im2col", "col2im")},
    "bernoulli": {"p": None},  # the elements are the probabilities if p is None
}


def normalized(name, value):
    if name == "reduction" and isinstance(value, int):
        return REDUCTIONS[value]
    return value if isinstance(value, (bool, int, float, str, list, type(None))) else str(value)


def of_function(function):
    """Returns {argument: default} of a Python function."""
    return {p.name: p.default for p in inspect.signature(function).parameters.values() if p.default is not inspect.Parameter.empty}


def of_operator(packet):
    """Yields {argument: default} of each overload of one of PyTorch's operators."""
    for overload in packet.overloads():
        yield {a.name: a.default_value for a in getattr(packet, overload)._schema.arguments if a.has_default_value()}


def candidates(operator):
    for name in (operator.name, *names(operator)):
        for place in (torch.nn.functional, torch):
            if inspect.isfunction(getattr(place, name, None)):
                yield of_function(getattr(place, name))
        if hasattr(torch.ops.aten, name):
            yield from of_operator(getattr(torch.ops.aten, name))


def defaults_of_pytorch(operator):
    """Returns the defaults of PyTorch's overload that has the most arguments in common with the operator."""
    arguments = [a.name for a in operator.args if a.has_default]
    best = max(candidates(operator), key=lambda found: sum(name in found for name in arguments), default={})
    return {name: normalized(name, best[name]) for name in arguments if name in best}


def record():
    found = {name: defaults_of_pytorch(operator) for name, operator in OPERATORS.items()}
    return json.dumps({name: defaults for name, defaults in found.items() if defaults}, indent=1) + "\n"


def short(value):
    """Returns one number for a list of equal numbers ([0, 0] becomes 0), and None for an empty list."""
    if not isinstance(value, list) or len(set(value)) > 1:
        return value
    return value[0] if value else None


@pytest.mark.parametrize("name", WANTED)
def test_defaults_of_operators_equal_those_of_pytorch(name):
    ours = {a.name: normalized(a.name, a.default) for a in OPERATORS[name].args if a.has_default}
    assert {key: short(ours[key]) for key in WANTED[name]} == {key: short(value) for key, value in {**WANTED[name], **DIFFERENT.get(name, {})}.items()}


def test_the_recorded_defaults_are_those_of_the_installed_pytorch():
    torch.manual_seed  # skips the test if PyTorch is not installed
    assert record() == RECORDED.read_text(), "record them again: build/venv/bin/python test/python/test_defaults.py"


if __name__ == "__main__":
    RECORDED.write_text(record())
