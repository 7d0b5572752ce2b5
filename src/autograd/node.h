/* The graph: nodes, edges, what a node saved, and what a tensor knows about its place in the graph.
 *
 * Lives here: the data structures all files of this floor share. Not here: how nodes come to be (record.c, view.c, custom.c) and how they
 * are run (pass.h).
 *
 * Invariants
 * - A node owns the nodes its edges lead to; a tensor owns its grad_fn; nothing in the graph owns a later part of it. So there is
 *   no cycle: a node that saves its own output saves an alias without history, and a leaf is owned by its AccumulateGrad only while edges
 *   lead there.
 * - Edges never change after a node is published; what it saved is dropped once, under its lock.
 * - Freeing a node never recurses into another: see grd_node_destroy. */
#ifndef GRD_AUTOGRAD_NODE_H
#define GRD_AUTOGRAD_NODE_H

#include <sched.h>

#include "autograd/derivative.h"
#include "base/memory.h"
#include "base/object.h"
#include "gradus/autograd.h"

enum { GRD_AUTOGRAD_BIT = 1 << GRD_KEY_AUTOGRAD };

/* ---- Locks ---------------------------------------------------------------------------------------------------------------- */
/* Held for a few instructions, or for one accumulation. */
struct grd_spin {
    atomic_flag flag;
};

static inline void grd_spin_lock(struct grd_spin *spin)
{
    while (atomic_flag_test_and_set_explicit(&spin->flag, memory_order_acquire))
        sched_yield();
}

static inline void grd_spin_unlock(struct grd_spin *spin)
{
    atomic_flag_clear_explicit(&spin->flag, memory_order_release);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------------------ */
struct grd_edge {
    struct grd_node *node; /* owned; NULL: no gradient is wanted here */
    uint32_t output;       /* of that node */
};

/* What the gradient of an output must look like. */
struct grd_output {
    const int64_t *sizes;
    uint8_t ndim, dtype, device;
    int8_t device_index;
};

/* One call of a node. Results are pooled or borrowed from the arguments. */
struct grd_run {
    grd_tensor *const *grads; /* one per output, NULL where undefined */
    grd_tensor **ret_grads;   /* one per edge, NULL on entry */
    uint64_t needs;           /* bit i: edge i; edges above 63 share bit 63 */
    bool retain;              /* keep what is saved */
};

struct grd_node_class {
    void (*run)(struct grd_node *node, const struct grd_run *run);
    /* Drops the saved tensors; called after a pass that does not retain the graph, and before the node is freed. May be NULL. */
    void (*release)(struct grd_node *node);
    /* What else a node of this class owns; false when the block is not to be freed. May be NULL. */
    bool (*finish)(struct grd_node *node);
};

struct grd_hook;
struct grd_hooks {
    struct grd_hook *_Atomic first; /* asked without the lock whether there is one */
};

struct grd_node {
    struct grd_object object;
    const struct grd_node_class *class;
    const char *name;
    uint64_t sequence;        /* later nodes run first; AccumulateGrad before all */
    struct grd_node *next;    /* in the list of nodes to be freed */
    struct grd_node *wrapper; /* the CopySlices that owns this node, or NULL */
    struct grd_edge *edges;
    struct grd_output *outputs;
    struct grd_hooks hooks;
    uint32_t size; /* of the block */
    uint32_t nedges, noutputs;
    uint32_t view_version; /* when the result is a view: the version of its storage this node belongs to */
    struct grd_spin lock;  /* of what is saved */
    bool freed;
    uint8_t device; /* where it runs */
};

/* A node of `struct_size` bytes (its struct begins with grd_node) with room for edges, outputs and `extra` more bytes, which
 * *ret_extra points to. Edges are absent; outputs, and what follows the grd_node in its struct, are unset. One reference, owned by the caller. NULL, with MemoryError. */
struct grd_node *grd_node_new(const struct grd_node_class *class, const char *name, size_t struct_size, uint32_t nedges, uint32_t noutputs,
                              size_t extra, void *ret_extra);
bool grd_node_is(const struct grd_object *object);
/* Copies the geometry; `sizes` must live as long as the node. */
void grd_node_describe_output(struct grd_node *node, uint32_t output, const grd_tensor *t, const int64_t *sizes);

static inline bool grd_run_needs(const struct grd_run *run, uint32_t edge)
{
    return run->needs >> (edge < 63 ? edge : 63) & 1;
}

/* ---- Arguments of public functions --------------------------------------------------------------------------------------------- */
/* "grd_is_leaf: argument 't' must be a tensor, not NULL". Returns false. */
bool grd_raise_null_tensor(const char *function, const char *argument);
bool grd_raise_null_pointer(const char *function, const char *argument);

static inline bool grd_given(const grd_tensor *t, const char *function, const char *argument)
{
    return GRD_LIKELY(t != NULL) || grd_raise_null_tensor(function, argument);
}

static inline bool grd_given_pointer(const void *pointer, const char *function, const char *argument)
{
    return GRD_LIKELY(pointer != NULL) || grd_raise_null_pointer(function, argument);
}

/* ---- Saved values (saved.c) ------------------------------------------------------------------------------------------------------ */
struct grd_saved {
    grd_value value;
    uint32_t *versions; /* of a list of tensors */
    uint32_t version;
    int32_t output; /* of this very node, or -1 */
};

/* Keeps the tensor, or for one of the node's own outputs an alias without history. False, with the error raised, on failure. */
bool grd_saved_set_tensor(struct grd_saved *saved, grd_tensor *t, int32_t output);
void grd_saved_drop(struct grd_saved *saved);
/* Checks the versions and makes the value as a formula wants it; own outputs get their history back when grad mode is on. */
bool grd_saved_unpack(const struct grd_saved *saved, struct grd_node *node, grd_value *ret_value);
/* Starts a run: false, with the error raised, when the values are gone. Marks them gone unless `retain`; otherwise puts references to
 * the tensors in the pool, so that another thread may drop its own. */
bool grd_saved_begin(struct grd_node *node, const struct grd_saved *saved, int n, bool retain);

/* ---- Nodes of operators (record.c) ------------------------------------------------------------------------------------------------- */
/* The node of a call. `needs`: differentiable arguments that require gradients. `self_copy`, when given, is saved instead of
 * the tensor that is about to be overwritten. */
struct grd_node *grd_op_node_new(const struct grd_op *op, const grd_value *args, grd_tensor *const *results, int64_t nresults,
                                 uint64_t needs, grd_tensor *self_copy);

/* ---- What a tensor knows (meta.c) ------------------------------------------------------------------------------------------------------- */
/* A gradient kept for a tensor that is no leaf: shared by the tensor and by the hook that fills it. */
struct grd_retained {
    struct grd_object object;
    grd_tensor *grad;
};

/* t->autograd is NULL, or a grd_meta, or for a tensor that is output 0 of a node and nothing else, that node itself. */
struct grd_meta {
    struct grd_object object;
    struct grd_node *grad_fn; /* owned */
    uint32_t output;
    uint32_t view_version;
    grd_tensor *grad;              /* owned */
    struct grd_retained *retained; /* owned */
    struct grd_node *accumulator;  /* made once, under `lock`: see Note [Accumulators] */
    struct grd_hooks hooks;        /* of a leaf */
    struct grd_spin lock;
    struct grd_spin accumulating;
};

/* The grd_meta of a tensor, NULL when it has none; ensure makes one (NULL, with the error raised, on failure). */
struct grd_meta *grd_meta_get(const grd_tensor *t);
struct grd_meta *grd_meta_ensure(grd_tensor *t);
/* Makes the tensor output `output` of the node. False, with the error raised, on failure. */
bool grd_set_history(grd_tensor *t, struct grd_node *node, uint32_t output);
/* The edge gradients of the tensor go along; ret_edge owns its node. Absent (true) when it requires none. False on failure. */
bool grd_edge_of(grd_tensor *t, struct grd_edge *ret_edge);
/* The hooks on the tensors a node computes: those of an AccumulateGrad are its leaf's. */
struct grd_hooks *grd_node_tensor_hooks(struct grd_node *node);
/* grad_fn and output as recorded, whatever happened to the base since. */
struct grd_node *grd_recorded_grad_fn(const grd_tensor *t, uint32_t *ret_output);

static inline bool grd_dtype_carries(uint8_t dtype)
{
    uint8_t category = grd_dtype_table[dtype].category;
    return category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX;
}

/* A view requires a gradient when what it is a view of does. */
static inline bool grd_needs_grad(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_REQUIRES_GRAD) ||
           (t->base != NULL && grd_has(t->base, GRD_FLAG_REQUIRES_GRAD) && grd_dtype_carries(t->dtype));
}

static inline bool grd_is_recording(void)
{
    return ((grd_thread.grad_off | grd_thread.exclude) & GRD_AUTOGRAD_BIT) == 0;
}

/* ---- In-place (view.c) --------------------------------------------------------------------------------------------------------------------- */
/* The rules for writing to a tensor while an input of the operator requires a gradient. */
bool grd_check_inplace(grd_tensor *t);
/* Before an operator writes over `t`: wraps the operator's node into what the history of `t` (or of its base) becomes.
 * Takes the reference of `node`; NULL on failure. self_edge: the node's edge 0 is the one of `t`. */
struct grd_node *grd_rebase_prepare(grd_tensor *t, struct grd_node *node, bool self_edge);
/* After it has: makes the prepared node the history. */
bool grd_rebase_commit(grd_tensor *t, struct grd_node *prepared);
/* For a node inside a CopySlices: `saved`, an alias of the view it wrote, with the view's history. */
grd_tensor *grd_slices_output(struct grd_node *wrapper, grd_tensor *saved);
/* Rewrites the grad_fn of a view whose base was written since. False, with the error raised, where that is forbidden. */
bool grd_view_refresh(grd_tensor *view);
void grd_views_init(void);

/* ---- Gradients (gradient.c) -------------------------------------------------------------------------------------------------------------------- */
/* The gradient in the shape, dtype and device an output asks for; NULL, with the error raised, when it does not fit. */
grd_tensor *grd_fit_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index);
/* Nobody else can see the tensor's data, and it can be written in place. */
bool grd_is_exclusive(const grd_tensor *t);

/* ---- Custom functions (custom.c) --------------------------------------------------------------------------------------------------------------- */
bool grd_is_custom_node(const struct grd_node *node);

/* ---- Hooks (hooks.c) ------------------------------------------------------------------------------------------------------------------------ */
/* Each leaves at the first error. The gradients are owned by the caller and replaced by owned ones. */
void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n);
void grd_hooks_run_node(struct grd_node *node, bool pre, grd_tensor **grads, uint32_t n);
void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf);
/* The owner goes away, and its hooks with it. */
void grd_hooks_clear(struct grd_hooks *hooks);
void grd_hooks_init(void);
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained);
/* Takes the filler of `retained` away again. */
void grd_hooks_unretain(struct grd_node *node, struct grd_retained *retained);

#endif
