/* Implements operators on the diagonals of matrices: diag_embed, fill_diagonal_ and block_diag. */
#include <string.h>

#include "gen/uses/op/diagonals.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/plan.h"

grd_tensor *op_diag_embed(grd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t n = self->ndim + 1;
    int64_t size;
    if (self->ndim == 0 || n > GRD_MAX_DIMS)
        return grd_fail(GRD_ERROR_RUNTIME, "diag_embed takes a tensor of 1 to %d dimensions, not %d", GRD_MAX_DIMS - 1, self->ndim);
    if (!grd_shape_wrap_dim(dim1, n, &dim1) || !grd_shape_wrap_dim(dim2, n, &dim2))
        return grd_failed;
    if (dim1 == dim2)
        return grd_fail(GRD_ERROR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    if (offset == INT64_MIN || __builtin_add_overflow(self->sizes[self->ndim - 1], offset < 0 ? -offset : offset, &size))
        return grd_fail(GRD_ERROR_RUNTIME, "offset %lld is out of range for a diagonal of %lld elements", (long long)offset,
                        (long long)self->sizes[self->ndim - 1]);
    for (int64_t i = 0, own = 0; i < n; i++)
        sizes[i] = i == dim1 || i == dim2 ? size : self->sizes[own++];
    return grd_hidden_diagonal_backward(self, grd_dims_from(sizes, n), offset, dim1, dim2);
}

grd_tensor *op_fill_diagonal(grd_tensor *out, grd_tensor *self, grd_scalar fill_value, bool wrap)
{
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "dimensions must larger than 1");
    int64_t stride = 0;
    for (int64_t i = 0; i < self->ndim; i++) {
        if (self->ndim > 2 && self->sizes[i] != self->sizes[0])
            return grd_fail(GRD_ERROR_RUNTIME, "all dimensions of input must be of equal length");
        stride += self->strides[i];
    }
    const int64_t rows = self->sizes[0], columns = self->sizes[1];
    if (wrap && self->ndim == 2 && rows > columns) {
        const grd_device device = grd_device_of(self);
        grd_tensor *row = grd_arange(grd_int(rows), .device = device), *column = grd_arange(grd_int(columns), .device = device);
        return grd_masked_fill_(out, grd_eq(grd_unsqueeze(grd_remainder_scalar(row, grd_int(columns + 1)), 1), column), fill_value);
    }
    grd_fill_(grd_as_strided(out, grd_dims(rows < columns ? rows : columns), grd_dims(stride)), fill_value);
    return grd_pending() ? grd_failed : out;
}

grd_tensor *op_block_diag(grd_tensors tensors)
{
    grd_tensor **rows = grd_pool_array(tensors.n, sizeof *rows);
    int64_t width = 0, left = 0;
    if (rows == NULL)
        return grd_failed;
    if (tensors.n == 0)
        return grd_empty(grd_dims(1, 0));
    const grd_dtype dtype = grd_result_type(tensors.data, (int)tensors.n);
    for (int64_t i = 0; i < tensors.n; i++) {
        if (tensors.data[i]->ndim > 2)
            return grd_fail(GRD_ERROR_RUNTIME,
                            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %lld has %d dimensions", (long long)i,
                            tensors.data[i]->ndim);
        rows[i] = grd_to(grd_atleast_2d(tensors.data[i]), .dtype = dtype);
        width += grd_size(rows[i], 1);
    }
    for (int64_t i = 0; i < tensors.n && !grd_pending(); i++) {
        const int64_t own = rows[i]->sizes[1];
        rows[i] = grd_constant_pad_nd(rows[i], grd_dims(left, width - left - own));
        left += own;
    }
    return grd_pending() ? grd_failed : grd_cat(grd_tensors_from(rows, tensors.n));
}
