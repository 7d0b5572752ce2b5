/* Reverse-mode differentiation: leaves, the graph, the engine, hooks, custom functions, gradient checks. */
#ifndef GRADUS_AUTOGRAD_H
#define GRADUS_AUTOGRAD_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_node grd_node;

/* ---- Leaves --------------------------------------------------------------------------------------------------------- */
GRD_API bool grd_requires_grad(const grd_tensor *t);
/* Sets whether a leaf requires a gradient; returns `t`. RuntimeError: an integer dtype, or turning it off for a tensor that has a history. */
GRD_API grd_tensor *grd_set_requires_grad(grd_tensor *t, bool requires_grad);
GRD_API bool grd_is_leaf(const grd_tensor *t);
/* Returns the accumulated gradient of a leaf (or of a tensor with grd_retain_grad), or NULL. The reference is pooled, so the gradient stays valid
 * when another thread replaces it. */
GRD_API grd_tensor *grd_grad_of(const grd_tensor *t);
/* Replaces the gradient; NULL clears it. Shape, dtype and device must be the tensor's. */
GRD_API void grd_set_grad(grd_tensor *t, grd_tensor *grad);
/* Makes backward store the gradient of a tensor that is no leaf. */
GRD_API void grd_retain_grad(grd_tensor *t);
/* Removes the history of `t`, which becomes a leaf that requires no gradient. RuntimeError: `t` is a view. */
GRD_API void grd_detach_(grd_tensor *t);
/* True if grd_retain_grad had an effect on the tensor. */
GRD_API bool grd_retains_grad(const grd_tensor *t);

/* ---- Modes ------------------------------------------------------------------------------------------------------------ */
GRD_API bool grd_grad_enabled(void);
/* Turns the recording of operators on this thread on or off; returns the previous setting. */
GRD_API bool grd_set_grad_enabled(bool enabled);

/* Autocast: while it is on in a thread, products, convolutions and attention take their floating tensors on the cpu in a dtype of 16 bits, losses
 * and some others take them in float32 (`autocast` of the schema's entries). float64 stays. Casts are recorded, and gradients come back in the
 * dtypes of the tensors. */
GRD_API bool grd_autocast_enabled(void);
/* Returns the previous setting. */
GRD_API bool grd_set_autocast_enabled(bool enabled);
/* bfloat16 unless it was set to float16 in this thread. */
GRD_API grd_dtype grd_autocast_dtype(void);
/* TypeError for a dtype that is not floating. */
GRD_API void grd_set_autocast_dtype(grd_dtype dtype);
/* Leaves that require a gradient are cast once and kept until grd_clear_autocast_cache, unless the cache is off. */
GRD_API bool grd_autocast_cache_enabled(void);
GRD_API void grd_set_autocast_cache_enabled(bool enabled);
GRD_API void grd_clear_autocast_cache(void);

/* ---- The engine -------------------------------------------------------------------------------------------------------- */
/* Accumulates d(tensor)/d(leaf) into every leaf below `tensor`, which must have one element. Frees the graph. */
GRD_API void grd_backward(grd_tensor *tensor);

typedef struct grd_backward_options {
    grd_tensors grad_outputs; /* absent: ones, for one-element outputs; single entries may be NULL likewise */
    bool retain_graph;        /* keep saved tensors for another pass; implied by create_graph */
    bool create_graph;        /* record the backward pass, for higher derivatives */
    bool allow_unused;        /* grd_grad only: NULL for an input that is not in the graph, instead of an error */
    bool unhooked_inputs;     /* grd_grad only: tensor hooks on the inputs are not called, e.g. since the result goes on to them later */
    grd_tensors inputs;       /* grd_backward_all only: accumulate into these and no others; absent: into every leaf */
} grd_backward_options;

/* The general form: several outputs. `options` may be NULL. Inputs that are no leaves get a gradient as with grd_retain_grad. */
GRD_API void grd_backward_all(grd_tensors_view outputs, const grd_backward_options *options);

/* Gradients of the outputs with respect to the inputs, without touching any .grad: inputs.n pooled tensors (or NULL, with
 * allow_unused) written to ret_grads. False on failure, with ret_grads all grd_failed. */
GRD_API bool grd_grad(grd_tensors_view outputs, grd_tensors_view inputs, const grd_backward_options *options, grd_tensor **ret_grads);

/* ---- Forward mode -------------------------------------------------------------------------------------------------------- */
/* A dual tensor has a tangent beside its value: the derivative of the value in one direction. What is computed of dual tensors is dual, so after
 * y = f(grd_make_dual(x, v)) the tangent of y is J v, with J the Jacobian of f at x. Tangents are tensors like others: they can be recorded, and
 * gradients of dual tensors have tangents. They live until the level ends that the thread has entered. One level at a time: RuntimeError for a
 * second. False on failure. */
GRD_API bool grd_enter_dual_level(void);
/* Ends the level and drops all tangents made in it. False, with RuntimeError: the thread is in no level. */
GRD_API bool grd_exit_dual_level(void);
/* A view of `primal` with a tangent, which has its sizes and dtype. RuntimeError: other sizes or another dtype, or no level. ValueError: `primal`
 * is not floating point or complex. */
GRD_API grd_tensor *grd_make_dual(grd_tensor *primal, grd_tensor *tangent);
/* Returns a view of `dual` that has no tangent. */
GRD_API grd_tensor *grd_primal(grd_tensor *dual);
/* Returns the tangent, pooled; NULL if there is none; grd_failed on failure. */
GRD_API grd_tensor *grd_tangent(grd_tensor *dual);

/* ---- Anomaly mode ------------------------------------------------------------------------------------------------------ */
/* Sets whether anomalies are looked for, in all threads; off at first. While they are, a node that fails in a pass is named in a warning
 * (grd_set_warning_handler) that says where it was recorded; with `check_nan`, a gradient of an input that holds a NaN is a RuntimeError. */
GRD_API void grd_set_anomaly_mode(bool enabled, bool check_nan);
/* Returns true if anomalies are looked for. `ret_check_nan` may be NULL. */
GRD_API bool grd_anomaly_mode(bool *ret_check_nan);
/* Returns a text that says where the calling thread is, such as its call stack, or NULL; the library copies it at once. */
typedef const char *grd_tracer(void);
/* Sets who is asked when a node is recorded in anomaly mode; NULL: nobody. */
GRD_API void grd_set_anomaly_tracer(grd_tracer *tracer);

/* ---- The graph ----------------------------------------------------------------------------------------------------------- */
/* Returns the node that computed the tensor, or NULL for a leaf. The reference is pooled, as that of a tensor is. */
GRD_API grd_node *grd_grad_fn(grd_tensor *t);
/* The node that gradients of the tensor flow to: its grad_fn, or for a leaf its AccumulateGrad. Pooled. NULL when none. */
GRD_API grd_node *grd_gradient_edge(grd_tensor *t, int *ret_output);
/* A reference of the caller's own, which keeps all that lies below the node, too. Returns `node`. */
GRD_API grd_node *grd_keep_node(grd_node *node);
GRD_API void grd_drop_node(grd_node *node); /* NULL is allowed */
/* "AddBackward0", "AccumulateGrad", … */
GRD_API const char *grd_node_name(const grd_node *node);
GRD_API int grd_node_edge_count(const grd_node *node);
/* The node an edge leads to (NULL: that input needs no gradient) and the output of that node it stands for. */
GRD_API grd_node *grd_node_edge(const grd_node *node, int edge, int *ret_output);
/* Runs the node alone, without hooks, on `n` gradients of its outputs (NULL where undefined), and writes the gradients of its inputs, pooled or NULL,
 * to ret_grads, which has room for grd_node_edge_count. The node keeps what it saved. TypeError unless n is the number of its outputs. False, with
 * ret_grads all NULL, on failure. */
GRD_API bool grd_node_run(grd_node *node, grd_tensor *const *grads, int n, grd_tensor **ret_grads);
/* Returns the leaf of an AccumulateGrad node; NULL for other nodes. */
GRD_API grd_tensor *grd_node_variable(const grd_node *node);

/* ---- Hooks ------------------------------------------------------------------------------------------------------------------ */
/* A tensor hook sees the gradient before it flows on and returns it or a replacement. */
typedef grd_tensor *grd_tensor_hook(grd_tensor *grad, void *context);
/* A node hook runs before (pre) a node on the gradients of its outputs, or after it on those of its inputs, and may replace entries. After
 * it, `grad_outputs` is what the node ran on; before it, absent. Entries are NULL where undefined. */
typedef void grd_node_hook(grd_node *node, grd_tensors_view grad_outputs, grd_tensor **grads, int n, void *context);
/* Each returns a handle for grd_hook_remove; release(context) is called when the hook goes (may be NULL). 0 on failure. */
GRD_API uint64_t grd_hook_tensor(grd_tensor *t, grd_tensor_hook *hook, void *context, void (*release)(void *context));
GRD_API uint64_t grd_hook_node(grd_node *node, bool pre, grd_node_hook *hook, void *context, void (*release)(void *context));
/* Runs after a leaf's gradient has been accumulated; gets the leaf. */
GRD_API uint64_t grd_hook_accumulated(grd_tensor *leaf, void (*hook)(grd_tensor *leaf, void *context), void *context,
                                      void (*release)(void *context));
GRD_API void grd_hook_remove(uint64_t handle);

/* ---- Custom functions ----------------------------------------------------------------------------------------------------------- */
/* A function with a backward of its own. `forward` computes outputs from inputs (its operators are not recorded) and may keep
 * tensors for `backward` with grd_custom_save; `backward` gets the gradients of the outputs (NULL where undefined) and writes those of the
 * inputs (NULL: none); it is recorded when create_graph is on. Both report failure with grd_error_set. */
typedef struct grd_custom_call grd_custom_call;
typedef struct grd_custom_function {
    const char *name;
    void (*forward)(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs);
    void (*backward)(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads);
    int inputs, outputs;
    void *context; /* grd_custom_context */
    /* Called once for each call, on failure too, when nothing needs the context any more; on any thread. May be NULL. */
    void (*release)(void *context);
    /* Asked when the call's node is about to go, with the context: true, and the last reference of the node is the context's from then on, to be
     * given up with grd_drop_node. May be NULL. */
    bool (*take_over)(void *context);
    /* Forward mode: from the tangents of the inputs (NULL: none) to those of the outputs (NULL stays: none), after forward, and recorded as the
     * caller records. May be NULL: then an input with a tangent is refused. */
    void (*jvp)(grd_custom_call *call, grd_tensor *const *tangents, grd_tensor **ret_tangents);
} grd_custom_function;
/* Inputs may be NULL where the function allows it: then they have no gradient. */
GRD_API bool grd_custom_apply(const grd_custom_function *function, grd_tensor *const *inputs, grd_tensor **ret_outputs);
GRD_API void grd_custom_save(grd_custom_call *call, grd_tensor *t);     /* an input or an output */
GRD_API grd_tensor *grd_custom_saved(grd_custom_call *call, int index); /* checked against in-place changes */
GRD_API bool grd_custom_needs_grad(const grd_custom_call *call, int input);
GRD_API void *grd_custom_context(const grd_custom_call *call);
GRD_API void grd_custom_mark_dirty(grd_custom_call *call, grd_tensor *t); /* an input written in place and returned */
GRD_API void grd_custom_mark_non_differentiable(grd_custom_call *call, grd_tensor *output);
/* Gives backward zeros instead of NULL; off unless set during forward. */
GRD_API void grd_custom_materialize_grads(grd_custom_call *call, bool materialize);

/* grd_custom_apply in two halves, for a caller that runs forward itself and learns from it how many outputs there are. Between them it computes
 * with grad mode off, saves and marks; `forward` and `outputs` of the function are not used. `inputs` must stay valid until the end. NULL on
 * failure. */
GRD_API grd_custom_call *grd_custom_begin(const grd_custom_function *function, grd_tensor *const *inputs);
/* Ends every call that was begun, one whose forward failed (an error is pending) too. Outputs that are NULL are no tensors and have no
 * gradient; an input that is handed back unwritten is replaced by a view of it, pooled. False on failure. */
GRD_API bool grd_custom_end(grd_custom_call *call, grd_tensor **outputs, int n);
/* The node of a call; it lives as long as the call's context. */
GRD_API grd_node *grd_custom_node(grd_custom_call *call);
/* The call whose node it is, when the function's release is this one; NULL, with no error, for all other nodes. */
GRD_API grd_custom_call *grd_node_custom_call(grd_node *node, void (*release)(void *context));

/* ---- For garbage collectors ------------------------------------------------------------------------------------------------------------- */
/* `release` tells whose context it is. */
typedef int grd_context_visitor(void *context, void (*release)(void *context), void *arg);
/* Calls `visit` for every context, of hooks and of custom functions, that nothing but the tensor keeps: it would be released if the caller gave
 * up its reference, which must be the only one (otherwise there are none). Stops at the first call that does not return 0 and returns that.
 * Nobody may work with the tensor meanwhile. */
GRD_API int grd_visit_contexts(grd_tensor *t, grd_context_visitor *visit, void *arg);
/* Calls `visit` for every such context that nothing but a node, which the caller keeps, keeps. */
GRD_API int grd_node_visit_contexts(grd_node *node, grd_context_visitor *visit, void *arg);

/* ---- Checks -------------------------------------------------------------------------------------------------------------------------- */
/* Compares analytic gradients with central differences, for float64 or complex128 inputs that require gradients.
 * False, with an error that names input, element and both values, where they differ.
 * Formula: |analytic - numeric| <= atol + rtol * |numeric|, with step eps. Zeros mean eps 1e-6, atol 1e-5, rtol 1e-3. */
typedef struct grd_gradcheck_options {
    double eps, atol, rtol;
    bool forward; /* compares the tangents of forward mode, too; of gradients: forward over reverse. The thread has entered no level */
} grd_gradcheck_options;
/* The list a function returns must stay valid until it is called again; it may be static. */
typedef grd_tensors_view grd_function(grd_tensor *const *inputs, int n, void *context);
GRD_API bool grd_gradcheck(grd_function *function, grd_tensors_view inputs, void *context, const grd_gradcheck_options *options);
/* Compares the gradients of the gradients with central differences: second order. */
GRD_API bool grd_gradgradcheck(grd_function *function, grd_tensors_view inputs, void *context, const grd_gradcheck_options *options);

GRD_END_DECLS
#endif
