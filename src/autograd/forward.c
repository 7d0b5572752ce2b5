/* Implements forward-mode differentiation as the boxed kernel of the dispatch key FORWARD, which serves all operators. The kernel runs the
 * operator for the keys below FORWARD, and computes the tangents of the results by the operator's rule (enum grd_forward). The functions that
 * read and set tangents are in dual.c.
 * Invariant: an in-place operator has run without error before the tangent of its result is written. */
#include "autograd/derivative.h"
#include "autograd/dual.h"
#include "autograd/forward.h"
#include "autograd/gradient.h"
#include "autograd/op_node.h"
#include "autograd/tangent.h"
#include "autograd/variable.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/forward.h"

#include <string.h>

/* One call of an operator for which tangents may have to be computed. */
struct call {
    const grd_op *op;
    const struct grd_derivative *derivative; /* NULL if the operator is not differentiable; its results then have no tangents */
    grd_tensor *out;                         /* the tensor that the operator overwrites; NULL if it returns new results */
    /* the arguments; if the forward rule reads the old value of `out`, a copy of this value takes the place of `out` */
    grd_value args[GRD_MAX_ARGS];
    grd_value tangents[GRD_MAX_ARGS]; /* the tangents of tensors and of lists of tensors; NULL for a tensor without tangent */
    unsigned dual;                    /* bit i: argument i has a tangent */
    struct grd_dual_level *level;     /* owned; the dual level of the tangents, NULL if no argument has a tangent */
    const grd_value *results;         /* the results that the operator returned */
};

/* ---- Tangents of the arguments ------------------------------------------------------------------------------------------------------ */
/* Returns the tangent of `t`, or NULL if `t` has none. `t` is argument `arg` or an element of this argument. Updates call->dual and call->level. */
static grd_tensor *find_tangent(struct call *call, int arg, const grd_tensor *t)
{
    if (t == NULL || (grd_keys_of(t) & GRD_FORWARD_BIT) == 0)
        return NULL;
    grd_tensor *tangent = grd_tangent_find(t);
    if (tangent == NULL)
        return NULL;
    call->dual |= 1u << arg;
    if (call->level == NULL)
        call->level = grd_tangent_level(t);
    return tangent;
}

/* Finds the tangents of argument `arg`, a list of tensors, and stores them in call->tangents. */
static void find_list(struct call *call, int arg, grd_tensors list)
{
    grd_tensor **tangents = grd_pool_alloc((size_t)list.n * sizeof *tangents);
    for (int64_t k = 0; tangents != NULL && k < list.n; k++)
        tangents[k] = find_tangent(call, arg, list.data[k]);
    grd_set_tensors(&call->tangents[arg], (grd_tensors){list.n, tangents});
}

static bool find_tangents(struct call *call)
{
    for (int i = 0; i < call->op->nargs && !grd_pending(); i++) {
        const grd_value *value = &call->args[i];
        if (value->kind == GRD_KIND_TENSORS)
            find_list(call, i, value->v.tensors);
        else
            grd_set_tensor(&call->tangents[i], value->kind == GRD_KIND_TENSOR ? find_tangent(call, i, value->v.tensor) : NULL);
    }
    return !grd_pending();
}

/* True if no argument has a tangent or the operator is not differentiable. Also true if the operator has a forward rule, and a gradient formula for
 * each argument with a tangent. An overwritten argument 0 needs no formula. False, with NotImplementedError, otherwise. */
static bool check_rule(const struct call *call)
{
    const struct grd_derivative *d = call->derivative;
    if (call->dual == 0 || d == NULL ||
        (d->forward_rule != GRD_FORWARD_ABSENT && (call->dual & d->others & ~(call->out != NULL ? 1u : 0u)) == 0))
        return true;
    return grd_raise(GRD_ERROR_NOT_IMPLEMENTED,
                     "Trying to use forward AD with %s that does not support it because it has not been implemented yet.", call->op->name);
}

/* ---- Shapes of tangents ---------------------------------------------------------------------------------------------------------- */
/* Adds `t` to *sum; sets *sum to `t` if *sum is NULL. */
static void add(grd_tensor **sum, grd_tensor *t)
{
    *sum = *sum != NULL ? grd_add(*sum, t) : t;
}

/* Returns the tangent `t` converted to the dtype of `result` and expanded to the sizes of `result`. If `t` is complex and `result` is real, drops the
 * imaginary part. */
static grd_tensor *fitted(const grd_tensor *result, grd_tensor *t)
{
    if (grd_dtype_is_complex((grd_dtype)t->dtype) && !grd_dtype_is_complex((grd_dtype)result->dtype))
        t = grd_real(t);
    if (t->dtype != result->dtype)
        t = grd_to(t, .dtype = (grd_dtype)result->dtype);
    return grd_pending() || grd_dims_equal(grd_sizes(t), grd_sizes(result)) ? t : grd_expand(t, grd_sizes(result));
}

/* ---- Rules that use the formula of the gradient ---------------------------------------------------------------------------------------- */
static const grd_tensor *result_of(const struct call *call, int64_t i)
{
    return call->op->returns_list ? call->results[0].v.tensors.data[i] : call->results[i].v.tensor;
}

/* Returns the value that `save` describes, as a node would have saved it for the gradient formulas. */
static grd_value value_of(const struct call *call, const struct grd_save *save)
{
    const grd_value *value = save->result ? &call->results[save->index] : &call->args[save->index];
    const grd_tensor *t = value->v.tensor;
    return grd_save_is_fact(save->how) ? grd_fact_of((enum grd_save_how)save->how, t) : *value;
}

/* Returns the gradient of differentiable argument number `position`, which is a single tensor. Evaluates the gradient formula; `grads` are the
 * gradients of the results. NULL if the gradient is undefined. */
static grd_tensor *gradient_of(const struct call *call, int position, grd_tensor *const *grads)
{
    const struct grd_derivative *d = call->derivative;
    grd_value saved[GRD_MAX_SAVES];
    grd_tensor *found[GRD_MAX_ARGS] = {NULL};
    for (int i = 0; i < d->nsaves; i++)
        saved[i] = d->saves[i].used_by >> position & 1 ? value_of(call, &d->saves[i]) : (grd_value){.kind = GRD_KIND_NONE};
    d->backward(&(struct grd_backward){.derivative = d,
                                       .grads = grads,
                                       .ngrads = call->op->nresults,
                                       .saved = saved,
                                       .needs = (uint64_t)1 << position,
                                       .ret_grads = found,
                                       .first_edge = grd_identity_edges});
    return found[position];
}

/* Returns the gradient of result.sum() with respect to differentiable argument number `position`, for the result with the index `result`. */
static grd_tensor *gradient_of_sum(const struct call *call, int position, int result)
{
    grd_tensor *grads[GRD_MAX_RESULTS] = {NULL};
    for (int i = 0; i < call->op->nresults; i++) {
        grd_tensor *t = call->results[i].v.tensor;
        if (i == result)
            grads[i] = grd_ones_like(t);
        else if (call->derivative->materialize && grd_dtype_is_inexact(t->dtype))
            grads[i] = grd_zeros_like(t);
    }
    return grd_pending() ? grd_failed : gradient_of(call, position, grads);
}

/* Returns the tangent of the result of an operator with a symmetric Jacobian J, e.g. an elementwise operator. The tangent is J t, where t is
 * `tangent`. The gradient formula computes conj(J) u for a gradient u, so J t = conj(formula(conj(t))). If the argument is complex and the result
 * real, the operator is not holomorphic. In this case the tangent is the real part of conj(g) t, where g is the gradient of result.sum(). */
static grd_tensor *pointwise(const struct call *call, int position, grd_tensor *tangent)
{
    if (grd_dtype_is_complex((grd_dtype)tangent->dtype) && !grd_dtype_is_complex((grd_dtype)call->results[0].v.tensor->dtype)) {
        grd_tensor *grad = gradient_of_sum(call, position, 0);
        return grad != NULL ? grd_real(grd_mul(grd_conj_physical(grad), tangent)) : NULL;
    }
    grd_tensor *grad = grd_conj_physical(tangent);
    grad = gradient_of(call, position, &grad);
    return grad != NULL ? grd_conj_physical(grad) : NULL;
}

/* Returns the value of the argument with the name `name`, or NULL if the operator has no such argument. */
static const grd_value *argument(const struct call *call, const char *name)
{
    for (int i = 0; i < call->op->nargs; i++)
        if (strcmp(call->op->args[i].name, name) == 0)
            return &call->args[i];
    return NULL;
}

/* Returns the tangent of result number `result` of a reduction: tangent * conj(g), summed over the reduced dimensions, where g is the gradient of
 * result.sum(), and zeros if g is undefined. The operator's argument `dim` says which dimensions are reduced, and `keepdim` says whether they are kept
 * with size 1. */
static grd_tensor *along_lines(const struct call *call, int position, int result, grd_tensor *tangent)
{
    grd_tensor *grad = gradient_of_sum(call, position, result);
    if (grad == NULL)
        return grd_zeros_like(call->results[result].v.tensor);
    if (grd_pending())
        return grad;
    const grd_value *dim = argument(call, "dim"), *keepdim = argument(call, "keepdim");
    int64_t one = 0;
    grd_dims dims = {0};
    if (dim != NULL && dim->kind == GRD_KIND_DIMS) {
        dims = dim->v.dims;
    } else if (dim != NULL && !(dim->kind == GRD_KIND_SCALAR && dim->v.scalar.kind == GRD_SCALAR_NONE)) {
        one = dim->kind == GRD_KIND_INT ? dim->v.integer : grd_scalar_int64(dim->v.scalar);
        dims = grd_dims_from(&one, 1);
    }
    return grd_sum(grd_mul(grd_conj_physical(grad), tangent), .dim = dims, .keepdim = keepdim != NULL && keepdim->v.boolean);
}

/* Computes the tangents J v of all results from the tangent v of one argument, where J is the Jacobian. The gradient formula is a linear function of
 * the gradients u of the results, namely the adjoint of J. So J v is the gradient of <formula(u), v> with respect to u. This gradient does not depend
 * on u, and u = 0 is used. */
static void by_adjoint(const struct call *call, int position, grd_tensor *tangent, grd_tensor **ret_tangents)
{
    const struct grd_derivative *d = call->derivative;
    const grd_tensor *arg = call->args[d->args[position]].v.tensor;
    grd_tensor *grads[GRD_MAX_RESULTS] = {NULL}, *inputs[GRD_MAX_RESULTS], *found[GRD_MAX_RESULTS];
    const bool recording = grd_set_grad_enabled(true);
    int64_t n = 0;
    for (int i = 0; i < call->op->nresults; i++) {
        grd_tensor *t = call->results[i].v.tensor;
        if (d->results >> i & 1 && grd_dtype_is_inexact(t->dtype))
            inputs[n++] = grads[i] = grd_set_requires_grad(grd_zeros_like(t), true);
    }
    grd_tensor *grad = grd_pending() ? NULL : gradient_of(call, position, grads);
    if (grad != NULL && grd_needs_grad(grad)) {
        const struct grd_output output = {.sizes = arg->sizes, .traits = grd_output_traits(arg)};
        grad = grd_fit_gradient(&output, grad, d->node_name, 0);
        const grd_backward_options options = {.grad_outputs = {1, &tangent}, .create_graph = recording, .allow_unused = true};
        if (!grd_pending() && grd_grad((grd_tensors){1, &grad}, (grd_tensors){n, inputs}, &options, found))
            for (int i = 0, k = 0; i < call->op->nresults; i++)
                ret_tangents[i] = grads[i] != NULL ? found[k++] : NULL;
    }
    grd_set_grad_enabled(recording);
}

/* ---- Rules that call the operator ------------------------------------------------------------------------------------------------------ */
static bool is_differentiable(const struct call *call, int arg)
{
    for (int i = 0; call->derivative != NULL && i < call->derivative->nargs; i++)
        if (call->derivative->args[i] == arg)
            return true;
    return call->derivative == NULL;
}

/* If *tangent is NULL, sets it to zeros with the shape and dtype of `t`. */
static void fill_tangent(grd_tensor **tangent, grd_tensor *t)
{
    if (*tangent == NULL && t != NULL)
        *tangent = grd_zeros_like(t);
}

/* Calls the operator with each differentiable argument replaced by its tangent, or by zeros if it has none. If `target` is not NULL, the call is
 * in place and overwrites `target`, which replaces argument 0. */
static void run_linear(const struct call *call, grd_tensor *target, grd_value *ret_results)
{
    grd_value values[GRD_MAX_ARGS];
    const int n = call->op->nargs;
    for (int i = 0; i < n && !grd_pending(); i++) {
        values[i] = call->args[i];
        if (!is_differentiable(call, i))
            continue;
        if (values[i].kind == GRD_KIND_TENSOR) {
            grd_set_tensor(&values[i], call->tangents[i].v.tensor);
            fill_tangent(&values[i].v.tensor, call->args[i].v.tensor);
        } else if (values[i].kind == GRD_KIND_TENSORS) {
            values[i] = call->tangents[i];
            for (int64_t k = 0; k < values[i].v.tensors.n; k++)
                fill_tangent((grd_tensor **)(uintptr_t)&values[i].v.tensors.data[k], call->args[i].v.tensors.data[k]);
        }
    }
    if (target != NULL)
        grd_set_tensor(&values[0], target);
    if (!grd_pending())
        grd_call(call->op, target != NULL ? GRD_INPLACE : GRD_FUNCTIONAL, values, n, NULL, ret_results);
}

/* Calls the operator with argument `arg` replaced by its tangent. */
static void run_with(const struct call *call, int arg, grd_value *ret_results)
{
    grd_value values[GRD_MAX_ARGS];
    for (int i = 0; i < call->op->nargs; i++)
        values[i] = call->args[i];
    grd_set_tensor(&values[arg], call->tangents[arg].v.tensor);
    grd_call(call->op, GRD_FUNCTIONAL, values, call->op->nargs, NULL, ret_results);
}

/* ---- The tangents of a call -------------------------------------------------------------------------------------------------------- */
/* Computes the tangents that the results get from the tangent of one argument: differentiable argument number `position`, which is a single tensor.
 * Adds the tangent of result i to sums[i]. */
static void add_argument(const struct call *call, int position, grd_tensor **sums)
{
    const struct grd_derivative *d = call->derivative;
    const int arg = d->args[position], n = call->op->nresults;
    grd_tensor *tangent = call->tangents[arg].v.tensor, *found[GRD_MAX_RESULTS] = {NULL};
    grd_value results[GRD_MAX_RESULTS];
    switch (d->forward_rule) {
    case GRD_FORWARD_POINTWISE:
        found[0] = pointwise(call, position, tangent);
        break;
    case GRD_FORWARD_LINES:
        for (int i = 0; i < n; i++)
            found[i] = d->results >> i & 1 ? along_lines(call, position, i, tangent) : NULL;
        break;
    case GRD_FORWARD_ADJOINT:
        by_adjoint(call, position, tangent, found);
        break;
    case GRD_FORWARD_MULTILINEAR:
        run_with(call, arg, results);
        for (int i = 0; i < n && !grd_pending(); i++)
            found[i] = results[i].v.tensor;
        break;
    default: /* the rule GRD_FORWARD_FORMULA */
        d->forward(&(struct grd_forward_call){call->args, call->results, arg, tangent, found});
    }
    for (int i = 0; i < n && !grd_pending(); i++)
        if (found[i] != NULL)
            add(&sums[i], found[i]);
}

/* Returns a list with the tangents of the n results; NULL for a result without tangent. The list lives until the innermost grd_scope closes. It
 * is empty, with the error raised, if there is no memory. */
static grd_tensors tangents_of(const struct call *call, int64_t n)
{
    const struct grd_derivative *d = call->derivative;
    const uint8_t rule = d != NULL ? d->forward_rule : GRD_FORWARD_ZERO;
    grd_tensor **sums = grd_pool_alloc((size_t)n * sizeof *sums);
    grd_value results[GRD_MAX_RESULTS];
    if (sums == NULL)
        return (grd_tensors){0};
    memset(sums, 0, (size_t)n * sizeof *sums);
    if (rule == GRD_FORWARD_GIVEN) {
        sums[0] = call->args[1].v.tensor;
    } else if (rule == GRD_FORWARD_LINEAR) {
        run_linear(call, NULL, results);
        for (int64_t i = 0; i < n && !grd_pending(); i++)
            sums[i] = call->op->returns_list ? results[0].v.tensors.data[i] : results[i].v.tensor;
    } else if (rule != GRD_FORWARD_ZERO) {
        for (int i = 0; i < d->nargs && !grd_pending(); i++)
            if (call->dual >> d->args[i] & 1)
                add_argument(call, i, sums);
    }
    return (grd_tensors){n, sums};
}

/* ---- The kernel -------------------------------------------------------------------------------------------------------------------- */
/* Runs the operator with FORWARD removed from `keys`, i.e. without computing tangents. */
static void run_below(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    grd_dispatch_boxed(op, keys & ~(grd_keyset)GRD_FORWARD_BIT, out, args, ret_results);
}

/* True if `t` is an argument of the call. An argument that the operator returns unchanged keeps its own tangent. */
static bool is_argument(const struct call *call, const grd_tensor *t)
{
    for (int i = 0; i < call->op->nargs; i++)
        if (call->args[i].kind == GRD_KIND_TENSOR && call->args[i].v.tensor == t)
            return true;
    return false;
}

/* Sets the tangents of the results of a call that overwrites no tensor. */
static void set_results(const struct call *call)
{
    const int64_t n = call->op->returns_list ? call->results[0].v.tensors.n : call->op->nresults;
    const grd_tensors tangents = tangents_of(call, n);
    for (int64_t i = 0; i < n && !grd_pending(); i++) {
        grd_tensor *result = (grd_tensor *)(uintptr_t)result_of(call, i);
        const bool carries = call->derivative == NULL || (call->derivative->results >> (call->op->returns_list ? 0 : i) & 1);
        if (tangents.data[i] == NULL || !carries || !grd_dtype_is_inexact(result->dtype) || is_argument(call, result))
            continue;
        grd_tensor *tangent = fitted(result, tangents.data[i]);
        if (!grd_pending() && grd_tangent_set(result, tangent, call->level))
            grd_tangent_share_saved(result, false);
    }
}

/* True if the forward rule reads the old value of the tensor that the call overwrites. */
static bool reads_old(const struct call *call)
{
    const struct grd_derivative *d = call->derivative;
    bool reads = d != NULL && (d->forward_rule == GRD_FORWARD_MULTILINEAR || d->forward_rule == GRD_FORWARD_FORMULA);
    for (int i = 0; d != NULL && i < d->nsaves; i++)
        reads |= d->saves[i].how == GRD_SAVE_TENSOR && !d->saves[i].result && call->args[d->saves[i].index].v.tensor == call->out;
    return reads;
}

/* Updates the tangent of call->out, which an in-place operator has overwritten. call->results holds the new value. call->args holds the old value
 * if the forward rule reads it. */
static void write_tangent(const struct call *call)
{
    const struct grd_derivative *d = call->derivative;
    grd_tensor *target = grd_dtype_is_inexact(call->out->dtype) ? grd_tangent_written(call->out, call->level) : NULL;
    grd_value result;
    if (target == NULL)
        return;
    if (d != NULL && d->forward_rule == GRD_FORWARD_LINEAR) {
        run_linear(call, target, &result);
    } else {
        const grd_tensors tangents = tangents_of(call, 1);
        if (!grd_pending() && tangents.data[0] != NULL)
            grd_copy_(target, fitted(call->out, tangents.data[0]));
        else if (!grd_pending())
            grd_zero_(target);
    }
    if (!grd_pending())
        grd_tangent_share_saved(call->out, true);
}

/* True if an in-place view operator such as transpose_ succeeds both for the tensor and for its tangent. Tries it out of place on both,
 * because the shapes of tensor and tangent would differ if the operator changed the tensor in place and then failed for the tangent. */
static bool can_turn(const struct call *call, grd_keyset keys, const grd_value *args)
{
    grd_value view;
    run_below(call->op, keys, NULL, args, &view);
    if (!grd_pending() && call->derivative != NULL && call->derivative->forward_rule == GRD_FORWARD_LINEAR)
        run_linear(call, NULL, &view);
    return !grd_pending();
}

/* Runs an in-place operator and updates the tangent of the tensor that it overwrites. */
static void record_inplace(struct call *call, grd_keyset keys, const grd_value *args, grd_value *ret_results)
{
    if (call->op->is_view && !can_turn(call, keys, args))
        return;
    if (reads_old(call)) {
        grd_tensor *old = grd_clone(call->out);
        for (int i = 0; i < call->op->nargs; i++)
            if (args[i].kind == GRD_KIND_TENSOR && args[i].v.tensor == call->out)
                grd_set_tensor(&call->args[i], old);
    }
    if (!grd_pending())
        run_below(call->op, keys, call->out, args, ret_results);
    if (!grd_pending())
        write_tangent(call);
}

/* Runs the operator. If an argument has a tangent, also sets the tangents of the results. */
static void record(struct call *call, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    const uint8_t rule = call->derivative != NULL ? call->derivative->forward_rule : GRD_FORWARD_ABSENT;
    if (rule == GRD_FORWARD_GIVEN && call->level == NULL)
        call->level = grd_dual_level_current();
    if (call->level == NULL) {
        run_below(call->op, keys, out, args, ret_results);
    } else if (out != NULL && (call->op->nargs == 0 || args[0].kind != GRD_KIND_TENSOR || args[0].v.tensor != out)) {
        grd_raise(GRD_ERROR_RUNTIME,
                  "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    } else if (out != NULL) {
        record_inplace(call, keys, args, ret_results);
    } else {
        run_below(call->op, keys, NULL, args, ret_results);
        if (rule == GRD_FORWARD_TAKEN)
            ret_results[0] = call->tangents[0];
        else if (!grd_pending())
            set_results(call);
    }
}

void grd_forward_record(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    struct call call = {.op = op, .derivative = op->derivative, .out = out, .results = ret_results};
    for (int i = 0; i < op->nargs; i++)
        call.args[i] = args[i];
    const uint32_t exclude = grd_thread.exclude;
    grd_thread.exclude = exclude | GRD_FORWARD_BIT;
    if (find_tangents(&call) && check_rule(&call))
        record(&call, keys, out, args, ret_results);
    grd_thread.exclude = exclude;
    grd_object_drop(call.level);
}
