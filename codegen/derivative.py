"""The derivative of an operator: the function that computes its formulas, and the table that says what to save for them."""
import json
import re

from codegen import ctype
from codegen.formula import Lowering
from codegen.template import WIDTH, fill, wrap

BACKWARD = """
    static void ${operator}_backward(const struct grd_backward *b)
    {
        $declarations
        $statements
    }
"""

FORWARD = """
    static void ${operator}_forward(const struct grd_forward_call *f)
    {
        $declarations
        $statements
    }
"""

TANGENT = """
    if (f->arg == $position) { /* $name: $formula */
        grd_tensor *${name}_t = f->tangent;
        $before
        $target
    }
"""

GRADIENT = """
    if (b->needs >> $position & 1)$opening /* $name: $formula */
        $before
        $target
    $closing
"""

SIZED = ("TENSORS", "DIMS", "STRING", "SHAPE", "STRIDES", "SIZES_ALONG")
FACTS = {"SHAPE": ("grd_dims ", "dims"), "STRIDES": ("grd_dims ", "dims"), "OFFSET": ("int64_t ", "integer"), "DTYPE": ("grd_dtype ", "dtype"),
         "DEVICE": ("grd_device ", "device"), "SIZES_ALONG": ("grd_dims ", "dims")}


def gradients(operator):
    """{name in a formula: its type} of the gradients of the results."""
    if operator.returns_list:
        return {"grads": "Tensor[]"}
    if len(operator.results) > 1:
        return {f"grad_{name}": "Tensor" for name in operator.results} | {"grad": "Tensor"}
    return {"grad": "Tensor"}


def declarations(operator, saves, used):
    """The variables of the formulas, those of one type together."""
    found = {}
    if operator.returns_list and "grads" in used:
        found["grd_tensors "] = ["grads = {b->ngrads, b->grads}"]
    for position, name in enumerate([] if operator.returns_list else operator.results):
        for variable in [f"grad_{name}"] * (len(operator.results) > 1) + ["grad"] * (position == 0):
            if variable in used:
                found.setdefault("grd_tensor *", []).append(f"{variable} = b->grads[{position}]")
    for i, save in enumerate(saves):
        c, member = saved_type(operator, save)
        found.setdefault(c, []).append(f"{save.variable} = b->saved[{i}].v.{member}")
    return "".join(wrap(words, c, ";", separator=", *" if c.endswith("*") else ", ") for c, words in found.items())


def saved_type(operator, save):
    if save.how in FACTS:
        return FACTS[save.how]
    argument = operator.arg(save.name)
    if argument is None:
        return ("grd_tensors ", "tensors") if operator.returns_list else ("grd_tensor *", "tensor")
    return ctype.of(argument)[:2]


def save_how(operator, save):
    """The kind of a saved value; those in SIZED take room in the node."""
    if save.how != "WHOLE":
        return save.how
    argument = operator.arg(save.name)
    kind = ctype.of(argument)[2] if argument else "TENSORS" if operator.returns_list else "TENSOR"
    return kind if kind in ("TENSOR", "GENERATOR", *SIZED) else "VALUE"


def save_row(operator, save, users):
    places = [a.name for a in operator.args]
    is_result = save.name not in places
    facts = [f".how = GRD_SAVE_{save_how(operator, save)}"] + [".result = true"] * is_result
    facts.append(f".index = {operator.results.index(save.name) if is_result else places.index(save.name)}")
    facts += [f".extra = {places.index(save.extra)}"] if save.extra else []
    return f"{{{', '.join(facts)}, .used_by = {sum(1 << user for user in users)}}}"


def node_names(operator):
    """The names that the node has: always, where an argument is given, after a call in place."""
    camel = "".join(part.capitalize() for part in operator.name.split("_"))
    facts = {"node_name": json.dumps(operator.nodes.get("", f"{camel}Backward0"))}
    for where, name in operator.nodes.items():
        if where == "inplace":
            facts["inplace_name"] = json.dumps(name)
        elif where:
            facts |= {"given_name": json.dumps(name), "given": [a.name for a in operator.args].index(where)}
    return facts


def carrying_results(operator, used):
    """Bit set of the results that carry gradients: those whose gradient a formula reads; all, where none reads any."""
    bits = sum(1 << i for i, name in enumerate(operator.results) if f"grad_{name}" in used or (i == 0 and used & {"grad", "grads"}))
    return bits or (1 << len(operator.results)) - 1


def table(operator, saves, used):
    places = [a.name for a in operator.args]
    facts = node_names(operator) | {"backward": f"{operator.c_name}_backward"}
    facts |= {"forward": f"{operator.c_name}_forward"} if isinstance(operator.jvp, dict) else {}
    facts |= {"forward_rule": f"GRD_FORWARD_{'FORMULA' if isinstance(operator.jvp, dict) else operator.jvp.upper()}"} if operator.jvp not in (None, "refuse") else {}
    facts |= {"args": f"(const uint8_t[]){{{', '.join(str(places.index(name)) for name in operator.grads)}}}", "nargs": len(operator.grads)}
    if saves:
        rows = ", ".join(save_row(operator, save, users) for save, users in saves.items())
        facts |= {"saves": f"(const struct grd_save[]){{{rows}}}", "nsaves": len(saves)}
    others = sum(1 << i for i, a in enumerate(operator.args) if a.is_tensor and a.name not in operator.grads)
    facts |= ({"others": others} if others else {}) | {"results": carrying_results(operator, used)}
    flags = {"sized": any(save_how(operator, save) in SIZED for save in saves), "lists": any(operator.arg(name).list for name in operator.grads),
             "materialize": operator.returns_list or len(operator.results) > 1}
    facts |= {name: "true" for name, on in flags.items() if on}
    return wrap((f".{name} = {value}" for name, value in facts.items()), f"static const struct grd_derivative {operator.c_name}_derivative = {{", "};")


def forward(operator, operators):
    """The function of the forward formulas; '' where a word says the rule."""
    if not isinstance(operator.jvp, dict):
        return ""
    places, statements, words = [a.name for a in operator.args], "", set()
    for name, formula in operator.jvp.items():
        lowering = Lowering(operator, operators, f"jvp.{name}", tangent=name)
        before, values = lowering.program(formula)
        target = "".join(f"f->ret_tangents[{i}] = {value};\n" for i, value in enumerate(values) if value != "NULL")
        words |= set(re.findall(r"(?<![.>])\b\w+", before + target))
        statements += fill(TANGENT, position=places.index(name), name=name, formula=formula.strip().splitlines()[-1], before=before, target=target)
    found = {}
    for i, argument in enumerate(operator.args):
        if argument.name in words:
            c, member = ctype.of(argument)[:2]
            found.setdefault(c, []).append(f"{argument.name} = f->args[{i}].v.{member}")
    for i, name in enumerate(operator.results):
        if name in words:
            found.setdefault("grd_tensor *", []).append(f"{name} = f->results[{i}].v.tensor")
    declared = "".join(wrap(words, c, ";", separator=", *" if c.endswith("*") else ", ") for c, words in found.items())
    return fill(FORWARD, operator=operator.c_name, declarations=declared, statements=statements)


def derivative(operator, operators):
    """The backward function and its table; '' where there is none."""
    if not operator.grads:
        return ""
    saves, statements, used = {}, "", set()  # saves: which -> positions of the arguments whose formula reads it
    for position, (name, formula) in enumerate(operator.grads.items()):
        lowering = Lowering(operator, operators, f"grad.{name}", gradients(operator))
        value = lowering.lower(formula)
        for save in lowering.saves:
            saves.setdefault(save, []).append(position)
        used |= gradients(operator).keys() & set(re.findall(r"\w+", " ".join([*lowering.statements, value.c])))
        if value.type == "None":
            continue
        is_list = operator.arg(name).list
        result = lowering.convert(value, "Tensor[]" if is_list else "Tensor")
        target = f"grd_backward_spread(b, {position}, {result});" if is_list else f"b->ret_grads[b->first_edge[{position}]] = {result};"
        braces = (" {", "}") if lowering.statements else ("", "")
        plain = f"if (b->needs >> {position} & 1) {target} /* {name}: {formula} */\n"
        if not lowering.statements and len(plain) + 4 <= WIDTH:
            statements += plain
            continue
        statements += fill(GRADIENT, position=position, name=name, formula=formula, before="\n".join(lowering.statements), target=target, opening=braces[0], closing=braces[1])
    function = fill(BACKWARD, operator=operator.c_name, declarations=declarations(operator, saves, used), statements=statements or "(void)b;")
    return function + forward(operator, operators) + table(operator, saves, used)
