/* Computes linalg.tensorinv and linalg.tensorsolve, which reshape their arguments to matrices and solve equations. Also computes vander. Schema:
 * schema/lu.toml. */
#include <string.h>

#include "gen/uses/op/tensor_equations.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/formula.h"

/* True if `columns` equals `rows`, i.e. the matrix is square. Otherwise raises RuntimeError. The error message shows slices of self.shape,
 * and `dimensions` is the text of their bound. */
static bool check_product(int64_t columns, int64_t rows, const char *dimensions)
{
    return columns == rows || grd_raise(GRD_ERROR_RUNTIME,
                                        "Expected self to satisfy the requirement prod(self.shape[%s:]) == prod(self.shape[:%s]), but got "
                                        "%lld != %lld",
                                        dimensions, dimensions, (long long)columns, (long long)rows);
}

grd_tensor *op_linalg_tensorinv(grd_tensor *self, int64_t ind)
{
    if (ind <= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Expected a strictly positive integer for 'ind', but got %lld", (long long)ind);
    const int64_t first = grd_least(ind, self->ndim), rest = self->ndim - first;
    const int64_t rows = grd_sizes_product(self->sizes, first), columns = grd_sizes_product(self->sizes + first, rest);
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_product(columns, rows, "ind"))
        return grd_failed;
    memcpy(sizes, self->sizes + first, (size_t)rest * sizeof *sizes);
    memcpy(sizes + rest, self->sizes, (size_t)first * sizeof *sizes);
    const grd_linalg_inv_ex_result made = grd_linalg_inv_ex(grd_reshape(self, grd_dims(columns, rows)));
    return grd_inverse_check(made.info, "inv") ? grd_reshape(made.inverse, grd_dims_from(sizes, self->ndim)) : grd_failed;
}

grd_tensor *op_linalg_tensorsolve(grd_tensor *self, grd_tensor *other, grd_dims dims)
{
    int64_t last[GRD_MAX_DIMS];
    if (!grd_check_ndim(dims.n))
        return grd_failed;
    for (int64_t i = 0; i < dims.n; i++)
        last[i] = i - dims.n;
    grd_tensor *moved = dims.n > 0 ? grd_movedim(self, dims, grd_dims_from(last, dims.n)) : self;
    if (grd_pending())
        return grd_failed;
    const int64_t first = grd_least(other->ndim, moved->ndim), rows = grd_sizes_product(other->sizes, other->ndim);
    const grd_dims sizes = grd_dims_from(moved->sizes + first, moved->ndim - first);
    if (!check_product(grd_sizes_product(sizes.data, sizes.n), rows, "other.ndim"))
        return grd_failed;
    return grd_reshape(grd_linalg_solve(grd_reshape(moved, grd_dims(rows, rows)), grd_reshape(other, grd_dims(-1))), sizes);
}

/* Returns the powers 0 to n - 1 of each element, along a new last dimension. */
static grd_tensor *powers_of(grd_tensor *x, int64_t n)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!grd_check_ndim(x->ndim + 1))
        return grd_failed;
    memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
    sizes[x->ndim] = n - 1;
    grd_tensor *column = grd_unsqueeze(x, -1);
    grd_tensor *powers = grd_cumprod(grd_expand(column, grd_dims_from(sizes, x->ndim + 1)), -1);
    grd_tensor *const parts[] = {grd_ones_like(column, .dtype = grd_pending() ? GRD_FLOAT32 : (grd_dtype)powers->dtype), powers};
    return grd_cat(grd_tensors_from(parts, 2), .dim = -1);
}

grd_tensor *op_linalg_vander(grd_tensor *x, grd_scalar N)
{
    if (x->dtype == GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "linalg.vander supports floating point, complex, and integer tensors, but got Bool");
    grd_tensor *vectors = x->ndim == 0 ? grd_unsqueeze(x, -1) : x;
    const int64_t n = N.kind != GRD_SCALAR_NONE ? grd_scalar_int64(N) : grd_pending() ? 0 : vectors->sizes[vectors->ndim - 1];
    if (n <= 1)
        return grd_fail(GRD_ERROR_RUNTIME, "N must be greater than 1.");
    return powers_of(vectors, n);
}

grd_tensor *op_vander(grd_tensor *x, grd_scalar N, bool increasing)
{
    if (x->ndim != 1)
        return grd_fail(GRD_ERROR_RUNTIME, "x must be a one-dimensional tensor.");
    const int64_t n = N.kind != GRD_SCALAR_NONE ? grd_scalar_int64(N) : x->sizes[0];
    if (n < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "N must be non-negative.");
    grd_tensor *powers = n > 0 ? powers_of(x, n) : grd_narrow(powers_of(x, 1), 1, 0, 0);
    return increasing ? powers : grd_flip(powers, grd_dims(1));
}
