/* Defines tan, inverse trigonometric and hyperbolic functions. Like the functions of vecmath.h, they are inline and without branches. Errors
 * are at most 1.6 ulp for float32 (`make accuracy`) and, on random arguments, at most 2 ulp for float64. For infinities, NaN and zeros the results
 * are those that the C standard requires. The float coefficients are minimax fits, made like those in vecmath_float.h. */
#ifndef GRD_KERNEL_VECMATH_ANGLE_H
#define GRD_KERNEL_VECMATH_ANGLE_H

#include "kernel/cpu/vecmath.h"

/* ---- tan ----------------------------------------------------------------------------------------------------------------- */
/* Returns tan(x) for |x| <= VM_TRIG_LIMIT. x - n pi/2 is computed in double and split into two floats, r + low. Let s = r + low + r^3 p(r^2)
 * with a polynomial p. The result is s for even n, and -1 / s for odd n. */
GRD_INLINE float vm_tan_float(float x)
{
    static const float c[] = {0x1.55556p-2f, 0x1.110da2p-3f,  0x1.bad8c2p-5f, 0x1.5ccca4p-6f,
                              0x1.6289bp-7f, 0x1.c731cap-14f, 0x1.1e3a36p-8f};
    const double t = vm_fma(x, VM_TWO_OVER_PI, VM_ROUNDER), n = t - VM_ROUNDER;
    const double angle = (x - n * VM_PIO2_1) - n * VM_PIO2_REST;
    const float r = (float)angle, low = (float)(angle - r), z = r * r;
    const float tail = vm_fma_float(r * z, vm_poly_float(c, 7, z), vm_fma_float(z, low, low));
    const float even = r + tail, even_low = (r - even) + tail;
    /* Computes -1 / (even + even_low). One Newton step corrects the rounding error of the quotient. */
    const float inverse = -1 / even, error = vm_fma_float(inverse, even_low, vm_fma_float(inverse, even, 1));
    const float y = ((uint32_t)vm_bits(t) & 1) != 0 ? vm_fma_float(inverse, error, inverse) : even;
    return x == 0 ? x : y;
}

GRD_INLINE double vm_tan_double(double x)
{
    return vm_sin_double(x) / vm_cos_double(x);
}

/* ---- asin, acos ---------------------------------------------------------------------------------------------------------- */
/* The arcsine of a number a in [0, 1] in parts. For a <= 1/2, asin(a) is s + tail with s = a. For a > 1/2 (`above`), asin(a) is pi/2 - 2 (s + tail)
 * with s = sqrt((1 - a) / 2). In both cases s + tail is asin(s) = s + s^3 p(s^2) with a polynomial p. */
struct vm_arc_float {
    float s, tail;
    bool above;
};

/* Returns asin(a) for a in [0, 1], in the parts that struct vm_arc_float defines. */
GRD_INLINE struct vm_arc_float vm_arc_float(float a)
{
    static const float c[] = {0x1.5555c8p-3f, 0x1.33020ap-4f, 0x1.747a46p-5f, 0x1.8c561p-6f, 0x1.594094p-5f};
    const bool above = a > 0.5f;
    const float z = above ? vm_fma_float(a, -0.5f, 0.5f) : a * a, root = sqrtf(z), s = above ? root : a;
    const float lost = (above & (root > 0)) ? vm_fma_float(-root, root, z) / (2 * root) : 0;
    return (struct vm_arc_float){s, vm_fma_float(s * z, vm_poly_float(c, 5, z), lost), above};
}

/* The arcsine of a double a in [0, 1] in parts. For a <= 1/2, asin(a) is s + tail with s = a. For a > 1/2 (`above`), asin(a) is pi/2 - 2 (s + tail)
 * with s = sqrt((1 - a) / 2). In both cases s + tail is asin(s). */
struct vm_arc {
    double s, tail;
    bool above;
};

GRD_INLINE struct vm_arc vm_arc_double(double a)
{
    static const double c[] = {0x1.5555555555577p-3, 0x1.333333332e138p-4, 0x1.6db6db7211f03p-5, 0x1.f1c71a9528f78p-6,
                               0x1.6e8bded999ea5p-6, 0x1.1c49f0dcd385fp-6, 0x1.ca1f80ea78838p-7, 0x1.7585f3515e0c7p-7,
                               0x1.613a2bdfcd75p-7,  0x1.e61a97573e691p-9, 0x1.6390b3d7c9f1fp-6, -0x1.57ebeef3b0d9ap-6,
                               0x1.0b40dac9fa4a4p-5};
    const bool above = a > 0.5;
    const double z = above ? (1 - a) * 0.5 : a * a, root = sqrt(z), s = above ? root : a;
    const double lost = (above & (root > 0)) ? -vm_product_error(root, root, z) / (2 * root) : 0;
    return (struct vm_arc){s, vm_fma(s * z, vm_poly(c, 13, z), lost), above};
}

#define VM_PIO2_HIGH_FLOAT 0x1.921fb6p0f
#define VM_PIO2_LOW_FLOAT -0x1.777a5cp-25f
#define VM_PIO2_HIGH 0x1.921fb54442d18p0
#define VM_PIO2_LOW 0x1.1a62633145c07p-54

GRD_INLINE float vm_asin_float(float x)
{
    const struct vm_arc_float arc = vm_arc_float(vm_abs_float(x));
    const float high = VM_PIO2_HIGH_FLOAT - (2 * arc.s - vm_fma_float(-2, arc.tail, VM_PIO2_LOW_FLOAT));
    return vm_copysign_float(arc.above ? high : arc.s + arc.tail, x);
}

GRD_INLINE double vm_asin_double(double x)
{
    const struct vm_arc arc = vm_arc_double(vm_abs(x));
    const double high = VM_PIO2_HIGH - (2 * arc.s - vm_fma(-2, arc.tail, VM_PIO2_LOW));
    return vm_copysign(arc.above ? high : arc.s + arc.tail, x);
}

GRD_INLINE float vm_acos_float(float x)
{
    const struct vm_arc_float arc = vm_arc_float(vm_abs_float(x));
    const float signed_tail = x < 0 ? -arc.tail : arc.tail, middle = VM_PIO2_HIGH_FLOAT - (x - (VM_PIO2_LOW_FLOAT - signed_tail));
    const float left = 2 * (VM_PIO2_HIGH_FLOAT - (arc.s - (VM_PIO2_LOW_FLOAT - arc.tail))), right = 2 * (arc.s + arc.tail);
    const float outer = x < 0 ? left : right;
    return arc.above ? outer : middle;
}

GRD_INLINE double vm_acos_double(double x)
{
    const struct vm_arc arc = vm_arc_double(vm_abs(x));
    const double signed_tail = x < 0 ? -arc.tail : arc.tail, middle = VM_PIO2_HIGH - (x - (VM_PIO2_LOW - signed_tail));
    const double left = 2 * (VM_PIO2_HIGH - (arc.s - (VM_PIO2_LOW - arc.tail))), right = 2 * (arc.s + arc.tail);
    const double outer = x < 0 ? left : right;
    return arc.above ? outer : middle;
}

/* ---- atan -------------------------------------------------------------------------------------------------------------------- */
/* Returns p(z) for z up to 1, where p is the polynomial with atan(u) = u + u^3 p(u^2). */
GRD_INLINE float vm_atan_series_float(float z)
{
    static const float c[] = {-0x1.55553ep-2f, 0x1.9991e6p-3f,  -0x1.2420b4p-3f, 0x1.c08f52p-4f,  -0x1.58156ap-4f,
                              0x1.da6044p-5f,  -0x1.fe01dep-6f, 0x1.64cb2ap-7f,  -0x1.d4ae7ep-10f};
    return vm_poly_float(c, 9, z);
}

/* Returns atan(x). For a = |x| <= 1, atan(a) is u + u^3 p(u^2) with u = a. For larger a it is pi/2 + atan(-1 / a). The result has the sign of x. */
GRD_INLINE float vm_atan_float(float x)
{
    const float a = vm_abs_float(x), u = a > 1 ? -1 / a : a, z = u * u, tail = u * z * vm_atan_series_float(z);
    const float above = VM_PIO2_HIGH_FLOAT + (u + (tail + VM_PIO2_LOW_FLOAT));
    return vm_copysign_float(a > 1 ? above : u + tail, x);
}

/* Returns atan(x). Uses pi/2 + atan(-1 / |x|) for |x| > tan(3 pi/8), and pi/4 + atan((|x| - 1) / (|x| + 1)) for |x| between tan(pi/8) and tan(3
 * pi/8). */
GRD_INLINE double vm_atan_double(double x)
{
    static const double c[] = {-0x1.555555555553dp-2, 0x1.999999999586dp-3, -0x1.24924922ad6ap-3,  0x1.c71c70e60fc66p-4,
                               -0x1.745cf8dc11953p-4, 0x1.3b111910327f2p-4, -0x1.10ebb789b1f1ap-4, 0x1.df0f3e5e68cecp-5,
                               -0x1.9cd27cf72abd3p-5, 0x1.37d4f9eaa3854p-5, -0x1.2568e0e2d714ep-6};
    const double a = vm_abs(x);
    const bool middle = a > 0x1.a827999fcef32p-2, above = a > 0x1.3504f333f9de6p1;
    const double top = middle ? a - 1 : a, bottom = middle ? a + 1 : 1;
    const double u = above ? -1 / a : top / bottom, z = u * u, tail = u * z * vm_poly(c, 11, z);
    const double base = above ? VM_PIO2_HIGH : 0.5 * VM_PIO2_HIGH, low = above ? VM_PIO2_LOW : 0.5 * VM_PIO2_LOW;
    return vm_copysign(middle ? base + (u + (tail + low)) : u + tail, x);
}

/* ---- sinh, cosh --------------------------------------------------------------------------------------------------------------------- */
/* e^a / 2 as the sum value + low, as vm_half_exp_float(a) returns it. It overflows only if sinh(a) and cosh(a) do. */
struct vm_half_exp_float {
    float value, low;
};

GRD_INLINE struct vm_half_exp_float vm_half_exp_float(float a)
{
    const struct vm_power e = vm_power_float(vm_at_most(90, a), -0.0f);
    const struct vm_factors scale = vm_factors_float(e.t);
    const float half = vm_fma_float(0.5f, e.w, 0.5f), low = vm_fma_float(0.5f, e.w_low, vm_fma_float(0.5f, e.w, 0.5f - half));
    return (struct vm_half_exp_float){half * scale.a * scale.b, low * scale.a * scale.b};
}

GRD_INLINE double vm_half_exp_double(double a)
{
    const struct vm_product e = vm_exp_product(a, 0);
    return 0.5 * e.a * e.b;
}

/* Returns sinh(x), which is x + x^3 p(x^2) with a polynomial p for |x| < 1, otherwise (e^x - e^-x) / 2. */
GRD_INLINE float vm_sinh_float(float x)
{
    static const float c[] = {0x1.555556p-3f, 0x1.1110ep-7f, 0x1.a022bap-13f, 0x1.756c5cp-19f};
    const float a = vm_abs_float(x), z = a * a;
    const struct vm_half_exp_float half = vm_half_exp_float(a);
    const float below = vm_fma_float(a * z, vm_poly_float(c, 4, z), a), above = half.value - (0.25f / half.value - half.low);
    return vm_or_nan(x, vm_copysign_float(a < 1 ? below : above, x));
}

GRD_INLINE double vm_sinh_double(double x)
{
    static const double c[] = {0x1.5555555555556p-3, 0x1.111111111101ep-7,  0x1.a01a01a037247p-13, 0x1.71de3a3b072c6p-19,
                               0x1.ae646ff772e9p-26, 0x1.6116f23eac711p-33, 0x1.b5c9cc0f49559p-41};
    const double a = vm_abs(x), z = a * a, half = vm_half_exp_double(a);
    const double below = vm_fma(a * z, vm_poly(c, 7, z), a), above = half - 0.25 / half;
    const double y = vm_copysign(a < 1 ? below : above, x);
    return x == x ? y : x;
}

GRD_INLINE float vm_cosh_float(float x)
{
    const struct vm_half_exp_float half = vm_half_exp_float(vm_abs_float(x));
    return vm_or_nan(x, half.value + (0.25f / half.value + half.low));
}

GRD_INLINE double vm_cosh_double(double x)
{
    const double half = vm_half_exp_double(vm_abs(x)), y = half + 0.25 / half;
    return x == x ? y : x;
}

/* ---- asinh, acosh, atanh ------------------------------------------------------------------------------------------------------------ */
/* The float functions below compute in double, as log(1 + f) with an f that is computed without cancellation, and round once. Doubles use libm.
 *
 * Returns asinh(x), which has the sign of x. With a = |x| and r = sqrt(a^2 + 1), asinh(a) is log(a + r) = log(1 + f) with f = a + a^2 / (r + 1). */
GRD_INLINE float vm_asinh_float(float x)
{
    const double a = vm_abs(x), square = a * a, y = vm_log1p_short(a + square / (1 + sqrt(square + 1)));
    return vm_or_nan(x, vm_copysign_float(a < INFINITY ? (float)y : INFINITY, x));
}

/* Returns acosh(x) = log(x + sqrt(x^2 - 1)). With d = x - 1, this is log(1 + d + sqrt(d (d + 2))). */
GRD_INLINE float vm_acosh_float(float x)
{
    const double d = (double)x - 1, y = vm_log1p_short(d + sqrt(d * (d + 2)));
    const float inside = x < INFINITY ? (float)y : x;
    return x >= 1 ? inside : NAN;
}

/* Returns atanh(x) = log((1 + x) / (1 - x)) / 2. For |x| < 0.17 the logarithm is the series for log((1 + s) / (1 - s)) with s = |x|. */
GRD_INLINE float vm_atanh_float(float x)
{
    const double a = vm_abs(x);
    const struct vm_split split = vm_split((1 + a) / (1 - a));
    const double s = a < 0.17 ? a : split.f / (2 + split.f), exponent = a < 0.17 ? 0 : split.exponent;
    const double y = 0.5 * vm_fma(exponent, VM_LN2, vm_log_series_short(s)), at_one = a == 1 ? INFINITY : NAN;
    return vm_copysign_float((float)(a < 1 ? y : at_one), x);
}

#define vm_asinh(x) _Generic((x), float : vm_asinh_float, double : asinh)(x)
#define vm_acosh(x) _Generic((x), float : vm_acosh_float, double : acosh)(x)
#define vm_atanh(x) _Generic((x), float : vm_atanh_float, double : atanh)(x)
#define vm_tan(x) _Generic((x), float : vm_tan_float, double : vm_tan_double)(x)
#define vm_asin(x) _Generic((x), float : vm_asin_float, double : vm_asin_double)(x)
#define vm_acos(x) _Generic((x), float : vm_acos_float, double : vm_acos_double)(x)
#define vm_atan(x) _Generic((x), float : vm_atan_float, double : vm_atan_double)(x)
#define vm_sinh(x) _Generic((x), float : vm_sinh_float, double : vm_sinh_double)(x)
#define vm_cosh(x) _Generic((x), float : vm_cosh_float, double : vm_cosh_double)(x)

#endif
