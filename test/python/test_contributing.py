"""Follows the examples of CONTRIBUTING.md in order on a copy of the tree.

If the fence of a block names a file, the test writes the block to that file: at the end if the fence says "(append)", before a line if it says
"(before: LINE)". The test runs the shell blocks that show and test an operator.
"""
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, needs

BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<path>\S+) \((?P<place>append|before: [^\n]*)\))?\n(?P<text>.*?)^```$", re.M | re.S)
NAMES = ("squareplus", "triangle", "alternating_sum")


def copy_tree(target):
    """Copies the files that git does not ignore to the folder `target`. The copy shares the tools in build/venv with the original tree."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / "build").mkdir()
    (target / "build" / "venv").symlink_to(ROOT / "build" / "venv")


def put(path, place, text):
    old = path.read_text()
    if place == "append":
        path.write_text(f"{old}\n{text}")
        return
    line = place.removeprefix("before: ") + "\n"
    assert old.count(line) == 1, f"{path.name} has not one line {line}"
    path.write_text(old.replace(line, f"{text}\n{line}"))


def run(command, tree):
    """Runs a shell command in the folder `tree`. The environment variables let ccache reuse the object files of other checkouts."""
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    result = subprocess.run(["sh", "-ec", command], cwd=tree, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}\n{result.stdout[-3000:]}{result.stderr[-3000:]}"
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Returns {operator: output of the shell block that names it in CONTRIBUTING.md}. All files of the examples are written before the first shell
    block runs, so that the tree is built only once."""
    needs("git", "as root, apt-get install git")
    if "CMOCKA_LIBRARY:FILEPATH=CMOCKA_LIBRARY-NOTFOUND" in (ROOT / "build/release/CMakeCache.txt").read_text():
        pytest.skip("cmocka, which the C tests need, is not installed: as root, apt-get install libcmocka-dev")
    tree = tmp_path_factory.mktemp("tree")
    copy_tree(tree)
    blocks = list(BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text()))
    for block in blocks:
        if block["path"]:
            put(tree / block["path"], block["place"], block["text"])
    run("build/venv/bin/cmake --preset release", tree)
    return {name: run(block["text"], tree) for name in NAMES for block in blocks if block["language"] == "sh" and name in block["text"]}


@pytest.mark.parametrize("name", NAMES)
def test_the_operator_of_each_example_passes_its_generated_tests(outputs, name):
    assert f"grd_{name}(" in outputs[name]
    assert f"[       OK ] {name}" in outputs[name]
    assert "FAILED" not in outputs[name]


@pytest.mark.parametrize("name, times", [("squareplus", 1), ("triangle", 1), ("alternating_sum", 3)])
def test_the_examples_write_the_name_of_an_operator_no_more_often_than_needed(name, times):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    typed = "".join(block["text"] for block in BLOCK.finditer(text) if block["path"])
    assert len(re.findall(rf"{name}\b", typed)) == times
