/* Computes the gradients of an operator that is specified as a composite of other operators. Usually the operator's fused kernels
 * (grd_derivative.fast) compute its gradients. They cannot be used, for example, if the gradients have to be differentiated again. In this
 * case the composite runs again on the saved arguments, autograd records its operators, and the recorded graph is differentiated. */
#include "gen/uses/autograd/composite.h"

#include "autograd/derivative.h"
#include "core/tensor.h"
#include "gradus/autograd.h"

/* The second run of a composite operator, which backward records and differentiates. Each argument that needs a gradient is replaced by a new
 * view of it, and the results are differentiated with respect to these views. */
struct call {
    const grd_op *op;
    grd_value args[GRD_MAX_ARGS], results[GRD_MAX_RESULTS];
    grd_tensor *inputs[GRD_MAX_ARGS]; /* the views that replace arguments */
    int places[GRD_MAX_ARGS];         /* places[i]: index of the differentiable argument that inputs[i] replaces */
    int n;                            /* number of views, i.e. of used elements of `inputs` and `places` */
};

/* Returns a view of `t` that requires a gradient. With create_graph (`recorded`) autograd records the view, so that gradients flow on to `t`;
 * otherwise the view is a leaf. */
static grd_tensor *view_of(grd_tensor *t, bool recorded)
{
    grd_tensor *view = recorded ? grd_view_as(t, t) : grd_detach(t);
    return grd_pending() || recorded ? view : grd_set_requires_grad(view, true);
}

/* Runs the operator's composite on the saved arguments, so that autograd records it. `recorded`: the backward pass is itself recorded
 * (create_graph). False, with the error raised, on failure. */
static bool run_specification(struct call *call, const struct grd_backward *b, bool recorded)
{
    const struct grd_derivative *d = b->derivative;
    const int nargs = grd_op_arg_count(call->op);
    for (int i = 0; i < nargs; i++)
        call->args[i] = b->saved[i];
    for (int i = 0; i < d->nargs && !grd_pending(); i++) {
        grd_value *value = &call->args[d->args[i]];
        if ((b->needs >> i & 1) == 0 || value->v.tensor == NULL)
            continue;
        value->v.tensor = call->inputs[call->n] = view_of(value->v.tensor, recorded);
        call->places[call->n++] = i;
    }
    return !grd_pending() && grd_call(call->op, GRD_FUNCTIONAL, call->args, nargs, NULL, call->results);
}

/* Differentiates the results of `call`, which run_specification has run and recorded, with respect to call->inputs. Leaves out results that do not
 * require a gradient. Writes the gradients to b->ret_grads. May leave an error pending. */
static void differentiate(const struct call *call, const struct grd_backward *b, bool recorded)
{
    grd_tensor *outputs[GRD_MAX_RESULTS], *grads[GRD_MAX_RESULTS], *made[GRD_MAX_ARGS] = {NULL};
    int n = 0;
    for (int i = 0; i < grd_op_result_count(call->op); i++) {
        if (!grd_requires_grad(call->results[i].v.tensor))
            continue;
        outputs[n] = call->results[i].v.tensor;
        grads[n++] = b->grads[i];
    }
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(grads, n), .create_graph = recorded, .allow_unused = true};
    if (n == 0 || call->n == 0 || !grd_grad(grd_tensors_from(outputs, n), grd_tensors_from(call->inputs, call->n), &options, made))
        return;
    for (int i = 0; i < call->n; i++)
        b->ret_grads[b->first_edge[call->places[i]]] = made[i];
}

void grd_derivative_of_parts(const struct grd_backward *b)
{
    struct call call = {.op = b->derivative->context};
    const bool recorded = grd_set_grad_enabled(true);
    if (run_specification(&call, b, recorded))
        differentiate(&call, b, recorded);
    grd_set_grad_enabled(recorded);
}
