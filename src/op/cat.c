/* Concatenates tensors along a dimension: cat, stack and _chunk_cat.
 * Invariant: each operator checks all its arguments before it allocates. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/cat.h"
#include "core/geometry.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/bytes.h"
#include "kernel/map.h"
#include "op/copy.h"
#include "op/row_join.h"
#include "op/formula.h"
#include "op/plan.h"

/* ---- Joining ------------------------------------------------------------------------------------------------------------------- */

/* True if `t` is an empty vector. As in PyTorch, cat skips empty vectors whatever the rank of the other tensors, because programs often start with
 * an empty tensor and append to it. */
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

/* Writes the sizes of the result of cat along dimension `dim` to ret_sizes. `first` is the first tensor that is not skipped. Raises RuntimeError if
 * the sizes of the tensors do not fit, and NotImplementedError if elements cannot be converted to `dtype`. */
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
    bool channels_last = true;
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

/* Copies tensors[first] and some of the tensors that follow it into the result, where they begin at index `start` along dimension `dim`. A tensor
 * that is not contiguous is copied by a call of its own. Returns the number of tensors that it has copied, or skipped because they are empty. It is
 * at least 1. */
static int64_t place(grd_tensor *result, grd_tensors tensors, int64_t first, int64_t dim, int64_t start)
{
    /* inner: number of bytes from one index of `dim` to the next. If there is only one index, it is the number of bytes of a row, because the stride
     * of a dimension of size 1 may be any number. outer: number of rows, where a row is all bytes of `result` with the same indices in the dimensions
     * before `dim`. */
    const int64_t outer = grd_sizes_product(result->sizes, dim);
    const int64_t inner = result->sizes[dim] == 1 ? grd_sizes_product(result->sizes + dim + 1, result->ndim - dim - 1) * result->itemsize
                                                  : grd_byte_stride(result, dim);
    /* Copies up to GRD_JOINED_PARTS tensors in one pass over the rows. If there is only one row, one tensor at a time is copied, by all threads. */
    const int64_t most = outer == 1 ? 1 : GRD_JOINED_PARTS;
    struct grd_row_join joined;
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
        if (!grd_rows_are_contiguous(result, t))
            break;
        const int64_t bytes = t->sizes[dim] * inner;
        rows->part[rows->parts].from = t->data;
        rows->part[rows->parts].stride = rows->part[rows->parts].bytes = bytes;
        joined.are_short &= bytes <= GRD_SHORT_PART;
        rows->parts++;
    }
    if (rows->parts > 0) {
        grd_write_rows(&joined, outer);
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

/* Implements _chunk_cat. Reshapes each tensor to three dimensions: the product of all sizes before dim, dim itself, and the product of all sizes
 * behind it. Pads the middle dimension with zeros to a multiple of num_chunks and splits it into num_chunks chunks. Concatenates the chunks of all
 * tensors along the last dimension. */
grd_tensor *op_hidden_chunk_cat(grd_tensors tensors, int64_t dim, int64_t num_chunks)
{
    grd_tensor **made = grd_pool_array(tensors.n, sizeof *made);
    int64_t sizes[GRD_MAX_DIMS + 2];
    if (made == NULL || !check_chunks(tensors, dim, num_chunks, &dim))
        return grd_failed;
    const int64_t before = grd_sizes_product(tensors.data[0]->sizes, dim);
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        const int64_t along = t->sizes[dim], behind = grd_sizes_product(t->sizes + dim + 1, t->ndim - dim - 1),
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
