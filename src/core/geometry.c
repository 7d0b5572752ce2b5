/* Raises the errors about sizes and strides that geometry.h declares. */
#include "core/geometry.h"

#include "base/text.h"
#include "core/shape.h"
#include "core/tensor.h"

enum { LIST_CHARS = 512 };

bool grd_raise_size_overflow(grd_dims sizes, const int64_t *strides)
{
    char list[LIST_CHARS], stride_list[LIST_CHARS];
    grd_format_int64s(list, sizeof list, sizes.data, sizes.n);
    if (strides == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Storage size calculation overflowed with sizes=%s", list);
    return grd_raise(GRD_ERROR_RUNTIME, "Storage size calculation overflowed with sizes=%s and strides=%s", list,
                     grd_format_int64s(stride_list, sizeof stride_list, strides, sizes.n));
}

bool grd_check_within_storage(const grd_tensor *base, uint32_t itemsize, grd_dims sizes, grd_dims strides, int64_t offset)
{
    int64_t numel;
    char size_list[LIST_CHARS], stride_list[LIST_CHARS];
    if (strides.n != sizes.n)
        return grd_raise(GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
    if (!grd_shape_numel(sizes, &numel))
        return false;
    if (offset < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor: invalid storage offset %lld", (long long)offset);
    if (numel == 0)
        return true;
    int64_t lowest, highest, end;
    if (!grd_shape_extent(sizes, strides.data, &lowest, &highest) || __builtin_add_overflow(highest, offset, &highest) ||
        __builtin_add_overflow(highest, 1, &end) || __builtin_mul_overflow(end, itemsize, &end))
        return grd_raise_size_overflow(sizes, strides.data);
    if (GRD_LIKELY(lowest + offset >= 0 && end <= base->storage->bytes))
        return true;
    grd_format_int64s(size_list, sizeof size_list, sizes.data, sizes.n);
    grd_format_int64s(stride_list, sizeof stride_list, strides.data, strides.n);
    if (lowest + offset < 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %u reach %llu elements before the storage",
                         size_list, stride_list, (long long)offset, itemsize, -(unsigned long long)(lowest + offset));
    return grd_raise(GRD_ERROR_RUNTIME,
                     "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %u requiring a storage size of %lld are out of "
                     "bounds for storage of size %lld",
                     size_list, stride_list, (long long)offset, itemsize, (long long)end, (long long)base->storage->bytes);
}
