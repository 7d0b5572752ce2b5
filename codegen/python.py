"""From operators to the tables of the Python extension: functions, methods of Tensor, and the functions of nn.

An operator is seen under its own name, as a function, and as a method when its first argument is a Tensor called self. Its entry may say otherwise:
`python.name` (names, separated by spaces; several operators of one name are overloads, tried in order of the schema), `python.in` (function,
method, nn), `python.numbers` (tensor arguments a number may stand for), `python.values` (numbers that any 0-d tensor may stand for), `python.none` (arguments that may be None and then have their default),
`python.extra` (parameters that are no arguments, EXTRAS), `python.tuple` (results without names). `python.also` has further ways to call it: the
words of each are arguments in the order of that way, all by position, or `shown:argument` where it has another name. They are tried when no
other fits; those that change the order are deprecated, as in PyTorch. Its `example`, a doctest that needs no name but torch, stands in the
docstring of the function that it calls, and the tests run it.
"""
import textwrap
from dataclasses import dataclass, field

from codegen.headers import BANNER
from codegen.schema import HOMES

KINDS = {"Tensor": "TENSOR", "Scalar": "SCALAR", "int": "INT", "float": "FLOAT", "bool": "BOOL", "dtype": "DTYPE", "device": "DEVICE",
         "str": "STRING", "Generator": "GENERATOR"}
LISTS = {"Tensor": "TENSORS", "int": "DIMS"}
# Parameters that are checked and have no effect: kind, default, whether it is given by keyword only.
EXTRAS = {"sparse_grad": ("PY_KIND_SPARSE_GRAD", "False", True), "memory_format": ("PY_KIND_MEMORY_FORMAT", "None", True),
          "cudnn_enable": ("GRD_KIND_BOOL", "True", False), "cudnn_enabled": ("GRD_KIND_BOOL", "True", False)}
METHOD_LISTS = {"function": "py_functions", "method": "py_methods", "nn": "py_nn_functions"}


@dataclass
class Parameter:
    name: str
    kind: str  # C expression
    flags: list
    default: str = None  # as Python writes it

    @property
    def keyword(self):
        return "PY_KEYWORD" in self.flags

    def python(self):
        return self.name if self.default is None else f"{self.name}={self.default}"


@dataclass
class Signature:
    operator: object
    form: str
    parameters: list
    positional: int
    loose: bool
    order: tuple = None  # which argument of the operator each parameter is; None: the parameters begin with the arguments


@dataclass
class Function:
    name: str
    home: str
    signatures: list = field(default_factory=list)
    others: list = field(default_factory=list)  # signatures that are tried when none of these fits

    @property
    def symbol(self):
        return f"{self.home}_{self.name}"


# ---- What Python sees ---------------------------------------------------------------------------------------------------

def names(operator):
    if "name" in operator.python:
        return operator.python["name"].split()
    return [] if operator.hidden else [operator.name]


def homes(operator):
    if "in" in operator.python:
        return operator.python["in"].split()
    is_method = operator.args and operator.args[0].is_tensor and operator.args[0].name == "self"
    return ["function", "method"] if is_method else ["function"]


def default_text(argument):
    value = argument.default
    return f"'{value}'" if isinstance(value, str) else "[]" if value == [] else repr(value)


def parameter(operator, index, home):
    argument = operator.args[index]
    name = "input" if argument.name == "self" and home != "method" else argument.name
    none = argument.may_be_absent or argument.name in (*operator.python.get("none", "").split(), "memory_format")
    none = none or argument.list and not argument.is_tensor and argument.has_default and argument.default == []
    flags = ["PY_OPTIONAL"] * argument.has_default + ["PY_NONE"] * none + ["PY_KEYWORD"] * argument.keyword
    numbers = operator.python.get("numbers", "").split()
    tensors = [a for a in operator.args if a.is_tensor]
    if argument.is_tensor and (argument.name in numbers or operator.scalar and argument is tensors[1]):
        flags.append("PY_NUMBER")
    if argument.name in operator.python.get("values", "").split():
        flags.append("PY_VALUE")
    if argument.list and argument.is_tensor and getattr(argument, "inner_optional", False):
        flags.append("PY_NONES")
    kind = f"GRD_KIND_{LISTS[argument.kind] if argument.list else KINDS[argument.kind]}"
    return Parameter(name, kind, flags, default_text(argument) if argument.has_default else None)


def extra_parameters(operator, home, form):
    """Those that are no arguments of the operator: where results go, and what a new tensor is asked for beyond what there is."""
    def keyword(name, kind, default):
        return Parameter(name, kind, ["PY_OPTIONAL", "PY_NONE", "PY_KEYWORD"], default)

    extra = []
    for name in operator.python.get("extra", "").split():
        kind, default, by_keyword = EXTRAS[name]
        extra.append(Parameter(name, kind, ["PY_OPTIONAL", "PY_NONE"] + ["PY_KEYWORD"] * by_keyword, default))
    if form != "functional":
        return extra
    if "out" in operator.forms or home == "function" and not operator.view and not operator.returns_list:
        extra.append(keyword("out", "PY_KIND_OUT" if len(operator.results) == 1 else "PY_KIND_OUTS", "None"))
    if operator.arg("requires_grad"):
        extra.append(keyword("layout", "PY_KIND_LAYOUT", "None"))
        extra.append(keyword("pin_memory", "PY_KIND_PIN_MEMORY", "False"))
        if operator.name.startswith("empty") or names(operator)[0].endswith("_like"):
            extra.append(keyword("memory_format", "PY_KIND_MEMORY_FORMAT", "None"))
    return extra


def signature(operator, form, home):
    parameters = [parameter(operator, i, home) for i in range(len(operator.args))]
    parameters += extra_parameters(operator, home, form)
    positional = sum(not p.keyword for p in parameters)
    first = 1 if home == "method" else 0
    loose = positional == first + 1 and parameters[first].kind == "GRD_KIND_DIMS"
    return Signature(operator, form, parameters, positional, loose)


def other_signature(operator, form, home, way):
    """A way of `python.also`, read as the module says. A method's own tensor comes first."""
    words = [word.rpartition(":")[::2] for word in way.split()]
    indices = [next(i for i, a in enumerate(operator.args) if a.name == name) for _, name in words]
    order = [words[i] + (index,) for i, index in enumerate(indices)]
    if home == "method":
        order.sort(key=lambda word: word[2] != 0)
    required = max(i for i, word in enumerate(order) if not operator.args[word[2]].has_default)
    parameters = []
    for i, (shown, _, index) in enumerate(order):
        p = parameter(operator, index, home)
        optional = i > required
        flags = [flag for flag in p.flags if flag != "PY_KEYWORD" and (optional or flag != "PY_OPTIONAL")]
        parameters.append(Parameter(shown or p.name, p.kind, flags, p.default if optional else None))
    places = tuple(word[2] for word in order)
    return Signature(operator, form, parameters, len(parameters), False, places)


def functions(operators):
    """{(home, name): Function}, overloads in order."""
    found = {}
    for operator in operators.values():
        for form in operator.forms:
            if form == "out" and "functional" in operator.forms:
                continue
            for home in homes(operator):
                for name in names(operator):
                    full = name + "_" * (form == "inplace")
                    function = found.setdefault((home, full), Function(full, home))
                    function.signatures.append(signature(operator, form, home))
                    function.others += [other_signature(operator, form, home, way) for way in operator.python.get("also", [])]
    return found


# ---- As C ------------------------------------------------------------------------------------------------------------------

FORMS = {"functional": "GRD_FUNCTIONAL", "inplace": "GRD_INPLACE", "out": "GRD_OUT"}


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def parameter_rows(parameters):
    def row(p):
        text = "NULL" if p.default is None else quoted(p.default)
        return f"    {{{quoted(p.name)}, {p.kind}, {' | '.join(p.flags) or '0'}, {text}}},\n"

    return "".join(map(row, parameters)) or "    {0},\n"


def python_signature(function, one):
    words = []
    for index, p in enumerate(one.parameters):
        if p.keyword and "*" not in words:
            words.append("*")
        words.append("self" if function.home == "method" and index == 0 else p.python())
    return f"{function.name}({', '.join(words)})"


def description(function, operator):
    return f"{operator.doc}\n\n{operator.example}" if f".{function.name}(" in operator.example else operator.doc


def docstring(function):
    """Signature and text of each overload; one alone can be read by inspect.signature."""
    if len(function.signatures) == 1:
        one = function.signatures[0]
        text = python_signature(function, one)
        dollar = text.replace("(self", "($self", 1) if function.home == "method" else text.replace("(", "($module, ", 1).replace(", )", ")")
        return f"{dollar}\n--\n\n{description(function, one.operator)}"
    return "\n\n".join(f"{python_signature(function, s)}\n{textwrap.indent(description(function, s.operator), '    ')}" for s in function.signatures)


def has_names(operator):
    return len(operator.results) > 1 and not operator.python.get("tuple")


def result(operator, function):
    fields = ", ".join(quoted(name) for name in operator.results)
    return f'static struct py_result result_{operator.c_name} = {{"torch.return_types.{function}", {{{fields}}}, NULL}};\n'


def required_tensors(operator):
    """How many tensors a call needs when it needs nothing else; 0 otherwise."""
    needed = [a for a in operator.args if not a.has_default]
    plain = all(a.is_tensor and not a.list for a in needed) and operator.args[:len(needed)] == needed
    return len(needed) if plain and len(operator.results) == 1 and not operator.returns_list else 0


def short_cut(function, count):
    """The operator that a call with `count` tensors and nothing else means."""
    return next((s.operator for s in function.signatures if s.form == "functional" and required_tensors(s.operator) == count), None)


def short_cut_name(operator, count):
    if len(operator.args) == count:
        return f"grd_{operator.c_name}"
    return f"{('unary', 'binary')[count - 1]}_{operator.c_name}"


def short_cut_text(operator, count):
    letters = "xy"[:count]
    given = ", ".join(f"grd_tensor *{c}" for c in letters)
    return f"static grd_tensor *{short_cut_name(operator, count)}({given})\n{{\n    return grd_{operator.c_name}({', '.join(letters)});\n}}\n"


def order_name(function, index, one):
    return "NULL" if one.order is None else f"{function.symbol}_{index}_order"


def order_text(function, index, one):
    """Which value of the operator each parameter is, where that is not the parameter's own place."""
    return "" if one.order is None else f"static const uint8_t {order_name(function, index, one)}[] = {{{', '.join(map(str, one.order))}}};\n"


def device_place(function, one):
    """The parameter that has the default device when it is not given: of functions that make tensors, and not like another one; 0: none."""
    names = [p.name for p in one.parameters]
    makes = function.home == "function" and not function.name.endswith("_like") and "requires_grad" in names and "device" in names
    return names.index("device") if makes else 0


def signature_row(function, index, one):
    outcome = f"&result_{one.operator.name}" if has_names(one.operator) else "NULL"
    return (f"    {{{function.symbol}_{index}, {len(one.parameters)}, {len(one.operator.args)}, {one.positional}, "
            f'{str(one.loose).lower()}, "{one.operator.name}", {FORMS[one.form]}, {outcome}, {device_place(function, one)}, {order_name(function, index, one)}}},\n')


def function_text(function):
    symbol, count = function.symbol, len(function.signatures)
    ways = list(enumerate([*function.signatures, *function.others]))
    text = "".join(f"static const struct py_param {symbol}_{i}[] = {{\n{parameter_rows(s.parameters)}}};\n" for i, s in ways)
    text += "".join(order_text(function, i, s) for i, s in ways)
    text += f"static const struct py_signature {symbol}_signatures[] = {{\n{''.join(signature_row(function, i, s) for i, s in ways)}}};\n"
    text += f"static const grd_op *{symbol}_ops[{len(ways)}];\n"
    cuts = [short_cut(function, n) for n in (1, 2)]
    pointers = ", ".join("NULL" if cut is None else short_cut_name(cut, n + 1) for n, cut in enumerate(cuts))
    text += (f'static const struct py_function {symbol} = {{"{function.name}", {symbol}_signatures, {count}, {len(function.others)}, {pointers}, '
             f"PY_{function.home.upper()}, {symbol}_ops}};\n")
    given = "self" if function.home == "method" else "NULL"
    unused = "" if function.home == "method" else "    (void)self;\n"
    text += (f"static PyObject *call_{symbol}(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)\n"
             f"{{\n{unused}    return py_call(&{symbol}, {given}, args, nargs, names);\n}}\n")
    return text


def method_row(function):
    cast = f"(PyCFunction)(void (*)(void))call_{function.symbol}"
    return f'    {{"{function.name}", {cast}, METH_FASTCALL | METH_KEYWORDS, {quoted(docstring(function))}}},\n'


def functions_file(operators):
    found = functions(operators)
    text = BANNER.format("schema") + '#include "extension.h"\n\n'
    named = {s.operator.name: (s.operator, f.name) for f in found.values() for s in f.signatures if has_names(s.operator)}
    text += "".join(result(operator, name) for operator, name in named.values()) + "\n"
    cuts = {short_cut_name(o, n): (o, n) for f in found.values() for n in (1, 2) for o in [short_cut(f, n)] if o and len(o.args) != n}
    text += "\n".join(short_cut_text(*cut) for cut in cuts.values()) + "\n"
    text += "\n".join(function_text(function) for function in found.values())
    for home in HOMES:
        rows = "".join(method_row(f) for f in found.values() if f.home == home)
        text += f"\nPyMethodDef {METHOD_LISTS[home]}[] = {{\n{rows}    {{0}},\n}};\n"
    return text


def files(operators):
    return {"gen/python_functions.c": functions_file(operators)}
