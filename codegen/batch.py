"""The formula of an operator for batch tensors: a function of the physical tensors, each with the batch in front; other arguments are those of the call."""
from codegen import ctype
from codegen.formula import Lowering
from codegen.schema import BATCH_RULES
from codegen.template import function


def batch_rule(operator):
    """The name in enum grd_batch_rule; "" for a composite without one."""
    return operator.batch if operator.batch in BATCH_RULES else "formula" if operator.batch else ""


def formula(operator, operators):
    """The function, or "" where the rule is another."""
    if batch_rule(operator) != "formula":
        return ""
    lowering = Lowering(operator, operators, "batch")
    lowering.places = {a.name: f"args[{i}].v.{ctype.of(a)[1]}" for i, a in enumerate(operator.args)}
    statements, values = lowering.program(operator.batch)
    several = "".join(f"ret[{i}] = {value};\n" for i, value in enumerate(values)) + "return ret[0];" if len(values) > 1 else f"return {values[0]};"
    return function(f"static grd_tensor *{operator.c_name}_batch(const grd_value *args, grd_tensor **ret)", statements + several)
