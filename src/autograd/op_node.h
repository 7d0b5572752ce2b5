/* Declares the functions that create the graph nodes of recorded operator calls. */
#ifndef GRD_AUTOGRAD_OP_NODE_H
#define GRD_AUTOGRAD_OP_NODE_H

#include "autograd/derivative.h"
#include "autograd/node.h"

/* Describes the operator call for which a node is created. */
struct grd_op_call {
    const grd_op *op;
    const struct grd_derivative *derivative;
    const grd_value *args;
    grd_tensor **results; /* all results, including the elements of a list; the array belongs to the caller, and recording may replace an
                           * element */
    int64_t nresults;
    uint64_t needs;        /* bit i: differentiable argument i requires a gradient */
    grd_tensor *self_copy; /* a copy of the tensor that the operator is about to overwrite, to be saved instead of the tensor; or NULL */
};

/* Returns a new node for the call, owned by the caller. NULL, with the error raised, on failure. */
struct grd_node *grd_op_node_new(const struct grd_op_call *call);
/* Called after an in-place operator has written `t`. Updates the versions in the node, which was created before the write: each saved output gets
 * the present version of `t`. */
void grd_op_node_written(struct grd_node *node, const grd_tensor *t);

/* Called after the tangent of `t` was set. `t` is an output of its grad_fn, which may have saved an alias of `t`. If so, gives the alias the
 * tangent of `t`. `written`: `t` was written in place. If `t` was written and is a view, uses the grad_fn of its base instead. False, with the
 * error raised, on failure. */
bool grd_tangent_share_saved(const grd_tensor *t, bool written);

#endif
