/* The operators around var and std, which follow the law "reduce": other signatures, and gradients. */
#include "gen/uses/op/moments.h"
#include "op/reduce.h"

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
    double n = grd_reduce_count(sizes, mask) - grd_reduce_correction(correction);
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
