"""Generates the C function that runs an operator on batch tensors (the tensors that vmap passes to a function). The function computes the `batch`
formula of the operator's entry in schema/*.toml. Its arguments are those of the call, with each batch tensor replaced by the underlying tensor,
whose dimension 0 is the batch."""
from codegen import ctype
from codegen.formula import Lowering
from codegen.schema import BATCH_RULES
from codegen.template import function


def batch_rule(operator):
    """Returns the name of the operator's batch rule (enum grd_batch_rule) in lower case, or "" for a composite without a rule."""
    return operator.batch if operator.batch in BATCH_RULES else "formula" if operator.batch else ""


def formula(operator, operators):
    """Returns the C function that computes the operator's batch formula. Returns "" if its batch rule is not "formula"."""
    if batch_rule(operator) != "formula":
        return ""
    lowering = Lowering(operator, operators, "batch")
    lowering.places = {a.name: f"args[{i}].v.{ctype.of(a)[1]}" for i, a in enumerate(operator.args)}
    statements, values = lowering.program(operator.batch)
    several = "".join(f"ret[{i}] = {value};\n" for i, value in enumerate(values)) + "return ret[0];" if len(values) > 1 else f"return {values[0]};"
    return function(f"static grd_tensor *{operator.c_name}_batch(const grd_value *args, grd_tensor **ret)", statements + several)
