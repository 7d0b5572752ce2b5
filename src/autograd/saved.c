/* What a node keeps for its formula, and the checks when it is taken out again.
 * Invariant: between grd_saved_begin and the release of the node nobody else drops the tensors a run works with. */
#include "autograd/node.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

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
        saved->value.v.tensor = grd_object_keep(t);
    }
    saved->value.kind = GRD_KIND_TENSOR;
    return true;
}

void grd_saved_drop(struct grd_saved *saved)
{
    grd_value value = saved->value;
    if (value.kind == GRD_KIND_TENSOR) {
        saved->value.v.tensor = NULL;
        if (!saved->borrowed)
            grd_object_drop(value.v.tensor);
    } else if (value.kind == GRD_KIND_TENSORS) {
        saved->value.v.tensors.n = 0;
        for (int64_t i = 0; i < value.v.tensors.n; i++)
            grd_object_drop(value.v.tensors.data[i]);
    } else if (value.kind == GRD_KIND_GENERATOR) {
        saved->value.v.generator = NULL;
        grd_object_drop(value.v.generator);
    }
}

static bool check_version(const struct grd_saved *saved, const struct grd_node *node, grd_tensor *t, uint32_t expected)
{
    uint32_t version = grd_version_of(t);
    if (GRD_LIKELY(version == expected))
        return true;
    char sizes[256], origin[160] = "";
    uint32_t output = 0;
    const struct grd_node *from = node;
    if (saved->output >= 0)
        output = (uint32_t)saved->output;
    else
        from = grd_recorded_grad_fn(t, &output);
    if (from != NULL)
        snprintf(origin, sizeof origin, ", which is output %u of %s,", output, from->name);
    return grd_raise(
        GRD_ERROR_RUNTIME,
        "one of the variables needed for gradient computation has been modified by an inplace operation: [%sTensor %s]%s is at "
        "version %u; expected version %u instead.",
        grd_dtype_type_name(t->dtype), grd_format_int64s(sizes, sizeof sizes, t->sizes, t->ndim), origin, version, expected);
}

bool grd_saved_restore(const struct grd_saved *saved, struct grd_node *node, grd_value *ret_value)
{
    if (saved->value.kind == GRD_KIND_TENSORS) {
        for (int64_t i = 0; i < saved->value.v.tensors.n; i++)
            if (!check_version(saved, node, saved->value.v.tensors.data[i], saved->versions[i]))
                return false;
        return true;
    }
    grd_tensor *t = saved->value.v.tensor;
    if (!check_version(saved, node, t, saved->version))
        return false;
    if (saved->output >= 0 && grd_is_recording() && grd_dtype_carries(t->dtype)) {
        grd_tensor *output = node->wrapper != NULL ? grd_slices_output(node->wrapper, t) : grd_new_detached(t);
        if (grd_pending() || (node->wrapper == NULL && !grd_give_history(output, grd_node_keep(node), (uint32_t)saved->output)))
            return false;
        ret_value->v.tensor = output;
    }
    return true;
}

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

bool grd_saved_begin(struct grd_node *node, const struct grd_saved *saved, int n, bool retain)
{
    if (!node->keeps)
        return true;
    bool ok = true;
    grd_spin_lock(&node->lock);
    bool freed = node->freed;
    if (!retain)
        node->freed = true;
    else if (!freed)
        ok = pool_tensors(saved, n);
    grd_spin_unlock(&node->lock);
    return freed ? grd_raise_freed() : ok;
}
