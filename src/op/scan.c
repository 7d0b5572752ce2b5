/* The gradients of running sums and products, as composites over a first-order linear recurrence. The operators themselves follow the law
 * "lines"; their loops are in kernel/cpu/lines_scan.h. */
#include "gen/uses/op/scan.h"
#include "op/common.h"

/* t moved by one along dim, with zeros or ones where nothing moves to: t[k - 1], or t[k + 1] when `back`. */
static grd_tensor *moved(grd_tensor *t, int64_t dim, bool back, bool ones)
{
    int64_t n = grd_size(t, dim);
    grd_tensor *end = grd_narrow(t, dim, 0, 1), *rest = grd_narrow(t, dim, back, n - 1);
    grd_tensor *fresh = ones ? grd_ones_like(end) : grd_zeros_like(end);
    return grd_cat(back ? grd_tensors(rest, fresh) : grd_tensors(fresh, rest), .dim = dim);
}

/* The adjoint of a recurrence runs backward: g[k] = grad[k] + conj(factor[k + 1]) * g[k + 1]. */
grd_tensor *op_hidden_linear_scan_adjoint(grd_tensor *grad, grd_tensor *factor, int64_t dim)
{
    if (grd_ndim(grad) == 0 || grd_numel(grad) == 0)
        return grad;
    grd_dims dims = grd_dims_from(&dim, 1);
    grd_tensor *factors = grd_flip(moved(grd_conj(factor), dim, true, false), dims);
    return grd_flip(grd_hidden_linear_scan(grd_flip(grad, dims), factors, dim), dims);
}

grd_tensor *op_hidden_linear_scan_factor_backward(grd_tensor *grad, grd_tensor *factor, grd_tensor *result, int64_t dim)
{
    if (grd_ndim(grad) == 0)
        return grd_zeros_like(grad);
    if (grd_numel(grad) == 0)
        return grad;
    return grd_mul(grd_hidden_linear_scan_adjoint(grad, factor, dim), grd_conj(moved(result, dim, false, false)));
}

/* d/dx[k] = (product before k) * s[k], s[k] = grad[k] + x[k + 1] * s[k + 1]: no division, so zeros need no care. */
grd_tensor *op_hidden_cumprod_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, int64_t dim)
{
    if (grd_ndim(grad) == 0 || grd_numel(grad) == 0)
        return grad;
    self = grd_to(self, .dtype = grd_tensor_dtype(grad));
    return grd_mul(grd_hidden_linear_scan_adjoint(grad, self, dim), grd_conj(moved(result, dim, false, true)));
}

/* The products of all others along a dim are exclusive running products from both ends. */
static grd_tensor *product_of_others(grd_tensor *t, int64_t dim)
{
    grd_dims dims = grd_dims_from(&dim, 1);
    grd_tensor *before = grd_cumprod(moved(t, dim, false, true), dim);
    grd_tensor *after = grd_flip(grd_cumprod(grd_flip(moved(t, dim, true, true), dims), dim), dims);
    return grd_mul(before, after);
}

/* Right with any number of zeros. */
grd_tensor *op_hidden_prod_backward(grd_tensor *grad, grd_tensor *self, grd_scalar dim, bool keepdim)
{
    self = grd_to(self, .dtype = grd_tensor_dtype(grad));
    if (grd_ndim(self) == 0 || grd_numel(self) == 0)
        return grd_expand(grd_ndim(self) == 0 ? grad : grd_zeros_like(self), grd_sizes(self));
    if (dim.kind == GRD_SCALAR_NONE) {
        grd_tensor *others = product_of_others(grd_reshape(self, grd_dims(-1)), 0);
        return grd_mul(grd_reshape(grd_conj(others), grd_sizes(self)), keepdim ? grad : grd_reshape(grad, GRD_NO_DIMS));
    }
    grd_tensor *others = product_of_others(self, grd_scalar_int64(dim));
    return grd_mul(keepdim ? grad : grd_unsqueeze(grad, grd_scalar_int64(dim)), grd_conj(others));
}
