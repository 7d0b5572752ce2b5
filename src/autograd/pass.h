/* One run of a graph backwards, as the three files of the engine share it: the nodes it found, what they wait for, the gradients that have come
 * to them, and the queues of those that are ready.
 *
 * Lives in pass.c: the table of nodes, the search, the slots. In engine.c: the queue, and running nodes, with and without threads. In
 * backward.c: the public calls, from outputs to a pass. inplace.c searches a history as a pass does.
 * Invariants
 * - Nodes are borrowed: the outputs, which the caller of the pass keeps, own all of them.
 * - A slot owns its gradient, and references move from a formula's result to a slot to a leaf. Who is the last to hold a gradient may
 *   write into it. */
#ifndef GRD_AUTOGRAD_PASS_H
#define GRD_AUTOGRAD_PASS_H

#include <pthread.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/node.h"
#include "core/tensor.h"

/* What fits into the pass itself, so that a small graph needs no memory. */
enum { GRD_INLINE_ENTRIES = 16, GRD_INLINE_TABLE = 32, GRD_INLINE_READY = 16 };
enum { GRD_NO_ENTRY = -1 };

/* A node in the pass. */
struct grd_entry {
    struct grd_node *node;
    union {
        grd_tensor *one; /* the only slot of a node with one output */
        grd_tensor **many;
    } grads;
    int32_t dependencies; /* edges whose gradient has not come yet */
    int32_t capture;      /* first capture here, or GRD_NO_ENTRY */
    int32_t from;         /* the entry the search came from; itself: it did not come here yet */
    uint32_t edge;        /* the next for the search */
    uint64_t needs;       /* bit i: somebody wants the gradients of edge i; those above 63 share bit 63 */
    bool needed;          /* the node must run, not only hand its gradients out */
};

struct grd_ready {
    uint64_t sequence;
    int32_t entry;
};

/* Those that are ready, the latest on top. */
struct grd_heap {
    struct grd_ready *items;
    int64_t n, capacity;
    struct grd_ready inline_items[GRD_INLINE_READY];
};

/* An input of grd_grad whose gradient is taken where it flows past. */
struct grd_capture {
    uint32_t output;
    int32_t next;
    int64_t input;
};

struct grd_worker {
    struct grd_pass *pass;
    pthread_t thread;
    uint8_t device;
    struct grd_heap heap;
};

struct grd_pass {
    struct grd_entry *entries;
    int64_t n, capacity;
    int32_t *table; /* entry by node, open addressing; GRD_NO_ENTRY where free */
    uint64_t mask;
    struct grd_capture *captures;
    grd_tensor **captured; /* one per input, owned */
    bool retain, create, stop;
    bool unhooked_inputs; /* tensor hooks are not called where gradients are captured */
    bool careful;         /* there are nodes that may need a worker, or results are looked at: the slow loop */
    /* With workers. */
    struct grd_worker *workers;
    int nworkers;
    int64_t outstanding; /* entries ready or running */
    struct grd_error_state error;
    struct grd_level level;
    uint32_t include, exclude, grad_off; /* these four are the calling thread's when the pass began: it goes on while workers start */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct grd_heap heap; /* for the calling thread */
    int32_t inline_table[GRD_INLINE_TABLE];
    struct grd_entry inline_entries[GRD_INLINE_ENTRIES];
};

/* ---- The table of nodes ------------------------------------------------------------------------------------------------------ */
static inline void grd_pass_init(struct grd_pass *pass, bool retain, bool create)
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
    pass->careful = atomic_load_explicit(&grd_anomaly_checks_nan, memory_order_relaxed);
    pass->workers = NULL;
    pass->nworkers = 0;
    pass->outstanding = 0;
    pass->error = (struct grd_error_state){0};
}

/* grd_pass_done where there is something to do. */
void grd_pass_clear(struct grd_pass *pass, bool ok);

/* Drops what a failed pass left in the slots. */
static inline void grd_pass_done(struct grd_pass *pass, bool ok)
{
    if (GRD_UNLIKELY(!ok || pass->entries != pass->inline_entries))
        grd_pass_clear(pass, ok);
}

/* Makes room for more entries. False, with MemoryError, on failure. */
bool grd_pass_grow(struct grd_pass *pass);

/* The place of a node in the table, or the free one where it belongs. Multiplies by 2^64 / golden ratio: nodes lie at multiples of 64. */
static inline uint64_t grd_pass_place(const struct grd_pass *pass, const struct grd_node *node)
{
    uint64_t place = ((uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u >> 20) & pass->mask;
    while (pass->table[place] != GRD_NO_ENTRY && pass->entries[pass->table[place]].node != node)
        place = (place + 1) & pass->mask;
    return place;
}

static inline int32_t grd_pass_find(const struct grd_pass *pass, const struct grd_node *node)
{
    return pass->table[grd_pass_place(pass, node)];
}

/* The entry of a node, made when it is new. GRD_NO_ENTRY, with MemoryError, on failure. */
static inline int32_t grd_pass_enter(struct grd_pass *pass, struct grd_node *node)
{
    uint64_t place = grd_pass_place(pass, node);
    if (pass->table[place] != GRD_NO_ENTRY)
        return pass->table[place];
    if (GRD_UNLIKELY(pass->n == pass->capacity)) {
        if (!grd_pass_grow(pass))
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
    pass->careful |= node->device >= GRD_DEVICE_FIRST_EXTRA;
    return index;
}

/* True if gradients that come to the entry are of use to anybody. */
static inline bool grd_entry_wanted(const struct grd_entry *entry)
{
    return entry->needed || entry->capture != GRD_NO_ENTRY;
}

/* ---- The search ---------------------------------------------------------------------------------------------------------------- */
/* Depth first from one entry: counts dependencies, and on the way back tells each node below which edges a gradient is wanted. */
bool grd_pass_discover(struct grd_pass *pass, int32_t root);

/* ---- Slots ------------------------------------------------------------------------------------------------------------------------ */
static inline grd_tensor **grd_entry_slots(struct grd_entry *entry)
{
    return entry->node->noutputs == 1 ? &entry->grads.one : entry->grads.many;
}

/* Adds a gradient, whose reference it takes, to what is in a slot. */
bool grd_pass_sum(struct grd_pass *pass, grd_tensor **slot, grd_tensor *grad);
/* The slots of a node with several outputs. False, with MemoryError, on failure. */
bool grd_entry_make_slots(struct grd_entry *entry);
void grd_entry_drop_many(struct grd_entry *entry);

/* Gives a gradient, whose reference it takes, to a slot. */
static inline bool grd_pass_give(struct grd_pass *pass, struct grd_entry *entry, uint32_t output, grd_tensor *grad)
{
    if (GRD_UNLIKELY(entry->node->noutputs != 1 && entry->grads.many == NULL) && !grd_entry_make_slots(entry)) {
        grd_object_drop(grad);
        return false;
    }
    grd_tensor **slot = &grd_entry_slots(entry)[output];
    if (*slot != NULL)
        return grd_pass_sum(pass, slot, grad);
    *slot = grad;
    return true;
}

static inline void grd_entry_drop_slots(struct grd_entry *entry)
{
    if (GRD_UNLIKELY(entry->node->noutputs != 1)) {
        grd_entry_drop_many(entry);
    } else if (entry->grads.one != NULL) {
        grd_tensor *grad = entry->grads.one;
        entry->grads.one = NULL;
        grd_object_drop(grad);
    }
}

/* ---- Running (engine.c) ---------------------------------------------------------------------------------------------------------------- */
/* Runs everything from the roots down. False, with the error raised, on failure; then slots may still be full. */
bool grd_pass_run(struct grd_pass *pass, const int32_t *roots, int64_t nroots);

#endif
