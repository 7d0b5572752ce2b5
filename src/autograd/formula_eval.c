/* Evaluates gradient formulas: calls operators on tensors, and computes numbers as doubles, which represent integers up to 2^53 exactly.
 * Invariant: a function that fails leaves the error pending, and its return value is meaningless. The caller of grd_formula_evaluate checks for
 * the error. */
#include "autograd/formula_tree.h"

#include <string.h>

#include "base/object.h"
#include "core/tensor.h"

struct evaluation {
    const struct grd_formula *formula;
    const struct grd_backward *b;
};

static grd_value evaluate(const struct evaluation *e, int index);

static const struct grd_formula_node *node_at(const struct evaluation *e, int index)
{
    return &e->formula->nodes[index];
}

/* ---- Conversions ------------------------------------------------------------------------------------------------------------------ */

/* True if the value is None or stands for an optional argument that is absent. */
static bool is_none(const grd_value *value)
{
    switch (value->kind) {
    case GRD_KIND_NONE:
        return true;
    case GRD_KIND_TENSOR:
        return value->v.tensor == NULL;
    case GRD_KIND_SCALAR:
        return value->v.scalar.kind == GRD_SCALAR_NONE;
    case GRD_KIND_DIMS:
        return value->v.dims.data == NULL;
    case GRD_KIND_DTYPE:
        return value->v.dtype == GRD_DTYPE_NONE;
    case GRD_KIND_DEVICE:
        return value->v.device.type == GRD_DEVICE_NONE;
    case GRD_KIND_STRING:
        return value->v.string == NULL;
    case GRD_KIND_GENERATOR:
        return value->v.generator == NULL;
    default:
        return false;
    }
}

static double to_double(grd_value value)
{
    return grd_scalar_double(grd_value_scalar(&value));
}

/* Returns a list of n integers. *ret_data points to these integers, which the caller has to set. The memory lives until the innermost grd_scope
 * closes. On failure the list is empty, *ret_data is NULL and MemoryError is raised. */
static grd_value new_dims(int64_t n, int64_t **ret_data)
{
    int64_t *data = *ret_data = grd_pool_alloc((size_t)(n > 0 ? n : 1) * sizeof *data);
    return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {data != NULL ? n : 0, data}};
}

/* Returns the number `value` converted to the kind `wanted`. If `wanted` is a list of integers, the list has one element. Returns None for an absent
 * number. Returns a value that is not a number unchanged. */
static grd_value convert(grd_value value, grd_kind wanted)
{
    const bool number =
        value.kind == GRD_KIND_SCALAR || value.kind == GRD_KIND_INT || value.kind == GRD_KIND_FLOAT || value.kind == GRD_KIND_BOOL;
    int64_t *data;
    if (!number || value.kind == wanted)
        return value;
    if (is_none(&value))
        return (grd_value){.kind = GRD_KIND_NONE};
    const grd_scalar scalar = grd_value_scalar(&value);
    switch (wanted) {
    case GRD_KIND_TENSOR:
        return (grd_value){.kind = wanted, .v.tensor = grd_number(scalar)};
    case GRD_KIND_SCALAR:
        return (grd_value){.kind = wanted, .v.scalar = scalar};
    case GRD_KIND_INT:
        return (grd_value){.kind = wanted, .v.integer = grd_scalar_int64(scalar)};
    case GRD_KIND_FLOAT:
        return (grd_value){.kind = wanted, .v.number = grd_scalar_double(scalar)};
    case GRD_KIND_BOOL:
        return (grd_value){.kind = wanted, .v.boolean = grd_scalar_double(scalar) != 0};
    default:
        value = new_dims(1, &data);
        if (data != NULL)
            *data = grd_scalar_int64(scalar);
        return value;
    }
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the result of a binary operation on a and b, or of a unary one on a. Truth values are 0 and 1. */
static double compute(enum grd_formula_symbol symbol, double a, double b)
{
    switch (symbol) {
    case GRD_SYMBOL_OR:
        return a != 0 || b != 0;
    case GRD_SYMBOL_AND:
        return a != 0 && b != 0;
    case GRD_SYMBOL_NOT:
        return a == 0;
    case GRD_SYMBOL_EQUAL:
        return a == b;
    case GRD_SYMBOL_NOT_EQUAL:
        return a != b;
    case GRD_SYMBOL_LESS_EQUAL:
        return a <= b;
    case GRD_SYMBOL_GREATER_EQUAL:
        return a >= b;
    case GRD_SYMBOL_LESS:
        return a < b;
    case GRD_SYMBOL_GREATER:
        return a > b;
    case GRD_SYMBOL_ADD:
        return a + b;
    case GRD_SYMBOL_SUBTRACT:
        return a - b;
    case GRD_SYMBOL_MULTIPLY:
        return a * b;
    case GRD_SYMBOL_DIVIDE:
        return a / b;
    default:
        return -a;
    }
}

/* Returns the result of an arithmetic operation or a comparison of numbers. The operators == and != also take two strings or two dtypes.
 * These are compared as numbers: x is 0 if they are equal, otherwise 1, and the operator is applied to x and y = 0. A string argument that is None
 * differs from every string. */
static grd_value evaluate_number(const struct evaluation *e, const struct grd_formula_node *node)
{
    const int next = node_at(e, node->child)->next;
    const grd_value a = evaluate(e, node->child), b = next != 0 ? evaluate(e, next) : a;
    double x = 0, y = 0;
    if (a.kind == GRD_KIND_STRING) {
        x = a.v.string == NULL || b.v.string == NULL || strcmp(a.v.string, b.v.string) != 0;
    } else if (a.kind == GRD_KIND_DTYPE) {
        x = a.v.dtype != b.v.dtype;
    } else {
        x = to_double(a);
        y = to_double(b);
    }
    return convert((grd_value){.kind = GRD_KIND_FLOAT, .v.number = compute((enum grd_formula_symbol)node->which, x, y)},
                   (grd_kind)node->kind);
}

/* ---- Tensors and lists ------------------------------------------------------------------------------------------------------------ */

static grd_value evaluate_list(const struct evaluation *e, const struct grd_formula_node *node)
{
    int64_t n = 0, *sizes = NULL;
    for (int item = node->child; item != 0; item = node_at(e, item)->next)
        n++;
    grd_tensor **tensors = node->kind == GRD_KIND_TENSORS ? grd_pool_alloc((size_t)n * sizeof *tensors) : NULL;
    const grd_value list = node->kind == GRD_KIND_DIMS
                               ? new_dims(n, &sizes)
                               : (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {tensors != NULL ? n : 0, tensors}};
    for (int item = node->child; item != 0 && !grd_pending(); item = node_at(e, item)->next)
        if (sizes != NULL)
            *sizes++ = convert(evaluate(e, item), GRD_KIND_INT).v.integer;
        else
            *tensors++ = convert(evaluate(e, item), GRD_KIND_TENSOR).v.tensor;
    return list;
}

static grd_value evaluate_item(const struct evaluation *e, const struct grd_formula_node *node)
{
    const grd_dims list = evaluate(e, node->child).v.dims;
    const int64_t i = convert(evaluate(e, node_at(e, node->child)->next), GRD_KIND_INT).v.integer;
    if (!grd_pending() && (i < 0 || i >= list.n))
        grd_raise(GRD_ERROR_INDEX, "the formula reads element %lld of a list of %lld", (long long)i, (long long)list.n);
    return (grd_value){.kind = GRD_KIND_INT, .v.integer = grd_pending() ? 0 : list.data[i]};
}

static grd_value evaluate_fact(const struct evaluation *e, const struct grd_formula_node *node)
{
    const grd_tensor *grad = evaluate(e, node->child).v.tensor;
    if (grad == NULL)
        grd_raise(GRD_ERROR_RUNTIME, "the formula reads the shape, dtype or device of an undefined gradient");
    return grd_pending() ? (grd_value){.kind = GRD_KIND_NONE} : grd_fact_of((enum grd_save_how)node->which, grad);
}

/* Calls the operator, or the function of numbers, that `node` stands for. Returns its value converted to the kind of `node`. An argument that the
 * formula does not give is passed as a value of kind NONE. */
static grd_value evaluate_call(const struct evaluation *e, const struct grd_formula_node *node)
{
    const bool is_function = node->type == GRD_FORMULA_FUNCTION;
    const struct grd_arg *kinds = is_function ? node->v.function->args : node->v.op->args;
    grd_value args[GRD_MAX_ARGS] = {{.kind = GRD_KIND_NONE}}, result;
    for (int arg = node->child; arg != 0; arg = node_at(e, arg)->next)
        args[node_at(e, arg)->place] = convert(evaluate(e, arg), (grd_kind)kinds[node_at(e, arg)->place].kind);
    if (is_function)
        return node->v.function->call(args);
    grd_call(node->v.op, GRD_FUNCTIONAL, args, node->v.op->nargs, NULL, &result);
    return result;
}

/* ---- All nodes --------------------------------------------------------------------------------------------------------------------- */

/* Returns the value of the node number `index`. Calls itself for the node's children; formula_text.c limits the number of nodes and so the depth
 * of this recursion. */
static grd_value evaluate(const struct evaluation *e, int index)
{
    const struct grd_formula_node *node = node_at(e, index);
    switch (node->type) {
    case GRD_FORMULA_CONSTANT:
        return node->v.constant;
    case GRD_FORMULA_GRADIENT:
        return (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = e->b->grads[node->which]};
    case GRD_FORMULA_GRADIENTS:
        return (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {e->b->ngrads, e->b->grads}};
    case GRD_FORMULA_SAVED:
        return e->b->saved[node->which];
    case GRD_FORMULA_FACT:
        return evaluate_fact(e, node);
    case GRD_FORMULA_LIST:
        return evaluate_list(e, node);
    case GRD_FORMULA_ITEM:
        return evaluate_item(e, node);
    case GRD_FORMULA_NUMBER:
        return evaluate_number(e, node);
    case GRD_FORMULA_IS_NONE: {
        const grd_value value = evaluate(e, node->child);
        return (grd_value){.kind = GRD_KIND_BOOL, .v.boolean = is_none(&value) != node->which};
    }
    case GRD_FORMULA_CHOICE: {
        const int yes = node->child, test = node_at(e, yes)->next;
        return convert(evaluate(e, to_double(evaluate(e, test)) != 0 ? yes : node_at(e, test)->next), (grd_kind)node->kind);
    }
    default:
        return evaluate_call(e, node);
    }
}

grd_value grd_formula_evaluate(const struct grd_formula *formula, const struct grd_backward *b)
{
    const struct evaluation e = {formula, b};
    const grd_value value = evaluate(&e, formula->root);
    return value.kind == GRD_KIND_TENSORS ? value : convert(value, GRD_KIND_TENSOR);
}
