/* Implements torch.hash_tensor, which returns the exclusive or of the bits of all elements. */
#include "gen/uses/op/hash.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/checks.h"
#include "op/dtypes.h"
#include "op/sizes.h"

/* Returns an int64 tensor: the elements of `t` if they are integers, otherwise the bits of the elements converted to float64. */
static grd_tensor *bits_of(grd_tensor *t)
{
    return grd_dtype_is_integral((grd_dtype)t->dtype) ? grd_to(t, .dtype = GRD_INT64)
                                                      : grd_view_dtype(grd_contiguous(grd_to(t, .dtype = GRD_FLOAT64)), GRD_INT64);
}

static bool check(const grd_tensor *self, grd_dims dim, int64_t mode)
{
    if (mode != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Unknown hash_tensor mode: %lld", (long long)mode);
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_raise_no_kernel("xor_sum", (grd_dtype)self->dtype);
    if (self->numel == 0 && dim.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                         "with the 'dim' argument.");
    for (int64_t i = 0; i < dim.n && self->ndim > 0; i++) {
        int64_t along;
        if (!grd_wrap_dim(self, dim.data[i], &along))
            return false;
        if (self->sizes[along] == 0)
            return grd_raise(GRD_ERROR_INDEX, "hash_tensor: Expected reduction dim %lld to have non-zero size.", (long long)dim.data[i]);
    }
    return true;
}

/* Returns the exclusive or of the elements of `t` along dimension `dim`, computed by halving the dimension until one element is left. */
static grd_tensor *folded(grd_tensor *t, int64_t dim)
{
    for (int64_t n = grd_pending() ? 1 : t->sizes[dim], half; n > 1 && !grd_pending(); n = half + n % 2) {
        half = n / 2;
        grd_tensor *both = grd_bitwise_xor(grd_narrow(t, dim, 0, half), grd_narrow(t, dim, half, half));
        t = n % 2 == 0 ? both : grd_cat(grd_tensors(both, grd_narrow(t, dim, n - 1, 1)), .dim = dim);
    }
    return t;
}

grd_tensor *op_hash_tensor(grd_tensor *self, grd_dims dim, bool keepdim, int64_t mode)
{
    uint64_t mask = 0;
    if (!check(self, dim, mode) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    grd_tensor *t = bits_of(self);
    for (int d = self->ndim - 1; d >= 0; d--) {
        if (!(mask >> d & 1))
            continue;
        t = folded(t, d);
        t = keepdim ? t : grd_squeeze(t, .dim = grd_dims(d));
    }
    return grd_view_dtype(t, GRD_UINT64);
}
