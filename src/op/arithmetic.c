/* Elementwise operators with more to say than their kernel: checks of numbers, the choice of a kernel, derivatives with cases.
 *
 * op_add … op_clamp run kernels that are no operators (elementwise_hidden_add, …). The composites further
 * down call operators (grd_…) and are differentiated through them.
 * Schema: schema/elementwise.toml. */
#include <string.h>

#include "dispatch/op.h"
#include "gen/uses/op/arithmetic.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/elementwise.h"

static bool is_integral(grd_dtype dtype)
{
    return grd_category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

static bool is_number(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_NUMBER) && t->data != NULL;
}

static bool is_int(grd_scalar s, int64_t value)
{
    return s.kind == GRD_SCALAR_INT && s.v.i == value;
}

/* ---- add, sub --------------------------------------------------------------------------------------------------------------------- */

/* What torch.add demands of alpha for a result of this dtype. */
static bool check_alpha(grd_dtype result, grd_scalar alpha)
{
    char element[16];
    if (alpha.kind == GRD_SCALAR_BOOL && result != GRD_BOOL)
        return grd_raise(GRD_ERROR_RUNTIME, "Boolean alpha only supported for Boolean results.");
    if (!grd_scalar_is_integral(alpha) && is_integral(result))
        return grd_raise(GRD_ERROR_RUNTIME, "For integral input tensors, argument alpha must not be a floating point number.");
    if (alpha.kind == GRD_SCALAR_COMPLEX && grd_category_of(result) != GRD_CATEGORY_COMPLEX)
        return grd_raise(GRD_ERROR_RUNTIME, "For non-complex input tensors, argument alpha must not be a complex number.");
    return grd_scalar_write(alpha, result, element);
}

/* A half type multiplies by alpha as that type holds it. `alpha` has passed check_alpha. */
static grd_scalar held(grd_dtype result, grd_scalar alpha)
{
    char element[16];
    if (result != GRD_FLOAT16 && result != GRD_BFLOAT16)
        return alpha;
    grd_scalar_write(alpha, result, element);
    return grd_scalar_read(element, result);
}

static grd_scalar negated(grd_scalar s)
{
    if (s.kind == GRD_SCALAR_UINT)
        return grd_float(-grd_scalar_double(s));
    if (grd_scalar_is_integral(s))
        return grd_int((int64_t) - (uint64_t)s.v.i);
    s.v.c.re = -s.v.c.re;
    s.v.c.im = -s.v.c.im;
    return s;
}

static __attribute__((noinline)) grd_tensor *add_scaled(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar alpha)
{
    grd_dtype result = grd_result_type((grd_tensor *const[]){self, other}, 2);
    if (grd_pending() || !check_alpha(result, alpha))
        return grd_failed;
    alpha = result == GRD_BOOL ? grd_bool(grd_scalar_int64(alpha) != 0) : held(result, alpha);
    return grd_op_binary(out, self, other, &elementwise_hidden_add_scaled, &alpha);
}

grd_tensor *op_add(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar alpha)
{
    return GRD_LIKELY(is_int(alpha, 1)) ? grd_op_binary(out, self, other, &elementwise_hidden_add, NULL)
                                        : add_scaled(out, self, other, alpha);
}

grd_tensor *op_sub(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar alpha)
{
    if (GRD_UNLIKELY(self->dtype == GRD_BOOL || other->dtype == GRD_BOOL)) {
        if (self->dtype == GRD_BOOL && other->dtype == GRD_BOOL)
            grd_raise(GRD_ERROR_RUNTIME, "Subtraction, the `-` operator, with two bool tensors is not supported. "
                                         "Use the `^` or `logical_xor()` operator instead.");
        else
            grd_raise(GRD_ERROR_RUNTIME, "Subtraction, the `-` operator, with a bool tensor is not supported. "
                                         "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.");
        return grd_failed;
    }
    if (GRD_LIKELY(is_int(alpha, 1)))
        return grd_op_binary(out, self, other, &elementwise_hidden_sub, NULL);
    grd_dtype result = grd_result_type((grd_tensor *const[]){self, other}, 2);
    if (grd_pending() || !check_alpha(result, alpha))
        return grd_failed;
    alpha = negated(held(result, alpha));
    return grd_op_binary(out, self, other, &elementwise_hidden_add_scaled, &alpha);
}

grd_tensor *op_hidden_times_conj(grd_tensor *self, grd_scalar factor)
{
    if (is_int(factor, 1))
        return self;
    if (factor.kind == GRD_SCALAR_COMPLEX)
        factor.v.c.im = -factor.v.c.im;
    return grd_mul_scalar(self, factor);
}

grd_tensor *op_conj(grd_tensor *self)
{
    return grd_category_of(self->dtype) == GRD_CATEGORY_COMPLEX ? grd_hidden_conj(self) : self;
}

/* ---- abs ------------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_abs(grd_tensor *out, grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_op_unary(out, self, &elementwise_hidden_abs, NULL);
    if (out == self)
        return grd_fail(GRD_ERROR_RUNTIME, "In-place abs is not supported for complex tensors.");
    grd_tensor *modulus = grd_hidden_modulus(self);
    return grd_out_finish(out, out == NULL ? grd_composite_like(modulus, self) : modulus);
}

grd_tensor *op_hidden_abs_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result)
{
    return grd_dtype_is_complex((grd_dtype)self->dtype) ? grd_hidden_modulus_backward(grad, self, result) : grd_mul(grad, grd_sign(self));
}

/* ---- div ------------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_div(grd_tensor *out, grd_tensor *self, grd_tensor *other, const char *rounding_mode)
{
    if (rounding_mode == NULL)
        return grd_op_binary(out, self, other, &elementwise_hidden_div_true, NULL);
    if (strcmp(rounding_mode, "floor") == 0)
        return grd_op_binary(out, self, other, &elementwise_hidden_div_floor, NULL);
    if (strcmp(rounding_mode, "trunc") == 0)
        return grd_op_binary(out, self, other, &elementwise_hidden_div_trunc, NULL);
    return grd_fail(GRD_ERROR_RUNTIME, "expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", rounding_mode);
}

grd_tensor *op_floor_divide(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_op_binary(out, self, other, &elementwise_hidden_div_floor, NULL);
}

grd_tensor *op_hidden_div_self_backward(grd_tensor *grad_output, grd_tensor *other, const char *rounding_mode)
{
    return rounding_mode != NULL ? grd_zeros_like(grad_output) : grd_div(grad_output, grd_conj(other));
}

grd_tensor *op_hidden_div_other_backward(grd_tensor *grad_output, grd_tensor *self, grd_tensor *other, const char *rounding_mode)
{
    if (rounding_mode != NULL)
        return grd_zeros_like(grad_output);
    return grd_neg(grd_mul(grad_output, grd_conj(grd_div(grd_div(self, other), other))));
}

/* ---- square ----------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_square(grd_tensor *out, grd_tensor *self)
{
    if (GRD_UNLIKELY(self->dtype == GRD_BOOL))
        self = grd_contiguous_as(self, GRD_INT64);
    return grd_pending() ? grd_failed : grd_op_unary(out, self, &elementwise_hidden_square, NULL);
}

/* ---- addcmul, addcdiv, where ------------------------------------------------------------------------------------------------------- */

/* False, with an error pending, where the dtype cannot hold the number. */
static bool check_fits(grd_scalar number, grd_dtype dtype)
{
    char element[16];
    return grd_scalar_write(number, dtype, element);
}

grd_tensor *op_addcmul(grd_tensor *out, grd_tensor *self, grd_tensor *tensor1, grd_tensor *tensor2, grd_scalar value)
{
    grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, tensor1, tensor2}, 3);
    if (dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16)
        dtype = GRD_FLOAT32; /* which they are computed in */
    return grd_pending() || !check_fits(value, dtype) ? grd_failed
                                                      : grd_op_ternary(out, self, tensor1, tensor2, &elementwise_hidden_addcmul, &value);
}

grd_tensor *op_addcdiv(grd_tensor *out, grd_tensor *self, grd_tensor *tensor1, grd_tensor *tensor2, grd_scalar value)
{
    if (is_integral(tensor1->dtype) && is_integral(tensor2->dtype))
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
            "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future "
            "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.");
    return grd_op_ternary(out, self, tensor1, tensor2, &elementwise_hidden_addcdiv, &value);
}

/* A number is written into the result as it is, so that it must fit; in arithmetic it would wrap around as the result does. */
grd_tensor *op_where(grd_tensor *out, grd_tensor *condition, grd_tensor *self, grd_tensor *other)
{
    if (GRD_UNLIKELY(is_number(self) || is_number(other))) {
        grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, other}, 2);
        if (grd_pending() || (is_number(self) && !check_fits(grd_scalar_read(self->data, self->dtype), dtype)) ||
            (is_number(other) && !check_fits(grd_scalar_read(other->data, other->dtype), dtype)))
            return grd_failed;
    }
    return grd_op_ternary(out, condition, self, other, &elementwise_hidden_where, NULL);
}

/* ---- pow ------------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_pow(grd_tensor *out, grd_tensor *self, grd_tensor *exponent)
{
    if (!is_number(exponent))
        return grd_op_binary(out, self, exponent, &elementwise_hidden_pow, NULL);
    grd_scalar power = grd_scalar_read(exponent->data, exponent->dtype);
    if (power.kind == GRD_SCALAR_INT && power.v.i < 0 && is_integral(self->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "Integers to negative integer powers are not allowed.");
    char element[16];
    grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, exponent}, 2);
    if (dtype == GRD_DTYPE_NONE || (is_integral(dtype) && !grd_scalar_write(power, dtype, element)))
        return grd_failed;
    if (dtype != (grd_dtype)self->dtype || power.kind == GRD_SCALAR_COMPLEX)
        return grd_op_binary(out, self, exponent, &elementwise_hidden_pow, NULL);
    double value = grd_scalar_double(power);
    if (value == 2)
        return op_square(out, self);
    if (value == 0.5)
        return op_sqrt(out, self);
    if (value == -0.5)
        return op_rsqrt(out, self);
    return grd_op_binary(out, self, exponent, &elementwise_hidden_pow, NULL);
}

static grd_tensor *zero(void)
{
    return grd_number(grd_int(0));
}

static grd_tensor *pow_self_backward_number(grd_tensor *grad_output, grd_tensor *self, grd_tensor *exponent, grd_scalar power)
{
    double value = grd_scalar_double(power);
    if (value == 0)
        return grd_zeros_like(grad_output);
    if (value == 1)
        return grad_output;
    grd_scalar lower = power.kind == GRD_SCALAR_INT && power.v.i > INT64_MIN ? grd_int(power.v.i - 1) : grd_float(value - 1);
    grd_tensor *base = value == 2 ? self : grd_pow_scalar(self, lower);
    return grd_mul(grad_output, grd_conj(grd_mul(base, exponent)));
}

grd_tensor *op_hidden_pow_self_backward(grd_tensor *grad_output, grd_tensor *self, grd_tensor *exponent)
{
    if (is_number(exponent) && grd_category_of(exponent->dtype) != GRD_CATEGORY_COMPLEX)
        return pow_self_backward_number(grad_output, self, exponent, grd_scalar_read(exponent->data, exponent->dtype));
    grd_tensor *lower = grd_pow(self, grd_add_scalar(exponent, grd_int(-1)));
    return grd_where(grd_eq_scalar(exponent, grd_int(0)), zero(), grd_mul(grad_output, grd_conj(grd_mul(lower, exponent))));
}

/* Where self is 0 the logarithm is taken of 1, so that no infinity meets a zero in a second derivative. */
grd_tensor *op_hidden_pow_exponent_backward(grd_tensor *grad_output, grd_tensor *self, grd_tensor *exponent, grd_tensor *result)
{
    grd_tensor *base_is_zero = grd_eq_scalar(self, grd_int(0)), *none = base_is_zero;
    if (grd_category_of(exponent->dtype) != GRD_CATEGORY_COMPLEX)
        none = grd_logical_and(base_is_zero, grd_ge_scalar(exponent, grd_int(0)));
    grd_tensor *logarithm = grd_log(grd_where(none, grd_number(grd_int(1)), self));
    return grd_where(none, zero(), grd_mul(grad_output, grd_conj(grd_mul(result, logarithm))));
}

/* ---- clamp --------------------------------------------------------------------------------------------------------------------------------- */

/* `dtype` is what self and the bounds promote to. */
static bool check_clamp(bool bounded, grd_dtype dtype)
{
    if (!bounded)
        return grd_raise(GRD_ERROR_RUNTIME, "At least one of 'min' or 'max' must not be None");
    if (grd_category_of(dtype) == GRD_CATEGORY_COMPLEX)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "clamp is not supported for complex types");
    return dtype != GRD_BOOL || grd_raise_no_kernel("clamp", GRD_BOOL);
}

static grd_tensor *clamp(grd_tensor *out, grd_tensor *self, grd_tensor *min, grd_tensor *max)
{
    if (min == NULL)
        return op_minimum(out, self, max);
    return max == NULL ? op_maximum(out, self, min) : grd_op_ternary(out, self, min, max, &elementwise_hidden_clamp_both, NULL);
}

/* A bound beyond an integer dtype would wrap around into it. */
static bool check_bound(grd_scalar bound, grd_dtype dtype)
{
    char element[16];
    if (bound.kind == GRD_SCALAR_NONE || grd_category_of(dtype) != GRD_CATEGORY_INTEGER)
        return true;
    if (!grd_scalar_write(bound, dtype, element))
        return false;
    grd_scalar back = grd_scalar_read(element, dtype);
    return back.v.i == bound.v.i || grd_raise(GRD_ERROR_RUNTIME, "value %lld cannot be converted to type %s without overflow",
                                              (long long)bound.v.i, grd_dtype_name(dtype));
}

grd_tensor *op_clamp(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max)
{
    grd_tensor *low = min.kind == GRD_SCALAR_NONE ? NULL : grd_number(min);
    grd_tensor *high = max.kind == GRD_SCALAR_NONE ? NULL : grd_number(max);
    grd_dtype dtype = grd_pending() ? GRD_DTYPE_NONE : grd_result_type((grd_tensor *const[]){self, low, high}, 3);
    if (dtype == GRD_DTYPE_NONE || !check_clamp(low != NULL || high != NULL, dtype) || !check_bound(min, dtype) || !check_bound(max, dtype))
        return grd_failed;
    if (out != NULL && out != self && !grd_check_out_dtype(grd_op_find("clamp"), 0, out, dtype))
        return grd_failed;
    return clamp(out, self, low, high);
}

grd_tensor *op_clamp_tensor(grd_tensor *out, grd_tensor *self, grd_tensor *min, grd_tensor *max)
{
    grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, min, max}, 3);
    const bool of_bool = dtype == GRD_BOOL && (min == NULL) != (max == NULL); /* that is logical or, and */
    if (dtype == GRD_DTYPE_NONE || (!of_bool && !check_clamp(min != NULL || max != NULL, dtype)))
        return grd_failed;
    return clamp(out, self, min, max);
}

/* The conjunction of two masks, either of which may be absent. */
static grd_tensor *both(grd_tensor *a, grd_tensor *b)
{
    return a == NULL ? b : b == NULL ? a : grd_logical_and(a, b);
}

grd_tensor *op_hidden_clamp_backward(grd_tensor *grad_output, grd_tensor *self, grd_scalar min, grd_scalar max)
{
    grd_tensor *above = min.kind == GRD_SCALAR_NONE ? NULL : grd_ge_scalar(self, min);
    grd_tensor *below = max.kind == GRD_SCALAR_NONE ? NULL : grd_le_scalar(self, max);
    return grd_where(both(above, below), grad_output, zero());
}

grd_tensor *op_hidden_clamp_tensor_backward(grd_tensor *grad_output, grd_tensor *self, grd_tensor *min, grd_tensor *max, int64_t which)
{
    grd_tensor *chosen;
    if (which == 0)
        chosen = both(min != NULL ? grd_ge(self, min) : NULL, max != NULL ? grd_le(self, max) : NULL);
    else if (which == 1)
        chosen = both(grd_lt(self, min), max != NULL ? grd_lt(min, max) : NULL);
    else
        chosen = min == NULL ? grd_gt(self, max) : grd_logical_or(grd_gt(self, max), grd_lt(max, min));
    return grd_where(chosen, grad_output, zero());
}
