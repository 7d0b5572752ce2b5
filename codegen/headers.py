"""Generates the C declarations of operators: the public functions with their options, and the functions that implement the operators."""
import json
import re

from codegen import ctype, plans
from codegen.schema import WORDS
from codegen.template import fill, function, wrap

BANNER = "/* Generated from {} by codegen. Do not edit. */\n"

# Template of the declarations of an operator with options. The functions grd_with_<name> come first, then a C++ function with a default argument, and
# a C macro that takes options by name.
OPTIONS = """
    $struct
    $prototypes
    #ifdef __cplusplus
    $cpp
    #else
    #define $marks $values
    $macros
    #endif
"""

MACROS = """
    #define grd_$name(...) grd_named_$name(__VA_ARGS__, )
    #define grd_named_$name($names...) GRD_NAMED(grd_with_$name($words$given))
"""


def required(operator):
    return [a for a in operator.args if not a.has_default]


def options(operator):
    return [a for a in operator.args if a.has_default]


def second_tensor(operator):
    return [a for a in operator.args if a.is_tensor][1]


def form_names(operator):
    """Returns [(name suffix, takes_out)] of the public C functions, one for each form. takes_out is True if the function has a parameter `out`."""
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


def public_functions(operator):
    """Returns [(name, parameters)] of the operator's public functions, one for each form. If the schema entry has `scalar`, each form except out=
    also has a function that takes a number in place of the second tensor."""
    functions = []
    for suffix, takes_out in form_names(operator):
        functions.append((operator.c_name + suffix, public_parameters(operator, takes_out)))
        if operator.scalar and not takes_out:
            functions.append((f"{operator.c_name}_scalar{suffix}", public_parameters(operator, takes_out, scalar=True)))
    return functions


# ---- Declarations ---------------------------------------------------------------------------------------------------------------


def option_marks(operator):
    """Returns the C initialisers that mark all options as not given. The last of them is always that of the last member of the options struct. The
    caller's options come after these initialisers. Compilers therefore report an option without a name as an excess element."""
    marks = {a.name: ctype.option_mark(a) for a in options(operator)}
    last = options(operator)[-1]
    marks[last.name] = marks[last.name] or ("false" if last.kind == "bool" else "0" if last.kind in ("int", "float") else ctype.option_default(last))
    return ", ".join(f".{name} = {mark}" for name, mark in marks.items() if mark)


def option_members(operator):
    for a in options(operator):
        note = f" /* default {ctype.literal(a.default)} */" if a.list and a.default is not None else ""
        yield f"{ctype.of(a)[0]}{a.name} GRD_DEFAULT({ctype.option_default(a)});{note}"


def macros(operator, name, names):
    struct, marks = f"grd_{operator.c_name}_options", f"GRD_{operator.c_name.upper()}_DEFAULTS"
    given = f"GRD_GIVEN(#__VA_ARGS__, &({struct}){{{marks}, __VA_ARGS__}})"
    return fill(MACROS, name=name, names="".join(f"{n}, " for n in names), words="".join(f"({n}), " for n in names), given=given)


def struct_type(name, members):
    return wrap(members, f"typedef struct {name} {{ ", f" }} {name};", separator=" ")


def declare(operator):
    api, result, functions = "" if operator.hidden else "GRD_API ", result_type(operator), public_functions(operator)
    text = struct_type(f"grd_{operator.c_name}_result", [f"grd_tensor *{name};" for name in operator.results]) if len(operator.results) > 1 else ""
    if not options(operator):
        return text + "".join(f"{api}{result}grd_{name}({', '.join(words) or 'void'});\n" for name, words in functions)
    struct = f"grd_{operator.c_name}_options"
    prototypes = cpp = named = ""
    for name, words in functions:
        names, given = [w.split()[-1].lstrip("*") for w in words], "".join(f"{w}, " for w in words)
        prototypes += f"{api}{result}grd_with_{name}({given}const {struct} *options);\n"
        cpp += function(f'extern "C++" inline {result}grd_{name}({given}const {struct} &options = {{}})',
                        f"return grd_with_{name}({''.join(f'{n}, ' for n in names)}&options);")
        named += macros(operator, name, names)
    return text + fill(OPTIONS, struct=struct_type(struct, option_members(operator)), prototypes=prototypes, cpp=cpp, marks=f"GRD_{operator.c_name.upper()}_DEFAULTS", values=option_marks(operator), macros=named)


def header_path(operator):
    """Returns the path of the header that declares the operator. Every operator has a header of its own, so that a change of one operator
    recompiles only the files that call it."""
    return f"gen/ops/{operator.name}.h" if operator.hidden else f"gradus/ops/{operator.name}.h"


def header(operator):
    return (f'#pragma once /* Generated from {operator.file} by codegen. */\n'
            f'#include "gradus/{"options" if options(operator) else "types"}.h"\n{declare(operator)}')


def parts(operator):
    """Returns the names that the schema entry defines under `where` and that the gradient formulas read, directly or through other such names. The
    names are in the order of the entry."""
    read, text = [], " ".join((operator.grads or {}).values())
    for name, formula in reversed(operator.where.items()):
        if re.search(rf"\b{name}\b", text):
            read, text = [name, *read], f"{text} {formula}"
    return read


def document(operator):
    """Returns the text for an operator in ops.h: its documentation as a comment, and the #include of its header. A second comment lists the
    functions that this header declares."""
    lines = [operator.schema, operator.doc, *(f"{name}: {words}." for name, words in operator.words.items()),
             *(f"d/d{name}: {formula}" for name, formula in (operator.grads or {}).items()),
             *(f"  {name} = {operator.where[name]}" for name in parts(operator))] + [f"Formula: {operator.formula}"] * bool(operator.formula and "\n" not in operator.formula)
    names = ", ".join(f"grd_{name}" for name, _ in public_functions(operator))
    return "/* " + "\n * ".join(lines) + f' */\n#include "{header_path(operator)}" /* {names} */\n'


INTRODUCTION = """/* All operators, generated from their entries in schema/. Below each comment is the include of the header that declares the operator's functions.
 *
 * Comments. Each comment consists of the operator's signature in PyTorch's notation, a description of the result, and the gradient formula of each argument that has
 * one, as in "d/dself: grad * other", followed by the subexpressions that the formulas name. "Formula" defines the operator by other operators.
 *
 * Functions. grd_add returns a new tensor (or a view, if the comment says so). grd_add_ writes its first argument and returns it. grd_add_out writes `out` and sets
 * the sizes of `out`. grd_add_scalar is grd_add with a number instead of the second tensor.
 *
 * Options. Arguments without a default come first. All other arguments may be left out, or are given by name in any order, as in grd_sum(x, .dim = 1, .keepdim = true).
 * An argument of type Scalar accepts a C number. A whole number below 2^53 then counts as an integer; grd_int, grd_float and grd_complex_number determine the kind
 * explicitly. A list is written grd_dims(0, 1), or as a single number for a list of one. An absent argument is NULL, or 0 for a pointer. In C++ options
 * are a struct, as in grd_sum(x, {.dim = 1}). grd_with_sum is the function that the macro grd_sum calls. In C, a variable of type grd_sum_options must be initialized
 * with {GRD_SUM_DEFAULTS}. If the pointer to the options is NULL, all options have their defaults.
 *
 * Results and scopes. A returned tensor belongs to the innermost open scope of the thread and is dropped when that scope closes, unless grd_keep is called
 * (gradus/runtime.h). A returned list and its `data` also belong to that scope. They need not be freed, and must not be used after the scope has closed.
 *
 * Errors. A call that fails changes nothing, returns grd_failed and leaves an error pending. While an error is pending all operators return grd_failed at once, so it
 * is enough to check once after several calls (gradus/error.h). TypeError: an argument of the wrong kind, or NULL for a tensor. IndexError: a dimension or an index is
 * out of range. RuntimeError: shapes, dtypes or devices do not fit. Other errors are named in the operator's comment.
 *
 * Threads. Several threads may call operators at the same time. gradus/runtime.h says which calls may use one tensor at the same time. */
"""


OPS = """
    $introduction
    #ifndef GRADUS_OPS_H
    #define GRADUS_OPS_H

    #include "gradus/options.h"
    #include "gradus/tensor.h"
    #include "gradus/types.h"

    GRD_BEGIN_DECLS

    $body

    GRD_END_DECLS
    #endif
"""


def needed(text, operators):
    """Returns the set of headers of all operators whose functions or types are named in the C code `text`."""
    words = set(re.findall(r"\b(?:grd|GRD)_\w+", text))
    return {header_path(o) for o in operators.values() if o.is_operator and not words.isdisjoint(declared_names(o))}


def declared_names(operator):
    """Returns the names that the header of an operator declares."""
    names = [f"grd_{prefix}{name}" for name, _ in public_functions(operator) for prefix in ("", "with_")]
    return [*names, f"grd_{operator.c_name}_options", f"grd_{operator.c_name}_result", f"GRD_{operator.c_name.upper()}_DEFAULTS"]


def include(paths):
    return "".join(f'#include "{path}"\n' for path in paths)


def public_headers(operators):
    """Returns the two versions of ops.h. The installed one contains the documentation of the schema. The one in the build folder contains none, so
    that a change of documentation recompiles nothing."""
    shown = [o for o in operators.values() if not o.hidden]
    documented, undocumented = "".join(map(document, shown)), include(map(header_path, shown))
    introduction = BANNER.format("schema") + INTRODUCTION
    return {"install/gradus/ops.h": fill(OPS, introduction=introduction, body=documented),
            "include/gradus/ops.h": fill(OPS, introduction=BANNER.format("schema"), body=undocumented)}


# ---- Implementations --------------------------------------------------------------------------------------------------------------


def implementation_prototype(operator):
    return f"{ctype.implementation_result(operator)}op_{operator.c_name}({ctype.implementation_parameters(operator)})"


WORDS_OF_ARGUMENTS = """
    #pragma once

    $macros
"""

IMPLEMENTATIONS = """
    #pragma once

    #include "gradus/types.h"

    struct grd_plan;
    struct grd_elementwise;

    $planned
    $kernels
    $prototypes
"""


def words_header(operators):
    """Returns a header with macros for error texts. Each macro lists the values that a string argument accepts. GRD_WORDS_REDUCTION is for
    arguments called `reduction`. An operator whose `reduction` accepts other values has its own macro, such as GRD_WORDS_KL_DIV_REDUCTION."""
    found = {f"GRD_WORDS_{argument.upper()}": text for argument, text in WORDS.items()}
    for operator in operators.values():
        found |= {f"GRD_WORDS_{operator.c_name.upper()}_{name.upper()}": text for name, text in operator.words.items() if text != WORDS.get(name)}
    return BANNER.format("schema") + fill(WORDS_OF_ARGUMENTS, macros="".join(f"#define {name} {json.dumps(text)}\n" for name, text in found.items()))


def implementation_header(family, members, operators):
    """Returns the header for the implementations of a family, i.e. the operators of one schema file. It declares the functions op_<name>, the
    hand-written functions plan_<name> (checks and shapes), check_<name> and run_<name> (the computation), and the structs grd_op that the
    generated op_<name> passes to grd_plan_open."""
    planned, elementwise = [f"grd_operator_{o.c_name}" for o in members if o.planned], [o.elementwise for o in members if o.kernel]
    return BANNER.format(family) + fill(IMPLEMENTATIONS, planned=wrap(planned, "extern struct grd_op ", ";") if planned else "",
                                         kernels=wrap(elementwise, "extern const struct grd_elementwise ", ";") if elementwise else "",
                                         prototypes="".join(f"{implementation_prototype(o)};\n" for o in members if o.is_operator) + plans.declarations(members, operators))


def family_name(file):
    return file.split("/")[-1].removesuffix(".toml")


def files(operators, families):
    result = public_headers(operators) | {"gen/words.h": words_header(operators)}
    result |= {("" if o.hidden else "include/") + header_path(o): header(o) for o in operators.values() if o.is_operator}
    return result | {f"gen/impl/{family_name(family)}.h": implementation_header(family, members, operators) for family, members in families.items()}
