/* Reading at places that an index names: index_select and gather, with their gradients, which are written in scatter.c.
 *
 * Invariant: every index is checked before the result is made. */
#include <string.h>

#include "base/text.h"
#include "gradus/ops/index_add.h"
#include "gradus/ops/scatter_add.h"
#include "gradus/ops/zeros.h"
#include "gen/impl/index.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/indexed.h"

enum { LIST_CHARS = 512 }; /* of a formatted list in an error */

grd_tensor *op_index_select(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_index_vector(index) || !grd_check_index_dtype(index) ||
        !grd_check_same_device(grd_tensors(self, index)) || !grd_check_indexed_out(out, grd_tensors(self, index)))
        return grd_failed;
    if (self->ndim == 0 && index->numel != 1)
        return grd_fail(GRD_ERROR_RUNTIME, "Index to scalar can have only 1 value, got %lld value(s)", (long long)index->numel);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim > 0)
        sizes[dim] = index->numel;
    struct grd_indices indices;
    bool meta = grd_is_meta(self);
    if (!meta && (!grd_read_indices(index, &indices) || (!grd_indices_in_range(&indices, 0, grd_size_along(self, dim)) &&
                                                         !grd_raise(GRD_ERROR_INDEX, "index out of range in self"))))
        return grd_failed;
    grd_tensor *result = grd_out_prepare(out, grd_dims_from(sizes, self->ndim), self->dtype, grd_device_of(self));
    if (!grd_is_failed(result) && !meta) {
        struct grd_indexed x = {.kernel = grd_kernel_of_size(grd_kernels->index->gather, self)};
        grd_indexed_slices(&x, self, GRD_SOURCE, &indices, dim, index->numel);
        grd_indexed_operand(&x, GRD_RESULT, result);
        if (indices.unique == 1)
            x.strides[GRD_INDEX][dim] = 0;
        grd_indexed_run(&x);
    }
    return grd_out_finish(out, result);
}

grd_tensor *op_hidden_index_select_backward(grd_tensor *grad, grd_dims sizes, int64_t dim, grd_tensor *index)
{
    grd_tensor *zeros = grd_zeros(sizes, .dtype = grad->dtype, .device = grd_device_of(grad));
    return grd_index_add(zeros, dim, index, grad);
}

grd_tensor *op_gather(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    if (!grd_wrap_dim(self, dim, &dim) || (index->numel > 0 && !grd_check_index_dtype(index)) ||
        !grd_check_index_ndim(index, self, "input") || !grd_check_same_device(grd_tensors(self, index)) ||
        !grd_check_indexed_out(out, grd_tensors(self, index)))
        return grd_failed;
    for (int64_t i = 0; index->numel > 0 && i < index->ndim && i < self->ndim; i++) {
        if (i == dim || index->sizes[i] <= self->sizes[i])
            continue;
        return grd_fail(GRD_ERROR_RUNTIME,
                        "Size does not match at dimension %lld expected index %s to be no larger than self %s apart from dimension %lld",
                        (long long)i, grd_format_int64s(list, sizeof list, index->sizes, index->ndim),
                        grd_format_int64s(other, sizeof other, self->sizes, self->ndim), (long long)dim);
    }
    struct grd_indices indices;
    bool skip = grd_is_meta(self) || index->numel == 0;
    if (!skip &&
        (!grd_read_indices(index, &indices) || (!grd_indices_in_range(&indices, 0, grd_size_along(self, dim)) &&
                                                !grd_raise_out_of_bounds(GRD_ERROR_RUNTIME, &indices, dim, grd_size_along(self, dim)))))
        return grd_failed;
    grd_tensor *result = grd_out_prepare(out, grd_sizes(index), self->dtype, grd_device_of(self));
    if (!grd_is_failed(result) && !skip) {
        struct grd_indexed x = {.kernel = grd_kernel_of_size(grd_kernels->index->gather, self)};
        grd_indexed_elements(&x, self, GRD_SOURCE, index, &indices, dim);
        grd_indexed_operand(&x, GRD_RESULT, result);
        grd_indexed_run(&x);
    }
    return grd_out_finish(out, result);
}

grd_tensor *op_hidden_gather_backward(grd_tensor *grad, grd_dims sizes, int64_t dim, grd_tensor *index)
{
    grd_tensor *zeros = grd_zeros(sizes, .dtype = grad->dtype, .device = grd_device_of(grad));
    return grd_scatter_add(zeros, dim, index, grad);
}
