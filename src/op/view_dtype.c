/* The view of a tensor's memory as elements of another dtype. */
#include "gen/uses/op/view_dtype.h"
#include "op/common.h"

#include <stdio.h>

/* Where the elements have another size: whether the last dimension can be read in its measure. */
static bool check_last(const grd_tensor *self, const char *from, const char *to)
{
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "self.dim() cannot be 0 to view %s as %s (different element sizes)", from, to);
    const int64_t stride = self->strides[self->ndim - 1];
    if (stride != 1 && self->sizes[self->ndim - 1] != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld", from, to,
                         (long long)stride);
    return true;
}

static bool refuse_rest(const char *what, int64_t ratio, const char *from, const char *to, int64_t value)
{
    return grd_raise(GRD_ERROR_RUNTIME, "%s must be divisible by %lld to view %s as %s (different element sizes), but got %lld", what,
                     (long long)ratio, from, to, (long long)value);
}

/* Where `ratio` elements become one: whether everything comes out whole. */
static bool check_whole(const grd_tensor *self, int64_t ratio, const char *from, const char *to)
{
    char what[32];
    const int last = self->ndim - 1;
    if (self->sizes[last] % ratio != 0)
        return refuse_rest("self.size(-1)", ratio, from, to, self->sizes[last]);
    if (self->offset % ratio != 0)
        return refuse_rest("self.storage_offset()", ratio, from, to, self->offset);
    for (int i = 0; i < last; i++)
        if (self->strides[i] % ratio != 0) {
            snprintf(what, sizeof what, "self.stride(%d)", i);
            return refuse_rest(what, ratio, from, to, self->strides[i]);
        }
    return true;
}

/* A length of the old elements in new ones. */
static int64_t measure(int64_t length, int64_t old_size, int64_t new_size)
{
    return old_size < new_size ? length / (new_size / old_size) : grd_wrapping_product(length, old_size / new_size);
}

grd_tensor *op_view_dtype(grd_tensor *self, grd_dtype dtype)
{
    const int64_t from = self->itemsize, to = grd_dtype_size(dtype);
    const char *from_name = grd_dtype_type_name((grd_dtype)self->dtype), *to_name = grd_dtype_type_name(dtype);
    if (from != to && (!check_last(self, from_name, to_name) || (to > from && !check_whole(self, to / from, from_name, to_name))))
        return grd_failed;
    int64_t size;
    if (from > to && __builtin_mul_overflow(self->sizes[self->ndim - 1], from / to, &size))
        return grd_fail(GRD_ERROR_RUNTIME, "self.size(-1) is too large to view %s as %s, but got %lld", from_name, to_name,
                        (long long)self->sizes[self->ndim - 1]);
    grd_tensor *view = grd_new_detached(self);
    if (grd_pending())
        return grd_failed;
    view->dtype = (uint8_t)dtype;
    view->itemsize = (uint32_t)to;
    if (from == to)
        return view;
    const int last = self->ndim - 1;
    view->offset = measure(self->offset, from, to);
    view->numel = measure(self->numel, from, to);
    for (int i = 0; i < last; i++)
        view->strides[i] = measure(self->strides[i], from, to);
    view->sizes[last] = measure(self->sizes[last], from, to);
    view->strides[last] = 1;
    const grd_dims sizes = grd_dims_from(view->sizes, view->ndim);
    view->flags &= (uint16_t) ~(GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL | GRD_FLAG_CHANNELS_LAST);
    if (grd_shape_is_contiguous(sizes, view->strides))
        view->flags |= GRD_FLAG_CONTIGUOUS;
    if (grd_shape_is_channels_last(sizes, view->strides))
        view->flags |= GRD_FLAG_CHANNELS_LAST;
    return view;
}
