/* Declares the state of a backward pass: the nodes it found, how many gradients each node still waits for, the gradients that have arrived, and
 * the queues of nodes that are ready to run. A slot is the pointer to the sum of the gradients that have arrived for one output of a node.
 *
 * pass.c has the table of nodes, the search and the slots. engine.c has the queues, and runs nodes with and without threads. backward.c has the
 * public functions, which set up passes. outdated.c uses only the table and the search.
 * Invariants
 * - A pass borrows its nodes. The tensors at which the pass begins own all these nodes, and the caller keeps these tensors alive.
 * - A slot owns its gradient. The reference moves from the result of a formula to a slot and from the slot to a leaf, so that the last owner of a
 *   gradient may write into it. */
#ifndef GRD_AUTOGRAD_PASS_H
#define GRD_AUTOGRAD_PASS_H

#include <pthread.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/node.h"
#include "core/tensor.h"

/* Capacities of the arrays inside struct grd_pass. A small graph fits into these arrays, so its pass allocates nothing. */
enum { GRD_INLINE_ENTRIES = 16, GRD_INLINE_TABLE = 32, GRD_INLINE_READY = 16 };
enum { GRD_NO_ENTRY = -1 };

/* The data of the pass about one node, with the gradients that have arrived at the node. An element of pass->entries. */
struct grd_entry {
    struct grd_node *node;
    union {
        grd_tensor *one;   /* for a node with one output: the sum of the gradients that have arrived, NULL if there are none */
        grd_tensor **many; /* for a node with several outputs: one such sum per output, in an array that is allocated when the first
                            * gradient arrives */
    } grads;
    int32_t dependencies; /* number of edges that lead to the node and along which no gradient has arrived yet */
    /* Index in pass->captures of the first input of grd_grad whose gradient arrives at this node, or GRD_NO_ENTRY. */
    int32_t capture;
    /* Before the search reaches this node: the index of this entry itself. Afterwards: the index of the entry from whose node the search came.
     * GRD_NO_ENTRY at the node at which a search began. */
    int32_t from;
    uint32_t edge;  /* index of the next edge of `node` that the search follows */
    uint64_t needs; /* bit i: the gradient of edge i is needed; edges from 63 on share bit 63 */
    /* true: the node must run; false: only its tensor hooks run, and grd_grad returns the gradients that arrive at the node */
    bool needed;
};

/* An element of a heap: the index of a node in pass->entries and the sequence number of the node. */
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

/* One input of grd_grad, i.e. one tensor whose gradient is wanted. The tensor is output number `output` of a node. When the gradient of this output
 * is complete, it is copied to pass->captured[input]. */
struct grd_capture {
    uint32_t output;
    int32_t next;  /* index in pass->captures of the next input whose gradient arrives at the same node, or GRD_NO_ENTRY */
    int64_t input; /* index of the input among the inputs of grd_grad */
};

/* A thread that runs all nodes of one device type. */
struct grd_worker {
    struct grd_pass *pass;
    pthread_t thread;
    uint8_t device;
    struct grd_heap heap;
};

struct grd_pass {
    struct grd_entry *entries;
    int64_t n, capacity;
    int32_t *table;               /* hash table with open addressing: the index of each node in `entries`; GRD_NO_ENTRY at a free place */
    uint64_t mask;                /* length of the table minus 1 */
    struct grd_capture *captures; /* one per input of grd_grad; NULL if the pass adds gradients to all leaves */
    grd_tensor **captured;        /* one gradient per input of grd_grad, owned; NULL until the gradient arrives */
    bool retain, create, stop;    /* retain: keep saved values after the pass; create: record the pass; stop: an error has occurred, so all
                                   * threads must end */
    bool unhooked_inputs;         /* tensor hooks are not called at the nodes of the inputs of grd_grad */
    /* run the pass by the slow loop, because a node may need a worker thread or anomaly mode checks gradients for NaN */
    bool careful;
    /* The members from `workers` to `changed` are used only by the slow loop. */
    struct grd_worker *workers;
    int nworkers;
    int64_t outstanding; /* number of nodes, of all threads together, that are ready or running */
    struct grd_error_state error;
    /* The settings that the calling thread had when the pass began. The worker threads use the same settings. */
    struct grd_level level;
    uint32_t include, exclude, grad_off;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct grd_heap heap; /* the nodes that are ready and that the calling thread has to run */
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

/* The slow path of grd_pass_done: if the pass failed (`ok` is false), drops the gradients that have arrived at nodes. Frees the arrays `entries`
 * and `table` if they were allocated. */
void grd_pass_clear(struct grd_pass *pass, bool ok);

/* Ends a pass. If the pass failed, drops the gradients that have arrived at nodes that did not run. */
static inline void grd_pass_done(struct grd_pass *pass, bool ok)
{
    if (GRD_UNLIKELY(!ok || pass->entries != pass->inline_entries))
        grd_pass_clear(pass, ok);
}

/* Doubles the number of nodes that the pass has memory for. False, with MemoryError, on failure. */
bool grd_pass_grow(struct grd_pass *pass);

/* Returns the index in pass->table (a hash table) at which the entry number of `node` is, or at which it can be inserted. The hash is the product of
 * address and 2^64 / golden ratio, shifted right by 20 bits. Nodes lie at multiples of 64, so the lowest bits of the product hardly vary. The
 * shift drops them. */
static inline uint64_t grd_pass_place(const struct grd_pass *pass, const struct grd_node *node)
{
    uint64_t place = ((uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u >> 20) & pass->mask;
    while (pass->table[place] != GRD_NO_ENTRY && pass->entries[pass->table[place]].node != node)
        place = (place + 1) & pass->mask;
    return place;
}

/* Returns the index of the node in pass->entries, or GRD_NO_ENTRY if the node is not in the pass. */
static inline int32_t grd_pass_find(const struct grd_pass *pass, const struct grd_node *node)
{
    return pass->table[grd_pass_place(pass, node)];
}

/* Returns the index of the node in pass->entries, and adds the node to the pass if it is not there. GRD_NO_ENTRY, with MemoryError, on failure. */
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

/* True if the gradients that arrive at the node of this entry are used: the node must run, or grd_grad returns one of them. */
static inline bool grd_entry_wanted(const struct grd_entry *entry)
{
    return entry->needed || entry->capture != GRD_NO_ENTRY;
}

/* ---- The search ---------------------------------------------------------------------------------------------------------------- */
/* Searches, depth first, all nodes that can be reached from the node of entry number `root`. Counts the edges that lead to each node, and marks
 * the edges along which gradients are needed. False, with MemoryError, on failure. */
bool grd_pass_discover(struct grd_pass *pass, int32_t root);

/* ---- Slots ------------------------------------------------------------------------------------------------------------------------ */
/* Returns the array of the gradients that have arrived at a node, one pointer per output. NULL if the node has several outputs and no gradient
 * has arrived. */
static inline grd_tensor **grd_entry_slots(struct grd_entry *entry)
{
    return entry->node->noutputs == 1 ? &entry->grads.one : entry->grads.many;
}

/* Adds `grad` to the tensor *slot, which is not NULL and holds the sum of the gradients that have arrived for one output of a node. Takes the
 * reference to `grad`. False, with the error raised, on failure. */
bool grd_pass_sum(struct grd_pass *pass, grd_tensor **slot, grd_tensor *grad);
/* Allocates the array for the gradients that arrive at a node with several outputs. False, with MemoryError, on failure. */
bool grd_entry_make_slots(struct grd_entry *entry);
/* Drops the gradients that have arrived at a node with several outputs, and frees their array. */
void grd_entry_drop_many(struct grd_entry *entry);

/* Adds `grad` to the gradient that has arrived for output number `output` of entry->node, and takes the reference to `grad`. False, with the
 * error raised, on failure. */
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

/* Drops the gradients that have arrived at entry->node. */
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
/* Runs all needed nodes that can be reached from the nodes `roots`, which are given by their indices in pass->entries. The gradients of the roots
 * have already arrived. False, with the error raised, on failure; the caller then has to drop gradients that have arrived at nodes. */
bool grd_pass_run(struct grd_pass *pass, const int32_t *roots, int64_t nroots);

#endif
