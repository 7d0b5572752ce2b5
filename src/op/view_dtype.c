/* Plans view(dtype), which views the memory of a tensor as elements of another dtype. */
#include "gen/uses/op/view_dtype.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/view.h"

#include <stdio.h>

/* True if the last dimension is contiguous, so that its elements can be regrouped into elements of another size. Otherwise, or if self has no
 * dimension, raises RuntimeError. */
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

/* Raises RuntimeError, because `value` is not divisible by `ratio`. `what` says what `value` is, e.g. the offset or a stride. Always returns
 * false. */
static bool refuse_rest(const char *what, int64_t ratio, const char *from, const char *to, int64_t value)
{
    return grd_raise(GRD_ERROR_RUNTIME, "%s must be divisible by %lld to view %s as %s (different element sizes), but got %lld", what,
                     (long long)ratio, from, to, (long long)value);
}

/* True if the last size, the offset and the strides are divisible by `ratio`, the number of elements that become one element of the new dtype.
 * Otherwise raises RuntimeError. */
static bool check_divides(const grd_tensor *self, int64_t ratio, const char *from, const char *to)
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

/* Converts a size, stride or offset from elements of the old size to elements of the new size. */
static int64_t measure(int64_t length, int64_t old_size, int64_t new_size)
{
    return old_size < new_size ? length / (new_size / old_size) : grd_wrapping_product(length, old_size / new_size);
}

bool plan_view_dtype(struct grd_view *v, grd_tensor *self, grd_dtype dtype)
{
    const int64_t from = self->itemsize, to = grd_dtype_size(dtype);
    const char *from_name = grd_dtype_type_name((grd_dtype)self->dtype), *to_name = grd_dtype_type_name(dtype);
    if (grd_is_conjugated(self) && dtype != (grd_dtype)self->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.Tensor.view is not supported for %s when converting to a different dtype.",
                         grd_is_conj(self) ? "conjugate view tensors" : "tensors with negative bit set");
    if (from != to && (!check_last(self, from_name, to_name) || (to > from && !check_divides(self, to / from, from_name, to_name))))
        return false;
    const int last = from == to ? self->ndim : self->ndim - 1;
    grd_view_start(v, self, 0);
    v->dtype = dtype;
    v->detached = true;
    v->offset = measure(self->offset, from, to);
    for (int i = 0; i < last; i++)
        grd_view_append(v, self->sizes[i], measure(self->strides[i], from, to));
    if (from == to)
        return true;
    int64_t size = to > from ? self->sizes[last] / (to / from) : 0;
    if (from > to && __builtin_mul_overflow(self->sizes[last], from / to, &size))
        return grd_raise(GRD_ERROR_RUNTIME, "self.size(-1) is too large to view %s as %s, but got %lld", from_name, to_name,
                         (long long)self->sizes[last]);
    grd_view_append(v, size, 1);
    return true;
}
