/* Saved tensors that a write in place makes outdated, and their replacement: Note [Saved and overwritten] in inplace.c. */
#ifndef GRD_AUTOGRAD_OUTDATED_H
#define GRD_AUTOGRAD_OUTDATED_H

#include "autograd/node.h"

/* A tensor that a node saved and that is about to be overwritten, or has been. */
struct grd_outdated_item {
    struct grd_node *node;
    grd_tensor **slot;    /* the pointer in the node that holds the tensor */
    grd_tensor *alias;    /* pooled; without history: replaces the tensor in the slot */
    grd_tensor *replaced; /* owned; the tensor that was in the slot, NULL until it is replaced */
};

/* The result of a search for outdated tensors, and what keeps it valid. */
struct grd_outdated {
    struct grd_outdated_item *items;
    struct grd_node **held; /* owned; histories of saved tensors, which live at least until the search ends */
    int64_t nitems, items_capacity, nheld, held_capacity;
    struct grd_pass *pass; /* visits each node of the histories once; valid during grd_outdated_search */
};

/* Searches the graph that ends at `history` for saved tensors that the writing of `t` makes outdated, and adds them. False, with the error raised, on
 * failure. */
bool grd_outdated_search(struct grd_outdated *outdated, struct grd_node *history, const grd_tensor *t);
/* Called during a search: adds one tensor to the result. False, with MemoryError, on failure. */
bool grd_outdated_add(struct grd_outdated *outdated, struct grd_outdated_item item);
/* Called during a search: searches the histories of a saved tensor and of its base too. False, with the error raised, on failure. */
bool grd_outdated_search_saved(struct grd_outdated *outdated, const grd_tensor *saved);
/* Replaces the tensors that were found by their aliases. */
void grd_outdated_replace(struct grd_outdated *outdated);
/* Frees the arrays and drops what they own. Called without any lock held: freeing a tensor may call functions of the user. */
void grd_outdated_end(const struct grd_outdated *outdated);

#endif
