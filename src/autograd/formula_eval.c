/* Evaluates gradient formulas: operators are called on tensors, numbers are computed with.
 * Invariant: an error is raised by whoever meets it and looked at by the caller, once; what is computed after it is not used. */
#include "autograd/formula_tree.h"

#include <string.h>

#include "base/object.h"

struct evaluation {
    const struct grd_formula *formula;
    const struct grd_backward *b;
};

static grd_value evaluate(const struct evaluation *e, int index);

static const struct grd_formula_node *node_at(const struct evaluation *e, int index)
{
    return &e->formula->nodes[index];
}

/* ---- Numbers -------------------------------------------------------------------------------------------------------------------- */

static int64_t to_integer(grd_value value)
{
    return grd_scalar_int64(grd_value_scalar(&value));
}

static double to_number(grd_value value)
{
    return grd_scalar_double(grd_value_scalar(&value));
}

/* A float is not truncated: 0.5 is true. */
static bool to_condition(grd_value value)
{
    return value.kind == GRD_KIND_FLOAT ? value.v.number != 0 : to_integer(value) != 0;
}

static grd_value integer_value(int64_t x)
{
    return (grd_value){.kind = GRD_KIND_INT, .v.integer = x};
}

static grd_value number_value(double x)
{
    return (grd_value){.kind = GRD_KIND_FLOAT, .v.number = x};
}

static grd_value condition(bool x)
{
    return (grd_value){.kind = GRD_KIND_BOOL, .v.boolean = x};
}

/* Integers wrap. */
static grd_value compute(const struct grd_formula_node *node, grd_value left, grd_value right)
{
    if (node->kind == GRD_KIND_INT) {
        const uint64_t a = (uint64_t)to_integer(left), b = (uint64_t)to_integer(right);
        return integer_value((int64_t)(node->which == '+' ? a + b : node->which == '-' ? a - b : a * b));
    }
    const double a = to_number(left), b = to_number(right);
    return number_value(node->which == '+' ? a + b : node->which == '-' ? a - b : node->which == '*' ? a * b : a / b);
}

static grd_value negate(const struct grd_formula_node *node, grd_value operand)
{
    return node->kind == GRD_KIND_INT ? integer_value((int64_t) - (uint64_t)to_integer(operand)) : number_value(-to_number(operand));
}

/* -1, 0 or 1; 2 when neither holds, as for NaN and for a string that is absent. */
static int order(grd_value left, grd_value right)
{
    if (left.kind == GRD_KIND_STRING || right.kind == GRD_KIND_STRING) {
        if (left.v.string == NULL || right.v.string == NULL)
            return left.v.string == right.v.string ? 0 : 2;
        const int difference = strcmp(left.v.string, right.v.string);
        return (difference > 0) - (difference < 0);
    }
    const grd_scalar a = grd_value_scalar(&left), b = grd_value_scalar(&right);
    if (a.kind != GRD_SCALAR_FLOAT && a.kind != GRD_SCALAR_COMPLEX && b.kind != GRD_SCALAR_FLOAT && b.kind != GRD_SCALAR_COMPLEX)
        return (grd_scalar_int64(a) > grd_scalar_int64(b)) - (grd_scalar_int64(a) < grd_scalar_int64(b));
    const double x = grd_scalar_double(a), y = grd_scalar_double(b);
    return x == y ? 0 : x < y ? -1 : x > y ? 1 : 2;
}

static bool compare(int which, int order)
{
    switch (which) {
    case GRD_EQUAL:
        return order == 0;
    case GRD_NOT_EQUAL:
        return order != 0;
    case GRD_LESS_EQUAL:
        return order == -1 || order == 0;
    case GRD_GREATER_EQUAL:
        return order == 1 || order == 0;
    case GRD_LESS:
        return order == -1;
    default:
        return order == 1;
    }
}

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

/* ---- Tensors and lists ------------------------------------------------------------------------------------------------------------ */

/* A number where a tensor is wanted. */
static grd_value to_tensor(grd_value value)
{
    if (value.kind == GRD_KIND_TENSOR || value.kind == GRD_KIND_NONE)
        return value;
    return (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = grd_number(grd_value_scalar(&value))};
}

static grd_value dims_of(int64_t n)
{
    return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {n, grd_pool_alloc((size_t)(n > 0 ? n : 1) * sizeof(int64_t))}};
}

static grd_value evaluate_list(const struct evaluation *e, const struct grd_formula_node *node)
{
    int64_t n = 0;
    for (int item = node->child; item >= 0; item = node_at(e, item)->next)
        n++;
    if (node->kind == GRD_KIND_DIMS) {
        grd_value list = dims_of(n);
        int64_t *data = (int64_t *)(uintptr_t)list.v.dims.data;
        for (int item = node->child; data != NULL && item >= 0; item = node_at(e, item)->next)
            *data++ = to_integer(evaluate(e, item));
        return list;
    }
    grd_tensor **data = grd_pool_alloc((size_t)n * sizeof *data);
    const grd_value list = {.kind = GRD_KIND_TENSORS, .v.tensors = {data != NULL ? n : 0, data}};
    for (int item = node->child; data != NULL && item >= 0; item = node_at(e, item)->next)
        *data++ = to_tensor(evaluate(e, item)).v.tensor;
    return list;
}

static grd_value evaluate_fact(const struct evaluation *e, const struct grd_formula_node *node)
{
    const grd_tensor *grad = evaluate(e, node->child).v.tensor;
    if (grad == NULL)
        grd_raise(GRD_ERROR_RUNTIME, "the formula takes a fact of the gradient of a result that has none");
    if (grd_pending())
        return (grd_value){.kind = GRD_KIND_NONE};
    switch (node->which) {
    case GRD_SAVE_SHAPE:
        return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = grd_sizes(grad)};
    case GRD_SAVE_STRIDES:
        return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = grd_strides(grad)};
    case GRD_SAVE_OFFSET:
        return integer_value(grad->offset);
    case GRD_SAVE_DEVICE:
        return (grd_value){.kind = GRD_KIND_DEVICE, .v.device = grd_device_of(grad)};
    default:
        return (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)grad->dtype};
    }
}

/* What grd_call does not convert: an integer to a list of one, any number to an integer. An absent number is an absent argument. */
static grd_value to_argument(grd_value value, grd_kind wanted)
{
    if (wanted == GRD_KIND_DIMS && value.kind == GRD_KIND_INT) {
        grd_value list = dims_of(1);
        if (list.v.dims.data != NULL)
            *(int64_t *)(uintptr_t)list.v.dims.data = value.v.integer;
        return list;
    }
    if (value.kind != GRD_KIND_SCALAR || wanted == GRD_KIND_SCALAR)
        return value;
    if (value.v.scalar.kind == GRD_SCALAR_NONE)
        return (grd_value){.kind = GRD_KIND_NONE};
    return wanted == GRD_KIND_INT ? integer_value(grd_scalar_int64(value.v.scalar)) : value;
}

static grd_value evaluate_call(const struct evaluation *e, const struct grd_formula_node *node)
{
    grd_value args[GRD_MAX_ARGS] = {{.kind = GRD_KIND_NONE}}, result;
    for (int arg = node->child; arg >= 0; arg = node_at(e, arg)->next) {
        const int place = node_at(e, arg)->place;
        args[place] = to_argument(evaluate(e, arg), (grd_kind)node->op->args[place].kind);
    }
    grd_call(node->op, GRD_FUNCTIONAL, args, node->op->nargs, NULL, &result);
    return result;
}

/* ---- Everything -------------------------------------------------------------------------------------------------------------------- */

static grd_value evaluate_choice(const struct evaluation *e, const struct grd_formula_node *node)
{
    const int yes = node->child, test = node_at(e, yes)->next, no = node_at(e, test)->next;
    const grd_value value = evaluate(e, to_condition(evaluate(e, test)) ? yes : no);
    if (node->kind == GRD_KIND_TENSOR)
        return to_tensor(value);
    return value.kind != GRD_KIND_NONE && node->kind == GRD_KIND_FLOAT ? number_value(to_number(value)) : value;
}

/* As deep as the tree, which formula_text.c limits. */
static grd_value evaluate(const struct evaluation *e, int index)
{
    const struct grd_formula_node *node = node_at(e, index);
    const int left = node->child, right = left >= 0 ? node_at(e, left)->next : -1;
    switch (node->type) {
    case GRD_FORMULA_CONSTANT:
        return node->constant;
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
    case GRD_FORMULA_NEGATE:
        return negate(node, evaluate(e, left));
    case GRD_FORMULA_NOT:
        return condition(!to_condition(evaluate(e, left)));
    case GRD_FORMULA_ARITHMETIC:
        return compute(node, evaluate(e, left), evaluate(e, right));
    case GRD_FORMULA_COMPARE:
        return condition(compare(node->which, order(evaluate(e, left), evaluate(e, right))));
    case GRD_FORMULA_IS_NONE: {
        const grd_value value = evaluate(e, left);
        return condition(is_none(&value));
    }
    case GRD_FORMULA_AND:
        return condition(to_condition(evaluate(e, left)) && to_condition(evaluate(e, right)));
    case GRD_FORMULA_OR:
        return condition(to_condition(evaluate(e, left)) || to_condition(evaluate(e, right)));
    case GRD_FORMULA_CHOICE:
        return evaluate_choice(e, node);
    default:
        return evaluate_call(e, node);
    }
}

grd_value grd_formula_evaluate(const struct grd_formula *formula, const struct grd_backward *b)
{
    const struct evaluation e = {formula, b};
    const grd_value value = evaluate(&e, formula->root);
    return value.kind == GRD_KIND_TENSORS ? value : to_tensor(value);
}
