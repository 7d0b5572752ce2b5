/* Complex tensors and their parts: views of the same storage as real numbers, two for each element. */
#include <math.h>

#include "gen/op_impl.h"
#include "gradus/ops.h"
#include "op/common.h"
#include "op/composite.h"

/* Turns a fresh view of complex elements into one of real elements: the same addresses, counted in halves. `part` 1 is the imaginary one. */
static grd_tensor *as_parts(grd_tensor *view, int part)
{
    if (grd_pending())
        return grd_failed;
    const grd_dtype dtype = grd_dtype_to_real((grd_dtype)view->dtype);
    view->dtype = (uint8_t)dtype;
    view->itemsize = (uint32_t)grd_dtype_size(dtype);
    for (int i = 0; i < view->ndim; i++)
        view->strides[i] *= 2;
    view->offset = 2 * view->offset + part;
    if (view->data != NULL)
        view->data += (size_t)part * view->itemsize;
    view->flags &= (uint16_t) ~(GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL | GRD_FLAG_CHANNELS_LAST);
    if (grd_shape_is_contiguous(grd_dims_from(view->sizes, view->ndim), view->strides))
        view->flags |= GRD_FLAG_CONTIGUOUS;
    /* A recorded write would have to replay this view on the base, which as_strided cannot: it is refused like one on a multi-output view. */
    view->flags |= GRD_FLAG_MULTI_VIEW;
    return view;
}

static grd_tensor *same_view(grd_tensor *self)
{
    return grd_new_view(self, grd_dims_from(self->sizes, self->ndim), grd_dims_from(self->strides, self->ndim), self->offset);
}

grd_tensor *op_real(grd_tensor *self)
{
    return grd_dtype_is_complex((grd_dtype)self->dtype) ? as_parts(same_view(self), 0) : self;
}

grd_tensor *op_imag(grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "imag is not implemented for tensors with non-complex dtypes.");
        return grd_failed;
    }
    return as_parts(same_view(self), 1);
}

grd_tensor *op_view_as_real(grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "view_as_real is only supported for complex tensors");
        return grd_failed;
    }
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    const int n = self->ndim;
    if (n == GRD_MAX_DIMS) {
        grd_raise(GRD_ERROR_RUNTIME, "a tensor of %d dimensions cannot take one more", n);
        return grd_failed;
    }
    for (int i = 0; i < n; i++) {
        sizes[i] = self->sizes[i];
        strides[i] = self->strides[i];
    }
    /* One element, not two, while it is still counted in complex ones: the second half is inside it. */
    sizes[n] = 1;
    strides[n] = 1;
    grd_tensor *view = as_parts(grd_new_view(self, grd_dims_from(sizes, n + 1), grd_dims_from(strides, n + 1), self->offset), 0);
    if (grd_pending())
        return grd_failed;
    view->sizes[n] = 2;
    view->strides[n] = 1;
    view->numel *= 2;
    if (grd_shape_is_contiguous(grd_dims_from(view->sizes, n + 1), view->strides))
        view->flags |= GRD_FLAG_CONTIGUOUS;
    return view;
}

grd_tensor *op_complex(grd_tensor *real, grd_tensor *imag)
{
    const grd_dtype dtype = (grd_dtype)real->dtype;
    if ((dtype != GRD_FLOAT32 && dtype != GRD_FLOAT64) || imag->dtype != dtype) {
        grd_raise(GRD_ERROR_RUNTIME, "Expected both inputs to be Float or Double tensors but got %s and %s", grd_dtype_type_name(dtype),
                  grd_dtype_type_name((grd_dtype)imag->dtype));
        return grd_failed;
    }
    struct grd_iter it;
    grd_tensor *result = grd_iter_elementwise(
        &it, &(struct grd_iter_spec){
                 .inputs = {real, imag}, .ninputs = 2, .rule = GRD_TYPE_KEEP, .dtype = grd_dtype_to_complex(dtype), .name = "complex"});
    if (grd_pending())
        return grd_failed;
    grd_tensor *parts = grd_view_as_real(result);
    grd_copy_(grd_select(parts, result->ndim, 0), real);
    grd_copy_(grd_select(parts, result->ndim, 1), imag);
    return grd_pending() ? grd_failed : result;
}

grd_tensor *op_view_as_complex(grd_tensor *self)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (dtype != GRD_FLOAT32 && dtype != GRD_FLOAT64) {
        grd_raise(GRD_ERROR_RUNTIME,
                  "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
                  grd_dtype_type_name(dtype));
        return grd_failed;
    }
    if (self->ndim == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "Input tensor must have one or more dimensions");
        return grd_failed;
    }
    if (self->sizes[self->ndim - 1] != 2) {
        grd_raise(GRD_ERROR_RUNTIME, "Tensor must have a last dimension of size 2");
        return grd_failed;
    }
    return grd_squeeze(grd_view_dtype(self, grd_dtype_to_complex(dtype)), .dim = grd_dims(-1));
}

grd_tensor *op_angle(grd_tensor *self)
{
    const double pi = 3.14159265358979323846;
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_composite_contiguous(grd_atan2(grd_imag(self), grd_real(self)));
    grd_tensor *zero = grd_mul_scalar(grd_sign(self), grd_int(0)); /* whose gradient is 0 */
    grd_tensor *angle =
        grd_masked_fill(grd_to(zero, .dtype = grd_dtype_to_float((grd_dtype)self->dtype)), grd_lt_scalar(self, grd_int(0)), grd_float(pi));
    return grd_composite_elementwise(grd_masked_fill(angle, grd_isnan(self), grd_float(NAN)), grd_tensors(self));
}
