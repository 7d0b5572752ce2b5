"""Generates the test cases, which are C tables of sample argument lists for test/op/matrix.c. The samples of an operator are in its schema entry
(test.samples). An elementwise operator without samples there gets those in FAMILY.

A sample is an argument list in Python's syntax. T(2,3) is a 2 x 3 tensor of random floats from the operator's domain, T(3,3, ridge=8) adds 8 to the
diagonal of each matrix, C(2,3) is a T that requires no gradient, I(4, hi=3) contains integers and B(2,3) booleans. Numbers, strings, lists, None and
keywords have their usual meaning. Gradients are not checked for a sample that begins with ~, because at that point the derivative does not exist or
is defined differently on purpose (embedding's padding_idx).
"""
import ast
import json
import re

from codegen import ctype
from codegen.headers import BANNER
from codegen.schema import KERNELS
from codegen.template import fill, function, wrap

FILE = """
    #include <math.h>

    #include "matrix.h"

    $references

    const struct test_case test_cases[] = {
    $rows
        {.op = NULL},
    };
"""

FAMILY = {"unary": ["T(3,4)", "T()", "T(0,3)"],
          "binary": ["T(3,4), T(3,4)", "T(3,1), T(4)", "T(2,3), T()", "T(0,3), T(3)"],
          "ternary": ["T(3,4), T(3,4), T(3,4)", "T(3,1), T(4), T()"]}
ABSENT = "{TEST_ABSENT}"
MASKED = ["B(3,4), T(3,4), T(3,4)", "B(3,1), T(4), T()"]


def sample_texts(operator):
    if "samples" in operator.test:
        return operator.test["samples"]
    if not operator.kernel:
        return []
    texts = MASKED if operator.mask else FAMILY[operator.kernel]
    words = [str(w) for w in required_numbers(operator)]
    return [", ".join([text, *words]) for text in texts]


def required_numbers(operator):
    return [1 for a in operator.args if not a.is_tensor and not a.has_default]


def tensor(call, operator):
    kind = {"T": "FLOATS", "C": "CONSTANTS", "I": "INTEGERS", "B": "BOOLEANS"}[call.func.id]
    shape = [evaluate(size, operator) for size in call.args]
    bounds = {k.arg: evaluate(k.value, operator) for k in call.keywords}
    low, high = operator.test.get("domain", [-2, 2]) if kind in ("FLOATS", "CONSTANTS") else (0, 2)
    sizes = f", {len(shape)}, {{{', '.join(map(str, shape))}}}" if shape else ""
    diagonal = f", .diagonal = {bounds['ridge']}" if "ridge" in bounds else ""
    return f"{{TEST_{kind}, {bounds.get('lo', low)}, {bounds.get('hi', high)}{sizes}{diagonal}}}"


def evaluate(node, operator):
    """Returns the value of a Python literal, which may contain the names inf and nan."""
    names = {"inf": float("inf"), "nan": float("nan")}
    try:
        return eval(compile(ast.Expression(node), "sample", "eval"), {"__builtins__": {}}, names)
    except Exception as error:
        raise operator.error(f"cannot read '{ast.unparse(node)}' in a sample: {error}", "test.samples") from None


def value(node, argument, operator):
    """Returns the C initialiser of a struct test_arg for one argument of a sample."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in ("T", "C", "I", "B"):
            raise operator.error(f"samples know T, C, I and B, not '{ast.unparse(node)}'", "test.samples")
        return tensor(node, operator)
    if isinstance(node, (ast.List, ast.Tuple)) and argument.kind == "Tensor":
        items = ", ".join(value(item, argument, operator) for item in node.elts)
        return f"{{TEST_LIST, .n = {len(node.elts)}, .items = (const struct test_arg[]){{{items}}}}}"
    constant = evaluate(node, operator)
    if constant is None:
        return ABSENT
    if argument.list:
        values = constant if isinstance(constant, (list, tuple)) else [constant]
        return f"{{TEST_DIMS, 0, 0, {len(values)}, {{{', '.join(map(str, values)) or '0'}}}}}"
    if argument.kind in ("dtype", "device"):
        return f"{{TEST_{argument.kind.upper()}, .n = GRD_{'DEVICE_' * (argument.kind == 'device')}{constant.upper()}}}"
    if isinstance(constant, str):
        return f'{{TEST_STRING, .text = "{constant}"}}'
    return f"{{TEST_NUMBER, .number = {ctype.static_number(constant)}}}"


def arguments(operator, text):
    """Returns the C initialisers of one sample's arguments, in the order of the signature."""
    try:
        call = ast.parse(f"f({text.removeprefix('~')})", mode="eval").body
    except SyntaxError as error:
        raise operator.error(f"cannot read sample '{text}': {error.msg}", "test.samples") from None
    if len(call.args) > len(operator.args):
        raise operator.error(f"sample '{text}' has more arguments than the signature", "test.samples")
    given = dict(zip((a.name for a in operator.args), call.args))
    for keyword in call.keywords:
        if operator.arg(keyword.arg) is None or keyword.arg in given:
            raise operator.error(f"sample '{text}': no argument '{keyword.arg}' left", "test.samples")
        given[keyword.arg] = keyword.value
    rows = []
    for argument in operator.args:
        if argument.name in given:
            rows.append(value(given[argument.name], argument, operator))
        elif argument.has_default or argument.optional:
            rows.append(ABSENT)
        else:
            raise operator.error(f"sample '{text}' lacks '{argument.name}'", "test.samples")
    return rows


def reference(operator):
    """Returns a C function that computes one element of an elementwise operator in float64, from the expression `test.ref` of the schema entry.
    Returns "" if the entry has no such expression."""
    if "ref" not in operator.test:
        return ""
    count = KERNELS[operator.kernel] if operator.kernel else sum(a.is_tensor for a in operator.args)
    names = ["x", "y", "z"][:count]
    body = re.sub(rf"\b[{''.join(names)}]\b", lambda name: f"in[{names.index(name[0])}]", operator.test["ref"])
    return function(f"static double {operator.c_name}_reference(const double *in)", f"return {body};")


def differentiable(operator):
    """True if tests check the gradients. By default that holds for operators with a derivative and for composites; `test.grad` overrides the
    default."""
    return operator.test.get("grad", operator.grads is None or bool(operator.grads))


def accuracy_samples(operator):
    """Returns the samples that test/accuracy.c compares with exact results, for an elementwise operator with one tensor. There is one sample for each
    set of its other arguments. The error bound is test.ulps, by default 1 for a unary kernel. Returns [] for an operator that has neither a unary
    kernel nor test.ulps."""
    unary = operator.kernel == "unary" and "float" in operator.dtypes and not operator.gives_bool
    if not unary and "ulps" not in operator.test:
        return []
    calls = {}
    for text in sample_texts(operator):
        if re.match(r"[TC]\(", text):
            calls.setdefault(text[text.index(")"):], text)
    return list(calls.values())


def case(operator, text):
    """Returns the C initialiser of the struct test_case of one sample."""
    rows = arguments(operator, text)
    facts = {"tolerance": operator.test["tol"]} if "tol" in operator.test else {}
    facts |= {"reference": f"{operator.c_name}_reference"} if "ref" in operator.test else {}
    facts |= {"accuracy": "true", "ulps": operator.test.get("ulps", 1)} if text in accuracy_samples(operator) else {}
    facts |= {"skip": json.dumps(operator.test["skip"])} if "skip" in operator.test else {}
    facts |= {"batch": json.dumps(operator.test["batch"])} if "batch" in operator.test else {}
    flags = {"no_gradient": not differentiable(operator) or text[0] == "~", "complex_only": operator.test.get("complex"), "contiguous_only": operator.test.get("contiguous")}
    facts |= {name: "true" for name, on in flags.items() if on}
    # C sets array members without an initialiser to 0, i.e. to TEST_ABSENT, so absent arguments at the end are left out.
    while rows and rows[-1] == ABSENT:
        rows.pop()
    args = f"(const struct test_arg[{len(operator.args)}]){{{', '.join(rows) or ABSENT}}}" if operator.args else "NULL"
    row = [json.dumps(operator.name), json.dumps(text), str(len(operator.args)), args, *(f".{name} = {value}" for name, value in facts.items())]
    return wrap(row, "    {", "},", indent="     ")


def operator_cases(operator):
    return "".join(case(operator, text) for text in sample_texts(operator))


def files(operators):
    tested = [o for o in operators.values() if o.is_operator]
    return {"gen/test_cases.c": BANNER.format("schema") + fill(FILE, references="".join(map(reference, tested)), rows="".join(map(operator_cases, tested)))}
