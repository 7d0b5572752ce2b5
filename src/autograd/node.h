/* The graph: nodes and edges.
 *
 * This file declares the data structures that all files of src/autograd share. Nodes are created in op_node.c (operators), variable.c
 * (AccumulateGrad), copy_slices.c and custom.c, and run by the engine (pass.h).
 *
 * Invariants
 * - A node owns the nodes its edges lead to; a tensor owns its grad_fn; nothing in the graph owns a later part of it. So there is
 *   no cycle: a node that saves its own output saves an alias without history, and see Note [Saved and overwritten].
 * - An AccumulateGrad is a part of its leaf: whoever owns the one owns the other, by a reference of the leaf.
 * - Edges never change after a node is published; what it saved is dropped once, under its lock.
 * - Freeing a node never recurses into another: Note [Chains of owners]. */
#ifndef GRD_AUTOGRAD_NODE_H
#define GRD_AUTOGRAD_NODE_H

#include "autograd/hook_list.h"
#include "autograd/spin.h"
#include "base/memory.h"
#include "base/object.h"
#include "base/small_blocks.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/autograd.h"

enum { GRD_AUTOGRAD_BIT = 1 << GRD_KEY_AUTOGRAD };

struct grd_edge {
    struct grd_node *node; /* owned; NULL if the input needs no gradient */
    uint32_t output;       /* the output of `node` that the input is */
};

/* The shape, dtype and device that the gradient of an output must have. */
struct grd_output {
    const int64_t *sizes;
    union {
        struct {
            uint8_t dtype, layout, device;
            int8_t device_index;
            uint16_t flags;
            uint16_t ndim;
        };
        uint64_t traits; /* all fields above as one number; `flags` is 0 */
    };
};

/* Returns the traits that a gradient must share with its tensor: dtype, device and number of dimensions. */
static inline uint64_t grd_output_traits(const grd_tensor *t)
{
    return t->traits & (GRD_TRAITS_DTYPE | GRD_TRAITS_DEVICE | GRD_TRAITS_NDIM);
}

/* The arguments of one run of a node. The results are pooled, or borrowed from the arguments. */
struct grd_run {
    grd_tensor **grads;     /* one per output, NULL if undefined; a function that takes over a reference sets the element to NULL */
    grd_tensor **ret_grads; /* one per edge, NULL on entry */
    uint64_t needs;         /* bit i: edge i needs a gradient; edges from 63 on share bit 63 */
    bool retain;            /* retain_graph: the saved values are kept */
};

struct grd_outdated;

struct grd_node_class {
    void (*run)(struct grd_node *node, const struct grd_run *run);
    /* Drops the saved tensors; called after a pass that does not retain the graph, and before the node is freed. May be NULL. */
    void (*release)(struct grd_node *node);
    /* Drops everything else that a node of this class owns. May be NULL. */
    void (*finish)(struct grd_node *node);
    /* Calls grd_saved_find_outdated for the saved values. False, with the error raised, on failure. May be NULL. */
    bool (*find_outdated)(struct grd_node *node, const struct grd_storage *written, struct grd_outdated *outdated);
    /* Called when the last reference is dropped: true if another object has taken over the node, which then is not freed. May be NULL. */
    bool (*take_over)(struct grd_node *node);
    /* Calls `visit` for the user contexts that the node itself keeps. May be NULL. */
    int (*visit)(struct grd_node *node, grd_context_visitor *visit, void *arg);
    bool is_custom; /* the nodes belong to custom functions of the user */
};

struct grd_node {
    struct grd_object object;
    struct grd_object *owner; /* the object whose references keep the node alive: the node itself, or the leaf it is part of */
    const struct grd_node_class *class;
    const char *name;
    uint64_t sequence; /* of the ready nodes the one with the highest number runs first; an AccumulateGrad runs before all others */
    struct grd_edge *edges;
    struct grd_output *outputs;
    uint32_t size; /* bytes of the allocated block */
    uint32_t nedges, noutputs;
    uint32_t view_version;    /* when the result is a view: the version of its storage this node belongs to */
    struct grd_node *next;    /* link of the list of nodes still to be visited (visit_contexts.c) */
    struct grd_node *wrapper; /* the CopySlices that owns this node, or NULL */
    struct grd_hooks hooks;
    struct grd_spin lock; /* protects the saved values */
    bool keeps;           /* the node has saved tensors or other values that must be dropped */
    bool freed;           /* the saved values were taken by a run without retain_graph; another run is an error */
    uint8_t device;       /* the device type whose thread runs the node */
};

extern const struct grd_object_type grd_node_type;

/* The sequence number of the next node that this thread creates. */
extern _Thread_local uint64_t grd_node_sequence __attribute__((tls_model("initial-exec")));
/* Raises MemoryError and returns NULL. */
struct grd_node *grd_node_too_large(uint32_t nedges, uint32_t noutputs);

/* Returns a new node of `struct_size` bytes (its struct begins with grd_node, and they are a multiple of 8) with room for edges, outputs and `extra`
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

/* Returns the extra bytes of a node, which follow its outputs. */
static inline void *grd_node_room(const struct grd_node *node)
{
    return node->outputs + node->noutputs;
}

/* Copies sizes or strides to *room, in the extra bytes of a node, and advances *room behind the copy. */
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

/* Describes output `output` like `t`; `sizes` is not copied and must live as long as the node. */
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
