/* The autograd data of a tensor: its .grad, its grad_fn, and whether it requires a gradient. */
#ifndef GRD_AUTOGRAD_VARIABLE_H
#define GRD_AUTOGRAD_VARIABLE_H

#include "autograd/node.h"
#include "autograd/slot.h"
#include "autograd/spin.h"
#include "autograd/tangent.h"
#include "core/dtype.h"
#include "core/tensor.h"

/* t->autograd is NULL, or a grd_autograd_meta, or the node itself if the tensor is output 0 of that node and needs no other autograd data. */
struct grd_autograd_meta {
    struct grd_object object;
    /* The history. Changed under `lock`, so that a reader takes a reference of the node together with its output. */
    struct grd_node *grad_fn; /* owned */
    uint32_t output;
    uint32_t view_version;
    struct grd_node *direct;  /* the node that t->autograd was before the meta, while it still is the grad_fn; not owned */
    struct grd_node *retired; /* the node `direct` after it was replaced as grad_fn; owned: Note [Replaced histories] */
    struct grd_grad_slot slot;
    struct grd_retained *retained; /* owned; set once, and cleared by grd_detach_ */
    struct grd_node *accumulator;  /* made once, under `lock` */
    struct grd_spin lock;
    struct grd_spin accumulating; /* held for an addition to the gradient, so that none is lost */
    struct grd_tangent tangent;
};

static inline struct grd_object *grd_autograd_of(const grd_tensor *t)
{
    return __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
}

/* Returns the grd_autograd_meta of a tensor, or NULL if it has none. grd_autograd_meta_ensure creates it then (NULL, with the error raised, on failure). */
static inline struct grd_autograd_meta *grd_autograd_meta_get(const grd_tensor *t)
{
    struct grd_object *object = grd_autograd_of(t);
    return object != NULL && !grd_node_is(object) ? (struct grd_autograd_meta *)object : NULL;
}
struct grd_autograd_meta *grd_autograd_meta_ensure(grd_tensor *t);

/* Returns what retain_grad() stored for a non-leaf tensor, or NULL. */
static inline struct grd_retained *grd_retained_of(const struct grd_autograd_meta *meta)
{
    return __atomic_load_n(&meta->retained, __ATOMIC_ACQUIRE);
}

/* Returns the grad_fn and output as recorded, even if the base of a view was written since; owned by the caller, or NULL. */
struct grd_node *grd_history_of(const grd_tensor *t, uint32_t *ret_output);
/* Returns the retired node of Note [Replaced histories], owned by the caller, or NULL. */
struct grd_node *grd_retired_history_of(const grd_tensor *t);

/* True if a grad_fn is recorded for the tensor. */
static inline bool grd_has_history(const grd_tensor *t)
{
    const struct grd_object *object = grd_autograd_of(t);
    return object != NULL &&
           (grd_node_is(object) || __atomic_load_n(&((const struct grd_autograd_meta *)object)->grad_fn, __ATOMIC_RELAXED) != NULL);
}

/* True if the tensor requires a gradient. A view does so if its base does. */
static inline bool grd_needs_grad(const grd_tensor *t)
{
    return grd_marked_requires_grad(t) || (t->base != NULL && grd_marked_requires_grad(t->base) && grd_dtype_carries(t->dtype));
}

/* Makes the tensor, which other threads may use, output `output` of the node, whose reference it takes. False, with the error raised, on failure. */
bool grd_replace_history(grd_tensor *t, struct grd_node *node, uint32_t output);

/* Does what grd_replace_history does, for a new tensor that no other thread can see yet. */
static inline bool grd_give_history(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    if (GRD_UNLIKELY(output != 0 || t->autograd != NULL))
        return grd_replace_history(t, node, output);
    node->view_version = grd_version_of(t);
    t->autograd = &node->object;
    t->keys |= GRD_AUTOGRAD_BIT;
    return true;
}

/* Returns the AccumulateGrad of a leaf, creating it if there is none. The leaf owns it. NULL, with the error raised, on failure. */
struct grd_node *grd_accumulator_of(grd_tensor *leaf);

/* True if this thread records operators: grad mode is on and the AUTOGRAD key is not excluded. */
static inline bool grd_is_recording(void)
{
    return ((grd_thread.grad_off | grd_thread.exclude) & GRD_AUTOGRAD_BIT) == 0;
}

#endif
