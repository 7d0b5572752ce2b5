"""The generated tests: sample argument lists from the schema (or from the family), as C tables for test/op/matrix.c.

The sample language is Python call syntax: T(2,3) random floats in the operator's domain, C(2,3) the same without a gradient, I(4, hi=3)
integers, B(2,3) booleans, numbers, strings, lists, None, keywords. A sample that begins with ~ is not checked for gradients: there the
derivative is not that of the function (embedding's padding) or does not exist.
"""
import ast

from codegen import ctype
from codegen.headers import BANNER
from codegen.schema import KERNELS

FAMILY = {"unary": ["T(3,4)", "T()", "T(0,3)"],
          "binary": ["T(3,4), T(3,4)", "T(3,1), T(4)", "T(2,3), T()", "T(0,3), T(3)"],
          "ternary": ["T(3,4), T(3,4), T(3,4)", "T(3,1), T(4), T()"]}
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
    return (f"{{.kind = TEST_{kind}, .ndim = {len(shape)}, .shape = {{{', '.join(map(str, shape)) or '0'}}}, "
            f".lo = {bounds.get('lo', low)}, .hi = {bounds.get('hi', high)}}}")


def evaluate(node, operator):
    """A literal; inf and nan are numbers too."""
    names = {"inf": float("inf"), "nan": float("nan")}
    try:
        return eval(compile(ast.Expression(node), "sample", "eval"), {"__builtins__": {}}, names)
    except Exception as error:
        raise operator.error(f"cannot read '{ast.unparse(node)}' in a sample: {error}", "test.samples") from None


def value(node, argument, operator):
    """A struct test_arg initialiser."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in ("T", "C", "I", "B"):
            raise operator.error(f"samples know T, C, I and B, not '{ast.unparse(node)}'", "test.samples")
        return tensor(node, operator)
    if isinstance(node, (ast.List, ast.Tuple)) and argument.kind == "Tensor":
        items = ", ".join(value(item, argument, operator) for item in node.elts)
        return f"{{.kind = TEST_LIST, .n = {len(node.elts)}, .items = (const struct test_arg[]){{{items}}}}}"
    constant = evaluate(node, operator)
    if constant is None:
        return "{.kind = TEST_ABSENT}"
    if argument.list:
        values = constant if isinstance(constant, (list, tuple)) else [constant]
        return f"{{.kind = TEST_DIMS, .n = {len(values)}, .shape = {{{', '.join(map(str, values)) or '0'}}}}}"
    if argument.kind == "dtype":
        return f"{{.kind = TEST_DTYPE, .n = GRD_{constant.upper()}}}"
    if argument.kind == "device":
        return f"{{.kind = TEST_DEVICE, .n = GRD_DEVICE_{constant.upper()}}}"
    if isinstance(constant, str):
        return f'{{.kind = TEST_STRING, .text = "{constant}"}}'
    return f"{{.kind = TEST_NUMBER, .number = {static_number(constant)}}}"


def static_number(constant):
    if isinstance(constant, bool):
        return f"{{.kind = GRD_SCALAR_BOOL, .v.i = {int(constant)}}}"
    if isinstance(constant, int):
        return f"{{.kind = GRD_SCALAR_INT, .v.i = {constant}}}"
    if isinstance(constant, complex):
        return f"{{.kind = GRD_SCALAR_COMPLEX, .v.c = {{{constant.real}, {constant.imag}}}}}"
    return f"{{.kind = GRD_SCALAR_FLOAT, .v.c = {{{ctype.literal(constant)}, 0}}}}"


def arguments(operator, text):
    """The argument list of one sample, in the order of the signature."""
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
            rows.append("{.kind = TEST_ABSENT}")
        else:
            raise operator.error(f"sample '{text}' lacks '{argument.name}'", "test.samples")
    return rows


def reference(operator):
    """The float64 reference of an elementwise operator, from test.ref."""
    if "ref" not in operator.test:
        return ""
    count = KERNELS[operator.kernel] if operator.kernel else sum(a.is_tensor for a in operator.args)
    names = ["x", "y", "z"][:count]
    reads = "".join(f"    const double {n} = in[{i}];\n    (void){n};\n" for i, n in enumerate(names))
    return f"static double {operator.c_name}_reference(const double *in)\n{{\n{reads}    return {operator.test['ref']};\n}}\n"


def differentiable(operator):
    """Whether gradients are checked: composites too, unless test.grad says no."""
    return operator.test.get("grad", operator.grads is None or bool(operator.grads))


def operator_cases(operator):
    rows = ""
    for text in sample_texts(operator):
        args = ", ".join(arguments(operator, text))
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        facts = [f'.op = "{operator.name}"', f'.text = "{quoted}"', f".n = {len(operator.args)}",
                 f".differentiable = {str(differentiable(operator) and text[0] != '~').lower()}", f".tolerance = {operator.test.get('tol', 4)}"]
        if "ref" in operator.test:
            facts.append(f".reference = {operator.c_name}_reference")
        if "skip" in operator.test:
            facts.append(f'.skip = "{operator.test["skip"]}"')
        if operator.test.get("complex"):
            facts.append(".complex_only = true")
        if operator.test.get("contiguous"):
            facts.append(".contiguous_only = true")
        if args:
            facts.append(f".args = (const struct test_arg[]){{{args}}}")
        rows += "    {" + ", ".join(facts) + "},\n"
    return reference(operator) + (f"static const struct test_case {operator.c_name}_cases[] = {{\n{rows}}};\n" if rows else "")


def files(operators):
    text = BANNER.format("schema") + '#include <math.h>\n\n#include "matrix.h"\n\n'
    table = ""
    for operator in operators.values():
        text += operator_cases(operator)
        if sample_texts(operator):
            table += f"    {{{operator.c_name}_cases, sizeof {operator.c_name}_cases / sizeof *{operator.c_name}_cases}},\n"
    text += f"\nconst struct test_cases test_table[] = {{\n{table}    {{0, 0}}}};\n"
    return {"gen/test_cases.c": text}
