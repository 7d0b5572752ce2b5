"""How schema types look in C: parameters, option fields, generic values."""

# kind -> (C type, member of grd_value, grd_kind)
SCALARS = {
    "Tensor": ("grd_tensor *", "tensor", "TENSOR"),
    "Scalar": ("grd_scalar ", "scalar", "SCALAR"),
    "int": ("int64_t ", "integer", "INT"),
    "float": ("double ", "number", "FLOAT"),
    "bool": ("bool ", "boolean", "BOOL"),
    "dtype": ("grd_dtype ", "dtype", "DTYPE"),
    "device": ("grd_device ", "device", "DEVICE"),
    "str": ("const char *", "string", "STRING"),
    "Generator": ("grd_generator *", "generator", "GENERATOR"),
}
LISTS = {"Tensor": ("grd_tensors ", "tensors", "TENSORS"), "int": ("grd_dims ", "dims", "DIMS")}
NUMBERS = ("Scalar", "int", "float", "bool")


def of(argument):
    """(C type, grd_value member, grd_kind) of an argument as implementations take it."""
    if argument.list:
        return LISTS[argument.kind]
    if argument.kind in NUMBERS and argument.may_be_absent:
        return SCALARS["Scalar"]
    return SCALARS[argument.kind]


def of_type(name):
    """The same of a type of formulas."""
    return LISTS["int"] if name == "dims" else LISTS["Tensor"] if name == "Tensor[]" else SCALARS[name]


def option_mark(argument):
    """What stands in an options struct for an option that is not given; None where zero bits do. See Note [Plain options]."""
    if is_scalar(argument):
        return "GRD_NO_NUMBER"
    if argument.list:
        return "GRD_NO_LIST" if argument.kind == "int" else None
    if argument.kind == "device":
        return "GRD_NO_DEVICE"
    return literal(argument.default) if has_number_default(argument) else None


def option_default(argument):
    """The default that a C++ member has; {} is absent."""
    if argument.list:
        return "{}"
    if argument.default is None:
        return "NULL" if of(argument)[0].endswith("*") else "GRD_DTYPE_NONE" if argument.kind == "dtype" else "{}"
    return literal(argument.default)


def parameter(argument):
    return of(argument)[0] + argument.name


def public(type_name):
    """The type as public prototypes have it: a list is a view, in C++ too."""
    return {"grd_dims ": "grd_dims_view ", "grd_tensors ": "grd_tensors_view "}.get(type_name, type_name)


def number(value):
    """A Python number as a grd_scalar."""
    if isinstance(value, bool):
        return f"grd_bool({str(value).lower()})"
    if isinstance(value, int):
        return f"grd_int({value})"
    return f"grd_float({literal(value)})"


def literal(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(str(value), repr(value))
    if isinstance(value, str):
        return '"' + value + '"'
    return str(value)


def default(argument):
    """The C expression of a default value, in the type implementations take."""
    value, ctype = argument.default, of(argument)[0]
    if value is None:
        return "NULL" if ctype.endswith("*") else f"({ctype.strip()}){{0}}" if argument.kind != "dtype" else "GRD_DTYPE_NONE"
    if argument.list:
        return dims(value) if isinstance(value, list) else dims([value])
    if argument.kind == "Scalar" or ctype == "grd_scalar ":
        return number(value)
    return literal(value)


def static_default(argument):
    """Like default, but a constant expression: functions are not allowed in a static initialiser."""
    value = argument.default
    if argument.list:
        values = value if isinstance(value, list) else [value]
        return f"{{{len(values)}, (const int64_t[]){{{', '.join(map(str, values)) or '0'}}}}}"
    return static_number(value) if is_scalar(argument) else literal(value)


def static_number(value):
    """A Python number as the initialiser of a grd_scalar."""
    if isinstance(value, complex):
        return f"{{.kind = GRD_SCALAR_COMPLEX, .v.c = {{{value.real}, {value.imag}}}}}"
    if isinstance(value, float):
        return f"{{.kind = GRD_SCALAR_FLOAT, .v.c = {{{literal(value)}, 0}}}}"
    return f"{{.kind = GRD_SCALAR_{'BOOL' if isinstance(value, bool) else 'INT'}, .v.i = {int(value)}}}"


def dims(values):
    return f"grd_dims({', '.join(map(str, values))})" if values else "GRD_NO_DIMS"


def is_scalar(argument):
    return of(argument)[0] == "grd_scalar "


def has_number_default(argument):
    """True for a number whose default is not zero bits."""
    return argument.kind in NUMBERS and not argument.list and (argument.default is not None if is_scalar(argument) else bool(argument.default))


def from_option(argument):
    """The C expression that reads an option. A number that may be marked as not given, or as a plain one, goes on as it is: calls.py reads it."""
    field = f"options->{argument.name}"
    if is_scalar(argument):
        return f"&{field}"
    if argument.list and argument.kind == "int":
        return f"grd_given_list(&{field}, {default(argument)})"
    if argument.kind == "str" and argument.default is not None:
        return f"{field} ? {field} : {default(argument)}"
    return field


def value(argument, expression):
    """A grd_value initialiser around a C expression."""
    _, member, kind = of(argument)
    return f"{{.kind = GRD_KIND_{kind}, .v.{member} = {expression}}}"


def implementation_parameters(operator):
    parameters = ["grd_tensor *out"] if operator.has_out else []
    parameters += [parameter(a) for a in operator.args]
    if len(operator.results) > 1:
        parameters.append("grd_tensor **ret")
    return ", ".join(parameters) or "void"


def implementation_result(operator):
    return "grd_tensors " if operator.returns_list else "void " if len(operator.results) > 1 else "grd_tensor *"
