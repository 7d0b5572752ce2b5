/* Prepares a backward pass: finds the nodes that can be reached from the outputs, and counts the edges that lead to each node. Also adds up the
 * gradients that arrive at each output of a node while the pass runs. The invariants are in pass.h. */
#include "autograd/gradient.h"
#include "autograd/pass.h"
#include "core/tensor.h"
#include "gen/uses/autograd/pass.h"

#include <string.h>

/* ---- The table of nodes ------------------------------------------------------------------------------------------------------ */
void grd_pass_clear(struct grd_pass *pass, bool ok)
{
    for (int64_t i = 0; !ok && i < pass->n; i++)
        grd_entry_drop_slots(&pass->entries[i]);
    if (pass->entries != pass->inline_entries) {
        grd_free(pass->entries, (size_t)pass->capacity * sizeof *pass->entries);
        grd_free(pass->table, 2 * (size_t)pass->capacity * sizeof *pass->table);
    }
}

bool grd_pass_grow(struct grd_pass *pass)
{
    int64_t capacity = 2 * pass->capacity;
    if (capacity > INT32_MAX / 2)
        return grd_raise(GRD_ERROR_MEMORY, "the graph has too many nodes");
    struct grd_entry *entries = grd_alloc((size_t)capacity * sizeof *entries);
    int32_t *table = grd_alloc(2 * (size_t)capacity * sizeof *table);
    if (entries == NULL || table == NULL) {
        grd_free(entries, (size_t)capacity * sizeof *entries);
        grd_free(table, 2 * (size_t)capacity * sizeof *table);
        return false;
    }
    memcpy(entries, pass->entries, (size_t)pass->n * sizeof *entries);
    if (pass->entries != pass->inline_entries) {
        grd_free(pass->entries, (size_t)pass->capacity * sizeof *entries);
        grd_free(pass->table, 2 * (size_t)pass->capacity * sizeof *table);
    }
    pass->entries = entries;
    pass->table = table;
    pass->capacity = capacity;
    pass->mask = 2 * (uint64_t)capacity - 1;
    memset(table, 0xff, 2 * (size_t)capacity * sizeof *table);
    for (int64_t i = 0; i < pass->n; i++)
        table[grd_pass_place(pass, entries[i].node)] = (int32_t)i;
    return true;
}

/* ---- The search ---------------------------------------------------------------------------------------------------------------- */
/* Called when the search has finished the node `below`, to which edge number `edge` of `above` leads. If gradients at `below` are used, marks the
 * edge and the node `above` as needed. */
static inline void note_need(struct grd_entry *above, uint32_t edge, const struct grd_entry *below)
{
    if (!grd_entry_wanted(below))
        return;
    above->needs |= (uint64_t)1 << (edge < 63 ? edge : 63);
    above->needed = true;
}

/* Looks at the nodes to which the edges of entry number `current` lead. Returns the entry number of the first one that has not been searched, or
 * `current` if all have been searched. GRD_NO_ENTRY, with MemoryError, on failure. */
static inline int32_t search_edges(struct grd_pass *pass, int32_t current)
{
    const struct grd_node *node = pass->entries[current].node;
    for (uint32_t edge = pass->entries[current].edge; edge < node->nedges; edge++) {
        struct grd_node *child = node->edges[edge].node;
        if (child == NULL)
            continue;
        const int32_t index = grd_pass_enter(pass, child);
        if (GRD_UNLIKELY(index == GRD_NO_ENTRY))
            return GRD_NO_ENTRY;
        struct grd_entry *below = &pass->entries[index];
        below->dependencies++;
        if (child->nedges > 0 && below->from == index) {
            below->from = current;
            pass->entries[current].edge = edge;
            return index;
        }
        note_need(&pass->entries[current], edge, below);
    }
    return current;
}

bool grd_pass_discover(struct grd_pass *pass, int32_t root)
{
    int32_t current = root;
    pass->entries[root].from = GRD_NO_ENTRY;
    for (;;) {
        const int32_t next = search_edges(pass, current);
        if (GRD_UNLIKELY(next == GRD_NO_ENTRY))
            return false;
        if (next == current) {
            const struct grd_entry *below = &pass->entries[current];
            if (below->from == GRD_NO_ENTRY)
                return true;
            struct grd_entry *above = &pass->entries[current = below->from];
            note_need(above, above->edge++, below);
        } else {
            current = next;
        }
    }
}

/* ---- Slots ------------------------------------------------------------------------------------------------------------------------ */
bool grd_entry_make_slots(struct grd_entry *entry)
{
    entry->grads.many = grd_alloc_zeroed(entry->node->noutputs * sizeof(grd_tensor *));
    return entry->grads.many != NULL;
}

void grd_entry_drop_many(struct grd_entry *entry)
{
    uint32_t n = entry->node->noutputs;
    grd_tensor **slots = entry->grads.many;
    if (slots == NULL)
        return;
    entry->grads.many = NULL;
    for (uint32_t i = 0; i < n; i++)
        grd_object_drop(slots[i]);
    grd_free(slots, n * sizeof *slots);
}

bool grd_pass_sum(struct grd_pass *pass, grd_tensor **slot, grd_tensor *grad)
{
    grd_tensor *old = *slot, *sum;
    const bool apart =
        /* True if the sum must be a new tensor. This is so if the sum is recorded (create_graph), and inside vmap. Inside vmap one gradient may lack
         * the batch dimension of the other gradient. Its memory is then too small for the sum. */
        pass->create || grd_is_batch(old) || grd_is_batch(grad);
    if (!apart && grd_is_exclusive(old))
        sum = grd_object_keep(grd_add_(old, grad));
    else if (!apart && grd_is_exclusive(grad)) /* addition is commutative, so either tensor may hold the sum */
        sum = grd_object_keep(grd_add_(grad, old));
    else
        sum = grd_object_keep(grd_add(old, grad));
    grd_object_drop(grad);
    if (grd_pending()) {
        grd_object_drop(sum);
        return false;
    }
    *slot = sum;
    grd_object_drop(old);
    return true;
}
