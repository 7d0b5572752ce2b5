/* Activations with more to say than their kernel. Most are composites, differentiated through the operators they call. Schema: schema/elementwise.toml. */
#include <string.h>

#include "gen/uses/op/activation.h"
#include "op/common.h"
#include "op/composite.h"

/* ---- gelu ------------------------------------------------------------------------------------------------------------------------------------ */

static const double sqrt_half = 0.7071067811865476;     /* sqrt(1 / 2) */
static const double sqrt_2_pi = 0.7978845608028654;     /* sqrt(2 / pi) */
static const double normal_height = 0.3989422804014327; /* 1 / sqrt(2 * pi): the normal density at 0 */
static const double gelu_cubic = 0.044715;

/* 0: with erf; 1: with tanh; -1: raised. */
static int gelu_kind(const char *approximate)
{
    if (strcmp(approximate, "none") == 0)
        return 0;
    if (strcmp(approximate, "tanh") == 0)
        return 1;
    grd_raise(GRD_ERROR_RUNTIME, "approximate argument must be either none or tanh.");
    return -1;
}

grd_tensor *op_gelu(grd_tensor *out, grd_tensor *self, const char *approximate)
{
    int kind = gelu_kind(approximate);
    if (kind < 0)
        return grd_failed;
    return kind == 0 ? op_hidden_gelu_erf(out, self) : op_hidden_gelu_tanh(out, self);
}

grd_tensor *op_hidden_gelu_backward(grd_tensor *grad_output, grd_tensor *x, const char *approximate)
{
    grd_tensor *square = grd_square(x), *slope;
    if (gelu_kind(approximate) == 0) {
        /* Phi(x) + x * phi(x) */
        grd_tensor *cdf = grd_mul_scalar(grd_add_scalar(grd_erf(grd_mul_scalar(x, grd_float(sqrt_half))), grd_int(1)), grd_float(0.5));
        grd_tensor *pdf = grd_mul_scalar(grd_exp(grd_mul_scalar(square, grd_float(-0.5))), grd_float(normal_height));
        slope = grd_add(cdf, grd_mul(x, pdf));
    } else {
        /* t = tanh(k * (x + c * x**3)): 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x) */
        grd_tensor *inner = grd_mul_scalar(grd_add(x, grd_mul_scalar(grd_mul(square, x), grd_float(gelu_cubic))), grd_float(sqrt_2_pi));
        grd_tensor *t = grd_tanh(inner), *one = grd_number(grd_int(1));
        grd_tensor *inner_slope = grd_mul_scalar(grd_add(grd_mul_scalar(square, grd_float(3 * gelu_cubic)), one), grd_float(sqrt_2_pi));
        grd_tensor *right = grd_mul(grd_mul(x, grd_sub(one, grd_square(t))), inner_slope);
        slope = grd_mul_scalar(grd_add(grd_add(t, one), right), grd_float(0.5));
    }
    return grd_mul(grad_output, slope);
}

/* ---- hardtanh, softshrink ---------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_threshold(grd_tensor *out, grd_tensor *self, grd_scalar threshold, grd_scalar value)
{
    const enum grd_category category = grd_category_of((grd_dtype)self->dtype);
    if (category == GRD_CATEGORY_BOOL || category == GRD_CATEGORY_COMPLEX)
        return grd_fail_no_kernel("threshold", (grd_dtype)self->dtype);
    grd_tensor *given = grd_composite_input(out, self);
    grd_tensor *replaced = grd_masked_fill(given, grd_le_scalar(given, threshold), value);
    return grd_composite_finish(out, self, out == NULL ? grd_composite_elementwise(replaced, grd_tensors(self)) : replaced);
}

/* For integers the bounds lose their fractions. */
grd_tensor *op_hardtanh(grd_tensor *out, grd_tensor *self, grd_scalar min_val, grd_scalar max_val)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (dtype == GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "Bool inputs not supported for hardtanh");
    if (grd_category_of(dtype) == GRD_CATEGORY_INTEGER) {
        min_val = grd_int(grd_scalar_int64(min_val));
        max_val = grd_int(grd_scalar_int64(max_val));
        const bool is_unsigned = dtype == GRD_UINT8 || dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
        if (is_unsigned && (min_val.v.i < 0 || max_val.v.i < 0))
            return grd_fail(GRD_ERROR_RUNTIME, "cannot do hardtanh on an unsigned type with negative limits");
    }
    grd_tensor *result = op_clamp(out, self, min_val, max_val);
    return out == NULL ? grd_composite_like(result, self) : result;
}

grd_tensor *op_softshrink(grd_tensor *self, grd_scalar lambd)
{
    const double distance = grd_scalar_double(lambd);
    if (!(distance >= 0))
        return grd_fail(GRD_ERROR_RUNTIME, "lambda must be greater or equal to 0, but found to be %g.", distance);
    if (grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_FLOAT)
        return grd_fail_no_kernel("softshrink", (grd_dtype)self->dtype);
    return grd_sub(self, grd_clamp(self, .min = grd_float(-distance), .max = grd_float(distance)));
}

/* ---- celu, selu, mish, prelu, glu -------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_celu(grd_tensor *out, grd_tensor *self, grd_scalar alpha)
{
    const double a = grd_scalar_double(alpha);
    if (a == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "ZeroDivisionError: alpha cannot be 0 for CELU");
    const grd_elu_options options = {.alpha = alpha, .input_scale = grd_float(1 / a)};
    return out != NULL && out == self ? grd_with_elu_(self, &options) : grd_with_elu(self, &options);
}

grd_tensor *op_selu(grd_tensor *out, grd_tensor *self)
{
    const grd_elu_options options = {.alpha = grd_float(1.6732632423543772), .scale = grd_float(1.0507009873554805)};
    return out != NULL && out == self ? grd_with_elu_(self, &options) : grd_with_elu(self, &options);
}

grd_tensor *op_hidden_mish_backward(grd_tensor *grad, grd_tensor *x)
{
    grd_tensor *t = grd_tanh(grd_softplus(x)), *one = grd_number(grd_int(1));
    return grd_mul(grad, grd_add(t, grd_mul(grd_mul(x, grd_sigmoid(x)), grd_sub(one, grd_square(t)))));
}

/* The weight as it broadcasts along dimension 1. */
static grd_tensor *prelu_weight(grd_tensor *self, grd_tensor *weight)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t channels = self->ndim > 1 ? self->sizes[1] : 1;
    if (weight->dtype != self->dtype)
        grd_raise(GRD_ERROR_RUNTIME, "Type promoting not supported. Got %s and %s", grd_dtype_type_name((grd_dtype)self->dtype),
                  grd_dtype_type_name((grd_dtype)weight->dtype));
    else if (weight->ndim > 1)
        grd_raise(GRD_ERROR_RUNTIME, "Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d", weight->ndim);
    else if (weight->numel != 1 && weight->numel != channels)
        grd_raise(GRD_ERROR_RUNTIME,
                  "Mismatch of parameter numbers and input channel size. Found parameter numbers = %lld and channel size = %lld.",
                  (long long)weight->numel, (long long)channels);
    if (grd_pending())
        return grd_failed;
    for (int64_t i = 0; i < self->ndim; i++)
        sizes[i] = i == 1 ? weight->numel : 1;
    return self->ndim > 1 ? grd_reshape(weight, grd_dims_from(sizes, self->ndim)) : grd_reshape(weight, GRD_NO_DIMS);
}

grd_tensor *op_prelu(grd_tensor *self, grd_tensor *weight)
{
    if (grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_FLOAT)
        return grd_fail_no_kernel("prelu", (grd_dtype)self->dtype);
    return grd_hidden_prelu_kernel(self, prelu_weight(self, weight));
}

grd_tensor *op_hidden_prelu_kernel(grd_tensor *self, grd_tensor *weight)
{
    grd_tensor *value = grd_where(grd_gt_scalar(self, grd_int(0)), self, grd_mul(weight, self));
    return grd_pending() ? grd_failed : grd_composite_elementwise(value, grd_tensors(self, weight));
}

grd_tensor *op_glu(grd_tensor *self, int64_t dim)
{
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "glu does not support 0-dimensional tensors");
    if (!grd_wrap_dim(self, dim, &dim))
        return grd_failed;
    const int64_t size = self->sizes[dim];
    if (size % 2 != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Halving dimension must be even, but dimension %lld is size %lld", (long long)dim,
                        (long long)size);
    return grd_mul(grd_narrow(self, dim, 0, size / 2), grd_sigmoid(grd_narrow(self, dim, size / 2, size / 2)));
}

grd_tensor *op_hidden_glu_backward(grd_tensor *grad, grd_tensor *self, int64_t dim)
{
    if (self->ndim == 0)
        grd_raise(GRD_ERROR_RUNTIME, "glu does not support 0-dimensional tensors");
    if (grd_pending() || !grd_wrap_dim(self, dim, &dim))
        return grd_failed;
    const int64_t half = self->sizes[dim] / 2;
    grd_tensor *one = grd_number(grd_int(1)), *gate = grd_sigmoid(grd_narrow(self, dim, half, half));
    grd_tensor *slope = grd_mul(gate, grd_sub(one, gate));
    grd_tensor *first = grd_mul(grad, grd_conj(gate)), *second = grd_mul(grad, grd_conj(grd_mul(grd_narrow(self, dim, 0, half), slope)));
    return grd_cat(grd_tensors(first, second), .dim = dim);
}

grd_tensor *op_hardshrink(grd_tensor *self, grd_scalar lambd)
{
    const double limit = grd_scalar_double(lambd);
    grd_tensor *small = grd_logical_and(grd_ge_scalar(self, grd_float(-limit)), grd_le_scalar(self, grd_float(limit)));
    return grd_composite_elementwise(grd_masked_fill(self, small, grd_int(0)), grd_tensors(self));
}
