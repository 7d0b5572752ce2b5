"""Generates the C functions that call operators. A call depends on the C types of the arguments and of the result alone. These types are the operator's "shape", and operators
with the same shape share the functions.

A shape is named by letters: o_tts returns a tensor that may be given as `out` (o) and takes two tensors and a scalar. Each shape has a header, gen/calls/o_tts.h, with
the type of the kernel; unbox_o_tts, which calls a kernel with grd_values; boxed_o_tts, which calls an operator with grd_values; call_o_tts, which checks the arguments, dispatches
and closes the call; and, for operators that write a tensor, write_o_tts and out_o_tts, which check that tensor and then call call_o_tts.
"""
from dataclasses import replace

from codegen import ctype
from codegen.template import fill, function, wrap

LETTERS = {"TENSOR": "t", "TENSORS": "l", "SCALAR": "s", "INT": "i", "FLOAT": "f", "BOOL": "b", "DIMS": "d", "DTYPE": "y",
           "DEVICE": "v", "STRING": "z", "GENERATOR": "g"}
MAY_BE_ABSENT = {"t": "T", "z": "Z", "y": "Y"}

UNBOX = """
    static inline void unbox_$shape(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
    {
        $unused
        $call
    }
"""

# The call of an operator that has no typed kernel. It is not inlined, so that the code of the usual call stays small.
BOXED = """
    GRD_APART ${result}boxed_$shape($parameters)
    {
        $args
        $boxed
    }
"""

CALL = """
    GRD_INLINE ${result}call_$shape($parameters)
    {
        $numbers
        const struct grd_way way = $way;
        if (GRD_UNLIKELY(way.kernel == NULL)) return boxed_$shape($passed);
        $direct
    }
"""


def shape(operator):
    """Returns the name of the operator's shape: a letter for the result, and a letter for each argument. Results: o, a tensor that may be `out`; c, the same of an operator
    whose call does not bump the version (counts_writes); t, a new tensor; l, a list; m and a number, that many tensors."""
    if operator.has_out:
        result = "o" if counts_writes(operator) else "c"
    else:
        result = "l" if operator.returns_list else "t" if len(operator.results) == 1 else f"m{len(operator.results)}"
    return f"{result}_{''.join(map(letter, operator.args))}"


def letter(argument):
    plain = LETTERS[ctype.of(argument)[2]]
    if plain == "s":
        return "S" if argument.has_default else "s"
    return MAY_BE_ABSENT.get(plain, plain) if argument.may_be_absent else plain


def counts_writes(operator):
    """True if the operator's call bumps the version of the tensor that it writes. False for a composite, because the operators it calls bump it."""
    return operator.has_out and not operator.is_composite and operator.version


# ---- Parts ------------------------------------------------------------------------------------------------------------------


def valid(arguments):
    """Returns the C condition that is false for values that the C type of an argument allows and its kind does not: a NULL tensor or string, a list with a length and no data,
    a number that is no dtype, a number in the place of a device."""
    tests = []
    for a in arguments:
        if a.list:
            tests.append(f"grd_is_{'tensor' if a.is_tensor else 'int'}_list({a.name})")
        elif a.kind in ("Tensor", "str") and not a.may_be_absent:
            tests.append(f"{a.name} != NULL")
        elif a.kind == "dtype":
            tests.append(f"grd_is_dtype({a.name})" + ("" if a.may_be_absent else f" && {a.name} != GRD_DTYPE_NONE"))
        elif a.kind == "device":
            tests.append(f"!grd_is_plain_device({a.name})")
    return " && ".join(tests)


def keys(operator, arguments):
    words = [f"grd_list_keys({a.name})" if a.list else f"{'grd_keys_if' if a.may_be_absent else 'grd_keys_of'}({a.name})" for a in arguments if a.is_tensor]
    words += ["grd_keys_if(out)"] * operator.has_out + [f"grd_device_keys({a.name})" for a in arguments if a.kind == "device"]
    return " | ".join(words) or "0"


def set_value(place, argument):
    kind = ctype.of(argument)[2]
    return f"grd_set_{kind.lower()}(&{place}, {argument.name});"


def parameters(operator, arguments, *more):
    """Returns the parameters of a shape's function. Scalars are passed by pointer, so that only the call of the kernel copies them. `out` comes after the arguments, because
    the caller has these in the right registers already."""
    words = [f"const grd_scalar *{a.name}" if ctype.is_scalar(a) else ctype.parameter(a) for a in arguments]
    words += ["grd_tensor *out"] * operator.has_out + ["grd_tensor **ret_results"] * (len(operator.results) > 1)
    return ", ".join([*words, *more, "const struct grd_op *op"])


def passed(operator, arguments, *more):
    words = [a.name for a in arguments] + ["out"] * operator.has_out + ["ret_results"] * (len(operator.results) > 1)
    return ", ".join([*words, *more, "op"])


def result(operator):
    return ctype.implementation_result(operator)



# ---- Functions of a shape -----------------------------------------------------------------------------------------------------


def kernel_type(operator, name, arguments):
    words = ["grd_tensor *out"] * operator.has_out + [ctype.parameter(a) for a in arguments] + ["grd_tensor **ret_results"] * (len(operator.results) > 1)
    return wrap(words or ["void"], f"typedef {result(operator)}kernel_{name}(", ");")


def unbox_function(operator, name, arguments):
    words = ["out"] * operator.has_out + [f"args[{i}].v.{ctype.of(a)[1]}" for i, a in enumerate(arguments)]
    count = len(operator.results)
    unused = "".join(f"(void){n};\n" for n in ["out"] * (not operator.has_out) + ["args"] * (not arguments))
    call = f"((kernel_{name} *)kernel)({', '.join(words + ['results'] * (count > 1))})"
    if count > 1:
        call = f"grd_tensor *results[{count}];\n{call};\n" + "".join(f"grd_set_tensor(&ret_results[{i}], results[{i}]);\n" for i in range(count))
    else:
        call = f"grd_set_tensor{'s' if operator.returns_list else ''}(ret_results, {call});"
    return fill(UNBOX, shape=name, unused=unused, call=call)


def boxed_function(operator, name, arguments):
    setters = wrap([f"grd_value args[{len(arguments) or 1}];", *(set_value(f"args[{i}]", a) for i, a in enumerate(arguments))], separator=" ", indent="")
    if len(operator.results) > 1:
        boxed = "grd_boxed_many(op, keys, mark, args, ret_results);"
    elif operator.returns_list:
        boxed = "return grd_boxed_list(op, keys, mark, args);"
    else:
        boxed = f"return grd_boxed(op, keys, mark, {'out' if operator.has_out else 'NULL'}, args);"
    return fill(BOXED, result=result(operator), shape=name, parameters=parameters(operator, arguments, "grd_keyset keys", "int64_t mark"),
                args=setters, boxed=boxed)


def call_function(operator, name, arguments):
    many = len(operator.results) > 1
    tests, enter = valid(arguments), f"grd_enter(op, {keys(operator, arguments)})"
    words = ["out"] * operator.has_out + [f"*{a.name}" if ctype.is_scalar(a) else a.name for a in arguments] + ["ret_results"] * many
    kernel = f"((kernel_{name} *)way.kernel)({', '.join(words)})"
    if many:
        direct = f"{kernel};\ngrd_leave_many(op, way.mark, ret_results, {len(operator.results)});"
    elif operator.returns_list:
        direct = f"return grd_leave_list(op, way.mark, {kernel});"
    elif counts_writes(operator):
        direct = f"return grd_leave_written(op, way.mark, {kernel}, out);"
    else:
        direct = f"return grd_leave(op, way.mark, {kernel});"
    options = [(i, a) for i, a in enumerate(arguments) if letter(a) == "S"]
    numbers = "".join(f"grd_scalar room{i};\n{a.name} = grd_given_number({a.name}, &op->args[{i}].value.v.scalar, &room{i});\n" for i, a in options)
    text = fill(CALL, result=result(operator), shape=name, parameters=parameters(operator, arguments), numbers=numbers, way=f"{tests} ? {enter} : grd_refused" if tests else enter,
                passed=passed(operator, arguments, "way.keys", "way.mark"), direct=direct)
    return text


def write_function(operator, name, arguments):
    """Returns the function that the in-place and out= forms call."""
    return function(f"GRD_APART grd_tensor *write_{name}({parameters(operator, arguments)})",
                    f"return grd_check_writable(op, out) ? call_{name}({passed(operator, arguments)}) : grd_failed;")


def out_function(operator, name, arguments):
    """Returns the function that the out= form calls if the operator has a rule for the dtype of out=."""
    tensors = ", ".join(a.name for a in arguments if a.is_tensor and not a.list)
    given = next((a.name for a in arguments if a.kind == "dtype"), "GRD_DTYPE_NONE")
    return function(f"static inline grd_tensor *out_{name}({parameters(operator, arguments)})",
                    f"grd_tensor *const inputs[] = {{{tensors}}};\n"
                    f"return grd_check_out_call(op, out, grd_tensors_from(inputs, GRD_LENGTH(inputs)), {given}) ? write_{name}({passed(operator, arguments)}) : grd_failed;")


def writes(operator):
    return operator.has_out and any(form != "functional" for form in operator.forms)


def has_out_rule(operator):
    return bool(operator.out) and "out" in operator.forms


def functions(users):
    """Returns the functions of one shape. `users` are the operators that have this shape."""
    operator, name = users[0], shape(users[0])
    arguments = [replace(a, name=f"{letter(a).lower()}{i}") for i, a in enumerate(operator.args)]
    parts = [unbox_function(operator, name, arguments), boxed_function(operator, name, arguments), call_function(operator, name, arguments)]
    if any(map(writes, users)):
        parts.append(write_function(operator, name, arguments))
    if any(map(has_out_rule, users)):
        parts.append(out_function(operator, name, arguments))
    return kernel_type(operator, name, arguments) + "".join(parts)


def header_path(operator):
    return f"gen/calls/{shape(operator)}.h"


def files(operators):
    """Returns {path: text} of a header for each shape. An operator with a new shape adds a header, so that only the operator's own family is compiled again."""
    shapes = {}
    for operator in (o for o in operators.values() if o.is_operator):
        shapes.setdefault(header_path(operator), []).append(operator)
    return {path: "#pragma once /* Generated by codegen. */\n" + functions(users) for path, users in shapes.items()}
