/* Allocates memory for the sizes and strides of a tensor, sets them together with the flags that depend on them (contiguous, channels-last), and
 * checks that all elements of a tensor are inside its storage. Also tells whether a tensor has gaps. */
#ifndef GRD_CORE_GEOMETRY_H
#define GRD_CORE_GEOMETRY_H

#include "base/memory.h"
#include "core/shape.h"
#include "core/tensor.h"

/* Returns an array for `ndim` sizes and `ndim` strides: the array inside `t` if they fit, otherwise newly allocated memory. Returns NULL, with
 * the error raised, if there is no memory. */
static inline int64_t *grd_reserve_dims(grd_tensor *t, int64_t ndim)
{
    return ndim <= GRD_INLINE_DIMS ? t->inline_dims : grd_alloc(2 * (size_t)ndim * sizeof(int64_t));
}

/* Frees the array that grd_reserve_dims returned for `t` and `ndim`, unless it is the array inside `t`. */
static inline void grd_free_dims(const grd_tensor *t, int64_t *dims, int64_t ndim)
{
    if (dims != t->inline_dims)
        grd_free(dims, 2 * (size_t)ndim * sizeof *dims);
}

/* Makes `sizes` and `strides` of `t` point into `room`, which grd_reserve_dims returned for `ndim` dimensions. */
static inline void grd_set_room(grd_tensor *t, int64_t *room, int64_t ndim)
{
    t->sizes = room;
    t->strides = room + (ndim <= GRD_INLINE_DIMS ? GRD_INLINE_DIMS : ndim);
}

/* True if the elements of `t` fill one block of memory without gaps, in any order of the dimensions. */
static inline bool grd_is_dense(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_CONTIGUOUS) || grd_shape_is_dense(grd_sizes(t), t->strides);
}

/* Returns GRD_FLAG_CHANNELS_LAST if these are the strides of channels-last layout, otherwise 0. */
static inline unsigned channels_last_flag(grd_dims sizes, const int64_t *strides)
{
    return (sizes.n == 4 || sizes.n == 5) && grd_shape_is_channels_last(sizes, strides) ? GRD_FLAG_CHANNELS_LAST : 0;
}

/* Returns the geometry flags of a contiguous tensor with these sizes and strides. */
static inline unsigned contiguous_flags(grd_dims sizes, const int64_t *strides)
{
    return GRD_FLAG_CONTIGUOUS | (sizes.n <= GRD_INLINE_DIMS ? GRD_FLAG_CANONICAL : 0) | channels_last_flag(sizes, strides);
}

/* Sets the sizes of `t` and the strides of a contiguous tensor with these sizes. Returns the geometry flags (GRD_FLAG_CONTIGUOUS and others). A
 * stride can only overflow if the tensor is empty, and then no element uses it. */
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
 * The stride of a dimension of size 1, and all strides of an empty tensor, are not used by any element, so they can have any value. A stride that
 * would overflow when it is converted to bytes is replaced by 0. Code may then multiply any stride by the element size without testing whether
 * the stride is used.
 *
 * Returns `stride`, or 0 if `stride` times 16, the size in bytes of the largest dtype, overflows. */
static inline int64_t usable_stride(int64_t stride)
{
    int64_t bytes;
    return GRD_UNLIKELY(__builtin_mul_overflow(stride, 16, &bytes)) ? 0 : stride;
}

/* Sets the sizes, strides and number of elements of `t`. Returns the geometry flags (GRD_FLAG_CONTIGUOUS and others) of a tensor with these sizes
 * and strides. */
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

/* Returns the stride of dimension `dim` in bytes. */
static inline int64_t grd_byte_stride(const grd_tensor *t, int64_t dim)
{
    return grd_wrapping_product(t->strides[dim], t->itemsize);
}

/* Raises RuntimeError "Storage size calculation overflowed with sizes=[...]". The text also names the strides, unless `strides` is NULL. Always
 * returns false. */
bool grd_raise_size_overflow(grd_dims sizes, const int64_t *strides);
/* True if a tensor over the storage of `base` with these sizes, strides, offset (in elements) and `itemsize` bytes per element is inside the
 * storage; otherwise raises RuntimeError. */
bool grd_check_within_storage(const grd_tensor *base, uint32_t itemsize, grd_dims sizes, grd_dims strides, int64_t offset);

#endif
