"""Checks that the functions and classes of gradus.nn have the parameters of torch.nn: names, order, kinds and defaults."""
import inspect

import pytest

import gradus.nn as nn
from oracle import torch

CLASSES = sorted(name for name in dir(nn) if inspect.isclass(getattr(nn, name)))
FUNCTIONS = [(place, name) for place in ("functional", "init", "utils") for name, value in sorted(vars(getattr(nn, place)).items())
             if not name.startswith("_") and inspect.isfunction(value) and not inspect.isbuiltin(getattr(getattr(torch.nn, place), name))]


def parameters(function):
    """Returns [(name, kind, default)] of the parameters of a function. A default that is a function is replaced by its name, a dtype by its text."""
    found = [(p.name, p.kind.name, getattr(p.default, "__name__", str(p.default) if "dtype" in type(p.default).__name__ else p.default)) for p in inspect.signature(function).parameters.values()]
    return [] if found == [("args", "VAR_POSITIONAL", inspect._empty.__name__), ("kwargs", "VAR_KEYWORD", inspect._empty.__name__)] else found


def public_methods(cls):
    return {name for kind in cls.__mro__[:-1] if "nn" in kind.__module__ for name, value in vars(kind).items()
            if inspect.isfunction(value) and not name.startswith("_")}


@pytest.mark.parametrize("name", CLASSES)
def test_signatures_of_classes(name):
    ours, theirs = getattr(nn, name), getattr(torch.nn, name)
    assert parameters(ours) == parameters(theirs) or name == "Container"  # PyTorch decorates the class Container, which hides its parameters
    missing = public_methods(theirs) - public_methods(ours)
    assert not missing, f"{name} has no {missing}"
    for method in public_methods(ours):
        if hasattr(theirs, method) and getattr(theirs, method).__name__ != "_forward_unimplemented":
            assert parameters(getattr(ours, method)) == parameters(getattr(theirs, method)), f"{name}.{method}"


@pytest.mark.parametrize("place, name", FUNCTIONS)
def test_signatures_of_functions(place, name):
    theirs = getattr(torch.nn, place)
    # In PyTorch a function such as max_pool2d has only the parameters *args and **kwargs, because it calls one of two functions, chosen by
    # return_indices. Gradus's max_pool2d is compared with one of the two, max_pool2d_with_indices, which has all parameters.
    wanted = parameters(getattr(theirs, name)) or parameters(getattr(theirs, f"{name}_with_indices", getattr(theirs, name)))
    assert parameters(getattr(getattr(nn, place), name)) == wanted
