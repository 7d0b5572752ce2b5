/* Searches the graph for saved tensors that an in-place operator overwrites, so that they can be replaced by aliases without grad_fn. Note [Saved
 * and overwritten] in inplace.c says why. */
#include "autograd/outdated.h"

#include "autograd/pass.h"
#include "autograd/spin.h"
#include "autograd/variable.h"
#include "base/memory.h"
#include "core/tensor.h"

/* True if a node may have saved the tensor or its base. False if no tensor with this storage was ever saved. Also false if the caller is the only
 * owner of the tensor, and the tensor is the only owner of its base (if it has one). */
static bool may_be_saved(const grd_tensor *t)
{
    if (!grd_was_saved(t))
        return false;
    return !grd_object_unique(t) || (t->base != NULL && !grd_object_owned_as(t->base, GRD_VIEW_WEIGHT));
}

/* Adds the grad_fn of the tensor to the nodes that are searched. Also adds a former grad_fn that other threads may still be reading (Note [Replaced
 * histories]). False, with the error raised, on failure. */
static bool search_histories(struct grd_outdated *outdated, const grd_tensor *t)
{
    uint32_t output;
    for (int retired = 0; retired < 2 && grd_has_history(t); retired++) {
        if (!grd_reserve(&outdated->held, outdated->nheld + 1, &outdated->held_capacity, sizeof *outdated->held))
            return false;
        struct grd_node *node = retired ? grd_retired_history_of(t) : grd_history_of(t, &output);
        if (node == NULL)
            continue;
        outdated->held[outdated->nheld++] = node;
        if (grd_pass_enter(outdated->pass, node) == GRD_NO_ENTRY)
            return false;
    }
    return true;
}

bool grd_outdated_search_saved(struct grd_outdated *outdated, const grd_tensor *saved)
{
    return search_histories(outdated, saved) && (saved->base == NULL || search_histories(outdated, saved->base));
}

/* Searches all nodes of the pass for outdated saved tensors (class->find_outdated), including nodes that are added to the pass during the search.
 * False, with the error raised, on failure. */
static bool search_nodes(struct grd_outdated *outdated, const struct grd_storage *written)
{
    struct grd_pass *pass = outdated->pass;
    for (int64_t i = 0; i < pass->n; i++) {
        struct grd_node *node = pass->entries[i].node;
        if (node->nedges > 0 && pass->entries[i].from == i && !grd_pass_discover(pass, (int32_t)i))
            return false;
        if (node->class->find_outdated != NULL && !node->class->find_outdated(node, written, outdated))
            return false;
    }
    return true;
}

bool grd_outdated_search(struct grd_outdated *outdated, struct grd_node *history, const grd_tensor *t)
{
    if (!may_be_saved(t))
        return true;
    struct grd_pass pass;
    grd_pass_init(&pass, false, false);
    outdated->pass = &pass;
    const bool ok = grd_pass_enter(&pass, history) != GRD_NO_ENTRY && search_nodes(outdated, t->storage);
    grd_pass_done(&pass, true);
    return ok;
}

bool grd_outdated_add(struct grd_outdated *outdated, struct grd_outdated_item item)
{
    if (!grd_reserve(&outdated->items, outdated->nitems + 1, &outdated->items_capacity, sizeof item))
        return false;
    outdated->items[outdated->nitems++] = item;
    return true;
}

void grd_outdated_replace(struct grd_outdated *outdated)
{
    for (int64_t i = 0; i < outdated->nitems; i++) {
        struct grd_outdated_item *item = &outdated->items[i];
        grd_spin_lock(&item->node->lock);
        if (!item->node->freed) {
            item->replaced = *item->slot;
            *item->slot = grd_object_keep(item->alias);
        }
        grd_spin_unlock(&item->node->lock);
    }
}

void grd_outdated_end(const struct grd_outdated *outdated)
{
    for (int64_t i = 0; i < outdated->nitems; i++)
        grd_object_drop(outdated->items[i].replaced);
    for (int64_t i = 0; i < outdated->nheld; i++)
        grd_node_drop(outdated->held[i]);
    grd_free(outdated->items, (size_t)outdated->items_capacity * sizeof *outdated->items);
    grd_free(outdated->held, (size_t)outdated->held_capacity * sizeof *outdated->held);
}
