/* Nodes of operators: what a recorded call leaves in the graph. */
#ifndef GRD_AUTOGRAD_OP_NODE_H
#define GRD_AUTOGRAD_OP_NODE_H

#include "autograd/derivative.h"
#include "autograd/node.h"

/* A call that is recorded. */
struct grd_op_call {
    const grd_op *op;
    const struct grd_derivative *derivative;
    const grd_value *args;
    grd_tensor **results; /* all, of a list too; of the caller, who reads them again */
    int64_t nresults;
    uint64_t needs;        /* differentiable arguments that require gradients */
    grd_tensor *self_copy; /* saved instead of the tensor that is about to be overwritten; NULL: none is */
};

/* Its node, with one reference. NULL, with the error raised, on failure. */
struct grd_node *grd_op_node_new(const struct grd_op_call *call);
/* The node was made, and its output saved, before the operator wrote to `t`. */
void grd_op_node_written(struct grd_node *node, const grd_tensor *t);

#endif
