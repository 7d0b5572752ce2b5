/* Vector norms, magnitudes and logsumexp. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "gradus/ops/add.h"
#include "gradus/ops/amax.h"
#include "gradus/ops/conj.h"
#include "gradus/ops/div.h"
#include "gradus/ops/eq.h"
#include "gradus/ops/exp.h"
#include "gradus/ops/isinf.h"
#include "gradus/ops/isnan.h"
#include "gradus/ops/log.h"
#include "gradus/ops/logical_or.h"
#include "gradus/ops/masked_fill.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/norm.h"
#include "gradus/ops/pow.h"
#include "gradus/ops/real.h"
#include "gradus/ops/reshape.h"
#include "gradus/ops/sgn.h"
#include "gradus/ops/sub.h"
#include "gradus/ops/sum.h"
#include "gradus/ops/to.h"
#include "gradus/ops/zeros_like.h"
#include "gen/impl/reduction.h"
#include "gen/ops/_modulus.h"
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

grd_tensor *op_norm(grd_tensor *out, grd_tensor *self, grd_scalar order, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    double p = norm_order(order);
    grd_dtype from = (grd_dtype)self->dtype, as = dtype != GRD_DTYPE_NONE ? dtype : from, to = grd_dtype_to_real(as);
    if (!grd_dtype_is_floating(from) && !grd_dtype_is_complex(from))
        return grd_fail(GRD_ERROR_RUNTIME, "Expected a floating point or complex tensor as input. Got %s", grd_dtype_type_name(from));
    if (!grd_dtype_is_floating(as) && !grd_dtype_is_complex(as))
        return grd_fail(GRD_ERROR_RUNTIME, "dtype should be floating point or complex, but got %s", grd_dtype_type_name(as));
    if (grd_dtype_is_complex(from) != grd_dtype_is_complex(as))
        return grd_fail(GRD_ERROR_RUNTIME, "dtype should be %s for %s inputs, but got %s", grd_dtype_is_complex(from) ? "complex" : "real",
                        grd_dtype_is_complex(from) ? "complex" : "real", grd_dtype_type_name(as));
    if (!grd_reduce_check("norm", self, as) || !grd_shape_dim_mask(dim, self->ndim, &mask) ||
        !check_norm_not_empty(self, dim.n > 0, mask, p) || !grd_out_check(out, to, grd_device_of(self)))
        return grd_failed;
    if (as != from && !grd_is_meta(self))
        self = grd_contiguous_as(self, as);
    if (grd_pending())
        return grd_failed;
    if (p == 0)
        return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, GRD_FINISH_NONE, 0);
    if (p == 1 || grd_is_meta(self))
        return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_ABS, to, GRD_FINISH_NONE, 0);
    if (p == 2)
        return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_SQUARE, to, GRD_FINISH_ROOT, 0);
    grd_tensor *magnitudes = grd_reduce(NULL, self, 0, false, GRD_REDUCE_ABS, to, GRD_FINISH_NONE, 0);
    if (isinf(p)) {
        if (grd_pending())
            return grd_failed;
        return grd_reduce(out, magnitudes, mask, keepdim, p > 0 ? GRD_REDUCE_MAX : GRD_REDUCE_MIN, to, GRD_FINISH_NONE, 0);
    }
    grd_tensor *powers = grd_pow_scalar(magnitudes, grd_float(p));
    if (grd_pending())
        return grd_failed;
    grd_tensor *sum = grd_reduce(NULL, powers, mask, keepdim, GRD_REDUCE_SUM, to, GRD_FINISH_NONE, 0);
    grd_tensor *norm = grd_pow_scalar(sum, grd_float(1 / p));
    return grd_out_finish(out, norm);
}

grd_tensor *op_norm_name(grd_tensor *out, grd_tensor *self, const char *p, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    if (strcmp(p, "fro") == 0)
        return out == NULL ? grd_norm(self, .dim = dim, .keepdim = keepdim, .dtype = dtype)
                           : grd_norm_out(out, self, .dim = dim, .keepdim = keepdim, .dtype = dtype);
    if (strcmp(p, "nuc") == 0)
        grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "the nuclear norm is not implemented");
    else
        grd_raise(GRD_ERROR_RUNTIME, "only valid p values for string inputs are 'fro' and 'nuc', but got '%s'", p);
    return grd_failed;
}

/* |self|, for complex numbers too: the norm over no dims. */
grd_tensor *op_hidden_modulus(grd_tensor *self)
{
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (grd_reduce_is_integral(dtype) || !grd_reduce_has_arithmetic(dtype))
        return grd_fail_no_kernel("_modulus", dtype);
    return grd_reduce(NULL, self, 0, false, GRD_REDUCE_ABS, grd_dtype_to_real(dtype), GRD_FINISH_NONE, 0);
}

/* ---- logsumexp: log(sum(exp(x - max))) + max ------------------------------------------------------------------------------- */
static bool log_sum_exp(grd_tensor *result, const grd_tensor *self, uint64_t mask)
{
    struct grd_reduction r;
    grd_reduction_plan(&r, self->dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32, self, mask);
    grd_reduction_kernel(&r, GRD_REDUCE_MAX);
    int64_t bytes = grd_reduction_scratch(&r, true), center_bytes = (r.outputs + 1) * (int64_t)sizeof(double);
    struct grd_reduction second = r;
    grd_reduction_kernel(&second, GRD_REDUCE_EXP);
    second.finish = GRD_FINISH_LOG;
    grd_reduction_store(&second, result);
    int64_t second_bytes = grd_reduction_scratch(&second, false);
    bool done = false;
    r.gathered = grd_alloc((size_t)bytes);
    double *center = grd_alloc((size_t)center_bytes);
    if (second_bytes > 0)
        second.gathered = grd_alloc((size_t)second_bytes);
    if (!grd_pending()) {
        grd_reduction_run(&r);
        /* An infinite maximum cannot be subtracted, and need not: exp of it is 0 or infinite already. */
        for (int64_t i = 0; i < r.outputs; i++) {
            double max = r.gathers == GRD_FLOAT64 ? ((double *)(void *)r.gathered)[i] : (double)((float *)(void *)r.gathered)[i];
            center[i] = isinf(max) ? 0 : max;
        }
        second.center = (const char *)center;
        grd_reduction_run(&second);
        done = true;
    }
    grd_free(second.gathered, (size_t)second_bytes);
    grd_free(center, (size_t)center_bytes);
    grd_free(r.gathered, (size_t)bytes);
    return done;
}

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
    uint64_t mask;
    grd_dtype to = grd_dtype_to_float((grd_dtype)self->dtype);
    if (!grd_reduce_check("logsumexp", self, to) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    if (grd_dtype_is_complex(to))
        return grd_out_finish(out, complex_log_sum_exp(self, dim, keepdim));
    grd_tensor *result = grd_reduce_prepare(out, self, mask, keepdim, to);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        if (grd_reduce_is_integral((grd_dtype)self->dtype))
            self = grd_contiguous_as(self, to);
        if (grd_pending() || !log_sum_exp(result, self, mask))
            return grd_failed;
    }
    return grd_out_finish(out, result);
}

/* ---- Gradients: composites, differentiable in their turn --------------------------------------------------------------- */
grd_tensor *op_hidden_modulus_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result)
{
    return grd_mul(grd_quotient_or_zero(self, result), grad);
}

/* d|x|_p / dx = x |x|^(p-2) / |x|_p^(p-1), and 0 where that is 0 / 0, as at the origin. */
grd_tensor *op_hidden_norm_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_scalar order, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    double p = norm_order(order);
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    if (p == 0)
        return grd_zeros_like(self);
    grd_tensor *g = grd_reduce_restored(grad, sizes, mask, keepdim), *norm = grd_reduce_restored(result, sizes, mask, keepdim);
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

grd_tensor *op_hidden_logsumexp_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    grd_tensor *shares = grd_exp(grd_sub(self, grd_reduce_restored(result, sizes, mask, keepdim)));
    return grd_mul(grd_reduce_restored(grad, sizes, mask, keepdim), grd_conj(shares));
}
