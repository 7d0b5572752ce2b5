"""Reads the operators in schema/*.toml and checks them. Every error text names the file and the line.

This file defines the grammar of signatures and the keys of an entry. ctype.py defines the C types and formula.py the language of formulas.
"""
import doctest
import re
from dataclasses import dataclass, field
from pathlib import Path

from codegen import gradient

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11 has no tomllib
    import tomli as tomllib

KINDS = {"Tensor", "Scalar", "int", "float", "bool", "dtype", "device", "str", "Generator"}
# Kind of elementwise kernel -> number of input tensors. gradient.py adds kernels of a further kind, "gradient", with two or three input tensors.
KERNELS = {"unary": 1, "binary": 2, "ternary": 3}
RULES = {"promote", "float", "compare", "bool", "keep"}
OVERLAPS = ("any", "element", "none")  # memory that out= may share with the inputs (enum grd_overlap in src/op/plan.h)
# A law is a pair of C functions, one for the checks and one for the computation, that many operators share. Maps the name of each law to the values
# that the key `type` of a schema entry may have with it.
LAWS = {"lines": {"keep", "sum"}, "reduce": {"keep", "sum", "mean", "float", "bool", "int64"}}
REDUCE_KEYS = {"passes", "empty", "none", "refuses", "name"}  # keys below `reduce` (struct grd_reduce_rule in src/op/reduce.h)
REDUCE_KINDS = {"first", "sum", "prod", "difference", "abs", "square", "exp", "nonzero", "max", "min", "find"}
REDUCE_FINISHES = {"", "divide", "mean", "root", "divide_root", "finite", "log", "any", "all"}
CATEGORIES = {"bool", "integer", "float", "complex"}
# Category of dtypes -> keys of `body` that may hold the C code for an element of such a dtype, in order of preference. "real" stands for all
# categories but complex, and bool may use the code for integers.
BODIES = {"bool": ("bool", "integer", "real"), "integer": ("integer", "real"), "float": ("float", "real"), "complex": ("complex",)}
REFUSALS = {"RuntimeError": "GRD_ERROR_RUNTIME", "NotImplementedError": "GRD_ERROR_NOT_IMPLEMENTED"}
FORMS = ("functional", "inplace", "out")
# Value of `grad` -> C function that runs instead of a backward function and raises PyTorch's error.
UNDERIVED = {"missing": "grd_derivative_missing", "not implemented": "grd_derivative_not_implemented"}
# Values of `jvp` that name a rule of forward mode (enum grd_forward in src/autograd/derivative.h). "refuse" stands for GRD_FORWARD_ABSENT: a call
# with a tangent raises an error.
FORWARD = ("zero", "pointwise", "lines", "linear", "multilinear", "adjoint", "given", "taken", "refuse")
KEYS = {"sig", "doc", "example", "type", "kernel", "expr", "body", "save", "dtypes", "formula", "through", "composite", "grad", "jvp", "forms", "view", "everywhere", "scalar", "words", "mask", "divides", "commutes", "refuse", "number", "operator", "block", "light", "bits", "law", "reduce", "plan", "whole", "run", "check", "shortcut", "overlap", "providers", "fills", "node", "out", "version", "alone", "autocast", "batch", "symbol", "inlined", "where", "fast", "hidden", "python", "test"}
# Keys of a schema entry that are copied to the field of Operator with that name.
AS_WRITTEN = ("kernel", "expr", "save", "number", "mask", "divides", "commutes", "light", "bits", "formula", "through", "composite", "law", "whole", "run", "check", "shortcut", "providers", "overlap", "view",
              "everywhere", "alone", "autocast", "version", "fills", "scalar", "symbol", "inlined")
# An entry with none of these keys is implemented by two functions in C, plan_<name> (checks and shapes) and run_<name> (the computation).
IMPLEMENTED = {"kernel", "formula", "through", "composite", "law", "whole"}
PYTHON_KEYS = {"name", "in", "inplace", "arguments", "numbers", "values", "lists", "tuple", "none", "extra", "also", "named"}
HOMES = ("function", "method", "nn", "linalg", "special", "fft", "windows")
INNER = HOMES[2:]  # submodules of gradus._C
# Name of a string argument -> description of the values that it accepts, for all operators with such an argument. An entry may override the
# description.
WORDS = {
    "reduction": '"none", "mean" or "sum"',
    "memory_format": '"preserve", "contiguous", "channels_last" (of 4 dimensions) or "channels_last_3d" (of 5)',
    "rounding_mode": '"trunc" or "floor"; absent: not rounded',
}
# OUT_DTYPES are the rules for the dtype of out= (enum grd_out_dtype), and OUT_TEXTS are error texts that several operators share. In the texts
# {out} and {result} are replaced by the dtypes of out= and of the result, {c out} and {c result} by the names of their C++ types.
OUT_DTYPES = ("result", "given", "self", "real", "promoted", "rest", "bool", "int64", "complex", "floating", "castable")
OUT_TEXTS = {
    "expected": "Expected out tensor to have dtype {c result}, but got {c out} instead",
    "found": "Found dtype {out} but expected {result}",
}
# Values of `batch` that name a rule for calls under vmap (enum grd_batch_rule in src/dispatch/op.h). Any other value is a formula over the underlying
# tensors, which have the batch as dimension 0. A composite without a rule runs unchanged, because the operators that it calls have rules.
BATCH_RULES = ("align", "shift", "trailing", "random", "loop", "refuse")
AUTOCAST = ("lower", "float32", "promote")  # rules by which autocast casts arguments (enum grd_autocast_rule in src/dispatch/op.h)
BATCH_REFUSALS = {"dynamic": "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}. Please file an issue at "
                             "https://github.com/pytorch/pytorch/issues if you need this feature.",
                  "fast": "vmap: {name} is the short form of a derivative, which batch tensors do not take."}
TEST_KEYS = {"ref", "domain", "tol", "ulps", "samples", "grad", "complex", "contiguous", "skip", "batch"}


class SchemaError(Exception):
    pass


@dataclass
class Argument:
    name: str
    kind: str  # one of KINDS
    list: bool = False
    optional: bool = False  # True if the type in the signature ends with "?"
    default: object = None
    has_default: bool = False
    keyword: bool = False  # True if the argument follows "*" in the signature and so is keyword-only in Python

    @property
    def is_tensor(self):
        return self.kind == "Tensor"

    @property
    def may_be_absent(self):
        return self.optional or (self.has_default and self.default is None)


@dataclass
class Operator:
    name: str
    file: str
    line: int
    signature: str
    args: list
    results: list  # names of the results; ["result"] for one unnamed result
    returns_list: bool
    doc: str
    example: str = ""  # a doctest: lines that begin with ">>> ", each followed by its output
    kernel: str = None
    rule: str = None
    mask: bool = False
    divides: bool = False  # True if integer division by zero is an error
    # True if the operator is commutative. Then the kernel of the entry that the field `number` names also runs if the first input is a number, and
    # not only if the last input is one.
    commutes: bool = False
    # {category: (error code, text)} for a category of dtypes that the operator refuses with PyTorch's error text instead of the usual one.
    refuse: dict = field(default_factory=dict)
    # Name of the schema entry whose kernel runs instead if the last input is a number and the tensors are of a 16-bit float dtype. That kernel does
    # not round the number to the tensors' dtype.
    number: str = None
    # Categories of dtypes for which `body` is C code for n contiguous elements instead of one.
    block: frozenset = frozenset()
    # True if moving the elements takes longer than the arithmetic. The kernel then has special loops for large results, for operands of one element,
    # and for bfloat16.
    light: bool = False
    # C expression for 16-bit floats. It computes the bits of the result from the bits of the input elements, which it calls x, y and z.
    bits: str = None
    expr: str = None  # expression for an element of the result (expression.py)
    body: dict = field(default_factory=dict)  # category -> C expression that computes one element in the kernel
    # The value that a derived gradient formula reads, and that the node therefore saves: "self" (the argument) or "result".
    save: str = "self"
    dtypes: frozenset = frozenset()
    formula: str = None
    # True if the operator is a C function that only calls operators. If the entry has `grad` formulas, autograd records a call as one node;
    # otherwise it records the operators that this function calls.
    composite: bool = False
    # Argument name -> gradient formula. None for a composite without `grad`, because autograd records the operators that it calls.
    grads: dict = None
    # Argument name -> faster gradient formula, used unless the gradient itself is to be differentiated (create_graph).
    fast: dict = field(default_factory=dict)
    where: dict = field(default_factory=dict)  # name that gradient formulas use -> its formula
    # Argument name -> call of a kernel that computes the gradient in one loop over the elements. Added by gradient.py.
    fused: dict = field(default_factory=dict)
    # Rule for tangents in forward mode: one of FORWARD, or {argument name: formula}. None for a composite, because the operators that it calls have
    # rules.
    jvp: object = None
    forms: tuple = ("functional",)
    view: bool = False
    # True if one kernel serves all devices. Such an operator, e.g. a view, does not itself read or write device memory.
    everywhere: bool = False
    scalar: bool = False
    words: dict = field(default_factory=dict)  # string argument -> description of the values that it accepts
    # The keys python.* of the entry, which say under which names and with which parameters Python offers the operator (PYTHON_KEYS).
    python: dict = field(default_factory=dict)
    test: dict = field(default_factory=dict)
    lines: dict = field(default_factory=dict)  # key of the schema entry -> line number in the file
    autocast: str = None  # one of AUTOCAST, the rule by which autocast casts floating-point tensor arguments; None if they are not cast
    # True if each call increments the version counter of the tensor that it writes. False if the kernel itself increments the
    # counter when it writes, because some calls write nothing.
    version: bool = True
    # True if the in-place form changes the sizes or the address of the memory of its tensor. No other thread may use the tensor during such a call.
    alone: bool = False
    out: dict = field(default_factory=dict)  # {"dtype": rule of OUT_DTYPES, "texts": error text for each result}
    symbol: str = ""  # the operator's symbol in formulas, such as "+" or "unary -"
    inlined: str = ""  # C function in autograd/formula.h that derivatives call instead of the operator
    # A key of LAWS, or None if the operator has no law. A law is a pair of C functions, one for the checks and one for the computation, that many
    # operators share.
    law: str = None
    # {key of REDUCE_KEYS: its value in the entry} for an operator with the law "reduce", i.e. a reduction. Otherwise empty.
    reduce: dict = field(default_factory=dict)
    # True if the C function plan_<name>, which checks a call and determines the result's shape, is written by hand. A string is instead the call of a
    # plan function that the operator shares with others, in the syntax of formulas.
    plan: object = False
    # The reason why op_<name> is written in C as one function, instead of plan_<name> for the checks and run_<name> for the computation.
    whole: str = None
    # Name, without the prefix run_, of a C function that computes the results and that several operators share. Its only argument is the call's
    # struct grd_plan.
    run: str = None
    # True if there is a C function check_<name>, which reads elements, e.g. to check indices. It runs after plan_<name> and before run_<name>. A
    # string <text> instead names the function check_<text>, which several operators share and whose only argument is the call's struct grd_plan.
    check: object = False
    # True if there is a C function shortcut_<name>, which op_<name> tries before plan_<name> and which returns NULL if it does not handle the call.
    shortcut: bool = False
    # Names of the implementations of the computation, in the order in which they are tried, e.g. "blas native". None if there is only "native".
    providers: str = None
    # One of OVERLAPS: which memory out= may share with the input tensors.
    overlap: str = "any"
    # Kind of call -> name of the autograd node, for nodes that do not have the usual name (for add it would be AddBackward0). The key "" stands for
    # all calls, the name of an argument for calls that give this argument, and "inplace" for in-place calls.
    nodes: dict = field(default_factory=dict)
    is_operator: bool = True  # False for a schema entry that only defines a kernel for other operators
    # None, "given" or "computed" (enum grd_fills). None: out= always gets the sizes of the result. Otherwise the result is one-dimensional, and out=
    # keeps its own sizes if it has as many elements as the result. "given": an argument of the operator is the number of elements of the result.
    # "computed": the operator computes this number.
    fills: str = None
    # The reason why gradient formulas call hidden operators, i.e. operators whose names begin with "_" and that are not public.
    reason: str = None
    underived: str = None  # a key of UNDERIVED if the operator has no gradient and backward raises an error; otherwise None
    # NAME if the entry has grad = "of NAME". The operator's gradient is then the gradient of the composite operator NAME, found by recording the
    # operators that NAME calls. The operator's arguments begin with the arguments of NAME, and its results with the results of NAME.
    specification: str = None
    # How the operator runs under vmap: one of BATCH_RULES, or a formula over the underlying tensors, which have the batch as dimension 0. None for a
    # composite, because the operators that it calls have rules.
    batch: str = None
    batch_reason: str = ""  # the reason for the rule "loop", or the error text for the rule "refuse"
    # A formula that calls other operators without dispatch. Each call becomes a direct call of op_<name>(out, ...), the C function that implements
    # the called operator.
    through: str = None

    @property
    def has_out(self):
        return "inplace" in self.forms or "out" in self.forms

    @property
    def inputs(self):
        """Returns the number of input tensors of the kernel."""
        return sum(a.is_tensor for a in self.args)

    @property
    def gives_bool(self):
        return self.rule in ("compare", "bool")

    @property
    def planned(self):
        return self.law is not None or (self.plan and not self.view)

    @property
    def planned_view(self):
        """True for a view operator with a function plan_<name> in src/op/view.c, which computes the view's sizes and strides. A view computes no
        elements, so it has no function run_<name>."""
        return self.plan and self.view

    @property
    def elementwise(self):
        return f"elementwise_{self.c_name}"  # name of the C struct grd_elementwise

    @property
    def is_composite(self):
        return self.composite or self.formula is not None

    @property
    def schema(self):
        return self.name + self.signature

    @property
    def hidden(self):
        return self.name.startswith("_")

    @property
    def c_name(self):
        """Returns the operator's name for use in C identifiers. A leading underscore becomes "hidden_", because C++ reserves names with two
        consecutive underscores."""
        return "hidden" + self.name if self.hidden else self.name

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)

    def error(self, message, key="sig"):
        return SchemaError(f"{self.file}:{self.lines.get(key, self.line)}: [{self.name}] {message}")


def split_top(text, separator=","):
    """Splits a text at separators that are outside brackets and quotes."""
    parts, depth, quote, current = [], 0, None, ""
    for c in text:
        if quote:
            quote = None if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if c == separator and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    if current.strip():
        parts.append(current.strip())
    return parts


def parse_default(text):
    constants = {"None": None, "True": True, "False": False}
    if text in constants:
        return constants[text]
    if text[0] in "'\"":
        return text[1:-1]
    if text[0] == "[":
        return [int(x) for x in split_top(text[1:-1])]
    return float(text) if re.search(r"[.e]", text) or "inf" in text else int(text)


def parse_argument(text):
    match = re.fullmatch(r"(\w+)(\?)?(\[\])?(\?)? (\w+)(?:=(.+))?", text)
    if not match or match[1] not in KINDS:
        raise ValueError(f"cannot read argument '{text}'")
    kind, inner, is_list, outer, name, default = match.groups()
    if inner and is_list:
        raise ValueError(f"lists of optionals are not supported: '{text}'")
    argument = Argument(name, kind, bool(is_list), bool(inner or outer))
    if default is not None:
        argument.has_default, argument.default = True, parse_default(default)
    if is_list and kind not in ("Tensor", "int"):
        raise ValueError(f"lists are of Tensor or int: '{text}'")
    return argument


def parse_signature(text):
    """Returns (arguments, result names, returns_list) for a signature such as '(Tensor self, *, Scalar alpha=1) -> Tensor'."""
    match = re.fullmatch(r"\((.*)\) -> (.+)", text.strip(), re.S)
    if not match:
        raise ValueError(f"signature must read '(arguments) -> results', not '{text}'")
    args, keyword = [], False
    for part in split_top(match[1]):
        if part == "*":
            keyword = True
        else:
            args.append(parse_argument(part))
            args[-1].keyword = keyword
    if len({a.name for a in args}) != len(args):
        raise ValueError("two arguments have the same name")
    result = match[2].strip()
    if result == "Tensor":
        return args, ["result"], False
    if result == "Tensor[]":
        return args, ["result"], True
    names = re.findall(r"Tensor (\w+)", result)
    if not names or re.sub(r"Tensor \w+|[(), ]", "", result):
        raise ValueError(f"results must be Tensor, Tensor[] or (Tensor a, Tensor b), not '{result}'")
    return args, names, False


def line_numbers(text):
    """Returns {operator: {key: line number}} for the text of a TOML file. The key '' stands for the line of the schema entry's header."""
    found, current = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\[([\w\"]+)\]", line)
        key = re.match(r"([\w.\"]+)\s*=", line)
        if header:
            current = found.setdefault(header[1], {"": number})
        elif key and current is not None:
            current.setdefault(key[1], number)
    return found


def default_forms(entry):
    return FORMS if "kernel" in entry else ("functional",)


def read_example(entry, fail):
    """Returns the text of the schema entry's `example`. Fails unless it is valid Python and prints something."""
    if "example" not in entry:
        return ""
    text = entry["example"].strip()
    try:
        steps = doctest.DocTestParser().get_examples(text)
        for step in steps:
            compile(step.source, "example", "single")
    except (ValueError, SyntaxError) as error:
        fail(f"cannot read the example: {error}", "example")
    if not text.startswith(">>> ") or not steps[-1].want:
        fail("the example must begin with '>>> ' and end with what it prints", "example")
    return text


def read_operator(name, entry, file, lines):
    def fail(message, key=""):
        raise SchemaError(f"{file}:{lines.get(key, lines.get('', 1))}: [{name}] {message}")

    for key in entry:
        if key not in KEYS:
            fail(f"unknown key '{key}'; known are {', '.join(sorted(KEYS))}", key)
    for key in ("sig", "doc"):
        if key not in entry:
            fail(f"'{key}' is missing")
    try:
        args, results, returns_list = parse_signature(entry["sig"])
    except ValueError as error:
        fail(str(error), "sig")
    kernel, formula, composite = entry.get("kernel"), entry.get("formula"), entry.get("composite", False)
    if sum(map(bool, (kernel, formula, composite))) > 1:
        fail("say one of kernel, formula, composite")
    if kernel:
        if kernel not in KERNELS:
            fail(f"kernel must be one of {', '.join(KERNELS)}, not '{kernel}'", "kernel")
        if entry.get("type") not in RULES:
            fail(f"type must be one of {', '.join(sorted(RULES))}", "type")
        if sum(a.is_tensor for a in args) != KERNELS[kernel]:
            fail(f"a {kernel} kernel takes {KERNELS[kernel]} tensors", "sig")
        if "block" in entry and (kernel == "ternary" or len(args) > KERNELS[kernel]):
            fail("a body for blocks takes one tensor or two and nothing else", "block")
        if ("light" in entry or "bits" in entry) and (len(args) > KERNELS[kernel] or entry["type"] not in ("promote", "float") or {"bits", "block"} <= set(entry) or {"light", "mask"} <= set(entry)):
            fail("a kernel with loops of its own has tensors and nothing else, and its results are of their dtype", "light" if "light" in entry else "bits")
    elif "body" in entry:
        fail("body is that of a kernel", "body")
    if "law" in entry:
        if entry["law"] not in LAWS:
            fail(f"law is one of {', '.join(LAWS)}, not '{entry['law']}'", "law")
        if entry.get("type") not in LAWS[entry["law"]]:
            fail(f"type is one of {', '.join(sorted(LAWS[entry['law']]))}", "type")
    if entry.get("overlap", "any") not in OVERLAPS:
        fail(f"overlap is one of {', '.join(OVERLAPS)}", "overlap")
    dtypes = frozenset(entry.get("dtypes", "bool integer float complex").split())
    if dtypes - CATEGORIES:
        fail(f"dtypes knows {', '.join(sorted(CATEGORIES))}, not '{' '.join(sorted(dtypes - CATEGORIES))}'", "dtypes")
    if entry.get("type") == "float" and kernel and dtypes & {"bool", "integer"}:
        fail("type = \"float\" computes with floating numbers: no kernel for bool or integer", "dtypes")
    forms = tuple(entry["forms"].split()) if "forms" in entry else default_forms(entry)
    if set(forms) - set(FORMS):
        fail(f"forms are {', '.join(FORMS)}", "forms")
    if set(forms) != {"functional"} and (len(results) > 1 or returns_list):
        fail("only an operator with one result has other forms than functional", "forms")
    if "inplace" in forms and not (args and args[0].is_tensor and not args[0].list):
        fail("the in-place form writes the first argument, which must be a tensor", "forms")
    is_operator = entry.get("operator", True)
    if not is_operator and (not kernel or {"grad", "forms", "test", "scalar"} & set(entry)):
        fail("what is no operator is a kernel, and has no forms, derivative and test", "operator")
    grads = read_grads(entry, args, kernel, formula, composite, fail) if is_operator else {}
    python = entry.get("python", {})
    for key in python:
        if key not in PYTHON_KEYS:
            fail(f"unknown fact for Python '{key}'; known are {', '.join(sorted(PYTHON_KEYS))}", f"python.{key}")
    if set(python.get("in", "").split()) - set(HOMES):
        fail(f"Python has {', '.join(HOMES)}, not '{python['in']}'", "python.in")
    if set(python.get("named", {})) - set(INNER):
        fail(f"modules inside torch are {', '.join(INNER)}", "python.named")
    if "inplace" in python and ("inplace" not in forms or set(python["inplace"].split()) - {"flag", "function"}):
        fail("python.inplace is flag, function or both, for an operator with an in-place form", "python.inplace")
    test = entry.get("test", {})
    for key in test:
        if key not in TEST_KEYS:
            fail(f"unknown test fact '{key}'; known are {', '.join(sorted(TEST_KEYS))}", f"test.{key}")
    batch, batch_reason = read_batch(name, entry, args, is_operator, fail)
    return Operator(
        name=name, file=file, line=lines.get("", 1), lines=lines, signature=entry["sig"].strip(), args=args, results=results, returns_list=returns_list, doc=" ".join(entry["doc"].split()),
        example=read_example(entry, fail), rule=entry.get("type"), dtypes=dtypes, block=frozenset(entry.get("block", "").split()), body=read_body(entry, dtypes, fail), forms=forms,
        refuse=read_refuse(entry, dtypes, fail), out=read_out(entry, results, forms, fail), words=read_words(entry, args, name, fail), python=python, test=test, is_operator=is_operator,
        plan=entry.get("plan", not IMPLEMENTED & set(entry)), reduce=read_reduce(entry, results, fail), nodes=read_nodes(entry, args, grads, fail), grads=grads,
        fast=read_fast(entry, grads, fail), where=read_where(entry, args, results, grads, fail), jvp=read_jvp(entry, args, grads, fail) if is_operator else None, batch=batch, batch_reason=batch_reason,
        reason=entry.get("hidden"), underived=entry.get("grad") if entry.get("grad") in tuple(UNDERIVED) else None, specification=specification_of(entry.get("grad")),
        **{key: entry[key] for key in AS_WRITTEN if key in entry})


def read_batch(name, entry, args, is_operator, fail):
    """Returns (batch rule, text). The text is the reason in "loop: <reason>", or the error text in "refuse: <text>", where <text> may be a key of
    BATCH_REFUSALS. Without `batch` the rule follows from the implementation. It is align, shift or loop, or None for a composite."""
    composite = {"formula", "composite"} & set(entry)
    derived = "align" if {"kernel", "through"} & set(entry) or not (composite or any(a.is_tensor for a in args)) else "shift" if {"law", "view"} & set(entry) else None
    rule, colon, reason = entry.get("batch", derived or "").partition(": ")
    if rule in ("loop", "refuse"):
        if not reason:
            fail(f"say why: batch = \"{rule}: …\"", "batch")
        return rule, BATCH_REFUSALS.get(reason, reason).format(name=name)
    return entry.get("batch", derived or (None if composite else "loop")), ""


def read_words(entry, args, name, fail):
    """Returns {string argument: description of the values that it accepts}. The description comes from the schema entry, or else from WORDS."""
    given, strings = entry.get("words", {}), [a.name for a in args if a.kind == "str"]
    for argument in given:
        if argument not in strings:
            fail(f"words.{argument}: no string argument of that name", f"words.{argument}")
    words = {argument: given.get(argument, WORDS.get(argument)) for argument in strings}
    for argument in strings:
        if words[argument] is None and not name.startswith("_"):
            fail(f"say which words '{argument}' accepts: words.{argument} = \"…\"")
    return {argument: text for argument, text in words.items() if text}


def read_refuse(entry, dtypes, fail):
    """Returns {category: (error code, text)} for the single refusal that a schema entry may have, e.g. refuse.bool = "RuntimeError: ..."."""
    refuse = {}
    for category, text in entry.get("refuse", {}).items():
        error, _, text = text.partition(": ")
        if category not in CATEGORIES - dtypes or error not in REFUSALS or "kernel" not in entry or len(entry["refuse"]) > 1:
            fail(f"refuse.<category> = \"<{' or '.join(REFUSALS)}>: <text>\", for one category without kernels", f"refuse.{category}")
        refuse[category] = (REFUSALS[error], text)
    return refuse


def read_body(entry, dtypes, fail):
    """Returns {category: C expression} for body = "...", which applies to all dtypes, or body.<category> = "..."."""
    given, categories = entry.get("body", {}), [category for category in BODIES if category in dtypes]
    if isinstance(given, str):
        return dict.fromkeys(categories, given)
    found = {category: next((key for key in BODIES[category] if key in given), None) for category in categories}
    for key in given:
        if key not in found.values():
            fail(f"body.{key}: not a category of its dtypes", f"body.{key}")
    return {category: given[key] for category, key in found.items() if key}


def read_out(entry, results, forms, fail):
    """Returns the rule for the dtype of out= with an error text for each result, or {} if out= may have every dtype to which the result can be
    cast."""
    if "out" not in entry:
        return {}
    given = entry["out"]
    for key in given:
        if key not in ("dtype", "text"):
            fail(f"out.{key}: known are dtype and text", f"out.{key}")
    if given.get("dtype") not in OUT_DTYPES:
        fail(f"out.dtype is one of {', '.join(OUT_DTYPES)}, not '{given.get('dtype')}'", "out.dtype")
    if given["dtype"] not in ("result", "complex", "floating", "castable") and "out" not in forms:
        fail("out.dtype is that of the result where there is no out form: results are copied then", "out.dtype")
    texts = given.get("text", "expected")
    texts = texts if isinstance(texts, list) else [texts] * len(results)
    texts = [OUT_TEXTS.get(text, text) for text in texts]
    for word in re.findall(r"{(.*?)}", "".join(texts)):
        if word.removeprefix("c ") not in ("out", "result"):
            fail(f"out.text: '{{{word}}}' is neither {{out}} nor {{result}}", "out.text")
    if len(texts) != len(results):
        fail(f"out.text: a text for each of {len(results)} results", "out.text")
    return {"dtype": given["dtype"], "texts": texts}


def read_reduce(entry, results, fail):
    """Returns the checked value of `reduce` for a reduction. A pass, i.e. one traversal of the elements, is written "KIND [FINISH] [-> RESULT]",
    where KIND is what is accumulated and FINISH is what is done with the accumulated number. If the operator has one result, the last pass writes
    that result."""
    given = entry.get("reduce", {})
    if bool(given) != (entry.get("law") == "reduce"):
        fail("the law 'reduce' and its facts, reduce.…, belong together", "law")
    for key in given:
        if key not in REDUCE_KEYS:
            fail(f"reduce.{key}: known are {', '.join(sorted(REDUCE_KEYS))}", f"reduce.{key}")
    written = []
    for text in given.get("passes", []):
        words, arrow, result = text.partition(" -> ")
        kind, _, finish = words.partition(" ")
        if kind not in REDUCE_KINDS or finish not in REDUCE_FINISHES:
            fail(f"cannot read the pass '{text}'", "reduce.passes")
        written += [result] if arrow else []
    if given and not 1 <= len(given.get("passes", [])) <= 3:
        fail("a reduction has one to three passes", "reduce.passes")
    if given and sorted(written) != (sorted(results) if len(results) > 1 else []):
        fail("each of several results is written by one pass, 'KIND FINISH -> RESULT'", "reduce.passes")
    if given.get("empty") not in (None, "RuntimeError", "IndexError"):
        fail("reduce.empty is RuntimeError or IndexError", "reduce.empty")
    return given


def read_nodes(entry, args, grads, fail):
    nodes = entry.get("node", {})
    nodes = {"": nodes} if isinstance(nodes, str) else {"" if where == "always" else where: name for where, name in nodes.items()}
    if nodes and not grads:
        fail("an operator without a derivative of its own leaves no node", "node")
    given = set(nodes) - {"", "inplace"}
    if given - {a.name for a in args} or len(given) > 1:
        fail("node is a name, or node.always that name, node.<argument> the one where that argument is given, for one argument, node.inplace that of a call in place", "node")
    return nodes


def read_grads(entry, args, kernel, formula, composite, fail):
    grad = entry.get("grad")
    if (formula or composite) and (grad is None or grad == "none"):
        if grad == "none":
            fail("a composite is differentiated through its parts, or by a formula for each argument", "grad")
        return None
    if grad == "none":
        return {}
    tensors = [a.name for a in args if a.is_tensor]
    if grad in tuple(UNDERIVED) or specification_of(grad):
        return dict.fromkeys(tensors, "None")
    if grad is None and tensors and ("expr" in entry or "through" in entry):
        return gradient.DERIVED
    if grad is None:
        if tensors:
            fail("the derivative is missing: say grad.<argument> = \"…\" or grad = \"none\"")
        return {}
    for name in grad:
        if name not in tensors:
            fail(f"grad.{name}: no tensor argument of that name", f"grad.{name}")
    return {a.name: grad[a.name] for a in args if a.name in grad}


def specification_of(grad):
    """Returns NAME if grad = "of NAME", otherwise None."""
    return grad.removeprefix("of ") if isinstance(grad, str) and grad.startswith("of ") else None


def read_fast(entry, grads, fail):
    """Returns {argument: faster gradient formula} from the keys fast.grad.<argument>. Each of these arguments must also have a formula
    grad.<argument>; otherwise raises SchemaError."""
    fast = entry.get("fast", {}).get("grad", {})
    for name in fast:
        if name not in (grads or {}):
            fail(f"fast.grad.{name} needs grad.{name}, which says the mathematics", f"fast.grad.{name}")
    return fast


def read_where(entry, args, results, grads, fail):
    """Returns {name: formula} for the names that a schema entry defines for use in its gradient formulas, e.g. where.u = "grad * weight"."""
    where = entry.get("where", {})
    for name in where:
        if not grads or name in {"grad", *(a.name for a in args), *results} or not name.isidentifier():
            fail(f"where.{name} = \"…\" is a new name for the formulas of a derivative", f"where.{name}")
        for later in list(where)[list(where).index(name):]:
            if re.search(rf"\b{later}\b(?!\()", where[name]):
                fail(f"where.{name} reads '{later}', which is no name above it", f"where.{name}")
    return where


def read_jvp(entry, args, grads, fail):
    """Returns the forward-mode rule: `jvp` of the schema entry, or else the rule that follows from how the operator is implemented."""
    given = entry.get("jvp")
    if given is not None and not grads:
        fail("an operator without a gradient of its own has no forward rule", "jvp")
    if not grads or (given is None and (entry.get("formula") or entry.get("composite"))):
        return None
    if given is None:
        implied = {"kernel": "pointwise", "through": "pointwise", "view": "linear"}
        given = "lines" if entry.get("law") == "reduce" else next((rule for key, rule in implied.items() if key in entry), "adjoint")
    if isinstance(given, str) and given not in FORWARD:
        fail(f"jvp is one of {', '.join(FORWARD)}, or a formula for each argument, jvp.<argument>", "jvp")
    if isinstance(given, dict) and set(given) != set(grads):
        fail("jvp.<argument>: a formula for each argument that has a gradient", "jvp")
    return given


def check_numbers(operators):
    """Checks the key `number` of all schema entries. The value of the key is the name of another entry. The kernel of that entry must
    take one tensor less and a number as its last argument; otherwise raises SchemaError."""
    for operator in operators.values():
        other = operators.get(operator.number)
        if operator.number and (other is None or other.kernel is None or operator.kernel is None or KERNELS[other.kernel] + 1 != KERNELS[operator.kernel]
                                or other.args[-1].kind != "Scalar"):
            raise operator.error(f"number = \"{operator.number}\": no kernel that takes a number for the last tensor", "number")


def hidden_calls(operator, formulas):
    """Returns the names of the hidden operators that the given formulas call. Hidden operators are not public, and their names begin with "_".
    A formula may read names that the schema key `where` defines by other formulas. The calls in these formulas count too."""
    words = {word for formula in formulas for word in re.findall(r"\w+", formula)}
    parts = [operator.where[word] for word in sorted(words & operator.where.keys())]
    return {word for word in words if word.startswith("_")} | (hidden_calls(operator, parts) if parts else set())


def accelerations(operators):
    """Returns the names of the operators that are not public and that only the faster gradient formulas (fast.grad) call, not the formulas under
    `grad`."""
    return {name for o in operators.values() for name in hidden_calls(o, o.fast.values())} - {name for o in operators.values() for name in hidden_calls(o, (o.grads or {}).values())}


def check_specifications(operators):
    """Checks the operators with grad = "of NAME". Raises SchemaError unless the first arguments and the results equal those of the composite
    operator NAME, and each gradient has a faster formula under fast.grad."""
    for operator in operators.values():
        if operator.specification is None:
            continue
        other = operators.get(operator.specification)
        if other is None or not other.is_composite or other.grads is not None:
            raise operator.error(f"grad = \"of {operator.specification}\": no composite of that name that is differentiated by its parts", "grad")
        if other.args != operator.args[:len(other.args)] or other.results != operator.results[:len(other.results)] or operator.returns_list:
            raise operator.error(f"begins with other arguments or results than {other.name}", "sig")
        if set(operator.fast) != set(operator.grads):
            raise operator.error("say fast.grad of each tensor: otherwise the specification alone would do", "grad")


def check_hidden(operators):
    """Checks the key `hidden`, which gives the reason why a gradient formula calls operators that are not public (their names begin with "_").
    Raises SchemaError if the reason is missing or not needed. Also raises SchemaError if an operator has a gradient of its own although only the
    faster gradient formulas (fast.grad) call this operator."""
    for operator in operators.values():
        if bool(operator.reason) != bool(hidden_calls(operator, (operator.grads or {}).values())):
            raise operator.error("hidden = \"…\" says why a formula of the derivative calls hidden operators, and stands where one does", "hidden")
    for name in accelerations(operators):
        if operators[name].grads:
            raise operators[name].error("an acceleration is not differentiated: grad = \"none\"", "grad")


def derivative_of_another(entry, entries):
    """For a schema entry with grad = "as NAME", returns {key: value} with the derivative keys that it copies from the entry NAME. Both operators have
    the same arguments. The name of the autograd node is not copied."""
    grad = entry.get("grad")
    other = entries.get(grad.removeprefix("as "), {}) if isinstance(grad, str) else {}
    return {key: other[key] for key in ("grad", "where", "fast", "jvp") if key in other}


def copy_of(name, entry):
    """Returns the schema entry of <name>_copy, which clones the view that <name> returns. `entry` belongs to <name> and has the key `copied`, which
    says where Python offers the copy."""
    args, _, several = parse_signature(entry["sig"])
    view = f"{name}({', '.join(f'{a.name}={a.name}' if a.has_default else a.name for a in args)})"
    names = entry.get("python", {}).get("name", name).split()
    return {
        "sig": entry["sig"], "doc": f"Returns {'contiguous copies of the views' if several else 'a contiguous copy of the view'} that {name}() returns.", "python": {"name": f"{name if name in names else names[0]}_copy", "in": entry.pop("copied")},
        "formula": f"[clone(t, memory_format='contiguous') for t in {view}]" if several else f"clone({view}, memory_format='contiguous')",
        "test": entry.get("test", {}), **({} if several else {"out": {"dtype": "result"}}),
    }


def with_copies(entries):
    """Returns `entries`, the schema entries by name, with an entry NAME_copy inserted after each view that has the key `copied`."""
    found = {}
    for name, entry in entries.items():
        made = {f"{name}_copy": copy_of(name, entry)} if "copied" in entry else {}
        found |= {name: entry} | made
    return found


def read_schema(folder):
    """Returns {name: Operator} for all entries in the folder, in the order of files and lines. They are followed by the kernels that
    gradient.py adds, which compute gradients in one loop."""
    operators = {}
    for path in sorted(Path(folder).glob("*.toml")):
        text = path.read_text()
        file = f"{Path(folder).name}/{path.name}"
        try:
            entries = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{file}: {error}") from None
        lines = line_numbers(text)
        for name, entry in with_copies(entries).items():
            entry |= derivative_of_another(entry, entries)
            operator = read_operator(name, entry, file, lines.get(name) or lines.get(name.removesuffix("_copy"), {}))
            if name in operators:
                raise operator.error(f"is defined in {operators[name].file}:{operators[name].line} already")
            operators[name] = operator
    check_numbers(operators)
    gradient.derive(operators)
    check_specifications(operators)
    check_hidden(operators)
    return operators
