"""The calls that docs/call.md follows, function by function, and the check that the code has them so.

A chain is written as an indented list: a line is called by the nearest line above it that has one level less. `problems` reads the definitions of the code and
says what does not hold, so a renamed function or a changed caller fails test/python/test_call_document.py.
"""
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from sources import definitions  # noqa: E402

BUILD = "build/release/"
GENERATED = BUILD + "gen/"
MEMBER = re.compile(r"(?:->|\.)(\w+)|\b(\w+)\(")


@dataclass(frozen=True)
class Step:
    """One function of a chain. `link` is set where the caller does not name the function but finds it: (the file and the name of the table, macro or function that names
    it, the member or name through which a caller gets there)."""
    depth: int
    function: str
    path: str
    does: str
    link: tuple[str, str, str] | None = None

    @property
    def shown_path(self):
        return self.path.removeprefix(BUILD)

    @property
    def floor(self):
        """The floor of the file, "python" for the extension, "generated" for what codegen writes. Generated rows of kernels are a part of src/kernel, which includes them."""
        parts = Path(self.path).parts
        return parts[1] if parts[0] == "src" else "python" if parts[0] == "python" else "kernel" if self.path.endswith("_rows.h") else "generated"


@dataclass
class Chain:
    """`program` makes the call, which begins at the first step; gdb stops in each of `stops` and finds there the steps above it."""
    title: str
    program: str
    stops: list[str]
    steps: list[Step] = field(default_factory=list)

    def caller(self, index):
        """The index of the step that calls step `index`; None for the first."""
        return next((i for i in range(index - 1, -1, -1) if self.steps[i].depth == self.steps[index].depth - 1), None)

    def path_to(self, index):
        """The indices of the steps that are on the stack in step `index`, the outermost first."""
        found = []
        while index is not None:
            found.insert(0, index)
            index = self.caller(index)
        return found


def chain(title, program, stops, text):
    """Reads a chain: `function | path | what it does`, or with a fourth part `table in path, through member`."""
    result = Chain(title, program, stops)
    for line in text.strip("\n").splitlines():
        function, path, does, *link = (part.strip() for part in line.split("|"))
        found = re.fullmatch(r"(\w+) in (\S+), through (\w+)", link[0]) if link else None
        link = (found[2].replace("gen/", GENERATED, 1), found[1], found[3]) if found else None
        path = path.replace("gen/", GENERATED, 1) if path.startswith("gen/") else path
        result.steps.append(Step(len(line) - len(line.lstrip()), function, path, does, link))
    return result


ADD = chain("gradus.add(x, y)", "import gradus; x = gradus.ones(3); y = gradus.ones(3); gradus.add(x, y)", ["hidden_add_block"], """
call_function_add | gen/python_functions.c | Python calls it: one function for each Python name
 py_call | python/_C/call.c | Sees two exact Tensors and no keywords: opens a scope, parses nothing
  py_call_binary | python/_C/call.c | Calls with the GIL released if there are many elements
   binary_add | gen/python_functions.c | The C call of this name | functions in gen/python_functions.c, through binary
    grd_with_add | gen/elementwise.c | The entry function of the C API: alpha has its default, 1 | grd_named_add in build/release/include/gradus/ops/add.h, through grd_add
     call_o_ttS | gen/calls/o_ttS.h | Takes the union of the key sets of x and y
      grd_enter | src/dispatch/op.h | Finds the kernel for the highest key, here CPU
      op_add | gen/elementwise.c | The kernel for CPU and META | grd_operator_add in gen/elementwise.c, through kernel
       grd_op_binary | src/op/elementwise.c | The law of elementwise operators, two inputs
        run_shortcut | src/op/elementwise.c | Small contiguous operands of one dtype: no planning
         small_result | src/op/elementwise.c | Makes tensor, storage and data in one block
         hidden_add_block | gen/binary_rows.h | The loop: compiled once for each dtype and instruction set | grd_binary_row in gen/binary_rows.h, through block
      grd_leave_written | src/dispatch/op.h | Drops temporaries, moves the result to the caller's scope
  py_take | python/_C/tensor_object.c | Gives the result its Python object, closes the scope
""")

RECORDED = chain("gradus.add(x, y), recorded", "import gradus; x = gradus.ones(3, requires_grad=True); y = gradus.ones(3); gradus.add(x, y)",
                 ["hidden_add_block", "grd_op_node_new"], """
grd_with_add | gen/elementwise.c | Reached as before
 call_o_ttS | gen/calls/o_ttS.h | x has the AUTOGRAD key, for which no typed kernel exists
  boxed_o_ttS | gen/calls/o_ttS.h | Puts the arguments into an array of struct grd_value
   grd_boxed | src/dispatch/dispatch.c | The call with boxed values, from its entry to its end
    call_entered | src/dispatch/dispatch.c | Refuses arguments that cannot be
     call_boxed | src/dispatch/dispatch.c | Finds the boxed kernel of the key
      grd_autograd_record | src/autograd/record.c | The one kernel of AUTOGRAD, for all operators | grd_autograd_init in src/autograd/start.c, through boxed
       run_below | src/autograd/record.c | Runs the operator with AUTOGRAD switched off
        grd_dispatch_boxed | src/dispatch/dispatch.c | Dispatches again: the highest key left is CPU
         unbox_o_ttS | gen/calls/o_ttS.h | Takes the arguments out of the array | grd_operator_add in gen/elementwise.c, through unbox
          op_add | gen/elementwise.c | From here on as before, to the loop | grd_operator_add in gen/elementwise.c, through kernel
           grd_op_binary | src/op/elementwise.c | The law of elementwise operators
            run_shortcut | src/op/elementwise.c | No planning
             hidden_add_block | gen/binary_rows.h | The loop | grd_binary_row in gen/binary_rows.h, through block
       record_results | src/autograd/record.c | x requires a gradient, so the result gets a node
        record_result | src/autograd/record.c | Skips results whose dtype carries no gradient
         grd_op_node_new | src/autograd/op_node.c | Makes the node: edges to the inputs, saved values
         grd_give_history | src/autograd/variable.h | Sets the result's grad_fn
    grd_leave | src/dispatch/op.h | Moves the result to the caller's scope, as before
""")

BACKWARD = chain("loss.backward()", "import gradus; x = gradus.ones(3, requires_grad=True); y = x.tanh(); y.sum().backward()", ["tanh_backward", "accumulator_run"], """
tensor_backward | python/_C/autograd.c | Python calls it
 run_backward_alone | python/_C/autograd.c | No arguments: releases the GIL for the whole pass
  grd_backward | src/autograd/backward.c | The entry function of the C API
   differentiate | src/autograd/backward.c | Checks that the C stack has room
    run_request | src/autograd/backward.c | Starts from the loss with a gradient of 1
     execute | src/autograd/backward.c | Counts the edges into every node that is reached
      grd_pass_run | src/autograd/engine.c | Runs the nodes; several device types get threads
       run_alone | src/autograd/engine.c | Takes the latest ready node from a heap, until none is left
        run_entry | src/autograd/engine.c | One node, from its gradients to those of the nodes below
         run_node | src/autograd/engine.c | Calls the node, and fits its results to the edges
          op_node_run | src/autograd/op_node.c | Unpacks what was saved: a changed version is an error | op_class in src/autograd/op_node.c, through run
           tanh_backward | gen/elementwise.c | The formula of the schema entry | tanh_derivative in gen/elementwise.c, through backward
            grd_op_gradient | src/op/elementwise.c | The formula in one loop, if nothing is recorded
         deliver | src/autograd/engine.c | Hands each gradient on; a node that waits for no more is ready
          complete | src/autograd/engine.c | Queues the node; a leaf without hooks runs at once
           run_last | src/autograd/engine.c | Calls the node of a leaf
            accumulator_run | src/autograd/variable.c | Adds to the leaf's .grad, or takes the gradient over | accumulator_class in src/autograd/variable.c, through run
""")

CHAINS = {"add": ADD, "recorded": RECORDED, "backward": BACKWARD}


class Code:
    """The definitions of single files."""

    def __init__(self, root=ROOT):
        self.root, self.files = root, {}

    def file(self, path):
        """The text of a file and its definitions by name; "" and none where there is no such file."""
        if path not in self.files:
            text = (self.root / path).read_text() if (self.root / path).is_file() else ""
            found = {}
            for one in definitions(path, text):
                found.setdefault(one.name, []).append(one)
            self.files[path] = text, found
        return self.files[path]

    def bodies(self, path, name):
        return [one.body for one in self.file(path)[1].get(name, [])]

    def line(self, path, name):
        return self.file(path)[1][name][0].line

    def initializers(self, path, name):
        """What stands between the braces of a table."""
        return re.findall(rf"^[^\n;]*\b{name}\)?(?:\[[^\]\n]*\])* = (\{{.*?);$", self.file(path)[0], re.M | re.S)


def names(text, word):
    return re.search(rf"\b{word}\b", text) is not None


def problems(chain, code):
    """What does not hold, a sentence each: every function is defined in its file, and its caller names it or reads the member of the table that does."""
    for index, step in enumerate(chain.steps):
        here = f"{chain.title}: {step.function}"
        if not code.bodies(step.path, step.function):
            yield f"{here} is not defined in {step.path}"
        callers = [chain.steps[i] for i in chain.path_to(index)[:-1]]
        above = [body for one in callers for body in code.bodies(one.path, one.function)]
        if not callers:
            continue
        if step.link is None:
            if not any(names(body, step.function) for body in code.bodies(callers[-1].path, callers[-1].function)):
                yield f"{here} is not named by {callers[-1].function} in {callers[-1].path}"
            continue
        path, table, member = step.link
        if not any(names(text, step.function) for text in [*code.initializers(path, table), *code.bodies(path, table)]):
            yield f"{here} is not named by {table} in {path}"
        if not any(member in match.groups() for body in above for match in MEMBER.finditer(body)):
            yield f"{here}: no caller reads {member}"
