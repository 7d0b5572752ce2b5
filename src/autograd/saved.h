/* Saves values in a node for its backward formula, together with the versions that saved tensors have at that time. */
#ifndef GRD_AUTOGRAD_SAVED_H
#define GRD_AUTOGRAD_SAVED_H

#include "autograd/node.h"
#include "autograd/spin.h"

/* One saved value. `version` and `output` are set only for tensors, `versions` only for lists of tensors. */
struct grd_saved {
    grd_value value;
    uint32_t *versions; /* for a list: the version that each tensor had when it was saved */
    uint32_t version;   /* for a tensor: the version that it had when it was saved */
    int16_t output;     /* index of the tensor among the outputs of this node (0 for the list of all outputs); -1 if it is not an output */
    bool borrowed;      /* the node owns no reference to the tensor, because one of its edges keeps the tensor alive */
};

/* Saves a reference to the tensor. If the tensor is the node's own output number `output`, saves an alias (same memory, but no grad_fn) instead;
 * `output` is -1 for other tensors. False, with the error raised, on failure. */
bool grd_saved_set_tensor(struct grd_saved *saved, grd_tensor *t, int output);
/* Drops a saved list of tensors or a saved generator. */
void grd_saved_drop_other(struct grd_saved *saved);

/* Drops the references of a saved value. */
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

/* Prepares *value, a copy of the saved value, for the gradient formula. If this thread records operators, replaces outputs of the node itself by
 * tensors whose grad_fn is the node. False, with the error raised, on failure, e.g. if a tensor was written since it was saved. */
bool grd_saved_restore(const struct grd_saved *saved, struct grd_node *node, grd_value *value);

/* The fast path of grd_saved_restore. Returns at once for a value that is neither a tensor nor a list of tensors, and for a saved argument that was
 * not written since it was saved. Otherwise calls grd_saved_restore. */
static inline bool grd_saved_unpack(const struct grd_saved *saved, struct grd_node *node, grd_value *value)
{
    const grd_tensor *t = value->v.tensor;
    if (value->kind == GRD_KIND_TENSOR ? t == NULL || (saved->output < 0 && grd_version_of(t) == saved->version)
                                       : value->kind != GRD_KIND_TENSORS)
        return true;
    return grd_saved_restore(saved, node, value);
}
/* For a run that retains the graph: copies the n saved values of a node to ret_values. Gives the innermost grd_scope a reference to each saved
 * tensor, which keeps the tensors alive during the run. False, with the error raised, on failure, e.g. if the saved values were freed. */
bool grd_saved_share(struct grd_node *node, const struct grd_saved *saved, int n, grd_value *ret_values);
/* Raises the RuntimeError "Trying to backward through the graph a second time ...". Returns false. */
bool grd_raise_freed(void);

/* Starts a run of the node: copies its n saved values to ret_values. False, with RuntimeError, if the values were freed. Without `retain` the values
 * count as freed from now on. With `retain` the innermost grd_scope gets a reference to each saved tensor, because another thread may free the
 * saved values during the run. */
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

/* Adds to `outdated` the saved tensors in the storage `written`, which is about to be overwritten, and the saved tensors that were written since they
 * were saved. False, with the error raised, on failure. */
bool grd_saved_find_outdated(struct grd_node *node, struct grd_saved *saved, int n, const struct grd_storage *written,
                             struct grd_outdated *outdated);

#endif
