"""Tests the version of the package as programs query it, and the modules of PyTorch that are absent."""
import importlib
import importlib.util
import itertools
import os
import re
import subprocess
import sys

import pytest

import gradus
from gradus.torch_version import TorchVersion
from oracle import torch

VERSIONS = ["2.13.0+gradus.0.1.0", "2.13.0", "2.13", "2.13.0a", "2.13.0a0+git123", "2.13.0.dev2024", "2.13.0rc1", "2.13.1", "2.2", "1!1.0",
            "2.13.0.post1", "2.13.0-1", "2.13.0rc1.dev3", "2.13.0.post1.dev2", "2.13+cpu", "2.13+cpu.1", "2.13+1", "v2.13 ", "2.13+a", "parrot"]
TUPLES = [(2, 13), (2,), (1, 10, "a0"), [2, 14], ("par", "rot")]
OPERATORS = ("__lt__", "__le__", "__eq__", "__gt__", "__ge__")


def test_the_version_begins_with_that_of_pytorch():
    assert gradus.__version__.split("+")[0] == torch.__version__.split("+")[0]


def test_version_of_gradus():
    assert re.fullmatch(r"\d+\.\d+\.\d+", gradus.version.gradus)
    assert str(gradus.__version__) == gradus.version.__version__ == f"2.13.0+gradus.{gradus.version.gradus}"
    assert type(gradus.__version__) is gradus.torch_version.TorchVersion
    assert gradus.version.cuda is gradus.version.hip is None and gradus.version.debug is False and isinstance(gradus.version.git_version, str)


def test_version_comparisons_that_programs_make():
    assert gradus.__version__ >= "2.2" and gradus.__version__ >= (1, 8) and gradus.__version__ > (2, 12, 9)
    assert tuple(int(part) for part in gradus.__version__.split("+")[0].split(".")[:2]) >= (2, 0)
    assert gradus.__version__.startswith("2.") and {gradus.__version__: 1}[str(gradus.__version__)] == 1
    packaging = pytest.importorskip("packaging.version", reason="the package packaging is not installed")
    assert packaging.parse(gradus.__version__) >= packaging.parse("2.13") > packaging.parse("2.12")
    assert gradus.__version__ > packaging.parse("2.2") and packaging.parse("2.2") < gradus.__version__


def test_torch_version_compares_as_in_pytorch():
    theirs = torch.torch_version.TorchVersion
    for (a, b), name in itertools.product(itertools.product(VERSIONS, VERSIONS + TUPLES), OPERATORS):
        assert getattr(TorchVersion(a), name)(b) == getattr(theirs(a), name)(b), (a, name, b)
    with pytest.raises(TypeError):
        TorchVersion("2.13") < 5


@pytest.mark.parametrize(("name", "advice"), [
    ("utils.cpp_extension", "gradus.ops.load_library"), ("testing._internal.common_utils", "PyTorch's own test suite"), ("export", "gradus.save"),
    ("utils.bottleneck", "perf"), ("fx.experimental", "cannot be traced"),
])
def test_importing_an_absent_module_gives_advice(name, advice):
    with pytest.raises(ModuleNotFoundError, match=re.escape(f"No module named 'gradus.{name.split('.')[0]}")) as caught:
        importlib.import_module(f"gradus.{name}")
    assert advice in str(caught.value)


def test_find_spec_of_an_absent_module():
    assert importlib.util.find_spec("gradus.export") is None and importlib.util.find_spec("gradus.nonsense") is None
    with pytest.raises(ModuleNotFoundError, match="^No module named 'gradus.nonsense'$"):
        importlib.import_module("gradus.nonsense")
    code = """
import importlib.util
from gradus.as_torch import install
install()
assert importlib.util.find_spec("torch.export") is None and importlib.util.find_spec("torch.utils.bottleneck") is None
assert importlib.util.find_spec("torch.nn") is not None
try:
    from torch.utils.cpp_extension import load
except ModuleNotFoundError as error:
    print(error, error.name)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    assert result.stdout.startswith("No module named 'torch.utils.cpp_extension': Gradus has no 'gradus.utils.cpp_extension': "), result.stderr
    assert result.stdout.endswith(" torch.utils.cpp_extension\n")
