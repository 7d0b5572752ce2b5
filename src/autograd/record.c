/* The boxed kernel of the AUTOGRAD dispatch key, which records the calls of all operators.
 *
 * The kernel runs the operator for the keys below AUTOGRAD. If an argument requires a gradient, the results get a node (op_node.c) as their
 * grad_fn.
 * Invariant: before an operator writes in place, the kernel has done everything that can fail. After the write it only sets pointers. */
#include "autograd/derivative.h"
#include "autograd/inplace.h"
#include "autograd/node.h"
#include "autograd/op_node.h"
#include "autograd/variable.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/tensor.h"
#include "gen/uses/autograd/record.h"

/* ---- Arguments that require a gradient ------------------------------------------------------------------------------------------- */
/* True if the value is a tensor that requires a gradient, or a list that contains such a tensor. */
static bool any_needs_grad(const grd_value *value)
{
    if (value->kind == GRD_KIND_TENSOR)
        return value->v.tensor != NULL && grd_needs_grad(value->v.tensor);
    if (value->kind == GRD_KIND_TENSORS)
        for (int64_t i = 0; i < value->v.tensors.n; i++)
            if (grd_needs_grad(value->v.tensors.data[i]))
                return true;
    return false;
}

/* Returns a bit set: bit i is set if differentiable argument i requires a gradient. */
static inline uint64_t find_needs(const struct grd_derivative *d, const grd_value *args)
{
    uint64_t needs = 0;
    for (int i = 0; d->lists && i < d->nargs; i++)
        needs |= (uint64_t)any_needs_grad(&args[d->args[i]]) << i;
    for (int i = 0; !d->lists && i < d->nargs; i++) {
        const grd_tensor *t = args[d->args[i]].v.tensor;
        needs |= (uint64_t)(t != NULL && grd_needs_grad(t)) << i;
    }
    return needs;
}

/* True if every argument that requires a gradient has a gradient formula. Argument 0 needs no formula if it is `out`, which the call overwrites.
 * Otherwise false, with NotImplementedError. */
static bool check_others(const grd_op *op, const grd_tensor *out, const grd_value *args)
{
    for (unsigned others = op->derivative->others; others != 0; others &= others - 1) {
        int i = __builtin_ctz(others);
        if (any_needs_grad(&args[i]) && (i != 0 || args[0].v.tensor != out))
            return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented", op->args[i].name);
    }
    return true;
}

/* ---- Calls that return a result ------------------------------------------------------------------------------------------------------ */
/* Runs the operator with AUTOGRAD removed from `keys`. The operators that it calls are not recorded either. */
static inline void run_below(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    uint32_t exclude = grd_thread.exclude;
    grd_thread.exclude = exclude | GRD_AUTOGRAD_BIT;
    grd_dispatch_boxed(op, keys & ~(grd_keyset)GRD_AUTOGRAD_BIT, out, args, ret_results);
    grd_thread.exclude = exclude;
}

/* True if `t` is one of the arguments. An argument that the operator returns as its result keeps its own history. */
static inline bool is_argument(const struct grd_op_call *call, const grd_tensor *t)
{
    const struct grd_derivative *d = call->derivative;
    for (int i = 0; i < d->nargs; i++)
        if (call->args[d->args[i]].v.tensor == t)
            return true;
    for (unsigned others = d->others; others != 0; others &= others - 1)
        if (call->args[__builtin_ctz(others)].v.tensor == t)
            return true;
    return false;
}

/* True if the value is a tensor with the storage of `t`, or a list that contains such a tensor. */
static bool shares_storage(const grd_value *value, const grd_tensor *t)
{
    if (value->kind == GRD_KIND_TENSOR)
        return value->v.tensor != NULL && value->v.tensor->storage == t->storage;
    for (int64_t i = 0; value->kind == GRD_KIND_TENSORS && i < value->v.tensors.n; i++)
        if (value->v.tensors.data[i]->storage == t->storage)
            return true;
    return false;
}

/* Returns result i of the call, which is a view. If the base is a temporary that a composite operator made, first replaces the result by a tensor
 * without base, because the temporary gets no grad_fn. */
static __attribute__((noinline)) grd_tensor *own_result(const struct grd_op_call *call, int64_t i)
{
    grd_tensor *result = call->results[i];
    for (int k = 0; k < call->op->nargs; k++)
        if (shares_storage(&call->args[k], result))
            return result;
    return call->op->composite ? (call->results[i] = grd_new_detached(result)) : result;
}

/* Makes result i of a call an output of the node *node, if the result carries a gradient. If *node is NULL, first creates the node; the result takes
 * the first reference to the node. May leave an error pending. */
GRD_INLINE void record_result(const struct grd_op_call *call, struct grd_node **node, int64_t i)
{
    grd_tensor *result = call->results[i];
    if (!grd_dtype_is_inexact(result->dtype) || is_argument(call, result))
        return;
    if (GRD_UNLIKELY(result->base != NULL) && grd_is_failed(result = own_result(call, i)))
        return;
    if (*node != NULL)
        grd_node_keep(*node);
    else if ((*node = grd_op_node_new(call)) == NULL)
        return;
    grd_give_history(result, *node, (uint32_t)i);
}

/* Creates one node for a call with several results or a list of results. Every result that can have a gradient becomes an output of this node. May
 * leave an error pending. */
static __attribute__((noinline)) void record_several(struct grd_op_call *call, grd_value *ret_results)
{
    const grd_op *op = call->op;
    const unsigned carrying = call->derivative->results;
    grd_tensor *results[GRD_MAX_RESULTS];
    struct grd_node *node = NULL;
    call->results = op->returns_list ? (grd_tensor **)(uintptr_t)ret_results[0].v.tensors.data : results;
    call->nresults = op->returns_list ? ret_results[0].v.tensors.n : op->nresults;
    for (int i = 0; i < op->nresults && !op->returns_list; i++)
        results[i] = ret_results[i].v.tensor;
    for (int64_t i = 0; i < call->nresults && !grd_pending(); i++)
        if (carrying >> (op->returns_list ? 0 : i) & 1)
            record_result(call, &node, i);
    for (int i = 0; i < op->nresults && !op->returns_list; i++)
        ret_results[i].v.tensor = results[i];
}

static inline void record_results(const grd_op *op, const grd_value *args, uint64_t needs, grd_value *ret_results)
{
    struct grd_op_call call = {op, op->derivative, args, &ret_results[0].v.tensor, 1, needs, NULL};
    struct grd_node *node = NULL;
    if (GRD_LIKELY(op->nresults == 1 && !op->returns_list))
        record_result(&call, &node, 0);
    else
        record_several(&call, ret_results);
}

/* ---- Calls that write -------------------------------------------------------------------------------------------------------------------- */
/* True if the backward pass may need the old value of the tensor that an in-place call overwrites. */
static bool reads_self(const struct grd_op_call *call)
{
    for (int i = 0; i < call->derivative->nsaves; i++) {
        const struct grd_save *save = &call->derivative->saves[i];
        if (save->how == GRD_SAVE_TENSOR && !save->result && (save->used_by & call->needs) != 0 &&
            call->args[save->index].v.tensor == call->results[0])
            return true;
    }
    return false;
}

/* The backward function of an in-place call of an operator without a derivative. Computes no gradient, because the new value does not depend on a
 * differentiable argument. */
static void no_gradient(const struct grd_backward *b)
{
    (void)b;
}

static const struct grd_derivative constant = {.node_name = "NotDifferentiableBackward0", .backward = no_gradient};

/* Runs an in-place operator that overwrites `self`, and gives `self` its new grad_fn. Bit i of `needs`: differentiable argument i requires a
 * gradient. May leave an error pending. */
static __attribute__((noinline)) void record_inplace(const grd_op *op, grd_keyset keys, grd_tensor *self, const grd_value *args,
                                                     uint64_t needs, grd_value *ret_results)
{
    if ((needs != 0 || grd_needs_grad(self)) && !grd_check_inplace(self))
        return;
    if ((needs == 0 && !grd_needs_grad(self)) || !grd_dtype_is_inexact(self->dtype)) {
        run_below(op, keys, self, args, ret_results);
        return;
    }
    /* the call makes `self` another view of its base; view_refresh.c updates the grad_fn of `self` when the grad_fn is read next */
    if (op->is_view && self->base != NULL) {
        run_below(op, keys, self, args, ret_results);
        return;
    }
    const struct grd_derivative *d = op->derivative != NULL ? op->derivative : &constant;
    grd_value written;
    grd_set_tensor(&written, self);
    if (op->is_view) /* the node must describe the sizes that `self` has after the call, so call the operator out of place first */
        run_below(op, keys, NULL, args, &written);
    struct grd_op_call call = {op, d, args, &written.v.tensor, 1, needs, NULL};
    if (reads_self(&call))
        call.self_copy = grd_clone(self);
    struct grd_node *node = grd_pending() ? NULL : grd_op_node_new(&call);
    if (node == NULL)
        return;
    if (d->inplace_name != NULL)
        node->name = d->inplace_name;
    bool self_edge = d->nargs > 0 && d->args[0] == 0;
    struct grd_rebase rebase;
    if (grd_rebase_prepare(&rebase, self, grd_object_keep(node), 0, self_edge)) {
        run_below(op, keys, self, args, ret_results);
        if (!grd_pending()) {
            grd_op_node_written(node, self);
            grd_rebase_commit(&rebase, self);
        } else {
            grd_rebase_abandon(&rebase);
        }
    }
    grd_node_drop(node);
}

void grd_autograd_record(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    uint64_t needs = 0;
    if (op->derivative != NULL) {
        needs = find_needs(op->derivative, args);
        if (op->derivative->others != 0 && !check_others(op, out, args))
            return;
    }
    if (GRD_UNLIKELY(out != NULL)) {
        if (op->nargs > 0 && args[0].kind == GRD_KIND_TENSOR && args[0].v.tensor == out)
            record_inplace(op, keys, out, args, needs, ret_results);
        else if (needs == 0 && !grd_needs_grad(out))
            run_below(op, keys, out, args, ret_results);
        else
            grd_raise(GRD_ERROR_RUNTIME,
                      "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                      "requires grad.");
        return;
    }
    run_below(op, keys, NULL, args, ret_results);
    if (needs != 0 && !grd_pending())
        record_results(op, args, needs, ret_results);
}
