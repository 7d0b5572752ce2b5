"""Checks that type checkers understand the package. The programs in test/typing have an error on each line marked "# error", and no other errors."""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradus
from oracle import torch

PROGRAMS = sorted((Path(__file__).parents[2] / "typing").glob("*.py"))
PACKAGE = str(Path(gradus.__file__).parents[1])


def marked(program):
    return {number for number, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# error")}


def check(command, **environment):
    return subprocess.run([sys.executable, "-m", *command, *map(str, PROGRAMS)], capture_output=True, text=True, env={**os.environ, **environment},
                          cwd=PROGRAMS[0].parent)


def mypy(cache):
    """Runs mypy on the programs in test/typing. Returns {name of a program: {line: error}}."""
    result = check(["mypy", "--no-error-summary", "--no-color-output", "--follow-imports=silent", "--cache-dir", str(cache)], MYPYPATH=PACKAGE)
    assert result.returncode in (0, 1) and not result.stderr, result.stdout + result.stderr
    found = {}
    for name, line, text in re.findall(r"(?m)^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", result.stdout):
        found.setdefault(name, {})[int(line)] = text
    return found


def pyright(folder):
    for program in PROGRAMS:
        shutil.copy(program, folder)
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [PACKAGE]}))
    result = subprocess.run([sys.executable, "-m", "pyright", "--outputjson"], capture_output=True, text=True, cwd=folder)
    if not result.stdout.startswith("{"):
        pytest.skip(f"pyright does not run: {result.stderr.strip()[-200:]}")
    found = {}
    for one in json.loads(result.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            found.setdefault(Path(one["file"]).name, {})[one["range"]["start"]["line"] + 1] = one["message"]
    return found


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_find_exactly_the_marked_errors(checker, tmp_path):
    if importlib.util.find_spec(checker.__name__) is None:
        pytest.skip(f"{checker.__name__} is not installed: pip install {checker.__name__}")
    assert len(PROGRAMS) == 10 and all(marked(program) for program in PROGRAMS)
    found = checker(tmp_path)
    wrong = []
    for program in PROGRAMS:
        errors, lines = found.get(program.name, {}), program.read_text().splitlines()
        wrong += [f"{program.name}:{line}: not found: {lines[line - 1]}" for line in sorted(marked(program) - set(errors))]
        wrong += [f"{program.name}:{line}: {errors[line]}" for line in sorted(set(errors) - marked(program))]
    assert not wrong, "\n".join(wrong)


def test_the_readme_program_is_type_checked():
    text = (Path(__file__).parents[3] / "README.md").read_text()
    program = re.search(r"```python\n(import gradus as torch\n.*?)```", text, re.S)[1]
    lines = [line.split("  #")[0].rstrip() for line in program.splitlines() if line.strip()]
    checked = (PROGRAMS[0].parent / "readme.py").read_text().splitlines()
    assert all(line in checked for line in lines)


def modules():
    """Returns the modules that user programs import by name, e.g. gradus.nn.functional."""
    return [importlib.import_module(f"gradus{name}") for name in ("", ".nn", ".nn.functional", ".nn.modules", ".optim", ".optim.lr_scheduler", ".utils",
                                                                   ".utils.data", ".autograd", ".amp", ".cuda", ".fft", ".linalg", ".special", ".return_types")]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_dir_lists_every_public_name(module):
    names = dir(module)
    public = getattr(module, "__all__", [])
    assert set(public) <= set(names) and all(hasattr(module, name) for name in public)


def test_dir_lists_every_optimizer():
    absent = {name for name in torch.optim.__all__ if not hasattr(gradus.optim, name)}
    assert set(torch.optim.__all__) - set(dir(gradus.optim)) == absent and "Adadelta" in dir(gradus.optim)
