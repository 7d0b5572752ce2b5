"""Checks docs/call.md. The functions and files that the page names must exist, its pictures must match the code, and a running program must make the
calls that the page describes."""
import re
import sys
from dataclasses import replace

import pytest

from conftest import ROOT, has_extension, needs

sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools"), str(ROOT)]
import way  # noqa: E402
from generator import chains, pictures  # noqa: E402
from sources import Sources  # noqa: E402

PAGE = (ROOT / "docs" / "call.md").read_text()
TEXT = re.sub(r"```.*?```", "", PAGE, flags=re.S)
CODE = chains.Code()

pytestmark = pytest.mark.skipif(not has_extension(), reason="the chains begin in the Python extension, which is not built")


def spans():
    return re.findall(r"`([^`\n]+)`", TEXT)


def test_every_path_named_on_the_page_exists():
    paths = [span for span in spans() if re.fullmatch(r"[\w./]+(/\w*|\.(?:py|c|h|md|toml))", span)]
    assert len(paths) >= 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_function_named_on_the_page_is_defined():
    """Every word with an underscore on the page is a function, the table of kernels, or an attribute of a Tensor."""
    sources = Sources()
    named = {span for span in spans() if re.fullmatch(r"[a-z]+_\w+", span)}
    known = {name for path in sources.paths("python/_C/*.[ch]", f"{chains.GENERATED}calls/*.h") for name in CODE.file(path)[1]} | sources.defined.keys()
    known |= {"grad_fn", *re.findall(r"^extern GRD_HIDDEN const struct \w+ \*(\w+)", sources.text("src/kernel/table.h"), re.M)}
    assert len(named) >= 10
    assert sorted(named - known) == []


@pytest.mark.parametrize("name", chains.CHAINS)
def test_each_function_of_a_chain_is_named_by_its_caller(name):
    assert list(chains.problems(chains.CHAINS[name], CODE)) == []


def with_other_op_add(changes):
    """Returns the documented chain of calls from gradus.add(x, y) to its kernel, with `changes` made to the step of the function op_add."""
    return replace(chains.ADD, steps=[replace(step, **changes) if step.function == "op_add" else step for step in chains.ADD.steps])


@pytest.mark.parametrize("changes, problem", [
    ({"function": "op_added"}, "op_added is not defined in build/release/gen/elementwise.c"), ({"path": "src/op/gone.c"}, "op_add is not defined in src/op/gone.c"),
    ({"link": None}, "op_add is not named by call_o_ttS in build/release/gen/calls/o_ttS.h"),
    ({"link": ("build/release/gen/elementwise.c", "grd_operator_tanh", "kernel")}, "op_add is not named by grd_operator_tanh in build/release/gen/elementwise.c"),
    ({"link": ("build/release/gen/elementwise.c", "grd_operator_add", "nothing")}, "op_add: no caller reads nothing"),
])
def test_a_chain_with_a_wrong_step_is_reported(changes, problem):
    found = list(chains.problems(with_other_op_add(changes), CODE))
    assert f"gradus.add(x, y): {problem}" in found


@pytest.mark.parametrize("name, stop", [(name, stop) for name, chain in chains.CHAINS.items() for stop in chain.stops])
def test_a_chain_equals_the_call_stack_of_a_running_program(name, stop):
    """The documentation shows the chain of calls from the interpreter to the function `stop`. The call stack in gdb must have these functions in the
    same order. Inlined functions may be missing, because they have no frame in a build without debug information."""
    needs("gdb", "as root, apt-get install gdb")
    chain = chains.CHAINS[name]
    drawn = [chain.steps[i].function for i in chain.path_to(next(i for i, step in enumerate(chain.steps) if step.function == stop))]
    stack = [function for function, _, _ in reversed(way.frames(ROOT / "build/release", chain.program, stop))]
    stack = stack[next(i for i, function in enumerate(stack) if function in drawn):]
    assert len(stack) >= 4 and [function for function in drawn if function in stack] == stack


def test_the_picture_of_the_layers_shows_the_include_lines_of_the_sources():
    floors = pictures.floors()
    assert set(floors) == {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    for floor in floors.values():
        assert set(floor.includes) <= {*floor.allowed, floor.name, "public", "generated"}, floor.name
        assert all(floors[name].level < floor.level for name in floor.allowed), floor.name
    svg = pictures.floors_picture()
    assert all(f">{name}</text>" in svg and f">{floor.files} files</text>" in svg for name, floor in floors.items())


def test_the_picture_of_the_backward_graph_shows_the_order_of_execution():
    """The picture numbers the nodes of a backward graph in the order in which they run. The page shows a program that prints the same
    order. test_documents.py runs the program."""
    nodes = pictures.graph(pictures.backward_program())
    printed = re.search(r"```text\n(.*?)```", PAGE, re.S)[1].splitlines()
    assert pictures.run_order(nodes) == [line.rpartition("::")[2] for line in printed if not line.startswith("tensor")]
    assert sorted(node.order for node in nodes) == list(range(1, len(nodes) + 1))
    assert all(node.made for node in nodes)
    assert all(node.order < nodes[below].order for node in nodes for below in node.edges)


def test_the_page_has_every_picture():
    page = pictures.with_pictures(PAGE)
    assert set(pictures.PLACE.findall(PAGE)) == set(pictures.PICTURES) and "<!-- picture" not in page
    for name, chain in chains.CHAINS.items():
        figure = re.search(rf'<figure class="picture" id="picture-{name}">(.*?)</figure>', page, re.S)[1]
        assert re.findall(r'class="name">(\w+)<', figure) == [step.function for step in chain.steps]
        assert "\n\n" not in figure
