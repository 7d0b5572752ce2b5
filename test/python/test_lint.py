"""What lint finds out about operators: names where none belongs, and kernels of entries that are gone."""
import re
import shutil
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import lint  # noqa: E402


def test_what_an_entry_that_is_gone_leaves_behind_is_named(tmp_path):
    for folder in ("schema", "src", "codegen"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    assert list(lint.check_bodies(tmp_path)) == []
    for path in (tmp_path / "schema").glob("*.toml"):
        path.write_text(re.sub(r"^\[(remainder|special_airy_ai)\]\n.*?(?=^\[|\Z)", "", path.read_text(), flags=re.M | re.S))
    body, function = lint.check_bodies(tmp_path)
    assert re.fullmatch(r"src/kernel/cpu/binary.c:\d+: binary_remainder is left behind: .*", body)
    assert re.fullmatch(r"src/kernel/special.h:\d+: grd_math_airy_ai is left behind: .*", function)


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
