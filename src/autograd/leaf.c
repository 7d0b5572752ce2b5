/* Implements the public functions for requires_grad, .grad, retain_grad() and detach_(). */
#include "autograd/edge.h"
#include "autograd/hooks.h"
#include "autograd/slot.h"
#include "autograd/variable.h"
#include "autograd/view_refresh.h"
#include "base/text.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/given.h"
#include "core/races.h"
#include "core/shape.h"
#include "core/tensor.h"

bool grd_requires_grad(const grd_tensor *t)
{
    return grd_given(t, "grd_requires_grad", "t") && grd_needs_grad(grd_physical(t));
}

bool grd_is_leaf(const grd_tensor *t)
{
    if (!grd_given(t, "grd_is_leaf", "t"))
        return false;
    t = grd_physical(t);
    if (t->base != NULL && grd_needs_grad(t) && !grd_view_refresh((grd_tensor *)(uintptr_t)t))
        return false;
    return !grd_has_history(t);
}

grd_tensor *grd_set_requires_grad(grd_tensor *t, bool requires_grad)
{
    if (!grd_given(t, "grd_set_requires_grad", "t"))
        return grd_failed;
    if (grd_pending() || grd_is_failed(t))
        return t;
    if (grd_is_batch(t)) {
        grd_set_requires_grad(grd_physical(t), requires_grad);
        grd_mark_batch(t);
        return t;
    }
    const bool is_leaf = grd_is_leaf(t);
    if (!is_leaf && !requires_grad)
        grd_raise(GRD_ERROR_RUNTIME,
                  "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                  "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    else if (is_leaf && requires_grad && !grd_dtype_is_inexact(t->dtype))
        grd_raise(GRD_ERROR_RUNTIME, "only Tensors of floating point and complex dtype can require gradients");
    else if (is_leaf && (!requires_grad || grd_autograd_meta_ensure(t) != NULL))
        grd_mark_requires_grad(t, requires_grad);
    return t;
}

/* ---- .grad ------------------------------------------------------------------------------------------------------------------------------ */
/* Returns the slot, i.e. the pointer with its lock, that holds the .grad of the tensor with the autograd data `meta`. After retain_grad() this
 * slot is in meta->retained, otherwise in `meta` itself. */
static struct grd_grad_slot *slot_of(struct grd_autograd_meta *meta)
{
    struct grd_retained *retained = grd_retained_of(meta);
    return retained != NULL ? &retained->slot : &meta->slot;
}

grd_tensor *grd_grad_of(const grd_tensor *t)
{
    struct grd_autograd_meta *meta = grd_given(t, "grd_grad_of", "t") ? grd_autograd_meta_get(t) : NULL;
    grd_tensor *grad = meta != NULL ? grd_slot_get(slot_of(meta)) : NULL;
    return grad == NULL || grd_pool_push(grad) ? grad : grd_failed;
}

/* True if `grad` has the shape, dtype and device that the .grad of `t` must have. False, with RuntimeError raised, otherwise. */
static bool check_gradient(const grd_tensor *t, const grd_tensor *grad)
{
    char ours[256], theirs[256];
    if (grad == t)
        return grd_raise(GRD_ERROR_RUNTIME, "can't assign Variable as its own grad");
    if (!grd_dims_equal(grd_sizes(grad), grd_sizes(t)))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the gradient and the "
                         "tensor are the same size",
                         grd_format_int64s(theirs, sizeof theirs, grad->sizes, grad->ndim),
                         grd_format_int64s(ours, sizeof ours, t->sizes, t->ndim));
    if (grad->dtype != t->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "attempting to assign a gradient with dtype '%s' to a tensor with dtype '%s'. Please ensure that the gradient and "
                         "the tensor are of the same dtype",
                         grd_dtype_name(grad->dtype), grd_dtype_name(t->dtype));
    if (grad->device != t->device || grad->device_index != t->device_index)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "attempting to assign a gradient located on device '%s' to a tensor located on device '%s'. Please ensure that the "
            "gradient and the tensor are on the same device",
            grd_device_text(grd_device_of(grad)).chars, grd_device_text(grd_device_of(t)).chars);
    return true;
}

void grd_set_grad(grd_tensor *t, grd_tensor *grad)
{
    if (grd_pending() || !grd_given(t, "grd_set_grad", "t") || !grd_given_or_null(grad, "grd_set_grad", "grad") ||
        (grad != NULL && !check_gradient(t, grad)))
        return;
    struct grd_autograd_meta *meta = grad == NULL ? grd_autograd_meta_get(t) : grd_autograd_meta_ensure(t);
    if (meta == NULL)
        return;
    grd_slot_set(slot_of(meta), grad != NULL ? grd_object_keep(grad) : NULL);
}

/* Adds to `node` a hook that stores the gradient of `t`, which is output number `output` of `node`. Does nothing if there is such a hook already.
 * May leave an error pending. */
static void retain(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    struct grd_autograd_meta *meta = grd_autograd_meta_ensure(t);
    if (meta == NULL || grd_retained_of(meta) != NULL)
        return;
    struct grd_retained *retained = grd_retained_new(), *none = NULL;
    if (retained == NULL)
        return;
    if (grd_hooks_retain(node, output, retained)) {
        if (__atomic_compare_exchange_n(&meta->retained, &none, retained, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return;
        grd_hooks_unretain(node, retained); /* another thread has set meta->retained meanwhile */
    }
    grd_object_drop(retained);
}

void grd_retain_grad(grd_tensor *t)
{
    if (grd_pending() || !grd_given(t, "grd_retain_grad", "t"))
        return;
    if (!grd_needs_grad(t)) {
        grd_raise(GRD_ERROR_RUNTIME, "can't retain_grad on Tensor that has requires_grad=False");
        return;
    }
    uint32_t output;
    struct grd_node *node;
    if (grd_current_grad_fn(t, &node, &output) && node != NULL)
        retain(t, node, output);
    grd_node_drop(node);
}

bool grd_retains_grad(const grd_tensor *t)
{
    const struct grd_autograd_meta *meta = grd_given(t, "grd_retains_grad", "t") ? grd_autograd_meta_get(t) : NULL;
    return meta != NULL && grd_retained_of(meta) != NULL;
}

/* Removes the history of `t`, which becomes a leaf that requires no gradient. A retained .grad stays the .grad of the leaf. */
static void detach(grd_tensor *t)
{
    if (t->base != NULL) {
        grd_raise(GRD_ERROR_RUNTIME, "Can't detach views in-place. Use detach() instead.");
        return;
    }
    struct grd_autograd_meta *meta = grd_autograd_meta_get(t);
    struct grd_node *node = meta != NULL ? meta->grad_fn : (struct grd_node *)t->autograd;
    if (meta == NULL) {
        t->autograd = NULL;
    } else {
        if (meta->retained != NULL) {
            grd_hooks_unretain(node, meta->retained);
            grd_slot_set(&meta->slot, grd_slot_get(&meta->retained->slot));
            grd_object_drop(meta->retained);
            meta->retained = NULL;
        }
        meta->grad_fn = meta->direct = NULL;
        meta->output = 0;
    }
    grd_mark_requires_grad(t, false);
    grd_node_drop(node);
}

void grd_detach_(grd_tensor *t)
{
    if (grd_pending() || !grd_given(t, "grd_detach_", "t") || grd_is_failed(t))
        return;
    struct grd_race race = {.name = "grd_detach_", .args = &(grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = t}, .nargs = 1, .alone = true};
    const bool watched = grd_debugging(GRD_DEBUG_RACES);
    if (watched && !grd_race_begin(&race))
        return;
    detach(t);
    if (watched)
        grd_race_end(&race);
}
