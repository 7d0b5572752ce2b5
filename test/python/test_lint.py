"""Checks that tools/lint.py reports operator names in the generator, kernels whose schema entry was removed, and Python functions that pass the
result of one operator to another."""
import re
import shutil
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import lint  # noqa: E402
import numerics  # noqa: E402


def test_kernels_of_a_removed_schema_entry_are_reported(tmp_path):
    for folder in ("schema", "src", "codegen"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    assert list(lint.check_bodies(tmp_path)) == []
    for path in (tmp_path / "schema").glob("*.toml"):
        path.write_text(re.sub(r"^\[(remainder|special_airy_ai)\]\n.*?(?=^\[|\Z)", "", path.read_text(), flags=re.M | re.S))
    body, function = lint.check_bodies(tmp_path)
    assert re.fullmatch(r"src/kernel/cpu/binary.c:\d+: binary_remainder is left behind: .*", body)
    assert re.fullmatch(r"src/kernel/special.h:\d+: grd_math_airy_ai is left behind: .*", function)


def test_operator_names_in_the_generator_and_dispatcher_are_reported(tmp_path, monkeypatch):
    for folder in ("schema", "codegen"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "src" / "dispatch").mkdir(parents=True)
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    assert list(lint.check_names()) == []
    (tmp_path / "codegen" / "special.py").write_text('def is_special(operator):\n    return operator.name.startswith("zeros")\n')
    (tmp_path / "src" / "dispatch" / "special.c").write_text('if (strcmp(op->name, "resize") == 0)\n')
    found = list(lint.check_names())
    assert len(found) == 2 and "codegen/special.py:2: 'zeros'" in found[0] and "src/dispatch/special.c:1: 'resize'" in found[1]


COMPOSITIONS = {
    "nn/functional/_softness.py": """
from gradus import _C
from gradus._C import exp


def result_as_operand(input):
    return (input * 2).sigmoid()


def through_a_variable(x, y):
    total = _C.add(x, y)
    first = total[0].view(-1)
    return first + y


def imported_by_name(values):
    return 1 / exp(values)


def one_operator_and_sizes(input, target):
    count = input.size(0) * target.numel() - 1
    return _C.add(input.reshape(-1, 2), target, alpha=count).item() / count


class Doubled(_C.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
""",
    "distributions/softness.py": "def formula(x):\n    return (x * 2).sigmoid()\n",
}


def test_compositions_of_operators_in_python_are_reported(tmp_path):
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    for name, text in COMPOSITIONS.items():
        (tmp_path / "python" / "gradus" / name).parent.mkdir(parents=True)
        (tmp_path / "python" / "gradus" / name).write_text(text.lstrip())
    found = list(numerics.check(tmp_path))
    file = "python/gradus/nn/functional/_softness.py"
    assert found == [
        f"{file}:24: Doubled has a gradient of its own: say it in the schema",
        f"{file}:6: '(input * 2).sigmoid()' composes operators: say it in the schema",
        f"{file}:12: 'first + y' composes operators: say it in the schema",
        f"{file}:16: '1 / exp(values)' composes operators: say it in the schema",
    ]


def test_the_python_package_contains_no_composition_of_operators():
    assert list(numerics.check()) == []
