/* Tensors made of the elements of others: joined (cat, stack), moved (flip, roll), repeated (repeat, tile).
 *
 * The elements themselves are moved by copy.h. Invariant: an operator has checked everything before it takes memory. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/join.h"
#include "gradus/library.h"
#include "kernel/bytes.h"
#include "kernel/map.h"
#include "op/common.h"
#include "op/copy.h"
#include "op/formula.h"
#include "op/plan.h"

/* ---- Joining ------------------------------------------------------------------------------------------------------------------- */

/* 1-d tensors without elements take no part, whatever the others' dimensions: programs start a cat with one. */
static bool is_left_out(const grd_tensor *t)
{
    return t->ndim == 1 && t->sizes[0] == 0;
}

static bool check_cat_sizes(const grd_tensor *first, const grd_tensor *t, int64_t dim, int64_t position)
{
    if (t->ndim != first->ndim)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensors must have same number of dimensions: got %d and %d", first->ndim, t->ndim);
    for (int64_t i = 0; i < t->ndim; i++)
        if (i != dim && t->sizes[i] != first->sizes[i])
            return grd_raise(GRD_ERROR_RUNTIME,
                             "Sizes of tensors must match except in dimension %lld. Expected size %lld but got size %lld for tensor number "
                             "%lld in the list.",
                             (long long)dim, (long long)first->sizes[i], (long long)t->sizes[i], (long long)position);
    return true;
}

/* The sizes of what is joined; false and an error where the tensors do not fit together. `first` takes part. */
static bool joined_sizes(grd_tensors tensors, const grd_tensor *first, int64_t dim, grd_dtype dtype, int64_t *ret_sizes)
{
    memcpy(ret_sizes, first->sizes, first->ndim * sizeof *ret_sizes);
    ret_sizes[dim] = 0;
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (is_left_out(t))
            continue;
        if (!check_cat_sizes(first, t, dim, i) || !grd_check_convertible(t->dtype, dtype))
            return false;
        if (__builtin_add_overflow(ret_sizes[dim], t->sizes[dim], &ret_sizes[dim]))
            return grd_raise(GRD_ERROR_RUNTIME, "the sizes along dimension %lld overflow", (long long)dim);
    }
    return true;
}

bool plan_cat(struct grd_plan *p, grd_tensors tensors, int64_t dim)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (tensors.n == 0)
        return grd_raise(GRD_ERROR_VALUE, "torch.cat(): expected a non-empty list of Tensors");
    const grd_tensor *first = tensors.data[0];
    grd_dtype dtype = first->dtype;
    bool channels_last = true; /* as all tensors are */
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        channels_last = channels_last && t->ndim == tensors.data[0]->ndim && grd_shape_suggests_channels_last(grd_sizes(t), t->strides);
        if (t->ndim == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)i);
        dtype = grd_promote(dtype, t->dtype);
        if (is_left_out(first))
            first = t;
    }
    p->device = grd_device_of(first);
    return grd_check_same_device(tensors) && grd_wrap_dim(first, dim, &dim) && joined_sizes(tensors, first, dim, dtype, sizes) &&
           grd_plan_in_order(p, grd_dims_from(sizes, first->ndim), channels_last, dtype);
}

struct joined_rows {
    struct grd_joined_rows rows;
    int64_t itemsize;
    bool are_short; /* all parts */
};

/* Parts of so few bytes are written column by column, for so many rows that those stay in the cache. */
enum { SHORT_PART = 64, ROWS_BYTES = 16 * 1024 };

static void join_columns(const struct joined_rows *joined, int64_t begin, int64_t end)
{
    const struct grd_joined_rows *rows = &joined->rows;
    const int64_t block = ROWS_BYTES / rows->to_stride > 1 ? ROWS_BYTES / rows->to_stride : 1, size = joined->itemsize;
    for (int64_t i = begin; i < end; i += block) {
        const int64_t lines = end - i < block ? end - i : block;
        char *to = rows->to + i * rows->to_stride;
        for (int64_t k = 0; k < rows->parts; k++) {
            const int64_t stride = rows->part[k].stride, bytes = rows->part[k].bytes;
            grd_copy_lines(lines, bytes / size, size, to, (const int64_t[]){size, rows->to_stride}, rows->part[k].from + i * stride,
                           (const int64_t[]){size, stride});
            to += bytes;
        }
    }
}

static void join_some(int64_t begin, int64_t end, void *context)
{
    const struct joined_rows *joined = context;
    if (joined->are_short)
        join_columns(joined, begin, end);
    else
        grd_kernels->bytes->join_rows(&joined->rows, begin, end);
}

/* Writes n rows, on all threads. */
static void write_rows(struct joined_rows *joined, int64_t n)
{
    const struct grd_joined_rows *rows = &joined->rows;
    int64_t bytes = 0;
    for (int64_t k = 0; k < rows->parts; k++)
        bytes += rows->part[k].bytes;
    if (n == 1 && rows->parts == 1)
        grd_copy_block(rows->to, rows->part[0].from, bytes);
    else if (bytes > 0)
        grd_parallel_for(0, n, bytes < GRD_COPY_GRAIN ? GRD_COPY_GRAIN / bytes : 1, join_some, joined);
}

/* True if rows along a dimension are bytes that lie in one run in both tensors. */
static bool has_rows(const grd_tensor *result, const grd_tensor *t)
{
    return t->dtype == result->dtype && (t->flags & result->flags & GRD_FLAG_CONTIGUOUS) != 0;
}

/* Writes the tensors beginning with number `first` to their place in the result, `start` elements in along dim; returns how many tensors those are. */
static int64_t place(grd_tensor *result, grd_tensors tensors, int64_t first, int64_t dim, int64_t start)
{
    const int64_t inner = grd_byte_stride(result, dim), outer = grd_sizes_product(result->sizes, dim); /* bytes of one index of dim */
    const int64_t most = outer == 1 ? 1 : GRD_JOINED_PARTS; /* a single row is copied by all threads */
    struct joined_rows joined;
    struct grd_joined_rows *const rows = &joined.rows;
    rows->to = result->data + start * inner;
    rows->to_stride = result->sizes[dim] * inner;
    rows->parts = 0;
    joined.itemsize = result->itemsize;
    joined.are_short = true;
    int64_t next = first;
    for (; next < tensors.n && rows->parts < most; next++) {
        const grd_tensor *t = tensors.data[next];
        if (t->numel == 0)
            continue;
        if (!has_rows(result, t))
            break;
        const int64_t bytes = t->sizes[dim] * inner;
        rows->part[rows->parts].from = t->data;
        rows->part[rows->parts].stride = rows->part[rows->parts].bytes = bytes;
        joined.are_short &= bytes <= SHORT_PART;
        rows->parts++;
    }
    if (rows->parts > 0) {
        write_rows(&joined, outer);
    } else if (next < tensors.n) {
        const grd_tensor *t = tensors.data[next++];
        grd_tensor part = grd_part_of(result, rows->to, t->sizes, result->strides);
        grd_copy_strided(&part, t);
    }
    return next - first;
}

void run_cat(const struct grd_plan *p, grd_tensors tensors, int64_t dim)
{
    grd_tensor *result = p->results[0];
    const int64_t along = dim < 0 ? dim + result->ndim : dim;
    for (int64_t i = 0, start = 0, n; i < tensors.n; i += n) {
        n = place(result, tensors, i, along, start);
        for (int64_t k = i; k < i + n; k++)
            if (!is_left_out(tensors.data[k]))
                start += tensors.data[k]->sizes[along];
    }
}

grd_tensors op_hidden_cat_backward(grd_tensor *grad, grd_dims sizes, int64_t dim)
{
    grd_tensor **list = grd_pool_array(sizes.n, sizeof *list);
    for (int64_t i = 0, start = 0; list != NULL && i < sizes.n && !grd_pending(); i++) {
        const int64_t size = sizes.data[i];
        list[i] = size < 0 ? grd_zeros(grd_dims(0), .dtype = (grd_dtype)grad->dtype, .device = grd_device_of(grad))
                           : grd_clone(grd_narrow(grad, dim, start, size), .memory_format = "contiguous");
        start += size < 0 ? 0 : size;
    }
    return grd_list_made(list, sizes.n);
}

grd_tensor *op_stack(grd_tensors tensors, int64_t dim)
{
    if (tensors.n == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "stack expects a non-empty TensorList");
    const grd_tensor *first = tensors.data[0];
    for (int64_t i = 1; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (grd_same_sizes(t, grd_sizes(first)))
            continue;
        return grd_fail(GRD_ERROR_RUNTIME, "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld",
                        grd_list_text(grd_sizes(first)), grd_list_text(grd_sizes(t)), (long long)i);
    }
    if (!grd_shape_wrap_dim(dim, (int64_t)first->ndim + 1, &dim))
        return grd_failed;
    grd_tensor **raised = grd_pool_array(tensors.n, sizeof *raised);
    if (raised == NULL)
        return grd_failed;
    for (int64_t i = 0; i < tensors.n; i++)
        raised[i] = grd_unsqueeze(tensors.data[i], dim);
    const grd_tensors list_raised = {tensors.n, raised};
    return grd_cat(list_raised, .dim = dim);
}

/* ---- Moved and repeated elements --------------------------------------------------------------------------------------------------- */

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

/* The index that comes first once `size` elements, at least one, are moved by `shift` places. */
static int64_t first_rolled(int64_t size, int64_t shift)
{
    const int64_t moved = shift % size;
    return moved > 0 ? size - moved : -moved;
}

/* Where each dimension begins after all shifts are done, and the strides of the result: as PyTorch rolls, one dimension after the other, each by a cat of
 * two slices. starts is 0 before. */
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

/* Copies from dimension `dim` on: the elements of one that is rolled in two parts, which change places. The tensors' sizes are one array. */
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

/* True when the result was written row by row: only one dimension is rolled. */
static bool roll_rows(grd_tensor *result, const grd_tensor *from, const int64_t *starts)
{
    int64_t dim = -1;
    for (int64_t i = 0; i < from->ndim; i++) {
        if (starts[i] != 0 && dim >= 0)
            return false;
        dim = starts[i] != 0 ? i : dim;
    }
    const int64_t outer = dim >= 0 ? grd_sizes_product(from->sizes, dim) : 1;
    if (outer == 1 || from->numel == 0 || !has_rows(result, from))
        return false;
    const int64_t row = from->sizes[dim] * grd_byte_stride(from, dim), start = starts[dim] * grd_byte_stride(from, dim);
    struct joined_rows joined = {.rows = {.to = result->data,
                                          .to_stride = row,
                                          .parts = 2,
                                          .part = {{from->data + start, row, row - start}, {from->data, row, start}}},
                                 .itemsize = result->itemsize,
                                 .are_short = row <= SHORT_PART};
    write_rows(&joined, outer);
    return true;
}

void run_roll(const struct grd_plan *p, grd_tensor *self, grd_dims shifts, grd_dims dims)
{
    grd_tensor *result = p->results[0], *from = p->in[0];
    if (dims.n == 0) { /* in row-major order, as one dimension */
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

/* One expanded view with a dimension of repeats before each of self's; its copy in row-major order is the result. */
grd_tensor *op_repeat(grd_tensor *self, grd_dims repeats)
{
    int64_t raised[2 * GRD_MAX_DIMS], expanded[2 * GRD_MAX_DIMS], result[GRD_MAX_DIMS], n = 0;
    if (repeats.n < self->ndim)
        return grd_fail(GRD_ERROR_RUNTIME, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    if (!grd_check_ndim(repeats.n))
        return grd_failed;
    int64_t numel;
    for (int64_t i = 0; i < repeats.n; i++) {
        int64_t dim = i - (repeats.n - self->ndim), size = dim >= 0 ? self->sizes[dim] : 1, times = repeats.data[i];
        if (__builtin_mul_overflow(size, times, &result[i]))
            result[i] = times < 0 ? -1 : INT64_MAX;
        if (times < 0 && result[i] >= 0)
            result[i] = -1;
        if (times != 1) {
            raised[n] = 1;
            expanded[n++] = times;
        }
        if (dim >= 0) {
            raised[n] = size;
            expanded[n++] = size;
        }
    }
    if (!grd_shape_numel(grd_dims_from(result, repeats.n), &numel))
        return grd_failed;
    grd_tensor *view = grd_expand(grd_reshape(self, grd_dims_from(raised, n)), grd_dims_from(expanded, n));
    return grd_unsafe_view(grd_clone(view, .memory_format = "contiguous"), grd_dims_from(result, repeats.n));
}

grd_dims grd_repeat_sizes(grd_dims repeats, grd_dims sizes, bool once)
{
    int64_t *const split = grd_pool_array(2 * repeats.n + 1, sizeof *split), n = 0;
    for (int64_t i = 0; split != NULL && i < repeats.n; i++) {
        const int64_t dim = i - (repeats.n - sizes.n);
        if (repeats.data[i] != 1)
            split[n++] = once ? 1 : repeats.data[i];
        if (dim >= 0)
            split[n++] = sizes.data[dim];
    }
    return grd_dims_from(split, n);
}

grd_tensor *op_tile(grd_tensor *self, grd_dims dims)
{
    int64_t repeats[GRD_MAX_DIMS];
    int64_t missing = (int64_t)self->ndim - dims.n;
    if (missing <= 0)
        return grd_repeat(self, dims);
    for (int64_t i = 0; i < self->ndim; i++)
        repeats[i] = i < missing ? 1 : dims.data[i - missing];
    return grd_repeat(self, grd_dims_from(repeats, self->ndim));
}

/* ---- _chunk_cat ------------------------------------------------------------------------------------------------------------------------ */

static bool check_chunks(grd_tensors tensors, int64_t dim, int64_t num_chunks, int64_t *ret_dim)
{
    if (tensors.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "_chunk_cat expects a non-empty input tensor list");
    const grd_tensor *first = tensors.data[0];
    if (!grd_wrap_dim(first, dim, ret_dim))
        return false;
    if (num_chunks < 1)
        return grd_raise(GRD_ERROR_RUNTIME, "_chunk_cat expects positive num_chunks");
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (t->dtype != first->dtype)
            return grd_raise(GRD_ERROR_RUNTIME, "_chunk_cat expects all input tensors with the same dtype");
        if (t->ndim <= *ret_dim || memcmp(t->sizes, first->sizes, (size_t)*ret_dim * sizeof *t->sizes) != 0)
            return grd_raise(GRD_ERROR_RUNTIME, "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
    }
    return true;
}

static int64_t product(const int64_t *sizes, int64_t n)
{
    int64_t found = 1;
    for (int64_t i = 0; i < n; i++)
        found *= sizes[i];
    return found;
}

/* Each tensor is [before, along dim, behind], and in chunks [before, num_chunks, elements of a chunk]. */
grd_tensor *op_hidden_chunk_cat(grd_tensors tensors, int64_t dim, int64_t num_chunks)
{
    grd_tensor **made = grd_pool_array(tensors.n, sizeof *made);
    int64_t sizes[GRD_MAX_DIMS + 2];
    if (made == NULL || !check_chunks(tensors, dim, num_chunks, &dim))
        return grd_failed;
    const int64_t before = product(tensors.data[0]->sizes, dim);
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        const int64_t along = t->sizes[dim], behind = product(t->sizes + dim + 1, t->ndim - dim - 1),
                      each = along / num_chunks + (along % num_chunks != 0);
        grd_tensor *rows = grd_reshape(tensors.data[i], grd_dims(before, along, behind));
        rows = grd_constant_pad_nd(rows, grd_dims(0, 0, 0, each * num_chunks - along));
        made[i] = grd_reshape(rows, grd_dims(before, num_chunks, each * behind));
    }
    grd_tensor *chunks = grd_cat(grd_tensors_from(made, tensors.n), .dim = 2);
    if (grd_pending())
        return grd_failed;
    memcpy(sizes, tensors.data[0]->sizes, (size_t)dim * sizeof *sizes);
    sizes[dim] = num_chunks;
    sizes[dim + 1] = chunks->sizes[2];
    return grd_reshape(chunks, grd_dims_from(sizes, dim + 2));
}
