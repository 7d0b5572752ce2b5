"""Generates the struct grd_op and the public functions of an operator. The public functions read the options and call the functions that operators
with equal C types share (calls.py)."""
import json

from codegen import batch, ctype
from codegen.calls import counts_writes, has_out_rule, shape
from codegen.headers import form_names, options, public_parameters, result_type, second_tensor
from codegen.template import fill, function, wrap

MANY = """
    grd_tensor *r[$count];
    $call;
    return ($type){$members};
"""

NUMBER = """
    $before
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, $call);
"""


# ---- struct grd_op ------------------------------------------------------------------------------------------------------------


def batch_role(operator, argument):
    """Returns the role of an argument in vmap, i.e. how the argument is adapted when the operator runs on a whole batch. The role is an enumerator of
    enum grd_batch_role, without its prefix. It follows from the argument's name and kind. Returns None if the argument stays as it is."""
    name, kind = argument.name, argument.kind + "[]" * argument.list
    if operator.batch == "loop":
        return "OFFSET" if name == "storage_offset" else None
    if operator.batch not in ("shift", "trailing", "random"):
        return None
    if kind == "int[]":
        dims = "REDUCE" if argument.may_be_absent and not (operator.view or operator.reduce.get("none")) else "DIMS"
        return {"dim": dims, "dims": "ORDER" if operator.view else dims, "size": "SIZES", "sizes": "SIZES", "stride": "STRIDES"}.get(name)
    if name == "memory_format":
        return "FORMAT"
    return "DIM" if kind == "int" and name in ("dim", "dim0", "dim1", "dim2", "dimension") else None


def argument_row(operator, argument):
    text = f'{{"{argument.name}", GRD_KIND_{ctype.of(argument)[2]}'
    text += ", .optional = true" if argument.may_be_absent else ""
    text += f", .role = GRD_ROLE_{role}" if (role := batch_role(operator, argument)) else ""
    if argument.has_default and argument.default is not None:
        text += f", .value = {ctype.value(argument, ctype.static_default(argument))}"
    return text + "}"


def argument_table(operator, tables):
    """Returns (definition, name) of the C table of the operator's arguments. If operators in the same C file have equal arguments,
    they share a table. `tables` maps the rows of each table to its name. The definition is '' if the file already has the table."""
    rows = tuple(argument_row(operator, a) for a in operator.args)
    if not rows:
        return "", "NULL"
    known = rows in tables
    name = tables.setdefault(rows, f"{operator.c_name}_args")
    return "" if known else wrap(rows, f"static const struct grd_arg {name}[] = {{", "};"), name


def out_rule(operator):
    """Returns the C struct grd_out_rule with the rule for the dtype of out= and the error texts."""
    texts = ", ".join(json.dumps(text) for text in operator.out["texts"])
    return f"&(const struct grd_out_rule){{GRD_OUT_{operator.out['dtype'].upper()}, .texts = {{{texts}}}}}"


def forms(operator):
    names = {"functional": "GRD_FORM_NEW", "inplace": "GRD_FORM_INPLACE", "out": "GRD_FORM_OUT"}
    return "GRD_FORMS_ALL" if len(operator.forms) == 3 else " | ".join(names[form] for form in operator.forms)


def structure(operator, tables):
    table, arguments = argument_table(operator, tables)
    facts = [json.dumps(operator.name), json.dumps(operator.schema), arguments, str(len(operator.args)), str(len(operator.results)), forms(operator),
             f"unbox_{shape(operator)}", f"(grd_kernel *)op_{operator.c_name}"]
    facts += [f".derivative = &{operator.c_name}_derivative"] if operator.grads else []
    facts += [f".out_rule = {out_rule(operator)}"] if operator.out else []
    facts += [f".providers = {json.dumps(operator.providers)}"] if operator.providers else []
    facts += [f".fills = GRD_FILLS_{operator.fills.upper()}"] if operator.fills else []
    facts += [f".autocast = GRD_AUTOCAST_{operator.autocast.upper()}"] if operator.autocast else []
    facts += [f".batch = GRD_BATCH_{batch.batch_rule(operator).upper()}"] if operator.batch and (operator.batch != "align" or operator.is_composite) else []
    facts += [f".batched.refusal = {json.dumps(operator.batch_reason)}"] if operator.batch == "refuse" else []
    facts += [f".batched.formula = {operator.c_name}_batch"] if batch.batch_rule(operator) == "formula" else []
    flags = {"has_out": operator.has_out, "is_view": operator.view, "everywhere": operator.everywhere or operator.view, "returns_list": operator.returns_list,
             "composite": operator.is_composite, "forward": operator.is_composite and operator.jvp, "counts_writes": counts_writes(operator), "alone": operator.alone}
    facts += [f".{name} = true" for name, on in flags.items() if on]
    return table + wrap(facts, f"struct grd_op grd_operator_{operator.c_name} = {{", "};")


# ---- Entry functions ------------------------------------------------------------------------------------------------------------


def defaults(operator):
    """Returns the C definition of the options struct that is used if `options` is NULL, or '' if all its bits would be zero."""
    values = ", ".join(f".{a.name} = {ctype.static_default(a)}" for a in options(operator) if ctype.has_number_default(a))
    return f"static const grd_{operator.c_name}_options {operator.c_name}_defaults = {{{values}}};\n" if values else ""


def given(operator, argument, number):
    """Returns the C expression with which the body of a public function passes on `argument`, an argument of the operator. If the public function has
    a number as parameter where the operator has a tensor, `number` is the name of this parameter. Otherwise `number` is None."""
    if argument.name == number:
        return f"grd_number_argument(&grd_operator_{operator.c_name}, {argument.name})"
    if argument.has_default:
        return ctype.from_option(argument)
    return f"&{argument.name}" if ctype.is_scalar(argument) else argument.name


def call(operator, suffix, takes_out, number):
    """Returns the C call in the body of a public function of the operator."""
    if number and not suffix:  # the function that takes a number calls the function that takes a tensor
        name = f"grd_{'with_' if options(operator) else ''}{operator.c_name}"
        words = [given(operator, a, number).removeprefix("&" if a.name != number else "") for a in operator.args if not a.has_default]
        return f"{name}({', '.join(words + ['options'] * bool(options(operator)))})"
    written = operator.args[0].name if suffix == "_" else "out" if takes_out else ""
    how = "out" if takes_out and has_out_rule(operator) else "write" if written else "call"
    words = [given(operator, a, number) for a in operator.args]
    words += [written or "NULL"] * operator.has_out + ["r"] * (len(operator.results) > 1)
    return f"{how}_{shape(operator)}({', '.join([*words, f'&grd_operator_{operator.c_name}'])})"


def entry(operator, suffix, takes_out, scalar=False):
    words = public_parameters(operator, takes_out, scalar)
    called = call(operator, suffix, takes_out, second_tensor(operator).name if scalar else None)
    name = f"{operator.c_name}{'_scalar' if scalar else ''}{suffix}"
    before = ""
    if options(operator):
        name, words = f"with_{name}", [*words, f"const grd_{operator.c_name}_options *options"]
        defaults_or = f"(options ? options : &{f'{operator.c_name}_defaults' if defaults(operator) else f'(const grd_{operator.c_name}_options){{0}}'})"
        if called.count("options->") == 1:
            called = called.replace("options->", f"{defaults_or}->")
        elif "options->" in called:
            before = f"options = {defaults_or[1:-1]};\n"
    if scalar:  # grd_leave_number releases the temporary tensor that was made from the number
        body = fill(NUMBER, before=before, call=called)
    elif len(operator.results) > 1:
        count = len(operator.results)
        body = before + fill(MANY, count=count, call=called, type=result_type(operator).strip(), members=", ".join(f"r[{i}]" for i in range(count)))
    else:
        body = f"{before}return {called};"
    return function(f"{result_type(operator)}grd_{name}({', '.join(words) or 'void'})", body)


def entries(operator):
    text = defaults(operator) if options(operator) else ""
    for suffix, takes_out in form_names(operator):
        text += entry(operator, suffix, takes_out)
        if operator.scalar and not takes_out:
            text += entry(operator, suffix, takes_out, scalar=True)
    return text
