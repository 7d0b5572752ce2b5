"""Runs `make where` for every operator of the schema. It must print only source lines that exist and that contain the printed names."""
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from where import Where  # noqa: E402

TOOL = ROOT / "tools" / "where.py"


@pytest.fixture(scope="module")
def where():
    return Where()


@pytest.fixture(scope="module")
def sections(where):
    return {name: where.places(operator) for name, operator in where.operators.items()}


def test_every_printed_line_contains_the_printed_name(where, sections):
    wrong = [place for parts in sections.values() for places in parts.values() for place in places
             if not 0 < place.line <= len(where.sources.lines(place.path)) or place.name not in where.sources.lines(place.path)[place.line - 1]]
    assert not wrong


def test_every_operator_has_the_sections_that_apply_to_it(where, sections):
    lacking = []
    for name, parts in sections.items():
        operator = where.operators[name]
        has_kernel = operator.kernel or operator.law or operator.through
        wanted = {"schema": True, "plan": True, "run": not operator.is_composite, "kernel": has_kernel, "derivative": operator.grads and operator.is_operator,
                  "Python": operator.is_operator and not operator.hidden, "tests": "samples" in operator.test}
        lacking += [f"{name}: {section}" for section, is_wanted in wanted.items() if is_wanted and not parts[section]]
        paths = {place.path for place in parts["run"] + parts["kernel"]}
        if not operator.is_composite and not any(path.startswith("src/") for path in paths):
            lacking.append(f"{name}: no function below src computes it")
    assert not lacking


def test_the_derivative_section_lists_every_formula(where, sections):
    for name, operator in where.operators.items():
        written = operator.grads and operator.is_operator and any(key.startswith("grad") for key in operator.lines)
        keys = {place.name for place in sections[name]["derivative"]}
        assert not written or {key for key in operator.lines if key.startswith(("grad", "fast.", "jvp", "where."))} <= keys, name


@pytest.mark.parametrize("name, section, expected", [
    ("tanh", "kernel", {"vm_tanh_float", "vm_tanh_double", "body.complex"}), ("tanh", "derivative", {"grad.self", "grd_formula_conj", "[sub]"}), ("sum", "kernel", {"sum_lines", "sum_columns"}),
    ("softmax", "kernel", {"lines_softmax"}), ("softmax", "Python", {"[softmax]", "softmax"}), ("add", "kernel", {"[_add]", "[_add_scaled]"}), ("select", "plan", {"plan_select"}),
    ("matmul", "run", {"[mm]", "[bmm]"}), ("sort", "kernel", {"rank"}), ("mm", "kernel", {"packed", "direct"}), ("conv2d", "run", {"[convolution]"}), ("adam_step", "kernel", {"step"}),
    ("_tanh_backward", "schema", {"[tanh]"}), ("tanh", "tests", {"test.ref", "grd_tanh"}),
])
def test_sections_of_selected_operators(sections, name, section, expected):
    assert expected <= {place.name for place in sections[name][section]}


def test_a_python_name_is_resolved_to_its_operators(where):
    assert where.python_operators("nn.functional.gelu") == ["gelu"] and where.python_operators("torch.max") == ["max", "max_dim", "max_other"]
    assert where.python_operators("nn.functional.softmax") == ["softmax"] and where.python_operators("Tensor.tanh_") == ["tanh"]


def test_output_for_a_known_and_an_unknown_operator():
    printed = subprocess.run([sys.executable, TOOL, "tanh"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed[0] == "tanh(Tensor self) -> Tensor" and [line for line in printed[1:] if not line.startswith("  ")] == ["schema", "plan", "run", "kernel", "derivative", "Python", "tests"]
    path, line = printed[2].split()[0].split(":")
    assert (ROOT / path).read_text().splitlines()[int(line) - 1] == "[tanh]"
    unknown = subprocess.run([sys.executable, TOOL, "tahn"], capture_output=True, text=True)
    assert unknown.returncode == 1 and "'tahn' is neither an operator nor a Python name" in unknown.stderr and "tanh" in unknown.stderr


def test_the_run_of_a_view_is_in_a_file_of_views(where, sections):
    """The arguments of an operator, such as the `step` of unfold, are not taken for functions of the same name."""
    for name, operator in where.operators.items():
        if operator.planned_view:
            assert {place.path for place in sections[name]["run"]} <= {"src/op/view.c"} | {place.path for place in sections[name]["plan"]}, name
