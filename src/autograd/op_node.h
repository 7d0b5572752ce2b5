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

/* Returns the node of the call with one reference, owned by the caller. NULL, with the error raised, on failure. */
struct grd_node *grd_op_node_new(const struct grd_op_call *call);
/* Sets the version of each output that the node saved to the version of `t`. Called after an in-place operator has written `t`, because the node
 * was created before the write and has the old version. */
void grd_op_node_written(struct grd_node *node, const grd_tensor *t);

/* Called after the tangent of `t` was set. If the grad_fn of `t` has saved `t`, which is its own output, as an alias without history, gives this
 * alias the tangent, too. `written`: `t` was written in place, so if `t` is a view, the node is the grad_fn of its base. False, with the error
 * raised, on failure. */
bool grd_tangent_share_saved(const grd_tensor *t, bool written);

#endif
