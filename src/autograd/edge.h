/* Edges from a tensor to the node that receives its gradient. */
#ifndef GRD_AUTOGRAD_EDGE_H
#define GRD_AUTOGRAD_EDGE_H

#include "autograd/node.h"
#include "autograd/variable.h"

/* Writes the grad_fn of `t`, owned by the caller, and its output; NULL if `t` is a leaf. The grad_fn of a view is refreshed first if its base was
 * written. False, with the error raised, on failure. */
bool grd_current_grad_fn(grd_tensor *t, struct grd_node **ret_node, uint32_t *ret_output);

/* The slow path of grd_edge_find: for a leaf, a view, or a tensor that is not output 0 of its node. */
bool grd_edge_search(grd_tensor *t, struct grd_edge *ret_edge);

/* Writes the edge along which the gradient of `t`, which requires one, flows. The edge owns its node. False, with the error raised and a NULL node,
 * on failure. */
static inline bool grd_edge_find(grd_tensor *t, struct grd_edge *ret_edge)
{
    struct grd_object *object = grd_autograd_of(t);
    if (t->base != NULL || object == NULL || !grd_node_is(object))
        return grd_edge_search(t, ret_edge);
    *ret_edge = (struct grd_edge){grd_object_keep(object), 0};
    return true;
}

/* Does what grd_edge_find does for any tensor: the node is NULL if `t` requires no gradient (true), and on failure (false). */
static inline bool grd_edge_of(grd_tensor *t, struct grd_edge *ret_edge)
{
    *ret_edge = (struct grd_edge){NULL, 0};
    return !grd_needs_grad(t) || grd_edge_find(t, ret_edge);
}

#endif
