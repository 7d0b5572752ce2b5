"""Tests the wheel that Python users install: its size and contents, and its use in a virtual environment that has only the wheel's dependencies."""
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, needs_python_headers, run

LIMIT = 6_000_000  # limit of the wheel's size in bytes, without BLAS, which is a separate package
# A folder inside the tree, because ccache recognizes the objects of the release build by paths relative to the tree.
OBJECTS = ROOT / "build/wheel-objects"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    needs_python_headers()
    folder = tmp_path_factory.mktemp("wheel")
    shutil.rmtree(OBJECTS, ignore_errors=True)
    result = run([sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", str(folder),
                  "-C", f"build-dir={OBJECTS}"], folder, CC=os.environ.get("CC", "cc"), CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    return next(folder.glob("gradus-*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Returns the Python interpreter of a virtual environment that has only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    interpreter = folder / "bin" / "python"
    result = run([str(interpreter), "-m", "pip", "install", "--disable-pip-version-check", str(wheel)], folder)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    return interpreter


def said_by(python, code, folder, *arguments):
    result = run([str(python), *arguments, "-c", code], folder, PYTHONPATH="")
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_wheel_is_at_most_6_megabytes_and_has_the_libraries_once(wheel):
    assert wheel.stat().st_size <= LIMIT
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sum(".so" in name for name in names) == 2  # the library and the extension module
    for name in ("gradus/py.typed", "gradus/_C/__init__.pyi", "gradus/_C/nn.pyi", "gradus/include/gradus/gradus.h"):
        assert name in names


def test_metadata_of_the_package(python, tmp_path):
    code = "import importlib.metadata, json; print(json.dumps(importlib.metadata.metadata('gradus').json))"
    said = json.loads(said_by(python, code, tmp_path))
    assert said["author"] == "Gradus contributors" and said["license_expression"] == "Apache-2.0" and said["summary"] and said["description"]
    assert "Programming Language :: C" in said["classifier"] and "autograd" in str(said["keywords"]) and said["requires_python"] == ">=3.9"


def test_a_model_trains_without_other_packages(python, tmp_path):
    code = """
import gradus as torch
torch.manual_seed(0)
x = torch.rand(8, 4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(20):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 4, losses
"""
    said_by(python, code, tmp_path)


def test_importing_gradus_does_not_import_numpy(python, tmp_path):
    out = said_by(python, "import gradus, json, sys; print(json.dumps(sorted(sys.modules)))", tmp_path)
    assert "numpy" not in json.loads(out)


def test_a_pytorch_program_runs_unmodified_under_as_torch(python, tmp_path):
    (tmp_path / "program.py").write_text("import torch\nimport torch.nn.functional as F\nimport sys\n"
                                         "print(F.relu(torch.tensor([-1.0, 2.0])).tolist(), sys.argv[1:])\n")
    result = run([str(python), "-m", "gradus.as_torch", "program.py", "a", "--b"], tmp_path, PYTHONPATH="")
    assert (result.returncode, result.stdout) == (0, "[0.0, 2.0] ['a', '--b']\n"), result.stderr


def test_an_unknown_attribute_of_the_module_is_an_attribute_error(python, tmp_path):
    result = run([str(python), "-c", "import gradus; gradus.foo"], tmp_path, PYTHONPATH="")
    assert "AttributeError: module 'gradus' has no attribute 'foo'" in result.stderr
