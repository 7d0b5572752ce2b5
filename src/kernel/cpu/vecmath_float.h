/* Defines those functions of vecmath.h that compute results for floats in float instead of double, so that a vector has twice as many lanes as with
 * doubles.
 *
 * They are inline and have no branches. Where one more rounding would show in the result, the rounding error is carried along in a second float
 * (x_low for x). The errors, subnormal results included, are at most 1.2 ulp for exp, log, log2, log10, exp2, erf and mish; 1.7 for tanh, expm1,
 * log1p and softplus; 2 for sigmoid, silu and gelu_tanh; 4.1 for gelu. They were measured by `make accuracy`, with fused multiply-add on all 2^32
 * floats, and without it on a sample. gelu and mish need exact products and are in this file only for instruction-set levels with fused multiply-add.
 * The coefficients are minimax fits, computed with 40 digits and rounded to float one by one; after each rounding the others were fitted again. */
#ifndef GRD_KERNEL_VECMATH_FLOAT_H
#define GRD_KERNEL_VECMATH_FLOAT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/cpu/loop.h"

#define REAL float
#define WORD uint32_t
#define FUSED __builtin_fmaf
#define NAME(name) name##_float
#include "kernel/cpu/vecmath_bits.h"

/* vm_at_least returns max(negative, x) for a limit below 0. vm_at_most returns min(positive, x) for a limit above 0. If x is NaN, the result may be
 * the limit. Both functions read the bits of the two floats as integers and return the float with the smaller integer. The minimum of two integers
 * is one instruction. The minimum of two floats takes several if the result for NaN must be defined.
 * vm_at_least reads unsigned integers. These are smaller for positive floats than for negative floats, and for negative floats they are smaller the
 * nearer the float is to 0. vm_at_most reads signed integers. These are smaller for negative floats than for positive floats, and positive floats are
 * in the same order as their integers. */
GRD_INLINE float vm_at_least(float negative, float x)
{
    const uint32_t a = vm_bits_float(negative), b = vm_bits_float(x);
    return vm_from_bits_float(a < b ? a : b);
}

GRD_INLINE float vm_at_most(float positive, float x)
{
    const int32_t a = (int32_t)vm_bits_float(positive), b = (int32_t)vm_bits_float(x);
    return vm_from_bits_float((uint32_t)(a < b ? a : b));
}

/* Returns y, or x if x is NaN, so that the bits of a NaN result do not depend on the order of operands. */
GRD_INLINE float vm_or_nan(float x, float y)
{
    return x == x ? y : x;
}

/* ---- exp ----------------------------------------------------------------------------------------------------------------- */
/* Adding 1.5 * 2^23 to x with |x| < 2^22 rounds x to an integer and leaves that integer in two's complement in the low bits of the sum. */
#define VM_ROUNDER_FLOAT 0x1.8p23f
#define VM_LN2_HIGH_FLOAT 0x1.62e400p-1f /* its product with an integer below 512 is exact */
#define VM_LN2_LOW_FLOAT 0x1.7f7d1cp-20f

/* e^x in parts: e^x = 2^n (1 + w + w_low), where n = t - VM_ROUNDER_FLOAT is an integer. */
struct vm_power {
    float t, w, w_low;
};

/* Returns the parts t, w and w_low of e^(x + low) for |x| < 200. Let r = x + low - n log(2), so that |r| <= log(2) / 2. Then w + w_low is r + r^2
 * q(r), with a polynomial q. */
GRD_INLINE struct vm_power vm_power_float(float x, float low)
{
    const float t = vm_fma_float(x, 0x1.715476p0f, VM_ROUNDER_FLOAT), n = t - VM_ROUNDER_FLOAT;
    const float r = vm_fma_float(n, -VM_LN2_LOW_FLOAT, vm_fma_float(n, -VM_LN2_HIGH_FLOAT, x) + low), square = r * r;
    const float first = vm_fma_float(r, 0x1.55548cp-3f, 0x1p-1f), rest = vm_fma_float(r, 0x1.123d6cp-7f, 0x1.5554d8p-5f);
    const float q = vm_fma_float(square, vm_fma_float(square, 0x1.6d5f78p-10f, rest), first);
    const float w = vm_fma_float(square, q, r);
    return (struct vm_power){t, w, vm_fma_float(square, q, r - w)};
}

/* Returns 2^(n + more) for n = t - VM_ROUNDER_FLOAT and n + more in [-126, 127]. */
GRD_INLINE float vm_scale_float(float t, int more)
{
    return vm_from_bits_float((vm_bits_float(t) + (uint32_t)(127 + more)) << 23);
}

/* 2^n as a product of two factors, for n in [-254, 254]. If x is multiplied by a and then by b, a subnormal result is rounded only once. */
struct vm_factors {
    float a, b;
};

GRD_INLINE struct vm_factors vm_factors_float(float t)
{
    const uint32_t sum = vm_bits_float(t) + 254, half = sum >> 1;
    return (struct vm_factors){vm_from_bits_float(half << 23), vm_from_bits_float((sum - half) << 23)};
}

/* e^x in two parts: e^x = 2^n p, where n = t - VM_ROUNDER_FLOAT is an integer. */
struct vm_scaled {
    float t, p;
};

/* Returns e^x in two parts t and p, with e^x = 2^n p, where n = t - VM_ROUNDER_FLOAT is an integer. */
GRD_INLINE struct vm_scaled vm_scaled_exp_float(float x)
{
    static const float c[] = {0x1p-1f, 0x1.55548cp-3f, 0x1.5554d8p-5f, 0x1.123d6cp-7f, 0x1.6d5f78p-10f};
    const float t = vm_fma_float(x, 0x1.715476p0f, VM_ROUNDER_FLOAT), n = t - VM_ROUNDER_FLOAT;
    const float r = vm_fma_float(n, -VM_LN2_LOW_FLOAT, vm_fma_float(n, -VM_LN2_HIGH_FLOAT, x));
    return (struct vm_scaled){t, 1 + vm_fma_float(r * r, vm_poly_float(c, 5, r), r)};
}

/* Returns e^x for x in [-87, 88], where neither e^x nor 1 / e^x is subnormal. */
GRD_INLINE float vm_exp_normal_float(float x)
{
    const struct vm_scaled e = vm_scaled_exp_float(x);
    return vm_from_bits_float(vm_bits_float(e.p) + (vm_bits_float(e.t) << 23));
}

GRD_INLINE float vm_exp_float(float x)
{
    const struct vm_scaled e = vm_scaled_exp_float(vm_at_least(-104, vm_at_most(89, x)));
    const struct vm_factors scale = vm_factors_float(e.t);
    return vm_or_nan(x, e.p * scale.a * scale.b);
}

GRD_INLINE float vm_exp2_float(float x)
{
    static const float c[] = {0x1.62e430p-1f, 0x1.ebfbe2p-3f, 0x1.c6af6ep-5f, 0x1.3b28d2p-7f, 0x1.5f10aep-10f, 0x1.452158p-13f};
    const float a = vm_at_least(-151, vm_at_most(128, x)), t = a + VM_ROUNDER_FLOAT, f = a - (t - VM_ROUNDER_FLOAT);
    const struct vm_factors scale = vm_factors_float(t);
    return vm_or_nan(x, vm_fma_float(f, vm_poly_float(c, 6, f), 1) * scale.a * scale.b);
}

GRD_INLINE float vm_expm1_float(float x)
{
    const struct vm_power e = vm_power_float(vm_at_least(-18, vm_at_most(89, x)), -0.0f);
    const float half = vm_scale_float(e.t, -1),
                high = half - 0.5f; /* half = 2^n / 2, where n is encoded in e.t; 2^n itself may be infinite */
    const float sum = vm_fma_float(half, e.w, high), lost = vm_fma_float(half, e.w, high - sum);
    const float y = 2 * (sum + vm_fma_float(half, e.w_low, lost));
    return vm_abs_float(x) >= 0x1p-25f ? y : x;
}

/* ---- log ------------------------------------------------------------------------------------------------------------------- */
/* A positive number x in two parts: x = 2^exponent (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). */
struct vm_split_float {
    float f, exponent;
    uint32_t biased; /* exponent + 127, for normal x */
};

/* Splits a positive normal x into f and exponent, with x = 2^exponent (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)). */
GRD_INLINE struct vm_split_float vm_split_float(float x)
{
    const uint32_t sqrt_half = 0x3f3504f3, u = vm_bits_float(x) - sqrt_half;
    const int32_t exponent = (int32_t)u >> 23;
    return (struct vm_split_float){
        .biased = (uint32_t)exponent + 127, .exponent = (float)exponent, .f = vm_from_bits_float((u & 0x007fffff) + sqrt_half) - 1};
}

/* Splits a positive x into f and exponent, with x = 2^exponent (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)). A subnormal x is first scaled to a normal
 * number. */
GRD_INLINE struct vm_split_float vm_split_any_float(float x)
{
    const float up = x < 0x1p-126f ? 0x1p25f : 1, down = x < 0x1p-126f ? 25 : 0;
    struct vm_split_float s = vm_split_float(x * up);
    s.exponent -= down;
    return s;
}

/* Returns y, the logarithm that the caller computed, if x is in (0, infinity). For all other x, returns log(x). */
GRD_INLINE float vm_log_special_float(float x, float y)
{
    const float outside = x == 0 ? -INFINITY : NAN;
    y = x < INFINITY ? y : x;
    return x > 0 ? y : outside;
}

/* Returns log(1 + f) - f, which is -f^2 / 2 + f^3 p(f) with a polynomial p. */
GRD_INLINE float vm_log_tail_float(float f)
{
    static const float c[] = {-0.5f,          0x1.555554p-2f,  -0x1.000228p-2f, 0x1.99a01ap-3f, -0x1.547210p-3f,
                              0x1.22d946p-3f, -0x1.0d86a2p-3f, 0x1.055eeep-3f,  -0x1.38b312p-4f};
    return f * f * vm_poly_abreast_float(c, 9, f);
}

/* Returns log(1 + f + f_low) + exponent * log(2). */
GRD_INLINE float vm_log_sum_float(float f, float f_low, float exponent)
{
    const float tail = vm_fma_float(exponent, VM_LN2_LOW_FLOAT, vm_log_tail_float(f)) + f_low;
    return vm_fma_float(exponent, VM_LN2_HIGH_FLOAT, f + tail);
}

/* Returns log(x) for positive x that is neither subnormal nor infinite. */
GRD_INLINE float vm_log_normal_float(float x)
{
    const struct vm_split_float s = vm_split_float(x);
    return vm_log_sum_float(s.f, -0.0f, s.exponent);
}

GRD_INLINE float vm_log_float(float x)
{
    const struct vm_split_float s = vm_split_any_float(x);
    return vm_log_special_float(x, vm_log_sum_float(s.f, -0.0f, s.exponent));
}

/* Returns log(1 + x). 1 + x is split into 2^exponent (1 + f), and the rounding error of the sum 1 + x is added to f. */
GRD_INLINE float vm_log1p_float(float x)
{
    const float y = 1 + x, x_part = y - 1;
    const float error = (1 - (y - x_part)) + (x - x_part);
    const struct vm_split_float s = vm_split_float(y);
    const float scale = vm_from_bits_float((s.biased < 254 ? 254 - s.biased : 0) << 23);
    const float f = vm_fma_float(error, scale, s.f), f_low = vm_fma_float(error, scale, s.f - f);
    const float result = vm_log_special_float(y, vm_log_sum_float(f, f_low, s.exponent));
    return x == 0 ? x : result;
}

/* Returns the logarithm of x = 2^exponent (1 + f) to a base other than e. f and 1 / log(base) are each split into a high part of 12 bits and a rest,
 * so that the product of the high parts is exact. two_high + two_low is the logarithm of 2 to this base. */
GRD_INLINE float vm_log_base_float(float x, float inverse_high, float inverse_low, float two_high, float two_low)
{
    const struct vm_split_float s = vm_split_any_float(x);
    const float high = vm_from_bits_float(vm_bits_float(s.f) & 0xfffff000);
    const float tail = vm_log_tail_float(s.f), low = (s.f - high) + tail;
    const float small = vm_fma_float(low, inverse_high, vm_fma_float(s.f + tail, inverse_low, s.exponent * two_low));
    const float a = s.exponent * two_high, b = high * inverse_high, sum = a + b;
    return vm_log_special_float(x, sum + (((a - sum) + b) + small));
}

GRD_INLINE float vm_log2_float(float x)
{
    return vm_log_base_float(x, 0x1.714p+0f, 0x1.47652cp-12f, 1, 0);
}

GRD_INLINE float vm_log10_float(float x)
{
    return vm_log_base_float(x, 0x1.bcap-2f, 0x1.7b1526p-14f, 0x1.344p-2f, 0x1.3509f8p-18f);
}

/* ---- tanh, sigmoid and what is made of exp ----------------------------------------------------------------------------------------- */
/* Returns tanh(x), which is x + x^3 p(x^2) with a polynomial p for |x| < 5/8, otherwise 1 - 2 / (e^(2 |x|) + 1) with the sign of x. */
GRD_INLINE float vm_tanh_float(float x)
{
    static const float c[] = {-0x1.555534p-2f, 0x1.110762p-3f, -0x1.b8439ap-5f, 0x1.52532p-6f, -0x1.769de4p-8f};
    const float a = vm_abs_float(x), z = a * a;
    const float small = vm_fma_float(a * z, vm_poly_float(c, 5, z), a);
    const struct vm_power e = vm_power_float(2 * vm_at_most(10, a), -0.0f);
    const float scale = vm_scale_float(e.t, 0), large = 1 - 2 / vm_fma_float(scale, e.w, 1 + scale);
    return vm_signed_float(a >= 0.625f ? large : small, x);
}

/* Returns x / (1 + e^y) for y in [-40, 112], where `e` holds e^y in parts (see struct vm_power). Divides by 2^-64 (1 + e^y), which does not
 * overflow. */
GRD_INLINE float vm_logistic_float(float x, struct vm_power e)
{
    const float small = 0x1p-64f, scale = vm_scale_float(e.t, -64), one = small + scale, one_low = small - (one - scale);
    return x / (one + vm_fma_float(scale, e.w, one_low)) * small;
}

GRD_INLINE float vm_sigmoid_float(float x)
{
    return vm_or_nan(x, vm_logistic_float(1, vm_power_float(vm_at_least(-40, vm_at_most(104, -x)), -0.0f)));
}

/* Returns x / (1 + e^-x). -infinity gives NaN, as -infinity / infinity does. */
GRD_INLINE float vm_silu_float(float x)
{
    const float a = vm_at_least(-110, x);
    const float y = vm_logistic_float(a, vm_power_float(vm_at_least(-40, -a), -0.0f));
    const float right = x > 40 ? x : y;
    return x > -INFINITY ? right : NAN;
}

/* Returns log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). 1 + e^-|x| is written as 1 + f or 2 (1 + f), and f_low has the rounding error of f. */
GRD_INLINE float vm_softplus_float(float x)
{
    const struct vm_power power = vm_power_float(vm_at_least(-104, -vm_abs_float(x)), -0.0f);
    const float scale = vm_scale_float(power.t, 64) * 0x1p-64f, mantissa = 1 + power.w;
    const float e = mantissa * scale, e_low = (power.w - (mantissa - 1)) * scale;
    const float y = 1 + e, error = (e - (y - 1)) + e_low;
    const float half = y > 0x1.6a09e6p0f ? 0.5f : 1, exponent = y > 0x1.6a09e6p0f ? 1 : 0;
    const float high = y * half - 1, f = vm_fma_float(error, half, high), f_low = vm_fma_float(error, half, high - f);
    return vm_or_nan(x, (x > 0 ? x : 0) + vm_log_sum_float(f, f_low, exponent));
}

/* ---- erf, gelu ----------------------------------------------------------------------------------------------------------------------- */
/* Returns erf(x) for |x| < 1, as x + x p(x^2) with a polynomial p. */
GRD_INLINE float vm_erf_near_float(float x)
{
    static const float c[] = {0x1.06eba8p-3f, -0x1.812740p-2f,  0x1.ce2d52p-4f, -0x1.b7fec4p-6f,
                              0x1.542fecp-8f, -0x1.a5197ap-11f, 0x1.4c5cb4p-14f};
    return vm_fma_float(x, vm_poly_float(c, 7, x * x), x);
}

/* Returns erf(x). For |x| >= 1 the absolute value of the result is 1 - e^(p(|x|)) with a polynomial p. */
GRD_INLINE float vm_erf_float(float x)
{
    static const float c[] = {-0x1.723a4p-12f, -0x1.2085ep0f,   -0x1.46c4e4p-1f, -0x1.a60f18p-4f,
                              0x1.654b6cp-6f,  -0x1.81609ap-9f, 0x1.854facp-13f};
    const float a = vm_abs_float(x), b = vm_at_most(3.95f, a);
    const struct vm_power e = vm_power_float(vm_poly_float(c, 7, b), -0.0f);
    const float scale = vm_scale_float(e.t, 0), large = vm_fma_float(-scale, e.w, 1 - scale);
    return vm_signed_float(a >= 1 ? large : vm_erf_near_float(a), x);
}

#ifdef HAS_FMA
/* Returns mish(x) = x tanh(log(1 + e)) as x n / (n + 2) with e = exp(x) and n = e (e + 2). e and n are scaled by 2^64 until the end, so that their
 * rounding errors are not subnormal. -infinity gives NaN, as -infinity * 0 does. */
GRD_INLINE float vm_mish_float(float x)
{
    const float down = 0x1p-64f, a = vm_at_least(-125, vm_at_most(20, x));
    const struct vm_power power = vm_power_float(a, -0.0f);
    const float scale = vm_scale_float(power.t, 64), e = vm_fma_float(scale, power.w, scale);
    const float e_low = vm_fma_float(scale, power.w, scale - e) + scale * power.w_low;
    const float more = vm_fma_float(e, down, 2), more_low = vm_fma_float(e, down, 2 - more);
    const float n = e * more, n_low = vm_fma_float(e, more, -n) + vm_fma_float(e, more_low, e_low * more);
    const float below = vm_fma_float(n, down, 2), below_low = vm_fma_float(n_low, down, vm_fma_float(n, down, 2 - below));
    const float inverse = 1 / below, q = n * inverse;
    const float q_low = (vm_fma_float(-q, below, n) + vm_fma_float(-q, below_low, n_low)) * inverse;
    const float y = vm_copysign_float(vm_fma_float(a, q, a * q_low) * down, x), right = x > 20 ? x : y;
    return x > -INFINITY ? right : NAN;
}

/* Returns x Phi(x), where Phi is the normal distribution function. With a = |x| this is max(x, 0) - a Phi(-a), and a Phi(-a) = e^(-a^2 / 2) v p(u)
 * with a polynomial p, v = a / (a + 4) and u = 2 v - 1. Computing u from v adds hardly any error. -infinity gives NaN, as the formula with erf
 * does. */
GRD_INLINE float vm_gelu_float(float x)
{
    static const float c[] = {0x1.82b4bcp-1f,  -0x1.373e38p-1f, 0x1.8c6d9ep-2f,  -0x1.7e0030p-3f, 0x1.eed37ep-5f,
                              -0x1.ed11ecp-8f, -0x1.cc26a2p-9f, 0x1.9b0db4p-10f, 0x1.707c8ap-13f, -0x1.17bd62p-13f};
    const float a = vm_at_most(14.5f, vm_abs_float(x)), v = a / (a + 4);
    const float p = vm_poly_float(c, 10, vm_fma_float(2, v, -1));
    const float half = -0.5f * a, square = half * a;
    const struct vm_power e = vm_power_float(square, vm_fma_float(half, a, -square));
    const float y = v * vm_fma_float(e.w, p, p);
    const float result = vm_fma_float(y * vm_scale_float(e.t, 64), -0x1p-64f, vm_at_least(-0.0f, x));
    return x > -INFINITY ? result : NAN;
}

/* Returns x (1 + tanh(u / 2)) / 2 as x / (1 + e^-u) with u = x (2 sqrt(2 / pi) + w) and w = 2 sqrt(2 / pi) 0.044715 x^2. */
GRD_INLINE float vm_gelu_tanh_float(float x)
{
    const float first = 0x1.988454p0f, first_low = -0x1.857936p-25f, third = 0x1.2444f2p-4f, third_low = 0x1.49b16ap-29f;
    const float a = vm_at_least(-11, vm_at_most(11, x));
    const float z = a * a, z_low = vm_fma_float(a, a, -z);
    const float w = third * z, w_low = vm_fma_float(third, z, -w) + vm_fma_float(third, z_low, third_low * z);
    const float v = first + w, more = w > first ? w : first, less = w > first ? first : w;
    const float v_low = (less - (v - more)) + (w_low + first_low);
    const float u = a * v, u_low = vm_fma_float(a, v, -u) + a * v_low;
    const float y = vm_logistic_float(a, vm_power_float(vm_at_least(-40, -u), -u_low));
    const float right = x > 11 ? x : y;
    return x > -INFINITY ? right : NAN;
}
#endif

#endif
