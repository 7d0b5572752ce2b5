/* Unscales gradients and updates the scale, for gradient scaling in mixed-precision training. The two operators of this file only call other
 * operators and read no value on the CPU, so they never wait for a device. */
#include "gen/uses/op/amp.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "op/dtypes.h"

static bool check_number(const grd_tensor *t, enum grd_category category, const char *name)
{
    return t->numel != 1
               ? grd_raise(GRD_ERROR_RUNTIME, "%s must be a 1-element tensor.", name)
               : grd_category_of((grd_dtype)t->dtype) == category ||
                     grd_raise(GRD_ERROR_RUNTIME, "%s must be %s tensor.", name, category == GRD_CATEGORY_FLOAT ? "a float" : "an int");
}

/* ---- Gradients ------------------------------------------------------------------------------------------------------------------- */

static bool check_grads(grd_tensors grads)
{
    for (int64_t i = 0; i < grads.n; i++)
        if (grd_category_of((grd_dtype)grads.data[i]->dtype) != GRD_CATEGORY_FLOAT)
            return grd_raise(GRD_ERROR_RUNTIME, "gradients must be floating point numbers, not %s",
                             grd_dtype_name((grd_dtype)grads.data[i]->dtype));
    return true;
}

grd_tensors op_amp_foreach_non_finite_check_and_unscale(grd_tensors grads, grd_tensor *found_inf, grd_tensor *inv_scale)
{
    if (grads.n == 0)
        return grads;
    if (!check_number(inv_scale, GRD_CATEGORY_FLOAT, "inv_scale") || !check_number(found_inf, GRD_CATEGORY_FLOAT, "found_inf") ||
        !check_grads(grads))
        return (grd_tensors){0};
    for (int64_t i = 0; i < grads.n && !grd_pending(); i++) {
        grd_tensor *g = grads.data[i];
        grd_tensor *infinite = grd_logical_not(grd_all(grd_isfinite(g)));
        grd_copy_(found_inf,
                  grd_maximum(found_inf, grd_reshape(grd_to(infinite, .dtype = (grd_dtype)found_inf->dtype), grd_sizes(found_inf))));
        grd_mul_(g, grd_reshape(inv_scale, GRD_NO_DIMS));
    }
    return grd_pending() ? (grd_tensors){0} : grads;
}

/* ---- The scale ------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_amp_update_scale(grd_tensor *scale, grd_tensor *growth_tracker, grd_tensor *found_inf, double growth_factor,
                                double backoff_factor, int64_t growth_interval)
{
    if (!check_number(growth_tracker, GRD_CATEGORY_INTEGER, "growth_tracker") ||
        !check_number(scale, GRD_CATEGORY_FLOAT, "current_scale") || !check_number(found_inf, GRD_CATEGORY_FLOAT, "found_inf"))
        return grd_failed;
    grd_tensor *found = grd_ne_scalar(found_inf, grd_int(0)), *count = grd_add_scalar(growth_tracker, grd_int(1));
    grd_tensor *grown = grd_mul_scalar(scale, grd_float(growth_factor)), *shrunk = grd_mul_scalar(scale, grd_float(backoff_factor));
    grd_tensor *grows = grd_eq_scalar(count, grd_int(growth_interval));
    grown = grd_where(grd_logical_and(grows, grd_isfinite(grown)), grown, scale);
    count = grd_masked_fill(count, grd_logical_or(grows, found), grd_int(0));
    grown = grd_where(found, shrunk, grown);
    if (grd_pending())
        return grd_failed;
    grd_copy_(growth_tracker, count);
    return grd_copy_(scale, grown);
}
