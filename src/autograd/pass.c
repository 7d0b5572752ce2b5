/* A pass before it runs: which nodes are below the outputs and how many edges lead to each; and the slots it runs with.
 * Nothing is called here but the addition of two gradients for one slot. Invariants: pass.h. */
#include "autograd/pass.h"
#include "gradus/ops.h"

#include <string.h>

/* ---- The table of nodes ------------------------------------------------------------------------------------------------------ */
void grd_pass_init(struct grd_pass *pass, bool retain, bool create)
{
    pass->entries = pass->inline_entries;
    pass->table = pass->inline_table;
    pass->n = 0;
    pass->capacity = GRD_INLINE_ENTRIES;
    pass->mask = GRD_INLINE_TABLE - 1;
    memset(pass->inline_table, 0xff, sizeof pass->inline_table);
    pass->captures = NULL;
    pass->captured = NULL;
    pass->retain = retain || create;
    pass->create = create;
    pass->stop = false;
    pass->other_devices = false;
    pass->workers = NULL;
    pass->nworkers = 0;
    pass->outstanding = 0;
    pass->error = (struct grd_error_state){0};
}

void grd_pass_done(struct grd_pass *pass, bool ok)
{
    for (int64_t i = 0; !ok && i < pass->n; i++)
        grd_entry_drop_slots(&pass->entries[i]);
    if (pass->entries != pass->inline_entries) {
        grd_free(pass->entries, (size_t)pass->capacity * sizeof *pass->entries);
        grd_free(pass->table, 2 * (size_t)pass->capacity * sizeof *pass->table);
    }
}

static __attribute__((noinline)) bool grow_entries(struct grd_pass *pass)
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

static inline int32_t enter(struct grd_pass *pass, struct grd_node *node)
{
    uint64_t place = grd_pass_place(pass, node);
    if (pass->table[place] != GRD_NO_ENTRY)
        return pass->table[place];
    if (GRD_UNLIKELY(pass->n == pass->capacity)) {
        if (!grow_entries(pass))
            return GRD_NO_ENTRY;
        place = grd_pass_place(pass, node);
    }
    int32_t index = (int32_t)pass->n++;
    struct grd_entry *entry = &pass->entries[index];
    entry->node = node;
    entry->grads.one = NULL;
    entry->dependencies = 0;
    entry->capture = GRD_NO_ENTRY;
    entry->from = index;
    entry->edge = 0;
    entry->needs = 0;
    entry->needed = pass->captures == NULL;
    pass->table[place] = index;
    pass->other_devices |= node->device >= GRD_DEVICE_FIRST_EXTRA;
    return index;
}

int32_t grd_pass_enter(struct grd_pass *pass, struct grd_node *node)
{
    return enter(pass, node);
}

/* ---- The search ---------------------------------------------------------------------------------------------------------------- */
/* The search is done with what lies below the edge that an entry looked at last. */
static inline void note_need(struct grd_entry *above, const struct grd_entry *below)
{
    if (!grd_entry_wanted(below))
        return;
    const uint32_t edge = above->edge - 1;
    above->needs |= (uint64_t)1 << (edge < 63 ? edge : 63);
    above->needed = true;
}

bool grd_pass_discover(struct grd_pass *pass, int32_t root)
{
    int32_t current = root;
    pass->entries[root].from = GRD_NO_ENTRY;
    for (;;) {
        struct grd_entry *entry = &pass->entries[current];
        const struct grd_node *node = entry->node;
        if (entry->edge == node->nedges) {
            if (entry->from == GRD_NO_ENTRY)
                return true;
            current = entry->from;
            note_need(&pass->entries[current], entry);
            continue;
        }
        struct grd_node *child = node->edges[entry->edge++].node;
        if (child == NULL)
            continue;
        int32_t index = enter(pass, child);
        if (index == GRD_NO_ENTRY)
            return false;
        struct grd_entry *below = &pass->entries[index];
        below->dependencies++;
        if (below->from == index && child->nedges > 0) {
            below->from = current;
            current = index;
        } else {
            note_need(&pass->entries[current], below);
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
    if (!pass->create && grd_is_exclusive(old))
        sum = grd_object_keep(grd_add_(old, grad));
    else if (!pass->create && grd_is_exclusive(grad)) /* a sum of two has no order */
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
