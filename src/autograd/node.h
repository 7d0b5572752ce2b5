/* The graph: nodes and edges.
 *
 * Lives here: the data structures all files of this floor share. Not here: how nodes come to be (op_node.c, inplace.c, custom.c) and how they
 * are run (pass.h).
 *
 * Invariants
 * - A node owns the nodes its edges lead to; a tensor owns its grad_fn; nothing in the graph owns a later part of it. So there is
 *   no cycle: a node that saves its own output saves an alias without history, and see Note [Saved and overwritten].
 * - An AccumulateGrad is a part of its leaf: whoever owns the one owns the other, by a reference of the leaf.
 * - Edges never change after a node is published; what it saved is dropped once, under its lock.
 * - Freeing a node never recurses into another: Note [Chains of owners]. */
#ifndef GRD_AUTOGRAD_NODE_H
#define GRD_AUTOGRAD_NODE_H

#include "autograd/spin.h"
#include "base/memory.h"
#include "base/object.h"
#include "base/small_blocks.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/autograd.h"

enum { GRD_AUTOGRAD_BIT = 1 << GRD_KEY_AUTOGRAD };

struct grd_edge {
    struct grd_node *node; /* owned; NULL: no gradient is wanted here */
    uint32_t output;       /* of that node */
};

/* What the gradient of an output must look like. */
struct grd_output {
    const int64_t *sizes;
    union {
        struct {
            uint8_t dtype, layout, device;
            int8_t device_index;
            uint16_t flags;
            uint16_t ndim;
        };
        uint64_t traits; /* all of these, of a tensor; flags: none */
    };
};

/* The traits of a tensor that its gradient has, too. */
static inline uint64_t grd_output_traits(const grd_tensor *t)
{
    return t->traits & (GRD_TRAITS_DTYPE | GRD_TRAITS_DEVICE | GRD_TRAITS_NDIM);
}

/* One call of a node. Results are pooled or borrowed from the arguments. */
struct grd_run {
    grd_tensor **grads;     /* one per output, NULL where undefined; who takes a reference leaves NULL */
    grd_tensor **ret_grads; /* one per edge, NULL on entry */
    uint64_t needs;         /* bit i: edge i; edges above 63 share bit 63 */
    bool retain;            /* keep what is saved */
};

struct grd_rebase;

struct grd_node_class {
    void (*run)(struct grd_node *node, const struct grd_run *run);
    /* Drops the saved tensors; called after a pass that does not retain the graph, and before the node is freed. May be NULL. */
    void (*release)(struct grd_node *node);
    /* Drops what else a node of this class owns. May be NULL. */
    void (*finish)(struct grd_node *node);
    /* Calls grd_saved_find_outdated for what is saved. False, with the error raised, on failure. May be NULL. */
    bool (*find_outdated)(struct grd_node *node, const struct grd_storage *written, struct grd_rebase *rebase);
    /* Of a node without owners: true if somebody else owns it now. May be NULL. */
    bool (*take_over)(struct grd_node *node);
    /* Visits the contexts of a user that the node itself keeps. May be NULL. */
    int (*visit)(struct grd_node *node, grd_context_visitor *visit, void *arg);
};

struct grd_hook;
struct grd_hooks {
    struct grd_hook *_Atomic first; /* asked without the lock whether there is one */
};

struct grd_node {
    struct grd_object object;
    struct grd_object *owner; /* whose references keep the node: itself, or the leaf it is a part of */
    const struct grd_node_class *class;
    const char *name;
    uint64_t sequence; /* later nodes run first; AccumulateGrad before all */
    struct grd_edge *edges;
    struct grd_output *outputs;
    uint32_t size; /* of the block */
    uint32_t nedges, noutputs;
    uint32_t view_version;    /* when the result is a view: the version of its storage this node belongs to */
    struct grd_node *next;    /* in the list of nodes that a visit goes to (visit_contexts.c) */
    struct grd_node *wrapper; /* the CopySlices that owns this node, or NULL */
    struct grd_hooks hooks;
    struct grd_spin lock; /* of what is saved */
    bool keeps;           /* tensors, or what else is to be dropped, are saved */
    bool freed;           /* a run has taken what is saved: there is no other */
    uint8_t device;       /* where it runs */
};

extern const struct grd_object_type grd_node_type;

/* The number of the thread's next node. */
extern _Thread_local uint64_t grd_node_sequence __attribute__((tls_model("initial-exec")));
/* Raises MemoryError. NULL. */
struct grd_node *grd_node_too_large(uint32_t nedges, uint32_t noutputs);

/* A node of `struct_size` bytes (its struct begins with grd_node, and they are a multiple of 8) with room for edges, outputs and `extra`
 * more bytes. Edges, outputs, and what follows the grd_node in its struct, are unset. One reference, owned by the caller. NULL, with MemoryError. */
GRD_INLINE struct grd_node *grd_node_new(const struct grd_node_class *class, const char *name, size_t struct_size, uint32_t nedges,
                                         uint32_t noutputs, size_t extra)
{
    size_t outputs = struct_size + nedges * sizeof(struct grd_edge);
    size_t size = outputs + noutputs * sizeof(struct grd_output) + extra;
    if (GRD_UNLIKELY(size > UINT32_MAX))
        return grd_node_too_large(nedges, noutputs);
    struct grd_node *node = GRD_LIKELY(size <= GRD_SMALL_MAX) ? grd_small_alloc(size) : grd_alloc(size);
    if (GRD_UNLIKELY(node == NULL))
        return NULL;
    node->object.type = &grd_node_type;
    atomic_init(&node->object.refs, 1);
    node->owner = &node->object;
    node->class = class;
    node->name = name;
    node->sequence = grd_node_sequence++;
    node->edges = (struct grd_edge *)((char *)node + struct_size);
    node->outputs = (struct grd_output *)((char *)node + outputs);
    node->size = (uint32_t)size;
    node->nedges = nedges;
    node->noutputs = noutputs;
    node->view_version = 0;
    node->next = NULL;
    node->wrapper = NULL;
    atomic_init(&node->hooks.first, NULL);
    grd_spin_init(&node->lock);
    node->keeps = false;
    node->freed = false;
    node->device = GRD_DEVICE_CPU;
    return node;
}

/* The extra bytes of a node. */
static inline void *grd_node_room(const struct grd_node *node)
{
    return node->outputs + node->noutputs;
}

/* Copies sizes or strides to the extra bytes from *room on, which moves behind them. */
static inline grd_dims grd_copy_dims(char **room, const int64_t *data, int64_t n)
{
    int64_t *copy = (int64_t *)(void *)*room;
    *room += (size_t)n * sizeof *copy;
    for (int64_t i = 0; i < n; i++)
        copy[i] = data[i];
    return grd_dims_from(copy, n);
}

static inline bool grd_node_is(const struct grd_object *object)
{
    return object->type == &grd_node_type;
}

static inline struct grd_node *grd_node_keep(struct grd_node *node)
{
    grd_object_keep(node->owner);
    return node;
}

static inline void grd_node_drop(struct grd_node *node)
{
    if (node != NULL)
        grd_object_drop(node->owner);
}

/* Copies the geometry; `sizes` must live as long as the node. */
static inline void grd_node_describe_output(struct grd_node *node, uint32_t output, const grd_tensor *t, const int64_t *sizes)
{
    node->outputs[output].sizes = sizes;
    node->outputs[output].traits = grd_output_traits(t);
    if (output == 0)
        node->device = t->device;
}

static inline bool grd_run_needs(const struct grd_run *run, uint32_t edge)
{
    return run->needs >> (edge < 63 ? edge : 63) & 1;
}

#endif
