/* var, std, and both with the mean: two passes over one plan, the second around the result of the first. */
#include "base/memory.h"
#include "gradus/ops/mean.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/std_mean.h"
#include "gradus/ops/sub.h"
#include "gradus/ops/var_mean.h"
#include "gen/impl/reduction.h"
#include "gen/ops/_var_backward.h"
#include "op/reduce.h"

/* The means, in strip order, from the differences to each one's first element: exact where all elements are equal. False when memory ran
 * out; otherwise r->gathered is the caller's to free. */
static bool means(struct grd_reduction *r, double n)
{
    struct grd_reduction first = *r;
    grd_reduction_kernel(&first, GRD_REDUCE_SUM);
    first.n = r->n > 0;
    first.piece = first.pieces = 1;
    first.result = NULL;
    int64_t first_bytes = grd_reduction_scratch(&first, true), bytes = grd_reduction_scratch(r, true);
    if ((first.gathered = grd_alloc((size_t)first_bytes)) == NULL)
        return false;
    if ((r->gathered = grd_alloc((size_t)bytes)) != NULL) {
        grd_reduction_run(&first);
        r->center = first.gathered;
        r->finish = GRD_FINISH_MEAN;
        r->number = n;
        grd_reduction_run(r);
    }
    grd_free(first.gathered, (size_t)first_bytes);
    return r->gathered != NULL;
}

/* The means in a first pass, the squared distances from them in a second. `mean` may be NULL. False when memory ran out. */
static bool moments(grd_tensor *spread, grd_tensor *mean, const grd_tensor *self, uint64_t mask, double correction,
                    enum grd_reduce_finish finish)
{
    struct grd_reduction r;
    double n = grd_reduce_count(grd_dims_from(self->sizes, self->ndim), mask);
    grd_reduction_plan(&r, grd_reduce_read_as(GRD_REDUCE_SUM, (grd_dtype)self->dtype, (grd_dtype)self->dtype), self, mask);
    grd_reduction_kernel(&r, GRD_REDUCE_DIFFERENCE);
    struct grd_reduction second = r;
    grd_reduction_kernel(&second, GRD_REDUCE_SQUARE);
    second.finish = finish;
    second.number = n - correction > 0 ? n - correction : 0;
    grd_reduction_store(&second, spread);
    if (mean != NULL)
        grd_reduction_store(&r, mean);
    int64_t bytes = grd_reduction_scratch(&second, false);
    if (!means(&r, n))
        return false;
    second.center = r.gathered;
    second.gathered = bytes > 0 ? grd_alloc((size_t)bytes) : NULL;
    bool done = bytes == 0 || second.gathered != NULL;
    if (done)
        grd_reduction_run(&second);
    grd_free(second.gathered, (size_t)bytes);
    grd_free(r.gathered, (size_t)grd_reduction_scratch(&r, true));
    return done;
}

static bool check_moments(const grd_tensor *self, const char *names)
{
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (!grd_dtype_is_floating(dtype) && !grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "%s only support floating point and complex dtypes", names);
    return grd_reduce_check("var", self, dtype);
}

static double correction_of(grd_scalar correction)
{
    return correction.kind == GRD_SCALAR_NONE ? 1 : grd_scalar_double(correction);
}

static grd_tensor *moment(grd_tensor *out, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim,
                          enum grd_reduce_finish finish)
{
    uint64_t mask;
    if (!check_moments(self, "std and var") || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    grd_tensor *result = grd_reduce_prepare(out, self, mask, keepdim, grd_dtype_to_real((grd_dtype)self->dtype));
    if (grd_pending() || (!grd_is_meta(result) && !moments(result, NULL, self, mask, correction_of(correction), finish)))
        return grd_failed;
    return grd_out_finish(out, result);
}

grd_tensor *op_var(grd_tensor *out, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim)
{
    return moment(out, self, dim, correction, keepdim, GRD_FINISH_DIVIDE);
}

grd_tensor *op_std(grd_tensor *out, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim)
{
    return moment(out, self, dim, correction, keepdim, GRD_FINISH_DIVIDE_ROOT);
}

static void moment_and_mean(grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, const char *name,
                            enum grd_reduce_finish finish, grd_tensor **ret)
{
    uint64_t mask;
    ret[0] = ret[1] = grd_failed;
    if (!check_moments(self, name) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return;
    grd_tensor *spread = grd_reduce_prepare(NULL, self, mask, keepdim, grd_dtype_to_real((grd_dtype)self->dtype));
    grd_tensor *mean = grd_reduce_prepare(NULL, self, mask, keepdim, (grd_dtype)self->dtype);
    if (grd_pending() || (!grd_is_meta(spread) && !moments(spread, mean, self, mask, correction_of(correction), finish)))
        return;
    ret[0] = spread;
    ret[1] = mean;
}

void op_var_mean(grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, grd_tensor **ret)
{
    moment_and_mean(self, dim, correction, keepdim, "var_mean", GRD_FINISH_DIVIDE, ret);
}

void op_std_mean(grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, grd_tensor **ret)
{
    moment_and_mean(self, dim, correction, keepdim, "std_mean", GRD_FINISH_DIVIDE_ROOT, ret);
}

/* The two results of a call, as those of another operator. */
static void give(grd_tensor *spread, grd_tensor *mean, grd_tensor **ret)
{
    ret[0] = spread;
    ret[1] = mean;
}

void op_var_mean_dim(grd_tensor *self, grd_dims dim, bool unbiased, bool keepdim, grd_tensor **ret)
{
    const grd_var_mean_result result = grd_var_mean(self, .dim = dim, .correction = grd_int(unbiased), .keepdim = keepdim);
    give(result.variance, result.average, ret);
}

void op_var_mean_unbiased(grd_tensor *self, bool unbiased, grd_tensor **ret)
{
    op_var_mean_dim(self, (grd_dims){0}, unbiased, false, ret);
}

void op_std_mean_dim(grd_tensor *self, grd_dims dim, bool unbiased, bool keepdim, grd_tensor **ret)
{
    const grd_std_mean_result result = grd_std_mean(self, .dim = dim, .correction = grd_int(unbiased), .keepdim = keepdim);
    give(result.deviation, result.average, ret);
}

void op_std_mean_unbiased(grd_tensor *self, bool unbiased, grd_tensor **ret)
{
    op_std_mean_dim(self, (grd_dims){0}, unbiased, false, ret);
}

/* ---- Gradients: composites, differentiable in their turn --------------------------------------------------------------- */
grd_tensor *op_hidden_var_backward(grd_tensor *grad, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim)
{
    uint64_t mask;
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    double n = grd_reduce_count(sizes, mask) - correction_of(correction);
    grd_tensor *centered = grd_sub(self, grd_mean(self, .dim = dim, .keepdim = true));
    return grd_mul(grd_mul_scalar(grd_reduce_restored(grad, sizes, mask, keepdim), grd_float(2 / n)), centered);
}

/* Where the deviation is zero, so is the gradient. */
grd_tensor *op_hidden_std_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_dims dim, grd_scalar correction,
                                   bool keepdim)
{
    grd_tensor *grad_var = grd_quotient_or_zero(grad, grd_mul_scalar(result, grd_int(2)));
    return grd_hidden_var_backward(grad_var, self, dim, correction, keepdim);
}
