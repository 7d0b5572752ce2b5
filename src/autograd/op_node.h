/* The graph nodes that recorded operator calls create. */
#ifndef GRD_AUTOGRAD_OP_NODE_H
#define GRD_AUTOGRAD_OP_NODE_H

#include "autograd/derivative.h"
#include "autograd/node.h"

/* The operator call that a node is created for. */
struct grd_op_call {
    const grd_op *op;
    const struct grd_derivative *derivative;
    const grd_value *args;
    grd_tensor **results; /* all results, including the elements of a list; the array belongs to the caller, who reads it again */
    int64_t nresults;
    uint64_t needs;        /* bit i: differentiable argument i requires a gradient */
    grd_tensor *self_copy; /* a copy to save in place of the tensor that is about to be overwritten, or NULL */
};

/* Returns the node of the call with one reference, owned by the caller. NULL, with the error raised, on failure. */
struct grd_node *grd_op_node_new(const struct grd_op_call *call);
/* Updates the versions of the outputs that the node saved to the version of `t`. For a node that was created before the operator wrote to `t`. */
void grd_op_node_written(struct grd_node *node, const grd_tensor *t);

/* Calls grd_tangent_share for the aliases of `t` that the node of `t` saved as its own outputs. `written`: `t` was written in place, so
 * the node of a view is that of its base. */
bool grd_tangent_share_saved(const grd_tensor *t, bool written);

#endif
