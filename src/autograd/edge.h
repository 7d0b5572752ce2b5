/* Finds the edge from a tensor to the node that receives the tensor's gradient, i.e. the tensor's grad_fn or, for a leaf, its AccumulateGrad. */
#ifndef GRD_AUTOGRAD_EDGE_H
#define GRD_AUTOGRAD_EDGE_H

#include "autograd/node.h"
#include "autograd/variable.h"

/* Writes the grad_fn of `t` to ret_node, and the index of `t` among the outputs of this node to ret_output. The caller owns the node, which is
 * NULL if `t` is a leaf. If `t` is a view whose base was written in place, first gives `t` a new grad_fn. False, with the error raised, on
 * failure. */
bool grd_current_grad_fn(grd_tensor *t, struct grd_node **ret_node, uint32_t *ret_output);

/* Sets *ret_edge to the edge along which the gradient of `t` flows. *ret_edge then owns a reference to the edge's node. This is the slow path of
 * grd_edge_find, for a leaf, a view, or a tensor that is not output 0 of its node. False, with the error raised and a NULL node, on failure. */
bool grd_edge_search(grd_tensor *t, struct grd_edge *ret_edge);

/* Sets *ret_edge to the edge along which the gradient of `t` flows. *ret_edge then owns a reference to the edge's node. `t` must require a gradient.
 * False, with the error raised and a NULL node, on failure. */
static inline bool grd_edge_find(grd_tensor *t, struct grd_edge *ret_edge)
{
    struct grd_object *object = grd_autograd_of(t);
    if (t->base != NULL || object == NULL || !grd_node_is(object))
        return grd_edge_search(t, ret_edge);
    *ret_edge = (struct grd_edge){grd_object_keep(object), 0};
    return true;
}

/* Sets *ret_edge to the edge along which the gradient of `t` flows. *ret_edge then owns a reference to the edge's node. If `t` requires no gradient,
 * the node is NULL. False, with the error raised and a NULL node, on failure. */
static inline bool grd_edge_of(grd_tensor *t, struct grd_edge *ret_edge)
{
    *ret_edge = (struct grd_edge){NULL, 0};
    return !grd_needs_grad(t) || grd_edge_find(t, ret_edge);
}

#endif
