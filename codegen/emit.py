"""From operators to C: the public header, and per operator its implementation (where declared), entry functions and backward.

Everything about one operator stands together in gen/<family>.c, so that it can be read, and shown, as a whole.
"""
import json

from codegen import ctype, plans
from codegen.formula import Lowering, argument_type
from codegen.schema import KERNELS, WORDS

BANNER = "/* Generated from {} by codegen. Do not edit. */\n"


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def index(operator):
    return f"GRD_OP_{operator.c_name.upper()}"


def required(operator):
    return [a for a in operator.args if not a.has_default]


def options(operator):
    return [a for a in operator.args if a.has_default]


# ---- Public header ---------------------------------------------------------------------------------------------------

def form_names(operator):
    """[(suffix, takes out)] of the public functions."""
    names = {"functional": ("", False), "inplace": ("_", False), "out": ("_out", True)}
    return [names[form] for form in operator.forms]


def result_type(operator):
    if len(operator.results) > 1:
        return f"grd_{operator.c_name}_result "
    return ctype.public(ctype.implementation_result(operator))


def public_parameters(operator, takes_out, scalar=False):
    words = ["grd_tensor *out"] if takes_out else []
    for argument in required(operator):
        replaced = scalar and argument is second_tensor(operator)
        words.append(f"grd_scalar {argument.name}" if replaced else ctype.public(ctype.of(argument)[0]) + argument.name)
    return words


def second_tensor(operator):
    return [a for a in operator.args if a.is_tensor][1]


def doc_comment(operator):
    lines = [f"/* {operator.schema}", f" * {operator.doc}"]
    lines += [f" * {name}: {words}." for name, words in operator.words.items()]
    for name, formula in (operator.grads or {}).items():
        lines.append(f" * d/d{name}: {formula}")
    if operator.formula:
        lines.append(f" * Formula: {operator.formula}")
    return "\n".join(lines) + " */\n"


def public_functions(operator):
    """[(name, parameters)] of an operator: its forms, each with a variant that takes a number where the schema says so."""
    functions = []
    for suffix, takes_out in form_names(operator):
        functions.append((operator.c_name + suffix, public_parameters(operator, takes_out)))
        if operator.scalar and not takes_out:
            functions.append((f"{operator.c_name}_scalar{suffix}", public_parameters(operator, takes_out, scalar=True)))
    return functions


def option_marks(operator):
    """The members of an options struct that stand for options not given. The last member is named in any case: so an option without a name is a
    member too many."""
    marks = {a.name: ctype.option_mark(a) for a in options(operator)}
    last = options(operator)[-1]
    marks[last.name] = marks[last.name] or ("false" if last.kind == "bool" else "0" if last.kind in ("int", "float") else ctype.option_default(last))
    return ", ".join(f".{name} = {mark}" for name, mark in marks.items() if mark)


def declare(operator):
    """Plain prototypes; with options, a macro that names them in C and a default argument in C++, over grd_with_…."""
    text = doc_comment(operator)
    if len(operator.results) > 1:
        fields = "".join(f"    grd_tensor *{name};\n" for name in operator.results)
        text += f"typedef struct grd_{operator.c_name}_result {{\n{fields}}} grd_{operator.c_name}_result;\n"
    result, functions, api = result_type(operator), public_functions(operator), "" if operator.hidden else "GRD_API "
    if not options(operator):
        return text + "".join(f"{api}{result}grd_{name}({', '.join(words) or 'void'});\n" for name, words in functions)
    struct, marks = f"grd_{operator.c_name}_options", f"GRD_{operator.c_name.upper()}_DEFAULTS"
    fields = "".join(f"    {ctype.of(a)[0]}{a.name} GRD_DEFAULT({ctype.option_default(a)});{default_note(a)}\n" for a in options(operator))
    text += f"typedef struct {struct} {{\n{fields}}} {struct};\n"
    plain = cpp = macros = ""
    for name, words in functions:
        names = [w.split()[-1].lstrip("*") for w in words]
        given = "".join(f"{w}, " for w in words)
        plain += f"{api}{result}grd_with_{name}({given}const {struct} *options);\n"
        cpp += (f'extern "C++" inline {result}grd_{name}({given}const {struct} &options = {struct}())\n'
                f"{{\n    return grd_with_{name}({''.join(f'{n}, ' for n in names)}&options);\n}}\n")
        macros += (f"#define grd_{name}(...) grd_named_{name}(__VA_ARGS__, )\n"
                   f"#define grd_named_{name}({''.join(f'{n}, ' for n in names)}...) "
                   f"GRD_NAMED(grd_with_{name}({''.join(f'({n}), ' for n in names)}GRD_GIVEN(#__VA_ARGS__, &({struct}){{{marks}, __VA_ARGS__}})))\n")
    return f"{text}{plain}#ifdef __cplusplus\n{cpp}#else\n#define {marks} {option_marks(operator)}\n{macros}#endif\n"


def default_note(argument):
    """The default that the member's own does not say."""
    return f" /* default {ctype.literal(argument.default)} */" if argument.list and argument.default is not None else ""


INTRODUCTION = """/* Every operator, generated from its entry in schema/.
 *
 * How to read it. Above each function stands the operator's signature as PyTorch writes it, what it computes, and for each argument that has a derivative its
 * formula: d/dself: grad * other. "Formula" is what the operator is, in terms of others. grd_add returns a new tensor (or a view, where it says so), grd_add_ writes
 * its first argument and returns it, grd_add_out writes `out`, whose size it sets. grd_add_scalar is grd_add with a number for a tensor.
 *
 * Options. Arguments without a default come first. The others are given by name, in any order, or left out: grd_sum(x, .dim = 1, .keepdim = true). A
 * plain number is that number. A Scalar of the signature may be an integer or floating: a plain whole number below 2^53 counts as an integer, and grd_int, grd_float
 * and grd_complex_number say it. A list is grd_dims(0, 1), or a plain number for a list of one. NULL, or 0 for a pointer, is absent. In C++ options
 * are a struct: grd_sum(x, {.dim = 1}). grd_with_sum is the function below the macro. A grd_sum_options that a C program keeps begins as {GRD_SUM_DEFAULTS}; an
 * options argument that is NULL stands for the defaults.
 *
 * Results and scopes. A returned tensor belongs to the innermost open scope of the thread and goes when it closes, unless grd_keep is called
 * (gradus/runtime.h). A returned list and its `data` belong to that scope as its tensors do: nothing is freed, and a list is not used after the scope.
 *
 * Errors. A call that fails changes nothing, returns grd_failed, and leaves an error pending: then all operators return grd_failed at once. So one looks once,
 * at the end (gradus/error.h). TypeError, an argument of the wrong kind, NULL for a tensor; IndexError, a dimension or an index out of range; RuntimeError, shapes, dtypes,
 * devices that do not fit; others are named at the operator.
 *
 * Threads. Operators may be called by any threads at the same time: gradus/runtime.h says which calls may meet on one tensor. */
"""


def public_header(operators):
    body = "\n".join(declare(o) for o in operators.values() if not o.hidden)
    return (BANNER.format("schema") + INTRODUCTION + "#ifndef GRADUS_OPS_H\n#define GRADUS_OPS_H\n\n"
            '#include "gradus/options.h"\n#include "gradus/tensor.h"\n#include "gradus/types.h"\n\nGRD_BEGIN_DECLS\n\n' + body + "\nGRD_END_DECLS\n#endif\n")


def hidden_header(operators):
    """Hidden operators, which the library alone calls by these functions: others find them by name."""
    body = "\n".join(declare(o) for o in operators.values() if o.hidden)
    return BANNER.format("schema") + '#ifndef GRD_GEN_HIDDEN_OPS_H\n#define GRD_GEN_HIDDEN_OPS_H\n\n#include "gradus/ops.h"\n\n' + body + "\n#endif\n"


# ---- Implementations that the schema declares -------------------------------------------------------------------------

def implementation_prototype(operator):
    return f"{ctype.implementation_result(operator)}op_{operator.c_name}({ctype.implementation_parameters(operator)})"


def elementwise_entry(operator, operators):
    """The initialiser of its struct grd_elementwise."""
    members = [f".inputs = {KERNELS[operator.kernel]}", f".rule = GRD_TYPE_{operator.rule.upper()}", f".kernel = GRD_{operator.kernel.upper()}_{operator.c_name.upper()}"]
    members += [f".{flag} = true" for flag in ("mask", "divides", "commutes") if getattr(operator, flag)]
    for category, (error, text) in operator.refuse.items():
        members.append(f".refusal = &(const struct grd_refusal){{GRD_CATEGORY_{category.upper()}, {error}, {json.dumps(text)}}}")
    if operator.number:
        members.append(f".number = &(const struct grd_elementwise){elementwise_entry(operators[operator.number], operators)}")
    return f'{{{", ".join(members)}, .name = "{operator.name}"}}'


def elementwise_implementation(operator, operators):
    tensors = ", ".join(a.name for a in operator.args if a.is_tensor)
    numbers = [ctype_scalar(a) for a in operator.args if a.kind in ctype.NUMBERS]
    parameters = f"(const grd_scalar[]){{{', '.join(numbers)}}}" if numbers else "NULL"
    return (f"static const struct grd_elementwise {operator.c_name}_elementwise = {elementwise_entry(operator, operators)};\n\n"
            f"{implementation_prototype(operator)}\n{{\n"
            f"    return grd_op_{operator.kernel}(out, {tensors}, &{operator.c_name}_elementwise, {parameters});\n}}\n")


def ctype_scalar(argument):
    kind = argument_type(argument)
    return argument.name if kind == "Scalar" else f"grd_{kind}({argument.name})"


def formula_implementation(operator, operators):
    value = Lowering(operator, operators, "formula").lower(operator.formula)
    tensors = [a.name for a in operator.args if a.is_tensor and not a.list]
    check = f"    if (!grd_out_check_inputs(out, grd_tensors({', '.join(tensors)})))\n        return grd_failed;\n" if operator.has_out and len(tensors) > 1 else ""
    first = operator.args[0].name if operator.args and operator.args[0].is_tensor and not operator.args[0].list else "NULL"
    if "inplace" in operator.forms:
        body = (f"{check}    grd_tensor *given = {first};\n    {first} = grd_composite_input(out, given);\n"
                f"    return grd_composite_finish(out, given, {value.c});\n")
    else:
        body = f"{check}    return {f'grd_composite_finish(out, {first}, {value.c})' if operator.has_out else value.c};\n"
    return f"{implementation_prototype(operator)}\n{{\n{body}}}\n"


def implementation(operator, operators):
    if operator.kernel:
        return elementwise_implementation(operator, operators)
    if operator.formula:
        return formula_implementation(operator, operators)
    if operator.planned:
        return plans.implementation(operator, implementation_prototype(operator), index(operator))
    return ""


# ---- Entry functions ------------------------------------------------------------------------------------------------------

def tensor_arguments(operator):
    return [a for a in operator.args if a.is_tensor]


def key_expression(operator):
    words = []
    for a in tensor_arguments(operator):
        words.append(f"grd_list_keys({a.name})" if a.list else f"({a.name} ? grd_keys_of({a.name}) : 0)" if a.may_be_absent else f"grd_keys_of({a.name})")
    if operator.has_out:
        words.append("(out ? grd_keys_of(out) : 0)")
    if operator.arg("device"):
        words.append("grd_device_keys(device)")
    return " | ".join(words) or "0"


def argument_tests(operator):
    """What an argument's C type can hold but its kind cannot: NULL for a tensor or a word, a length without a list, a number that is no dtype
    or was given for a device."""
    tests = []
    for a in operator.args:
        if a.list:
            tests.append(f"!grd_is_{'tensor' if a.is_tensor else 'int'}_list({a.name})")
        elif a.kind in ("Tensor", "str") and not a.may_be_absent:
            tests.append(f"{a.name} == NULL")
        elif a.kind == "dtype":
            tests.append(f"!grd_is_dtype({a.name})" + ("" if a.may_be_absent else f" || {a.name} == GRD_DTYPE_NONE"))
        elif a.kind == "device":
            tests.append(f"grd_is_plain_device({a.name})")
    return " || ".join(tests)


def failed_value(operator):
    if operator.returns_list:
        return "(grd_tensors){0}"
    if len(operator.results) > 1:
        return f"(grd_{operator.c_name}_result){{{', '.join(['grd_failed'] * len(operator.results))}}}"
    return "grd_failed"


def call_parameters(operator):
    """Of NAME_call and what it is made of: numbers come by pointer, so that they are copied once, for the kernel."""
    words = [f"const grd_scalar *{a.name}" if ctype.is_scalar(a) else ctype.parameter(a) for a in operator.args]
    return (["grd_tensor *out"] if operator.has_out else []) + words


def call_arguments(operator):
    return (["out"] if operator.has_out else []) + [a.name for a in operator.args]


def read(argument):
    return f"*{argument.name}" if ctype.is_scalar(argument) else argument.name


def boxed_function(operator):
    """NAME_boxed(keys, out, …, results): the way of a call without a typed kernel, and of one with an argument that cannot be, which it refuses."""
    out = "out" if operator.has_out else "NULL"
    values = "".join(ctype.set_value(f"args[{i}]", a, read(a)) for i, a in enumerate(operator.args))
    parameters = ", ".join(["grd_keyset keys", *call_parameters(operator), "grd_value *results"])
    return (f"static __attribute__((noinline)) void {operator.c_name}_boxed({parameters})\n{{\n"
            f"    grd_value args[{len(operator.args) or 1}];\n{values}"
            f"    grd_call_boxed(&grd_op_table[{index(operator)}], keys, {out}, args, results);\n}}\n")


def call_function(operator):
    """NAME_call(out, …): checks, dispatches, leaves; every public form goes through it."""
    kernel, count, arguments = f"{operator.c_name}_kernel", len(operator.results), call_arguments(operator)
    values = (["out"] if operator.has_out else []) + [read(a) for a in operator.args]
    if count > 1:
        direct = f"        (({kernel} *)kernel)({', '.join([*values, 'returned'])});\n"
        local, unbox = f"grd_tensor *returned[{count}]", "".join(f"        returned[{i}] = boxed[{i}].v.tensor;\n" for i in range(count))
        leave = (f"    grd_leave_many(op, mark, returned, {count});\n"
                 f"    return (grd_{operator.c_name}_result){{{', '.join(f'returned[{i}]' for i in range(count))}}};\n")
    else:
        direct = f"        returned = (({kernel} *)kernel)({', '.join(values)});\n"
        local, unbox = f"{ctype.implementation_result(operator)}returned", f"        returned = boxed[0].v.{'tensors' if operator.returns_list else 'tensor'};\n"
        leave = "    return grd_leave_list(op, mark, returned);\n" if operator.returns_list else f"    return grd_leave({index(operator)}, mark, returned);\n"
    bump = "        grd_written(out);\n" if counts_writes(operator) else ""
    tests = argument_tests(operator)
    refusal = (f"    if (GRD_UNLIKELY({tests})) {{\n        {operator.c_name}_boxed({', '.join(['0', *arguments, 'NULL'])});\n"
               f"        return {failed_value(operator)};\n    }}\n") if tests else ""
    return (f"typedef {ctype.implementation_result(operator)}{kernel}({ctype.implementation_parameters(operator)});\n\n"
            f"{boxed_function(operator)}\n"
            f"GRD_INLINE {result_type(operator)}{operator.c_name}_call({', '.join(call_parameters(operator)) or 'void'})\n{{\n"
            f"    const struct grd_op *op = &grd_op_table[{index(operator)}];\n"
            f"    if (grd_pending())\n        return {failed_value(operator)};\n"
            f"{refusal}"
            f"    {local};\n"
            f"    const grd_keyset keys = grd_active_keys({key_expression(operator)});\n"
            f"    const int64_t mark = grd_pool_mark();\n"
            f"    grd_kernel *kernel = grd_typed_kernel(op, keys);\n"
            f"    if (GRD_LIKELY(kernel != NULL)) {{\n{direct}{bump}    }} else {{\n"
            f"        grd_value boxed[{count}];\n"
            f"        {operator.c_name}_boxed({', '.join(['keys', *arguments, 'boxed'])});\n{unbox}    }}\n"
            f"{leave}}}\n")


def counts_writes(operator):
    """Whether a call bumps the version of what it writes. The parts of a composite do that."""
    return operator.has_out and not operator.is_composite and operator.version


def writes(operator):
    return operator.has_out and any(form != "functional" for form in operator.forms)


def write_function(operator):
    """NAME_write(out, …): the call of the forms that write a tensor, once for all of them."""
    return (f"static __attribute__((noinline)) {result_type(operator)}{operator.c_name}_write({', '.join(call_parameters(operator))})\n{{\n"
            f"    return grd_check_writable(&grd_op_table[{index(operator)}], out) ? {operator.c_name}_call({', '.join(call_arguments(operator))}) : grd_failed;\n}}\n")


def out_check(operator):
    tensors = [a.name for a in operator.args if a.is_tensor and not a.list]
    given = next((f"options == NULL ? GRD_DTYPE_NONE : options->{a.name}" for a in operator.args if a.kind == "dtype"), "GRD_DTYPE_NONE")
    inputs = f"grd_tensors_from((grd_tensor *const[]){{{', '.join(tensors)}}}, {len(tensors)})"
    return f"grd_check_out_call(&grd_op_table[{index(operator)}], out, {inputs}, {given})"


def entry_function(operator, suffix, takes_out, scalar=False):
    words = public_parameters(operator, takes_out, scalar)
    name = f"{operator.c_name}{'_scalar' if scalar else ''}{suffix}"
    first = operator.args[0].name if suffix == "_" else "out" if takes_out else "NULL"
    number = second_tensor(operator).name if scalar else None
    given = [f"grd_number_argument(&grd_op_table[{index(operator)}], {a.name})" if a.name == number else ctype.from_option(a, f"{operator.c_name}_defaults") if a.has_default
             else f"&{a.name}" if ctype.is_scalar(a) else a.name for a in operator.args]
    if scalar and not suffix: # over the entry that takes a tensor
        with_options, call = f"{'with_' if options(operator) else ''}{operator.c_name}", [g.lstrip("&") for g, a in zip(given, operator.args) if not a.has_default]
        call = f"grd_{with_options}({', '.join(call + (['options'] if options(operator) else []))})"
    else:
        called = f"{operator.c_name}_{'call' if first == 'NULL' else 'write'}"
        call = f"{called}({', '.join(([first] if operator.has_out else []) + given)})"
    if takes_out and operator.out:
        call = f"{out_check(operator)} ? {call} : grd_failed"
    # A number that becomes a tensor is a temporary of this call.
    body = f"    const int64_t mark = grd_pool_mark();\n    return grd_leave_number(mark, {call});\n" if scalar else f"    return {call};\n"
    if options(operator):
        words.append(f"const grd_{operator.c_name}_options *options")
        name = f"with_{name}"
        if "options->" in call:
            rooms = "".join(f"    grd_scalar {a.name};\n" for a in options(operator) if ctype.is_scalar(a))
            body = f"{rooms}    if (options == NULL)\n        options = &{operator.c_name}_defaults;\n{body}"
    return f"{result_type(operator)}grd_{name}({', '.join(words) or 'void'})\n{{\n{body}}}\n"


def defaults(operator):
    """The options of a caller that gives none."""
    values = ", ".join(f".{a.name} = {static_default(a)}" for a in options(operator) if ctype.has_number_default(a))
    return f"static const grd_{operator.c_name}_options {operator.c_name}_defaults = {{{values or '0'}}};\n"


def entries(operator):
    parts = ([defaults(operator)] if options(operator) else []) + [call_function(operator)]
    if writes(operator):
        parts.append(write_function(operator))
    for suffix, takes_out in form_names(operator):
        parts.append(entry_function(operator, suffix, takes_out))
        if operator.scalar and not takes_out:
            parts.append(entry_function(operator, suffix, takes_out, scalar=True))
    return "\n".join(parts)


# ---- Backward -------------------------------------------------------------------------------------------------------------

def gradient_names(operator):
    if operator.returns_list:
        return {"grads": "Tensor[]"}
    if len(operator.results) > 1:
        return {f"grad_{name}": "Tensor" for name in operator.results} | {"grad": "Tensor"}
    return {"grad": "Tensor"}


def gradient_declarations(operator, used):
    if operator.returns_list:
        return ["    grd_tensors grads = {b->ngrads, b->grads};\n"] if "grads" in used else []
    lines = []
    for position, name in enumerate(operator.results):
        for variable in ([f"grad_{name}"] if len(operator.results) > 1 else []) + (["grad"] if position == 0 else []):
            if variable in used:
                lines.append(f"    grd_tensor *{variable} = b->grads[{position}];\n")
    return lines


def backward(operator, operators):
    """The backward function and its derivative table; '' where there is none."""
    if not operator.grads:
        return ""
    users, statements, used = {}, "", set()  # users: save -> positions of the arguments whose formula reads it
    for position, (name, formula) in enumerate(operator.grads.items()):
        lowering = Lowering(operator, operators, f"grad.{name}", gradient_names(operator))
        value = lowering.lower(formula)
        for save in lowering.saves:
            users.setdefault(save, []).append(position)
        used |= {n for n in gradient_names(operator) if n in words_of(" ".join([*lowering.statements, value.c]))}
        is_list = operator.arg(name).list
        if value.type == "None":
            continue
        result = lowering.convert(value, "Tensor[]" if is_list else "Tensor")
        target = f"grd_backward_spread(b, {position}, {result});" if is_list else f"b->ret_grads[b->first_edge[{position}]] = {result};"
        before = "".join(f"        {s}\n" for s in lowering.statements)
        opening, closing = (" {", "    }\n") if before else ("", "")
        statements += f"    if (b->needs >> {position} & 1){opening} /* {name}: {formula} */\n{before}        {target}\n{closing}"
    declarations = "".join(gradient_declarations(operator, used))
    for i, save in enumerate(users):
        c, member = saved_type(operator, save)
        declarations += f"    {c}{save.variable} = b->saved[{i}].v.{member};\n"
    rows = ", ".join(save_row(operator, save, positions) for save, positions in users.items())
    saves_table = f"static const struct grd_save {operator.c_name}_saves[] = {{{rows}}};\n" if users else ""
    positions = ", ".join(str([a.name for a in operator.args].index(name)) for name in operator.grads)
    unused = "" if statements else "    (void)b;\n"
    others = sum(1 << i for i, a in enumerate(operator.args) if a.is_tensor and a.name not in operator.grads)
    given = "".join(f' .given_name = "{name}", .given = {[a.name for a in operator.args].index(argument)},'
                    for argument, name in operator.nodes.items() if argument not in ("", "inplace"))
    given += f' .inplace_name = "{operator.nodes["inplace"]}",' if "inplace" in operator.nodes else ""
    flags = {"sized": any(save_how(operator, save) in SIZED for save in users), "lists": any(operator.arg(name).list for name in operator.grads),
             "materialize": operator.returns_list or len(operator.results) > 1}
    return (f"static void {operator.c_name}_backward(const struct grd_backward *b)\n{{\n{declarations}{statements}{unused}}}\n\n{saves_table}"
            f"static const uint8_t {operator.c_name}_differentiable[] = {{{positions}}};\n"
            f"const struct grd_derivative grd_derivative_{operator.c_name} = {{\n"
            f'    .node_name = "{operator.nodes.get("", camel(operator.name) + "Backward0")}",{given} .backward = {operator.c_name}_backward, '
            f".saves = {operator.c_name + '_saves' if users else 'NULL'}, .args = {operator.c_name}_differentiable,\n"
            f"    .others = {others}, .nsaves = {len(users)}, .nargs = {len(operator.grads)}, .results = {carrying_results(operator, used)}"
            f"{''.join(f', .{name} = true' for name, on in flags.items() if on)}}};\n")


def carrying_results(operator, used):
    """Bit set of the results that carry gradients: those whose gradient a formula reads; all, where none reads any."""
    bits = sum(1 << i for i, name in enumerate(operator.results) if f"grad_{name}" in used or (i == 0 and used & {"grad", "grads"}))
    return bits or (1 << len(operator.results)) - 1


SIZED = ("TENSORS", "DIMS", "STRING", "SHAPE", "STRIDES", "SIZES_ALONG")


def words_of(text):
    word, words = "", set()
    for c in text + " ":
        if c.isalnum() or c == "_":
            word += c
        else:
            words.add(word)
            word = ""
    return words


def saved_type(operator, save):
    facts = {"SHAPE": ("grd_dims ", "dims"), "STRIDES": ("grd_dims ", "dims"), "OFFSET": ("int64_t ", "integer"),
             "DTYPE": ("grd_dtype ", "dtype"), "DEVICE": ("grd_device ", "device"), "SIZES_ALONG": ("grd_dims ", "dims")}
    if save.how in facts:
        return facts[save.how]
    argument = operator.arg(save.name)
    if argument is None:
        return ("grd_tensors ", "tensors") if operator.returns_list else ("grd_tensor *", "tensor")
    return ctype.of(argument)[:2]


def save_how(operator, save):
    """What is saved, by the kind of the value; those in SIZED take room in the node."""
    if save.how != "WHOLE":
        return save.how
    argument = operator.arg(save.name)
    kind = ctype.of(argument)[2] if argument else "TENSORS" if operator.returns_list else "TENSOR"
    return kind if kind in ("TENSOR", "GENERATOR", *SIZED) else "VALUE"


def save_row(operator, save, users):
    names = [a.name for a in operator.args]
    is_result = save.name not in names
    position = operator.results.index(save.name) if is_result else names.index(save.name)
    extra = f", .extra = {names.index(save.extra)}" if save.extra else ""
    return f"{{.how = GRD_SAVE_{save_how(operator, save)}, .result = {str(is_result).lower()}, .index = {position}{extra}, .used_by = {sum(1 << u for u in users)}}}"


# ---- Files ----------------------------------------------------------------------------------------------------------------

def operator_text(operator, operators):
    """Everything generated for one operator, in reading order."""
    parts = [f"/* ---- {operator.schema} ({operator.file}:{operator.line}) */\n",
             implementation(operator, operators), entries(operator), backward(operator, operators)]
    return "\n".join(p for p in parts if p)


def view_calls(operators):
    """op_<name> of the views that are planned."""
    return BANNER.format("schema") + "\n".join(plans.view_call(o, implementation_prototype(o)) for o in operators.values() if o.planned_view)


def family_file(family, members, operators):
    head = (BANNER.format(family) + '#include <math.h>\n#include <string.h>\n\n#include "autograd/formula.h"\n#include "dispatch/op.h"\n#include "dispatch/option.h"\n#include "gen/op_index.h"\n'
            '#include "gen/hidden_ops.h"\n#include "gen/op_impl.h"\n#include "op/common.h"\n#include "op/composite.h"\n#include "op/elementwise.h"\n#include "op/lines.h"\n#include "op/plan.h"\n#include "op/reduce.h"\n\n')
    return head + "\n".join(operator_text(o, operators) for o in members)


def index_header(operators):
    rows = "".join(f"    {index(o)},\n" for o in operators.values())
    externs = "".join(f"extern const struct grd_derivative grd_derivative_{o.c_name};\n" for o in operators.values() if o.grads)
    return (BANNER.format("schema") + "#ifndef GRD_GEN_OP_INDEX_H\n#define GRD_GEN_OP_INDEX_H\n\n"
            f'#include "autograd/derivative.h"\n\nenum grd_op_index {{\n{rows}    GRD_OP_COUNT\n}};\n\n{externs}\n#endif\n')


def words_macros(operators):
    """For errors: what a string argument accepts, GRD_WORDS_REDUCTION or, where the operator has words of its own, GRD_WORDS_KL_DIV_REDUCTION."""
    found = {f"GRD_WORDS_{argument.upper()}": text for argument, text in WORDS.items()}
    for operator in operators.values():
        found |= {f"GRD_WORDS_{operator.c_name.upper()}_{name.upper()}": text for name, text in operator.words.items() if text != WORDS.get(name)}
    return "".join(f"#define {name} {json.dumps(text)}\n" for name, text in found.items())


def implementation_header(operators):
    rows = "".join(f"{implementation_prototype(o)};\n" for o in operators.values())
    return (BANNER.format("schema") + "#ifndef GRD_GEN_OP_IMPL_H\n#define GRD_GEN_OP_IMPL_H\n\n"
            f'#include "gradus/types.h"\n\nstruct grd_plan;\n\n{words_macros(operators)}\n{rows}{plans.declarations(operators)}\n#endif\n')


def thunk(signature, operator):
    """Unboxes for every operator of this C signature."""
    words = (["out"] if operator.has_out else []) + [f"args[{i}].v.{ctype.of(a)[1]}" for i, a in enumerate(operator.args)]
    types = (["grd_tensor *"] if operator.has_out else []) + [ctype.of(a)[0].strip() for a in operator.args]
    count = len(operator.results)
    if count > 1:
        words.append("results")
        types.append("grd_tensor **")
    call = f"((typed *)kernel)({', '.join(words)})"
    unused = "".join(f"    (void){n};\n" for n in (["out"] if not operator.has_out else []) + (["args"] if not operator.args else []))
    if count > 1:
        body = f"    grd_tensor *results[{count}];\n    {call};\n" + "".join(
            f"    grd_set_tensor(&ret_results[{i}], results[{i}]);\n" for i in range(count))
    elif operator.returns_list:
        body = f"    ret_results[0] = (grd_value){{.kind = GRD_KIND_TENSORS, .v.tensors = {call}}};\n"
    else:
        body = f"    grd_set_tensor(&ret_results[0], {call});\n"
    return (f"static void thunk_{signature}(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)\n"
            f"{{\n    typedef {ctype.implementation_result(operator)}typed({', '.join(types) or 'void'});\n{unused}{body}}}\n")


def argument_row(argument):
    text = f'{{.name = "{argument.name}", .kind = GRD_KIND_{ctype.of(argument)[2]}, .optional = {str(argument.may_be_absent).lower()}'
    if argument.has_default and argument.default is not None:
        text += f", .value = {ctype.value(argument, static_default(argument))}"
    return text + "}"


def static_default(argument):
    """Like ctype.default, but a constant expression: functions are not allowed in a static initialiser."""
    value = argument.default
    if argument.list:
        values = value if isinstance(value, list) else [value]
        return f"{{{len(values)}, (const int64_t[]){{{', '.join(map(str, values)) or '0'}}}}}"
    if ctype.of(argument)[0] == "grd_scalar ":
        kind = "BOOL" if isinstance(value, bool) else "INT" if isinstance(value, int) else "FLOAT"
        member = f".v.c = {{{ctype.literal(value)}, 0}}" if kind == "FLOAT" else f".v.i = {int(value)}"
        return f"{{.kind = GRD_SCALAR_{kind}, {member}}}"
    return ctype.literal(value)


def out_rule(operator):
    """The rule that the dtype of an out= follows: a pointer to it, or nothing."""
    if not operator.out:
        return ""
    texts = ", ".join('"' + text.replace('"', '\\"') + '"' for text in operator.out["texts"])
    return f", .out_rule = &(const struct grd_out_rule){{.dtype = GRD_OUT_{operator.out['dtype'].upper()}, .texts = {{{texts}}}}}"


def table_row(operator):
    forms = " | ".join(f"1 << GRD_{form.upper()}" for form in operator.forms)
    arguments = f"(const struct grd_arg[]){{{', '.join(argument_row(a) for a in operator.args)}}}" if operator.args else "NULL"
    flags = "".join(f", .{name} = true" for name, on in (("has_out", operator.has_out), ("is_view", operator.view), ("everywhere", operator.everywhere or operator.view),
                    ("returns_list", operator.returns_list), ("composite", operator.is_composite), ("counts_writes", counts_writes(operator))) if on)
    flags += f', .providers = "{operator.providers}"' if operator.providers else ""
    flags += f", .fills = GRD_FILLS_{operator.fills.upper()}" if operator.fills else ""
    derivative = f"&grd_derivative_{operator.c_name}" if operator.grads else "NULL"
    schema = operator.schema.replace('"', '\\"')
    return (f'    [{index(operator)}] = {{.name = "{operator.name}", .schema = "{schema}",\n'
            f"        .args = {arguments},\n"
            f"        .nargs = {len(operator.args)}, .nresults = {len(operator.results)}, .forms = {forms}{flags},\n"
            f"        .thunk = thunk_{ctype.letters(operator)}, .derivative = {derivative}{out_rule(operator)}, .kernel = (grd_kernel *)op_{operator.c_name}}},\n")


def table_file(operators):
    thunks = {}
    for operator in operators.values():
        thunks.setdefault(ctype.letters(operator), operator)
    return (BANNER.format("schema") + '#include <math.h>\n\n#include "dispatch/op.h"\n#include "gen/op_impl.h"\n#include "gen/op_index.h"\n\n'
            + "\n".join(thunk(s, o) for s, o in sorted(thunks.items()))
            + "\nstruct grd_op grd_op_table[] = {\n" + "".join(table_row(o) for o in operators.values()) + "};\n\n"
            "const int64_t grd_op_table_size = GRD_OP_COUNT;\n")


# ---- Kernel tables ----------------------------------------------------------------------------------------------------------

def kernels_header(kind, operators):
    """The indices of one kernel table. A header per kind, so that a new kernel builds only its kind again."""
    rows = "".join(f"    GRD_{kind.upper()}_{o.c_name.upper()},\n" for o in operators.values() if o.kernel == kind)
    guard = f"GRD_GEN_{kind.upper()}_KERNELS_H"
    return (BANNER.format("schema") + f"#ifndef {guard}\n#define {guard}\n\n"
            f"enum grd_{kind}_kernel {{\n{rows}    GRD_{kind.upper()}_COUNT\n}};\n\n#endif\n")


def gives_bool(operator):
    return operator.rule in ("compare", "bool")


def block(operator):
    """The loop of a kernel: over contiguous elements, so that it vectorises."""
    body = f"{operator.kernel}_{operator.c_name}"
    inputs = [("uint8_t" if operator.mask and i == 0 else "C", f"{a.name}_data") for i, a in enumerate(a for a in operator.args if a.is_tensor)]
    numbers = [f"number_{i}" for i in range(sum(a.kind in ctype.NUMBERS for a in operator.args))]
    lines = [f"const C {name} = param(params, {i});" for i, name in enumerate(numbers)] or ["(void)params;"]
    if operator.block:
        lines += [f"{body}(n, (C *)data[0], (const C *)data[1]);"]
    else:
        result = "uint8_t" if gives_bool(operator) else "C"
        lines += [f"{result} *result_data = ({result} *)data[0];"]
        lines += [f"const {t} *{name} = (const {t} *)data[{i}];" for i, (t, name) in enumerate(inputs, 1)]
        lines += ["IN_PLACE", "for (int64_t i = 0; i < n; i++)",
                  f"    result_data[i] = {body}({', '.join([f'{name}[i]' for _, name in inputs] + numbers)});"]
    text = "".join(f"    {line}\n" for line in lines)
    return f"static void {operator.c_name}_block(int64_t n, char *const *data, const void *params)\n{{\n{text}}}\n"


def sizes(operator, element):
    """The sizes of the operands, where that of an element is `element`."""
    count = KERNELS[operator.kernel]
    inputs = ["1" if operator.mask and i == 0 else element for i in range(count)] + ["0"] * (3 - count)
    return f"GRD_MAP_SIZES({', '.join(['1' if gives_bool(operator) else element, *inputs])})"


def loop(operator, call):
    """What stands in the kernel table: the way from operands with any strides to loops over contiguous ones."""
    return (f"static void {operator.c_name}_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)\n"
            f"{{\n    {call};\n}}\n")


def entry(operator):
    return f"    [GRD_{operator.kernel.upper()}_{operator.c_name.upper()}] = {operator.c_name}_loop,\n"


def rows_file(kind, operators):
    """The kernels of one typed file: those that its dtype has."""
    text, rows = BANNER.format("schema") + f'#include "gen/{kind}_kernels.h"\n\n', ""
    for operator in (o for o in operators.values() if o.kernel == kind):
        condition = " || ".join(f"GRD_IS_{c.upper()}" for c in sorted(operator.dtypes))
        call = f"grd_map(n, data, strides, params, {operator.c_name}_block, {sizes(operator, 'sizeof(C)')})"
        text += f"#if {condition}\n{block(operator)}\n{loop(operator, call)}#endif\n\n"
        rows += f"#if {condition}\n{entry(operator)}#endif\n"
    return f"{text}grd_loop_kernel *const GRD_TYPED(grd_{kind}_row)[GRD_{kind.upper()}_COUNT] = {{\n{rows}}};\n"


def half_file(operators):
    """The kernels of half types: those of float32, between conversions."""
    text = BANNER.format("schema") + "".join(f'#include "gen/{kind}_kernels.h"\n' for kind in KERNELS)
    for kind in KERNELS:
        rows = ""
        for operator in (o for o in operators.values() if o.kernel == kind and "float" in o.dtypes):
            kernel = f"FLOAT32_ROW(grd_{kind}_row)[GRD_{kind.upper()}_{operator.c_name.upper()}]"
            text += "\n" + loop(operator, f"through_float32(n, data, strides, params, {kernel}, {sizes(operator, 'sizeof(T)')})")
            rows += entry(operator)
        text += f"\ngrd_loop_kernel *const GRD_TYPED(grd_{kind}_row)[GRD_{kind.upper()}_COUNT] = {{\n{rows}}};\n"
    return text


def lines_header(operators):
    """The indices of the kernels over lines."""
    rows = "".join(f"    GRD_LINES_{o.c_name.upper()},\n" for o in operators.values() if o.law == "lines")
    return (BANNER.format("schema") + f"#ifndef GRD_GEN_LINES_KERNELS_H\n#define GRD_GEN_LINES_KERNELS_H\n\nenum grd_lines_kernel_index {{\n{rows}    GRD_LINES_COUNT\n}};\n\n#endif\n")


def lines_rows(operators):
    """Those that a dtype has: lines_NAME of src/kernel/cpu/lines.c."""
    rows = "".join(f"#if {' || '.join(f'GRD_IS_{c.upper()}' for c in sorted(o.dtypes))}\n    [GRD_LINES_{o.c_name.upper()}] = lines_{o.c_name},\n#endif\n"
                   for o in operators.values() if o.law == "lines")
    return BANNER.format("schema") + f"grd_lines_kernel *const GRD_TYPED(grd_lines_row)[GRD_LINES_COUNT] = {{\n{rows}}};\n"


def files(operators):
    """{relative path: text} of everything generated."""
    families = {}
    for operator in operators.values():
        families.setdefault(operator.file, []).append(operator)
    result = {"include/gradus/ops.h": public_header(operators), "gen/hidden_ops.h": hidden_header(operators), "gen/op_index.h": index_header(operators),
              "gen/op_impl.h": implementation_header(operators), "gen/table.c": table_file(operators), "gen/half_rows.h": half_file(operators),
              "gen/view_calls.h": view_calls(operators), "gen/lines_kernels.h": lines_header(operators), "gen/lines_rows.h": lines_rows(operators)}
    for kind in KERNELS:
        result[f"gen/{kind}_kernels.h"] = kernels_header(kind, operators)
        result[f"gen/{kind}_rows.h"] = rows_file(kind, operators)
    for family, members in families.items():
        result[f"gen/{family.split('/')[-1].removesuffix('.toml')}.c"] = family_file(family, members, operators)
    return result
