"""Runs the examples in all docstrings, which must print what they show, and checks that every public name has a docstring."""
import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys

import pytest

import gradus
import gradus.nn
from conftest import ROOT

sys.path.insert(0, str(ROOT))
from codegen.python import functions  # noqa: E402
from codegen.schema import read_schema  # noqa: E402

EXTENSION = {"functions": gradus._C, "nn": gradus._C.nn, "linalg": gradus._C.linalg, "special": gradus._C.special, "fft": gradus._C.fft, "windows": gradus._C.windows, **{name: value for name, value in vars(gradus._C).items() if isinstance(value, type)}}
OTHERS = {"gradus._C", "gradus.as_torch"}
MODULES = ["gradus", *(found.name for found in pkgutil.walk_packages(gradus.__path__, "gradus.") if found.name not in OTHERS)]
NAMES = {"gradus": gradus, "torch": gradus, "nn": gradus.nn, "F": gradus.nn.functional}


def examples(place):
    """Returns the doctests of all functions, methods and properties of EXTENSION[place], a module or class of the extension."""
    texts = {name: value.__doc__ for name, value in vars(EXTENSION[place]).items() if isinstance(getattr(value, "__doc__", None), str)}
    return [doctest.DocTestParser().get_doctest(text, {"torch": gradus}, f"{place}.{name}", None, None) for name, text in texts.items()]


def run(tests, flags=0):
    runner, said = doctest.DocTestRunner(optionflags=flags), []
    for test in tests:
        runner.run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("place", EXTENSION)
def test_docstring_examples_of_the_extension(place, no_collector):
    run(examples(place))


def test_every_example_of_the_schema_is_in_a_docstring():
    shown = {(step.source, step.want) for place in EXTENSION for test in examples(place) for step in test.examples}
    wanted = {name: doctest.DocTestParser().get_examples(operator.example) for name, operator in read_schema(ROOT / "schema").items()}
    assert not [name for name, steps in wanted.items() if any((step.source, step.want) not in shown for step in steps)]
    assert sum(map(bool, wanted.values())) > 180


def test_docstrings_end_with_the_schema_files_of_their_operators():
    homes = {"function": "functions", "method": "Tensor"}
    for (home, name), function in functions(read_schema(ROOT / "schema")).items():
        files = dict.fromkeys(signature.operator.file for signature in function.signatures)
        value = getattr(EXTENSION[homes.get(home, home)], name)
        by_hand = (home, name) == ("method", "nonzero")  # this method is written by hand, because it also has the argument as_tuple
        assert by_hand or value.__doc__.endswith(f"\n\nSchema: {', '.join(files)}"), f"{home}.{name}"
    assert gradus.tanh.__doc__.endswith("\n\nSchema: schema/elementwise.toml") and gradus.Tensor.max.__doc__.endswith("\n\nSchema: schema/reduction.toml")


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_of_modules(name, no_collector):
    # If `name` is "gradus", only the module's own docstring is tested. Its functions come from the extension module, where their examples are tested.
    finder = doctest.DocTestFinder(recurse=name != "gradus")
    run(finder.find(importlib.import_module(name), extraglobs=NAMES), doctest.NORMALIZE_WHITESPACE)


def test_docstring_examples_of_as_torch():
    """The doctests of gradus.as_torch run in a process of their own, because they install Gradus in place of PyTorch."""
    path = os.path.dirname(os.path.dirname(gradus.__file__))
    program = "import doctest, gradus.as_torch; raise SystemExit(doctest.testmod(gradus.as_torch).failed)"
    assert subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}).returncode == 0


def test_modules_have_docstring_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) > 210


@pytest.mark.parametrize("name", [name for name in MODULES if "._" not in name])
def test_every_public_name_has_a_docstring(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", dir(module)):
        value = getattr(module, public)
        if public.startswith("_") or not callable(value) or not getattr(value, "__module__", "").startswith("gradus"):
            continue
        assert value.__doc__, f"{name}.{public}"
        for method in filter(inspect.isfunction, vars(value).values() if isinstance(value, type) else ()):
            if not method.__name__.startswith("_") and method.__name__ not in ("forward", "extra_repr"):
                assert inspect.getdoc(getattr(value, method.__name__)), f"{name}.{public}.{method.__name__}"
