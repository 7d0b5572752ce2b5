/* Declares reverse- and forward-mode differentiation: gradients of leaves, the graph, the engine that runs it backwards, hooks, custom functions and
 * gradient checks. */
#ifndef GRADUS_AUTOGRAD_H
#define GRADUS_AUTOGRAD_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_node grd_node;

/* ---- Leaves --------------------------------------------------------------------------------------------------------- */
/* True if operators on `t` are recorded while grad mode is on (grd_set_grad_enabled). */
GRD_API bool grd_requires_grad(const grd_tensor *t);
/* Sets whether the leaf `t` requires a gradient; returns `t`. Raises RuntimeError if the dtype is neither floating point nor complex, or if
 * `requires_grad` is false and `t` was computed by a recorded operator. */
GRD_API grd_tensor *grd_set_requires_grad(grd_tensor *t, bool requires_grad);
/* True if `t` was not computed by a recorded operator. */
GRD_API bool grd_is_leaf(const grd_tensor *t);
/* Returns the accumulated gradient of a leaf (or of a tensor with grd_retain_grad), or NULL. The innermost open scope owns the returned
 * reference, so the gradient stays valid when another thread replaces it. */
GRD_API grd_tensor *grd_grad_of(const grd_tensor *t);
/* Replaces the gradient of `t` by `grad`, whose shape, dtype and device must be those of `t`. NULL removes the gradient. */
GRD_API void grd_set_grad(grd_tensor *t, grd_tensor *grad);
/* Makes backward store the gradient of `t` although `t` is not a leaf. For a leaf it does nothing. Raises RuntimeError if `t` requires no
 * gradient. */
GRD_API void grd_retain_grad(grd_tensor *t);
/* Removes the history of `t`, which becomes a leaf that requires no gradient. Raises RuntimeError if `t` is a view. */
GRD_API void grd_detach_(grd_tensor *t);
/* True if backward stores the gradient of `t` because of grd_retain_grad. */
GRD_API bool grd_retains_grad(const grd_tensor *t);

/* ---- Modes ------------------------------------------------------------------------------------------------------------ */
/* True if operators on this thread are recorded. */
GRD_API bool grd_grad_enabled(void);
/* Turns the recording of operators on this thread on or off; returns the previous setting. */
GRD_API bool grd_set_grad_enabled(bool enabled);

/* Autocast: while it is on in a thread, matrix products, convolutions and attention convert their floating-point CPU tensors to a 16-bit dtype,
 * and losses and some other operators convert theirs to float32. The key `autocast` of an operator's schema entry says which conversion it does.
 * float64 tensors are not converted. The conversions are recorded, so each gradient has the dtype of its tensor.
 *
 * grd_autocast_enabled returns true if autocast is on in this thread. */
GRD_API bool grd_autocast_enabled(void);
/* Turns autocast on or off in this thread; returns the previous setting. */
GRD_API bool grd_set_autocast_enabled(bool enabled);
/* Returns the 16-bit dtype that autocast uses in this thread: bfloat16 unless grd_set_autocast_dtype has set another one. */
GRD_API grd_dtype grd_autocast_dtype(void);
/* Sets the dtype that autocast uses in this thread. Raises TypeError if `dtype` is not floating point. */
GRD_API void grd_set_autocast_dtype(grd_dtype dtype);
/* True if this thread's autocast cache is on. The cache keeps a converted copy of each leaf that requires a gradient, so that a weight is converted
 * only once. grd_clear_autocast_cache drops the copies. */
GRD_API bool grd_autocast_cache_enabled(void);
/* Turns this thread's autocast cache on or off. */
GRD_API void grd_set_autocast_cache_enabled(bool enabled);
/* Drops the converted copies in this thread's autocast cache, which otherwise stay allocated. */
GRD_API void grd_clear_autocast_cache(void);

/* ---- The engine -------------------------------------------------------------------------------------------------------- */
/* Accumulates d(tensor)/d(leaf) into the gradient of every leaf that `tensor` was computed from. `tensor` must have one element. Frees the graph. */
GRD_API void grd_backward(grd_tensor *tensor);

typedef struct grd_backward_options {
    /* The gradients of the outputs, one for each output. An absent list, or a NULL entry, stands for a gradient of ones, which is allowed only
     * for an output of one element. */
    grd_tensors grad_outputs;
    bool retain_graph;    /* keep the saved tensors for another backward pass; implied by create_graph */
    bool create_graph;    /* record the operators of the backward pass itself, so that its gradients can be differentiated */
    bool allow_unused;    /* grd_grad only: give NULL for an input that is not in the graph, instead of an error */
    bool unhooked_inputs; /* grd_grad only: do not call the tensor hooks of the inputs (grd_hook_tensor) */
    grd_tensors inputs;   /* grd_backward_all only: accumulate into these tensors only; if absent, into every leaf */
} grd_backward_options;

/* Accumulates gradients as grd_backward does, but for several outputs. `options` may be NULL. If `options->inputs` lists tensors that are not
 * leaves, their gradients are stored as with grd_retain_grad. */
GRD_API void grd_backward_all(grd_tensors_view outputs, const grd_backward_options *options);

/* Computes the gradients of the outputs with respect to the inputs and leaves the stored gradients (grd_grad_of) unchanged. Writes inputs.n
 * gradients to ret_grads, which the innermost open scope owns. With allow_unused, writes NULL for each input that is not in the graph. On failure
 * returns false and writes grd_failed to all entries of ret_grads. */
GRD_API bool grd_grad(grd_tensors_view outputs, grd_tensors_view inputs, const grd_backward_options *options, grd_tensor **ret_grads);

/* ---- Forward mode -------------------------------------------------------------------------------------------------------- */
/* Begins the dual level of this thread. Tensors can have tangents only during a dual level. A dual tensor carries a tangent: the derivative of its
 * value in one direction. Operators on dual tensors return dual tensors, so after y = f(grd_make_dual(x, v)) the tangent of y is J v, where J is
 * the Jacobian of f at x. Tangents are ordinary tensors: operators on them can be recorded, and gradients of dual tensors have tangents. All
 * tangents made in a dual level are dropped when it ends. Dual levels do not nest: the function returns false, with RuntimeError, if this thread
 * is already in one. */
GRD_API bool grd_enter_dual_level(void);
/* Ends the dual level that grd_enter_dual_level began on this thread, and drops all tangents made in it. Returns false, with RuntimeError, if
 * this thread is in no dual level. */
GRD_API bool grd_exit_dual_level(void);
/* Returns a view of `primal` with the tangent `tangent`. Raises RuntimeError if the two differ in sizes or dtype or if this thread is in no dual
 * level (grd_enter_dual_level), and ValueError if `primal` is not floating point or complex. */
GRD_API grd_tensor *grd_make_dual(grd_tensor *primal, grd_tensor *tangent);
/* Returns a view of `dual` that has no tangent. */
GRD_API grd_tensor *grd_primal(grd_tensor *dual);
/* Returns the tangent of `dual`, or NULL if `dual` has none. The innermost open scope owns the returned reference. On failure returns grd_failed. */
GRD_API grd_tensor *grd_tangent(grd_tensor *dual);

/* ---- Anomaly mode ------------------------------------------------------------------------------------------------------ */
/* Turns anomaly mode on or off, in all threads. Initially it is off. While it is on, each node remembers where it was recorded. If a
 * node fails in a backward pass, a warning (grd_set_warning_handler) says where the node was recorded. If `check_nan` is true, backward raises
 * RuntimeError at the first gradient that contains NaN. */
GRD_API void grd_set_anomaly_mode(bool enabled, bool check_nan);
/* True if anomaly mode is on. Writes the setting `check_nan` of anomaly mode to `ret_check_nan`, which may be NULL. */
GRD_API bool grd_anomaly_mode(bool *ret_check_nan);
/* A function that returns a text about the position of the calling thread, e.g. its call stack, or NULL. The library copies the text at once. */
typedef const char *grd_tracer(void);
/* Sets the function that describes the calling thread whenever anomaly mode records a node; NULL removes it. */
GRD_API void grd_set_anomaly_tracer(grd_tracer *tracer);

/* ---- The graph ----------------------------------------------------------------------------------------------------------- */
/* Returns the node that computed `t`, or NULL for a leaf. The innermost open scope owns the returned reference, so the node lives at least until
 * the scope closes. */
GRD_API grd_node *grd_grad_fn(grd_tensor *t);
/* Returns the node to which backward sends the gradient of `t`: the grad_fn of `t`, or the AccumulateGrad node if `t` is a leaf. The innermost
 * open scope owns the returned reference. Returns NULL if `t` requires no gradient. Writes to *ret_output which of the node's outputs `t` is. */
GRD_API grd_node *grd_gradient_edge(grd_tensor *t, int *ret_output);
/* Takes a reference to `node` and returns `node`. The reference keeps `node` alive, and all nodes that can be reached from `node`. The caller gives
 * the reference up with grd_drop_node. */
GRD_API grd_node *grd_keep_node(grd_node *node);
GRD_API void grd_drop_node(grd_node *node); /* gives up a reference taken by grd_keep_node; NULL is allowed */
/* Returns the name of the node, as in PyTorch: "AddBackward0", "AccumulateGrad", … */
GRD_API const char *grd_node_name(const grd_node *node);
/* Returns the number of edges of the node, which is the number of inputs for which it computes gradients. */
GRD_API int grd_node_edge_count(const grd_node *node);
/* Returns the node to which edge number `edge` of `node` leads, or NULL if the input of that edge needs no gradient. Writes to *ret_output which
 * output of the returned node the gradient belongs to. */
GRD_API grd_node *grd_node_edge(const grd_node *node, int edge, int *ret_output);
/* Runs only the node `node`, without its hooks. `grads` holds the `n` gradients of the node's outputs (NULL where undefined). Writes the gradients
 * of the node's inputs (NULL for none) to ret_grads, which must have room for grd_node_edge_count entries. The innermost open scope owns the
 * written gradients. The node keeps its saved tensors. Raises TypeError if `n` is not the number of outputs. On failure returns false and writes
 * NULL to all entries of ret_grads. */
GRD_API bool grd_node_run(grd_node *node, grd_tensor *const *grads, int n, grd_tensor **ret_grads);
/* Returns the leaf of an AccumulateGrad node, or NULL for any other node. */
GRD_API grd_tensor *grd_node_variable(const grd_node *node);

/* ---- Hooks ------------------------------------------------------------------------------------------------------------------ */
/* A tensor hook, which is called with the gradient of a tensor before backward passes the gradient on. It returns the gradient itself or a
 * replacement. */
typedef grd_tensor *grd_tensor_hook(grd_tensor *grad, void *context);
/* A node hook. It may replace the `n` gradients in `grads`, which are NULL where undefined. If it is registered with pre = true, it runs before
 * the node: `grads` holds the gradients of the node's outputs, and `grad_outputs` is absent. With pre = false it runs after the node: `grads`
 * holds the gradients of the node's inputs, and `grad_outputs` the gradients of its outputs. */
typedef void grd_node_hook(grd_node *node, grd_tensors_view grad_outputs, grd_tensor **grads, int n, void *context);
/* The functions grd_hook_tensor, grd_hook_node and grd_hook_accumulated add a hook and return a handle for grd_hook_remove, or 0 on failure.
 * release(context) is called when the hook is removed or when its tensor or node is freed; `release` may be NULL. */
GRD_API uint64_t grd_hook_tensor(grd_tensor *t, grd_tensor_hook *hook, void *context, void (*release)(void *context));
GRD_API uint64_t grd_hook_node(grd_node *node, bool pre, grd_node_hook *hook, void *context, void (*release)(void *context));
/* Adds a hook that is called with `leaf` after a gradient has been accumulated into `leaf`. */
GRD_API uint64_t grd_hook_accumulated(grd_tensor *leaf, void (*hook)(grd_tensor *leaf, void *context), void *context,
                                      void (*release)(void *context));
GRD_API void grd_hook_remove(uint64_t handle);

/* ---- Custom functions ----------------------------------------------------------------------------------------------------------- */
/* A function with a user-defined backward. `forward` computes the outputs from the inputs. The operators that `forward` calls are not recorded, and
 * `forward` may save tensors for `backward` with grd_custom_save. `backward` gets the gradients of the outputs (NULL where undefined) and writes the
 * gradients of the inputs (NULL for none). With create_graph the operators that `backward` calls are recorded. `forward` and `backward` report
 * failure with grd_error_set. */
typedef struct grd_custom_call grd_custom_call;
typedef struct grd_custom_function {
    const char *name;
    void (*forward)(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs);
    void (*backward)(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads);
    int inputs, outputs;
    void *context; /* passed to `release` and `take_over`, and returned by grd_custom_context */
    /* A function that the library calls once for each call of the custom function, when `context` is no longer needed. It may run on any thread,
     * and it also runs if the call fails. `release` may be NULL. */
    void (*release)(void *context);
    /* A function that the library calls with `context` when the call's node is about to be freed; may be NULL. If it returns true, the node is not
     * freed. In that case the context owns the node's last reference, which must be given up with grd_drop_node. */
    bool (*take_over)(void *context);
    /* A function that the library calls after `forward` if an input has a tangent (forward mode). It computes the tangents of the outputs from the
     * tangents of the inputs; in both arrays NULL means no tangent. If the operators of the caller are recorded, so are the operators that `jvp`
     * calls. If `jvp` is NULL, an input with a tangent is an error. */
    void (*jvp)(grd_custom_call *call, grd_tensor *const *tangents, grd_tensor **ret_tangents);
} grd_custom_function;
/* Calls `function` on `inputs` and writes the outputs, which the innermost open scope owns, to ret_outputs. An input may be NULL if the function
 * accepts that, and then gets no gradient. Returns false on failure. */
GRD_API bool grd_custom_apply(const grd_custom_function *function, grd_tensor *const *inputs, grd_tensor **ret_outputs);
/* Saves `t`, an input or an output of the call, for backward. This function may only be called during forward. */
GRD_API void grd_custom_save(grd_custom_call *call, grd_tensor *t);
/* Returns the tensor that grd_custom_save saved as number `index`, counted from 0. Raises RuntimeError if the tensor was written in place after
 * it was saved. */
GRD_API grd_tensor *grd_custom_saved(grd_custom_call *call, int index);
/* True if backward must compute the gradient of input number `input`. */
GRD_API bool grd_custom_needs_grad(const grd_custom_call *call, int input);
/* Returns the member `context` of the grd_custom_function that is called. */
GRD_API void *grd_custom_context(const grd_custom_call *call);
/* Declares that forward has written to the input `t` in place and returns it as an output. */
GRD_API void grd_custom_mark_dirty(grd_custom_call *call, grd_tensor *t);
/* Declares that `output` has no gradient. */
GRD_API void grd_custom_mark_non_differentiable(grd_custom_call *call, grd_tensor *output);
/* If `materialize` is true, backward gets tensors of zeros in place of NULL for undefined gradients. The default is false. This function may only be
 * called during forward. */
GRD_API void grd_custom_materialize_grads(grd_custom_call *call, bool materialize);

/* Begins a call whose forward the caller runs itself. Together with grd_custom_end it does what grd_custom_apply does, for callers who learn the
 * number of outputs only by running forward. Between the two functions grad mode is off, and tensors may be saved and marked. `forward` and
 * `outputs` of `function` are not used. `inputs` must stay valid until grd_custom_end. Returns NULL on failure. */
GRD_API grd_custom_call *grd_custom_begin(const grd_custom_function *function, grd_tensor *const *inputs);
/* Ends a call begun with grd_custom_begin. Every such call must be ended, even if forward failed and an error is pending. `outputs` holds the `n`
 * results, where NULL stands for a result that is not a tensor. If a result is an input to which forward did not write, its entry is replaced by a
 * view of the input, which the innermost open scope owns. Returns false on failure. */
GRD_API bool grd_custom_end(grd_custom_call *call, grd_tensor **outputs, int n);
/* Returns the graph node that stands for this call of a custom function. The caller borrows the node, which lives as long as the call's context. */
GRD_API grd_node *grd_custom_node(grd_custom_call *call);
/* If `node` stands for a call of a custom function whose member `release` equals the argument `release`, returns this call. Returns NULL, without an
 * error, for all other nodes. */
GRD_API grd_custom_call *grd_node_custom_call(grd_node *node, void (*release)(void *context));

/* ---- For garbage collectors ------------------------------------------------------------------------------------------------------------- */
/* The callback of grd_visit_contexts and grd_node_visit_contexts, which is called for each context of a hook or custom function. `release` is the
 * function that was given together with the context, and tells the visitor what kind of context this is. Returns 0 to continue. */
typedef int grd_context_visitor(void *context, void (*release)(void *context), void *arg);
/* Calls `visit` for every context of a hook or custom function that would be released if the caller dropped its reference to `t`. If other
 * references to `t` exist, there are no such contexts. Stops when `visit` returns a value other than 0, and returns that value. No other thread
 * may use `t` during the call. */
GRD_API int grd_visit_contexts(grd_tensor *t, grd_context_visitor *visit, void *arg);
/* Calls `visit` as grd_visit_contexts does, but for the contexts that would be released if the caller dropped its reference to `node`. */
GRD_API int grd_node_visit_contexts(grd_node *node, grd_context_visitor *visit, void *arg);

/* ---- Checks -------------------------------------------------------------------------------------------------------------------------- */
/* The tolerances of grd_gradcheck and grd_gradgradcheck. An element passes if |analytic - numeric| <= atol + rtol * |numeric|, where the numeric
 * derivative is a central difference of step eps. A tolerance of 0 means the default: eps 1e-6, atol 1e-5, rtol 1e-3. */
typedef struct grd_gradcheck_options {
    double eps, atol, rtol;
    /* True to check forward mode, too. grd_gradcheck also compares the tangents of the outputs, and grd_gradgradcheck the tangents of the gradients,
     * with central differences. The thread must not be in a dual level (grd_enter_dual_level). */
    bool forward;
} grd_gradcheck_options;
/* A function that grd_gradcheck checks. It computes outputs from the `n` inputs and returns the list of outputs. The returned list must stay valid
 * until the function is called again; it may be static. */
typedef grd_tensors_view grd_function(grd_tensor *const *inputs, int n, void *context);
/* Checks the gradients of backward against central differences, for float64 or complex128 inputs that require gradients. If a gradient differs,
 * returns false, with an error that names the input, the element and both values. */
GRD_API bool grd_gradcheck(grd_function *function, grd_tensors_view inputs, void *context, const grd_gradcheck_options *options);
/* Checks second derivatives (gradients of gradients) against central differences, as grd_gradcheck does for gradients. */
GRD_API bool grd_gradgradcheck(grd_function *function, grd_tensors_view inputs, void *context, const grd_gradcheck_options *options);

GRD_END_DECLS
#endif
