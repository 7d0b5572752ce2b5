/* Declares the nodes and edges of the autograd graph, which all files of src/autograd use. op_node.c (operators), variable.c (AccumulateGrad),
 * copy_slices.c and custom.c create nodes. The engine (pass.h) runs them.
 *
 * Invariants
 * - A tensor owns its grad_fn, and a node owns the nodes that its edges lead to. No node owns a node or tensor that was computed from its
 *   outputs, so there are no reference cycles. For this reason a node saves its own output as an alias without history; see also Note [Saved and
 *   overwritten].
 * - An AccumulateGrad and its leaf share the reference count of the leaf, so a reference to one of them keeps both alive.
 * - The edges of a node do not change once another thread can see the node. Its saved values are dropped only once, under its lock.
 * - Freeing a node does not recurse into the nodes that it owns, see Note [Chains of owners]. */
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

/* An edge says to which output of which node the gradient of an input flows. */
struct grd_edge {
    struct grd_node *node; /* the node to which the gradient flows; owned; NULL if the input needs no gradient */
    uint32_t output;       /* the input is output number `output` of `node` */
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
        uint64_t traits; /* the fields of the struct above as one number, for a fast comparison; `flags` is 0 */
    };
};

/* Returns the dtype, device and number of dimensions of `t` as one number. A gradient of `t` must have the same number. */
static inline uint64_t grd_output_traits(const grd_tensor *t)
{
    return t->traits & (GRD_TRAITS_DTYPE | GRD_TRAITS_DEVICE | GRD_TRAITS_NDIM);
}

/* The arguments of one run of a node. The run writes the gradients of the edges to ret_grads. The caller does not own these gradients: they are
 * temporaries of the innermost grd_scope, or tensors of `grads`. */
struct grd_run {
    /* the gradients of the node's outputs; NULL for an undefined gradient. The caller owns the gradients. The run may take over the reference to a
     * gradient; it then sets the element of `grads` to NULL */
    grd_tensor **grads;
    grd_tensor **ret_grads; /* the gradients that the run computes, one per edge; all NULL when the run begins */
    uint64_t needs;         /* bit i: edge i needs a gradient; edges from 63 on share bit 63 */
    bool retain;            /* retain_graph: the node keeps its saved values after the run */
};

struct grd_outdated;

/* The functions that all nodes of one kind share, e.g. all nodes of operators. */
struct grd_node_class {
    void (*run)(struct grd_node *node, const struct grd_run *run);
    /* Drops the saved values. Called after a backward pass that does not retain the graph, and before the node is freed. May be NULL. */
    void (*release)(struct grd_node *node);
    /* Drops everything that the node owns besides its saved values, before the node is freed. May be NULL. */
    void (*finish)(struct grd_node *node);
    /* Adds to `outdated` the saved tensors of the node that are in the storage `written`, which an in-place operator is about to overwrite, and
     * those that were written since they were saved. False, with the error raised, on failure. May be NULL. */
    bool (*find_outdated)(struct grd_node *node, const struct grd_storage *written, struct grd_outdated *outdated);
    /* Called when the last reference to the node is dropped. True if an object of the user has become the owner of the node, so that the node is
     * not freed. May be NULL. */
    bool (*take_over)(struct grd_node *node);
    /* Calls `visit` for each context (object of the user) that the node itself owns, so that a garbage collector finds the context. Does not visit
     * the contexts of hooks. Returns the first result that is not 0, or 0. May be NULL. */
    int (*visit)(struct grd_node *node, grd_context_visitor *visit, void *arg);
    bool is_custom; /* the nodes belong to custom functions of the user */
};

struct grd_node {
    struct grd_object object;
    struct grd_object *owner; /* the object whose references keep the node alive: the node itself, or the leaf of an AccumulateGrad */
    const struct grd_node_class *class;
    const char *name;
    uint64_t sequence; /* among the nodes that are ready, the one with the highest number runs first; numbers grow with the time of
                        * creation, and an AccumulateGrad has the highest of all */
    struct grd_edge *edges;
    struct grd_output *outputs;
    uint32_t size; /* bytes of the allocated block, which holds the node, its edges and its outputs */
    uint32_t nedges, noutputs;
    uint32_t view_version;    /* if the output is a view: the version of its storage when this node became its grad_fn */
    struct grd_node *next;    /* link of the list of nodes that visit_contexts.c has still to visit */
    struct grd_node *wrapper; /* the CopySlices that owns this node, or NULL */
    struct grd_hooks hooks;
    struct grd_spin lock; /* protects the saved values */
    bool keeps;           /* among the saved values are tensors or random number generators */
    bool freed;           /* the saved values were taken by a run without retain_graph; another run is an error */
    uint8_t device;       /* the device type whose thread runs the node */
};

/* The object type of all nodes. t->autograd points to a node if the object has this type, and otherwise to a grd_autograd_meta. */
extern const struct grd_object_type grd_node_type;

/* The sequence number of the next node that this thread creates. */
extern _Thread_local uint64_t grd_node_sequence __attribute__((tls_model("initial-exec")));
/* Raises MemoryError for a node whose block would be too large, and returns NULL. */
struct grd_node *grd_node_too_large(uint32_t nedges, uint32_t noutputs);

/* Returns a new node, owned by the caller. The node is one block of memory: a struct of `struct_size` bytes (a multiple of 8), whose first member
 * is a grd_node, followed by the edges, the outputs and `extra` more bytes. Only the grd_node is initialized. NULL, with MemoryError, on failure. */
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

/* Returns the address of the extra bytes of a node's block, which follow its outputs. */
static inline void *grd_node_room(const struct grd_node *node)
{
    return node->outputs + node->noutputs;
}

/* Copies n sizes or strides to the address *room, which lies in the extra bytes of a node's block, and advances *room to the end of the copy.
 * Returns the copy. */
static inline grd_dims grd_copy_dims(char **room, const int64_t *data, int64_t n)
{
    int64_t *copy = (int64_t *)(void *)*room;
    *room += (size_t)n * sizeof *copy;
    for (int64_t i = 0; i < n; i++)
        copy[i] = data[i];
    return grd_dims_from(copy, n);
}

/* True if the object is a node. */
static inline bool grd_node_is(const struct grd_object *object)
{
    return object->type == &grd_node_type;
}

/* Adds a reference to the node and returns the node. */
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

/* Sets the description of output number `output` to the dtype, device and rank of `t` and to `sizes`, which must live as long as the node. */
static inline void grd_node_describe_output(struct grd_node *node, uint32_t output, const grd_tensor *t, const int64_t *sizes)
{
    node->outputs[output].sizes = sizes;
    node->outputs[output].traits = grd_output_traits(t);
    if (output == 0)
        node->device = t->device;
}

/* True if the run has to compute the gradient of edge number `edge`. */
static inline bool grd_run_needs(const struct grd_run *run, uint32_t edge)
{
    return run->needs >> (edge < 63 ? edge : 63) & 1;
}

#endif
