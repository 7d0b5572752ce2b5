"""Generates the tables of the Python extension from the operators: module functions, methods of Tensor, and the functions of nn, linalg, special, fft
and signal.windows.

By default Python offers an operator under its own name as a function, and also as a method if the first argument is a Tensor called self. The entry
may change that by the following keys:
- `python.name` lists the names in Python, separated by spaces. Operators with a common name are overloads, which are tried in the order of the
  schema.
- `python.in` lists the modules or classes that offer the operator: function (torch itself), method, nn, linalg, special, fft, windows.
- `python.numbers` lists tensor arguments that also accept a number, and `python.lists` those that also accept a list of numbers.
- `python.values` lists number arguments that also accept any 0-d tensor.
- `python.none` lists arguments that may be None, which means their default.
- `python.extra` lists parameters that are not arguments of the operator (EXTRAS). With `python.tuple`, several results are returned as a tuple
  without names.
- `example` is a doctest that uses no name but torch. It becomes part of the docstring of the function that it calls, and the tests run it.

Functions of linalg, special and fft have the __name__ that they have in PyTorch: torch.linalg.solve.__name__ is "linalg_solve".
`python.named.special` lists names under which torch.special offers the operator as well. The functions with these names are objects of their own.

gradus.nn.functional consists of the entries with `python.in = "nn"`, and of Python functions in its own files, which do more than call an operator.
The following keys are for nn:
- `python.inplace` says how nn offers the in-place form: "flag" for a last parameter inplace=False, "function" for a function NAME_, or both.
- `python.arguments.nn` and `python.arguments.function` list the parameters in nn and in torch if they differ from the operator's arguments. Each word
  is the name of an argument, or `shown:argument` if the parameter has another name, or one of EXTRAS. Parameters in brackets are optional, and
  parameters after * are keyword-only. In torch itself `reduction` is a number, e.g. in torch.margin_ranking_loss with "input1 input2 target [margin
  reduction]".

`python.also` lists further signatures in the notation of `python.arguments`, without brackets. They are tried if no other signature fits. Signatures
that change the order of arguments are deprecated, as in PyTorch.
"""
import json
import re
import textwrap
from dataclasses import dataclass, field

from codegen.headers import BANNER
from codegen.schema import HOMES, INNER
from codegen.template import WIDTH, fill, wrap
from codegen.template import function as c_function

KINDS = {"Tensor": "TENSOR", "Scalar": "SCALAR", "int": "INT", "float": "FLOAT", "bool": "BOOL", "dtype": "DTYPE", "device": "DEVICE",
         "str": "STRING", "Generator": "GENERATOR"}
LISTS = {"Tensor": "TENSORS", "int": "DIMS"}
# Parameters that exist only for compatibility with PyTorch -> (kind, default, how a call gives them: "position" or "keyword"). Their values are
# checked but have no effect, except for `inplace`.
EXTRAS = {"sparse_grad": ("PY_KIND_SPARSE_GRAD", "False", "keyword"), "cudnn_enable": ("GRD_KIND_BOOL", "True", "position"), "cudnn_enabled": ("GRD_KIND_BOOL", "True", "position"),
          "inplace": ("PY_KIND_INPLACE", "False", "position"), "sparse": ("PY_KIND_SPARSE_GRAD", "False", "position")}
NAMED_AFTER_HOME = {"linalg", "special", "fft"}
METHOD_LISTS = {"function": "py_functions", "method": "py_methods", **{home: f"py_{home}_functions" for home in INNER}}


@dataclass
class Parameter:
    name: str
    kind: str  # C expression of the parameter's kind: an enumerator of grd_kind, or PY_KIND_... for a kind that exists only in Python
    flags: list
    default: str = None  # default value in Python's syntax; None if the parameter is required

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
    # Entry i is the index of the operator's argument that parameter i stands for. A parameter of EXTRAS, which stands for no argument, has an index
    # after the last argument. None means that the parameters are the arguments in order.
    order: tuple = None


@dataclass
class Function:
    name: str
    home: str
    signatures: list = field(default_factory=list)
    others: list = field(default_factory=list)  # signatures that are tried if none of `signatures` fits

    @property
    def symbol(self):
        return f"{self.home}_{self.name}"

    @property
    def called(self):
        """Returns the function's __name__, with which error texts begin."""
        return self.symbol if self.home in NAMED_AFTER_HOME else self.name


# ---- Names and signatures in Python -------------------------------------------------------------------------------------

def names(operator):
    """Returns the operator's names in Python, without the underscore of in-place forms. An operator whose name begins with "_" is not public and has
    none."""
    if "name" in operator.python:
        return operator.python["name"].split()
    return [] if operator.hidden else [operator.name]


def homes(operator):
    """Returns the modules or classes that offer the operator (HOMES)."""
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
    none = argument.may_be_absent or argument.name in (*operator.python.get("none", "").split(), "memory_format", "requires_grad")
    none = none or argument.list and not argument.is_tensor and argument.has_default and argument.default == []
    flags = ["PY_OPTIONAL"] * argument.has_default + ["PY_NONE"] * none + ["PY_KEYWORD"] * argument.keyword
    numbers = operator.python.get("numbers", "").split()
    tensors = [a for a in operator.args if a.is_tensor]
    if argument.is_tensor and (argument.name in numbers or operator.scalar and argument is tensors[1]):
        flags.append("PY_NUMBER")
    if argument.name in operator.python.get("values", "").split():
        flags.append("PY_VALUE")
    if argument.name in operator.python.get("lists", "").split():
        flags.append("PY_NUMBERS")
    kind = f"GRD_KIND_{LISTS[argument.kind] if argument.list else KINDS[argument.kind]}"
    return Parameter(name, kind, flags, default_text(argument) if argument.has_default else None)


def extra_parameters(operator, home, form):
    """Returns the parameters that are not arguments of the operator: out=, those named in `python.extra`, and layout and pin_memory for functions
    that create tensors."""
    def keyword(name, kind, default):
        return Parameter(name, kind, ["PY_OPTIONAL", "PY_NONE", "PY_KEYWORD"], default)

    extra = []
    for name in operator.python.get("extra", "").split():
        kind, default, place = EXTRAS[name]
        extra.append(Parameter(name, kind, ["PY_OPTIONAL", "PY_NONE"] + ["PY_KEYWORD"] * (place != "position"), default))
    if form != "functional":
        return extra
    if "out" in operator.forms or home not in ("method", "nn") and not operator.view and not operator.returns_list:
        extra.append(keyword("out", "PY_KIND_OUT" if len(operator.results) == 1 else "PY_KIND_OUTS", "None"))
    if operator.arg("requires_grad"):
        extra.append(keyword("layout", "PY_KIND_LAYOUT", "None"))
        extra.append(keyword("pin_memory", "PY_KIND_PIN_MEMORY", "False"))
    return extra


def extra(name, required=False):
    kind, default, _ = EXTRAS[name]
    return Parameter(name, kind, [] if required else ["PY_OPTIONAL"], None if required else default)


def inplace_flag(operator, form, home):
    return [extra("inplace")] if form == "functional" and home == "nn" and "flag" in operator.python.get("inplace", "") else []


def worded_signature(operator, form, home):
    """Returns the Signature for the parameter list in the key `python.arguments` of the schema entry, e.g. "input1 input2 [margin reduction]", where
    parameters in brackets are optional."""
    parameters, order, required, keyword = [], [], True, False
    for word in re.findall(r"[\w:]+|[][*]", operator.python["arguments"][home]):
        if word in "[]*":
            required, keyword = (required, True) if word == "*" else (word == "]", keyword)
            continue
        shown, _, name = word.rpartition(":")
        index = next((i for i, a in enumerate(operator.args) if a.name == name), len(operator.args) + len(order))
        one = extra(name, required) if name in EXTRAS else parameter(operator, index, home)
        if name == "reduction" and home == "function":
            one.kind, one.default = "PY_KIND_REDUCTION", "0"
        flags = [flag for flag in one.flags if flag not in ("PY_OPTIONAL", "PY_KEYWORD")] + ["PY_OPTIONAL"] * (not required) + ["PY_KEYWORD"] * keyword
        parameters.append(Parameter(shown or one.name, one.kind, flags, None if required else one.default))
        order.append(index)
    rest = inplace_flag(operator, form, home) or (extra_parameters(operator, home, form) if home in ("function", "special") and "out" in operator.forms else [])
    order += [len(operator.args) + len(order)] * len(rest)
    parameters += rest
    return Signature(operator, form, parameters, sum(not p.keyword for p in parameters), False, tuple(order))


def signature(operator, form, home):
    if home in operator.python.get("arguments", {}):
        return worded_signature(operator, form, home)
    parameters = [parameter(operator, i, home) for i in range(len(operator.args))]
    parameters += inplace_flag(operator, form, home) or extra_parameters(operator, home, form)
    positional = sum(not p.keyword for p in parameters)
    first = 1 if home == "method" else 0
    loose = positional == first + 1 and parameters[first].kind == "GRD_KIND_DIMS"
    return Signature(operator, form, parameters, positional, loose)


def other_signature(operator, form, home, way):
    """Returns the Signature for `way`, a text that lists the parameters of one more Python signature of the operator. The operator's schema entry
    contains a list of such texts under the key `python.also`. For a method, the operator's argument self is moved to the front."""
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


def places(operator, form):
    """Returns the places where Python offers a form of the operator, as [(module or class, name)]. The names of an in-place form do not have
    their trailing underscore yet."""
    found = [(home, name) for home in homes(operator) if form != "inplace" or home != "nn" or "function" in operator.python.get("inplace", "")
             for name in names(operator)]
    return found + [(home, name) for home, text in operator.python.get("named", {}).items() for name in text.split() if form != "inplace"]


def prefer_tensors(signatures):
    """Marks the number parameters of a signature that are tensor parameters in a later signature with the same parameter names."""
    for i, one in enumerate(signatures):
        for other in signatures[i + 1:]:
            if [p.name for p in one.parameters] == [p.name for p in other.parameters]:
                for number, tensor in zip(one.parameters, other.parameters):
                    number.flags += ["PY_NO_TENSOR"] * (number.kind == "GRD_KIND_SCALAR" and tensor.kind == "GRD_KIND_TENSOR")


def functions(operators):
    """Returns {(module or class, name): Function} for all operators. The overloads of a function are in the order of the schema."""
    found = {}
    for operator in operators.values():
        for form in operator.forms:
            if form == "out" and "functional" in operator.forms:
                continue
            for home, name in places(operator, form):
                full = name + "_" * (form == "inplace")
                function = found.setdefault((home, full), Function(full, home))
                function.signatures.append(signature(operator, form, home))
                function.others += [other_signature(operator, form, home, way) for way in operator.python.get("also", [])]
    for function in found.values():
        prefer_tensors(function.signatures)
    return found


# ---- C code ----------------------------------------------------------------------------------------------------------------

FILE = """
    #include "call.h"
    #include "tables.h"
    #include "gradus/ops.h"
    #include "python_docs.h"

    $results

    $short_cuts

    $params

    $orders
"""

# When the extension module is loaded, py_fill creates the PyMethodDef table of each module or class from the list below. CPython requires an empty
# last row.
HOME = """

    static struct py_listed $list[$count];

    $calls

    /* Each row: name, and signatures with the operator, the parameters, and the numbers of all parameters, of operator arguments and of positional parameters. */
    static struct py_listed $list[$count] = {
    $rows
    };

    PyMethodDef $table[$size];

    void ${table}_fill(void)
    {
        static const grd_op *ops[$ways];
        py_fill($table, $list, $count, ops);
    }
"""

OPTION = {"PY_OPTIONAL", "PY_NONE", "PY_KEYWORD"}
FORMS = {"functional": "GRD_FUNCTIONAL", "inplace": "GRD_INPLACE", "out": "GRD_OUT"}


def literal(text):
    """Returns a list of C string literals that together hold `text`. Each literal fits in a line of WIDTH columns."""
    pieces = re.findall(r"[^ \n]*[ \n]*", text)
    escaped = [json.dumps(piece, ensure_ascii=False)[1:-1] for piece in pieces if piece]
    lines, line = [], ""
    for piece in escaped:
        if line and len(line) + len(piece) > WIDTH - 10:
            lines.append(line)
            line = ""
        line += piece
    return [f'"{line}"' for line in [*lines, line]]


def python_signature(function, one):
    words = []
    for index, p in enumerate(one.parameters):
        if p.keyword and "*" not in words:
            words.append("*")
        words.append("self" if function.home == "method" and index == 0 else p.python())
    return f"{function.called}({', '.join(words)})"


def has_example(function, operator):
    return f".{function.name}(" in operator.example


def description(function, operator):
    return f"{operator.doc}\n\n{operator.example}" if has_example(function, operator) else operator.doc


def doc_macro(operator, example=False):
    return f"DOC_{operator.c_name.upper()}{'_EXAMPLE' * example}"


def source(function):
    """Returns the last line of a docstring, which names the schema files of the function's operators."""
    files = dict.fromkeys(one.operator.file for one in function.signatures)
    return f"\n\nSchema: {', '.join(files)}"


def docstring(function):
    """Returns the docstring of a Python function as C string literals: the signature and text of each overload, and the names of the schema files.
    A single signature is written in the form that inspect.signature can read."""
    if len(function.signatures) == 1:
        one = function.signatures[0]
        text = python_signature(function, one)
        dollar = text.replace("(self", "($self", 1) if function.home == "method" else text.replace("(", "($module, ", 1).replace(", )", ")")
        macros = doc_macro(one.operator) + (" " + doc_macro(one.operator, True)) * has_example(function, one.operator)
        return [*literal(f"{dollar}\n--\n\n"), macros, *literal(source(function))]
    overloads = (f"{python_signature(function, s)}\n{textwrap.indent(description(function, s.operator), '    ')}" for s in function.signatures)
    return literal("\n\n".join(overloads) + source(function))


def docs_file(found):
    """Returns the text of a C header with a macro for the description of each function that has a single signature. A function and the method of
    the same name share a macro."""
    macros = {}
    for function in found.values():
        operator = function.signatures[0].operator
        if len(function.signatures) == 1:
            macros[doc_macro(operator)] = operator.doc
            if has_example(function, operator):
                macros[doc_macro(operator, True)] = f"\n\n{operator.example}"
    rows = "".join(" \\\n    ".join([f"#define {name}", *literal(text)]) + "\n" for name, text in macros.items())
    return BANNER.format("schema") + rows


def has_names(operator):
    return len(operator.results) > 1 and not operator.python.get("tuple")


def result(operator, name):
    fields = ", ".join(json.dumps(name) for name in operator.results)
    return f'static struct py_result result_{operator.c_name} = {{"torch.return_types.{name}", {{{fields}}}, NULL}};\n'


def required_tensors(operator):
    """Returns the number of required arguments. Returns 0 unless all of them are tensors and come first, and the operator has one result."""
    needed = [a for a in operator.args if not a.has_default]
    tensors_first = all(a.is_tensor and not a.list for a in needed) and operator.args[:len(needed)] == needed
    return len(needed) if tensors_first and len(operator.results) == 1 and not operator.returns_list else 0


def short_cut(function, count):
    """Returns the operator that runs if the only arguments are `count` positional tensors, so that the argument parser is not needed. Returns None if
    there is no such operator or if it is not public (its name begins with "_")."""
    return next((s.operator for s in function.signatures if s.form == "functional" and s.order is None and required_tensors(s.operator) == count and not s.operator.hidden), None)


def short_cut_name(operator, count):
    if operator is None:
        return "NULL"
    if len(operator.args) == count:
        return f"grd_{operator.c_name}"
    return f"{('unary', 'binary')[count - 1]}_{operator.c_name}"


def short_cut_text(operator, count):
    letters = "xy"[:count]
    given = ", ".join(f"grd_tensor *{c}" for c in letters)
    return c_function(f"static grd_tensor *{short_cut_name(operator, count)}({given})", f"return grd_{operator.c_name}({', '.join(letters)});")


def device_place(function, one):
    """Returns the index of the parameter `device` if the default device applies, i.e. if the function creates tensors and takes no tensors. Otherwise
    returns 0."""
    names = [p.name for p in one.parameters]
    makes = function.home == "function" and "requires_grad" in names and "device" in names and not any(a.is_tensor for a in one.operator.args)
    return names.index("device") if makes else 0


class Tables:
    """The C tables of Python parameters, and the C tables that give for each parameter the index of the operator's argument (Signature.order).
    Functions with equal tables share one, which is named after the first of these functions."""

    def __init__(self):
        self.params, self.orders = {}, {}

    def param_list(self, name, parameters):
        rows = tuple(f"{{{', '.join(self.param(p))}}}" for p in parameters)
        return self.params.setdefault(rows, f"{name}_params") if rows else "NULL"

    @staticmethod
    def param(p):
        default = [json.dumps(p.default)] if p.default is not None else []
        flags = "PY_OPTION" if set(p.flags) == OPTION else " | ".join(p.flags)
        return [json.dumps(p.name), p.kind, *([flags or "0"] if p.flags or default else []), *default]

    def order(self, name, places):
        """Returns the name of the C table that holds `places`, which gives for each Python parameter the index of the operator's argument
        (Signature.order)."""
        return self.orders.setdefault(places, f"{name}_order")

    def params_text(self):
        return "".join(wrap(rows, f"static const struct py_param {name}[] = {{", "};") for rows, name in self.params.items())

    def orders_text(self):
        return "".join(wrap(map(str, places), f"static const uint8_t {name}[] = {{", "};") for places, name in self.orders.items())


def signature_row(function, index, one, tables):
    name = function.symbol + (f"_{index}" if index else "")
    facts = [json.dumps(one.operator.name), tables.param_list(name, one.parameters), len(one.parameters), len(one.operator.args), one.positional]
    facts += [FORMS[one.form]] if one.form != "functional" else []
    facts += [f".result = &result_{one.operator.name}"] if has_names(one.operator) else []
    facts += [f".order = {tables.order(name, one.order)}"] if one.order else []
    facts += [f".device = {place}" for place in [device_place(function, one)] if place] + [".loose = true"] * one.loose
    facts += [".keeps_dtype = true"] * (one.operator.out.get("dtype") in ("result", "castable"))
    facts += [".alone = true"] * (one.operator.alone and one.form == "inplace")
    return f"{{{', '.join(map(str, facts))}}}"


def function_row(function, tables):
    ways = [*function.signatures, *function.others]
    signatures = ", ".join(signature_row(function, i, s, tables) for i, s in enumerate(ways))
    facts = [json.dumps(function.called), f"(py_ways){{{signatures}}}", str(len(function.signatures))]
    facts += [str(len(function.others))] if function.others else []
    facts += [f".{name} = {short_cut_name(short_cut(function, n), n)}" for n, name in ((1, "unary"), (2, "binary")) if short_cut(function, n)]
    facts += [f".home = PY_{function.home.upper()}"] if function.home != "function" else []
    facts[0], facts[-1] = "{" + facts[0], facts[-1] + "}"
    row, doc = ", ".join([*facts, f"call_{function.symbol}"]), " ".join(docstring(function))
    together = f"    {{{row}, {doc}}},\n"
    return together if len(together) <= WIDTH else wrap([row], "    {", ",", indent="     ") + f"     {doc}}},\n"


def call_text(function, index, listed):
    given, unused = ("self", "") if function.home == "method" else ("NULL", "(void)self; ")
    return (f"static PyObject *call_{function.symbol}(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) "
            f"{{ {unused}return py_call(&{listed}[{index}].function, {given}, args, n, names); }}\n")


def home_text(home, members, tables):
    listed = METHOD_LISTS[home].removeprefix("py_")
    return fill(HOME, list=listed, table=METHOD_LISTS[home], count=len(members), size=len(members) + 1, ways=sum(len(f.signatures) + len(f.others) for f in members), calls="".join(call_text(f, i, listed) for i, f in enumerate(members)),
                rows="".join(function_row(f, tables) for f in members))


def functions_file(found):
    tables = Tables()
    homes = "".join(home_text(home, [f for f in found.values() if f.home == home], tables) for home in HOMES)
    named = {s.operator.name: (s.operator, f"{f.home}_" * (f.home in INNER[1:]) + f.name) for f in found.values() for s in f.signatures if has_names(s.operator)}
    cuts = {short_cut_name(o, n): (o, n) for f in found.values() for n in (1, 2) for o in [short_cut(f, n)] if o and len(o.args) != n}
    head = fill(FILE, results="".join(result(*one) for one in named.values()), short_cuts="".join(short_cut_text(*cut) for cut in cuts.values()),
                params=tables.params_text(), orders=tables.orders_text())
    return BANNER.format("schema") + head + homes


def files(operators):
    found = functions(operators)
    return {"gen/python_functions.c": functions_file(found), "gen/python_docs.h": docs_file(found)}
