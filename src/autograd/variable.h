/* Declares the autograd data of a tensor: its .grad, its grad_fn, and whether it requires a gradient. */
#ifndef GRD_AUTOGRAD_VARIABLE_H
#define GRD_AUTOGRAD_VARIABLE_H

#include "autograd/node.h"
#include "autograd/slot.h"
#include "autograd/spin.h"
#include "autograd/tangent.h"
#include "core/dtype.h"
#include "core/tensor.h"

/* The autograd data of a tensor. t->autograd is NULL if the tensor has none. t->autograd is the grad_fn itself if the tensor is output 0 of this node
 * and has no other data. Otherwise t->autograd is a grd_autograd_meta. */
struct grd_autograd_meta {
    struct grd_object object;
    /* The five members below change only under `lock`, so that a reader gets a grad_fn and the output number that belongs to it. */
    struct grd_node *grad_fn; /* owned; NULL for a leaf */
    uint32_t output;          /* index of the tensor among the outputs of grad_fn */
    uint32_t view_version;    /* if the tensor is a view: the version of its storage when grad_fn was set */
    /* The node to which t->autograd pointed before it pointed to this object; NULL after the tensor got another grad_fn. Not owned. */
    struct grd_node *direct;
    /* The former value of `direct`, set when the tensor got another grad_fn. Owned, because another thread may still be reading the node (Note
     * [Replaced histories]). */
    struct grd_node *retired;
    struct grd_grad_slot slot;     /* the .grad of a leaf */
    struct grd_retained *retained; /* the .grad of a non-leaf tensor after retain_grad(); owned, set once and cleared by grd_detach_ */
    struct grd_node *accumulator;  /* the AccumulateGrad of a leaf; NULL until it is needed */
    struct grd_spin lock;
    struct grd_spin accumulating; /* held during an addition to .grad, so that two threads do not add to the same old value */
    struct grd_tangent tangent;
};

/* Reads t->autograd atomically, because another thread may be setting it. */
static inline struct grd_object *grd_autograd_of(const grd_tensor *t)
{
    return __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
}

/* Returns the grd_autograd_meta of a tensor, or NULL if it has none. */
static inline struct grd_autograd_meta *grd_autograd_meta_get(const grd_tensor *t)
{
    struct grd_object *object = grd_autograd_of(t);
    return object != NULL && !grd_node_is(object) ? (struct grd_autograd_meta *)object : NULL;
}
/* Returns the grd_autograd_meta of a tensor, and creates it if there is none. NULL, with the error raised, on failure. */
struct grd_autograd_meta *grd_autograd_meta_ensure(grd_tensor *t);

/* Returns meta->retained, which holds the .grad of a non-leaf tensor; NULL if retain_grad() was not called on the tensor. */
static inline struct grd_retained *grd_retained_of(const struct grd_autograd_meta *meta)
{
    return __atomic_load_n(&meta->retained, __ATOMIC_ACQUIRE);
}

/* Returns the grad_fn of `t`, owned by the caller, or NULL for a leaf, and writes the index of `t` among the outputs of this node to ret_output.
 * If the base of a view was written in place, the grad_fn of the view may be out of date. grd_view_refresh updates it. */
struct grd_node *grd_history_of(const grd_tensor *t, uint32_t *ret_output);
/* Returns a former grad_fn of `t` that is kept alive because another thread may still be reading it; NULL if there is none. The caller owns the
 * reference. See Note [Replaced histories] in variable.c. */
struct grd_node *grd_retired_history_of(const grd_tensor *t);

/* True if the tensor has a grad_fn. If the base of a view was written in place, the grad_fn of the view may be out of date; it is not updated
 * here. */
static inline bool grd_has_history(const grd_tensor *t)
{
    const struct grd_object *object = grd_autograd_of(t);
    return object != NULL &&
           (grd_node_is(object) || __atomic_load_n(&((const struct grd_autograd_meta *)object)->grad_fn, __ATOMIC_RELAXED) != NULL);
}

/* True if the tensor requires a gradient. A view also requires a gradient if its base requires one. */
static inline bool grd_needs_grad(const grd_tensor *t)
{
    return grd_marked_requires_grad(t) || (t->base != NULL && grd_marked_requires_grad(t->base) && grd_dtype_is_inexact(t->dtype));
}

/* Makes `node` the grad_fn of `t`, a tensor that other threads may use; `t` becomes output number `output` of the node. Takes the reference to
 * `node`. False, with the error raised, on failure. */
bool grd_replace_history(grd_tensor *t, struct grd_node *node, uint32_t output);

/* Makes `node` the grad_fn of `t`, a new tensor that no other thread can see yet; `t` becomes output number `output` of the node. Takes the
 * reference to `node`. Faster than grd_replace_history. False, with the error raised, on failure. */
static inline bool grd_give_history(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    if (GRD_UNLIKELY(output != 0 || t->autograd != NULL))
        return grd_replace_history(t, node, output);
    node->view_version = grd_version_of(t);
    t->autograd = &node->object;
    t->keys |= GRD_AUTOGRAD_BIT;
    return true;
}

/* Returns the AccumulateGrad of a leaf. The leaf owns the node. Creates the node if there is none; otherwise updates the rank and sizes of the node's
 * output. This is the slow path of grd_accumulator_of. NULL, with the error raised, on failure. */
struct grd_node *grd_accumulator_renew(grd_tensor *leaf);

/* Returns the AccumulateGrad of a leaf, and creates it if there is none. The leaf owns the node. NULL, with the error raised, on failure. */
static inline struct grd_node *grd_accumulator_of(grd_tensor *leaf)
{
    const struct grd_autograd_meta *meta = grd_autograd_meta_get(leaf);
    struct grd_node *node = meta != NULL ? __atomic_load_n(&meta->accumulator, __ATOMIC_ACQUIRE) : NULL;
    return node != NULL && node->outputs[0].ndim == leaf->ndim ? node : grd_accumulator_renew(leaf);
}

/* True if this thread records operators: grad mode is on and the AUTOGRAD key is not excluded. */
static inline bool grd_is_recording(void)
{
    return ((grd_thread.grad_off | grd_thread.exclude) & GRD_AUTOGRAD_BIT) == 0;
}

#endif
