/* CopySlices: the node of a base that an operator wrote through a view. It wraps the node of the operator. */
#ifndef GRD_AUTOGRAD_COPY_SLICES_H
#define GRD_AUTOGRAD_COPY_SLICES_H

#include "autograd/node.h"

/* Returns a CopySlices for the base of the view `t` that wraps `node`, the node of the operator that wrote `t`. Takes the reference to `node`.
 * self_edge: edge 0 of `node` leads to the history of `t`. NULL, with the error raised, on failure. */
struct grd_node *grd_copy_slices_new(grd_tensor *t, struct grd_node *node, bool self_edge);
/* Returns `saved`, an alias of the view that the wrapped node wrote, with the history of that view. */
grd_tensor *grd_copy_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* Returns the node that a CopySlices wraps; any other node itself. */
struct grd_node *grd_node_inside(struct grd_node *node);

#endif
