/* Checks batches of matrices, plans column-major results, and computes the addresses of the matrices of a batch. */
#include "op/matrix_batch.h"

#include <stdio.h>
#include <string.h>

#include "gen/uses/op/matrix_batch.h"
#include "base/integer.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/decomposition.h"
#include "op/formula.h"

enum { GRAIN = 1 << 15 }; /* number of multiplications that are enough work for one task */

bool grd_check_matrices(const grd_tensor *x, const char *argument, const char *function)
{
    return x->ndim >= 2 || grd_raise(GRD_ERROR_RUNTIME, "%s: The input tensor %s must have at least 2 dimensions.", function, argument);
}

bool grd_check_square(const grd_tensor *x, const char *prefix)
{
    return grd_size_from_end(x, 1) == grd_size_from_end(x, 2) ||
           grd_raise(GRD_ERROR_RUNTIME, "%sA must be batches of square matrices, but they are %lld by %lld matrices", prefix,
                     (long long)grd_size_from_end(x, 2), (long long)grd_size_from_end(x, 1));
}

bool grd_decomposition_check_square(const grd_tensor *x, const char *function)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s: ", function);
    return grd_check_matrices(x, "A", function) && grd_check_square(x, prefix);
}

bool grd_decomposition_check_inexact(const grd_tensor *x, const char *function)
{
    const grd_dtype dtype = (grd_dtype)x->dtype;
    return grd_dtype_is_inexact(dtype) || grd_raise(GRD_ERROR_RUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s",
                                                    function, grd_dtype_type_name(dtype));
}

bool grd_plan_columns(struct grd_plan *p, grd_dims batch, int64_t rows, int64_t columns, grd_dtype dtype)
{
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS], step;
    const int64_t n = batch.n;
    bool is_too_large = __builtin_mul_overflow(grd_greatest(rows, 1), grd_greatest(columns, 1), &step);
    memcpy(sizes, batch.data, (size_t)n * sizeof *sizes);
    sizes[n] = rows;
    sizes[n + 1] = columns;
    strides[n] = 1;
    strides[n + 1] = grd_greatest(rows, 1);
    for (int64_t d = n - 1; d >= 0; d--) {
        strides[d] = step;
        is_too_large = __builtin_mul_overflow(step, grd_greatest(sizes[d], 1), &step) || is_too_large;
    }
    if (is_too_large)
        return grd_raise(GRD_ERROR_MEMORY, "the sizes %s are too large", grd_list_text(grd_dims_from(sizes, n + 2)));
    return grd_plan_strided(p, grd_dims_from(sizes, n + 2), strides, dtype);
}

bool grd_plan_reads_matrices(struct grd_plan *p, grd_tensor *x, bool *ret_by_rows)
{
    *ret_by_rows = grd_shape_is_contiguous(grd_sizes(x), x->strides);
    return grd_plan_reads_as(p, *ret_by_rows ? x : grd_transpose(x, -2, -1), (grd_dtype)x->dtype);
}

char *grd_broadcast_matrix_at(const grd_tensor *x, const grd_tensor *result, int64_t index)
{
    int64_t offset = 0;
    for (int d = x->ndim - 3, of = result->ndim - 3; d >= 0; d--, of--) {
        /* Along the outermost dimension the quotient is 0, so no slow division is needed. */
        const int64_t rest = of > 0 ? index / result->sizes[of] : 0;
        offset += x->sizes[d] == 1 ? 0 : (index - rest * result->sizes[of]) * x->strides[d];
        index = rest;
    }
    return x->data + offset * x->itemsize;
}

int64_t grd_matrix_grain(double work)
{
    return work >= GRAIN ? 1 : (int64_t)(GRAIN / (work > 1 ? work : 1));
}

int64_t grd_lanes_grain(int64_t side, int64_t grain)
{
    return side > GRD_SMALL_MATRIX_SIDE ? grain : grd_round_up(grain, GRD_MATRIX_LANES);
}

bool grd_find_failed_matrix(grd_tensor *info, struct grd_failed_matrix *ret_failed)
{
    double least, largest;
    info = grd_physical(info);
    if (!grd_composite_extremes(info, &least, &largest) || (least == 0 && largest == 0))
        return false;
    grd_tensor *infos = grd_reshape(info, grd_dims(-1));
    const int64_t first = grd_item_int64(grd_argmax(grd_to(grd_ne_scalar(infos, grd_int(0)), .dtype = GRD_INT64)));
    ret_failed->info = grd_item_int64(grd_select(infos, 0, first));
    ret_failed->place[0] = '\0';
    if (info->ndim > 0)
        snprintf(ret_failed->place, sizeof ret_failed->place, "(Batch element %lld): ", (long long)first);
    return !grd_pending();
}
