/* The graph: nodes, edges, what a node saved, and what a tensor knows about its place in the graph.
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

#include "autograd/derivative.h"
#include "base/memory.h"
#include "base/object.h"
#include "base/small.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/autograd.h"

enum { GRD_AUTOGRAD_BIT = 1 << GRD_KEY_AUTOGRAD };

/* ---- Locks ---------------------------------------------------------------------------------------------------------------- */
/* Held for a few instructions, or for one accumulation. */
struct grd_spin {
    atomic_flag flag;
};

static inline void grd_spin_init(struct grd_spin *spin)
{
    atomic_flag_clear_explicit(&spin->flag, memory_order_relaxed);
}

static inline bool grd_spin_try(struct grd_spin *spin)
{
    return !atomic_flag_test_and_set_explicit(&spin->flag, memory_order_acquire);
}

/* grd_spin_lock for one that is held. */
void grd_spin_wait(struct grd_spin *spin);

static inline void grd_spin_lock(struct grd_spin *spin)
{
    if (GRD_UNLIKELY(!grd_spin_try(spin)))
        grd_spin_wait(spin);
}

static inline void grd_spin_unlock(struct grd_spin *spin)
{
    atomic_flag_clear_explicit(&spin->flag, memory_order_release);
}

/* An owned reference of a tensor: that of the scope, when it is among the last above the mark. */
static inline grd_tensor *grd_pool_take(grd_tensor *t, int64_t mark)
{
    enum { SEARCHED = 8 };
    void **pool = grd_thread.pool;
    const int64_t top = grd_thread.pool_top - 1, last = mark > top - SEARCHED ? mark : top - SEARCHED;
    for (int64_t i = top; i >= last; i--)
        if (pool[i] == t) {
            pool[i] = pool[top];
            grd_thread.pool_top = top;
            return t;
        }
    return grd_object_keep(t);
}

/* Ends a scope that is often empty. */
static inline void grd_pool_release_above(int64_t mark)
{
    if (grd_thread.pool_top > mark)
        grd_pool_release(mark);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------------------ */
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

/* ---- Saved values (saved.c) ------------------------------------------------------------------------------------------------------ */
struct grd_saved {
    grd_value value;
    uint32_t *versions; /* of a list of tensors */
    uint32_t version;
    int16_t output; /* of this very node, for a list the first; or -1 */
    bool borrowed;  /* the node owns the tensor in another way */
};

/* Keeps the tensor, or for one of the node's own outputs an alias without history. False, with the error raised, on failure. */
bool grd_saved_set_tensor(struct grd_saved *saved, grd_tensor *t, int output);
/* Drops a saved value that is a list, or no tensor. */
void grd_saved_drop_other(struct grd_saved *saved);

static inline void grd_saved_drop(struct grd_saved *saved)
{
    if (GRD_UNLIKELY(saved->value.kind == GRD_KIND_TENSORS || saved->value.kind == GRD_KIND_GENERATOR)) {
        grd_saved_drop_other(saved);
    } else if (saved->value.kind == GRD_KIND_TENSOR) {
        grd_tensor *t = saved->value.v.tensor;
        saved->value.v.tensor = NULL;
        if (!saved->borrowed)
            grd_object_drop(t);
    }
}

/* Checks the versions and makes the value as a formula wants it; own outputs get their history back when grad mode is on. */
bool grd_saved_restore(const struct grd_saved *saved, struct grd_node *node, grd_value *value);

static inline bool grd_saved_unpack(const struct grd_saved *saved, struct grd_node *node, grd_value *value)
{
    const grd_tensor *t = value->v.tensor;
    if (value->kind == GRD_KIND_TENSOR ? t == NULL || (saved->output < 0 && grd_version_of(t) == saved->version)
                                       : value->kind != GRD_KIND_TENSORS)
        return true;
    return grd_saved_restore(saved, node, value);
}
/* grd_saved_begin for a node that keeps something and goes on keeping it. */
bool grd_saved_share(struct grd_node *node, const struct grd_saved *saved, int n, grd_value *ret_values);
/* "Trying to backward through the graph a second time …". Returns false. */
bool grd_raise_freed(void);

/* Starts a run, with a copy of the values: false, with the error raised, when they are gone. Marks them gone
 * unless `retain`; otherwise puts references to the tensors in the pool, so that another thread may drop its own. */
static inline bool grd_saved_begin(struct grd_node *node, const struct grd_saved *saved, int n, bool retain, grd_value *ret_values)
{
    if (node->keeps && retain)
        return grd_saved_share(node, saved, n, ret_values);
    if (node->keeps) {
        grd_spin_lock(&node->lock);
        const bool freed = node->freed;
        node->freed = true;
        grd_spin_unlock(&node->lock);
        if (GRD_UNLIKELY(freed))
            return grd_raise_freed();
    }
    for (int i = 0; i < n; i++)
        ret_values[i] = saved[i].value;
    return true;
}

/* Adds to `rebase` the tensors that lie in a storage that is about to be written, or have been written since they were saved. False, with
 * the error raised, on failure. */
bool grd_saved_find_outdated(struct grd_node *node, struct grd_saved *saved, int n, const struct grd_storage *written,
                             struct grd_rebase *rebase);
/* Puts the aliases in the place of what was found. */
void grd_saved_replace_outdated(struct grd_rebase *rebase);

/* ---- Nodes of operators (op_node.c) ------------------------------------------------------------------------------------------------- */
/* A call that is recorded. */
struct grd_op_call {
    const grd_op *op;
    const struct grd_derivative *derivative;
    const grd_value *args;
    grd_tensor **results; /* all, of a list too; of the caller, who reads them again */
    int64_t nresults;
    uint64_t needs;        /* differentiable arguments that require gradients */
    grd_tensor *self_copy; /* saved instead of the tensor that is about to be overwritten; NULL: none is */
};

/* Its node, with one reference. NULL, with the error raised, on failure. */
struct grd_node *grd_op_node_new(const struct grd_op_call *call);
/* The node was made, and its output saved, before the operator wrote to `t`. */
void grd_op_node_written(struct grd_node *node, const grd_tensor *t);

/* ---- What a tensor knows (variable.c) ------------------------------------------------------------------------------------------------------- */
/* The place of a .grad, which any thread may read and replace at any time. The lock is held while pointers are exchanged, and never while
 * anything is computed or freed. */
struct grd_grad_slot {
    grd_tensor *grad; /* owned */
    struct grd_spin lock;
};

/* A reference of the gradient, owned by the caller, or NULL. */
grd_tensor *grd_slot_get(struct grd_grad_slot *slot);
/* Replaces `expected` by `grad`, whose reference it takes, NULL included. False, with nothing done, where another gradient is there by now. */
bool grd_slot_exchange(struct grd_grad_slot *slot, const grd_tensor *expected, grd_tensor *grad);

/* A gradient kept for a tensor that is no leaf: shared by the tensor and by the hook that fills it. */
struct grd_retained {
    struct grd_object object;
    struct grd_grad_slot slot;
};

struct grd_dual_level;

/* The tangent of a dual tensor: Note [Tangents] in forward.h. */
struct grd_tangent {
    grd_tensor *tensor;              /* owned; NULL: none */
    struct grd_dual_level *level;    /* owned; NULL: there has been none */
    struct grd_tangent **at, *after; /* in the list of the level, while there is a tensor */
};
/* Lets go of it. */
void grd_tangent_clear(struct grd_tangent *self);
void grd_tangent_init(void);
void grd_autocast_init(void); /* autocast.c */

/* t->autograd is NULL, or a grd_meta, or for a tensor that is output 0 of a node and nothing else, that node itself. */
struct grd_meta {
    struct grd_object object;
    /* The history. Changed under `lock`, so that a reader takes a reference of the node together with its output. */
    struct grd_node *grad_fn; /* owned */
    uint32_t output;
    uint32_t view_version;
    struct grd_node *direct;  /* where t->autograd led before there was a meta, while that is the grad_fn; not owned */
    struct grd_node *retired; /* that node when it is no longer the grad_fn; owned: Note [Replaced histories] */
    struct grd_grad_slot slot;
    struct grd_retained *retained; /* owned; set once, and cleared by grd_detach_ */
    struct grd_node *accumulator;  /* made once, under `lock` */
    struct grd_spin lock;
    struct grd_spin accumulating; /* held for an addition to the gradient, so that none is lost */
    struct grd_tangent tangent;
};

static inline struct grd_object *grd_autograd_of(const grd_tensor *t)
{
    return __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
}

/* The grd_meta of a tensor, NULL when it has none; ensure makes one (NULL, with the error raised, on failure). */
static inline struct grd_meta *grd_meta_get(const grd_tensor *t)
{
    struct grd_object *object = grd_autograd_of(t);
    return object != NULL && !grd_node_is(object) ? (struct grd_meta *)object : NULL;
}
struct grd_meta *grd_meta_ensure(grd_tensor *t);
/* grad_fn and output as recorded, whatever happened to the base since; owned by the caller, or NULL. */
struct grd_node *grd_history_of(const grd_tensor *t, uint32_t *ret_output);
/* The one that Note [Replaced histories] keeps; owned by the caller, or NULL. */
struct grd_node *grd_retired_history_of(const grd_tensor *t);

/* True if the tensor has a grad_fn, as recorded. */
static inline bool grd_has_history(const grd_tensor *t)
{
    const struct grd_object *object = grd_autograd_of(t);
    return object != NULL &&
           (grd_node_is(object) || __atomic_load_n(&((const struct grd_meta *)object)->grad_fn, __ATOMIC_RELAXED) != NULL);
}

static inline bool grd_dtype_carries(uint8_t dtype)
{
    uint8_t category = grd_dtype_table[dtype].category;
    return category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX;
}

/* A view requires a gradient when what it is a view of does. */
static inline bool grd_needs_grad(const grd_tensor *t)
{
    return grd_marked_requires_grad(t) || (t->base != NULL && grd_marked_requires_grad(t->base) && grd_dtype_carries(t->dtype));
}

/* Makes the tensor, which other threads may use, output `output` of the node, whose reference it takes. False, with the error raised, on failure. */
bool grd_replace_history(grd_tensor *t, struct grd_node *node, uint32_t output);

/* The same for a new tensor, which no other thread knows yet. */
static inline bool grd_give_history(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    if (GRD_UNLIKELY(output != 0 || t->autograd != NULL))
        return grd_replace_history(t, node, output);
    node->view_version = grd_version_of(t);
    t->autograd = &node->object;
    t->keys |= GRD_AUTOGRAD_BIT;
    return true;
}

/* grd_edge_find for a leaf, a view, or a second output. */
bool grd_edge_search(grd_tensor *t, struct grd_edge *ret_edge);

/* The edge gradients of a tensor that requires one go along; it owns its node. False, and absent, on failure. */
static inline bool grd_edge_find(grd_tensor *t, struct grd_edge *ret_edge)
{
    struct grd_object *object = grd_autograd_of(t);
    if (t->base != NULL || object == NULL || !grd_node_is(object))
        return grd_edge_search(t, ret_edge);
    *ret_edge = (struct grd_edge){grd_object_keep(object), 0};
    return true;
}

/* The same for any tensor: absent (true) when it requires no gradient. Absent on failure, too. */
static inline bool grd_edge_of(grd_tensor *t, struct grd_edge *ret_edge)
{
    *ret_edge = (struct grd_edge){NULL, 0};
    return !grd_needs_grad(t) || grd_edge_find(t, ret_edge);
}

static inline bool grd_is_recording(void)
{
    return ((grd_thread.grad_off | grd_thread.exclude) & GRD_AUTOGRAD_BIT) == 0;
}

/* ---- In-place (inplace.c) --------------------------------------------------------------------------------------------------------------------- */
/* The rules for writing to a tensor while an input of the operator requires a gradient. */
bool grd_check_inplace(grd_tensor *t);
/* A tensor that a history saved and that is overwritten: Note [Saved and overwritten]. */
struct grd_outdated {
    struct grd_node *node;
    grd_tensor **slot, *alias; /* where it is saved; what is to be there, pooled */
    grd_tensor *replaced;      /* what was there; owned */
};

/* What becomes of histories when an operator has written in place. */
struct grd_rebase {
    struct grd_node *history; /* of the tensor, or of the base it is a view of; owned */
    uint32_t output;
    struct grd_outdated *outdated;
    struct grd_node **held; /* histories of saved tensors, kept while they are searched */
    int64_t noutdated, outdated_capacity, nheld, held_capacity;
    struct grd_pass *pass; /* of the search */
    uint64_t number;       /* of histories that had been replaced before the search */
};

/* Before an operator writes over `t`, output `output` of its node: wraps the node into what the history of `t` (or of its base) becomes.
 * Takes the reference of `node`; false on failure. self_edge: the node's edge 0 is the one of `t`. */
bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge);
/* After it has: makes the prepared node the history. */
bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t);
/* After it has not. */
void grd_rebase_abandon(const struct grd_rebase *rebase);
/* Searches the history of a saved tensor too. False, with the error raised, on failure. */
bool grd_rebase_search(struct grd_rebase *rebase, const grd_tensor *saved);
/* For a node inside a CopySlices: `saved`, an alias of the view it wrote, with the view's history. */
grd_tensor *grd_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* Rewrites the grad_fn of a view whose base was written since. False, with the error raised, where that is forbidden. */
bool grd_view_refresh(grd_tensor *view);
/* A view of `whole`, which has the sizes and strides of the base of `view`, at the place of that; made by operators. */
grd_tensor *grd_view_of_whole(grd_tensor *whole, const grd_tensor *view);
/* The node that a CopySlices is around; others themselves. */
struct grd_node *grd_node_inside(struct grd_node *node);
void grd_views_init(void);

/* ---- Gradients (gradient.c) -------------------------------------------------------------------------------------------------------------------- */
/* The gradient in the shape, dtype and device an output asks for; NULL, with the error raised, when that cannot be. */
grd_tensor *grd_adapt_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index);

static inline grd_tensor *grd_fit_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index)
{
    bool fits = grd_output_traits(grad) == output->traits;
    for (int i = 0; fits && i < output->ndim; i++)
        fits = grad->sizes[i] == output->sizes[i];
    return GRD_LIKELY(fits) ? grad : grd_adapt_gradient(output, grad, node_name, index);
}
/* Nobody else can see the tensor's data, and it can be written in place. */
bool grd_is_exclusive(const grd_tensor *t);

/* Does so for most tensors: contiguous, and no view. */
static inline bool grd_is_exclusive_whole(const grd_tensor *t)
{
    return t->base == NULL && grd_has(t, GRD_FLAG_CONTIGUOUS) && grd_object_unique(t) && t->autograd == NULL &&
           t->storage->release == NULL && grd_object_unique(t->storage);
}

/* ---- Custom functions (custom.c) --------------------------------------------------------------------------------------------------------------- */
bool grd_is_custom_node(const struct grd_node *node);

/* Lets go of what a user's function works with. What that runs sees no pending error of ours, and leaves ours pending. */
static inline void grd_release_context(void (*release)(void *context), void *context)
{
    if (release == NULL)
        return;
    struct grd_error_state error = grd_error_take();
    release(context);
    grd_error_restore(error);
}

/* ---- Anomaly mode (anomaly.c) ------------------------------------------------------------------------------------------------------------------ */
/* Where the mode is on, the history of the tensor learns where it was recorded, if its number is not below `first`; so does that of its base. `t` may be
 * NULL. May leave an error pending. */
void grd_anomaly_trace(const grd_tensor *t, uint64_t first);
/* True if passes look for NaN. */
extern GRD_HIDDEN _Atomic bool grd_anomaly_checks_nan;
/* Where they do: "Function 'SqrtBackward0' returned nan values in its 0th output.". */
void grd_anomaly_check(const struct grd_node *node, grd_tensor *const *results);
/* Where the mode is on, warns that the node has failed, and says where it was recorded. An error is pending, before and after. */
void grd_anomaly_report(struct grd_node *node);

/* ---- Hooks (hooks.c) ------------------------------------------------------------------------------------------------------------------------ */
/* Each leaves at the first error. The gradients are owned by the caller and replaced by owned ones. */
void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n);
/* Before the node runs, with absent grad_outputs; after it, with those noted before. */
void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n);
/* The gradients of the outputs, for the hooks after the node; absent when it has none. Pooled. */
grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads);
int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg);
/* Keeps what release frees, until the node goes. False, with the error raised, on failure. grd_hooks_trace returns it, or NULL. */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace));
void *grd_hooks_trace(struct grd_hooks *hooks);
void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf);
/* The owner goes away, and its hooks with it. */
void grd_hooks_clear(struct grd_hooks *hooks);
void grd_hooks_init(void);
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained);
/* Takes the filler of `retained` away again. */
void grd_hooks_unretain(struct grd_node *node, struct grd_retained *retained);

#endif
