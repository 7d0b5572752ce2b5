/* Implements operators that return coordinates: combinations, tril_indices, triu_indices and unravel_index. Schema: schema/combine.toml. */
#include <string.h>

#include "gen/uses/op/coordinates.h"
#include "base/integer.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/index.h"
#include "op/formula.h"
#include "op/plan.h"

/* ---- Combinations ------------------------------------------------------------------------------------------------------------------- */

/* Writes the number of ways to choose k of n elements to *ret_count. Raises RuntimeError if it exceeds int64. *ret_count is at least 2^i after i
 * steps of the loop, so the loop ends or overflows after at most 63 steps. */
static bool count_choices(int64_t n, int64_t k, int64_t *ret_count)
{
    *ret_count = k <= n;
    k = grd_least(k, n - k);
    for (int64_t i = 1; i <= k; i++) {
        if (__builtin_mul_overflow(*ret_count, n - k + i, ret_count))
            return grd_raise(GRD_ERROR_RUNTIME, "combinations(): more than a tensor can hold");
        *ret_count /= i;
    }
    return true;
}

bool plan_hidden_combination_indices(struct grd_plan *p, int64_t n, int64_t r, bool repeated, grd_device device)
{
    int64_t rows;
    return count_choices(repeated && n > 0 ? n + r - 1 : n, r, &rows) && grd_plan_new(p, grd_dims(rows, r), GRD_INT64, device, false);
}

void run_hidden_combination_indices(const struct grd_plan *p, int64_t n, int64_t r, bool repeated, grd_device device)
{
    (void)device;
    grd_kernels->index->combinations(n, r, repeated, p->results[0]->sizes[0], (int64_t *)(void *)p->results[0]->data);
}

/* ---- Triangles ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of elements [i, j] of a rows x columns matrix with j <= i + offset. Rows before `first` have no such element, each row from
 * `first` to `full` has one more than the row before, and all elements of the rows from `full` on are included. */
static int64_t lower_count(int64_t rows, int64_t columns, int64_t offset)
{
    const int64_t first = grd_clamped(-offset, 0, rows), full = grd_clamped(columns - 1 - offset, first, rows), rising = full - first;
    /* twice the number of elements in rows [first, full); does not overflow, because it is at most 2 * rows * columns */
    const int64_t twice = grd_wrapping_product(rising, first + full + 1 + 2 * offset);
    return twice / 2 + (rows - full) * columns;
}

bool plan_triangle_indices(struct grd_plan *p, int64_t row, int64_t col, int64_t offset, bool upper, grd_dtype dtype, grd_device device,
                           bool requires_grad)
{
    int64_t all;
    if (row < 0 || col < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "%s must be non-negative, got%lld", row < 0 ? "row" : "col", (long long)(row < 0 ? row : col));
    dtype = dtype == GRD_DTYPE_NONE ? GRD_INT64 : dtype;
    if (dtype != GRD_INT64 && dtype != GRD_INT32)
        return grd_raise_no_kernel(upper ? "triu_indices" : "tril_indices", dtype);
    if (__builtin_mul_overflow(row, 4 * (double)col < 0x1p62 ? 4 * col : INT64_MAX, &all))
        return grd_raise(GRD_ERROR_RUNTIME, "%s_indices: a triangle of %lld x %lld elements has more than a tensor can hold",
                         upper ? "triu" : "tril", (long long)row, (long long)col);
    struct grd_triangle_indices *t = (struct grd_triangle_indices *)(void *)p->state;
    *t = (struct grd_triangle_indices){.columns = col, .offset = grd_clamped(offset, -row, col), .upper = upper};
    const int64_t count = upper ? row * col - lower_count(row, col, t->offset - 1) : lower_count(row, col, t->offset);
    t->first = upper ? 0 : grd_clamped(-t->offset, 0, row);
    t->end = upper ? grd_clamped(col - t->offset, 0, row) : row;
    return grd_plan_new(p, grd_dims(2, count), dtype, device, requires_grad) && grd_plan_computed_in(p, GRD_INT64);
}

void run_triangle_indices(const struct grd_plan *p)
{
    const grd_tensor *result = p->results[0];
    int64_t *row = (int64_t *)(void *)result->data;
    grd_kernels->index->triangle((const struct grd_triangle_indices *)(const void *)p->state, row, row + result->sizes[1]);
}

/* ---- Places in row-major order ------------------------------------------------------------------------------------------------------- */

grd_tensors op_unravel_index(grd_tensor *indices, grd_dims shape)
{
    grd_tensor **places = grd_pool_array(shape.n, sizeof *places);
    if (!grd_dtype_is_integer((grd_dtype)indices->dtype))
        grd_raise(GRD_ERROR_TYPE, "expected 'indices' to be integer dtype, but got torch.%s", grd_dtype_name((grd_dtype)indices->dtype));
    for (int64_t i = 0; i < shape.n && !grd_pending(); i++)
        if (shape.data[i] < 0) {
            const char *text = grd_list_text(shape);
            grd_raise(GRD_ERROR_VALUE, "'shape' cannot have negative values, but got (%.*s%s)", (int)strlen(text) - 2, text + 1,
                      shape.n == 1 ? "," : "");
        }
    indices = grd_to(indices, .dtype = GRD_INT64);
    for (int64_t i = shape.n - 1, behind = 1; i >= 0 && !grd_pending(); i--) {
        grd_tensor *of_line = behind == 1 ? indices : grd_floor_divide_scalar(indices, grd_int(behind));
        places[i] = grd_remainder_scalar(of_line, grd_int(shape.data[i]));
        behind = grd_wrapping_product(behind, shape.data[i]);
    }
    if (grd_pending() || shape.n == 0)
        return (grd_tensors){0};
    /* PyTorch divides indices.unsqueeze(-1) by a vector with one element per dimension of `shape`. The result has the strides of this quotient. */
    const grd_tensors inputs = grd_tensors(
        grd_unsqueeze(indices, -1),
        grd_arange_end(grd_int(shape.n),
                       .device = grd_device_of(indices))); /* a vector of the same size as the divisor; its elements are not read */
    return grd_unbind(grd_composite_elementwise(grd_stack(grd_tensors_from(places, shape.n), .dim = -1), inputs), .dim = -1);
}
