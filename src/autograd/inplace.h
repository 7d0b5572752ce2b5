/* Checks in-place operators, and changes the history of the tensors that they overwrite. Note [Views and in-place] is in inplace.c. */
#ifndef GRD_AUTOGRAD_INPLACE_H
#define GRD_AUTOGRAD_INPLACE_H

#include "autograd/node.h"
#include "autograd/outdated.h"

/* True if a recorded in-place operator may overwrite `t`. False, with RuntimeError, if not, e.g. if `t` is a leaf that requires a gradient. */
bool grd_check_inplace(grd_tensor *t);

/* The change of a tensor's grad_fn by one in-place call. It is prepared before the operator runs, and committed or abandoned afterwards. */
struct grd_rebase {
    struct grd_node *history;     /* owned; the new grad_fn of the tensor, or of its base if it is a view */
    uint32_t output;              /* the tensor becomes output number `output` of `history` */
    struct grd_outdated outdated; /* the saved tensors that lie in the memory which the call overwrites */
    /* number of in-place calls that had replaced a grad_fn when the search for outdated tensors began (`replaced` in inplace.c) */
    uint64_t number;
};

/* Called before an operator overwrites `t`. Prepares `node` as the new grad_fn of `t`, which becomes output number `output` of `node`. If `t` is a
 * view, prepares a CopySlices around `node` as the new grad_fn of its base. self_edge: edge 0 of `node` leads to the present grad_fn of `t`.
 * Takes the reference to `node`. False, with the error raised, on failure. */
bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge);
/* Called after the operator has written. Makes the prepared node the grad_fn of `t`, or of its base if `t` is a view. False, with the error raised,
 * on failure. */
bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t);
/* Called instead of grd_rebase_commit if the operator failed. Drops the prepared node. */
void grd_rebase_abandon(const struct grd_rebase *rebase);
/* Makes fork wait until no thread holds the lock of inplace.c. Called once, when the library is loaded. */
void grd_inplace_init(void);

#endif
