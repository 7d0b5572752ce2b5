/* Functions with a backward of their own, written by the user.
 *
 * The node of such a function is also what the user sees as its grd_custom_call: made before forward runs, so that forward can save, and given
 * edges and outputs afterwards. What forward saves is held as it is until the outputs are known.
 * Invariant: a saved output is an alias without history, as for every node. */
#include "autograd/node.h"
#include "gradus/ops.h"

#include <stdio.h>
#include <string.h>

struct grd_custom_call {
    struct grd_node node;
    grd_custom_function function;
    char *name;
    bool *needs; /* per input */
    struct grd_saved *saved;
    int nsaved, capacity;
    grd_tensor **dirty, **constant; /* marked during forward; borrowed */
    int ndirty, nconstant;
    bool forward; /* it runs, or what it saved is not settled */
};

enum { NAME_CHARS = 96 };

/* ---- The node ---------------------------------------------------------------------------------------------------------------- */
static void custom_run(struct grd_node *node, const struct grd_run *run)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    if (!grd_saved_begin(node, call->saved, call->nsaved, run->retain, NULL))
        return;
    grd_tensor **grads = run->ret_grads;
    if (call->function.backward != NULL)
        call->function.backward(call, run->grads, grads);
    else
        grd_raise(GRD_ERROR_RUNTIME, "the function has no backward");
}

static void custom_release(struct grd_node *node)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    for (int i = 0; i < call->nsaved; i++)
        grd_saved_drop(&call->saved[i]);
}

static void custom_finish(struct grd_node *node)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    grd_free(call->saved, (size_t)call->capacity * sizeof *call->saved);
    for (uint32_t i = 0; i < node->noutputs; i++)
        grd_free((void *)(uintptr_t)node->outputs[i].sizes, node->outputs[i].ndim * sizeof(int64_t));
}

static bool custom_find_outdated(struct grd_node *node, const struct grd_storage *written, struct grd_rebase *rebase)
{
    struct grd_custom_call *call = (struct grd_custom_call *)node;
    return call->forward || grd_saved_find_outdated(node, call->saved, call->nsaved, written, rebase);
}

static const struct grd_node_class custom_class = {custom_run, custom_release, custom_finish, custom_find_outdated};

bool grd_is_custom_node(const struct grd_node *node)
{
    return node->class == &custom_class;
}

/* ---- During forward and backward ------------------------------------------------------------------------------------------------- */
void grd_custom_save(grd_custom_call *call, grd_tensor *t)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_save", "call"))
        return;
    if (!call->forward) {
        grd_raise(GRD_ERROR_RUNTIME, "tensors can only be saved during forward");
        return;
    }
    if (call->nsaved == call->capacity) {
        int capacity = call->capacity ? 2 * call->capacity : 4;
        struct grd_saved *saved = grd_realloc(call->saved, (size_t)call->capacity * sizeof *saved, (size_t)capacity * sizeof *saved);
        if (saved == NULL)
            return;
        call->saved = saved;
        call->capacity = capacity;
    }
    struct grd_saved *saved = &call->saved[call->nsaved++];
    call->node.keeps = true;
    if (t != NULL)
        grd_saved_set_tensor(saved, t, -1);
    else
        *saved = (struct grd_saved){.value = {.kind = GRD_KIND_TENSOR}, .output = -1};
}

grd_tensor *grd_custom_saved(grd_custom_call *call, int index)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_saved", "call"))
        return grd_failed;
    if (index < 0 || index >= call->nsaved) {
        grd_raise(GRD_ERROR_INDEX, "saved tensor %d does not exist: %d were saved", index, call->nsaved);
        return grd_failed;
    }
    const struct grd_saved *saved = &call->saved[index];
    if (saved->value.v.tensor == NULL)
        return NULL;
    grd_value value = saved->value;
    if (!grd_saved_unpack(saved, &call->node, &value))
        return grd_failed;
    return grd_pool_push(grd_object_keep(value.v.tensor)) ? value.v.tensor : grd_failed;
}

bool grd_custom_needs_grad(const grd_custom_call *call, int input)
{
    return grd_given_pointer(call, "grd_custom_needs_grad", "call") && input >= 0 && input < call->function.inputs && call->needs[input];
}

void *grd_custom_context(const grd_custom_call *call)
{
    return grd_given_pointer(call, "grd_custom_context", "call") ? call->function.context : NULL;
}

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

void grd_custom_mark_non_differentiable(grd_custom_call *call, grd_tensor *output)
{
    if (grd_pending() || !grd_given_pointer(call, "grd_custom_mark_non_differentiable", "call") ||
        !grd_given(output, "grd_custom_mark_non_differentiable", "output") || is_among(output, call->constant, call->nconstant))
        return;
    if (!call->forward || call->nconstant == call->function.outputs)
        grd_raise(GRD_ERROR_RUNTIME, "only outputs can be marked non-differentiable, and only during forward");
    else
        call->constant[call->nconstant++] = output;
}

/* ---- Applying ------------------------------------------------------------------------------------------------------------------------ */
static struct grd_custom_call *new_call(const grd_custom_function *function, grd_tensor *const *inputs, bool recording)
{
    size_t pointers = (size_t)(function->inputs + function->outputs) * sizeof(grd_tensor *);
    struct grd_custom_call *call =
        (struct grd_custom_call *)grd_node_new(&custom_class, NULL, sizeof *call, (uint32_t)function->inputs, (uint32_t)function->outputs,
                                               pointers + NAME_CHARS + (size_t)function->inputs * sizeof(bool));
    if (call == NULL)
        return NULL;
    call->function = *function;
    call->dirty = grd_node_room(&call->node);
    call->constant = call->dirty + function->inputs;
    call->name = (char *)(call->constant + function->outputs);
    snprintf(call->name, NAME_CHARS, "%sBackward", function->name != NULL ? function->name : "Custom");
    call->node.name = call->name;
    call->needs = (bool *)(call->name + NAME_CHARS);
    call->saved = NULL;
    call->nsaved = call->capacity = call->ndirty = call->nconstant = 0;
    call->forward = true;
    memset(call->node.outputs, 0, (size_t)function->outputs * sizeof *call->node.outputs);
    memset(call->node.edges, 0, (size_t)function->inputs * sizeof *call->node.edges);
    for (int i = 0; i < function->inputs; i++) {
        call->needs[i] = recording && inputs[i] != NULL && grd_needs_grad(inputs[i]);
        if (call->needs[i] && !grd_edge_of(inputs[i], &call->node.edges[i])) {
            grd_object_drop(&call->node);
            return NULL;
        }
    }
    return call;
}

static bool run_forward(struct grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **outputs)
{
    bool enabled = grd_set_grad_enabled(false);
    call->function.forward(call, inputs, outputs);
    grd_set_grad_enabled(enabled);
    for (int i = 0; !grd_pending() && i < call->function.outputs; i++)
        if (outputs[i] == NULL)
            grd_raise(GRD_ERROR_RUNTIME, "output %d was not set", i);
    return !grd_pending();
}

/* Writing over an input is subject to the rules of in-place operators. */
static bool check_dirty(const struct grd_custom_call *call, grd_tensor *const *inputs, grd_tensor *const *outputs)
{
    uint32_t output;
    for (int i = 0; i < call->ndirty; i++) {
        grd_tensor *t = call->dirty[i];
        if (!is_among(t, inputs, call->function.inputs) || !is_among(t, outputs, call->function.outputs))
            return grd_raise(GRD_ERROR_RUNTIME, "a tensor marked dirty must be an input that is also returned");
        if (grd_needs_grad(t) && grd_recorded_grad_fn(t, &output) == NULL)
            return grd_raise(GRD_ERROR_RUNTIME, "%s leaf Variable that requires grad has been used in an in-place operation.",
                             t->base != NULL ? "a view of a" : "a");
        if (t->base != NULL && (call->function.outputs > 1 || t != inputs[0]))
            return grd_raise(GRD_ERROR_RUNTIME,
                             "Functions which modify views in-place must take the view first and return a single Variable");
        if (!grd_check_inplace(t))
            return false;
    }
    return true;
}

static bool set_output(struct grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **output, int i)
{
    grd_tensor *t = *output;
    bool dirty = is_among(t, call->dirty, call->ndirty);
    /* An input handed back is another tensor to the graph. */
    if (!dirty && is_among(t, inputs, call->function.inputs)) {
        t = grd_new_view(t, grd_sizes(t), grd_strides(t), t->offset);
        if (grd_pending())
            return false;
        t->flags |= GRD_FLAG_NO_GRAD_VIEW;
        *output = t;
    }
    if (is_among(t, call->constant, call->nconstant) || !grd_dtype_carries(t->dtype))
        return true;
    grd_node_describe_output(&call->node, (uint32_t)i, t, NULL);
    int64_t *sizes = grd_alloc(t->ndim * sizeof *sizes);
    if (sizes == NULL)
        return false;
    if (t->ndim > 0)
        memcpy(sizes, t->sizes, t->ndim * sizeof *sizes);
    call->node.outputs[i].sizes = sizes;
    if (!dirty)
        return grd_give_history(t, grd_node_keep(&call->node), (uint32_t)i);
    struct grd_rebase rebase;
    return grd_rebase_prepare(&rebase, t, grd_object_keep(&call->node), (uint32_t)i, true) && grd_rebase_commit(&rebase, t);
}

/* Saved outputs become aliases: the node may not own what owns the node. */
static bool settle_saved(struct grd_custom_call *call, grd_tensor *const *outputs)
{
    for (int i = 0; i < call->nsaved; i++)
        for (int k = 0; call->saved[i].value.v.tensor != NULL && k < call->function.outputs; k++)
            if (call->saved[i].value.v.tensor == outputs[k]) {
                grd_saved_drop(&call->saved[i]);
                if (!grd_saved_set_tensor(&call->saved[i], outputs[k], k))
                    return false;
                break;
            }
    return true;
}

/* Edges, outputs and history, where an input requires a gradient. */
static bool record(struct grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **outputs)
{
    for (int i = 0; i < call->ndirty; i++)
        grd_bump_version(call->dirty[i]);
    bool needs = false;
    for (int i = 0; i < call->function.inputs; i++)
        needs |= call->needs[i];
    if (!needs)
        return true;
    if (!check_dirty(call, inputs, outputs))
        return false;
    for (int i = 0; i < call->function.outputs; i++)
        if (!set_output(call, inputs, &outputs[i], i))
            return false;
    return settle_saved(call, outputs);
}

/* Which inputs may be NULL is for the function to say. */
static bool check_apply(const grd_custom_function *function, grd_tensor *const *inputs, grd_tensor **outputs)
{
    static const char name[] = "grd_custom_apply";
    if (!grd_given_pointer(function, name, "function"))
        return false;
    if (function->inputs < 0 || function->outputs < 0)
        return grd_raise(GRD_ERROR_VALUE, "%s: a function cannot have %d inputs and %d outputs", name, function->inputs, function->outputs);
    return (function->inputs == 0 || grd_given_pointer(inputs, name, "inputs")) &&
           (function->outputs == 0 || grd_given_pointer(outputs, name, "ret_outputs")) &&
           (function->forward != NULL || grd_raise_null_pointer(name, "function->forward"));
}

bool grd_custom_apply(const grd_custom_function *function, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    if (!check_apply(function, inputs, ret_outputs)) {
        for (int i = 0; function != NULL && ret_outputs != NULL && i < function->outputs; i++)
            ret_outputs[i] = grd_failed;
        return false;
    }
    bool ok = !grd_pending();
    int64_t mark = grd_pool_mark();
    for (int i = 0; i < function->outputs; i++)
        ret_outputs[i] = NULL;
    struct grd_custom_call *call = ok ? new_call(function, inputs, grd_is_recording()) : NULL;
    if (call != NULL) {
        ok = run_forward(call, inputs, ret_outputs) && record(call, inputs, ret_outputs);
        call->forward = false;
        if (!ok)
            grd_error_add_context(function->name != NULL ? function->name : "custom function");
        grd_object_drop(&call->node);
    }
    ok = ok && call != NULL && grd_pool_return_many(mark, (void *const *)ret_outputs, function->outputs);
    if (ok)
        return true;
    grd_pool_release(mark);
    for (int i = 0; i < function->outputs; i++)
        ret_outputs[i] = grd_failed;
    return false;
}
