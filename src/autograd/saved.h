/* Values that a node saved for its backward formula, with the versions of the tensors at that time. */
#ifndef GRD_AUTOGRAD_SAVED_H
#define GRD_AUTOGRAD_SAVED_H

#include "autograd/node.h"
#include "autograd/spin.h"

struct grd_saved {
    grd_value value;
    uint32_t *versions; /* for a list of tensors: the version of each */
    uint32_t version;
    int16_t output; /* index of the output of this node that is saved, for a list the first; -1 if it is no output */
    bool borrowed;  /* the reference is not owned here: the node keeps the tensor alive in another way */
};

/* Saves a reference to the tensor, or an alias without history if it is one of the node's own outputs. False, with the error raised, on failure. */
bool grd_saved_set_tensor(struct grd_saved *saved, grd_tensor *t, int output);
/* Drops a saved list of tensors or a saved generator. */
void grd_saved_drop_other(struct grd_saved *saved);

static inline void grd_saved_drop(struct grd_saved *saved)
{
    if (GRD_UNLIKELY(saved->value.kind == GRD_KIND_TENSORS || saved->value.kind == GRD_KIND_GENERATOR)) {
        grd_saved_drop_other(saved);
    } else if (saved->value.kind == GRD_KIND_TENSOR) {
        grd_tensor *t = saved->value.v.tensor;
        saved->value.v.tensor = NULL;
        if (!saved->borrowed)
            grd_object_drop(t);
    }
}

/* Checks the versions and writes the value that the formula reads. If grad mode is on, the node's own outputs get their grad_fn back. False, with the
 * error raised, on failure. */
bool grd_saved_restore(const struct grd_saved *saved, struct grd_node *node, grd_value *value);

static inline bool grd_saved_unpack(const struct grd_saved *saved, struct grd_node *node, grd_value *value)
{
    const grd_tensor *t = value->v.tensor;
    if (value->kind == GRD_KIND_TENSOR ? t == NULL || (saved->output < 0 && grd_version_of(t) == saved->version)
                                       : value->kind != GRD_KIND_TENSORS)
        return true;
    return grd_saved_restore(saved, node, value);
}
/* grd_saved_begin for a node with saved values that it keeps after the run (retain_graph). */
bool grd_saved_share(struct grd_node *node, const struct grd_saved *saved, int n, grd_value *ret_values);
/* "Trying to backward through the graph a second time …". Returns false. */
bool grd_raise_freed(void);

/* Starts a run of the node and copies the saved values to ret_values. False, with RuntimeError, if they were freed. Without `retain` marks them as
 * freed; with `retain` the pool gets references to the tensors, so that another thread may free them meanwhile. */
static inline bool grd_saved_begin(struct grd_node *node, const struct grd_saved *saved, int n, bool retain, grd_value *ret_values)
{
    if (node->keeps && retain)
        return grd_saved_share(node, saved, n, ret_values);
    if (node->keeps) {
        grd_spin_lock(&node->lock);
        const bool freed = node->freed;
        node->freed = true;
        grd_spin_unlock(&node->lock);
        if (GRD_UNLIKELY(freed))
            return grd_raise_freed();
    }
    for (int i = 0; i < n; i++)
        ret_values[i] = saved[i].value;
    return true;
}

/* Adds to `outdated` the saved tensors whose storage is about to be written, and those that were written since they were saved. False, with
 * the error raised, on failure. */
bool grd_saved_find_outdated(struct grd_node *node, struct grd_saved *saved, int n, const struct grd_storage *written,
                             struct grd_outdated *outdated);

#endif
