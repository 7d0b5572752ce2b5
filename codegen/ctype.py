"""Translates the types and default values of signatures into C: parameters, members of options structs and grd_values."""

# kind of an argument -> (C type, member of grd_value, name of the grd_kind without its prefix)
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
    """Returns (C type, member of grd_value, grd_kind) for an argument. The C type is that of the argument as a parameter of op_<name>, the
    function that implements the operator."""
    if argument.list:
        return LISTS[argument.kind]
    if argument.kind in NUMBERS and argument.may_be_absent:
        return SCALARS["Scalar"]
    return SCALARS[argument.kind]


def of_type(name):
    """Returns (C type, grd_value member, grd_kind) for `name`, a type in the language of the schema's formulas."""
    return LISTS["int"] if name == "dims" else LISTS["Tensor"] if name == "Tensor[]" else SCALARS[name]


def option_mark(argument):
    """Returns the C value that marks an option as not given in an options struct, e.g. GRD_NO_NUMBER. Returns None if a member of zero bits, e.g.
    a NULL pointer, already has this meaning. Note [Numbers as options] describes the values."""
    if is_scalar(argument):
        return "GRD_NO_NUMBER"
    if argument.list:
        return "GRD_NO_LIST" if argument.kind == "int" else None
    if argument.kind == "device":
        return "GRD_NO_DEVICE"
    return literal(argument.default) if has_number_default(argument) else None


def option_default(argument):
    """Returns the C++ default value of a member of an options struct. {} stands for an absent argument."""
    if argument.list:
        return "{}"
    if argument.default is None:
        return "NULL" if of(argument)[0].endswith("*") else "GRD_DTYPE_NONE" if argument.kind == "dtype" else "{}"
    return literal(argument.default)


def parameter(argument):
    return of(argument)[0] + argument.name


def public(type_name):
    """Returns the C type that public prototypes use for `type_name`. Public prototypes take lists as grd_dims_view or grd_tensors_view, which C and
    C++ pass in the same way."""
    return {"grd_dims ": "grd_dims_view ", "grd_tensors ": "grd_tensors_view "}.get(type_name, type_name)


def number(value):
    """Returns the C call that converts the Python number `value` to a grd_scalar."""
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
    """Returns the default value of an argument in C: of_list([...]) for a list, of_number(...) for a grd_scalar, otherwise a literal. A list's
    default may be a single number, which means a list of one element."""
    value = argument.default
    if argument.list:
        return of_list(value if isinstance(value, list) else [value])
    return of_number(value) if is_scalar(argument) else literal(value)


def default(argument):
    """Returns the argument's default value as a C expression. It has the type of the argument in op_<name>, the function that implements the
    operator."""
    ctype = of(argument)[0]
    if argument.default is None:
        return "NULL" if ctype.endswith("*") else f"({ctype.strip()}){{0}}" if argument.kind != "dtype" else "GRD_DTYPE_NONE"
    return typed_default(argument, dims, number)


def static_default(argument):
    """Returns the argument's default value as a constant C expression, because a static initialiser may not call functions."""
    return typed_default(argument, static_dims, static_number)


def static_dims(values):
    """Returns a constant C initialiser of a grd_dims."""
    return f"{{{len(values)}, (const int64_t[]){{{', '.join(map(str, values)) or '0'}}}}}"


def static_number(value):
    """Returns a constant C initialiser of a grd_scalar with the Python number `value`."""
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
    """True if the argument is a number whose default must be written into the options struct. A member that the caller leaves at zero bits holds
    the number 0, so a default of 0 need not be written. In a grd_scalar zero bits mean "not given", so every default must be written."""
    return argument.kind in NUMBERS and not argument.list and (argument.default is not None if is_scalar(argument) else bool(argument.default))


def from_option(argument):
    """Returns the C expression that reads an option from the options struct. A grd_scalar that is marked as not given is passed on unchanged. The
    functions that calls.py generates replace it by the default."""
    field = f"options->{argument.name}"
    if is_scalar(argument):
        return f"&{field}"
    if argument.list and argument.kind == "int":
        return f"grd_given_list(&{field}, {default(argument)})"
    if argument.kind == "str" and argument.default is not None:
        return f"{field} ? {field} : {default(argument)}"
    return field


def value(argument, expression):
    """Returns the C initialiser of a grd_value with the value of the C expression `expression`."""
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
