/* Implements flip, roll and rot90.
 * Invariant: each operator checks all its arguments before it allocates. */
#include "base/parallel.h"
#include "core/geometry.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/bytes.h"
#include "kernel/map.h"
#include "op/copy.h"
#include "op/row_join.h"
#include <string.h>

#include "gen/uses/op/flip_roll.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/plan.h"

bool plan_flip(struct grd_plan *p, grd_tensor *self, grd_dims dims)
{
    uint64_t mask = 0;
    return (dims.n == 0 || grd_shape_dim_mask(dims, self->ndim, &mask)) && grd_plan_reads(p, self) &&
           grd_plan_like(p, self, (grd_dtype)self->dtype);
}

void run_flip(const struct grd_plan *p, grd_tensor *self, grd_dims dims)
{
    int64_t strides[GRD_MAX_DIMS];
    grd_tensor reversed = grd_part_of(self, self->data, self->sizes, strides);
    memcpy(strides, self->strides, self->ndim * sizeof *strides);
    for (int64_t i = 0; i < dims.n && self->ndim > 0; i++) {
        const int64_t dim = dims.data[i] < 0 ? dims.data[i] + self->ndim : dims.data[i];
        reversed.data += (self->sizes[dim] - 1) * grd_byte_stride(self, dim);
        strides[dim] = -strides[dim];
    }
    grd_copy_strided(p->results[0], &reversed);
}

/* Returns the index of the element that becomes the first when `size` elements (at least 1) are rolled by `shift`. */
static int64_t first_rolled(int64_t size, int64_t shift)
{
    const int64_t moved = shift % size;
    return moved > 0 ? size - moved : -moved;
}

/* Writes to starts[d], for each dimension d, the index of the element that becomes the first after all shifts. The caller has filled `starts` with 0.
 * Writes the strides of PyTorch's result to ret_strides. They follow from PyTorch's algorithm, which rolls one dimension after the other by
 * concatenating two slices. Returns false if a dimension is out of range. */
static bool rolled_geometry(const grd_tensor *self, grd_dims shifts, grd_dims dims, int64_t *starts, int64_t *ret_strides)
{
    int64_t sizes[GRD_MAX_DIMS];
    const grd_dims slice = grd_dims_from(sizes, self->ndim);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    memcpy(ret_strides, self->strides, self->ndim * sizeof *ret_strides);
    for (int64_t i = 0; i < dims.n; i++) {
        int64_t dim;
        if (!grd_wrap_dim(self, dims.data[i], &dim))
            return false;
        const int64_t size = self->sizes[dim], start = size > 0 ? first_rolled(size, shifts.data[i]) : 0;
        sizes[dim] = size - start;
        bool channels_last = grd_shape_suggests_channels_last(slice, ret_strides);
        sizes[dim] = start;
        channels_last &= grd_shape_suggests_channels_last(slice, ret_strides);
        sizes[dim] = size;
        (channels_last ? grd_shape_channels_last_strides : grd_shape_contiguous_strides)(slice, ret_strides);
        starts[dim] = start < size - starts[dim] ? start + starts[dim] : start - (size - starts[dim]);
    }
    return true;
}

bool plan_roll(struct grd_plan *p, grd_tensor *self, grd_dims shifts, grd_dims dims)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (shifts.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "`shifts` required");
    if (dims.n == 0 && shifts.n == 1)
        return grd_plan_reads_as(p, self, dtype) && grd_plan_result(p, grd_sizes(self), dtype);
    if (shifts.n != dims.n)
        return grd_raise(GRD_ERROR_RUNTIME, "shifts and dimensions must align. shifts: %lld, dims:%lld", (long long)shifts.n,
                         (long long)dims.n);
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dims.data[0]);
    int64_t *starts = memset(p->state, 0, self->ndim * sizeof *starts), strides[GRD_MAX_DIMS];
    if (!rolled_geometry(self, shifts, dims, starts, strides) || !grd_check_convertible(dtype, dtype) || !grd_plan_reads(p, self))
        return false;
    return self->numel == 0 ? grd_plan_like(p, self, dtype) : grd_plan_strided(p, grd_sizes(self), strides, dtype);
}

/* Copies `from` to `to`, rolling each dimension d from `dim` on so that the element with index starts[d] becomes the first. A rolled dimension is
 * copied as two parts, which exchange their positions. Both tensors must share one array of sizes, which is changed during the copy. */
static void copy_rolled(grd_tensor *to, grd_tensor *from, const int64_t *starts, int64_t dim)
{
    while (dim < to->ndim && starts[dim] == 0)
        dim++;
    if (dim == to->ndim) {
        to->numel = from->numel = grd_sizes_product(to->sizes, to->ndim);
        grd_copy_strided(to, from);
        return;
    }
    char *const data = to->data, *const read = from->data;
    const int64_t start = starts[dim], rest = to->sizes[dim] - start;
    to->sizes[dim] = rest;
    from->data = read + start * grd_byte_stride(from, dim);
    copy_rolled(to, from, starts, dim + 1);
    to->sizes[dim] = start;
    to->data = data + rest * grd_byte_stride(to, dim);
    from->data = read;
    copy_rolled(to, from, starts, dim + 1);
    to->sizes[dim] = start + rest;
    to->data = data;
}

/* Rolls one dimension and returns true. For each index of the dimensions before the rolled one, the elements are a contiguous row, and rolling
 * exchanges its first part and its second part. Returns false, having done nothing, if there is only one such row, if the tensors are empty or not
 * contiguous, or if the number of rolled dimensions is not one. */
static bool roll_rows(grd_tensor *result, const grd_tensor *from, const int64_t *starts)
{
    int64_t dim = -1;
    for (int64_t i = 0; i < from->ndim; i++) {
        if (starts[i] != 0 && dim >= 0)
            return false;
        dim = starts[i] != 0 ? i : dim;
    }
    const int64_t outer = dim >= 0 ? grd_sizes_product(from->sizes, dim) : 1;
    if (outer == 1 || from->numel == 0 || !grd_rows_are_contiguous(result, from))
        return false;
    const int64_t row = from->sizes[dim] * grd_byte_stride(from, dim), start = starts[dim] * grd_byte_stride(from, dim);
    struct grd_row_join joined = {.rows = {.to = result->data,
                                           .to_stride = row,
                                           .parts = 2,
                                           .part = {{from->data + start, row, row - start}, {from->data, row, start}}},
                                  .itemsize = result->itemsize,
                                  .are_short = row <= GRD_SHORT_PART};
    grd_write_rows(&joined, outer);
    return true;
}

void run_roll(const struct grd_plan *p, grd_tensor *self, grd_dims shifts, grd_dims dims)
{
    grd_tensor *result = p->results[0], *from = p->in[0];
    if (dims.n == 0) { /* without dims, `self` is rolled as if it were flattened */
        const int64_t start = first_rolled(self->numel, shifts.data[0]) * self->itemsize, rest = self->numel * self->itemsize - start;
        grd_copy_block(result->data, from->data + start, rest);
        grd_copy_block(result->data + rest, from->data, start);
        return;
    }
    if (roll_rows(result, from, (const int64_t *)(const void *)p->state))
        return;
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    grd_tensor to_part = grd_part_of(result, result->data, sizes, result->strides);
    grd_tensor from_part = grd_part_of(from, from->data, sizes, from->strides);
    copy_rolled(&to_part, &from_part, (const int64_t *)(const void *)p->state, 0);
}

grd_dims grd_shifts_back(grd_dims shifts, grd_dims dims, grd_dims sizes)
{
    int64_t *const back = grd_pool_array(shifts.n + 1, sizeof *back), numel;
    if (back == NULL || !grd_shape_numel(sizes, &numel))
        return GRD_NO_DIMS;
    for (int64_t i = 0; i < shifts.n; i++) {
        int64_t dim = 0, size = numel;
        if (i < dims.n && !grd_shape_wrap_dim(dims.data[i], sizes.n, &dim))
            return GRD_NO_DIMS;
        if (i < dims.n)
            size = sizes.n > 0 ? sizes.data[dim] : 1;
        back[i] = size > 0 ? -(shifts.data[i] % size) : 0;
    }
    return grd_dims_from(back, shifts.n);
}

grd_tensor *op_rot90(grd_tensor *self, int64_t k, grd_dims dims)
{
    int64_t a, b;
    if (dims.n != 2)
        return grd_fail(GRD_ERROR_RUNTIME, "expected total rotation dims == 2, but got dims = %lld", (long long)dims.n);
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "expected total dims >= 2, but got total dims = %d", self->ndim);
    if (!grd_wrap_dim(self, dims.data[0], &a) || !grd_wrap_dim(self, dims.data[1], &b))
        return grd_failed;
    if (a == b)
        return grd_fail(GRD_ERROR_RUNTIME, "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                        (long long)dims.data[0], (long long)dims.data[1]);
    const int64_t turns = (k % 4 + 4) % 4;
    if (turns == 0)
        return grd_clone(self, .memory_format = "contiguous");
    if (turns == 2)
        return grd_flip(self, grd_dims(a, b));
    return grd_new_detached(grd_transpose(grd_flip(self, grd_dims(turns == 1 ? b : a)), a, b));
}

int64_t grd_turns_back(int64_t k)
{
    return -(k % 4);
}
