"""Generates the C function op_<name> of operators that are implemented by two functions: plan_<name> checks a call and determines the shapes and
dtypes of the results, and run_<name> computes the results. op_<name> also calls functions of src/op/plan.h, e.g. to allocate the results."""
import ast
import json
import re
from string import Template

from codegen import ctype
from codegen.formula import Lowering, argument_type
from codegen.schema import CATEGORIES
from codegen.template import WIDTH

C_TYPES = {kind: c for kind, (c, _, _) in ctype.SCALARS.items()}
# `type` of a schema entry -> enumerator of enum grd_reduce_type in src/op/reduce.h, without its prefix
REDUCE_TYPES = {"keep": "KEEP", "sum": "SUMS", "mean": "MEANS", "float": "FLOAT", "bool": "TRUTH", "int64": "INT64"}

BODY = Template("""\
$facts$prototype
{
$shortcut    struct grd_plan plan;
    grd_plan_open(&plan, &grd_operator_$name, $out, GRD_OVERLAP_$overlap);
    if ($plan && $prepare)$break$run;
$close}
""")

SHORTCUT = Template("""\
    grd_tensor *const made = grd_shortcuts ? $shortcut : NULL;
    if (GRD_LIKELY(made != NULL)) return made;
""")

VIEW = Template("""\
$prototype
{
$unused$declared    return $plan ? $made : $failed;
}
""")

WRITTEN = Template("""\
bool plan_$name($parameters)
{
    grd_tensor zeros;
    return plan_written(plan, $grad, $sizes, &zeros) && $view && check_written(plan, $grad);
}
""")


def arguments(operator):
    return [a.name for a in operator.args]


def call_of(operator, operators):
    """Returns (<name>, [(C parameter, C argument)]) of the function plan_<name> that checks calls of the operator. By default these are the name
    and the arguments of the operator. The key `plan` of the schema entry may instead be a call of another plan function. For example,
    plan = "full(size, 0.0, dtype, device, requires_grad)" calls the plan function of the operator full, and plan = "triangular(self, diagonal,
    upper=False)" calls a plan function that several operators share."""
    if not isinstance(operator.plan, str):
        return operator.c_name, [(ctype.parameter(a), a.name) for a in operator.args]
    lowering, tree = Lowering(operator, operators, "plan"), ast.parse(operator.plan, mode="eval").body
    callee = operators.get(tree.func.id)
    words = [(None, lowering.expression(value)) for value in tree.args] + [(keyword.arg, lowering.expression(keyword.value)) for keyword in tree.keywords]
    if callee is not None:
        return callee.c_name, [(ctype.parameter(a), lowering.convert(value, argument_type(a))) for a, (_, value) in zip(callee.args, words, strict=True)]
    return tree.func.id, [(f"{C_TYPES[value.type]}{name}" if name else ctype.parameter(operator.arg(value.c)), value.c) for name, value in words]


def parameters(operator):
    return ["struct grd_plan *plan"] + [ctype.parameter(a) for a in operator.args]


def call(function, *values):
    return f"{function}({', '.join(values)})"


def plan_call(operator, operators, plan="&plan"):
    name, words = call_of(operator, operators)
    return call(f"plan_{name}", plan, *(c for _, c in words))


def lines_arguments(operator):
    """Returns the C arguments of plan_lines: kernel, tensors, dimension, dtype, and true if integers are summed in int64."""
    tensors = [a.name for a in operator.args if a.is_tensor]
    dtype = "dtype" if operator.arg("dtype") else "GRD_DTYPE_NONE"
    return [f"GRD_LINES_{operator.c_name.upper()}", call("grd_tensors", *tensors), "dim", dtype, str(operator.rule == "sum").lower()]


def lines_plan(operator, operators):
    """Returns the C call of the plan function (checks and shapes) of an operator with the law "lines", i.e. one that computes along one dimension.
    The function is plan_lines, unless the schema entry names another."""
    if operator.plan:
        return plan_call(operator, operators)
    kernel, *rest = lines_arguments(operator)
    return call("plan_lines", "&plan", kernel, *rest)


def check(operator):
    return call(f"check_{operator.check}", "&plan") if isinstance(operator.check, str) else call(f"check_{operator.c_name}", "&plan", *arguments(operator))


def reduce_rule(operator):
    """Returns the C definition of the struct grd_reduce_rule of a reduction, i.e. an operator with law = "reduce" in its schema entry."""
    given, passes = operator.reduce, []
    for i, text in enumerate(given["passes"]):
        words, _, result = text.partition(" -> ")
        kind, _, finish = words.partition(" ")
        last = len(operator.results) == 1 and i + 1 == len(given["passes"])
        place = operator.results.index(result) if result else 0 if last else "GRD_REDUCE_NO_RESULT"
        passes.append(f"{{GRD_REDUCE_{'SUM' if kind == 'first' else kind.upper()}, GRD_FINISH_{finish.upper() or 'NONE'}, {place}, {str(kind == 'first').lower()}}}")
    text = given.get("refuses", "")
    refused = [c for c in CATEGORIES if c not in operator.dtypes] + (["quantized"] if text and "{}" not in text else [])
    refuses = ", ".join(f"[GRD_CATEGORY_{c.upper()}] = {json.dumps(text.format(c))}" for c in sorted(refused))
    empty = {None: "TAKEN", "RuntimeError": "RUNTIME_ERROR", "IndexError": "INDEX_ERROR"}[given.get("empty")]
    name = given.get("name", operator.python.get("name", operator.name))
    return (f"static const struct grd_reduce_rule {operator.c_name}_rule = {{\n"
            f"    .name = {json.dumps(name)}, .type = GRD_REDUCE_{REDUCE_TYPES[operator.rule]}, .empty = GRD_EMPTY_{empty}, .none = {str(given.get('none', False)).lower()}, .npasses = {len(passes)},\n"
            f"    .refuses = {{{refuses or 'NULL'}}}, .passes = {{{', '.join(passes)}}}}};\n\n")


def reduce_arguments(operator):
    """Returns the C arguments of plan_reduce: tensor, dims, keepdim, dtype."""
    dim = operator.arg("dim")
    dims = "GRD_NO_DIMS" if dim is None else dim.name if dim.list else f"grd_reduce_dim({dim.name}, &(int64_t){{0}})" if dim.optional else f"grd_dims({dim.name})"
    return [operator.args[0].name, dims, "keepdim" if operator.arg("keepdim") else "false", "dtype" if operator.arg("dtype") else "GRD_DTYPE_NONE"]


def reduce_plan(operator):
    return call("plan_reduce", "&plan", f"&{operator.c_name}_rule", *reduce_arguments(operator), "correction" if operator.arg("correction") else "grd_int(0)")


def shortcut_call(operator, operators):
    out = ["out"] if operator.has_out else []
    if operator.law == "reduce":
        return call("shortcut_reduce", f"&{operator.c_name}_rule", "out", *reduce_arguments(operator))
    if operator.law == "lines":
        kernel, tensors, dim, dtype, _ = lines_arguments(operator)
        return call("shortcut_lines", kernel, "out" if out else "NULL", tensors, dim, dtype)
    name, words = call_of(operator, operators)
    return call(f"shortcut_{name}", *out, *(c for _, c in words))


def view_call(operator, operators, prototype):
    """Returns the C function op_<name> of a view operator. src/op/view.c includes this code, so that the compiler can inline the function
    plan_<name>, which computes the view's sizes and strides."""
    room = "    int64_t room[2][GRD_MAX_DIMS];\n    struct grd_view v = {.size = room[0], .stride = room[1]};\n"
    declared, made, failed = ("    struct views v;\n", "made_several(self, &v)", "no_tensors") if operator.returns_list else (room, "made(self, &v)", "grd_failed")
    if operator.has_out:
        made = f"out != NULL ? turned(out, &v) : {made}"
    planned = plan_call(operator, operators, "&v")
    unused = "".join(f"    (void){a.name};\n" for a in operator.args if not re.search(rf"\b{a.name}\b", planned) and a.name != "self")
    return VIEW.substitute(prototype=prototype, unused=unused, declared=declared, made=made, failed=failed, plan=planned)


def written_plan(operator):
    """Returns the C function that checks a call of _<view>_backward, the operator that computes the gradient of a view. That operator creates
    zeros of the given sizes, takes the same view of the zeros, and writes the gradient into this view."""
    grad, sizes, *rest = arguments(operator)
    view = call(f"plan_{operator.name.removeprefix('_').removesuffix('_backward')}", "written_view(plan)", "&zeros", *rest)
    return WRITTEN.substitute(name=operator.c_name, parameters=", ".join(parameters(operator)), grad=grad, sizes=sizes, view=view)


def implementation(operator, operators, prototype):
    facts = ""
    if operator.law == "lines":
        plan, run = lines_plan(operator, operators), call(f"run_{operator.run or 'lines'}", "&plan")
    elif operator.law == "reduce":
        facts, plan, run = reduce_rule(operator), reduce_plan(operator), "run_reduce(&plan)"
    else:
        plan = plan_call(operator, operators)
        run = call(f"run_{operator.run}", "&plan") if operator.run else call(f"run_{operator.c_name}", "&plan", *arguments(operator))
    prepare = "grd_plan_prepare(&plan)"
    if operator.check:
        prepare = f"grd_plan_admit(&plan) && (plan.meta || {check(operator)}) && grd_plan_allocate(&plan)"
    out = "out" if operator.has_out else "NULL"
    close = "    grd_plan_close_many(&plan, ret);\n" if len(operator.results) > 1 else "    return grd_plan_close(&plan);\n"
    shortcut = SHORTCUT.substitute(shortcut=shortcut_call(operator, operators)) if operator.shortcut else ""
    return BODY.substitute(facts=facts, prototype=prototype, shortcut=shortcut, name=operator.c_name, out=out, overlap=operator.overlap.upper(), plan=plan, prepare=prepare, run=run, close=close,
                           **{"break": " " if len(plan) + len(prepare) + len(run) < WIDTH - 20 else "\n        "})


def declarations(members, operators):
    """Returns the C prototypes of the hand-written functions of the given operators: plan_<name> (checks and shapes), check_<name>, run_<name> (the
    computation) and shortcut_<name>."""
    lines = []
    for o in members:
        if not o.planned:
            continue
        name, words = call_of(o, operators)
        if o.law is None or o.plan:
            lines.append(f"bool plan_{name}({', '.join(['struct grd_plan *plan'] + [parameter for parameter, _ in words])});")
        if o.law is None or o.run:
            lines.append(f"void run_{o.run}(const struct grd_plan *plan);" if o.run else f"void run_{o.c_name}({', '.join(['const struct grd_plan *plan'] + parameters(o)[1:])});")
        if o.check:
            lines.append(f"bool check_{o.check}(struct grd_plan *plan);" if isinstance(o.check, str) else f"bool check_{o.c_name}({', '.join(parameters(o))});")
        if o.shortcut and o.law is None:
            lines.append(f"grd_tensor *shortcut_{name}({', '.join((['grd_tensor *out'] if o.has_out else []) + [parameter for parameter, _ in words])});")
    return "".join(line + "\n" for line in dict.fromkeys(lines))
