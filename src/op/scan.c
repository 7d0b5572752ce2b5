/* Parts of the gradients of running sums and products, which are composites over a first-order linear recurrence (schema/reduction.toml). The operators
 * themselves follow the law "lines"; their loops are in kernel/cpu/lines_scan.h. */
#include "gen/uses/op/scan.h"
#include "op/formula.h"

grd_tensor *grd_scan_moved(grd_tensor *t, int64_t dim, bool back, bool ones)
{
    int64_t n = grd_size(t, dim);
    grd_tensor *end = grd_narrow(t, dim, 0, 1), *rest = grd_narrow(t, dim, back, n - 1);
    grd_tensor *fresh = ones ? grd_ones_like(end) : grd_zeros_like(end);
    return grd_cat(back ? grd_tensors(rest, fresh) : grd_tensors(fresh, rest), .dim = dim);
}

/* The products of all others along a dim are exclusive running products from both ends. */
static grd_tensor *product_of_others(grd_tensor *t, int64_t dim)
{
    grd_dims dims = grd_dims_from(&dim, 1);
    grd_tensor *before = grd_cumprod(grd_scan_moved(t, dim, false, true), dim);
    grd_tensor *after = grd_flip(grd_cumprod(grd_flip(grd_scan_moved(t, dim, true, true), dims), dim), dims);
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
