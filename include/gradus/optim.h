/* Optimizers: they change parameters along their gradients, all of them in one call. And gradients cut down before that.
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
 * The steps are PyTorch's, those of SGD bit for bit. Parameters are floating point or complex, half types included; a parameter
 * without a gradient is left out of a step. Nothing here is recorded for a backward pass. A thread that works with an optimizer has it, its
 * parameters and their gradients for itself. */
#ifndef GRADUS_OPTIM_H
#define GRADUS_OPTIM_H

#include "gradus/options.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_optimizer grd_optimizer;

/* ---- Making ---------------------------------------------------------------------------------------------------------- */

/* g = grad + weight_decay * p; b = momentum * b + (1 - dampening) * g, the first time g itself; p = p - lr * b. Without momentum b is g; for
 * Nesterov p goes along g + momentum * b instead of b. maximize: along -grad. */
typedef struct grd_sgd_options {
    double momentum GRD_DEFAULT(0);
    double dampening GRD_DEFAULT(0);
    double weight_decay GRD_DEFAULT(0);
    bool nesterov GRD_DEFAULT(false);
    bool maximize GRD_DEFAULT(false);
} grd_sgd_options;

/* m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; in step t, p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
 * Weight decay: for Adam g = grad + weight_decay * p; AdamW first multiplies p by 1 - lr * weight_decay. amsgrad: divides by the largest v so far.
 * maximize: along -grad. */
typedef struct grd_adam_options {
    double beta1 GRD_DEFAULT(0.9);
    double beta2 GRD_DEFAULT(0.999);
    double eps GRD_DEFAULT(1e-8);
    double weight_decay GRD_DEFAULT(0);
    bool amsgrad GRD_DEFAULT(false);
    bool maximize GRD_DEFAULT(false);
} grd_adam_options;

typedef struct grd_adamw_options {
    double beta1 GRD_DEFAULT(0.9);
    double beta2 GRD_DEFAULT(0.999);
    double eps GRD_DEFAULT(1e-8);
    double weight_decay GRD_DEFAULT(0.01);
    bool amsgrad GRD_DEFAULT(false);
    bool maximize GRD_DEFAULT(false);
} grd_adamw_options;

/* A new optimizer with one group of parameters, owned by the caller; it keeps the parameters. `options` NULL: the defaults. NULL, with the error
 * raised, on failure: ValueError for an option out of range, an empty list, a parameter that is no leaf or is there twice. */
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

/* Frees the optimizer, its state and its references of the parameters. NULL is allowed. */
GRD_API void grd_optimizer_drop(grd_optimizer *optimizer);

/* ---- Stepping --------------------------------------------------------------------------------------------------------- */

/* Changes every parameter that has a gradient once. Each group is checked as a whole before any of its parameters is written; groups come one
 * after another. */
GRD_API void grd_optimizer_step(grd_optimizer *optimizer);
/* Takes the gradients of all parameters away. */
GRD_API void grd_optimizer_zero_grad(grd_optimizer *optimizer);

/* ---- Groups: parameters with options of their own ---------------------------------------------------------------------- */

/* Adds a group with the options that the first group has now, and returns its number, counted from 0; -1 on failure, when nothing has changed.
 * Errors are those of making; a parameter may be in one group only. */
GRD_API int64_t grd_optimizer_add_group(grd_optimizer *optimizer, grd_tensors_view parameters);
GRD_API int64_t grd_optimizer_group_count(const grd_optimizer *optimizer);
/* Parameter number `index` of a group, borrowed; NULL, with no error, from the group's end on. */
GRD_API grd_tensor *grd_optimizer_parameter(const grd_optimizer *optimizer, int64_t group, int64_t index);
/* An option of a group by its name: "lr", and the fields of the options ("momentum", "beta1", …), bools as 0 and 1. A schedule sets "lr" between
 * steps. ValueError: there is no such option, or the value is out of range; IndexError: no such group. get returns NaN on failure. */
GRD_API double grd_optimizer_get_option(const grd_optimizer *optimizer, int64_t group, const char *name);
GRD_API void grd_optimizer_set_option(grd_optimizer *optimizer, int64_t group, const char *name, double value);

/* ---- State: what the next steps depend on, for checkpoints -------------------------------------------------------------- */

/* The names of the tensors that belong to each parameter: "momentum_buffer" of SGD; "step", "exp_avg", "exp_avg_sq" and "max_exp_avg_sq" of Adam
 * and AdamW, as in PyTorch. NULL, with no error, from their number on. */
GRD_API const char *grd_optimizer_state_name(const grd_optimizer *optimizer, int64_t index);
/* Such a tensor, borrowed; NULL, with no error, while the parameter has none: before its first step, or because the options need none. ValueError:
 * no state has this name, or the parameter is not one of the optimizer's. */
GRD_API grd_tensor *grd_optimizer_get_state(const grd_optimizer *optimizer, const grd_tensor *parameter, const char *name);
/* Replaces it by a copy of `value`, in the parameter's dtype and on its device ("step" is one float32 number, on the cpu), or, for NULL, takes it
 * away. RuntimeError: other sizes than the parameter's. */
GRD_API void grd_optimizer_set_state(grd_optimizer *optimizer, const grd_tensor *parameter, const char *name, grd_tensor *value);

/* ---- Gradients cut down --------------------------------------------------------------------------------------------------- */

typedef struct grd_clip_grad_norm_options {
    double norm_type GRD_DEFAULT(2);            /* any order of grd_norm, infinity too */
    bool error_if_nonfinite GRD_DEFAULT(false); /* RuntimeError when the total norm is NaN or infinite; nothing is scaled then */
} grd_clip_grad_norm_options;

/* Multiplies the gradients of the parameters, in place, by the smaller of 1 and max_norm / (total + 1e-6), where `total` is the norm of all of
 * them as if they were one vector. Returns `total`, a 0-d tensor (0 when there are no gradients), pooled; grd_failed, with nothing written, on
 * failure. */
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
/* Brings every element of the gradients into [-clip_value, clip_value], in place. */
GRD_API void grd_clip_grad_value(grd_tensors_view parameters, double clip_value);

GRD_END_DECLS
#endif
