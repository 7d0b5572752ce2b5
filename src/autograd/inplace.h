/* In-place operators: which writes are refused, and how histories are rebased afterwards. Note [Views and in-place] is in inplace.c. */
#ifndef GRD_AUTOGRAD_INPLACE_H
#define GRD_AUTOGRAD_INPLACE_H

#include "autograd/node.h"

/* True if `t` may be written while an input of the operator requires a gradient. False, with RuntimeError, if not. */
bool grd_check_inplace(grd_tensor *t);
/* A tensor that a node saved and that is about to be overwritten: Note [Saved and overwritten]. */
struct grd_outdated {
    struct grd_node *node;
    grd_tensor **slot, *alias; /* where the node saved the tensor; its replacement, pooled */
    grd_tensor *replaced;      /* the tensor that was in the slot; owned */
};

/* The prepared change of histories for one in-place call: prepared before the operator runs, then committed or abandoned. */
struct grd_rebase {
    struct grd_node *history; /* new history of the tensor, or of its base if it is a view; owned */
    uint32_t output;
    struct grd_outdated *outdated;
    struct grd_node **held; /* owned histories of saved tensors, kept alive during the search */
    int64_t noutdated, outdated_capacity, nheld, held_capacity;
    struct grd_pass *pass; /* the pass that the search uses */
    uint64_t number;       /* number of histories that had been replaced before the search */
};

/* Called before an operator overwrites `t`, which becomes output `output` of `node`. Prepares the new history of `t` (or of its base), which is
 * `node` or a node that wraps it. Takes the reference to `node`. False on failure. self_edge: edge 0 of the node is the edge of `t`. */
bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge);
/* Called after the operator has written: makes the prepared node the history of `t`. */
bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t);
/* Called if the operator failed: drops the prepared node. */
void grd_rebase_abandon(const struct grd_rebase *rebase);
/* Adds the history of a saved tensor to the search. False, with the error raised, on failure. */
bool grd_rebase_search(struct grd_rebase *rebase, const grd_tensor *saved);
/* For a node inside a CopySlices: returns `saved`, an alias of the view that the node wrote, with the history of that view. */
grd_tensor *grd_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* Regenerates the grad_fn of a view whose base was written in place since. False, with RuntimeError, where that is forbidden. */
bool grd_view_refresh(grd_tensor *view);
/* Returns a view of `whole` with the sizes, strides and offset of `view`, made by operators. `whole` has the sizes and strides of the base
 * of `view`. */
grd_tensor *grd_view_of_whole(grd_tensor *whole, const grd_tensor *view);
/* Returns the node that a CopySlices wraps; any other node itself. */
struct grd_node *grd_node_inside(struct grd_node *node);
void grd_views_init(void);

#endif
