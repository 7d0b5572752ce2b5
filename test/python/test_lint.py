"""What lint finds out about operators: names where none belongs, and kernels of entries that are gone."""
import re
import shutil
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import lint  # noqa: E402


def test_the_body_of_an_entry_that_is_gone_is_named(tmp_path):
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    shutil.copytree(ROOT / "src" / "kernel" / "cpu", tmp_path / "src" / "kernel" / "cpu")
    assert list(lint.check_bodies(tmp_path)) == []
    for path in (tmp_path / "schema").glob("*.toml"):
        path.write_text(re.sub(r"^\[mish\]\n.*?(?=^\[|\Z)", "", path.read_text(), flags=re.M | re.S))
    found = list(lint.check_bodies(tmp_path))
    assert len(found) == 1 and re.fullmatch(r"src/kernel/cpu/unary.c:\d+: unary_mish is left behind: .*", found[0])


def test_an_operator_named_in_the_generator_is_found(tmp_path, monkeypatch):
    for folder in ("schema", "codegen"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "src" / "dispatch").mkdir(parents=True)
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    assert list(lint.check_names()) == []
    (tmp_path / "codegen" / "special.py").write_text('def is_special(operator):\n    return operator.name.startswith("zeros")\n')
    (tmp_path / "src" / "dispatch" / "special.c").write_text('if (strcmp(op->name, "resize") == 0)\n')
    found = list(lint.check_names())
    assert len(found) == 2 and "codegen/special.py:2: 'zeros'" in found[0] and "src/dispatch/special.c:1: 'resize'" in found[1]
