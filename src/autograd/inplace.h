/* Writing in place: what is refused, and what becomes of histories. Note [Views and in-place] is in inplace.c. */
#ifndef GRD_AUTOGRAD_INPLACE_H
#define GRD_AUTOGRAD_INPLACE_H

#include "autograd/node.h"

/* The rules for writing to a tensor while an input of the operator requires a gradient. */
bool grd_check_inplace(grd_tensor *t);
/* A tensor that a history saved and that is overwritten: Note [Saved and overwritten]. */
struct grd_outdated {
    struct grd_node *node;
    grd_tensor **slot, *alias; /* where it is saved; what is to be there, pooled */
    grd_tensor *replaced;      /* what was there; owned */
};

/* What becomes of histories when an operator has written in place. */
struct grd_rebase {
    struct grd_node *history; /* of the tensor, or of the base it is a view of; owned */
    uint32_t output;
    struct grd_outdated *outdated;
    struct grd_node **held; /* histories of saved tensors, kept while they are searched */
    int64_t noutdated, outdated_capacity, nheld, held_capacity;
    struct grd_pass *pass; /* of the search */
    uint64_t number;       /* of histories that had been replaced before the search */
};

/* Before an operator writes over `t`, output `output` of its node: wraps the node into what the history of `t` (or of its base) becomes.
 * Takes the reference of `node`; false on failure. self_edge: the node's edge 0 is the one of `t`. */
bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge);
/* After it has: makes the prepared node the history. */
bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t);
/* After it has not. */
void grd_rebase_abandon(const struct grd_rebase *rebase);
/* Searches the history of a saved tensor too. False, with the error raised, on failure. */
bool grd_rebase_search(struct grd_rebase *rebase, const grd_tensor *saved);
/* For a node inside a CopySlices: `saved`, an alias of the view it wrote, with the view's history. */
grd_tensor *grd_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* Rewrites the grad_fn of a view whose base was written since. False, with the error raised, where that is forbidden. */
bool grd_view_refresh(grd_tensor *view);
/* A view of `whole`, which has the sizes and strides of the base of `view`, at the place of that; made by operators. */
grd_tensor *grd_view_of_whole(grd_tensor *whole, const grd_tensor *view);
/* The node that a CopySlices is around; others themselves. */
struct grd_node *grd_node_inside(struct grd_node *node);
void grd_views_init(void);

#endif
