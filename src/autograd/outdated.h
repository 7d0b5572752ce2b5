/* Finds saved tensors that an in-place operator overwrites, and replaces them in their nodes by aliases, which have the same memory but no
 * grad_fn. Note [Saved and overwritten] in inplace.c says why. */
#ifndef GRD_AUTOGRAD_OUTDATED_H
#define GRD_AUTOGRAD_OUTDATED_H

#include "autograd/node.h"

/* A saved tensor that is about to be overwritten, or has been overwritten since it was saved. */
struct grd_outdated_item {
    struct grd_node *node;
    grd_tensor **slot; /* address of the node's pointer to the saved tensor */
    /* The alias that replaces *slot: a tensor with the same memory but without grad_fn. The innermost grd_scope owns it. */
    grd_tensor *alias;
    grd_tensor *replaced; /* owned; the tensor to which *slot pointed; NULL until it is replaced */
};

/* The state of a search for outdated tensors, i.e. for saved tensors that an in-place operator is about to overwrite or that were written since
 * they were saved. */
struct grd_outdated {
    struct grd_outdated_item *items; /* the outdated tensors that were found */
    struct grd_node **held;          /* owned; grad_fns of saved tensors. The search visits them, and without these references another
                                      * thread could free them */
    int64_t nitems, items_capacity, nheld, held_capacity;
    struct grd_pass *pass; /* the nodes that are searched, each of them once; valid during grd_outdated_search */
};

/* Searches `history` and all nodes that can be reached from it. Appends the outdated saved tensors to outdated->items. A saved tensor is outdated
 * if it was written since it was saved, or if it lies in the storage of `t`, which an in-place operator is about to overwrite. False, with the error
 * raised, on failure. */
bool grd_outdated_search(struct grd_outdated *outdated, struct grd_node *history, const grd_tensor *t);
/* Called during a search. Appends `item` to outdated->items. False, with MemoryError, on failure. */
bool grd_outdated_add(struct grd_outdated *outdated, struct grd_outdated_item item);
/* Called during a search. Adds the grad_fn of a saved tensor, and the grad_fn of its base, to the nodes that are searched. False, with the error
 * raised, on failure. */
bool grd_outdated_search_saved(struct grd_outdated *outdated, const grd_tensor *saved);
/* Replaces the tensors in outdated->items by their aliases, in the nodes that saved the tensors. */
void grd_outdated_replace(struct grd_outdated *outdated);
/* Frees the arrays of `outdated` and drops the replaced tensors and the nodes in `held`. The caller must not hold a lock, because freeing a tensor
 * may call functions of the user. */
void grd_outdated_end(const struct grd_outdated *outdated);

#endif
