"""Checks that the typing stubs have the names, parameters and parameter kinds of the extension, and that mypy accepts the stubs."""
import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradus
from gradus import _C
from operator_calls import OPERATORS

from codegen.python import functions
from codegen.stubs import arguments as stub_arguments

PACKAGE = Path(gradus.__file__).parent
# Names that the stubs leave out: those that Python adds to every object, and those that no program uses directly.
UNSAID = {*dir(object), "__dict__", "__module__", "__file__", "__loader__", "__name__", "__package__", "__spec__", "__setstate__", "__delitem__",
          "__vectorcalloffset__", "__slotnames__", "__weakref__", "nn", "linalg", "special", "fft", "windows"}
GOOD = """
import gradus as torch
from gradus import Size, Tensor
from typing_extensions import assert_type


class Model:
    def __init__(self, width: int) -> None:
        self.weight = torch.randn(width, width, requires_grad=True)
        self.bias = torch.zeros(width, dtype=torch.float32, device="cpu")

    def __call__(self, x: Tensor) -> Tensor:
        hidden = torch.relu(x @ self.weight + self.bias) * 2 - 1 / (x.abs() + 1)
        return torch.where(hidden > 0, hidden, -hidden)


def train(model: Model, batches: list[Tensor]) -> float:
    total = 0.0
    for batch in batches:
        loss = (model(batch[:, None]).view(-1, 4).mean(dim=1, keepdim=True) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            if model.weight.grad is not None:
                model.weight -= 0.1 * model.weight.grad
            model.weight.grad = None
        total += loss.item()
    return total


@torch.no_grad()
def best(x: Tensor) -> int:
    values, indices = x.max(dim=-1)
    same: torch.Tensor = (values == x.max()) & ~torch.isnan(values)
    n: int = x.size(0) * x.shape[1]
    return n + int(indices[same][0])


def test() -> None:
    first, *rest = torch.cat([torch.arange(4), torch.tensor([1, 2])]).to(torch.float64).split(2)
    assert_type(first, Tensor)
    assert_type(torch.ones(2, 3).sum(0).shape + (1,), Size)
    assert_type(torch.relu(first), Tensor)
    assert_type(2 ** first - 1, Tensor)
    assert_type(first.to("cpu").size(), Size)
    assert_type(torch.sort(first).indices == 0, Tensor)
    assert_type(torch.split(first, split_size_or_sections=[1, 1]), tuple[Tensor, ...])
    assert_type(torch.addmm(1, torch.eye(2), 2, torch.eye(2), torch.eye(2)) + torch.add(first, 2, first), Tensor)
    print(train(Model(4), [first, *rest]), best(torch.rand(2, 3, generator=torch.Generator().manual_seed(0))))
"""
BAD = """
import gradus as torch

x = torch.zeros(2, 3)
name: str = torch.relu(x)  # assignment
x.sum(dim="rows")  # arg-type
torch.cat(x)  # arg-type
x.unsqueeze()  # call-arg
x.no_such_method()  # attr-defined
x + "one"  # operator
torch.max(x, x, x, x)  # call-overload
"""


# ---- Signatures in the stubs ------------------------------------------------------------------------------------------

def parameters(arguments):
    """Returns [(name, kind, True if there is a default)] of the parameters in an AST node."""
    plain = [*((a.arg, "positional") for a in arguments.posonlyargs), *((a.arg, "any") for a in arguments.args)]
    found = [(*one, index >= len(plain) - len(arguments.defaults)) for index, one in enumerate(plain)]
    found += [(arguments.vararg.arg, "*", False)] if arguments.vararg else []
    found += [(a.arg, "keyword", default is not None) for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return found + ([(arguments.kwarg.arg, "**", False)] if arguments.kwarg else [])


def definitions(body):
    """Returns {name: list of the AST nodes that define it}. The list has several nodes for overloads."""
    found = {}
    for node in body:
        if isinstance(node, ast.AnnAssign):
            found[node.target.id] = [node]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ImportFrom) and node.module == "gradus._C":
            found.update({alias.asname: [node] for alias in node.names if alias.asname})
    return found


def is_function(node):
    return isinstance(node, ast.FunctionDef) and "property" not in decorators(node)


def decorators(node):
    return {ast.unparse(one) for one in node.decorator_list}


def read(name):
    return definitions(ast.parse((PACKAGE / "_C" / f"{name}.pyi").read_text()).body)


# Name of a module or class -> (its definitions in the stubs, the module or class).
PLACES = {"gradus._C": (read("__init__"), _C), "gradus._C.nn": (read("nn"), _C.nn), "gradus._C.linalg": (read("linalg"), _C.linalg), "gradus._C.special": (read("special"), _C.special), "gradus._C.fft": (read("fft"), _C.fft), "gradus._C.windows": (read("windows"), _C.windows)}
PLACES.update({name: (definitions(nodes[0].body), getattr(_C, name)) for name, nodes in read("__init__").items()
               if isinstance(nodes[0], ast.ClassDef) and hasattr(_C, name)})


# ---- Signatures of the extension ---------------------------------------------------------------------------------------

KINDS = {"POSITIONAL_ONLY": "positional", "POSITIONAL_OR_KEYWORD": "any", "VAR_POSITIONAL": "*", "KEYWORD_ONLY": "keyword", "VAR_KEYWORD": "**"}


def from_text(text):
    """Returns the parameters of a text such as '($self, from=0)'. The parameter `from` is renamed to `from_`, as in the stubs, because `from` is a
    keyword of Python."""
    return parameters(ast.parse(f"def f{text.replace('$', '')}: ...".replace("from=", "from_=")).body[0].args)


def from_inspect(signature):
    return [(p.name, KINDS[p.kind.name], p.default is not p.empty) for p in signature.parameters.values()]


def signatures(function):
    """Returns the signatures of a function, read by inspect. inspect fails if a parameter is named `from`. In that case the signatures are read from
    the beginning of the docstring."""
    try:
        return [from_inspect(inspect.signature(function))]
    except ValueError:
        name, text = function.__name__, getattr(function, "__text_signature__", None)
        heads = [text] if text else [line[len(name):] for line in (function.__doc__ or "").splitlines() if re.fullmatch(rf"{name}\(.*\)", line)]
        return [from_text(head) for head in heads]


# ---- Comparison --------------------------------------------------------------------------------------------------------

def roughly(signature):
    """Returns [(name, kind)] for the parameters of `signature`. The kind of a variadic parameter (*sizes) is replaced by "any". The result does not
    say which parameters have defaults, because an overload in the stubs may have no default for a parameter that has one in the function."""
    return [(name, "any" if kind == "*" else kind) for name, kind, _ in signature]


def further(home):
    """Returns {function name: list of signatures} for the signatures in `python.also` of the schema. The docstrings do not show these signatures."""
    return {name: [from_text(f"({stub_arguments(other, home, False)})") for other in function.others]
            for (place, name), function in functions(OPERATORS).items() if place == home}


FURTHER = {True: further("method"), False: further("function")}


def differences(name, nodes, function, is_method):
    first = 1 if is_method and "staticmethod" not in decorators(nodes[0]) else 0
    stub = [parameters(node.args)[first:] for node in nodes]
    real = [signature[first:] for signature in signatures(function)]
    also = [way[first:] for way in FURTHER[is_method].get(name, [])]
    if not real:
        return [] if name.startswith("_") else [f"{name}: the docstring has no signature"]
    return [f"{name}: the stub lacks {one}" for one in real if one not in stub] + [
        f"{name}: the extension has no {one}" for one in stub if one not in also and roughly(one) not in map(roughly, real)] + [
        f"{name}: the stub lacks the other way {one}" for one in also if one not in stub]


@pytest.mark.parametrize("place", PLACES)
def test_stubs_have_the_names_of_the_extension(place):
    stub, real = PLACES[place]
    # Names such as linalg_solve in gradus._C.linalg, by which pickles refer to functions. The stubs may lack them.
    whole_names = {name for name in vars(real) if name.startswith(place.split(".")[-1] + "_")}
    assert vars(real).keys() - UNSAID - whole_names <= stub.keys()
    assert not [name for name in stub.keys() - vars(real).keys() - UNSAID if not name.startswith("_")]


@pytest.mark.parametrize("place", PLACES)
def test_stubs_have_the_signatures_of_the_extension(place):
    stub, real = PLACES[place]
    found = []
    for name in stub.keys() & vars(real).keys() - UNSAID:
        value, nodes = vars(real)[name], stub[name]
        value = value.__func__ if isinstance(value, staticmethod) else value
        if isinstance(nodes[0], ast.ClassDef):
            found += [] if isinstance(value, type) else [f"{name} is no class"]
        elif is_function(nodes[0]) != callable(value):
            found.append(f"{name} is {'no ' * is_function(nodes[0])}function")
        elif is_function(nodes[0]):
            found += differences(name, nodes, value, isinstance(real, type))
    constructors = stub.get("__new__") or stub.get("__init__")
    if constructors and real.__text_signature__:
        said = [parameters(node.args)[1:] for node in constructors]
        found += [f"{place}: the stub lacks {one}" for one in signatures(real) if one not in said]
    assert not found, "\n".join(found)


def test_mypy_accepts_the_stubs(tmp_path):
    """mypy accepts the stubs and a program in PyTorch's style, infers the types that the program expects, and finds wrong calls."""
    if not importlib.util.find_spec("mypy"):
        pytest.skip("mypy is not installed: build/venv/bin/pip install -r tools/requirements-test.txt")
    for name, text in (("good", GOOD), ("bad", BAD)):
        (tmp_path / f"{name}.py").write_text(text)
    command = [sys.executable, *"-m mypy --strict --follow-imports=silent --cache-dir cache -p gradus._C -m good -m bad".split()]
    environment = {**os.environ, "MYPYPATH": f"{PACKAGE.parent}:{tmp_path}"}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    wrong = [f"bad.py:{number} {line.partition('# ')[2]}" for number, line in enumerate(BAD.splitlines(), 1) if "# " in line]
    assert re.findall(r"^(\S+:\d+): error: .*\[([\w-]+)\]$", said, re.M) == [tuple(line.split()) for line in wrong], said
