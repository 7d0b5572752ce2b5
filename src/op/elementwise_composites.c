/* Implements operators that call other elementwise operators: signs, special values, rounding, logaddexp, isclose. Schema:
 * schema/elementwise.toml. */
#include <float.h>
#include <math.h>

#include "gen/uses/op/elementwise_composites.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "op/dtypes.h"
#include "op/elementwise.h"
#include "op/reduce.h"
#include "op/formula.h"
#include "op/out.h"

grd_tensor *op_positive(grd_tensor *self)
{
    if (self->dtype == GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "The `+` operator, on a bool tensor is not supported.");
    return self;
}

grd_tensor *op_abs(grd_tensor *out, grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_op_unary(out, self, &elementwise_hidden_abs, NULL);
    if (out == self)
        return grd_fail(GRD_ERROR_RUNTIME, "In-place abs is not supported for complex tensors.");
    grd_tensor *modulus = grd_hypot(grd_real(self), grd_imag(self));
    return grd_out_finish(out, out == NULL ? grd_composite_like(modulus, self) : modulus);
}

grd_tensor *op_sgn(grd_tensor *out, grd_tensor *self)
{
    const bool is_complex = grd_dtype_is_complex((grd_dtype)self->dtype);
    grd_tensor *input = grd_composite_input(out, self), *sign = is_complex ? grd_quotient_or_zero(input, grd_abs(input)) : grd_sign(input);
    return grd_composite_finish(out, self, out == NULL ? grd_composite_elementwise(sign, grd_tensors(self)) : sign);
}

/* ---- logit --------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_logit(grd_tensor *out, grd_tensor *self, grd_scalar eps)
{
    grd_tensor *x = self;
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_fail_no_kernel("logit_cpu", (grd_dtype)self->dtype);
    if (grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_FLOAT)
        x = grd_to(x, .dtype = grd_default_dtype());
    const double low = eps.kind == GRD_SCALAR_NONE ? -1 : grd_scalar_double(eps);
    if (low >= 0)
        x = grd_clamp_min(grd_clamp_max(x, grd_float(1 - low)), grd_float(low));
    grd_tensor *value = grd_log(grd_div(x, grd_sub(grd_number(grd_int(1)), x)));
    return grd_composite_finish(out, self, out == NULL ? grd_composite_elementwise(value, grd_tensors(self)) : value);
}

grd_tensor *op_float_power(grd_tensor *out, grd_tensor *self, grd_tensor *exponent)
{
    const bool is_complex = grd_dtype_is_complex((grd_dtype)self->dtype) || grd_dtype_is_complex((grd_dtype)exponent->dtype);
    const grd_dtype dtype = is_complex ? GRD_COMPLEX128 : GRD_FLOAT64;
    if (out != NULL && self->dtype != dtype)
        return grd_fail(GRD_ERROR_RUNTIME, "the base given to float_power_ has dtype %s but the operation's result requires dtype %s",
                        grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name(dtype));
    /* An exponent that is a wrapped number (a Python scalar as a tensor) is not converted, because pow has faster kernels for some numbers. */
    grd_tensor *power = grd_has(exponent, GRD_FLAG_NUMBER) ? exponent : grd_to(exponent, .dtype = dtype);
    return grd_composite_finish(out, self, grd_pow(grd_to(grd_composite_input(out, self), .dtype = dtype), power));
}

grd_tensor *op_heaviside(grd_tensor *out, grd_tensor *self, grd_tensor *values)
{
    if (grd_dtype_is_complex((grd_dtype)self->dtype) || grd_dtype_is_complex((grd_dtype)values->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "heaviside is not yet implemented for complex tensors.");
    if (self->dtype != values->dtype)
        return grd_fail(GRD_ERROR_RUNTIME, "heaviside is not yet implemented for tensors with different dtypes.");
    if (!grd_out_check_inputs(out, grd_tensors(self, values)))
        return grd_failed;
    grd_tensor *step = grd_where(grd_eq_scalar(self, grd_int(0)), values, grd_gt_scalar(self, grd_int(0)));
    return grd_composite_finish(out, self, out == NULL ? grd_composite_elementwise(step, grd_tensors(self, values)) : step);
}

/* ---- Special values ------------------------------------------------------------------------------------------------------------- */

static grd_scalar given_or(grd_scalar given, double otherwise)
{
    return given.kind != GRD_SCALAR_NONE ? given : grd_float(otherwise);
}

/* Returns `self` with NaN and infinities replaced by `nan`, `posinf` and `neginf`. If one of these is absent, the replacement is 0 for NaN, and the
 * largest or the least finite number of the dtype for the infinities. */
static grd_tensor *replaced(grd_tensor *self, grd_scalar nan, grd_scalar posinf, grd_scalar neginf)
{
    const double largest = grd_limits[self->dtype].largest;
    grd_tensor *t = grd_masked_fill(self, grd_isnan(self), given_or(nan, 0));
    t = grd_masked_fill(t, grd_isposinf(self), given_or(posinf, largest));
    return grd_masked_fill(t, grd_isneginf(self), given_or(neginf, -largest));
}

grd_tensor *op_nan_to_num(grd_tensor *out, grd_tensor *self, grd_scalar nan, grd_scalar posinf, grd_scalar neginf)
{
    const enum grd_category category = grd_category_of((grd_dtype)self->dtype);
    grd_tensor *value;
    if (category == GRD_CATEGORY_COMPLEX)
        value = grd_complex(replaced(grd_real(self), nan, posinf, neginf), replaced(grd_imag(self), nan, posinf, neginf));
    else
        value = category == GRD_CATEGORY_FLOAT ? replaced(self, nan, posinf, neginf) : grd_clone(self);
    return grd_composite_finish(out, self, out == NULL ? grd_composite_like(value, self) : value);
}

grd_tensor *op_isreal(grd_tensor *self)
{
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_eq_scalar(grd_imag(self), grd_int(0));
    return grd_ones_like(self, .dtype = GRD_BOOL);
}

/* ---- Rounding -------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_round_decimals(grd_tensor *out, grd_tensor *self, int64_t decimals)
{
    const bool is_integer = grd_category_of((grd_dtype)self->dtype) <= GRD_CATEGORY_INTEGER;
    if (is_integer && decimals != 0)
        return grd_fail_no_kernel("round_decimals", (grd_dtype)self->dtype);
    if (decimals == 0)
        return grd_composite_finish(out, self, grd_round(self));
    const grd_scalar power = grd_float(pow(10, fabs((double)decimals)));
    grd_tensor *rounded = decimals > 0 ? grd_div_scalar(grd_round(grd_mul_scalar(self, power)), power)
                                       : grd_mul_scalar(grd_round(grd_div_scalar(self, power)), power);
    return grd_composite_finish(out, self, rounded);
}

/* ---- Sums of exponentials -------------------------------------------------------------------------------------------------------- */

/* Returns log_b(b^x + b^y) = x + log_b(1 + b^(y - x)), where x is the operand with the larger real part and base_log = log(b). For equal operands
 * the difference is set to 0, because for infinities it would be NaN. */
static grd_tensor *log_sum(grd_tensor *self, grd_tensor *other, double base_log)
{
    const bool is_complex = grd_dtype_is_complex((grd_dtype)self->dtype) || grd_dtype_is_complex((grd_dtype)other->dtype);
    grd_tensor *first = is_complex ? grd_ge(grd_real(self), grd_real(other)) : grd_ge(self, other);
    grd_tensor *larger = grd_where(first, self, other), *smaller = grd_where(first, other, self);
    grd_tensor *distance = grd_where(grd_eq(self, other), grd_number(grd_int(0)), grd_sub(smaller, larger));
    grd_tensor *rest = grd_log1p(grd_exp(grd_mul_scalar(distance, grd_float(base_log))));
    grd_tensor *sum = grd_add(larger, base_log != 1 ? grd_div_scalar(rest, grd_float(base_log)) : rest);
    return is_complex ? sum : grd_where(grd_isnan(self), self, grd_where(grd_isnan(other), other, sum));
}

/* Returns log_sum(self, other, base_log) with the strides of an elementwise result. Half types are computed in a wider dtype and rounded once. */
static grd_tensor *finished_log_sum(grd_tensor *self, grd_tensor *other, double base_log)
{
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, other}, 2);
    grd_tensor *sum;
    const grd_dtype computed = grd_computed_dtype(dtype);
    if (computed != dtype) {
        grd_tensor *a = grd_to(grd_to(self, .dtype = dtype), .dtype = computed);
        grd_tensor *b = grd_to(grd_to(other, .dtype = dtype), .dtype = computed);
        sum = grd_to(grd_pending() ? grd_failed : log_sum(a, b, base_log), .dtype = dtype);
    } else {
        sum = grd_pending() ? grd_failed : log_sum(self, other, base_log);
    }
    return grd_composite_elementwise(sum, grd_tensors(self, other));
}

static bool check_log_sum(const grd_tensor *self, const grd_tensor *other, const char *name)
{
    const grd_dtype dtype = grd_promote((grd_dtype)self->dtype, (grd_dtype)other->dtype);
    return grd_category_of(dtype) > GRD_CATEGORY_INTEGER || grd_raise_no_kernel(name, dtype);
}

grd_tensor *op_logaddexp(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return check_log_sum(self, other, "logaddexp") && grd_out_check_inputs(out, grd_tensors(self, other))
               ? grd_composite_finish(out, NULL, finished_log_sum(self, other, 1))
               : grd_failed;
}

grd_tensor *op_logaddexp2(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return check_log_sum(self, other, "logaddexp2") && grd_out_check_inputs(out, grd_tensors(self, other))
               ? grd_composite_finish(out, NULL, finished_log_sum(self, other, 0.69314718055994530942))
               : grd_failed;
}

/* ---- Angles ---------------------------------------------------------------------------------------------------------------------- */

static grd_tensor *times(grd_tensor *out, grd_tensor *self, double factor, const char *function)
{
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "%s is not supported for complex tensors.", function);
    grd_tensor *product = grd_mul_scalar(self, grd_float(factor));
    return grd_composite_finish(out, self, out == NULL ? grd_composite_like(product, self) : product);
}

grd_tensor *op_rad2deg(grd_tensor *out, grd_tensor *self)
{
    return times(out, self, 57.295779513082320877, "rad2deg");
}

grd_tensor *op_deg2rad(grd_tensor *out, grd_tensor *self)
{
    return times(out, self, 0.017453292519943295769, "deg2rad");
}

/* Returns a bool tensor that is true where the sign bit is set, which includes -0 and negative NaN. */
grd_tensor *op_signbit(grd_tensor *out, grd_tensor *self)
{
    grd_tensor *set = grd_lt_scalar(grd_copysign(grd_number(grd_int(1)), self), grd_int(0));
    return grd_composite_finish(out, NULL, out == NULL ? grd_composite_elementwise(set, grd_tensors(self)) : set);
}

/* ---- self * log(other) ------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_xlogy(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, other}, 2);
    if (grd_pending())
        return grd_failed;
    if (dtype != GRD_FLOAT16 && dtype != GRD_BFLOAT16)
        return grd_op_binary(out, self, other, &elementwise_hidden_xlogy, NULL);
    grd_tensor *x = grd_to(self, .dtype = dtype), *y = grd_to(other, .dtype = dtype);
    grd_tensor *zero = grd_logical_and(grd_eq_scalar(x, grd_int(0)), grd_logical_not(grd_isnan(y)));
    grd_tensor *product = grd_masked_fill(grd_mul(x, grd_log(y)), zero, grd_int(0));
    return grd_composite_finish(out, self, out == NULL && !grd_pending() ? grd_composite_elementwise(product, grd_tensors(x, y)) : product);
}

double grd_dropped_bits(grd_tensor *self, grd_tensor *other)
{
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, other}, 2);
    return dtype == GRD_FLOAT16 ? 13 : dtype == GRD_BFLOAT16 ? 16 : 0;
}

/* ---- Closeness ------------------------------------------------------------------------------------------------------------------- */

static bool check_close(const grd_tensor *self, const grd_tensor *other, double rtol, double atol)
{
    if (self->dtype != other->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s did not match %s", grd_dtype_type_name((grd_dtype)self->dtype),
                         grd_dtype_type_name((grd_dtype)other->dtype));
    if (!(rtol >= 0))
        return grd_raise(GRD_ERROR_RUNTIME, "rtol must be greater than or equal to zero, but got %g", rtol);
    return atol >= 0 || grd_raise(GRD_ERROR_RUNTIME, "atol must be greater than or equal to zero, but got %g", atol);
}

grd_tensor *op_isclose(grd_tensor *self, grd_tensor *other, double rtol, double atol, bool equal_nan)
{
    if (!check_close(self, other, rtol, atol))
        return grd_failed;
    const enum grd_category category = grd_category_of((grd_dtype)self->dtype);
    grd_tensor *close = grd_eq(self, other);
    if (equal_nan && category > GRD_CATEGORY_INTEGER)
        close = grd_logical_or(close, grd_logical_and(grd_isnan(self), grd_isnan(other)));
    if (rtol == 0 && atol == 0)
        return close;
    if (category <= GRD_CATEGORY_INTEGER) { /* in narrower integer types the difference could overflow */
        self = grd_to(self, .dtype = GRD_INT64);
        other = grd_to(other, .dtype = GRD_INT64);
    }
    grd_tensor *distance = grd_abs(grd_sub(self, other));
    if (category <= GRD_CATEGORY_INTEGER) { /* the difference of two int64 numbers may overflow */
        grd_tensor *rough = grd_abs(grd_sub(grd_to(self, .dtype = GRD_FLOAT64), grd_to(other, .dtype = GRD_FLOAT64)));
        distance = grd_where(grd_lt_scalar(rough, grd_float(0x1p62)), grd_to(distance, .dtype = GRD_FLOAT64), rough);
    }
    grd_tensor *allowed = grd_add_scalar(grd_abs(grd_mul_scalar(other, grd_float(rtol))), grd_float(atol));
    return grd_logical_or(close, grd_logical_and(grd_isfinite(distance), grd_le(distance, allowed)));
}
