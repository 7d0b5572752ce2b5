"""Generates the C functions that call operators. The code of a call depends only on the C types of the arguments and of the result. These types are
called the operator's "shape" here, and operators with the same shape share these functions.

The name of a shape has a letter for each type. For example, o_tts returns a tensor that may be given as `out` (o) and takes two tensors (t) and a
scalar (s). Each shape has a header, e.g. gen/calls/o_tts.h, with the following names:
- kernel_o_tts, the C type of the kernel
- unbox_o_tts, which calls a kernel with an array of grd_value
- boxed_o_tts, which calls an operator that has no typed kernel, with an array of grd_value
- call_o_tts, which checks the arguments, calls the kernel for their dispatch keys, and drops the temporary tensors of the call
- write_o_tts and out_o_tts, for operators that write a tensor: these check that tensor and then call call_o_tts
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

# C template of the function that calls an operator whose kernel takes an array of grd_value. The function is not inlined, so that the code of the
# usual call stays small.
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
    """Returns the name of the operator's shape, i.e. of the C types of its result and arguments: a letter for the result, an underscore, and a letter
    for each argument.

    The result's letter is t for a new tensor, l for a list, and m with a number for that many tensors. For a tensor that may be given as `out` it is
    o if the call itself increments the version counter of `out` (counts_writes), and otherwise c.
    """
    if operator.has_out:
        result = "o" if counts_writes(operator) else "c"
    else:
        result = "l" if operator.returns_list else "t" if len(operator.results) == 1 else f"m{len(operator.results)}"
    return f"{result}_{''.join(map(letter, operator.args))}"


def letter(argument):
    """Returns the letter of an argument's C type. The letter is upper case if the argument may be absent."""
    letter = LETTERS[ctype.of(argument)[2]]
    if letter == "s":
        return "S" if argument.has_default else "s"
    return MAY_BE_ABSENT.get(letter, letter) if argument.may_be_absent else letter


def counts_writes(operator):
    """True if the call itself increments the version counter of the tensor that the operator writes. False for a composite, because the operators
    that it calls increment the counter."""
    return operator.has_out and not operator.is_composite and operator.version


# ---- Arguments and checks ---------------------------------------------------------------------------------------------------


def valid(arguments):
    """Returns a C condition that is true if the value of each argument fits the argument's type in the schema. The condition is false for values that
    only the C type allows. These are a NULL tensor or string, a list with a length but no data, a number that is not a dtype, and a number in
    place of a device."""
    tests = []
    for a in arguments:
        if a.list:
            tests.append(f"grd_is_{'tensor' if a.is_tensor else 'int'}_list({a.name})")
        elif a.kind in ("Tensor", "str") and not a.may_be_absent:
            tests.append(f"{a.name} != NULL")
        elif a.kind == "dtype":
            tests.append(f"grd_is_dtype({a.name})" + ("" if a.may_be_absent else f" && {a.name} != GRD_DTYPE_NONE"))
        elif a.kind == "device":
            tests.append(f"!grd_device_is_number({a.name})")
    return " && ".join(tests)


def keys(operator, arguments):
    """Returns the C expression for the union of the arguments' dispatch keys."""
    words = [f"grd_list_keys({a.name})" if a.list else f"{'grd_keys_if' if a.may_be_absent else 'grd_keys_of'}({a.name})" for a in arguments if a.is_tensor]
    words += ["grd_keys_if(out)"] * operator.has_out + [f"grd_device_keys({a.name})" for a in arguments if a.kind == "device"]
    return " | ".join(words) or "0"


def set_value(place, argument):
    kind = ctype.of(argument)[2]
    return f"grd_set_{kind.lower()}(&{place}, {argument.name});"


def parameters(operator, arguments, *more):
    """Returns the C parameter list of a function that operators with equal C types share. Scalars are passed by pointer, so that only the call of
    the kernel copies them. `out` comes after the arguments, so that the arguments stay in the same registers when the function passes them on."""
    words = [f"const grd_scalar *{a.name}" if ctype.is_scalar(a) else ctype.parameter(a) for a in arguments]
    words += ["grd_tensor *out"] * operator.has_out + ["grd_tensor **ret_results"] * (len(operator.results) > 1)
    return ", ".join([*words, *more, "const struct grd_op *op"])


def passed(operator, arguments, *more):
    """Returns the C argument list with which one function passes all its arguments on to another. Both have the parameter list that parameters()
    returns."""
    words = [a.name for a in arguments] + ["out"] * operator.has_out + ["ret_results"] * (len(operator.results) > 1)
    return ", ".join([*words, *more, "op"])


def result(operator):
    return ctype.implementation_result(operator)



# ---- Functions of a shape -----------------------------------------------------------------------------------------------------


def kernel_type(operator, name, arguments):
    """Returns the C typedef kernel_NAME, the type of a kernel whose C parameters have the types of the operator's arguments. Other kernels take an
    array of grd_value."""
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
    """Returns the C function write_NAME, which the in-place and out= forms call. It checks that `out` can be written, and then calls call_NAME."""
    return function(f"GRD_APART grd_tensor *write_{name}({parameters(operator, arguments)})",
                    f"return grd_check_writable(op, out) ? call_{name}({passed(operator, arguments)}) : grd_failed;")


def out_function(operator, name, arguments):
    """Returns the C function out_NAME. The out= form calls it if the operator's schema entry has the key `out.dtype`, the rule for the dtype of
    `out`. out_NAME checks this dtype, and then calls write_NAME."""
    tensors = ", ".join(a.name for a in arguments if a.is_tensor and not a.list)
    given = next((a.name for a in arguments if a.kind == "dtype"), "GRD_DTYPE_NONE")
    return function(f"static inline grd_tensor *out_{name}({parameters(operator, arguments)})",
                    f"grd_tensor *const inputs[] = {{{tensors}}};\n"
                    f"return grd_check_out_call(op, out, grd_tensors_from(inputs, GRD_LENGTH(inputs)), {given}) ? write_{name}({passed(operator, arguments)}) : grd_failed;")


def writes(operator):
    """True if the operator has an in-place or out= form."""
    return operator.has_out and any(form != "functional" for form in operator.forms)


def has_out_rule(operator):
    return bool(operator.out) and "out" in operator.forms


def functions(users):
    """Returns the C functions that operators with equal C types share. `users` are these operators."""
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
    """Returns {path: text} with a header for each shape, i.e. each combination of C types. A new shape adds a header and leaves the other headers
    unchanged, so that only the generated code of the new operator's schema file is recompiled."""
    shapes = {}
    for operator in (o for o in operators.values() if o.is_operator):
        shapes.setdefault(header_path(operator), []).append(operator)
    return {path: "#pragma once /* Generated by codegen. */\n" + functions(users) for path, users in shapes.items()}
