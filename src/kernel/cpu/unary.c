/* The scalar bodies of operators with kernel = "unary": unary_<name>(x, numbers…) over the compute type C. Typed file.
 * The loops around them are in map.h, the functions that vectorise in vecmath.h; the table is generated from the schema. */
#include <math.h>
#include <string.h>

#include "kernel/cpu/map.h"
#include "kernel/cpu/vecmath_angle.h"
#include "kernel/special.h"
#include "kernel/table.h"
#if GRD_IS_COMPLEX
#include "kernel/cpu/complex.h"
#endif
#if GRD_IS_FLOAT
#include "kernel/cpu/real.h"
#endif

/* ---- Every dtype ---------------------------------------------------------------------------------------------------------- */
static inline bool unary_logical_not(C x)
{
#if GRD_IS_COMPLEX
    return x.re == 0 && x.im == 0;
#else
    return x == 0;
#endif
}

#if GRD_IS_FLOAT
static inline bool unary_isnan(C x)
{
    return x != x;
}

static inline bool unary_isinf(C x)
{
    return fabs(x) == INFINITY;
}

/* A difference with itself is NaN for infinities and NaN. */
static inline bool unary_isfinite(C x)
{
    return x - x == 0;
}
#elif GRD_IS_COMPLEX
static inline bool unary_isnan(C x)
{
    return x.re != x.re || x.im != x.im;
}

static inline bool unary_isinf(C x)
{
    return part_abs(x.re) == INFINITY || part_abs(x.im) == INFINITY;
}

static inline bool unary_isfinite(C x)
{
    return x.re - x.re == 0 && x.im - x.im == 0;
}
#else
static inline bool unary_isnan(C x)
{
    (void)x;
    return false;
}

static inline bool unary_isinf(C x)
{
    (void)x;
    return false;
}

static inline bool unary_isfinite(C x)
{
    (void)x;
    return true;
}
#endif

/* ---- Bool ------------------------------------------------------------------------------------------------------------------- */
#if GRD_IS_BOOL
static inline C unary_sign(C x)
{
    return x;
}

static inline C unary_bitwise_not(C x)
{
    return x == 0;
}
#endif

/* ---- Integers: arithmetic wraps --------------------------------------------------------------------------------------------- */
#if GRD_IS_INTEGER
static inline C unary_neg(C x)
{
    return (C)(0 - (U)x);
}

static inline C unary_hidden_square(C x)
{
    return (C)((U)x * (U)x);
}

#if GRD_IS_SIGNED
static inline C unary_hidden_abs(C x)
{
    return x < 0 ? (C)(0 - (U)x) : x;
}

static inline C unary_sign(C x)
{
    return (C)((x > 0) - (x < 0));
}

static inline C unary_relu(C x)
{
    return x < 0 ? 0 : x;
}
#else
static inline C unary_hidden_abs(C x)
{
    return x;
}

static inline C unary_sign(C x)
{
    return x != 0;
}

static inline C unary_relu(C x)
{
    return x;
}
#endif

static inline C unary_floor(C x)
{
    return x;
}

static inline C unary_ceil(C x)
{
    return x;
}

static inline C unary_round(C x)
{
    return x;
}

static inline C unary_trunc(C x)
{
    return x;
}

static inline C unary_bitwise_not(C x)
{
    return (C)~x;
}
#endif

/* ---- Floating point ----------------------------------------------------------------------------------------------------------- */
#if GRD_IS_FLOAT
static inline C unary_neg(C x)
{
    return -x;
}

static inline C unary_hidden_abs(C x)
{
    return fabs(x);
}

/* 0 for NaN. */
static inline C unary_sign(C x)
{
    return (C)((x > 0) - (x < 0));
}

static inline C unary_reciprocal(C x)
{
    return 1 / x;
}

static inline C unary_hidden_square(C x)
{
    return x * x;
}

static inline C unary_hidden_scale(C x, C number)
{
    return x * number;
}

static inline C unary_hidden_divide(C x, C number)
{
    return x / number;
}

static inline C unary_hidden_divide_floor(C x, C number)
{
    return floored_quotient(x, number);
}

static inline C unary_hidden_divide_trunc(C x, C number)
{
    return trunc(x / number);
}

static inline C unary_sqrt(C x)
{
    return sqrt(x);
}

static inline C unary_rsqrt(C x)
{
    return 1 / sqrt(x);
}

static inline C unary_exp(C x)
{
    return vm_exp(x);
}

static inline C unary_exp2(C x)
{
    return vm_exp2(x);
}

static inline C unary_expm1(C x)
{
    return vm_expm1(x);
}

static inline C unary_log(C x)
{
    return vm_log(x);
}

static inline C unary_log2(C x)
{
    return vm_log2(x);
}

static inline C unary_log10(C x)
{
    return vm_log10(x);
}

static inline C unary_log1p(C x)
{
    return vm_log1p(x);
}

static inline bool all_within(int64_t n, const C *x, C limit)
{
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= !(fabs(x[i]) <= limit);
    return outside == 0;
}

/* y = near(x), and far(x) out of the range of vm_sin, vm_cos and vm_tan; y may be x, so that a part of the arguments is kept where it is needed. */
static inline __attribute__((always_inline)) void near_and_far(int64_t n, C *y, const C *x, C (*near)(C), C (*far)(C))
{
    enum { PART = 256 };
    C kept[PART];
    for (int64_t start = 0; start < n; start += PART) {
        const int64_t m = n - start < PART ? n - start : PART;
        const bool within = all_within(m, x + start, VM_TRIG_LIMIT);
        if (!within)
            memcpy(kept, x + start, (size_t)m * sizeof(C));
        IN_PLACE
        for (int64_t i = start; i < start + m; i++)
            y[i] = near(x[i]);
        for (int64_t i = 0; !within && i < m; i++)
            if (!(fabs(kept[i]) <= (C)VM_TRIG_LIMIT))
                y[start + i] = far(kept[i]);
    }
}

static inline C near_sin(C x)
{
    return vm_sin(x);
}

static inline C far_sin(C x)
{
    return sin(x);
}

static void unary_sin(int64_t n, C *y, const C *x)
{
    near_and_far(n, y, x, near_sin, far_sin);
}

static inline C near_cos(C x)
{
    return vm_cos(x);
}

static inline C far_cos(C x)
{
    return cos(x);
}

static void unary_cos(int64_t n, C *y, const C *x)
{
    near_and_far(n, y, x, near_cos, far_cos);
}

static inline C near_tan(C x)
{
    return vm_tan(x);
}

static inline C far_tan(C x)
{
    return tan(x);
}

static void unary_tan(int64_t n, C *y, const C *x)
{
    near_and_far(n, y, x, near_tan, far_tan);
}

static inline C unary_asin(C x)
{
    return vm_asin(x);
}

static inline C unary_acos(C x)
{
    return vm_acos(x);
}

static inline C unary_atan(C x)
{
    return vm_atan(x);
}

static inline C unary_sinh(C x)
{
    return vm_sinh(x);
}

static inline C unary_cosh(C x)
{
    return vm_cosh(x);
}

static inline C unary_tanh(C x)
{
    return vm_tanh(x);
}

static inline C unary_erf(C x)
{
    return vm_erf(x);
}

static inline C unary_sigmoid(C x)
{
    return vm_sigmoid(x);
}

/* NaN and -0 stay. */
static inline C unary_relu(C x)
{
    return x < 0 ? 0 : x;
}

static inline C unary_leaky_relu(C x, C negative_slope)
{
    return x > 0 ? x : negative_slope * x;
}

static inline C unary_elu(C x, C alpha, C scale, C input_scale)
{
    const C above = scale * x, below = alpha * scale * vm_expm1(x * input_scale);
    return x > 0 ? above : below;
}

/* tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) with e = exp(x). */
static inline C unary_mish(C x)
{
    const C e = vm_exp(x > 20 ? 20 : x), n = e * (e + 2);
    const C y = x * (n / (n + 2));
    return x > 20 ? x : y;
}

/* NaN fails both comparisons and stays. */
static inline C unary_hardsigmoid(C x)
{
    const C y = x + 3;
    const C floored = y < 0 ? 0 : y;
    return (floored > 6 ? 6 : floored) / 6;
}

static inline C unary_hardswish(C x)
{
    const C y = x + 3;
    const C floored = y < 0 ? 0 : y;
    return x * (floored > 6 ? 6 : floored) / 6;
}

static inline C unary_asinh(C x)
{
    return asinh(x);
}

static inline C unary_acosh(C x)
{
    return acosh(x);
}

static inline C unary_atanh(C x)
{
    return atanh(x);
}

static inline C unary_erfc(C x)
{
    return erfc(x);
}

static inline C unary_erfinv(C x)
{
    return (C)grd_special_erfinv((double)x);
}

static inline C unary_lgamma(C x)
{
    return lgamma(x);
}

static inline C unary_polygamma(C x, C n)
{
    return (C)grd_special_polygamma((double)n, (double)x);
}

static inline C unary_hidden_gelu_erf(C x)
{
    return vm_gelu(x);
}

static inline C unary_hidden_gelu_tanh(C x)
{
    return vm_gelu_tanh(x);
}

static inline C unary_silu(C x)
{
    return vm_silu(x);
}

/* min(x, 0) - log(1 + e^-|x|) */
static inline C unary_hidden_log_sigmoid(C x)
{
    return -vm_softplus(-x);
}

static inline C unary_hidden_smooth_l1(C x, C beta)
{
    const C size = fabs(x), near = (C)0.5 * size * size / beta, far = size - (C)0.5 * beta;
    return size < beta ? near : far;
}

static inline C unary_hidden_huber(C x, C delta)
{
    const C size = fabs(x), near = (C)0.5 * size * size, far = delta * (size - (C)0.5 * delta);
    return size <= delta ? near : far;
}

/* log(1 + e^(beta x)) / beta */
static inline C unary_softplus(C x, C beta, C threshold)
{
    const C scaled = x * beta;
    const C y = vm_softplus(scaled) / beta;
    return scaled > threshold ? x : y;
}

static inline C unary_floor(C x)
{
    return floor(x);
}

static inline C unary_ceil(C x)
{
    return ceil(x);
}

/* Halves to even. */
static inline C unary_round(C x)
{
    return rint(x);
}

static inline C unary_trunc(C x)
{
    return trunc(x);
}

static inline C unary_frac(C x)
{
    return x - trunc(x);
}
#endif

/* ---- Complex --------------------------------------------------------------------------------------------------------------------- */
#if GRD_IS_COMPLEX
static inline C unary_neg(C x)
{
    return number(-x.re, -x.im);
}

static inline C unary_hidden_conj(C x)
{
    return number(x.re, -x.im);
}

static inline C unary_reciprocal(C x)
{
    return quotient(number(1, 0), x);
}

static inline C unary_hidden_square(C x)
{
    return product(x, x);
}

static inline C unary_sqrt(C x)
{
    return of_libm(sqrt(to_libm(x)));
}

static inline C unary_rsqrt(C x)
{
    return unary_reciprocal(unary_sqrt(x));
}

static inline C unary_exp(C x)
{
    return of_libm(exp(to_libm(x)));
}

static inline C unary_exp2(C x)
{
    const R ln2 = (R)0.69314718055994530942;
    return unary_exp(number(x.re * ln2, x.im * ln2));
}

/* (e^a - 1) cos b + (cos b - 1) + i e^a sin b, with cos b - 1 = -2 sin^2(b / 2): nothing cancels near 0. */
static inline C unary_expm1(C x)
{
    const R half = sin(x.im / 2);
    return number(expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im));
}

static inline C unary_log(C x)
{
    return of_libm(log(to_libm(x)));
}

/* |1 + z|^2 = 1 + a (2 + a) + b^2 near 0, where a and b lose nothing in it. Elsewhere the sum cancels, at z = -1, or overflows. */
static inline C unary_log1p(C x)
{
    if (fabs(x.re) < (R)0.5 && fabs(x.im) < (R)0.5)
        return number(log1p(x.re * (2 + x.re) + x.im * x.im) / 2, atan2(x.im, 1 + x.re));
    return unary_log(number(1 + x.re, x.im));
}

static inline C unary_log2(C x)
{
    const R ln2 = (R)0.69314718055994530942;
    const C y = unary_log(x);
    return number(y.re / ln2, y.im / ln2);
}

static inline C unary_log10(C x)
{
    const R ln10 = (R)2.30258509299404568402;
    const C y = unary_log(x);
    return number(y.re / ln10, y.im / ln10);
}

static void unary_sin(int64_t n, C *y, const C *x)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = of_libm(sin(to_libm(x[i])));
}

static void unary_cos(int64_t n, C *y, const C *x)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = of_libm(cos(to_libm(x[i])));
}

static void unary_tan(int64_t n, C *y, const C *x)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = of_libm(tan(to_libm(x[i])));
}

static inline C unary_asin(C x)
{
    return of_libm(asin(to_libm(x)));
}

static inline C unary_acos(C x)
{
    return of_libm(acos(to_libm(x)));
}

static inline C unary_atan(C x)
{
    return of_libm(atan(to_libm(x)));
}

static inline C unary_sinh(C x)
{
    return of_libm(sinh(to_libm(x)));
}

static inline C unary_cosh(C x)
{
    return of_libm(cosh(to_libm(x)));
}

static inline C unary_tanh(C x)
{
    return of_libm(tanh(to_libm(x)));
}

static inline C unary_asinh(C x)
{
    return of_libm(asinh(to_libm(x)));
}

static inline C unary_acosh(C x)
{
    return of_libm(acosh(to_libm(x)));
}

static inline C unary_atanh(C x)
{
    return of_libm(atanh(to_libm(x)));
}

static inline C unary_sigmoid(C x)
{
    const C e = unary_exp(unary_neg(x));
    return unary_reciprocal(number(1 + e.re, e.im));
}

static inline C unary_silu(C x)
{
    const C e = unary_exp(unary_neg(x));
    return quotient(x, number(1 + e.re, e.im));
}
#endif

#include "gen/unary_rows.h"
