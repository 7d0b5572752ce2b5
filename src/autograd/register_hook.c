/* Implements the public functions that register hooks of tensors and nodes. A hook of a tensor is added to the node that receives the gradient of
 * the tensor, i.e. its grad_fn or, for a leaf, its AccumulateGrad. */
#include "autograd/edge.h"
#include "autograd/hook_list.h"
#include "autograd/variable.h"
#include "core/given.h"

/* Adds a hook to the node that receives the gradient of `t`, and returns its handle. 0, with the error raised, on failure. */
static uint64_t add_to_tensor(grd_tensor *t, struct grd_hook description)
{
    struct grd_edge edge;
    if (!grd_needs_grad(t))
        return grd_raise(GRD_ERROR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
    if (description.kind == GRD_HOOK_ACCUMULATED && !grd_is_leaf(t))
        return grd_raise(GRD_ERROR_RUNTIME, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    if (!grd_edge_of(t, &edge))
        return 0;
    description.output = edge.output;
    const uint64_t handle = grd_hooks_add(&edge.node->hooks, description);
    grd_node_drop(edge.node);
    return handle;
}

uint64_t grd_hook_tensor(grd_tensor *t, grd_tensor_hook *hook, void *context, void (*release)(void *context))
{
    if (grd_pending() || !grd_given(t, "grd_hook_tensor", "t") || !grd_given_pointer((void *)(uintptr_t)hook, "grd_hook_tensor", "hook"))
        return 0;
    return add_to_tensor(t, (struct grd_hook){.kind = GRD_HOOK_TENSOR, .call.tensor = hook, .context = context, .release = release});
}

uint64_t grd_hook_node(grd_node *node, bool pre, grd_node_hook *hook, void *context, void (*release)(void *context))
{
    if (grd_pending() || !grd_given_pointer(node, "grd_hook_node", "node") ||
        !grd_given_pointer((void *)(uintptr_t)hook, "grd_hook_node", "hook"))
        return 0;
    return grd_hooks_add(
        &node->hooks,
        (struct grd_hook){.kind = pre ? GRD_HOOK_PRE : GRD_HOOK_POST, .call.node = hook, .context = context, .release = release});
}

uint64_t grd_hook_accumulated(grd_tensor *leaf, void (*hook)(grd_tensor *leaf, void *context), void *context,
                              void (*release)(void *context))
{
    if (grd_pending() || !grd_given(leaf, "grd_hook_accumulated", "leaf") ||
        !grd_given_pointer((void *)(uintptr_t)hook, "grd_hook_accumulated", "hook"))
        return 0;
    return add_to_tensor(leaf,
                         (struct grd_hook){.kind = GRD_HOOK_ACCUMULATED, .call.accumulated = hook, .context = context, .release = release});
}
