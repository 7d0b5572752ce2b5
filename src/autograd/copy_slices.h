/* Declares CopySlices, the grad_fn of a tensor after an operator has written it through a view. Such a node wraps the node of the operator. */
#ifndef GRD_AUTOGRAD_COPY_SLICES_H
#define GRD_AUTOGRAD_COPY_SLICES_H

#include "autograd/node.h"

/* Returns a CopySlices node, i.e. the grad_fn that the base of the view `t` gets after an operator has written `t`. It wraps `node`, the node of
 * that operator, and takes the caller's reference to `node`. `self_edge` is true if edge 0 of `node` leads to the grad_fn that `t` had before the
 * write. NULL, with the error raised, on failure. */
struct grd_node *grd_copy_slices_new(grd_tensor *t, struct grd_node *node, bool self_edge);
/* Returns a tensor with the data of `saved` and with a grad_fn, so that it can be differentiated again. `saved` is an alias, without grad_fn, of
 * the written view; `wrapper` is the CopySlices node of the view's base. The result is a view of a new tensor that has the base's shape and the
 * grad_fn `wrapper`. Returns grd_failed on failure. */
grd_tensor *grd_copy_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* If `node` is a CopySlices, returns the node that it wraps, i.e. the node of the operator that wrote the view. Otherwise returns `node` itself. */
struct grd_node *grd_node_inside(struct grd_node *node);

#endif
