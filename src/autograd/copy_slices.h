/* Declares CopySlices, the grad_fn of a tensor after an operator has written it through a view. Such a node wraps the node of the operator. */
#ifndef GRD_AUTOGRAD_COPY_SLICES_H
#define GRD_AUTOGRAD_COPY_SLICES_H

#include "autograd/node.h"

/* Returns a CopySlices node, i.e. the grad_fn that the base of the view `t` gets after an operator has written `t`. It wraps `node`, the node of
 * that operator, and takes the caller's reference to `node`. self_edge: edge 0 of `node` leads to the history of `t`. NULL, with the error
 * raised, on failure. */
struct grd_node *grd_copy_slices_new(grd_tensor *t, struct grd_node *node, bool self_edge);
/* Returns a tensor with the data of `saved` and the history of the view that the wrapped operator wrote, so that it can be differentiated again.
 * `saved` is an alias, without history, of that view. The result is a view of a new tensor like the base, whose grad_fn is `wrapper`. Returns
 * grd_failed on failure. */
grd_tensor *grd_copy_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* If `node` is a CopySlices, returns the node that it wraps, i.e. the node of the operator that wrote the view. Otherwise returns `node` itself. */
struct grd_node *grd_node_inside(struct grd_node *node);

#endif
