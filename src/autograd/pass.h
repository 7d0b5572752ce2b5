/* A backward pass, as the three files of the engine share it: the nodes it found, how many gradients each still waits for, the gradients that have
 * arrived, and the queues of nodes that are ready to run.
 *
 * Lives in pass.c: the table of nodes, the search, the slots. In engine.c: the queue, and running nodes, with and without threads. In
 * backward.c: the public calls, from outputs to a pass. inplace.c searches a history as a pass does.
 * Invariants
 * - Nodes are borrowed: the outputs, which the caller of the pass keeps, own all of them.
 * - A slot owns its gradient, and references move from a formula's result to a slot to a leaf. The last owner of a gradient may
 *   write into it. */
#ifndef GRD_AUTOGRAD_PASS_H
#define GRD_AUTOGRAD_PASS_H

#include <pthread.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/node.h"
#include "core/tensor.h"

/* Capacities of the arrays inside struct grd_pass, so that a small graph allocates nothing. */
enum { GRD_INLINE_ENTRIES = 16, GRD_INLINE_TABLE = 32, GRD_INLINE_READY = 16 };
enum { GRD_NO_ENTRY = -1 };

/* A node in the pass. */
struct grd_entry {
    struct grd_node *node;
    union {
        grd_tensor *one; /* the only slot of a node with one output */
        grd_tensor **many;
    } grads;
    int32_t dependencies; /* edges whose gradient has not arrived yet */
    int32_t capture;      /* index of the first capture at this node, or GRD_NO_ENTRY */
    int32_t from;         /* the entry the search came from; its own index until the search reaches it */
    uint32_t edge;        /* the next edge to search */
    uint64_t needs;       /* bit i: the gradient of edge i is needed; edges from 63 on share bit 63 */
    bool needed;          /* the node must run; otherwise its gradients are only captured */
};

struct grd_ready {
    uint64_t sequence;
    int32_t entry;
};

/* The nodes that are ready to run: a heap with the highest sequence number on top. */
struct grd_heap {
    struct grd_ready *items;
    int64_t n, capacity;
    struct grd_ready inline_items[GRD_INLINE_READY];
};

/* An input of grd_grad: its gradient is captured when it arrives at output `output` of the node. */
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
    int32_t *table; /* hash table from node to entry, open addressing; a free place is GRD_NO_ENTRY */
    uint64_t mask;
    struct grd_capture *captures;
    grd_tensor **captured; /* one per input, owned */
    bool retain, create, stop;
    bool unhooked_inputs; /* tensor hooks are not called where gradients are captured */
    bool careful;         /* use the slow loop, since nodes may need a worker thread or results are checked for NaN */
    /* Used only with worker threads. */
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

/* The slow path of grd_pass_done: drops the slots of a failed pass and frees allocated tables. */
void grd_pass_clear(struct grd_pass *pass, bool ok);

/* Ends a pass. Drops the gradients that a failed pass left in the slots. */
static inline void grd_pass_done(struct grd_pass *pass, bool ok)
{
    if (GRD_UNLIKELY(!ok || pass->entries != pass->inline_entries))
        grd_pass_clear(pass, ok);
}

/* Makes room for more entries. False, with MemoryError, on failure. */
bool grd_pass_grow(struct grd_pass *pass);

/* Returns the place of a node in the table, or the free place to insert it at. Multiplies by 2^64 / golden ratio: nodes lie at multiples of 64. */
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

/* Returns the entry of a node, which is created if there is none. GRD_NO_ENTRY, with MemoryError, on failure. */
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

/* True if gradients that arrive at the entry are needed or captured. */
static inline bool grd_entry_wanted(const struct grd_entry *entry)
{
    return entry->needed || entry->capture != GRD_NO_ENTRY;
}

/* ---- The search ---------------------------------------------------------------------------------------------------------------- */
/* Searches depth first from one entry and counts dependencies. On the way back marks for each node the edges whose gradient is needed. False on
 * failure. */
bool grd_pass_discover(struct grd_pass *pass, int32_t root);

/* ---- Slots ------------------------------------------------------------------------------------------------------------------------ */
static inline grd_tensor **grd_entry_slots(struct grd_entry *entry)
{
    return entry->node->noutputs == 1 ? &entry->grads.one : entry->grads.many;
}

/* Adds a gradient, whose reference it takes, to the gradient in a slot. False, with the error raised, on failure. */
bool grd_pass_sum(struct grd_pass *pass, grd_tensor **slot, grd_tensor *grad);
/* Allocates the slots of a node with several outputs. False, with MemoryError, on failure. */
bool grd_entry_make_slots(struct grd_entry *entry);
void grd_entry_drop_many(struct grd_entry *entry);

/* Stores a gradient, whose reference it takes, in a slot, or adds it to the gradient there. False, with the error raised, on failure. */
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
/* Runs all nodes that are reachable from the roots. False, with the error raised, on failure; slots may then still hold gradients. */
bool grd_pass_run(struct grd_pass *pass, const int32_t *roots, int64_t nroots);

#endif
