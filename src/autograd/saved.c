/* Saves values for backward formulas, and checks their versions when they are unpacked.
 * Invariant: while a run uses saved tensors, i.e. between grd_saved_begin and the release of the node, no other thread drops them. */
#include "autograd/copy_slices.h"
#include "autograd/derivative.h"
#include "autograd/dual.h"
#include "autograd/outdated.h"
#include "autograd/pool.h"
#include "autograd/saved.h"
#include "autograd/spin.h"
#include "autograd/variable.h"
#include "base/text.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/tensor.h"

#include <stdio.h>
#include <string.h>

grd_value grd_fact_of(enum grd_save_how how, const grd_tensor *t)
{
    switch (how) {
    case GRD_SAVE_SHAPE:
        return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = t != NULL ? grd_sizes(t) : (grd_dims){0}};
    case GRD_SAVE_STRIDES:
        return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = grd_strides(t)};
    case GRD_SAVE_OFFSET:
        return (grd_value){.kind = GRD_KIND_INT, .v.integer = t->offset};
    case GRD_SAVE_DEVICE:
        return (grd_value){.kind = GRD_KIND_DEVICE, .v.device = grd_device_of(t)};
    default:
        return (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)t->dtype};
    }
}

bool grd_saved_set_tensor(struct grd_saved *saved, grd_tensor *t, int output)
{
    *saved = (struct grd_saved){.value.kind = GRD_KIND_NONE, .version = grd_version_of(t), .output = (int16_t)output};
    if (output >= 0) {
        const int64_t mark = grd_pool_mark();
        grd_tensor *alias = grd_new_detached(t);
        if (grd_pending())
            return false;
        saved->value.v.tensor = grd_pool_take(alias, mark);
    } else {
        grd_mark_saved(t);
        saved->value.v.tensor = grd_object_keep(t);
    }
    saved->value.kind = GRD_KIND_TENSOR;
    return true;
}

void grd_saved_drop_other(struct grd_saved *saved)
{
    if (saved->value.kind == GRD_KIND_TENSORS) {
        const grd_tensors list = saved->value.v.tensors;
        saved->value.v.tensors.n = 0;
        for (int64_t i = 0; i < list.n; i++)
            grd_object_drop(list.data[i]);
    } else {
        grd_generator *generator = saved->value.v.generator;
        saved->value.v.generator = NULL;
        grd_object_drop(generator);
    }
}

/* True if the version of `t` is still `expected`. False, with RuntimeError raised, otherwise. */
static bool check_version(const struct grd_saved *saved, struct grd_node *node, grd_tensor *t, uint32_t expected)
{
    uint32_t version = grd_version_of(t);
    if (GRD_LIKELY(version == expected))
        return true;
    char sizes[256], origin[160] = "";
    uint32_t output = (uint32_t)saved->output;
    struct grd_node *from = saved->output >= 0 ? grd_node_keep(node) : grd_history_of(t, &output);
    if (from != NULL)
        snprintf(origin, sizeof origin, ", which is output %u of %s,", output, from->name);
    grd_node_drop(from);
    return grd_raise(
        GRD_ERROR_RUNTIME,
        "one of the variables needed for gradient computation has been modified by an inplace operation: [%sTensor %s]%s is at "
        "version %u; expected version %u instead.",
        grd_dtype_type_name(t->dtype), grd_format_int64s(sizes, sizeof sizes, t->sizes, t->ndim), origin, version, expected);
}

/* Returns a tensor with the memory of `saved` and with a grad_fn, because create_graph needs the history of saved tensors. `saved` is an alias (same
 * memory, no grad_fn) of output number `output` of the node. The grad_fn is the node itself. But if a CopySlices wraps the node, the returned tensor
 * is a view of a tensor whose grad_fn is the CopySlices. grd_failed on failure. */
static grd_tensor *with_history(struct grd_node *node, grd_tensor *saved, uint32_t output)
{
    if (!grd_dtype_is_inexact(saved->dtype))
        return saved;
    if (node->wrapper != NULL)
        return grd_copy_slices_output(node->wrapper, saved);
    grd_tensor *t = grd_new_detached(saved);
    return !grd_pending() && grd_give_history(t, grd_node_keep(node), output) && grd_tangent_share(t, saved) ? t : grd_failed;
}

/* Prepares a saved list of tensors for the gradient formula. If the tensors are the node's own outputs and this thread records operators, replaces
 * them by tensors whose grad_fn is the node. False, with the error raised, on failure, e.g. if one of the tensors was written since it was saved. */
static bool restore_list(const struct grd_saved *saved, struct grd_node *node, grd_tensors *list)
{
    for (int64_t i = 0; i < list->n; i++)
        if (!check_version(saved, node, list->data[i], saved->versions[i]))
            return false;
    if (saved->output < 0 || !grd_is_recording())
        return true;
    grd_tensor **outputs = grd_pool_alloc((size_t)list->n * sizeof *outputs);
    for (int64_t i = 0; i < list->n && !grd_pending(); i++)
        outputs[i] = with_history(node, list->data[i], (uint32_t)i);
    list->data = outputs;
    return !grd_pending();
}

bool grd_saved_restore(const struct grd_saved *saved, struct grd_node *node, grd_value *value)
{
    if (value->kind == GRD_KIND_TENSORS)
        return restore_list(saved, node, &value->v.tensors);
    if (!check_version(saved, node, value->v.tensor, saved->version))
        return false;
    if (saved->output >= 0 && grd_is_recording())
        value->v.tensor = with_history(node, value->v.tensor, (uint32_t)saved->output);
    return !grd_pending();
}

/* Adds a reference to each saved tensor for the innermost grd_scope, which keeps the tensors alive until it closes. False, with the error raised,
 * on failure. */
static bool pool_tensors(const struct grd_saved *saved, int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++) {
        const grd_value *value = &saved[i].value;
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
            ok &= grd_pool_push(grd_object_keep(value->v.tensor));
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
            ok &= grd_pool_push(grd_object_keep(value->v.tensors.data[k]));
    }
    return ok;
}

bool grd_raise_freed(void)
{
    return grd_raise(
        GRD_ERROR_RUNTIME,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
        "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.");
}

bool grd_saved_share(struct grd_node *node, const struct grd_saved *saved, int n, grd_value *ret_values)
{
    grd_spin_lock(&node->lock);
    const bool freed = node->freed;
    for (int i = 0; i < n && !freed; i++)
        ret_values[i] = saved[i].value;
    const bool ok = freed || pool_tensors(saved, n);
    grd_spin_unlock(&node->lock);
    return freed ? grd_raise_freed() : ok;
}

/* ---- Overwritten tensors ----------------------------------------------------------------------------------------------------- */
/* Looks at the saved tensor *slot, which had the version `version` when it was saved. The tensor is outdated if it lies in the storage `written` or
 * has another version now. An outdated tensor is added to outdated->items, unless it has no base, no autograd data and no owner but the node. Such a
 * tensor cannot be in a reference cycle. If the tensor is not outdated, its grad_fn and the grad_fn of its base are added to the nodes that are
 * searched for outdated tensors. False, with the error raised, on failure. */
static bool look_at(struct grd_node *node, grd_tensor **slot, uint32_t version, const struct grd_storage *written,
                    struct grd_outdated *outdated)
{
    grd_tensor *t = *slot;
    if (t == NULL)
        return true;
    if (t->storage != written && grd_version_of(t) == version)
        return grd_outdated_search_saved(outdated, t);
    if (grd_object_unique(t) && t->autograd == NULL && t->base == NULL)
        return true;
    grd_tensor *alias = grd_new_detached(t);
    return !grd_pending() && grd_outdated_add(outdated, (struct grd_outdated_item){node, slot, alias, NULL});
}

bool grd_saved_find_outdated(struct grd_node *node, struct grd_saved *saved, int n, const struct grd_storage *written,
                             struct grd_outdated *outdated)
{
    bool ok = true;
    grd_spin_lock(&node->lock);
    n = node->freed ? 0 : n; /* skip saved values that a run has taken: the thread of that run drops them */
    for (int i = 0; i < n && ok; i++) {
        grd_value *value = &saved[i].value;
        if (value->kind == GRD_KIND_TENSOR && saved[i].output < 0 && !saved[i].borrowed)
            ok = look_at(node, &value->v.tensor, saved[i].version, written, outdated);
        grd_tensor **list = (grd_tensor **)(uintptr_t)value->v.tensors.data; /* the list is in the node's own memory, hence writable */
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n && ok; k++)
            ok = look_at(node, &list[k], saved[i].versions[k], written, outdated);
    }
    grd_spin_unlock(&node->lock);
    return ok;
}
