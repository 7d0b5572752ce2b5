/* The sizes and strides in the header of a tensor: the memory for them, the flags that follow from them, and whether they lie in the storage. */
#ifndef GRD_CORE_GEOMETRY_H
#define GRD_CORE_GEOMETRY_H

#include "base/memory.h"
#include "core/shape.h"
#include "core/tensor.h"

/* Returns memory for ndim sizes and strides: the inline array, or a block; NULL with the error raised. */
static inline int64_t *grd_reserve_dims(grd_tensor *t, int64_t ndim)
{
    return ndim <= GRD_INLINE_DIMS ? t->inline_dims : grd_alloc(2 * (size_t)ndim * sizeof(int64_t));
}

/* Frees what grd_reserve_dims returned. */
static inline void grd_free_dims(const grd_tensor *t, int64_t *dims, int64_t ndim)
{
    if (dims != t->inline_dims)
        grd_free(dims, 2 * (size_t)ndim * sizeof *dims);
}

static inline void grd_set_room(grd_tensor *t, int64_t *room, int64_t ndim)
{
    t->sizes = room;
    t->strides = room + (ndim <= GRD_INLINE_DIMS ? GRD_INLINE_DIMS : ndim);
}

/* Returns GRD_FLAG_CHANNELS_LAST or 0. */
static inline unsigned channels_last_flag(grd_dims sizes, const int64_t *strides)
{
    return (sizes.n == 4 || sizes.n == 5) && grd_shape_is_channels_last(sizes, strides) ? GRD_FLAG_CHANNELS_LAST : 0;
}

static inline unsigned contiguous_flags(grd_dims sizes, const int64_t *strides)
{
    return GRD_FLAG_CONTIGUOUS | (sizes.n <= GRD_INLINE_DIMS ? GRD_FLAG_CANONICAL : 0) | channels_last_flag(sizes, strides);
}

/* Writes sizes and the strides of a contiguous tensor, and returns the flags they give. A stride that overflows belongs to an
 * empty tensor, which does not use it. */
static inline unsigned grd_set_contiguous(grd_tensor *t, grd_dims sizes)
{
    uint64_t stride = 1;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        int64_t size = sizes.data[i];
        t->sizes[i] = size;
        t->strides[i] = (int64_t)stride;
        stride *= size > 1 ? (uint64_t)size : 1;
    }
    return contiguous_flags(sizes, t->strides);
}

/* Note [Unused strides]
 * No element uses the stride of a one-element dimension, or any of an empty tensor, so these may be any numbers. One that does not fit into
 * bytes becomes 0: whoever multiplies a stride by the size of an element need not ask whether it is used. */
static inline int64_t usable_stride(int64_t stride)
{
    int64_t bytes;
    return GRD_UNLIKELY(__builtin_mul_overflow(stride, 16, &bytes)) ? 0 : stride;
}

/* Writes sizes and strides of any kind and numel, and returns the flags they give. */
static inline unsigned grd_set_strided(grd_tensor *t, grd_dims sizes, const int64_t *strides)
{
    uint64_t numel = 1;
    bool contiguous = true, canonical = true;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        int64_t size = sizes.data[i], stride = strides[i];
        t->sizes[i] = size;
        t->strides[i] = usable_stride(stride);
        canonical &= stride == (int64_t)numel;
        contiguous &= size == 1 || stride == (int64_t)numel;
        numel *= (uint64_t)size;
    }
    t->numel = (int64_t)numel;
    if (GRD_LIKELY(canonical && numel > 0))
        return contiguous_flags(sizes, t->strides);
    return (contiguous || numel == 0 ? GRD_FLAG_CONTIGUOUS : 0) | channels_last_flag(sizes, t->strides);
}

/* Returns the stride of a dimension in bytes. */
static inline int64_t grd_byte_stride(const grd_tensor *t, int64_t dim)
{
    return grd_wrapping_product(t->strides[dim], t->itemsize);
}

/* RuntimeError "Storage size calculation overflowed with sizes=[…]", with the strides unless they are NULL. Always false. */
bool grd_raise_size_overflow(grd_dims sizes, const int64_t *strides);
/* RuntimeError unless a view of `base` with elements of `itemsize` bytes lies in its storage. */
bool grd_check_within_storage(const grd_tensor *base, uint32_t itemsize, grd_dims sizes, grd_dims strides, int64_t offset);

#endif
