"""Generates the C files. All code that is generated for one operator stands together in gen/<family>.c, in reading order."""
import json
import re

from codegen import batch, calls, ctype, derivative, entries, headers, kernels, plans
from codegen.functions import FUNCTIONS, called as functions_called
from codegen.formula import APART, Lowering, argument_type
from codegen.headers import BANNER, implementation_prototype
from codegen.template import fill, function, wrap

FAMILY = """
    #include <math.h>
    #include <string.h>

    #include "autograd/formula.h"
    #include "base/frames.h"
    #include "base/text.h"
    #include "core/dtype.h"
    #include "core/new.h"
    #include "core/shortcuts.h"
    #include "dispatch/op.h"
    #include "dispatch/option.h"
    #include "gen/impl/$family.h"
    #include "op/elementwise.h"
    #include "op/formula.h"
    #include "op/index_loops.h"
    #include "op/lines.h"
    #include "op/plan.h"
    #include "op/reduce.h"
    #include "transform/formula.h"
    $operators
"""

COMPOSITE_IN_PLACE = """
    $check
    grd_tensor *given = $first;
    $first = grd_composite_input(out, given);
    $statements
    return grd_composite_finish(out, given, $value);
"""

TABLE = """
    #include "dispatch/op.h"
    #include "op/formula.h"

    $declared
    struct grd_op *const grd_op_table[] = {
        $rows
    };

    const int64_t grd_op_table_size = $count;
"""

FUNCTION_TABLE = """

    $calls

    /* The functions that formulas read at run time may call. The last row has no name. */
    const struct grd_function grd_function_table[] = {
        $rows
        {0},
    };
"""


# ---- Implementations that the schema declares -------------------------------------------------------------------------


def elementwise(operator, operators):
    """Returns the C definition of the operator's struct grd_elementwise."""
    facts = {"inputs": operator.inputs, "rule": f"GRD_TYPE_{operator.rule.upper()}", "kernel": kernels.index(operator)}
    facts |= {flag: "true" for flag in ("mask", "divides", "commutes") if getattr(operator, flag)}
    facts |= {"gradient": "true"} if operator.kernel == "gradient" else {}
    for category, (error, text) in operator.refuse.items():
        facts["refusal"] = f"&(const struct grd_refusal){{GRD_CATEGORY_{category.upper()}, {error}, {json.dumps(text)}}}"
    if operator.number:
        facts["number"] = f"&{operators[operator.number].elementwise}"
    facts["name"] = json.dumps(operator.name)
    return wrap((f".{name} = {value}" for name, value in facts.items()), f"const struct grd_elementwise {operator.elementwise} = {{", "};")


def elementwise_implementation(operator):
    numbers = [a.name if argument_type(a) == "Scalar" else f"grd_{argument_type(a)}({a.name})" for a in operator.args if a.kind in ctype.NUMBERS]
    words = ["out", *(a.name for a in operator.args if a.is_tensor), f"&{operator.elementwise}", f"(const grd_scalar[]){{{', '.join(numbers)}}}" if numbers else "NULL"]
    real = [a.name for a in operator.args if argument_type(a) == "Scalar"] if "complex" not in operator.dtypes and not operator.hidden else []
    check = "".join(f"if (!grd_check_factor(grd_tensors(self), {name}))\n    return grd_failed;\n" for name in real)
    return function(implementation_prototype(operator), f"{check}return grd_op_{operator.kernel}({', '.join(words)});")


def formula_implementation(operator, operators):
    lowering = Lowering(operator, operators, "formula", through=bool(operator.through))
    statements, values = lowering.program(operator.formula or operator.through)
    words = set(re.findall(r"\w+", " ".join([statements, *values])))
    statements = "".join(f"(void){a.name};\n" for a in operator.args if a.name not in words) + statements
    if operator.through:
        return f"{statements}return {values[0]};\n"
    if len(values) > 1:
        return statements + "".join(f"ret[{i}] = {value};\n" for i, value in enumerate(values))
    tensors = [a.name for a in operator.args if a.is_tensor and not a.list]
    check = ""
    if operator.has_out and len(tensors) > 1:
        read = tensors[1:] if operator.overlap == "none" else tensors
        check = f"if (!{'grd_check_indexed_out' if operator.overlap == 'none' else 'grd_out_check_inputs'}(out, grd_tensors({', '.join(read)})))\n    return grd_failed;\n"
    first = operator.args[0].name if operator.args and operator.args[0].is_tensor and not operator.args[0].list else "NULL"
    if "inplace" in operator.forms and lowering.in_place:
        return f"{check}{statements}if (out != NULL && out == {first})\n    return {lowering.in_place};\nreturn grd_composite_finish(out, {first}, {values[0]});\n"
    if "inplace" in operator.forms:
        return fill(COMPOSITE_IN_PLACE, check=check, first=first, statements=statements, value=values[0])
    return check + statements + (f"return grd_composite_finish(out, {first if operator.overlap == 'element' else 'NULL'}, {values[0]});\n" if operator.has_out else f"return {values[0]};\n")


def apart(operator, body):
    """Returns the C function op_<name> with the given body. The statements after the last early return become a second function that is not inlined,
    because a short op_<name> makes the early returns faster."""
    head, _, rest = body.rpartition(APART)
    if not head:
        return function(implementation_prototype(operator), body)
    name = f"{operator.c_name}_otherwise"
    words = ", ".join(["out"] * operator.has_out + [a.name for a in operator.args])
    return (function(f"GRD_APART {ctype.implementation_result(operator)}{name}({ctype.implementation_parameters(operator)})", rest)
            + function(implementation_prototype(operator), f"{head}return {name}({words});"))


def implementation(operator, operators):
    """Returns the C function op_<name> if it can be generated from the operator's schema entry, or '' if it is written by hand."""
    if operator.kernel:
        return elementwise_implementation(operator)
    if operator.formula or operator.through:
        return apart(operator, formula_implementation(operator, operators))
    if operator.planned:
        return plans.implementation(operator, operators, implementation_prototype(operator))
    return ""


# ---- Files ----------------------------------------------------------------------------------------------------------------


def operator_text(operator, operators, tables):
    """Returns all C code that is generated for one operator, in reading order. `tables` holds the argument tables that the file already defines
    (entries.py)."""
    head = f"/* ---- {operator.schema} ({operator.file}:{operator.line}) */\n" if operator.kernel != "gradient" else ""
    facts = head + (elementwise(operator, operators) if operator.kernel else "")
    if not operator.is_operator:
        return facts
    return (f"{facts}{implementation(operator, operators)}{derivative.derivative(operator, operators)}{batch.formula(operator, operators)}"
            f"{entries.structure(operator, tables)}{entries.entries(operator)}")


def family_file(family, members, operators):
    tables = {}
    text = "\n" + "".join(operator_text(o, operators, tables) for o in members)
    called = [o for o in members if o.is_operator]
    declared = headers.include(sorted({calls.header_path(o) for o in called} | {headers.header_path(o) for o in called} | headers.needed(text, operators)))
    return BANNER.format(family) + fill(FAMILY, family=headers.family_name(family), operators=declared) + text


def view_calls(operators):
    """Returns the text of the file with op_<name> for each view operator that has a plan (a function that computes the sizes and strides of the
    view)."""
    views = [o for o in operators.values() if o.planned_view]
    declared = headers.include(sorted({f"gen/impl/{headers.family_name(o.file)}.h" for o in views}))
    written = [plans.written_plan(o) for o in operators.values() if o.run == "view_backward"]
    return BANNER.format("schema") + declared + "\n" + "\n".join([plans.view_call(o, operators, implementation_prototype(o)) for o in views] + written)


def table_file(operators):
    """Returns the text of the file with the table of all operators, in the order of the schema."""
    names = [f"grd_operator_{o.c_name}" for o in operators.values() if o.is_operator]
    declared, rows = wrap(names, "extern struct grd_op ", ";"), wrap((f"&{name}" for name in names), indent="")
    return BANNER.format("schema") + fill(TABLE, declared=declared, rows=rows, count=len(names))


def function_table(operators):
    """Returns the C table of the functions that gradient formulas call. Functions with a tensor argument are left out. A formula that is read at run
    time looks up its functions in this table."""
    calls, rows = "", []
    for name in sorted(functions_called(f for o in operators.values() for f in [*(o.grads or {}).values(), *o.where.values()]) - set(operators)):
        types, result = FUNCTIONS[name]
        if any(kind.startswith("Tensor") for kind in types):  # e.g. shape(x); the autograd node saves this value instead of x
            continue
        kinds = [ctype.of_type(kind) for kind in types]
        words = ", ".join(f"args[{i}].v.{member}" for i, (_, member, _) in enumerate(kinds))
        _, member, kind = ctype.of_type(result)
        calls += function(f"static grd_value call_{name}(const grd_value *args)", f"return (grd_value){{.kind = GRD_KIND_{kind}, .v.{member} = grd_{name}({words})}};")
        args = ", ".join(f'{{.name = "{i + 1}", .kind = GRD_KIND_{k}}}' for i, (_, _, k) in enumerate(kinds))
        rows.append(f'{{"{name}", (const struct grd_arg[]){{{args}}}, {len(kinds)}, GRD_KIND_{kind}, call_{name}}},')
    return fill(FUNCTION_TABLE, calls=calls, rows="\n".join(rows))


def files(operators):
    """Returns {relative path: text} of the generated C files."""
    families = {}
    for operator in operators.values():
        families.setdefault(operator.file, []).append(operator)
    result = {"gen/view_calls.h": view_calls(operators)}
    for family, members in families.items():
        result[f"gen/{headers.family_name(family)}.c"] = family_file(family, members, operators)
    # function_table parses the formulas again, but its errors name no place in the schema. It runs after the calls above, which report every error in
    # a formula with its file and line.
    result["gen/table.c"] = table_file(operators) + function_table(operators)
    return result | headers.files(operators, families) | calls.files(operators) | kernels.files(operators)
