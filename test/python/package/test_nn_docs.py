"""The examples in the docstrings of gradus.nn run and show what they say."""
import doctest
import importlib
import inspect
import pkgutil

import pytest

import gradus
import gradus.nn

MODULES = ["gradus.nn"] + [found.name for found in pkgutil.walk_packages(gradus.nn.__path__, "gradus.nn.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    names = {"gradus": gradus, "nn": gradus.nn, "F": gradus.nn.functional}
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_described(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for value in vars(module).values():
        if getattr(value, "__module__", None) != name or value.__name__.startswith("_"):
            continue
        assert value.__doc__, f"{name}.{value.__name__}"
        for method in filter(inspect.isfunction, vars(value).values() if isinstance(value, type) else ()):
            if not method.__name__.startswith("_") and method.__name__ not in ("forward", "extra_repr"):
                assert method.__doc__, f"{name}.{value.__name__}.{method.__name__}"


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) > 60
