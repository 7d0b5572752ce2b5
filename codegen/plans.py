"""The body of op_<name> for an operator that is a plan and a run (src/op/plan.h)."""
from string import Template

from codegen import ctype

BODY = Template("""\
$prototype
{
$shortcut    struct grd_plan p;
    grd_plan_open(&p, &grd_op_table[$index], $out, GRD_OVERLAP_$overlap);
    if ($plan && $prepare)
        $run;
$close}
""")

SHORTCUT = Template("""\
    grd_tensor *const made = grd_shortcuts ? shortcut_$name($arguments) : NULL;
    if (GRD_LIKELY(made != NULL))
        return made;
""")

VIEW = Template("""\
$prototype
{
$declared    return $plan ? $made(self, &v) : $failed;
}
""")


def arguments(operator):
    return [a.name for a in operator.args]


def parameters(operator):
    return ["struct grd_plan *p"] + [ctype.parameter(a) for a in operator.args]


def call(function, *values):
    return f"{function}({', '.join(values)})"


def lines_plan(operator):
    """The call of plan_lines for an operator of the law "lines"."""
    tensors = [a.name for a in operator.args if a.is_tensor]
    dtype = "dtype" if operator.arg("dtype") else "GRD_DTYPE_NONE"
    return call("plan_lines", "&p", f"GRD_LINES_{operator.c_name.upper()}", call("grd_tensors", *tensors), "dim", dtype, str(operator.rule == "sum").lower())


def view_call(operator, prototype):
    """op_<name> of a view that is planned: included where its plan is, so that the two are one function."""
    room = "    int64_t room[2][GRD_MAX_DIMS];\n    struct view v = {.size = room[0], .stride = room[1]};\n"
    declared, made, failed = ("    struct views v;\n", "made_several", "no_tensors") if operator.returns_list else (room, "made", "grd_failed")
    return VIEW.substitute(prototype=prototype, declared=declared, made=made, failed=failed, plan=call(f"plan_{operator.c_name}", "&v", *arguments(operator)))


def implementation(operator, prototype, index):
    if operator.law == "lines":
        plan, run = lines_plan(operator), "run_lines(&p)"
    else:
        plan = call(f"plan_{operator.c_name}", "&p", *arguments(operator))
        run = call(f"run_{operator.run}", "&p") if operator.run else call(f"run_{operator.c_name}", "&p", *arguments(operator))
    prepare = "grd_plan_prepare(&p)"
    if operator.check:
        prepare = f"grd_plan_admit(&p) && (p.meta || {call(f'check_{operator.c_name}', '&p', *arguments(operator))}) && grd_plan_allocate(&p)"
    out = "out" if operator.has_out else "NULL"
    close = "    grd_plan_close_many(&p, ret);\n" if len(operator.results) > 1 else "    return grd_plan_close(&p);\n"
    shortcut = SHORTCUT.substitute(name=operator.c_name, arguments=", ".join((["out"] if operator.has_out else []) + arguments(operator))) if operator.shortcut else ""
    return BODY.substitute(prototype=prototype, shortcut=shortcut, index=index, out=out, overlap=operator.overlap.upper(), plan=plan, prepare=prepare, run=run, close=close)


def declarations(operators):
    """Prototypes of the plans, checks, runs and shortcuts that are written by hand."""
    lines = []
    for o in operators.values():
        if not o.planned:
            continue
        if o.law is None:
            lines.append(f"bool plan_{o.c_name}({', '.join(parameters(o))});")
            lines.append(f"void run_{o.run}(const struct grd_plan *p);" if o.run else f"void run_{o.c_name}({', '.join(['const struct grd_plan *p'] + parameters(o)[1:])});")
        if o.check:
            lines.append(f"bool check_{o.c_name}({', '.join(parameters(o))});")
        if o.shortcut:
            lines.append(f"grd_tensor *shortcut_{o.c_name}({', '.join((['grd_tensor *out'] if o.has_out else []) + parameters(o)[1:])});")
    return "".join(line + "\n" for line in dict.fromkeys(lines))
