/* Changes the sizes, strides and offset of tensors in place, for out= arguments and resize_. */
#include "core/resize.h"

#include <stdio.h>

#include "base/text.h"
#include "core/geometry.h"
#include "core/shape.h"
#include "core/storage.h"
#include "core/tensor.h"

void grd_tell_reshaped(grd_tensor *t)
{
    struct grd_object *history = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
    if (history != NULL && history->type->reshaped != NULL)
        history->type->reshaped(history);
}

bool grd_resize(grd_tensor *t, grd_dims sizes)
{
    int64_t numel, needed;
    if (grd_dims_equal(sizes, grd_dims_from(t->sizes, t->ndim)))
        return true;
    if (grd_is_failed(t) || !grd_shape_numel(sizes, &numel))
        return false;
    if (__builtin_add_overflow(numel, t->offset, &needed) || __builtin_mul_overflow(needed, t->itemsize, &needed))
        return grd_raise_size_overflow(sizes, NULL);
    int64_t *dims = grd_reserve_dims(t, sizes.n);
    if (dims == NULL || (numel > 0 && needed > t->storage->bytes && !grd_storage_grow(t, needed))) {
        grd_free_dims(t, dims, sizes.n);
        return false;
    }
    grd_free_dims(t, t->sizes, t->ndim);
    grd_set_room(t, dims, sizes.n);
    unsigned flags = (t->flags & ~(unsigned)GRD_FLAG_CHANNELS_LAST) | grd_set_contiguous(t, sizes);
    t->traits = grd_traits(t->dtype, t->layout, grd_device_of(t), flags, sizes.n);
    t->numel = numel;
    t->data = t->storage->data == NULL ? NULL : (char *)t->storage->data + t->offset * t->itemsize;
    grd_tell_reshaped(t);
    return true;
}

bool grd_set_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset)
{
    int64_t *dims = grd_check_within_storage(t, t->itemsize, sizes, strides, offset) ? grd_reserve_dims(t, sizes.n) : NULL;
    if (dims == NULL)
        return false;
    int64_t *const before = t->sizes, ndim = t->ndim;
    grd_set_room(t, dims, sizes.n);
    const unsigned flags = (t->flags & ~(unsigned)GRD_FLAGS_GEOMETRY) | grd_set_strided(t, sizes, strides.data);
    if (before != dims)
        grd_free_dims(t, before, ndim);
    t->traits = grd_traits(t->dtype, t->layout, grd_device_of(t), flags, sizes.n);
    t->offset = offset;
    t->data = t->storage->data == NULL ? NULL : (char *)t->storage->data + offset * t->itemsize;
    grd_tell_reshaped(t);
    return true;
}

bool grd_warn_resized(const grd_tensor *out, grd_dims sizes)
{
    char have[256], need[256], text[1024];
    if (out->numel == 0 || grd_dims_equal(sizes, grd_dims_from(out->sizes, out->ndim)))
        return true;
    snprintf(text, sizeof text,
             "An output with one or more elements was resized since it had shape %s, which does not match the required output shape %s. "
             "This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero elements. "
             "You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
             grd_format_int64s(have, sizeof have, out->sizes, out->ndim), grd_format_int64s(need, sizeof need, sizes.data, sizes.n));
    return grd_warn(text);
}

/* True if elements with these sizes and strides fill memory without gaps. Sizes and strides must not be negative or overflow. */
static bool is_dense(grd_dims sizes, const int64_t *strides)
{
    int64_t last = 0;
    for (int64_t i = 0; i < sizes.n; i++)
        last += (sizes.data[i] - 1) * strides[i];
    return last == grd_sizes_product(sizes.data, sizes.n) - 1;
}

bool grd_resize_like(grd_tensor *out, grd_dims sizes, const int64_t *strides)
{
    if (!grd_resize(out, sizes))
        return false;
    return strides == NULL || out->numel == 0 || !is_dense(sizes, strides) ||
           grd_set_geometry(out, sizes, grd_dims_from(strides, sizes.n), out->offset);
}

bool grd_resize_out(grd_tensor *out, grd_dims sizes, const int64_t *strides)
{
    return grd_warn_resized(out, sizes) && grd_resize_like(out, sizes, strides);
}
