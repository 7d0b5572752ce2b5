/* Computes cross, kron and tensordot by calls of other operators. Schema: schema/arrange.toml. */
#include <string.h>

#include "gen/uses/op/tensor_products.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/plan.h"
#include "op/index_loops.h"

/* Returns the first dimension of size 3, which is the default dim of cross(). If there is none, raises RuntimeError and returns -1. */
static int64_t dimension_of_three(const grd_tensor *t)
{
    for (int64_t i = 0; i < t->ndim; i++)
        if (t->sizes[i] == 3)
            return i;
    grd_raise(GRD_ERROR_RUNTIME, "no dimension of size 3 in input");
    return -1;
}

grd_tensor *op_cross(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar dim)
{
    if (self->ndim != other->ndim)
        return grd_fail(GRD_ERROR_RUNTIME, "linalg.cross: inputs must have the same number of dimensions.");
    if (self->dtype == GRD_BOOL)
        return grd_fail_no_kernel("cross", GRD_BOOL);
    const int64_t given = dim.kind == GRD_SCALAR_NONE ? dimension_of_three(self) : grd_scalar_int64(dim);
    int64_t along;
    if (grd_pending() || !grd_wrap_dim(self, given, &along))
        return grd_failed;
    if (self->ndim == 0 || self->sizes[along] != 3 || other->sizes[along] != 3)
        return grd_fail(GRD_ERROR_RUNTIME, "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld", (long long)given,
                        (long long)grd_size_along(self, along), (long long)grd_size_along(other, along));
    if (!grd_check_indexed_out(out, grd_tensors(self, other)))
        return grd_failed;
    return grd_composite_finish(out, NULL, grd_hidden_linalg_cross(self, other, along));
}

grd_tensor *op_kron(grd_tensor *self, grd_tensor *other)
{
    const int64_t n = self->ndim > other->ndim ? self->ndim : other->ndim;
    int64_t left[GRD_MAX_DIMS], right[GRD_MAX_DIMS], sizes[GRD_MAX_DIMS];
    if (!grd_check_ndim(2 * n))
        return grd_failed;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = i - (n - self->ndim), b = i - (n - other->ndim);
        left[2 * i] = a >= 0 ? self->sizes[a] : 1;
        right[2 * i + 1] = b >= 0 ? other->sizes[b] : 1;
        left[2 * i + 1] = right[2 * i] = 1;
        sizes[i] = grd_wrapping_product(left[2 * i], right[2 * i + 1]);
    }
    grd_tensor *product = grd_mul(grd_reshape(self, grd_dims_from(left, 2 * n)), grd_reshape(other, grd_dims_from(right, 2 * n)));
    /* Under vmap the product may have a memory format whose dimensions a view could not merge, so it is made contiguous first. */
    return grd_unsafe_view(grd_is_batch(product) ? grd_contiguous(product) : product, grd_dims_from(sizes, n));
}

/* Makes the sizes of the two contracted dimensions equal if one of them is 1. If the contracted dimension of one tensor has size 1, replaces the
 * other tensor by its sum along its contracted dimension. */
static void match_sizes(grd_tensor **a, int64_t dim_a, grd_tensor **b, int64_t dim_b)
{
    int64_t i, j;
    if ((*a)->ndim == 0 || (*b)->ndim == 0) {
        grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                  (long long)((*a)->ndim == 0 ? dim_a : dim_b));
        return;
    }
    if (!grd_wrap_dim(*a, dim_a, &i) || !grd_wrap_dim(*b, dim_b, &j) || (*a)->sizes[i] == (*b)->sizes[j])
        return;
    if ((*a)->sizes[i] == 1)
        *b = grd_sum(*b, .dim = grd_dims(j), .keepdim = true, .dtype = (*b)->dtype);
    else if ((*b)->sizes[j] == 1)
        *a = grd_sum(*a, .dim = grd_dims(i), .keepdim = true, .dtype = (*a)->dtype);
}

grd_tensor *op_tensordot(grd_tensor *self, grd_tensor *other, grd_dims dims_self, grd_dims dims_other)
{
    int64_t first[GRD_MAX_DIMS], last[GRD_MAX_DIMS], sizes[2 * GRD_MAX_DIMS], length = 1;
    const int64_t n = dims_self.n;
    uint64_t mask;
    if (n != dims_other.n)
        return grd_fail(GRD_ERROR_RUNTIME, "both dimension lists should have same length, got %lld and %lld", (long long)n,
                        (long long)dims_other.n);
    for (int64_t i = 0; i < n && !grd_pending(); i++)
        match_sizes(&self, dims_self.data[i], &other, dims_other.data[i]);
    if (grd_pending() || !grd_shape_dim_mask(dims_self, self->ndim, &mask) || !grd_shape_dim_mask(dims_other, other->ndim, &mask))
        return grd_failed;
    for (int64_t i = 0; i < n; i++) {
        const int64_t left = grd_size(self, dims_self.data[i]), right = grd_size(other, dims_other.data[i]);
        if (left != right)
            return grd_fail(GRD_ERROR_RUNTIME,
                            "contracted dimensions need to match, but first has size %lld in dim %lld and second has size %lld in dim %lld",
                            (long long)left, (long long)dims_self.data[i], (long long)right, (long long)dims_other.data[i]);
        first[i] = i;
        last[i] = i - n;
        length *= left;
    }
    grd_tensor *left = grd_movedim(self, dims_self, grd_dims_from(last, n)),
               *right = grd_movedim(other, dims_other, grd_dims_from(first, n));
    const int64_t rows = self->ndim - n, columns = other->ndim - n;
    if (grd_pending())
        return grd_failed;
    if (rows + columns == 0 && n > 0)
        return grd_view(grd_dot(grd_reshape(left, grd_dims(length)), grd_reshape(right, grd_dims(length))), grd_dims_from(sizes, 0));
    memcpy(sizes, left->sizes, (size_t)rows * sizeof *sizes);
    memcpy(sizes + rows, right->sizes + n, (size_t)columns * sizeof *sizes);
    left = grd_reshape(left, grd_dims(grd_sizes_product(sizes, rows), length));
    right = grd_reshape(right, grd_dims(length, grd_sizes_product(sizes + rows, columns)));
    return grd_reshape(grd_mm(left, right), grd_dims_from(sizes, rows + columns));
}
