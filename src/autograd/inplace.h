/* Checks in-place operators, and changes the history of the tensors that they overwrite. Note [Views and in-place] is in inplace.c. */
#ifndef GRD_AUTOGRAD_INPLACE_H
#define GRD_AUTOGRAD_INPLACE_H

#include "autograd/node.h"
#include "autograd/outdated.h"

/* True if `t` may be written while an input of the operator requires a gradient. False, with RuntimeError, if not. */
bool grd_check_inplace(grd_tensor *t);

/* The change of history for one in-place call. It is prepared before the operator runs, and committed or abandoned afterwards. */
struct grd_rebase {
    struct grd_node *history;     /* owned; the new grad_fn of the tensor, or of its base if it is a view */
    uint32_t output;              /* the tensor becomes output number `output` of `history` */
    struct grd_outdated outdated; /* the saved tensors that lie in the memory which the call overwrites */
    uint64_t number;              /* number of histories that had been replaced before the search for outdated tensors */
};

/* Called before an operator overwrites `t`, which becomes output number `output` of `node`. Prepares the new grad_fn: `node`, or if `t` is a view a
 * CopySlices that wraps `node` and becomes the grad_fn of the base. Takes the reference to `node`. self_edge: edge 0 of `node` leads to the present
 * grad_fn of `t`. False, with the error raised, on failure. */
bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge);
/* Called after the operator has written. Makes the prepared node the grad_fn of `t`, or of its base if `t` is a view. False, with the error raised,
 * on failure. */
bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t);
/* Called instead of grd_rebase_commit if the operator failed. Drops the prepared node. */
void grd_rebase_abandon(const struct grd_rebase *rebase);
/* Makes fork wait until no thread holds the lock of inplace.c. Called once, when the library is loaded. */
void grd_inplace_init(void);

#endif
