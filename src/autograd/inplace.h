/* In-place operators: which writes are refused, and the new history of what was written. Note [Views and in-place] is in inplace.c. */
#ifndef GRD_AUTOGRAD_INPLACE_H
#define GRD_AUTOGRAD_INPLACE_H

#include "autograd/node.h"
#include "autograd/outdated.h"

/* True if `t` may be written while an input of the operator requires a gradient. False, with RuntimeError, if not. */
bool grd_check_inplace(grd_tensor *t);

/* The change of history for one in-place call: prepared before the operator runs, then committed or abandoned. */
struct grd_rebase {
    struct grd_node *history; /* owned; new history of the tensor, or of its base if it is a view */
    uint32_t output;          /* the output of `history` that the tensor becomes */
    struct grd_outdated outdated;
    uint64_t number; /* number of histories that had been replaced before the search for outdated tensors */
};

/* Called before an operator overwrites `t`, which becomes output `output` of `node`. Prepares the new history of `t` (or of its base), which is
 * `node` or a node that wraps it. Takes the reference to `node`. self_edge: edge 0 of the node is the edge of `t`. False, with the error raised, on
 * failure. */
bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge);
/* Called after the operator has written: makes the prepared node the history of `t`. False, with the error raised, on failure. */
bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t);
/* Called if the operator failed: drops the prepared node. */
void grd_rebase_abandon(const struct grd_rebase *rebase);
void grd_inplace_init(void);

#endif
