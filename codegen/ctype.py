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
LETTERS = {"TENSOR": "t", "TENSORS": "l", "SCALAR": "s", "INT": "i", "FLOAT": "f", "BOOL": "b", "DIMS": "d", "DTYPE": "y",
           "DEVICE": "v", "STRING": "z", "GENERATOR": "g"}


def of(argument):
    """(C type, grd_value member, grd_kind) of an argument as implementations take it."""
    if argument.list:
        return LISTS[argument.kind]
    if argument.kind in NUMBERS and argument.may_be_absent:
        return SCALARS["Scalar"]
    return SCALARS[argument.kind]


def of_option(argument):
    """C type of the field of the options struct: numbers whose default is not zero-like are scalars, so that zero means absent."""
    if argument.kind in NUMBERS and not argument.list and not (argument.kind == "bool" and argument.default is False):
        return "grd_scalar "
    return of(argument)[0]


def parameter(argument):
    return of(argument)[0] + argument.name


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


def dims(values):
    return f"grd_dims({', '.join(map(str, values))})" if values else "GRD_NO_DIMS"


def is_scalar(argument):
    return of(argument)[0] == "grd_scalar "


def has_scalar_default(argument):
    return is_scalar(argument) and argument.default is not None


def from_option(argument, defaults):
    """The C expression that reads an option; for a scalar, that points to it. `defaults` names the struct that has the values of those."""
    field, ctype = f"options->{argument.name}", of(argument)[0]
    if of_option(argument) != "grd_scalar ":
        if argument.list and argument.kind == "int" and argument.default is not None:
            return f"{field}.data ? {field} : {default(argument)}"
        if argument.kind == "str" and argument.default is not None:
            return f"{field} ? {field} : {default(argument)}"
        return field
    if ctype == "grd_scalar ":
        return f"{field}.kind ? &{field} : &{defaults}.{argument.name}" if has_scalar_default(argument) else f"&{field}"
    read = {"int": "grd_scalar_int64({0})", "float": "grd_scalar_double({0})", "bool": "grd_scalar_int64({0}) != 0"}[argument.kind]
    return f"{field}.kind ? {read.format(field)} : {default(argument)}"


def value(argument, expression):
    """A grd_value initialiser around a C expression."""
    _, member, kind = of(argument)
    return f"{{.kind = GRD_KIND_{kind}, .v.{member} = {expression}}}"


def set_value(place, argument, expression):
    """The same as statements: an initialiser would clear the rest of the value, for every call."""
    _, member, kind = of(argument)
    return f"    {place}.kind = GRD_KIND_{kind};\n    {place}.v.{member} = {expression};\n"


def letters(operator):
    """The C signature of an operator's implementation as a short name, e.g. 'o_tts' (out, two tensors, a scalar)."""
    result = "l" if operator.returns_list else "o" if operator.has_out else "t" if len(operator.results) == 1 else f"m{len(operator.results)}"
    return f"{result}_{''.join(LETTERS[of(a)[2]] for a in operator.args)}"


def implementation_parameters(operator):
    parameters = ["grd_tensor *out"] if operator.has_out else []
    parameters += [parameter(a) for a in operator.args]
    if len(operator.results) > 1:
        parameters.append("grd_tensor **ret")
    return ", ".join(parameters) or "void"


def implementation_result(operator):
    return "grd_tensors " if operator.returns_list else "void " if len(operator.results) > 1 else "grd_tensor *"
