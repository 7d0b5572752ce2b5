/* Complex tensors and their parts: views of the same storage as real numbers, two for each element. */
#include <math.h>

#include "gen/uses/op/complex.h"
#include "op/composite.h"
#include "op/plan.h"
#include "op/reduce.h"

/* The view of the real (0) or imaginary (1) halves, or with `pairs` a last dimension for both: the same addresses, counted in halves. */
static grd_tensor *view_parts(grd_tensor *self, int part, bool pairs)
{
    int64_t sizes[GRD_MAX_DIMS + 1], strides[GRD_MAX_DIMS + 1];
    const int n = self->ndim;
    for (int i = 0; i < n; i++) {
        sizes[i] = self->sizes[i];
        strides[i] = grd_wrapping_product(self->strides[i], 2);
    }
    sizes[n] = 2;
    strides[n] = 1;
    const int ndim = n + pairs;
    return grd_new_view_as(self, grd_dtype_to_real((grd_dtype)self->dtype), grd_dims_from(sizes, ndim), grd_dims_from(strides, ndim),
                           2 * self->offset + part);
}

grd_tensor *op_real(grd_tensor *self)
{
    return grd_dtype_is_complex((grd_dtype)self->dtype) ? view_parts(self, 0, false) : self;
}

grd_tensor *op_imag(grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "imag is not implemented for tensors with non-complex dtypes.");
    return view_parts(self, 1, false);
}

grd_tensor *op_view_as_real(grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "view_as_real is only supported for complex tensors");
    if (self->ndim == GRD_MAX_DIMS)
        return grd_fail(GRD_ERROR_RUNTIME, "a tensor of %d dimensions cannot take one more", (int)self->ndim);
    return view_parts(self, 0, true);
}

bool plan_complex(struct grd_plan *p, grd_tensor *real, grd_tensor *imag)
{
    const grd_dtype dtype = (grd_dtype)real->dtype;
    if ((dtype != GRD_FLOAT32 && dtype != GRD_FLOAT64) || imag->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected both inputs to be Float or Double tensors but got %s and %s",
                         grd_dtype_type_name(dtype), grd_dtype_type_name((grd_dtype)imag->dtype));
    return grd_plan_reads(p, real) && grd_plan_reads(p, imag) &&
           grd_iter_plan_result(grd_tensors(real, imag), grd_dtype_to_complex(dtype), &p->planned[p->nresults++]);
}

/* Each part, broadcast, is copied to every other number. */
void run_complex(const struct grd_plan *p, grd_tensor *real, grd_tensor *imag)
{
    const grd_tensor *result = p->results[0], *const parts[] = {real, imag};
    int64_t strides[2][GRD_MAX_DIMS];
    for (int part = 0; part < 2; part++) {
        const grd_tensor *from = parts[part];
        for (int d = 0, own = from->ndim - result->ndim; d < result->ndim; d++, own++) {
            strides[0][d] = grd_byte_stride(result, d);
            strides[1][d] = own < 0 || from->sizes[own] == 1 ? 0 : grd_byte_stride(from, own);
        }
        struct grd_iter it;
        grd_iter_raw(&it, grd_sizes(result), 2, (char *const[]){result->data + part * from->itemsize, from->data},
                     (const int64_t *const[]){strides[0], strides[1]});
        grd_iter_run(&it, grd_cast_kernel((grd_dtype)from->dtype, (grd_dtype)from->dtype), NULL);
    }
}

grd_tensor *op_view_as_complex(grd_tensor *self)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (dtype != GRD_FLOAT32 && dtype != GRD_FLOAT64)
        return grd_fail(GRD_ERROR_RUNTIME,
                        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
                        grd_dtype_type_name(dtype));
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Input tensor must have one or more dimensions");
    if (self->sizes[self->ndim - 1] != 2)
        return grd_fail(GRD_ERROR_RUNTIME, "Tensor must have a last dimension of size 2");
    const int n = self->ndim - 1;
    int64_t strides[GRD_MAX_DIMS];
    if (self->strides[n] != 1)
        return grd_fail(GRD_ERROR_RUNTIME, "Tensor must have a last dimension with stride 1");
    for (int i = 0; i < n; i++) {
        strides[i] = self->strides[i] / 2;
        if (self->strides[i] % 2 != 0 && self->sizes[i] != 1)
            return grd_fail(GRD_ERROR_RUNTIME, "Tensor must have a stride divisible by 2 for all but last dimension");
    }
    if (self->offset % 2 != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Tensor must have a storage_offset divisible by 2");
    return grd_new_view_as(self, grd_dtype_to_complex(dtype), grd_dims_from(self->sizes, n), grd_dims_from(strides, n), self->offset / 2);
}

grd_tensor *op_angle(grd_tensor *self)
{
    const double pi = 3.14159265358979323846;
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_composite_contiguous(grd_atan2(grd_imag(self), grd_real(self)));
    grd_tensor *zero = grd_zeros_like(self, .dtype = grd_dtype_to_float((grd_dtype)self->dtype));
    grd_tensor *angle = grd_masked_fill(zero, grd_lt_scalar(self, grd_int(0)), grd_float(pi));
    return grd_composite_elementwise(grd_masked_fill(angle, grd_isnan(self), grd_float(NAN)), grd_tensors(self));
}

grd_tensor *op_hidden_angle_backward(grd_tensor *grad, grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_zeros_like(grad);
    grd_tensor *real = grd_real(self), *imag = grd_imag(self);
    grd_tensor *ratio = grd_quotient_or_zero(grad, grd_add(grd_square(real), grd_square(imag)));
    return grd_complex(grd_neg(grd_mul(ratio, imag)), grd_mul(ratio, real));
}
