/* Clips gradients: either scales all of them by one factor, so that their common norm is not too large, or clamps each element. */
#include "base/error.h"
#include "base/object.h"
#include "core/tensor.h"
#include "gradus/autograd.h"
#include "gen/uses/optim/clip.h"
#include "gradus/optim.h"
#include "optim/optim.h"

/* Returns the gradients of those parameters that have a gradient. The innermost scope owns the list. On failure, raises an error that names
 * `function`, and returns a list whose data is NULL. */
static grd_tensors gradients_of(grd_tensors parameters, const char *function)
{
    grd_tensors none = {0};
    if (grd_pending() || !grd_optim_check_list(parameters, function))
        return none;
    grd_tensor **grads = grd_pool_alloc((size_t)(parameters.n + 1) * sizeof *grads);
    int64_t n = 0;
    for (int64_t i = 0; grads != NULL && i < parameters.n; i++) {
        grd_tensor *grad = grd_grad_of(parameters.data[i]);
        if (grad != NULL)
            grads[n++] = grad;
    }
    return grads != NULL && !grd_pending() ? grd_tensors_from(grads, n) : none;
}

/* Returns the norm of the vector of all elements of all gradients, as a zero-dimensional tensor. It is computed as the norm of the norms of the
 * single gradients. */
static grd_tensor *total_norm(grd_tensors grads, grd_scalar order)
{
    if (grads.n == 0)
        return grd_zeros(GRD_NO_DIMS);
    grd_tensor **norms = grd_pool_alloc((size_t)grads.n * sizeof *norms);
    if (norms == NULL)
        return grd_failed;
    for (int64_t i = 0; i < grads.n; i++)
        norms[i] = grd_to(grd_norm(grads.data[i], .p = order), .device = grd_tensor_device(grads.data[0]));
    return grd_norm(grd_stack(grd_tensors_from(norms, grads.n)), .p = order);
}

/* True if the total norm is finite; otherwise raises RuntimeError. */
static bool is_finite(grd_tensor *total, grd_scalar order)
{
    if (grd_item_int64(grd_isfinite(total)) != 0 || grd_pending())
        return !grd_pending();
    return grd_raise(GRD_ERROR_RUNTIME,
                     "The total norm of order %g for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
                     "error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`",
                     grd_scalar_double(order));
}

static grd_tensor *clip_by_norm(grd_tensors grads, double max_norm, const grd_clip_grad_norm_options *options)
{
    const grd_scalar order = grd_float(options->norm_type);
    grd_tensor *total = total_norm(grads, order);
    if (grd_pending() || (options->error_if_nonfinite && !is_finite(total, order)))
        return grd_failed;
    grd_tensor *scale = grd_mul_scalar(grd_reciprocal(grd_add_scalar(total, grd_float(1e-6))), grd_float(max_norm));
    scale = grd_clamp(scale, .max = grd_float(1));
    for (int64_t i = 0; i < grads.n; i++)
        grd_mul_(grads.data[i], grd_to(scale, .device = grd_tensor_device(grads.data[i])));
    return total;
}

grd_tensor *grd_with_clip_grad_norm(grd_tensors parameters, double max_norm, const grd_clip_grad_norm_options *options)
{
    const grd_clip_grad_norm_options defaults = {GRD_CLIP_GRAD_NORM_DEFAULTS};
    const int64_t mark = grd_pool_mark();
    const grd_tensors grads = gradients_of(parameters, "grd_clip_grad_norm");
    grd_tensor *total = grd_failed;
    if (grads.data != NULL) {
        const bool recording = grd_set_grad_enabled(false);
        total = clip_by_norm(grads, max_norm, options != NULL ? options : &defaults);
        grd_set_grad_enabled(recording);
    }
    if (!grd_pending() && grd_pool_return(mark, total))
        return total;
    grd_error_add_context("grd_clip_grad_norm");
    grd_pool_release(mark);
    return grd_failed;
}

void grd_clip_grad_value(grd_tensors parameters, double clip_value)
{
    const int64_t mark = grd_pool_mark();
    const grd_tensors grads = gradients_of(parameters, "grd_clip_grad_value");
    const bool recording = grd_set_grad_enabled(false);
    for (int64_t i = 0; i < grads.n; i++)
        grd_clamp_(grads.data[i], .min = grd_float(-clip_value), .max = grd_float(clip_value));
    grd_set_grad_enabled(recording);
    grd_pool_release(mark);
}
