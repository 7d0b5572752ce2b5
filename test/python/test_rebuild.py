"""Counts the build steps after a change of the schema, and the lines of generated code. The test measures no time."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, needs

sys.path.insert(0, str(ROOT))
from codegen.schema import read_schema  # noqa: E402
from codegen.template import WIDTH  # noqa: E402

pytestmark = pytest.mark.alone  # these tests temporarily change headers of the build
GENERATED = ("gen", "include", "install", "python/gradus/_C")
NEW_OPERATOR = """
[softsign_like]
sig = "(Tensor self) -> Tensor"
doc = "self / (1 + |self|), elementwise."
formula = "self / (1 + abs(self))"
forms = "functional inplace out"
"""


def generated():
    return {path: (path.read_bytes(), path.stat()) for folder in GENERATED for path in (BUILD / folder).rglob("*") if path.is_file() and path.suffix in (".c", ".h", ".pyi")}


@pytest.fixture
def steps(tmp_path):
    """Returns a function change(family, edit) that edits a copy of schema/<family>.toml, runs the code generator, and returns the list of steps that
    ninja would run after the edit. After the test all generated files are restored with their modification times."""
    needs("ninja", "pip install ninja")
    before = generated()
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    plan = BUILD / "rebuild.ninja"  # no rule makes this copy of build.ninja, so ninja does not run CMake to update it
    shutil.copy(BUILD / "build.ninja", plan)

    def dry_run():
        result = subprocess.run(["ninja", "-C", BUILD, "-f", plan.name, "-n"], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        return [line.partition("] ")[2] for line in result.stdout.splitlines() if line.startswith("[")]

    def change(family, edit):
        assert not dry_run(), "not built: make release"
        path = tmp_path / "schema" / f"{family}.toml"
        path.write_text(edit(path.read_text()))
        subprocess.run([sys.executable, "-B", "-m", "codegen", "--schema", tmp_path / "schema", "--out", BUILD], cwd=ROOT, check=True)
        return dry_run()

    yield change
    plan.unlink()
    for path in generated().keys() - before.keys():
        path.unlink()
    for path, (text, stat) in before.items():
        if path.read_bytes() != text:
            path.write_bytes(text)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("family", ["elementwise", "view"])
def test_a_change_of_documentation_rebuilds_at_most_5_objects(steps, family):
    built = steps(family, lambda text: re.sub(r'doc = ("+)(?=\w)', r'doc = \1Indeed: ', text, count=1))
    objects = [step for step in built if step.startswith("Building C object")]
    assert 1 <= len(objects) <= 5, "\n".join(built)


@pytest.mark.parametrize("family", ["elementwise", "copy"])
def test_a_new_operator_rebuilds_in_at_most_25_steps(steps, family):
    built = steps(family, lambda text: text + NEW_OPERATOR)
    assert any("table.c" in step for step in built)
    assert len(built) <= 25, "\n".join(built)


def test_at_most_80_lines_are_generated_for_each_operator():
    """The number of generated lines of C is at most 80 for each public operator. Lines are at most WIDTH columns wide, except in tables."""
    operators = [o for o in read_schema(ROOT / "schema").values() if o.is_operator and not o.hidden]
    others = {"kernel_levels.h", "cast_rows.h"}  # the lengths of these files depend on the kernel files, instruction-set levels and dtypes, not on the operators
    lines = [line for path, (text, _) in generated().items() if path.suffix != ".pyi" and path.name not in others for line in text.decode().splitlines()]
    assert len(lines) <= 80 * len(operators), f"{len(lines) / len(operators):.1f} lines for an operator"
    wide = [line for line in lines if len(line) > WIDTH]
    assert len(wide) <= len(lines) / 20, "\n".join(wide[:10])
