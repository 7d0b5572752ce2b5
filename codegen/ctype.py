"""Translates the types and defaults of signatures into C: parameters, members of options structs, grd_values."""

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
    """Returns (C type, grd_value member, grd_kind) of an argument as implementations take it."""
    if argument.list:
        return LISTS[argument.kind]
    if argument.kind in NUMBERS and argument.may_be_absent:
        return SCALARS["Scalar"]
    return SCALARS[argument.kind]


def of_type(name):
    """Returns (C type, grd_value member, grd_kind) of a type of the formula language."""
    return LISTS["int"] if name == "dims" else LISTS["Tensor"] if name == "Tensor[]" else SCALARS[name]


def option_mark(argument):
    """Returns the value in an options struct that marks an option as not given; None if zero bits mark it. See Note [Plain options]."""
    if is_scalar(argument):
        return "GRD_NO_NUMBER"
    if argument.list:
        return "GRD_NO_LIST" if argument.kind == "int" else None
    if argument.kind == "device":
        return "GRD_NO_DEVICE"
    return literal(argument.default) if has_number_default(argument) else None


def option_default(argument):
    """Returns the default value of an option's member in C++; {} marks an absent argument."""
    if argument.list:
        return "{}"
    if argument.default is None:
        return "NULL" if of(argument)[0].endswith("*") else "GRD_DTYPE_NONE" if argument.kind == "dtype" else "{}"
    return literal(argument.default)


def parameter(argument):
    return of(argument)[0] + argument.name


def public(type_name):
    """Returns the type in public prototypes. These take a list as grd_dims_view or grd_tensors_view, so that C and C++ pass it in the same way."""
    return {"grd_dims ": "grd_dims_view ", "grd_tensors ": "grd_tensors_view "}.get(type_name, type_name)


def number(value):
    """Returns the C call that makes a grd_scalar of a Python number."""
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


def typed_default(argument, of_list, of_number):
    """Returns the default value of an argument in C: of_list([…]) for a list (a single number stands for a list of one), of_number(…) for a grd_scalar, or a literal."""
    value = argument.default
    if argument.list:
        return of_list(value if isinstance(value, list) else [value])
    return of_number(value) if is_scalar(argument) else literal(value)


def default(argument):
    """Returns the C expression of a default value, in the type that implementations take."""
    ctype = of(argument)[0]
    if argument.default is None:
        return "NULL" if ctype.endswith("*") else f"({ctype.strip()}){{0}}" if argument.kind != "dtype" else "GRD_DTYPE_NONE"
    return typed_default(argument, dims, number)


def static_default(argument):
    """Returns the default value as a constant expression, because a static initialiser may not call functions."""
    return typed_default(argument, static_dims, static_number)


def static_dims(values):
    """Returns the initialiser of a grd_dims."""
    return f"{{{len(values)}, (const int64_t[]){{{', '.join(map(str, values)) or '0'}}}}}"


def static_number(value):
    """Returns the initialiser of a grd_scalar for a Python number."""
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
    """Returns the C expression that reads an option. A grd_scalar is passed on even if it is marked as not given, because the functions of calls.py replace a marked one by the
    default."""
    field = f"options->{argument.name}"
    if is_scalar(argument):
        return f"&{field}"
    if argument.list and argument.kind == "int":
        return f"grd_given_list(&{field}, {default(argument)})"
    if argument.kind == "str" and argument.default is not None:
        return f"{field} ? {field} : {default(argument)}"
    return field


def value(argument, expression):
    """Returns the initialiser of a grd_value that holds a C expression."""
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
