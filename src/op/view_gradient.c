/* Gradients of views: the hidden operators that put a gradient back where a view took it from, among zeros.
 *
 * Lives here too: as_strided, any geometry over the storage; its gradient goes from one geometry to another through the memory both
 * lie in (_restride).
 * Invariant: elements that share memory are added up, in row-major order. */
#include "gradus/ops/add.h"
#include "gradus/ops/div.h"
#include "gradus/ops/index_add.h"
#include "gradus/ops/ones.h"
#include "gen/impl/creation.h"
#include "gen/impl/view.h"
#include "gen/ops/_restride.h"
#include "gradus/library.h"
#include "op/common.h"
#include "op/copy.h"

/* Zeros like `grad` but of other sizes. */
static grd_tensor *zeros_of(grd_dims sizes, const grd_tensor *grad)
{
    return grd_new_zeros(sizes, grad->dtype, grd_device_of(grad));
}

/* Writes grad to `view`, a view of `zeros`, and returns these. */
static grd_tensor *written(grd_tensor *zeros, grd_tensor *view, const grd_tensor *grad)
{
    if (!grd_pending() && grd_check_view_gradient(view, grad))
        grd_copy_strided(view, grad);
    return grd_pending() ? grd_failed : zeros;
}

grd_tensor *op_hidden_select_backward(grd_tensor *grad, grd_dims sizes, int64_t dim, int64_t index)
{
    grd_tensor *zeros = zeros_of(sizes, grad);
    return written(zeros, grd_pending() ? zeros : op_select(zeros, dim, index), grad);
}

grd_tensor *op_hidden_slice_backward(grd_tensor *grad, grd_dims sizes, int64_t dim, grd_scalar start, grd_scalar end, int64_t step)
{
    grd_tensor *zeros = zeros_of(sizes, grad);
    return written(zeros, grd_pending() ? zeros : op_slice(zeros, dim, start, end, step), grad);
}

grd_tensor *op_hidden_diagonal_backward(grd_tensor *grad, grd_dims sizes, int64_t offset, int64_t dim1, int64_t dim2)
{
    grd_tensor *zeros = zeros_of(sizes, grad);
    return written(zeros, grd_pending() ? zeros : op_diagonal(zeros, offset, dim1, dim2), grad);
}

/* One window position at a time: within it no two elements share memory. */
grd_tensor *op_hidden_unfold_backward(grd_tensor *grad, grd_dims sizes, int64_t dimension, int64_t size, int64_t step)
{
    grd_tensor *zeros = zeros_of(sizes, grad);
    grd_tensor *windows = grd_pending() ? zeros : op_unfold(zeros, dimension, size, step);
    if (grd_pending() || !grd_check_view_gradient(windows, grad))
        return grd_failed;
    for (int64_t i = 0; i < size && !grd_pending(); i++) {
        grd_scope round = grd_scope_open();
        grd_add_(op_select(windows, -1, i), op_select(grad, -1, i));
        grd_scope_close(round);
    }
    return grd_pending() ? grd_failed : zeros;
}

/* ---- as_strided ---------------------------------------------------------------------------------------------------------- */

static bool check_strided(grd_dims size, grd_dims stride)
{
    return size.n == stride.n || grd_raise(GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
}

grd_tensor *op_as_strided(grd_tensor *self, grd_dims size, grd_dims stride, grd_scalar storage_offset)
{
    int64_t offset = storage_offset.kind == GRD_SCALAR_NONE ? self->offset : grd_scalar_int64(storage_offset);
    if (!check_strided(size, stride))
        return grd_failed;
    if (offset < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Tensor: invalid storage offset %lld", (long long)offset);
    return grd_new_view(self, size, stride, offset);
}

/* Addresses of both geometries lie in [0, span) once `base` is taken off. */
static bool span_of_both(grd_dims a, grd_dims a_strides, int64_t a_offset, grd_dims b, grd_dims b_strides, int64_t b_offset,
                         int64_t *ret_base, int64_t *ret_span)
{
    int64_t a_low = 0, a_high = 0, b_low = 0, b_high = 0;
    bool fits = grd_shape_extent(a, a_strides.data, &a_low, &a_high) && grd_shape_extent(b, b_strides.data, &b_low, &b_high) &&
                !__builtin_add_overflow(a_low, a_offset, &a_low) && !__builtin_add_overflow(a_high, a_offset, &a_high) &&
                !__builtin_add_overflow(b_low, b_offset, &b_low) && !__builtin_add_overflow(b_high, b_offset, &b_high);
    int64_t low = a_low < b_low ? a_low : b_low, high = a_high > b_high ? a_high : b_high;
    if (!fits || low < 0 || high == INT64_MAX)
        return grd_raise(GRD_ERROR_RUNTIME, "the geometries reach outside any storage");
    *ret_base = low;
    *ret_span = high - low + 1;
    return true;
}

/* Adds `self` into `memory` where two of its elements may share an address: through a list of addresses, in row-major order. */
static void add_overlapping(grd_tensor *memory, grd_tensor *self, grd_dims strides, int64_t offset)
{
    grd_tensor *addresses = op_arange(grd_int(0), grd_int(memory->numel), grd_int(1), GRD_INT64, grd_device_of(self), false);
    grd_tensor *used = grd_new_view(addresses, grd_sizes(self), strides, offset), *values = grd_contiguous_as(self, GRD_DTYPE_NONE);
    if (!grd_pending())
        used = grd_clone_contiguous(used, GRD_INT64);
    if (grd_pending())
        return;
    grd_dims flat = grd_dims(self->numel);
    grd_index_add_(memory, 0, grd_new_view(used, flat, grd_dims(1), 0), grd_new_view(values, flat, grd_dims(1), values->offset));
}

grd_tensor *op_hidden_restride(grd_tensor *self, grd_dims from_strides, int64_t from_offset, grd_dims size, grd_dims stride, int64_t offset)
{
    int64_t base = 0, span = 0, numel;
    if (!check_strided(grd_sizes(self), from_strides) || !check_strided(size, stride) || !grd_shape_numel(size, &numel) ||
        !span_of_both(grd_sizes(self), from_strides, from_offset, size, stride, offset, &base, &span))
        return grd_failed;
    grd_tensor *memory = zeros_of(grd_dims(span), self);
    grd_tensor *result = grd_new(size, self->dtype, grd_device_of(self));
    if (grd_pending())
        return grd_failed;
    if (grd_is_meta(self) || self->numel == 0 || numel == 0) {
        grd_zero_elements(result);
        return result;
    }
    grd_tensor *given = grd_new_view(memory, grd_sizes(self), from_strides, from_offset - base);
    grd_tensor *wanted = grd_new_view(memory, size, stride, offset - base);
    if (grd_pending())
        return grd_failed;
    if (grd_shape_may_overlap(grd_sizes(self), from_strides.data))
        add_overlapping(memory, self, from_strides, from_offset - base);
    else
        grd_copy_strided(given, self);
    if (!grd_pending())
        grd_copy_strided(result, wanted);
    return grd_pending() ? grd_failed : result;
}

/* Where elements of the input share memory, a change of that memory is a change of all of them: each gets the mean. */
grd_tensor *op_hidden_as_strided_backward(grd_tensor *grad, grd_dims sizes, grd_dims strides, int64_t offset, grd_dims view_sizes,
                                          grd_dims view_strides, grd_scalar view_offset)
{
    (void)view_sizes;
    int64_t from = view_offset.kind == GRD_SCALAR_NONE ? offset : grd_scalar_int64(view_offset);
    grd_tensor *result = grd_hidden_restride(grad, view_strides, from, sizes, strides, offset);
    if (!check_strided(sizes, strides) || !grd_shape_may_overlap(sizes, strides.data))
        return result;
    grd_tensor *ones = grd_ones(sizes, .dtype = grad->dtype, .device = grd_device_of(grad));
    return grd_div(result, grd_hidden_restride(ones, strides, offset, sizes, strides, offset));
}
