/* Tensors indexed by numbers of classes: rows of a table (embedding) and rows of the identity (one_hot).
 *
 * Invariants: every number is checked before anything is written; gradients of a row are added in the order of the indices. */
#include <string.h>

#include "base/text.h"
#include "gradus/ops/div.h"
#include "gradus/ops/embedding.h"
#include "gradus/ops/eq.h"
#include "gradus/ops/index_add.h"
#include "gradus/ops/index_select.h"
#include "gradus/ops/masked_fill.h"
#include "gradus/ops/ones.h"
#include "gradus/ops/reshape.h"
#include "gradus/ops/unsqueeze.h"
#include "gradus/ops/zeros.h"
#include "gen/impl/index.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/copy.h"
#include "op/indexed.h"

enum { LIST_CHARS = 512 }; /* of a formatted list in an error */

/* ---- embedding ----------------------------------------------------------------------------------------------------------- */

static bool check_embedding(grd_dims weight, const grd_tensor *indices)
{
    if (weight.n != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "'weight' must be 2-D");
    if (indices->ndim >= GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %d, the limit is %d", indices->ndim + 1, GRD_MAX_DIMS);
    return grd_is_index_dtype(indices) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s",
                     grd_dtype_name(indices->dtype));
}

/* Indices as a contiguous list of int64, all in [0, rows). */
static bool read_rows(grd_tensor *index, int64_t rows, struct grd_indices *ret)
{
    grd_tensor *plain = grd_contiguous_as(index, GRD_INT64);
    if (grd_pending())
        return false;
    *ret = (struct grd_indices){.data = (const int64_t *)(const void *)plain->data, .unique = plain->numel};
    return grd_indices_in_range(ret, 0, rows) || grd_raise(GRD_ERROR_INDEX, "index out of range in self");
}

grd_tensor *op_embedding(grd_tensor *weight, grd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq)
{
    (void)padding_idx;
    (void)scale_grad_by_freq;
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_embedding(grd_sizes(weight), indices) || !grd_check_same_device(grd_tensors(weight, indices)))
        return grd_failed;
    memcpy(sizes, indices->sizes, indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = weight->sizes[1];
    struct grd_indices rows;
    if (!grd_is_meta(weight) && !read_rows(indices, weight->sizes[0], &rows))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims_from(sizes, (int64_t)indices->ndim + 1), weight->dtype, grd_device_of(weight));
    if (!grd_is_failed(result) && !grd_is_meta(weight)) {
        struct grd_indexed x = {.kernel = grd_kernel_of_size(grd_kernels->index->gather, weight), .data[GRD_RESULT] = result->data};
        grd_indexed_slices(&x, weight, GRD_SOURCE, &rows, 0, rows.unique);
        x.strides[GRD_RESULT][0] = weight->sizes[1] * weight->itemsize;
        x.strides[GRD_RESULT][1] = weight->itemsize;
        grd_indexed_run(&x);
    }
    return result;
}

/* Adds row i of grad to row rows[i] of sums. */
static void add_rows(grd_tensor *sums, grd_tensor *grad, const struct grd_indices *rows, grd_loop_kernel *kernel)
{
    grd_tensor *from = grd_contiguous_as(grad, sums->dtype);
    if (grd_pending())
        return;
    struct grd_indexed x = {.kernel = kernel, .in_order = true};
    grd_indexed_slices(&x, sums, GRD_RESULT, rows, 0, rows->unique);
    x.data[GRD_SOURCE] = from->data;
    x.strides[GRD_SOURCE][0] = sums->sizes[1] * sums->itemsize;
    x.strides[GRD_SOURCE][1] = sums->itemsize;
    grd_indexed_run(&x);
}

/* Divides every row by how often it is named. */
static void divide_rows(grd_tensor *t, const struct grd_indices *rows)
{
    grd_tensor *counts = grd_new_zeros(grd_dims(t->sizes[0], 1), GRD_INT64, grd_device_of(t));
    if (grd_is_failed(counts))
        return;
    int64_t *count = (int64_t *)(void *)counts->data;
    for (int64_t i = 0; i < rows->unique; i++)
        count[rows->data[i]]++;
    for (int64_t i = 0; i < counts->numel; i++)
        count[i] += count[i] == 0;
    grd_tensor *divisor = grd_clone_contiguous(counts, t->dtype);
    if (!grd_pending())
        grd_div_(t, divisor);
}

grd_tensor *op_hidden_embedding_backward(grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx,
                                         bool scale_grad_by_freq)
{
    char list[LIST_CHARS];
    if (!check_embedding(sizes, indices) || !grd_check_same_device(grd_tensors(grad, indices)))
        return grd_failed;
    if (grad->numel != indices->numel * sizes.data[1] || grad->ndim != indices->ndim + 1)
        return grd_fail(GRD_ERROR_RUNTIME, "gradient of sizes %s does not belong to the indices",
                        grd_format_int64s(list, sizeof list, grad->sizes, grad->ndim));
    grd_dtype dtype = grd_sum_dtype(grad->dtype);
    grd_loop_kernel *kernel = grd_kernels->index->add[dtype];
    if (kernel == NULL)
        return grd_fail_no_kernel("embedding_backward", grad->dtype);
    grd_tensor *sums = grd_new_zeros(sizes, dtype, grd_device_of(grad));
    struct grd_indices rows;
    if (!grd_pending() && !grd_is_meta(grad) && read_rows(indices, sizes.data[0], &rows)) {
        add_rows(sums, grad, &rows, kernel);
        if (scale_grad_by_freq && !grd_pending())
            divide_rows(sums, &rows);
        if (padding_idx >= 0 && padding_idx < sizes.data[0])
            memset(sums->data + padding_idx * sizes.data[1] * sums->itemsize, 0, (size_t)(sizes.data[1] * sums->itemsize));
    }
    if (grd_pending())
        return grd_failed;
    return dtype == grad->dtype ? sums : grd_clone_contiguous(sums, grad->dtype);
}

grd_tensor *op_hidden_embedding_double_backward(grd_tensor *grad, grd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq)
{
    grd_tensor *result = grd_embedding(grad, indices);
    if (padding_idx >= 0) {
        grd_tensor *padding = grd_eq(indices, grd_number(grd_int(padding_idx)));
        result = grd_masked_fill(result, grd_unsqueeze(padding, -1), grd_int(0));
    }
    if (!scale_grad_by_freq || grd_pending())
        return result;
    grd_tensor *flat = grd_reshape(indices, grd_dims(-1));
    grd_tensor *zeros = grd_zeros(grd_dims(grad->sizes[0]), .dtype = grad->dtype, .device = grd_device_of(grad));
    grd_tensor *ones = grd_ones(grd_dims(indices->numel), .dtype = grad->dtype, .device = grd_device_of(grad));
    grd_tensor *counts = grd_index_select(grd_index_add(zeros, 0, flat, ones), 0, flat);
    return grd_div(result, grd_unsqueeze(grd_reshape(counts, grd_sizes(indices)), -1));
}

/* ---- one_hot ------------------------------------------------------------------------------------------------------------- */

/* The smallest and the largest of n > 0 numbers. */
static void extremes(const int64_t *values, int64_t n, int64_t *ret_low, int64_t *ret_high)
{
    int64_t low = values[0], high = values[0];
    for (int64_t i = 1; i < n; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    *ret_low = low;
    *ret_high = high;
}

grd_tensor *op_one_hot(grd_tensor *self, int64_t num_classes)
{
    int64_t sizes[GRD_MAX_DIMS], low = 0, high = 0;
    if (self->dtype != GRD_INT64)
        return grd_fail(GRD_ERROR_RUNTIME, "one_hot is only applicable to index tensor of type LongTensor.");
    if (self->ndim >= GRD_MAX_DIMS)
        return grd_fail(GRD_ERROR_RUNTIME, "too many dimensions: %d, the limit is %d", self->ndim + 1, GRD_MAX_DIMS);
    if (self->numel == 0 && num_classes <= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Can not infer total number of classes from empty tensor.");
    if (num_classes < -1)
        return grd_fail(GRD_ERROR_RUNTIME, "Class values must be smaller than num_classes.");
    if (num_classes < 0 && !grd_check_has_data(self))
        return grd_failed;
    grd_tensor *plain = grd_contiguous_as(self, GRD_DTYPE_NONE);
    bool reads = !grd_pending() && self->numel > 0 && !grd_is_meta(self);
    if (reads)
        extremes((const int64_t *)(const void *)plain->data, plain->numel, &low, &high);
    if (low < 0)
        grd_raise(GRD_ERROR_RUNTIME, "Class values must be non-negative.");
    else if (reads && num_classes >= 0 && high >= num_classes)
        grd_raise(GRD_ERROR_RUNTIME, "Class values must be smaller than num_classes.");
    if (grd_pending())
        return grd_failed;
    int64_t classes = num_classes >= 0 ? num_classes : high == INT64_MAX ? high : high + 1;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[self->ndim] = classes;
    grd_tensor *result = grd_new_zeros(grd_dims_from(sizes, (int64_t)self->ndim + 1), GRD_INT64, grd_device_of(self));
    if (!grd_is_failed(result) && reads) {
        const int64_t *from = (const int64_t *)(const void *)plain->data;
        int64_t *to = (int64_t *)(void *)result->data;
        for (int64_t i = 0; i < plain->numel; i++)
            to[i * classes + from[i]] = 1;
    }
    return result;
}
