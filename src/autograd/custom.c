/* Implements custom functions, i.e. functions of the user that have their own backward (autograd.Function).
 *
 * A grd_custom_call is the node of one call. It is allocated, with its edges, before forward runs, so that forward can save tensors in the node.
 * The outputs of the node are set after forward, because only then is it known which of the saved tensors are outputs.
 * Invariant: after forward, a saved output is an alias without grad_fn. Otherwise the output and the node would own each other. */
#include "autograd/anomaly.h"
#include "autograd/dual.h"
#include "autograd/edge.h"
#include "autograd/hook_list.h"
#include "autograd/hooks.h"
#include "autograd/inplace.h"
#include "autograd/saved.h"
#include "autograd/spin.h"
#include "autograd/variable.h"
#include "base/stack.h"
#include "core/dtype.h"
#include "core/given.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/autograd/custom.h"

#include <stdio.h>
#include <string.h>

/* One call of a custom function. The struct begins with the autograd node of the call. */
struct grd_custom_call {
    struct grd_node node;
    grd_custom_function function;
    char *name;                /* name of the node, e.g. "CustomBackward"; stored in the same memory block as the node */
    bool *needs;               /* needs[i]: input i requires a gradient */
    struct grd_saved *saved;   /* the tensors that the user's forward function saved for backward */
    grd_tensor *const *inputs; /* the inputs of the call; the array belongs to the caller and is valid while forward runs */
    /* dirty: tensors that the user's forward function marked as written in place; constant: outputs that it marked as not differentiable; all
     * borrowed */
    grd_tensor **dirty, **constant;
    int nsaved, ndirty, nconstant;
    int64_t saved_capacity, constant_capacity;
    size_t outputs_size;        /* size in bytes of the memory block that holds node.outputs and the shapes of the outputs */
    uint32_t exclude;           /* the dispatch keys that the thread excluded before the call; restored when forward has ended */
    bool forward;               /* true until the user's forward function has ended and saved outputs have been replaced by aliases */
    bool materialize, released; /* materialize: backward gets zeros for undefined gradients; released: the saved tensors were dropped */
};

enum { NAME_CHARS = 96 };

/* ---- The node ---------------------------------------------------------------------------------------------------------------- */
/* Replaces undefined gradients by zeros of the shape of their outputs; `grads` owns the zeros. False, with the error raised, on failure. */
static bool fill_undefined(const struct grd_node *node, grd_tensor **grads)
{
    for (uint32_t i = 0; i < node->noutputs && !grd_pending(); i++) {
        const struct grd_output *output = &node->outputs[i];
        if (grads[i] != NULL || output->sizes == NULL)
            continue;
        const grd_device device = {output->device, output->device_index};
        grd_tensor *zeros = grd_zeros(grd_dims_from(output->sizes, output->ndim), .dtype = (grd_dtype)output->dtype, .device = device);
        grads[i] = grd_pending() ? NULL : grd_object_keep(zeros);
    }
    return !grd_pending();
}

static void custom_run(struct grd_node *node, const struct grd_run *run)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    grd_spin_lock(&node->lock);
    /* After a run without retain_graph the saved tensors are dropped. A second run then fails only if `backward` reads a saved tensor. */
    node->freed |= !run->retain;
    grd_spin_unlock(&node->lock);
    if (call->materialize && !fill_undefined(node, run->grads))
        return;
    if (call->function.backward != NULL)
        call->function.backward(call, run->grads, run->ret_grads);
    else
        grd_raise(GRD_ERROR_RUNTIME, "the function has no backward");
}

static void custom_release(struct grd_node *node)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    grd_spin_lock(&node->lock);
    const bool is_first = !call->released;
    call->released = true;
    grd_spin_unlock(&node->lock);
    for (int i = 0; i < call->nsaved && is_first; i++)
        grd_saved_drop(&call->saved[i]);
}

static void custom_finish(struct grd_node *node)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    grd_free(call->saved, (size_t)call->saved_capacity * sizeof *call->saved);
    grd_free(call->constant, (size_t)call->constant_capacity * sizeof *call->constant);
    grd_free(node->outputs, call->outputs_size);
    grd_release_context(call->function.release, call->function.context);
}

static bool custom_find_outdated(struct grd_node *node, const struct grd_storage *written, struct grd_outdated *outdated)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    return call->forward || grd_saved_find_outdated(node, call->saved, call->nsaved, written, outdated);
}

static bool custom_take_over(struct grd_node *node)
{
    const struct grd_custom_call *call = (const struct grd_custom_call *)node;
    if (call->function.take_over == NULL || !call->function.take_over(call->function.context))
        return false;
    atomic_store_explicit(&node->object.refs, 1, memory_order_relaxed);
    return true;
}

static int custom_visit(struct grd_node *node, grd_context_visitor *visit, void *arg)
{
    const struct grd_custom_call *call = (const struct grd_custom_call *)node;
    return visit(call->function.context, call->function.release, arg);
}

static const struct grd_node_class custom_class = {.run = custom_run,
                                                   .release = custom_release,
                                                   .finish = custom_finish,
                                                   .find_outdated = custom_find_outdated,
                                                   .take_over = custom_take_over,
                                                   .visit = custom_visit,
                                                   .is_custom = true};

grd_node *grd_custom_node(grd_custom_call *call)
{
    return grd_given_pointer(call, "grd_custom_node", "call") ? &call->node : NULL;
}

grd_custom_call *grd_node_custom_call(grd_node *node, void (*release)(void *context))
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    return node != NULL && node->class == &custom_class && call->function.release == release ? call : NULL;
}

/* ---- During forward and backward ------------------------------------------------------------------------------------------------- */
void grd_custom_save(grd_custom_call *call, grd_tensor *t)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_save", "call") || !grd_given_or_null(t, "grd_custom_save", "t"))
        return;
    if (!call->forward) {
        grd_raise(GRD_ERROR_RUNTIME, "tensors can only be saved during forward");
        return;
    }
    if (!grd_reserve(&call->saved, call->nsaved + 1, &call->saved_capacity, sizeof *call->saved))
        return;
    struct grd_saved *saved = &call->saved[call->nsaved++];
    call->node.keeps = true;
    if (t != NULL)
        grd_saved_set_tensor(saved, t, -1);
    else
        *saved = (struct grd_saved){.value = {.kind = GRD_KIND_TENSOR}, .output = -1};
}

/* Writes the tensor of `saved` to ret_tensor. The innermost grd_scope owns a reference to the tensor, because another thread may free the saved
 * values at any time. False, with the error raised, on failure. */
static bool take_saved(struct grd_custom_call *call, const struct grd_saved *saved, grd_tensor **ret_tensor)
{
    bool ok = true;
    grd_spin_lock(&call->node.lock);
    const bool released = call->released;
    grd_tensor *t = released ? NULL : saved->value.v.tensor;
    if (t != NULL)
        ok = grd_pool_push(grd_object_keep(t));
    grd_spin_unlock(&call->node.lock);
    *ret_tensor = t;
    return released ? grd_raise_freed() : ok;
}

grd_tensor *grd_custom_saved(grd_custom_call *call, int index)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_saved", "call"))
        return grd_failed;
    if (index < 0 || index >= call->nsaved)
        return grd_fail(GRD_ERROR_INDEX, "saved tensor %d does not exist: %d were saved", index, call->nsaved);
    const struct grd_saved *saved = &call->saved[index];
    grd_value value = {.kind = GRD_KIND_TENSOR};
    if (!take_saved(call, saved, &value.v.tensor))
        return grd_failed;
    return grd_saved_unpack(saved, &call->node, &value) ? value.v.tensor : grd_failed;
}

bool grd_custom_needs_grad(const grd_custom_call *call, int input)
{
    return grd_given_pointer(call, "grd_custom_needs_grad", "call") && input >= 0 && input < call->function.inputs && call->needs[input];
}

void *grd_custom_context(const grd_custom_call *call)
{
    return grd_given_pointer(call, "grd_custom_context", "call") ? call->function.context : NULL;
}

/* True if `t` is one of the n tensors in `list`. */
static bool is_among(const grd_tensor *t, grd_tensor *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == t)
            return true;
    return false;
}

void grd_custom_mark_dirty(grd_custom_call *call, grd_tensor *t)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_mark_dirty", "call") || !grd_given(t, "grd_custom_mark_dirty", "t") ||
        is_among(t, call->dirty, call->ndirty))
        return;
    if (!call->forward || call->ndirty == call->function.inputs)
        grd_raise(GRD_ERROR_RUNTIME, "only inputs can be marked dirty, and only during forward");
    else
        call->dirty[call->ndirty++] = t;
}

static bool refuse_constant(void)
{
    return grd_raise(GRD_ERROR_RUNTIME, "only outputs can be marked non-differentiable, and only during forward");
}

void grd_custom_mark_non_differentiable(grd_custom_call *call, grd_tensor *output)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_mark_non_differentiable", "call") ||
        !grd_given(output, "grd_custom_mark_non_differentiable", "output") || is_among(output, call->constant, call->nconstant))
        return;
    if (!call->forward)
        refuse_constant();
    else if (grd_reserve(&call->constant, call->nconstant + 1, &call->constant_capacity, sizeof *call->constant))
        call->constant[call->nconstant++] = output;
}

void grd_custom_materialize_grads(grd_custom_call *call, bool materialize)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_materialize_grads", "call"))
        return;
    if (!call->forward)
        grd_raise(GRD_ERROR_RUNTIME, "whether gradients are materialized can only be set during forward");
    else
        call->materialize = materialize;
}

/* ---- Before forward ------------------------------------------------------------------------------------------------------------------- */
/* Returns a new node for a call of `function`. Its edges do not lead to other nodes yet. On failure releases function->context and returns NULL,
 * with MemoryError. */
static struct grd_custom_call *new_call(const grd_custom_function *function, grd_tensor *const *inputs)
{
    const size_t n = (size_t)function->inputs;
    struct grd_custom_call *call = (struct grd_custom_call *)grd_node_new(&custom_class, NULL, sizeof *call, (uint32_t)n, 0,
                                                                          n * (sizeof *call->dirty + sizeof *call->needs) + NAME_CHARS);
    if (call == NULL) {
        grd_release_context(function->release, function->context);
        return NULL;
    }
    call->function = *function;
    call->inputs = inputs;
    call->dirty = grd_node_room(&call->node);
    call->name = (char *)(call->dirty + n);
    snprintf(call->name, NAME_CHARS, "%sBackward", function->name != NULL ? function->name : "Custom");
    call->node.name = call->name;
    call->node.outputs = NULL;
    call->needs = (bool *)(call->name + NAME_CHARS);
    call->saved = NULL;
    call->constant = NULL;
    call->nsaved = call->ndirty = call->nconstant = 0;
    call->saved_capacity = call->constant_capacity = 0;
    call->outputs_size = 0;
    call->exclude = grd_thread.exclude;
    call->forward = true;
    call->materialize = call->released = false;
    memset(call->node.edges, 0, n * sizeof *call->node.edges);
    return call;
}

/* Sets the edges of the node, one per input. An edge leads to no node if its input requires no gradient or `recording` is false. False, with the
 * error raised, on failure. */
static bool find_edges(struct grd_custom_call *call, bool recording)
{
    for (int i = 0; i < call->function.inputs; i++) {
        if (!grd_given_or_null(call->inputs[i], "grd_custom_begin", "inputs"))
            return false;
        call->needs[i] = recording && call->inputs[i] != NULL && grd_needs_grad(call->inputs[i]);
        if (call->needs[i] && !grd_edge_of(call->inputs[i], &call->node.edges[i]))
            return false;
    }
    return true;
}

grd_custom_call *grd_custom_begin(const grd_custom_function *function, grd_tensor *const *inputs)
{
    static const char name[] = "grd_custom_begin";
    if (!grd_given_pointer(function, name, "function"))
        return NULL;
    if (grd_pending() || !grd_stack_has_room("a custom function") || (function->inputs > 0 && !grd_given_pointer(inputs, name, "inputs")) ||
        (function->inputs < 0 && !grd_raise(GRD_ERROR_VALUE, "%s: a function cannot have %d inputs", name, function->inputs))) {
        grd_release_context(function->release, function->context);
        return NULL;
    }
    struct grd_custom_call *call = new_call(function, inputs);
    if (call == NULL)
        return NULL;
    if (find_edges(call, grd_is_recording())) {
        /* the user's forward function ignores tangents; run_jvp computes the tangents of the outputs */
        grd_thread.exclude |= GRD_FORWARD_BIT;
        return call;
    }
    grd_object_drop(&call->node);
    return NULL;
}

/* ---- After forward --------------------------------------------------------------------------------------------------------------------- */
/* True if the tensors that the user's forward function marked as written in place (`dirty`) obey the rules for in-place operators; e.g. each must
 * be an input that is also returned. False, with RuntimeError raised, otherwise. */
static bool check_dirty(const struct grd_custom_call *call, grd_tensor *const *outputs, int n)
{
    for (int i = 0; i < call->ndirty; i++) {
        grd_tensor *t = call->dirty[i];
        if (!is_among(t, call->inputs, call->function.inputs) || !is_among(t, outputs, n))
            return grd_raise(GRD_ERROR_RUNTIME, "a tensor marked dirty must be an input that is also returned");
        if (grd_needs_grad(t) && !grd_has_history(t))
            return grd_raise(GRD_ERROR_RUNTIME, "%s leaf Variable that requires grad has been used in an in-place operation.",
                             t->base != NULL ? "a view of a" : "a");
        if (t->base != NULL && (n > 1 || t != call->inputs[0]))
            return grd_raise(GRD_ERROR_RUNTIME,
                             "Functions which modify views in-place must take the view first and return a single Variable");
        if (!grd_check_inplace(t))
            return false;
    }
    return true;
}

/* Allocates one memory block for node->outputs and the shapes of all outputs, and fills both in. False, with MemoryError, on failure. */
static bool make_outputs(struct grd_custom_call *call, grd_tensor *const *outputs, int n)
{
    struct grd_node *node = &call->node;
    call->outputs_size = (size_t)n * sizeof *node->outputs;
    for (int i = 0; i < n; i++)
        call->outputs_size += outputs[i] != NULL ? outputs[i]->ndim * sizeof(int64_t) : 0;
    node->outputs = grd_alloc_zeroed(call->outputs_size);
    if (node->outputs == NULL)
        return false;
    node->noutputs = (uint32_t)n;
    int64_t *sizes = grd_node_room(node);
    for (int i = 0; i < n; i++) {
        if (outputs[i] == NULL)
            continue;
        grd_node_describe_output(node, (uint32_t)i, outputs[i], sizes);
        for (int dim = 0; dim < outputs[i]->ndim; dim++)
            *sizes++ = outputs[i]->sizes[dim];
    }
    return true;
}

/* Returns a new tensor with the memory of `t`. `t` is an input that the user's forward function returned without writing it. The output cannot be
 * `t` itself, because input and output have different grad_fns. `constant`: the output gets no gradient. */
static grd_tensor *another_tensor(grd_tensor *t, bool constant)
{
    if (constant && grd_needs_grad(t))
        return grd_new_detached(t);
    grd_tensor *view = grd_new_view(t, grd_sizes(t), grd_strides(t), t->offset);
    if (!grd_pending())
        view->flags |= GRD_FLAG_NO_GRAD_VIEW;
    return view;
}

/* Makes the node the grad_fn of output i if `recorded` is true and the output can have a gradient. If *output is an input that forward did not
 * write, replaces it by another tensor with the same memory. False, with the error raised, on failure. */
static bool set_output(struct grd_custom_call *call, grd_tensor **output, int i, bool recorded)
{
    grd_tensor *t = *output;
    if (t == NULL)
        return true;
    const bool dirty = is_among(t, call->dirty, call->ndirty);
    const bool constant = !recorded || is_among(t, call->constant, call->nconstant) || !grd_dtype_is_inexact(t->dtype);
    if (!dirty && is_among(t, call->inputs, call->function.inputs)) {
        t = another_tensor(t, constant);
        if (grd_pending())
            return false;
        *output = t;
    }
    if (constant)
        return true;
    if (!dirty)
        return grd_give_history(t, grd_node_keep(&call->node), (uint32_t)i);
    struct grd_rebase rebase;
    return grd_rebase_prepare(&rebase, t, grd_object_keep(&call->node), (uint32_t)i, true) && grd_rebase_commit(&rebase, t);
}

/* Replaces each saved output by an alias without grad_fn. Otherwise the output would own the node and the node the output, a reference cycle.
 * False, with the error raised, on failure. */
static bool settle_saved(struct grd_custom_call *call, grd_tensor *const *outputs, int n)
{
    for (int i = 0; i < call->nsaved; i++)
        for (int k = 0; call->saved[i].value.v.tensor != NULL && k < n; k++)
            if (call->saved[i].value.v.tensor == outputs[k]) {
                grd_saved_drop(&call->saved[i]);
                if (!grd_saved_set_tensor(&call->saved[i], outputs[k], k))
                    return false;
                break;
            }
    return true;
}

/* Checks the outputs of the user's forward function. If an input requires a gradient, makes the node of the call the grad_fn of the
 * outputs. False, with the error raised, on failure. */
static bool record(struct grd_custom_call *call, grd_tensor **outputs, int n)
{
    bool needs = false;
    for (int i = 0; i < call->nconstant; i++)
        if (!is_among(call->constant[i], outputs, n))
            return refuse_constant();
    for (int i = 0; i < call->function.inputs; i++)
        needs |= call->needs[i];
    if (needs && (!check_dirty(call, outputs, n) || !make_outputs(call, outputs, n)))
        return false;
    for (int i = 0; i < n; i++)
        if (!set_output(call, &outputs[i], i, needs))
            return false;
    /* Increase the versions only after the new grad_fns have been set. Otherwise another thread could compute the grad_fn of a view from its
     * base's old grad_fn and label it with the new version. The view's grad_fn would then never be updated. */
    for (int i = 0; i < call->ndirty; i++)
        grd_bump_version(call->dirty[i]);
    return !needs || settle_saved(call, outputs, n);
}

/* ---- Forward mode ---------------------------------------------------------------------------------------------------------------------- */
/* Makes `tangent` the tangent of `output`. If the user's forward function wrote `output` in place, copies `tangent` into the tangent that `output`
 * has already. False, with the error raised, on failure. */
static bool set_tangent(const struct grd_custom_call *call, grd_tensor *output, grd_tensor *tangent, struct grd_dual_level *level)
{
    if (tangent->dtype != output->dtype || !grd_dims_equal(grd_sizes(tangent), grd_sizes(output)))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: a tangent must have the sizes and the dtype of its output",
                         call->function.name != NULL ? call->function.name : "jvp");
    if (!is_among(output, call->dirty, call->ndirty))
        return grd_tangent_set(output, tangent, level);
    grd_tensor *written = grd_tangent_written(output, level);
    return written != NULL && !grd_is_failed(grd_copy_(written, tangent));
}

/* Sets the tangents of the n outputs. If the node saved an alias of an output, the alias gets the output's tangent too. False, with the error raised,
 * on failure. */
static bool set_tangents(struct grd_custom_call *call, grd_tensor *const *outputs, grd_tensor *const *tangents, int n,
                         struct grd_dual_level *level)
{
    for (int i = 0; i < n; i++)
        if (tangents[i] != NULL && outputs[i] != NULL && grd_dtype_is_inexact(outputs[i]->dtype) &&
            !set_tangent(call, outputs[i], tangents[i], level))
            return false;
    for (int i = 0; i < call->nsaved; i++) {
        const struct grd_saved *saved = &call->saved[i];
        if (saved->output >= 0 && saved->output < n && !grd_tangent_share(saved->value.v.tensor, outputs[saved->output]))
            return false;
    }
    return true;
}

/* Calls the function's jvp if an input has a tangent, and sets the tangents of the outputs. False, with the error raised, on failure. */
static bool run_jvp(struct grd_custom_call *call, grd_tensor *const *outputs, int n)
{
    const int inputs = call->function.inputs;
    grd_tensor **tangents = grd_pool_alloc((size_t)(inputs + n) * sizeof *tangents);
    struct grd_dual_level *level = NULL;
    if (tangents == NULL)
        return false;
    memset(tangents, 0, (size_t)(inputs + n) * sizeof *tangents);
    for (int i = 0; i < inputs && !grd_pending(); i++) {
        const grd_tensor *t = call->inputs[i];
        tangents[i] = t != NULL && (grd_keys_of(t) & GRD_FORWARD_BIT) != 0 ? grd_tangent_find(t) : NULL;
        if (tangents[i] != NULL && level == NULL)
            level = grd_tangent_level(t);
    }
    if (level == NULL)
        return !grd_pending();
    if (call->function.jvp != NULL)
        call->function.jvp(call, tangents, tangents + inputs);
    else
        grd_raise(GRD_ERROR_NOT_IMPLEMENTED,
                  "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.");
    const bool ok = !grd_pending() && set_tangents(call, outputs, tangents + inputs, n, level);
    grd_object_drop(level);
    return ok;
}

bool grd_custom_end(grd_custom_call *call, grd_tensor **outputs, int n)
{
    if (!grd_given_pointer(call, "grd_custom_end", "call"))
        return false;
    if (n < 0)
        grd_raise(GRD_ERROR_VALUE, "a function cannot have %d outputs", n);
    const bool ok = !grd_pending() && (n == 0 || grd_given_pointer(outputs, "grd_custom_end", "outputs")) && record(call, outputs, n) &&
                    run_jvp(call, outputs, n);
    grd_thread.exclude = call->exclude;
    call->forward = false;
    for (int i = 0; ok && i < n && !grd_pending(); i++)
        grd_anomaly_trace(outputs[i], call->node.sequence);
    if (!ok)
        grd_error_add_context(call->function.name != NULL ? call->function.name : "custom function");
    grd_object_drop(&call->node);
    return ok;
}

/* ---- In one call ------------------------------------------------------------------------------------------------------------------------- */
/* Runs the user's forward function in no_grad mode and checks that it has set all outputs. May leave an error pending. */
static void run_forward(struct grd_custom_call *call, grd_tensor **outputs)
{
    bool enabled = grd_set_grad_enabled(false);
    call->function.forward(call, call->inputs, outputs);
    grd_set_grad_enabled(enabled);
    for (int i = 0; !grd_pending() && i < call->function.outputs; i++)
        if (outputs[i] == NULL)
            grd_raise(GRD_ERROR_RUNTIME, "output %d was not set", i);
        else
            grd_given(outputs[i], call->function.name, "outputs");
}

/* Checks the arguments of grd_custom_apply. An element of `inputs` may be NULL. False, with the error raised, on failure. */
static bool check_apply(const grd_custom_function *function, grd_tensor *const *inputs, grd_tensor **outputs)
{
    static const char name[] = "grd_custom_apply";
    if (function->inputs < 0 || function->outputs < 0)
        return grd_raise(GRD_ERROR_VALUE, "%s: a function cannot have %d inputs and %d outputs", name, function->inputs, function->outputs);
    return (function->inputs == 0 || grd_given_pointer(inputs, name, "inputs")) &&
           (function->outputs == 0 || grd_given_pointer(outputs, name, "ret_outputs")) &&
           (function->forward != NULL || grd_raise_null_pointer(name, "function->forward"));
}

bool grd_custom_apply(const grd_custom_function *function, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    if (!grd_given_pointer(function, "grd_custom_apply", "function"))
        return false;
    const int64_t mark = grd_pool_mark();
    const bool valid = check_apply(function, inputs, ret_outputs);
    for (int i = 0; ret_outputs != NULL && i < function->outputs; i++)
        ret_outputs[i] = NULL;
    if (!valid)
        grd_release_context(function->release, function->context);
    struct grd_custom_call *call = valid ? grd_custom_begin(function, inputs) : NULL;
    if (call != NULL)
        run_forward(call, ret_outputs);
    if (call != NULL && grd_custom_end(call, ret_outputs, function->outputs) &&
        grd_pool_return_many(mark, (void *const *)ret_outputs, function->outputs))
        return true;
    grd_pool_release(mark);
    for (int i = 0; ret_outputs != NULL && i < function->outputs; i++)
        ret_outputs[i] = grd_failed;
    return false;
}
