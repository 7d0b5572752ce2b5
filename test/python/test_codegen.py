"""Tests the code generator: its output equals the golden files, and its errors name the file, line, operator and rule."""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from codegen import emit, headers, python, samples, snapshots  # noqa: E402
from codegen.schema import SchemaError, accelerations, hidden_calls, read_schema  # noqa: E402

GOOD = '''
[neg]
sig = "(Tensor self) -> Tensor"
doc = "-self."
type = "promote"
kernel = "unary"
grad.self = "neg(grad)"
'''


def generate(folder, text):
    (folder / "family.toml").write_text(GOOD + text)
    operators = read_schema(folder)
    return emit.files(operators) | samples.files(operators)


def test_generated_files_equal_the_snapshots():
    files = snapshots.generated()
    for name, text in files.items():
        assert (snapshots.FOLDER / "out" / name).read_text() == text, name


def test_every_operator_of_the_schema_is_declared_in_a_header():
    operators = read_schema(ROOT / "schema")
    files = emit.files(operators)
    for operator in (o for o in operators.values() if o.is_operator):
        path = headers.header_path(operator)
        assert f"grd_{operator.c_name}" in files[path if operator.hidden else f"include/{path}"]
        assert operator.hidden or operator.doc in files["install/gradus/ops.h"] and f'"{path}"' in files["include/gradus/ops.h"]
    assert len([o for o in operators.values() if not o.hidden]) >= 150


def test_derivative_formulas_call_public_operators():
    operators = read_schema(ROOT / "schema")
    formulas = [(o, formula) for o in operators.values() for formula in (o.grads or {}).values()]
    calling = [(o.name, formula) for o, formula in formulas if hidden_calls(o, [formula])]
    assert len(formulas) > 300 and len(calling) <= 0.05 * len(formulas), calling
    # Operators with a Python name in the schema. If such an operator is hidden in C, it has PyTorch's name with a leading underscore.
    pytorchs = {o.name for o in operators.values() if o.python.get("name")}
    # Operators without a derivative.
    kernels = {o.name for o in operators.values() if o.grads == {}}
    others = {o.name for o in operators.values() if o.hidden and o.is_operator} - accelerations(operators) - pytorchs - kernels
    assert len(accelerations(operators)) > 10 and len(others) <= 72, sorted(others)


@pytest.mark.parametrize("entry, message", [
    ('[_n]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = "neg(self)"\n[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nwhere.n = "_n(grad)"\ngrad.self = "n"\n',
     'family.toml:12: [a] hidden = "…" says why a formula of the derivative calls hidden operators'),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nhidden = "no reason"\ngrad.self = "neg(grad)"\n', 'family.toml:11: [a] hidden = "…" says why'),
    ('[_n]\nsig = "(Tensor grad) -> Tensor"\ndoc = "x"\ngrad.grad = "neg(grad)"\n[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "neg(grad)"\nfast.grad.self = "_n(grad)"\n',
     'family.toml:8: [_n] an acceleration is not differentiated'),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\n', "family.toml:8: [a] the derivative is missing"),
    ('[a]\nsig = "(Tensor self -> Tensor"\ndoc = "x"\n', "family.toml:9: [a] signature must read"),
    ('[a]\nsig = "(Tensr self) -> Tensor"\ndoc = "x"\n', "family.toml:9: [a] cannot read argument 'Tensr self'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\n', "[a] 'doc' is missing"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ncolour = "red"\n', "family.toml:11: [a] unknown key 'colour'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.other = "grad"\n', "family.toml:11: [a] grad.other: no tensor argument"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "grad * unknown"\n', "family.toml:11: [a] unknown name 'unknown'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "neg(grad)"\nwhere.self = "grad"\n', "family.toml:12: [a] where.self = \"…\" is a new name"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nwhere.u = "grad"\n', "family.toml:12: [a] where.u = \"…\" is a new name"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "u"\nwhere.u = "neg(v)"\nwhere.v = "grad"\n', "family.toml:12: [a] where.u reads 'v', which is no name above it"),
    ('[a]\nsig = "(Tensor self, Tensor other) -> Tensor"\ndoc = "x"\ngrad.self = "grad"\nfast.grad.other = "grad"\n', "family.toml:12: [a] fast.grad.other needs grad.other"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "frobnicate(grad)"\n', "family.toml:11: [a] 'frobnicate' is not an operator"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "neg(grad, 1)"\n', "family.toml:11: [a] 'neg' takes 1 arguments"),
    ('[a]\nsig = "(Tensor self) -> Tensor[]"\ndoc = "x"\nformula = "[neg(t) for t in self]"\n', "[a] 'self' is a Tensor where Tensor[] is needed"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = "neg(self[0])"\n', "[a] 'self' is no list"),
    ('[a]\nsig = "(Tensor[] tensors) -> Tensor[]"\ndoc = "x"\nformula = "[neg(t) for t in tensors if len(tensors) > 1]"\n', "[a] a list is [f(t) for t in tensors]"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad.self = "neg("\n', "family.toml:11: [a] cannot read formula"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = """\nself + 1\nself"""\n', "[a] a line is 'name = value' or 'assert condition, text', not 'self + 1'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = "x = self"\n', "[a] the last line of a formula is its value, not 'x = self'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = """\nassert ndim(self) > 0, \'not 0\'\nself"""\n', "[a] the text of a check begins with RuntimeError, "),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = """\nself = 1\nself"""\n', "[a] a value of type int cannot have the name 'self'"),
    ('[a]\nsig = "(Tensor self) -> (Tensor one, Tensor two)"\ndoc = "x"\nformula = "neg(self)"\n', "[a] 2 results are wanted, not 1"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = "neg(self).value"\n', "[a] 'neg(self)' has no parts"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nformula = "ndim(self, 1)"\n', "[a] 'ndim' takes 1 arguments"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nout.dtype = "same"\n', "family.toml:12: [a] out.dtype is one of result,"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nout.dtype = "self"\n', "[a] out.dtype is that of the result where there is no out form"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nout.colour = "red"\n', "[a] out.colour: known are dtype and text"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nout.dtype = "result"\nout.text = "{self}"\n', "[a] out.text: '{self}' is neither"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nout.dtype = "result"\nout.text = ["a", "b"]\n', "[a] out.text: a text for each of 1 results"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nkernel = "quaternary"\n', "family.toml:11: [a] kernel must be one of"),
    ('[a]\nsig = "(Tensor self, Tensor other, Tensor third) -> Tensor"\ndoc = "x"\ntype = "float"\nkernel = "ternary"\nblock = "float"\n',
     "family.toml:13: [a] a body for blocks takes one tensor or two"),
    ('[a]\nsig = "(Tensor self, Tensor other) -> Tensor"\ndoc = "x"\ntype = "compare"\nkernel = "binary"\nlight = true\n',
     "family.toml:13: [a] a kernel with loops of its own"),
    ('[a]\nsig = "(Tensor self, Scalar n) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\nbits = "x"\n', "family.toml:13: [a] a kernel with loops of its own"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "float"\nkernel = "unary"\ngrad = "none"\n', "[a] type = \"float\" computes with floating numbers"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ncomposite = true\nbody = "x"\n', "family.toml:12: [a] body is that of a kernel"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\nexpr = "unbind(self)"\ndtypes = "float"\ngrad = "none"\n',
     "family.toml:13: [a] cannot read the expression 'unbind(self)'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\nexpr = "unbind(self)"\ndtypes = "float"\n',
     "family.toml:13: [a] cannot read the expression 'unbind(self)'"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\nexpr = "0 * self"\ndtypes = "float"\n',
     "family.toml:13: [a] its expression does not change with self: say grad.self"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\ndtypes = "float"\ngrad = "none"\nbody.complex = "x"\n',
     "family.toml:15: [a] body.complex: not a category of its dtypes"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\ndtypes = "float"\ngrad = "none"\nrefuse.bool = "no"\n',
     "family.toml:15: [a] refuse.<category> = \"<RuntimeError or NotImplementedError>: <text>\""),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "unary"\ndtypes = "float"\ngrad = "none"\nrefuse.float = "RuntimeError: no"\n',
     "family.toml:15: [a] refuse.<category>"),
    ('[a]\nsig = "(Tensor self, Tensor other) -> Tensor"\ndoc = "x"\ntype = "promote"\nkernel = "binary"\ngrad = "none"\nnumber = "b"\n',
     "family.toml:14: [a] number = \"b\": no kernel that takes a number for the last tensor"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\nforms = "sideways"\ngrad = "none"\n', "family.toml:11: [a] forms are"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\ntest.samples = ["T(2), 3"]\n', "family.toml:12: [a] sample 'T(2), 3' has more arguments"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nexample = "torch.a(1)"\n', "family.toml:12: [a] the example must begin with '>>> '"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nexample = ">>> torch.a(1)"\n', "family.toml:12: [a] the example must begin with '>>> '"),
    ('[a]\nsig = "(Tensor self) -> Tensor"\ndoc = "x"\ngrad = "none"\nexample = ">>> torch.a(\\n1"\n', "family.toml:12: [a] cannot read the example"),
    ('[a]\nsig = "(Tensor self, int dim) -> Tensor"\ndoc = "x"\ngrad = "none"\ntest.samples = ["T(2)"]\n', "[a] sample 'T(2)' lacks 'dim'"),
])
def test_schema_errors_name_the_file_the_line_and_the_rule(tmp_path, entry, message):
    with pytest.raises(SchemaError) as error:
        generate(tmp_path, entry)
    assert message in str(error.value)


def test_python_overloads_are_tried_in_the_order_of_the_schema():
    operators = read_schema(ROOT / "schema")
    places = list(operators)
    for function in python.functions(operators).values():
        tried = [places.index(signature.operator.name) for signature in function.signatures]
        assert tried == sorted(tried), function.name


def test_an_operator_defined_in_two_files_is_an_error(tmp_path):
    (tmp_path / "other.toml").write_text(GOOD)
    with pytest.raises(SchemaError, match=r"\[neg\] is defined in .*family.toml:2 already"):
        generate(tmp_path, "")


def test_signatures_do_not_repeat_the_name_of_the_operator():
    """A signature in the schema contains no name, so the name of an operator is written only once."""
    operators = read_schema(ROOT / "schema")
    for operator in operators.values():
        assert operator.name not in operator.signature.split("(")[0]


@pytest.mark.parametrize("expr, formula, parts", [
    ("self * self", "grad * (2 * self)", {}),
    ("self * sigmoid(self)", "grad * (t + self * (t * (1 - t)))", {"t": "sigmoid(self)"}),
    ("self * k + 1 - self / 4", "grad * (k - 1 / 4)", {}),
    ("self if self > k else k * self", "where(gt(self, k), grad, grad * k)", {}),
    ("min(max(self, 0), 6)", "where(lt(6, where(t, 0, self)), 0, where(t, 0, grad))", {"t": "gt(0, self)"}),
    ("-self if k > 0 else self", "-grad if k > 0 else grad", {}),
    ("exp(-self * self)", "-(grad * (2 * (exp(-(self * self)) * self)))", {}),
    ("atan2(self, k)", "grad * masked_fill(k / t / t, eq(t, 0), 0)", {"t": "hypot(self, k)"}),
])
def test_gradient_formulas_are_derived_from_expressions(expr, formula, parts, tmp_path):
    """The generator derives the gradient of an expression. The tested schema entry is added to a copy of schema/, because the derived formula calls
    operators that are defined there."""
    for path in (ROOT / "schema").glob("*.toml"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "new.toml").write_text(f'[a]\nsig = "(Tensor self, Scalar k) -> Tensor"\ndoc = "x"\ntype = "float"\nkernel = "unary"\nexpr = "{expr}"\ndtypes = "float"\n')
    operator = read_schema(tmp_path)["a"]
    assert (operator.grads, operator.where) == ({"self": formula}, parts)
