/* A pass before it runs: which nodes are below the outputs and how many edges lead to each; and the containers it runs with.
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
    pass->workers = NULL;
    pass->nworkers = 0;
    pass->outstanding = 0;
    pass->error = (struct grd_error_state){0};
    grd_heap_init(&pass->heap);
}

void grd_pass_done(struct grd_pass *pass)
{
    for (int64_t i = 0; i < pass->n; i++)
        grd_entry_drop_slots(&pass->entries[i]);
    grd_heap_done(&pass->heap);
    if (pass->entries != pass->inline_entries) {
        grd_free(pass->entries, (size_t)pass->capacity * sizeof *pass->entries);
        grd_free(pass->table, 2 * (size_t)pass->capacity * sizeof *pass->table);
    }
}

static bool grow_entries(struct grd_pass *pass)
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

int32_t grd_pass_enter(struct grd_pass *pass, struct grd_node *node)
{
    uint64_t place = grd_pass_place(pass, node);
    if (pass->table[place] != GRD_NO_ENTRY)
        return pass->table[place];
    if (pass->n == pass->capacity) {
        if (!grow_entries(pass))
            return GRD_NO_ENTRY;
        place = grd_pass_place(pass, node);
    }
    pass->entries[pass->n] = (struct grd_entry){.node = node, .capture = GRD_NO_ENTRY, .needed = pass->captures == NULL};
    pass->table[place] = (int32_t)pass->n;
    return (int32_t)pass->n++;
}

/* ---- The search ---------------------------------------------------------------------------------------------------------------- */
void grd_stack_init(struct grd_stack *stack)
{
    stack->frames = stack->inline_frames;
    stack->n = 0;
    stack->capacity = GRD_INLINE_FRAMES;
}

void grd_stack_done(struct grd_stack *stack)
{
    if (stack->frames != stack->inline_frames)
        grd_free(stack->frames, (size_t)stack->capacity * sizeof *stack->frames);
}

static bool grow_stack(struct grd_stack *stack)
{
    int64_t capacity = 2 * stack->capacity;
    struct grd_frame *frames = grd_alloc((size_t)capacity * sizeof *frames);
    if (frames == NULL)
        return false;
    memcpy(frames, stack->frames, (size_t)stack->n * sizeof *frames);
    grd_stack_done(stack);
    stack->frames = frames;
    stack->capacity = capacity;
    return true;
}

static bool visit(struct grd_pass *pass, struct grd_stack *stack, int32_t entry)
{
    if (GRD_UNLIKELY(stack->n == stack->capacity) && !grow_stack(stack))
        return false;
    stack->frames[stack->n++] = (struct grd_frame){entry, 0};
    pass->entries[entry].visited = true;
    return true;
}

bool grd_pass_discover(struct grd_pass *pass, struct grd_stack *stack, int32_t root)
{
    if (!visit(pass, stack, root))
        return false;
    while (stack->n > 0) {
        struct grd_frame *frame = &stack->frames[stack->n - 1];
        struct grd_entry *entry = &pass->entries[frame->entry];
        if (frame->edge == entry->node->nedges) {
            if (--stack->n > 0 && grd_entry_wanted(entry))
                pass->entries[stack->frames[stack->n - 1].entry].needed = true;
            continue;
        }
        struct grd_node *child = entry->node->edges[frame->edge++].node;
        if (child == NULL)
            continue;
        int32_t current = frame->entry, below = grd_pass_enter(pass, child);
        if (below == GRD_NO_ENTRY)
            return false;
        pass->entries[below].dependencies++;
        if (!pass->entries[below].visited) {
            if (!visit(pass, stack, below))
                return false;
        } else if (grd_entry_wanted(&pass->entries[below])) {
            pass->entries[current].needed = true;
        }
    }
    return true;
}

/* ---- Slots ------------------------------------------------------------------------------------------------------------------------ */
bool grd_pass_add(struct grd_pass *pass, struct grd_entry *entry, uint32_t output, grd_tensor *grad)
{
    uint32_t noutputs = entry->node->noutputs;
    if (noutputs != 1 && entry->grads.many == NULL) {
        entry->grads.many = grd_alloc_zeroed(noutputs * sizeof(grd_tensor *));
        if (entry->grads.many == NULL)
            return false;
    }
    grd_tensor **slot = &grd_entry_slots(entry)[output];
    if (*slot == NULL) {
        *slot = grd_object_keep(grad);
        return true;
    }
    if (!pass->create && grd_is_exclusive(*slot)) {
        grd_add_(*slot, grad);
        return !grd_pending();
    }
    grd_tensor *sum = grd_add(*slot, grad);
    if (grd_pending())
        return false;
    grd_object_drop(*slot);
    *slot = grd_object_keep(sum);
    return true;
}

void grd_entry_drop_slots(struct grd_entry *entry)
{
    uint32_t n = entry->node->noutputs;
    grd_tensor **slots = grd_entry_slots(entry);
    for (uint32_t i = 0; slots != NULL && i < n; i++) {
        grd_tensor *t = slots[i];
        slots[i] = NULL;
        grd_object_drop(t);
    }
    if (n != 1 && slots != NULL) {
        grd_free(slots, n * sizeof(grd_tensor *));
        entry->grads.many = NULL;
    }
}

/* ---- The queue ---------------------------------------------------------------------------------------------------------------------- */
void grd_heap_init(struct grd_heap *heap)
{
    heap->items = heap->inline_items;
    heap->n = 0;
    heap->capacity = GRD_INLINE_READY;
}

void grd_heap_done(struct grd_heap *heap)
{
    if (heap->items != heap->inline_items)
        grd_free(heap->items, (size_t)heap->capacity * sizeof *heap->items);
}

static bool grow_heap(struct grd_heap *heap)
{
    int64_t capacity = 2 * heap->capacity;
    struct grd_ready *items = grd_alloc((size_t)capacity * sizeof *items);
    if (items == NULL)
        return false;
    memcpy(items, heap->items, (size_t)heap->n * sizeof *items);
    grd_heap_done(heap);
    heap->items = items;
    heap->capacity = capacity;
    return true;
}

bool grd_heap_push(struct grd_heap *heap, struct grd_ready item)
{
    if (GRD_UNLIKELY(heap->n == heap->capacity) && !grow_heap(heap))
        return false;
    int64_t i = heap->n++;
    while (i > 0 && heap->items[(i - 1) / 2].sequence < item.sequence) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = item;
    return true;
}

int32_t grd_heap_pop(struct grd_heap *heap)
{
    int32_t top = heap->items[0].entry;
    struct grd_ready last = heap->items[--heap->n];
    int64_t i = 0, child;
    while ((child = 2 * i + 1) < heap->n) {
        if (child + 1 < heap->n && heap->items[child + 1].sequence > heap->items[child].sequence)
            child++;
        if (heap->items[child].sequence <= last.sequence)
            break;
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = last;
    return top;
}
