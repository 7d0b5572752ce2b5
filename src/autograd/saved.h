/* Values that a node saved for its formula, with the versions that its tensors had then. */
#ifndef GRD_AUTOGRAD_SAVED_H
#define GRD_AUTOGRAD_SAVED_H

#include "autograd/node.h"
#include "autograd/spin.h"

struct grd_saved {
    grd_value value;
    uint32_t *versions; /* of a list of tensors */
    uint32_t version;
    int16_t output; /* of this very node, for a list the first; or -1 */
    bool borrowed;  /* the node owns the tensor in another way */
};

/* Keeps the tensor, or for one of the node's own outputs an alias without history. False, with the error raised, on failure. */
bool grd_saved_set_tensor(struct grd_saved *saved, grd_tensor *t, int output);
/* Drops a saved value that is a list, or no tensor. */
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

/* Checks the versions and makes the value as a formula wants it; own outputs get their history back when grad mode is on. */
bool grd_saved_restore(const struct grd_saved *saved, struct grd_node *node, grd_value *value);

static inline bool grd_saved_unpack(const struct grd_saved *saved, struct grd_node *node, grd_value *value)
{
    const grd_tensor *t = value->v.tensor;
    if (value->kind == GRD_KIND_TENSOR ? t == NULL || (saved->output < 0 && grd_version_of(t) == saved->version)
                                       : value->kind != GRD_KIND_TENSORS)
        return true;
    return grd_saved_restore(saved, node, value);
}
/* grd_saved_begin for a node that keeps something and goes on keeping it. */
bool grd_saved_share(struct grd_node *node, const struct grd_saved *saved, int n, grd_value *ret_values);
/* "Trying to backward through the graph a second time …". Returns false. */
bool grd_raise_freed(void);

/* Starts a run, with a copy of the values: false, with the error raised, when they are gone. Marks them gone
 * unless `retain`; otherwise puts references to the tensors in the pool, so that another thread may drop its own. */
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

/* Adds to `rebase` the tensors that lie in a storage that is about to be written, or have been written since they were saved. False, with
 * the error raised, on failure. */
bool grd_saved_find_outdated(struct grd_node *node, struct grd_saved *saved, int n, const struct grd_storage *written,
                             struct grd_rebase *rebase);
/* Puts the aliases in the place of what was found. */
void grd_saved_replace_outdated(struct grd_rebase *rebase);

#endif
