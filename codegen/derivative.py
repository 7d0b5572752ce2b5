"""Generates the derivative of an operator: the C function that computes its gradient formulas, and the struct grd_derivative, which lists the values
that the node saves for these formulas."""
import ast
import json
import re

from codegen import ctype
from codegen.formula import Lowering, Save
from codegen.schema import UNDERIVED
from codegen.template import WIDTH, fill, wrap

BACKWARD = """
    static void ${name}(const struct grd_backward *b)
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
    if ($needs) { /* $name: $formula */
        $statements
    }
"""

SHARED = """
    $declared$name = {0};
    if (b->needs & $needs) {
        $before
        $name = $value;
    }
"""

SIZED = ("TENSORS", "DIMS", "STRING", "SHAPE", "STRIDES", "SIZES_ALONG")
FACTS = {"SHAPE": ("grd_dims ", "dims"), "STRIDES": ("grd_dims ", "dims"), "OFFSET": ("int64_t ", "integer"), "DTYPE": ("grd_dtype ", "dtype"),
         "DEVICE": ("grd_device ", "device"), "SIZES_ALONG": ("grd_dims ", "dims")}


def gradients(operator):
    """Returns {name: type} of the gradients that a formula may read. These are `grad` and, if there are several results, also grad_<result>. If the
    result is a list, a formula may read only the list `grads`."""
    if operator.returns_list:
        return {"grads": "Tensor[]"}
    if len(operator.results) > 1:
        return {f"grad_{name}": "Tensor" for name in operator.results} | {"grad": "Tensor"}
    return {"grad": "Tensor"}


def declarations(operator, saves, read, used):
    """Returns the C declarations of the gradients and saved values that the formulas read, one declaration for each type."""
    found = {}
    if operator.returns_list and "grads" in used:
        found["grd_tensors "] = ["grads = {b->ngrads, b->grads}"]
    for position, name in enumerate([] if operator.returns_list else operator.results):
        for variable in [f"grad_{name}"] * (len(operator.results) > 1) + ["grad"] * (position == 0):
            if variable in used:
                found.setdefault("grd_tensor *", []).append(f"{variable} = b->grads[{position}]")
    for i, save in enumerate(saves):
        if save not in read:
            continue
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
    """Returns the enumerator of enum grd_save_how for a saved value, without its prefix. It says how the node saves the value. Lists, strings and
    shapes (SIZED) are copied into memory that the node owns."""
    if save.how != "WHOLE":
        return save.how
    argument = operator.arg(save.name)
    kind = ctype.of(argument)[2] if argument else "TENSORS" if operator.returns_list else "TENSOR"
    return kind if kind in ("TENSOR", "GENERATOR", *SIZED) else "VALUE"


def save_row(operator, save, users):
    """Returns the C initialiser for the value `save` in the operator's table of saved values (struct grd_derivative). `users` are the positions of
    the arguments whose gradient formulas read the value."""
    places = [a.name for a in operator.args]
    is_result = save.name not in places
    facts = [f".how = GRD_SAVE_{save_how(operator, save)}"] + [".result = true"] * is_result
    facts.append(f".index = {operator.results.index(save.name) if is_result else places.index(save.name)}")
    facts += [f".extra = {places.index(save.extra)}"] if save.extra else []
    return f"{{{', '.join(facts)}, .used_by = {sum(1 << user for user in users)}}}"


def node_names(operator):
    """Returns the members of struct grd_derivative that hold node names: the usual name, the name for calls in which a certain argument is given, and
    the name for in-place calls."""
    camel = "".join(part.capitalize() for part in operator.name.split("_"))
    facts = {"node_name": json.dumps(operator.nodes.get("", f"{camel}Backward0"))}
    for where, name in operator.nodes.items():
        if where == "inplace":
            facts["inplace_name"] = json.dumps(name)
        elif where:
            facts |= {"given_name": json.dumps(name), "given": [a.name for a in operator.args].index(where)}
    return facts


def carrying_results(operator, used):
    """Returns a bit mask of the results that require gradients. These are the results whose gradient a formula reads, or all results if no formula
    reads any gradient."""
    bits = sum(1 << i for i, name in enumerate(operator.results) if f"grad_{name}" in used or (i == 0 and used & {"grad", "grads"}))
    return bits or (1 << len(operator.results)) - 1


def reads_absence(operator):
    """True if a gradient formula asks whether the gradient of a result is undefined, as in `grad_average is None`."""
    return any(f"grad_{result} is None" in formula for formula in operator.grads.values() if formula for result in operator.results)


def table(operator, saves, used, accelerations=(), operators=None):
    """Returns the C definition of the operator's struct grd_derivative and of the tables that it points to."""
    places = [a.name for a in operator.args]
    facts = node_names(operator) | {"backward": UNDERIVED.get(operator.underived, f"{operator.c_name}_backward")}
    facts |= {"context": json.dumps(operator.name)} if operator.underived else {}
    facts |= {"backward": "grd_derivative_of_parts", "context": f"&grd_operator_{operators[operator.specification].c_name}"} if operator.specification else {}
    if accelerations:
        names = ", ".join(f"&grd_operator_{o.c_name}" for o in accelerations)
        facts |= {"fast": f"{operator.c_name}_fast", "accelerations": f"(const grd_op *const[]){{{names}, NULL}}"}
    facts |= {"forward": f"{operator.c_name}_forward"} if isinstance(operator.jvp, dict) else {}
    facts |= {"forward_rule": f"GRD_FORWARD_{'FORMULA' if isinstance(operator.jvp, dict) else operator.jvp.upper()}"} if operator.jvp not in (None, "refuse") else {}
    facts |= {"args": f"(const uint8_t[]){{{', '.join(str(places.index(name)) for name in operator.grads)}}}", "nargs": len(operator.grads)}
    if saves:
        rows = ", ".join(save_row(operator, save, users) for save, users in saves.items())
        facts |= {"saves": f"(const struct grd_save[]){{{rows}}}", "nsaves": len(saves)}
    others = sum(1 << i for i, a in enumerate(operator.args) if a.is_tensor and a.name not in operator.grads)
    facts |= ({"others": others} if others else {}) | {"results": carrying_results(operator, used)}
    flags = {"sized": any(save_how(operator, save) in SIZED for save in saves), "lists": any(operator.arg(name).list for name in operator.grads),
             "materialize": (operator.returns_list or len(operator.results) > 1) and not reads_absence(operator)}
    facts |= {name: "true" for name, on in flags.items() if on}
    return wrap((f".{name} = {value}" for name, value in facts.items()), f"static const struct grd_derivative {operator.c_name}_derivative = {{", "};")


class Formulas:
    """Translates the gradient formulas of all arguments into the statements of one C function, and collects the values that the node must save."""

    def __init__(self, operator, operators, key, formulas):
        self.operator, self.operators, self.key = operator, operators, key
        self.places = {name: position for position, name in enumerate(operator.grads)}
        # `saves` maps each Save, i.e. each value that the node saves for backward, to the positions of the arguments whose gradient formulas read the
        # value. `used` holds the names of the gradients that formulas read.
        self.saves, self.statements, self.used = {}, "", set()
        self.called = set()  # names of operators that the formulas call
        shared = self.shared_parts(formulas)
        for name, formula in formulas.items():
            self.add(name, formula, shared)
        self.statements = self.statements or "(void)b;"

    def lowering(self, key):
        return Lowering(self.operator, self.operators, key, gradients(self.operator))

    def note(self, lowering, places, statements):
        for save in lowering.saves:
            self.saves[save] = sorted({*self.saves.get(save, []), *places})
        self.called |= lowering.called
        self.used |= gradients(self.operator).keys() & set(re.findall(r"\w+", " ".join(statements)))

    def shared_parts(self, formulas):
        """Declares a C variable for each name in `where` that the formulas of at least two arguments read, so that its value is computed only
        once. If all formulas read a name only in one side of a conditional expression, the name gets no variable. Returns {name: (value, positions
        of the arguments whose formulas read it)}."""
        of = {unconditional: {argument: self.lowering(f"{self.key}.{argument}").parts_of(formula, unconditional) for argument, formula in formulas.items()} for unconditional in (True, False)}
        shared = {}
        for name in self.operator.where:
            places = [self.places[argument] for argument, parts in of[False].items() if name in parts]
            if len(places) < 2 or not any(name in parts for parts in of[True].values()):
                continue
            lowering = self.lowering(f"where.{name}")
            lowering.parts_named |= {part: value for part, (value, _) in shared.items()}
            lowering.lower(name)
            *before, last = lowering.statements
            self.note(lowering, places, lowering.statements)
            if not before and len(places) == len(self.places):
                self.statements += f"{last}\n"
            else:
                declared, value = last.removesuffix(";").removeprefix("const ").split(f"{name} = ", 1)
                needs = sum(1 << p for p in places)
                if before or not declared.endswith("*"):
                    self.statements += fill(SHARED, declared=declared, name=name, needs=needs, before="\n".join(before), value=value)
                else:
                    self.statements += f"{declared}{name} = b->needs & {needs} ? {value} : NULL;\n"
            shared[name] = (lowering.parts_named[name], places)
        return shared

    def add(self, name, formula, shared):
        position, lowering = self.places[name], self.lowering(f"{self.key}.{name}")
        lowering.parts_named |= {part: value for part, (value, places) in shared.items() if position in places}
        is_list = self.operator.arg(name).list
        result = (lambda value: lowering.convert(value, "Tensor[]" if is_list else "Tensor"))
        target = f"grd_backward_spread(b, {position}, {{}});" if is_list else f"b->ret_grads[b->first_edge[{position}]] = {{}};"
        tree = lowering.parse(formula)
        if isinstance(tree, ast.Constant) and tree.value is None:
            return
        statements = lowering.assigned(tree, lambda value: target.format(result(value)))
        self.note(lowering, [position], statements)
        needs = f"b->needs >> {position} & 1"
        if name in self.operator.fused:
            needs += f" && !grd_backward_fused(b, {position}, {self.lowering(self.key).lower(self.operator.fused[name]).c})"
        line = f"if ({needs}) {statements[0]} /* {name}: {formula} */\n"
        if len(statements) == 1 and "\n" not in statements[0] and len(line) + 4 <= WIDTH:
            self.statements += line
        else:
            self.statements += fill(GRADIENT, needs=needs, name=name, formula=formula, statements="\n".join(statements))

    def function(self, name, saves):
        return fill(BACKWARD, name=name, declarations=declarations(self.operator, saves, self.saves, self.used), statements=self.statements)


def forward(operator, operators):
    """Returns the C function that computes the forward formulas (`jvp`), or '' if `jvp` names a rule of FORWARD."""
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


def of_specification(operator, operators):
    """Returns the C code of the derivative of an operator with grad = "of NAME", where NAME is a composite operator. The operator's formulas under
    the key fast.grad compute the gradient. If they cannot be used, e.g. with create_graph, the gradient is found by recording the operators that
    NAME calls. The node saves the arguments of NAME, in order, and then the other values that the formulas under fast.grad read."""
    fast, name = Formulas(operator, operators, "fast.grad", operator.fast), operator.c_name
    arguments = [Save("WHOLE", a.name) for a in operators[operator.specification].args]
    saves = {save: list(range(len(operator.grads))) for save in arguments} | {save: places for save, places in fast.saves.items() if save not in arguments}
    accelerations = [operators[called] for called in sorted(fast.called) if operators[called].hidden]
    declared = wrap([f"grd_operator_{o.c_name}" for o in (*accelerations, operators[operator.specification])], "extern struct grd_op ", ";")
    return fast.function(f"{name}_fast", saves) + declared + table(operator, saves, fast.used, accelerations, operators)


def derivative(operator, operators):
    """Returns the C functions of the derivative and the struct grd_derivative, or '' if the operator has no derivative."""
    if not operator.grads:
        return ""
    if operator.underived:
        return table(operator, {}, {"grad"})
    if operator.specification:
        return of_specification(operator, operators)
    formulas, name = Formulas(operator, operators, "grad", operator.grads), operator.c_name
    if not operator.fast:
        return formulas.function(f"{name}_backward", formulas.saves) + forward(operator, operators) + table(operator, formulas.saves, formulas.used)
    fast = Formulas(operator, operators, "fast.grad", operator.grads | operator.fast)
    for save, places in formulas.saves.items():
        if not set(places) <= set(fast.saves.get(save, [])):
            raise operator.error(f"a formula reads {save.variable}, which its acceleration does not save", "grad")
    accelerations = [operators[called] for called in sorted(fast.called - formulas.called) if operators[called].hidden]
    for callee in accelerations:
        if callee.grads:
            raise callee.error(f"is an acceleration of the gradient of {operator.name}, which is never differentiated: say grad = \"none\"", "grad")
    if not accelerations:
        raise operator.error("fast.grad calls no hidden operator: it accelerates nothing", "fast.grad")
    declared = wrap([f"grd_operator_{o.c_name}" for o in accelerations], "extern struct grd_op ", ";")
    return (formulas.function(f"{name}_backward", fast.saves) + fast.function(f"{name}_fast", fast.saves) + forward(operator, operators) + declared
            + table(operator, fast.saves, formulas.used | fast.used, accelerations))
