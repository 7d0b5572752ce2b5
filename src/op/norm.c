/* Vector norms and logsumexp, as composites over what follows the law "reduce". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/uses/op/norm.h"
#include "op/composite.h"
#include "op/reduce.h"

/* ---- Norms -------------------------------------------------------------------------------------------------------------------------- */
static bool check_norm_not_empty(const grd_tensor *self, bool dim_given, uint64_t mask, double p)
{
    if (self->numel != 0 || (p >= 0 && !isinf(p)))
        return true;
    char name[32];
    snprintf(name, sizeof name, isinf(p) ? "%sinf" : "%s%g", isinf(p) && p < 0 ? "-" : "", p);
    if (!dim_given)
        return grd_raise(GRD_ERROR_RUNTIME, "cannot compute the %s norm on an empty tensor because the operation does not have an identity",
                         name);
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "cannot compute the %s norm on the dimension %d because this dimension is empty and the operation does "
                             "not have an identity",
                             name, d);
    return true;
}

static double norm_order(grd_scalar p)
{
    return p.kind == GRD_SCALAR_NONE ? 2 : grd_scalar_double(p);
}

static bool check_norm(const grd_tensor *self, double p, grd_dims dim, grd_dtype as)
{
    uint64_t mask;
    const grd_dtype from = (grd_dtype)self->dtype;
    if (!grd_dtype_is_floating(from) && !grd_dtype_is_complex(from))
        return grd_raise(GRD_ERROR_RUNTIME, "Expected a floating point or complex tensor as input. Got %s", grd_dtype_type_name(from));
    if (!grd_dtype_is_floating(as) && !grd_dtype_is_complex(as))
        return grd_raise(GRD_ERROR_RUNTIME, "dtype should be floating point or complex, but got %s", grd_dtype_type_name(as));
    if (grd_dtype_is_complex(from) != grd_dtype_is_complex(as))
        return grd_raise(GRD_ERROR_RUNTIME, "dtype should be %s for %s inputs, but got %s", grd_dtype_is_complex(from) ? "complex" : "real",
                         grd_dtype_is_complex(from) ? "complex" : "real", grd_dtype_type_name(as));
    if (from > GRD_COMPLEX128 || as > GRD_COMPLEX128)
        return grd_raise_no_kernel("norm", from > GRD_COMPLEX128 ? from : as);
    return grd_shape_dim_mask(dim, self->ndim, &mask) && check_norm_not_empty(self, dim.n > 0, mask, p);
}

static grd_tensor *norm(grd_tensor *self, double p, grd_dims dim, bool keepdim)
{
    if (p == 0) {
        grd_tensor *count = grd_sum(grd_ne_scalar(self, grd_int(0)), .dim = dim, .keepdim = keepdim);
        return grd_to(count, .dtype = grd_dtype_to_real(grd_tensor_dtype(self)));
    }
    if (p == 1)
        return grd_hidden_norm_1(self, dim, keepdim);
    if (p == 2)
        return grd_hidden_norm_2(self, dim, keepdim);
    grd_tensor *sizes = grd_hidden_modulus(self);
    if (isinf(p))
        return p > 0 ? grd_amax(sizes, .dim = dim, .keepdim = keepdim) : grd_amin(sizes, .dim = dim, .keepdim = keepdim);
    return grd_pow_scalar(grd_sum(grd_pow_scalar(sizes, grd_float(p)), .dim = dim, .keepdim = keepdim), grd_float(1 / p));
}

grd_tensor *op_norm(grd_tensor *out, grd_tensor *self, grd_scalar order, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    const double p = norm_order(order);
    const grd_dtype from = (grd_dtype)self->dtype, as = dtype != GRD_DTYPE_NONE ? dtype : from;
    if (!check_norm(self, p, dim, as))
        return grd_failed;
    if (as != from)
        self = grd_contiguous(grd_to(self, .dtype = as));
    return grd_composite_finish(out, NULL, norm(self, p, dim, keepdim));
}

grd_tensor *op_norm_name(grd_tensor *out, grd_tensor *self, const char *p, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    if (strcmp(p, "nuc") == 0)
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "the nuclear norm is not implemented");
    if (strcmp(p, "fro") != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "only valid p values for string inputs are 'fro' and 'nuc', but got '%s'", p);
    return grd_composite_finish(out, NULL, grd_norm(self, .dim = dim, .keepdim = keepdim, .dtype = dtype));
}

/* ---- logsumexp ------------------------------------------------------------------------------------------------------------- */
/* The largest real part is subtracted, unless it is infinite. */
static grd_tensor *complex_log_sum_exp(grd_tensor *self, grd_dims dim, bool keepdim)
{
    if (self->numel == 0)
        return grd_log(grd_sum(self, .dim = dim, .keepdim = keepdim));
    grd_tensor *max = grd_amax(grd_real(self), .dim = dim, .keepdim = true);
    max = grd_masked_fill(max, grd_isinf(max), grd_int(0));
    grd_tensor *sum = grd_sum(grd_exp(grd_sub(self, max)), .dim = dim, .keepdim = keepdim);
    if (grd_pending())
        return grd_failed;
    return grd_add(grd_log(sum), grd_reshape(max, grd_sizes(sum)));
}

grd_tensor *op_logsumexp(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_composite_finish(out, NULL, grd_hidden_logsumexp(self, dim, keepdim));
    uint64_t mask;
    if (!grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    return grd_composite_finish(out, NULL, complex_log_sum_exp(self, dim, keepdim));
}

/* ---- Gradients: composites, differentiable in their turn --------------------------------------------------------------- */

/* d|x|_p / dx = x |x|^(p-2) / |x|_p^(p-1), and 0 where that is 0 / 0, as at the origin. */
grd_tensor *op_hidden_norm_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_scalar order, grd_dims dim, bool keepdim)
{
    const double p = norm_order(order);
    const grd_dims sizes = grd_sizes(self);
    grd_tensor *g = grd_reduced_restored(grad, sizes, dim, keepdim), *norm = grd_reduced_restored(result, sizes, dim, keepdim);
    if (p == 0)
        return grd_zeros_like(self);
    if (p == 2)
        return grd_mul(grd_quotient_or_zero(self, norm), g);
    grd_tensor *size = grd_hidden_modulus(self), *direction = grd_sgn(self);
    if (p == 1)
        return grd_mul(direction, g);
    if (isinf(p)) {
        grd_tensor *reached = grd_logical_or(grd_eq(size, norm), grd_isnan(size)), *ties = grd_to(reached, .dtype = grd_tensor_dtype(size));
        return grd_mul(grd_mul(direction, ties), grd_div(g, grd_sum(ties, .dim = dim, .keepdim = true)));
    }
    grd_tensor *powers = grd_masked_fill(grd_pow_scalar(size, grd_float(p - 1)), grd_eq_scalar(size, grd_int(0)), grd_int(0));
    grd_tensor *scale =
        p < 1 ? grd_mul(g, grd_pow_scalar(norm, grd_float(1 - p))) : grd_quotient_or_zero(g, grd_pow_scalar(norm, grd_float(p - 1)));
    return grd_mul(grd_mul(direction, powers), scale);
}
