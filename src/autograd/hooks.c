/* Runs the hooks of nodes. In a backward pass, all tensor hooks of one output run before the hooks of the next output. The hooks of one output run in
 * the order of their registration. The hook of retain_grad() runs last, so it stores the gradient that the other hooks have returned. */
#include "autograd/hook_list.h"
#include "autograd/hooks.h"
#include "autograd/node.h"
#include "autograd/slot.h"
#include "core/device.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/hooks.h"

#include <string.h>

/* Groups the hooks by output. The groups are in the order in which their first hooks were registered. The hooks of a group keep their order. */
static void group_by_output(struct grd_hooks_found found)
{
    for (int64_t i = 1; i < found.n; i++) {
        struct grd_hook *hook = found.hooks[i];
        int64_t to = i;
        while (to > 0 && found.hooks[to - 1]->output != hook->output)
            to--;
        for (int64_t k = i; to > 0 && k > to; k--)
            found.hooks[k] = found.hooks[k - 1];
        if (to > 0)
            found.hooks[to] = hook;
    }
}

/* Stores the tensor `by`, which may be NULL, in *slot. Adds a reference to `by`, and drops the reference to the tensor that was in *slot. */
static void replace(grd_tensor **slot, grd_tensor *by)
{
    grd_tensor *old = *slot;
    if (by == old)
        return;
    *slot = by != NULL ? grd_object_keep(by) : NULL;
    grd_object_drop(old);
}

/* True if `by`, which a hook has returned, may replace the gradient `old`. Otherwise false, with RuntimeError raised. */
static bool check_replacement(const grd_tensor *old, const grd_tensor *by)
{
    if (!grd_dims_equal(grd_sizes(by), grd_sizes(old)))
        return grd_raise(GRD_ERROR_RUNTIME, "hook has changed the size of value");
    if (by->dtype != old->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "hook has changed the type of value (was %s got %s)", grd_dtype_name(old->dtype),
                         grd_dtype_name(by->dtype));
    if (by->device != old->device || by->device_index != old->device_index)
        return grd_raise(GRD_ERROR_RUNTIME, "hook has changed the device of value (was %s got %s)",
                         grd_device_text(grd_device_of(old)).chars, grd_device_text(grd_device_of(by)).chars);
    return true;
}

static void call_tensor_hook(const struct grd_hook *hook, grd_tensor **grads)
{
    grd_tensor *grad = grads[hook->output], *result = hook->call.tensor(grad, hook->context);
    if (!grd_pending() && result != NULL && check_replacement(grad, result))
        replace(&grads[hook->output], result);
}

/* Calls a RETAIN hook (of retain_grad()): adds the gradient grads[hook->output] to the retained .grad. May leave an error pending. */
static void keep_gradient(const struct grd_hook *hook, grd_tensor **grads)
{
    struct grd_retained *retained = hook->context;
    grd_tensor *grad = grads[hook->output];
    for (bool done = false; !done;) {
        grd_tensor *old = grd_slot_get(&retained->slot);
        grd_tensor *sum = old == NULL ? grd_clone(grad, .memory_format = "contiguous") : grd_add(old, grad);
        done = grd_pending() || grd_slot_exchange(&retained->slot, old, grd_object_keep(sum));
        if (!done)
            grd_object_drop(sum); /* another thread has replaced the gradient meanwhile, so add to the new one */
        grd_object_drop(old);
    }
}

/* Calls `call` for each hook in `found` whose output has a gradient. `grads` are the gradients of the node's n outputs. Stops at the first error. */
static void call_each(struct grd_hooks_found found, void (*call)(const struct grd_hook *hook, grd_tensor **grads), grd_tensor **grads,
                      uint32_t n)
{
    for (int64_t i = 0; i < found.n && !grd_pending(); i++)
        if (found.hooks[i]->output < n && grads[found.hooks[i]->output] != NULL)
            call(found.hooks[i], grads);
}

void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n)
{
    const struct grd_hooks_found found = grd_hooks_find(hooks, GRD_HOOK_TENSOR);
    group_by_output(found);
    call_each(found, call_tensor_hook, grads, n);
    call_each(grd_hooks_find(hooks, GRD_HOOK_RETAIN), keep_gradient, grads, n);
}

grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads)
{
    const uint32_t n = node->noutputs;
    if (grd_hooks_find(&node->hooks, GRD_HOOK_POST).n == 0)
        return (grd_tensors){0};
    grd_tensor **noted = grd_pool_alloc(n * sizeof *noted);
    for (uint32_t i = 0; noted != NULL && i < n; i++) {
        noted[i] = grads[i];
        if (grads[i] != NULL && !grd_pool_push(grd_object_keep(grads[i])))
            noted[i] = NULL;
    }
    return (grd_tensors){n, noted};
}

void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n)
{
    const struct grd_hooks_found found = grd_hooks_find(&node->hooks, grad_outputs.data == NULL ? GRD_HOOK_PRE : GRD_HOOK_POST);
    for (int64_t k = 0; k < found.n && !grd_pending(); k++) {
        const struct grd_hook *hook = found.hooks[k];
        grd_tensor **seen = grd_pool_alloc((n + 1) * sizeof *seen);
        if (seen != NULL) {
            memcpy(seen, grads, n * sizeof *seen);
            hook->call.node(node, grad_outputs, seen, (int)n, hook->context);
            for (uint32_t i = 0; !grd_pending() && i < n; i++)
                replace(&grads[i], seen[i]);
        }
    }
}

void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf)
{
    const struct grd_hooks_found found = grd_hooks_find(hooks, GRD_HOOK_ACCUMULATED);
    for (int64_t i = 0; i < found.n && !grd_pending(); i++)
        found.hooks[i]->call.accumulated(leaf, found.hooks[i]->context);
}

/* ---- Traces (anomaly.c) ------------------------------------------------------------------------------------------------------------- */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace))
{
    return grd_hooks_add(hooks, (struct grd_hook){.kind = GRD_HOOK_TRACE, .context = trace, .release = release}) != 0;
}

/* ---- Retained gradients -------------------------------------------------------------------------------------------------------------- */
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained)
{
    const struct grd_hook hook = {.kind = GRD_HOOK_RETAIN, .output = output, .context = retained, .release = grd_object_drop};
    if (grd_hooks_add(&node->hooks, hook) == 0)
        return false;
    grd_object_keep(retained);
    return true;
}

void grd_hooks_unretain(struct grd_node *node, const struct grd_retained *retained)
{
    grd_hooks_remove(&node->hooks, GRD_HOOK_RETAIN, retained);
}
