/* Declares optimizers and functions that clip gradients. One call updates all parameters of an optimizer from their gradients.
 *
 *     grd_optimizer *optimizer = grd_adamw_new(grd_tensors(weight, bias), 3e-3);
 *     ... in every step of the training, in a scope:
 *     grd_backward(loss);
 *     grd_clip_grad_norm(grd_tensors(weight, bias), 1.0);
 *     grd_optimizer_step(optimizer);
 *     grd_optimizer_zero_grad(optimizer);
 *     ... at the end:
 *     grd_optimizer_drop(optimizer);
 *
 * The update formulas are PyTorch's; SGD gives the same bits as PyTorch. Parameters are floating point (16-bit dtypes included) or complex. A
 * parameter without a gradient is skipped. Updates are not recorded for a backward pass. While a thread uses an optimizer, no other thread may
 * use the optimizer, its parameters or their gradients. */
#ifndef GRADUS_OPTIM_H
#define GRADUS_OPTIM_H

#include "gradus/options.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_optimizer grd_optimizer;

/* ---- Making ---------------------------------------------------------------------------------------------------------- */

/* Options of SGD. An update of the parameter p with the learning rate lr computes g = grad + weight_decay * p, then b = momentum * b + (1 -
 * dampening) * g (in the first update b = g), and then p = p - lr * b. Without momentum b = g. With `nesterov`, p moves along g + momentum * b
 * instead of b. With `maximize`, grad is negated. */
typedef struct grd_sgd_options {
    double momentum GRD_DEFAULT(0);
    double dampening GRD_DEFAULT(0);
    double weight_decay GRD_DEFAULT(0);
    bool nesterov GRD_DEFAULT(false);
    bool maximize GRD_DEFAULT(false);
} grd_sgd_options;

/* Options of Adam. Update number t of the parameter p with the learning rate lr computes m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 -
 * beta2) * g^2, and p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps), where g = grad + weight_decay * p. With `amsgrad`, the
 * largest v so far replaces v in the last formula. With `maximize`, grad is negated. */
typedef struct grd_adam_options {
    double beta1 GRD_DEFAULT(0.9);
    double beta2 GRD_DEFAULT(0.999);
    double eps GRD_DEFAULT(1e-8);
    double weight_decay GRD_DEFAULT(0);
    bool amsgrad GRD_DEFAULT(false);
    bool maximize GRD_DEFAULT(false);
} grd_adam_options;
/* Options of AdamW. An update first multiplies the parameter p by 1 - lr * weight_decay, where lr is the learning rate. The rest of the update is an
 * update of Adam (grd_adam_options) without weight decay. */
typedef struct grd_adamw_options {
    double beta1 GRD_DEFAULT(0.9);
    double beta2 GRD_DEFAULT(0.999);
    double eps GRD_DEFAULT(1e-8);
    double weight_decay GRD_DEFAULT(0.01);
    bool amsgrad GRD_DEFAULT(false);
    bool maximize GRD_DEFAULT(false);
} grd_adamw_options;

/* The next three functions return a new optimizer with one group of parameters. The caller owns the optimizer, which takes a reference to each
 * parameter. If `options` is NULL, all options have their defaults. On failure they return NULL, with an error: ValueError if an option is out of
 * range, the list is empty, or a parameter is not a leaf or is listed twice. */
GRD_API grd_optimizer *grd_with_sgd_new(grd_tensors_view parameters, double lr, const grd_sgd_options *options);
GRD_API grd_optimizer *grd_with_adam_new(grd_tensors_view parameters, double lr, const grd_adam_options *options);
GRD_API grd_optimizer *grd_with_adamw_new(grd_tensors_view parameters, double lr, const grd_adamw_options *options);
#ifdef __cplusplus
extern "C++" inline grd_optimizer *grd_sgd_new(grd_tensors_view parameters, double lr, const grd_sgd_options &options = grd_sgd_options())
{
    return grd_with_sgd_new(parameters, lr, &options);
}
extern "C++" inline grd_optimizer *grd_adam_new(grd_tensors_view parameters, double lr,
                                                const grd_adam_options &options = grd_adam_options())
{
    return grd_with_adam_new(parameters, lr, &options);
}
extern "C++" inline grd_optimizer *grd_adamw_new(grd_tensors_view parameters, double lr,
                                                 const grd_adamw_options &options = grd_adamw_options())
{
    return grd_with_adamw_new(parameters, lr, &options);
}
#else
#define GRD_SGD_DEFAULTS .maximize = false
#define grd_sgd_new(...) grd_named_sgd_new(__VA_ARGS__, )
#define grd_named_sgd_new(parameters, lr, ...)                                                                                             \
    GRD_NAMED(grd_with_sgd_new((parameters), (lr), GRD_GIVEN(#__VA_ARGS__, &(grd_sgd_options){GRD_SGD_DEFAULTS, __VA_ARGS__})))
#define GRD_ADAM_DEFAULTS .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .maximize = false
#define grd_adam_new(...) grd_named_adam_new(__VA_ARGS__, )
#define grd_named_adam_new(parameters, lr, ...)                                                                                            \
    GRD_NAMED(grd_with_adam_new((parameters), (lr), GRD_GIVEN(#__VA_ARGS__, &(grd_adam_options){GRD_ADAM_DEFAULTS, __VA_ARGS__})))
#define GRD_ADAMW_DEFAULTS .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .maximize = false
#define grd_adamw_new(...) grd_named_adamw_new(__VA_ARGS__, )
#define grd_named_adamw_new(parameters, lr, ...)                                                                                           \
    GRD_NAMED(grd_with_adamw_new((parameters), (lr), GRD_GIVEN(#__VA_ARGS__, &(grd_adamw_options){GRD_ADAMW_DEFAULTS, __VA_ARGS__})))
#endif

/* Frees the optimizer and its state and drops its references to the parameters. NULL is allowed. */
GRD_API void grd_optimizer_drop(grd_optimizer *optimizer);

/* ---- Stepping --------------------------------------------------------------------------------------------------------- */

/* Updates every parameter that has a gradient. Groups are updated one after another. All parameters of a group are checked before the first one
 * is written, so an error in a group leaves all its parameters unchanged. */
GRD_API void grd_optimizer_step(grd_optimizer *optimizer);
/* Removes the gradients of all parameters. */
GRD_API void grd_optimizer_zero_grad(grd_optimizer *optimizer);

/* ---- Groups: parameters with options of their own ---------------------------------------------------------------------- */

/* Adds a group of parameters with the options that the first group has now. Returns the number of the new group, counted from 0. On failure returns
 * -1 and changes nothing: ValueError if the list is empty, or if a parameter is not a leaf, is listed twice or is in another group. */
GRD_API int64_t grd_optimizer_add_group(grd_optimizer *optimizer, grd_tensors_view parameters);
/* Returns the number of groups. */
GRD_API int64_t grd_optimizer_group_count(const grd_optimizer *optimizer);
/* Returns parameter number `index` of a group, borrowed; NULL, without an error, if `index` is not less than the number of parameters. */
GRD_API grd_tensor *grd_optimizer_parameter(const grd_optimizer *optimizer, int64_t group, int64_t index);
/* The next two functions return and set an option of a group by name: "lr" or a member of the options struct ("momentum", "beta1", ...). Booleans
 * are given as 0 and 1. A learning-rate schedule sets "lr" between updates. Both functions raise ValueError if there is no such option or the
 * value is out of range, and IndexError if there is no such group. On failure grd_optimizer_get_option returns NaN. */
GRD_API double grd_optimizer_get_option(const grd_optimizer *optimizer, int64_t group, const char *name);
GRD_API void grd_optimizer_set_option(grd_optimizer *optimizer, int64_t group, const char *name, double value);

/* ---- State: what the next steps depend on, for checkpoints -------------------------------------------------------------- */

/* Returns name number `index` of the state tensors that the optimizer stores for each parameter. The names are PyTorch's: "momentum_buffer" for
 * SGD; "step", "exp_avg", "exp_avg_sq" and "max_exp_avg_sq" for Adam and AdamW. Returns NULL, without an error, if `index` is not less than the
 * number of names. */
GRD_API const char *grd_optimizer_state_name(const grd_optimizer *optimizer, int64_t index);
/* Returns the state tensor called `name` that the optimizer stores for `parameter`, borrowed. Returns NULL, without an error, if the parameter has
 * not been updated yet or the optimizer's options do not need this state. Raises ValueError if `name` is not a name of the optimizer's states
 * (grd_optimizer_state_name) or the optimizer does not have this parameter. */
GRD_API grd_tensor *grd_optimizer_get_state(const grd_optimizer *optimizer, const grd_tensor *parameter, const char *name);
/* Replaces the state tensor called `name` of `parameter` by a copy of `value`, or removes it if `value` is NULL. The copy has the parameter's dtype
 * and device, except that the state "step" is a float32 number on the CPU. Raises RuntimeError if the sizes of `value` are not the parameter's. */
GRD_API void grd_optimizer_set_state(grd_optimizer *optimizer, const grd_tensor *parameter, const char *name, grd_tensor *value);

/* ---- Gradients cut down --------------------------------------------------------------------------------------------------- */

typedef struct grd_clip_grad_norm_options {
    double norm_type GRD_DEFAULT(2); /* p of the p-norm, as in grd_norm; may be INFINITY */
    /* whether to raise RuntimeError, and scale nothing, if the total norm is NaN or infinite */
    bool error_if_nonfinite GRD_DEFAULT(false);
} grd_clip_grad_norm_options;

/* Multiplies the gradients of the parameters, in place, by min(1, max_norm / (total + 1e-6)), where `total` is the norm of all gradients together
 * as one vector. Returns `total` as a zero-dimensional tensor, which is 0 if there are no gradients. On failure returns grd_failed and writes
 * nothing. */
GRD_API grd_tensor *grd_with_clip_grad_norm(grd_tensors_view parameters, double max_norm, const grd_clip_grad_norm_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_clip_grad_norm(grd_tensors_view parameters, double max_norm,
                                                   const grd_clip_grad_norm_options &options = grd_clip_grad_norm_options())
{
    return grd_with_clip_grad_norm(parameters, max_norm, &options);
}
#else
#define GRD_CLIP_GRAD_NORM_DEFAULTS .norm_type = 2, .error_if_nonfinite = false
#define grd_clip_grad_norm(...) grd_named_clip_grad_norm(__VA_ARGS__, )
#define grd_named_clip_grad_norm(parameters, max_norm, ...)                                                                                \
    GRD_NAMED(grd_with_clip_grad_norm((parameters), (max_norm),                                                                            \
                                      GRD_GIVEN(#__VA_ARGS__, &(grd_clip_grad_norm_options){GRD_CLIP_GRAD_NORM_DEFAULTS, __VA_ARGS__})))
#endif
/* Clamps every element of the gradients of the parameters to [-clip_value, clip_value], in place. */
GRD_API void grd_clip_grad_value(grd_tensors_view parameters, double clip_value);

GRD_END_DECLS
#endif
