/* What a tensor knows about gradients: its .grad, its grad_fn, and whether it requires one. */
#ifndef GRD_AUTOGRAD_VARIABLE_H
#define GRD_AUTOGRAD_VARIABLE_H

#include "autograd/node.h"
#include "autograd/spin.h"
#include "autograd/tangent.h"
#include "core/dtype.h"
#include "core/tensor.h"

/* The place of a .grad, which any thread may read and replace at any time. The lock is held while pointers are exchanged, and never while
 * anything is computed or freed. */
struct grd_grad_slot {
    grd_tensor *grad; /* owned */
    struct grd_spin lock;
};

/* A reference of the gradient, owned by the caller, or NULL. */
grd_tensor *grd_slot_get(struct grd_grad_slot *slot);
/* Replaces `expected` by `grad`, whose reference it takes, NULL included. False, with nothing done, where another gradient is there by now. */
bool grd_slot_exchange(struct grd_grad_slot *slot, const grd_tensor *expected, grd_tensor *grad);

/* A gradient kept for a tensor that is no leaf: shared by the tensor and by the hook that fills it. */
struct grd_retained {
    struct grd_object object;
    struct grd_grad_slot slot;
};

/* t->autograd is NULL, or a grd_meta, or for a tensor that is output 0 of a node and nothing else, that node itself. */
struct grd_meta {
    struct grd_object object;
    /* The history. Changed under `lock`, so that a reader takes a reference of the node together with its output. */
    struct grd_node *grad_fn; /* owned */
    uint32_t output;
    uint32_t view_version;
    struct grd_node *direct;  /* where t->autograd led before there was a meta, while that is the grad_fn; not owned */
    struct grd_node *retired; /* that node when it is no longer the grad_fn; owned: Note [Replaced histories] */
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

/* The grd_meta of a tensor, NULL when it has none; ensure makes one (NULL, with the error raised, on failure). */
static inline struct grd_meta *grd_meta_get(const grd_tensor *t)
{
    struct grd_object *object = grd_autograd_of(t);
    return object != NULL && !grd_node_is(object) ? (struct grd_meta *)object : NULL;
}
struct grd_meta *grd_meta_ensure(grd_tensor *t);
/* grad_fn and output as recorded, whatever happened to the base since; owned by the caller, or NULL. */
struct grd_node *grd_history_of(const grd_tensor *t, uint32_t *ret_output);
/* The one that Note [Replaced histories] keeps; owned by the caller, or NULL. */
struct grd_node *grd_retired_history_of(const grd_tensor *t);

/* True if the tensor has a grad_fn, as recorded. */
static inline bool grd_has_history(const grd_tensor *t)
{
    const struct grd_object *object = grd_autograd_of(t);
    return object != NULL &&
           (grd_node_is(object) || __atomic_load_n(&((const struct grd_meta *)object)->grad_fn, __ATOMIC_RELAXED) != NULL);
}

static inline bool grd_dtype_carries(uint8_t dtype)
{
    uint8_t category = grd_dtype_table[dtype].category;
    return category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX;
}

/* A view requires a gradient when what it is a view of does. */
static inline bool grd_needs_grad(const grd_tensor *t)
{
    return grd_marked_requires_grad(t) || (t->base != NULL && grd_marked_requires_grad(t->base) && grd_dtype_carries(t->dtype));
}

/* Makes the tensor, which other threads may use, output `output` of the node, whose reference it takes. False, with the error raised, on failure. */
bool grd_replace_history(grd_tensor *t, struct grd_node *node, uint32_t output);

/* The same for a new tensor, which no other thread knows yet. */
static inline bool grd_give_history(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    if (GRD_UNLIKELY(output != 0 || t->autograd != NULL))
        return grd_replace_history(t, node, output);
    node->view_version = grd_version_of(t);
    t->autograd = &node->object;
    t->keys |= GRD_AUTOGRAD_BIT;
    return true;
}

/* grd_edge_find for a leaf, a view, or a second output. */
bool grd_edge_search(grd_tensor *t, struct grd_edge *ret_edge);

/* The edge gradients of a tensor that requires one go along; it owns its node. False, and absent, on failure. */
static inline bool grd_edge_find(grd_tensor *t, struct grd_edge *ret_edge)
{
    struct grd_object *object = grd_autograd_of(t);
    if (t->base != NULL || object == NULL || !grd_node_is(object))
        return grd_edge_search(t, ret_edge);
    *ret_edge = (struct grd_edge){grd_object_keep(object), 0};
    return true;
}

/* The same for any tensor: absent (true) when it requires no gradient. Absent on failure, too. */
static inline bool grd_edge_of(grd_tensor *t, struct grd_edge *ret_edge)
{
    *ret_edge = (struct grd_edge){NULL, 0};
    return !grd_needs_grad(t) || grd_edge_find(t, ret_edge);
}

static inline bool grd_is_recording(void)
{
    return ((grd_thread.grad_off | grd_thread.exclude) & GRD_AUTOGRAD_BIT) == 0;
}

#endif
