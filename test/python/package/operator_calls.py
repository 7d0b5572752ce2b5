"""Lists the Python functions and methods of all operators in the schema. Also makes Gradus tensors for the sample arguments that the schema gives for
each operator."""
import ast
import random
import sys
from pathlib import Path

import gradus as torch
from gradus import _C

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from codegen.python import functions, names  # noqa: E402
from codegen.samples import evaluate, sample_texts  # noqa: E402
from codegen.schema import read_schema  # noqa: E402

OPERATORS = read_schema(Path(__file__).resolve().parents[3] / "schema")
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
HOMES = {"function": _C, "nn": _C.nn, "linalg": _C.linalg, "special": _C.special, "fft": _C.fft, "windows": _C.windows, "method": torch.Tensor}


def with_operators_arguments(function, one):
    """Returns a function that takes the arguments in the order of the operator's signature and passes them on to the Python function `function`.
    `one` is the Signature (codegen/python.py) of `function`. Returns `function` itself if its parameters already have this order."""
    if one.order is None:
        return function

    def call(*positional, **by_name):
        names = [a.name for a in one.operator.args]
        given = dict(zip(names, positional)) | {name: value for name, value in by_name.items() if name in names}
        more = {name: value for name, value in by_name.items() if name not in names}
        given = {a.name: a.default for a in one.operator.args if a.has_default and not a.keyword} | given
        found = {p.name: given[names[i]] for p, i in zip(one.parameters, one.order) if i < len(names) and names[i] in given}
        # Passes False for each parameter of the Python function that has no default and that the operator lacks.
        found |= {p.name: False for p, i in zip(one.parameters, one.order) if i >= len(names) and p.default is None}
        for p in one.parameters:
            if p.kind == "PY_KIND_REDUCTION" and isinstance(found[p.name], str):
                if found[p.name] not in REDUCTIONS:
                    raise RuntimeError(f"reduction={found[p.name]!r} has no number")
                found[p.name] = REDUCTIONS[found[p.name]]
        # A method takes `self` by position only.
        first = [found.pop("self")] if "self" in found else []
        return function(*first, **found, **more)
    call.like = lambda other: with_operators_arguments(other, one)
    return call


def public_calls():
    """Returns [(name, callable, operator, form)] with an item for each signature of each Python function and method. `form` is "functional",
    "inplace" or "out"."""
    return [(f"{home}.{name}", with_operators_arguments(getattr(HOMES[home], name), one), one.operator, one.form)
            for (home, name), function in functions(OPERATORS).items() for one in function.signatures if hasattr(HOMES[home], name)]


def tensor(call, domain, dtype, generator):
    """Returns a random tensor for `call`, the AST node of a tensor argument in the schema. B(sizes) makes a bool tensor and I(sizes) an int64 tensor.
    T(sizes) and C(sizes) make a tensor of `dtype`."""
    sizes, kind = [ast.literal_eval(a) for a in call.args], call.func.id
    bounds = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    if kind == "B":
        return torch.randint(0, 2, sizes, generator=generator).bool()
    if kind == "I":
        return torch.randint(bounds.get("lo", 0), bounds.get("hi", 2), sizes, generator=generator)
    low, high = bounds.get("lo", domain[0]), bounds.get("hi", domain[1])
    t = torch.rand(sizes, dtype=torch.float64, generator=generator) * (high - low) + low
    t = t + bounds["ridge"] * torch.eye(*sizes[-2:], dtype=torch.float64) if "ridge" in bounds else t
    return t.to(dtype)


def arguments(operator, text, dtype=torch.float32, seed=0):
    """Returns {name: value} for the arguments in `text`, e.g. "T(2, 3), dim=1". `text` is a sample call from the operator's schema entry."""
    generator = torch.Generator().manual_seed(seed)
    domain = operator.test.get("domain", [-2, 2])
    call = ast.parse(f"f({text.removeprefix('~')})", mode="eval").body
    nodes = dict(zip((a.name for a in operator.args), call.args)) | {k.arg: k.value for k in call.keywords}
    found = {}
    for name, node in nodes.items():
        if isinstance(node, ast.Call):
            found[name] = tensor(node, domain, dtype, generator)
        elif isinstance(node, ast.List) and any(isinstance(e, ast.Call) for e in node.elts):
            found[name] = [tensor(e, domain, dtype, generator) for e in node.elts]
        else:
            value = evaluate(node, operator)
            found[name] = getattr(torch, value) if operator.arg(name).kind == "dtype" and value else value
    return found


def call(function, operator, values, **more):
    """Returns function(*positional, **keywords). Arguments are passed by position up to the first one that `values` lacks or that is keyword-only,
    and all later ones by keyword."""
    positional, by_name = [], {}
    for argument in operator.args:
        if argument.name not in values:
            continue
        if not argument.keyword and len(positional) == operator.args.index(argument):
            positional.append(values[argument.name])
        else:
            by_name[argument.name] = values[argument.name]
    return function(*positional, **by_name, **more)


class Mutations:
    """Changes one argument of a call, or several, to an extreme, empty or aliased value, or to a value of another type."""

    INTEGERS = [0, 1, -1, 2, -2, 3, 31, 64, -64, 2**15, 2**31 - 1, 2**31, -2**31, 2**32, 2**61, 2**62 - 1, 2**62, -2**62, 2**63 - 2, 2**63 - 1, -2**63, -2**63 + 1, 2**63, 2**64 - 1]
    NUMBERS = [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), -float("inf"), 1e300, 1e-300, 9.3e18, -9.3e18, 1j, True, False]
    DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
              "float8_e4m3fn", "float8_e5m2", "qint8"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def integer(self):
        return self.random.choice(self.INTEGERS)

    def integers(self, given):
        if given and self.random.random() < 0.7:
            where = self.random.randrange(len(given))
            return [*given[:where], self.integer(), *given[where + 1:]]
        return [self.integer() for _ in range(self.random.choice([0, 1, 2, 3, 4, 6, 64, 65]))]

    def tensor(self, t):
        pick = self.random.randrange(18)
        rank = self.random.choice([2, 5, 7, 30, 64])
        if pick == 0:
            return t.to(getattr(torch, self.random.choice(self.DTYPES)))
        if pick == 1:
            return t.reshape((1,) * max(0, rank - t.dim()) + tuple(t.shape))
        if pick == 2:
            return t.reshape(tuple(t.shape) + (1,) * max(0, rank - t.dim()))
        if pick == 3:
            return torch.zeros((0,) * self.random.randrange(1, 4) + tuple(t.shape), dtype=t.dtype)
        if pick == 4:
            return t[(0,) * t.dim()] if t.numel() else t.sum()
        if pick == 5:
            return t.to("meta")
        if pick == 6:
            return t[:1].expand(t.shape) if t.dim() else t.expand(3)
        if pick == 7:
            return t.transpose(0, -1) if t.dim() else t.t()
        if pick == 8:
            rank = self.random.randrange(1, 6)
            return torch.as_strided(t if t.numel() else torch.ones(1), (1,) * rank, [abs(self.integer()) % 2**63 for _ in range(rank)], 0)
        if pick == 9:
            return torch.as_strided(t, (0, *t.shape), [abs(self.integer()) % 2**63 for _ in range(t.dim() + 1)], 0)
        if pick == 10:
            return t.flip(0) if t.dim() else t
        if pick == 11:
            return t.detach().requires_grad_() if t.is_floating_point() or t.is_complex() else t
        if pick == 12:
            return torch.complex(t.double(), t.double()).conj() if t.is_floating_point() else t
        if pick == 13:
            return torch.full_like(t, self.random.choice(self.INTEGERS[:-2])) if t.dtype == torch.int64 else torch.full_like(t, self.random.choice([float("nan"), float("inf"), -1, 0, 3e38]))
        if pick == 14:
            return torch.as_strided(t, (max(1, t.numel() // 2), 2), (1, 1)) if t.numel() > 2 and t.is_contiguous() else t
        if pick == 15:
            return t.repeat_interleave(2, dim=-1)[..., ::2] if t.dim() else t
        if pick == 16:
            return torch.zeros((2**62, 0) if self.random.random() < 0.5 else (0, 2**31, 2**31 - 1), dtype=t.dtype)
        sizes = [self.random.choice([1, 2, 3, 2**31, 2**45, 2**61]) for _ in range(self.random.randrange(1, 3))]
        return torch.zeros((), dtype=t.dtype, device="meta").expand(sizes)

    def one(self, argument, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            where = self.random.randrange(len(value))
            return [*value[:where], self.tensor(value[where]), *value[where + 1:]] if self.random.random() < 0.9 else []
        if argument.list:
            return self.integers(value if isinstance(value, list) else [])
        if argument.kind == "dtype":
            return getattr(torch, self.random.choice(self.DTYPES))
        if argument.kind == "bool":
            return not value
        if argument.kind == "device":
            return self.random.choice(["cpu", "meta"])
        if argument.kind == "str":
            return self.random.choice(["", "mean", "sum", "none", "x" * 300])
        if argument.kind == "Generator":
            return torch.Generator()
        return self.integer() if argument.kind == "int" or self.random.random() < 0.6 else self.random.choice(self.NUMBERS)

    def mutated(self, operator, values):
        """Returns a copy of the arguments `values` in which one to three random arguments are changed."""
        values = dict(values)
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            argument = self.random.choice(operator.args) if operator.args else None
            if argument is None:
                break
            try:
                values[argument.name] = self.one(argument, values.get(argument.name))
            except Exception:  # not every tensor can be changed in every way
                pass
        return values
