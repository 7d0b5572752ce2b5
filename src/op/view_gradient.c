/* Computes _restride, the gradient of as_strided. _restride writes a tensor to memory with one geometry (sizes, strides and offset) and reads the
 * memory with another geometry.
 *
 * Invariant: elements that share an address are added, in row-major order. */
#include "gen/uses/op/view_gradient.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"

static bool check_strided(grd_dims size, grd_dims stride)
{
    return size.n == stride.n || grd_raise(GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
}

/* Finds the range of addresses, counted in elements, that the geometries a and b reach. A geometry is sizes, strides and an offset. The range is
 * [*ret_base, *ret_base + *ret_span). Raises RuntimeError if an address is negative or overflows. */
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

/* Adds the elements of `self` to the one-dimensional tensor `memory`, at the positions that `strides` and `offset` give. Several elements may have
 * the same position, so the positions are computed as an index tensor, and the elements are added in row-major order. */
static void add_overlapping(grd_tensor *memory, grd_tensor *self, grd_dims strides, int64_t offset)
{
    const grd_dims all = grd_dims(self->numel);
    grd_tensor *addresses = grd_arange_end(grd_int(memory->numel), .dtype = GRD_INT64, .device = grd_device_of(self));
    grd_tensor *used = grd_as_strided(addresses, grd_sizes(self), strides, .storage_offset = grd_int(offset));
    grd_index_add_(memory, 0, grd_reshape(used, all), grd_reshape(self, all));
}

grd_tensor *op_hidden_restride(grd_tensor *self, grd_dims from_strides, int64_t from_offset, grd_dims size, grd_dims stride, int64_t offset)
{
    int64_t base = 0, span = 0, numel;
    if (!check_strided(grd_sizes(self), from_strides) || !check_strided(size, stride) || !grd_shape_numel(size, &numel) ||
        !span_of_both(grd_sizes(self), from_strides, from_offset, size, stride, offset, &base, &span))
        return grd_failed;
    grd_tensor *memory = grd_zeros(grd_dims(span), .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
    if (grd_pending())
        return grd_failed;
    if (grd_shape_may_overlap(grd_sizes(self), from_strides.data))
        add_overlapping(memory, self, from_strides, from_offset - base);
    else
        grd_copy_(grd_as_strided(memory, grd_sizes(self), from_strides, .storage_offset = grd_int(from_offset - base)), self);
    return grd_clone(grd_as_strided(memory, size, stride, .storage_offset = grd_int(offset - base)), .memory_format = "contiguous");
}

int64_t grd_offset_given(grd_scalar storage_offset, int64_t offset)
{
    return storage_offset.kind == GRD_SCALAR_NONE ? offset : grd_scalar_int64(storage_offset);
}

bool grd_geometry_overlaps(grd_dims sizes, grd_dims strides)
{
    return grd_shape_may_overlap(sizes, strides.data);
}
