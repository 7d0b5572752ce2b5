"""The examples in the docstrings of optimizers, data loading, save and load, and of what answers for what is not there."""
import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys

import pytest

import gradus

PACKAGES = ["optim", "utils", "cuda", "amp", "backends"]
MODULES = ["serialization", "_serialization.globals", "_serialization.reader", "_serialization.writer", "accelerator", "compiler",
           "distributed", "jit", "mps", "multiprocessing", "random", "version", "xpu", *PACKAGES]
MODULES = [f"gradus.{name}" for name in MODULES]
MODULES += [found.name for name in PACKAGES for found in pkgutil.walk_packages(importlib.import_module(f"gradus.{name}").__path__, f"gradus.{name}.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_of_as_torch():
    """In a process of their own: they put Gradus in PyTorch's place."""
    path = os.path.dirname(os.path.dirname(gradus.__file__))
    program = "import doctest, gradus.as_torch; raise SystemExit(doctest.testmod(gradus.as_torch).failed)"
    assert subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}).returncode == 0


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_described(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", []):
        value = getattr(module, public)
        if getattr(value, "__module__", None) != name or public[0].islower() and name.rpartition(".")[2].startswith("_"):
            continue
        assert value.__doc__, f"{name}.{public}"
        for method in filter(inspect.isfunction, vars(value).values() if isinstance(value, type) else ()):
            assert method.__name__.startswith("_") or method.__doc__, f"{name}.{public}.{method.__name__}"


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) > 150
