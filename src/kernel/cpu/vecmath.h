/* Defines transcendental functions as inline functions without branches, so that the compiler vectorises any loop that calls them. A macro such as
 * vm_exp(x) chooses the function by the type of x, float or double.
 *
 * Most float functions compute in float (vecmath_float.h). The float versions of pow, sin and cos compute in double with short polynomials (relative
 * error about 2^-30) and round once; their error is at most 0.6 ulp. At instruction-set levels without fused multiply-add, the float versions of
 * gelu and mish also compute in double.
 * The double functions use the classic argument reductions with longer polynomials; their error is at most 4 ulp.
 * Functions whose names end in _normal or _near accept only the arguments that their comments state. They return the same bits as the function
 * without that ending, in fewer steps. A loop may call them after it has checked its arguments.
 * A result may differ between instruction-set levels in the last bit, because a level with fused multiply-add rounds less often. Within a level, a
 * result does not depend on the loop or the position of the element.
 * Infinities, NaN, signed zeros and subnormal numbers are treated as by the functions of the C standard. vm_sin and vm_cos need |x| <= VM_TRIG_LIMIT.
 * The polynomials interpolate at Chebyshev nodes; their coefficients were computed with 60 digits. */
#ifndef GRD_KERNEL_VECMATH_H
#define GRD_KERNEL_VECMATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/cpu/vecmath_float.h"

#define VM_TRIG_LIMIT 0x1p20

#define REAL double
#define WORD uint64_t
#define FUSED __builtin_fma
#define NAME(name) name
#include "kernel/cpu/vecmath_bits.h"

/* Returns the rounding error a * b - p of a product, where p is a * b rounded. The result is exact with fused multiply-add, and nearly exact
 * without. */
GRD_INLINE double vm_product_error(double a, double b, double p)
{
#ifdef HAS_FMA
    return __builtin_fma(a, b, -p);
#else
    const double a_high = vm_from_bits(vm_bits(a) & 0xfffffffff8000000), a_low = a - a_high;
    const double b_high = vm_from_bits(vm_bits(b) & 0xfffffffff8000000), b_low = b - b_high;
    return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
}

/* Returns x clamped to [low, high], or NaN if x is NaN. */
GRD_INLINE double vm_clamp(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* Returns x clamped to [negative, positive]; the limits have the signs of their names. With AVX-512 this uses the faster minimum of 64-bit
 * integers, and NaN becomes one of the limits. */
GRD_INLINE double vm_between(double negative, double positive, double x)
{
#if defined(__AVX512F__)
    const int64_t high = (int64_t)vm_bits(positive), b = (int64_t)vm_bits(x);
    const uint64_t low = vm_bits(negative), most = (uint64_t)(b < high ? b : high);
    return vm_from_bits(most < low ? most : low);
#else
    return vm_clamp(x, negative, positive);
#endif
}

/* Adding 1.5 * 2^52 to x with |x| < 2^51 rounds x to an integer and leaves that integer in two's complement in the low bits of the sum. */
#define VM_ROUNDER 0x1.8p52

/* Returns 2^n for n = t - VM_ROUNDER in [-1022, 1023]. */
GRD_INLINE double vm_power_of_two(double t)
{
    return vm_from_bits((vm_bits(t) + 1023) << 52);
}

/* ---- exp ----------------------------------------------------------------------------------------------------------------- */
/* Write x as n ln2 + r with an integer n and |r| <= ln2 / 2. Then e^x = 2^n e^r, and e^r - 1 is r + r^2 q(r) with a polynomial q. */
#define VM_LOG2E 0x1.71547652b82fep+0
#define VM_LN2 0x1.62e42fefa39efp-1
#define VM_LN2_HIGH 0x1.62e42fef00000p-1
#define VM_LN2_LOW 0x1.473de6af278edp-34

/* Returns q(r) = (e^r - 1 - r) / r^2 with the accuracy that float results need. */
GRD_INLINE double vm_exp_q_short(double r)
{
    static const double c[] = {0.5000000013481058,   0.16666666681640166,   0.041666464772966816,
                               0.008333310908565454, 0.0013933666900006931, 0.00019891009596308316};
    return vm_poly(c, 6, r);
}

/* Returns q(r) = (e^r - 1 - r) / r^2 with the accuracy that double results need. */
GRD_INLINE double vm_exp_q(double r)
{
    static const double c[] = {0.5000000000000001,     0.16666666666666669,   0.041666666666624066,   0.008333333333330056,
                               0.0013888888917245787,  0.0001984126986307828, 2.4801521246131495e-05, 2.7557268421682613e-06,
                               2.7620112139572367e-07, 2.510040371657669e-08};
    return vm_poly_abreast(c, 10, r);
}

/* Returns e^x with the accuracy that float results need. For |x| > 200 the result rounds to 0 or infinity as a float. */
GRD_INLINE double vm_exp_short(double x)
{
    x = vm_clamp(x, -200, 200);
    const double t = vm_fma(x, VM_LOG2E, VM_ROUNDER);
    const double r = vm_fma(t - VM_ROUNDER, -VM_LN2, x);
    return vm_fma(r, vm_fma(r, vm_exp_q_short(r), 1), 1) * vm_power_of_two(t);
}

/* Returns 2^x with the accuracy that float results need. For |x| > 300 the result rounds to 0 or infinity as a float. */
GRD_INLINE double vm_exp2_short(double x)
{
    x = vm_clamp(x, -300, 300);
    const double t = x + VM_ROUNDER;
    const double r = (x - (t - VM_ROUNDER)) * VM_LN2;
    return vm_fma(r, vm_fma(r, vm_exp_q_short(r), 1), 1) * vm_power_of_two(t);
}

/* The number a * b. Both factors are normal numbers, and b is a power of two. Compute its product with x as (x * a) * b, because a * b may be
 * subnormal and would then have lost digits. */
struct vm_product {
    double a, b;
};

/* Returns e^(x + low) as the product of the two members of the result. */
GRD_INLINE struct vm_product vm_exp_product(double x, double low)
{
    x = vm_clamp(x, -1400, 711);
    const double t = vm_fma(x, VM_LOG2E, VM_ROUNDER), n = t - VM_ROUNDER;
    const double r = vm_fma(n, -VM_LN2_HIGH, x) + vm_fma(n, -VM_LN2_LOW, low);
    const double half = vm_fma(n, 0.5, VM_ROUNDER), rest = n - (half - VM_ROUNDER) + VM_ROUNDER;
    struct vm_product e = {(1 + vm_fma(r * r, vm_exp_q(r), r)) * vm_power_of_two(half), vm_power_of_two(rest)};
    return e;
}

/* e^x in two parts: e^x = 2^n (1 + w), where n = t - VM_ROUNDER is an integer. */
struct vm_exponential {
    double t, w;
};

/* Returns e^x in two parts t and w, with e^x = 2^n (1 + w), where n = t - VM_ROUNDER is an integer. */
GRD_INLINE struct vm_exponential vm_exponential(double x)
{
    const double t = vm_fma(x, VM_LOG2E, VM_ROUNDER), n = t - VM_ROUNDER;
    const double r = vm_fma(n, -VM_LN2_LOW, vm_fma(n, -VM_LN2_HIGH, x));
    return (struct vm_exponential){t, vm_fma(r * r, vm_exp_q(r), r)};
}

/* Returns e^x for x in [-708, 709], where neither e^x nor 1 / e^x is subnormal. */
GRD_INLINE double vm_exp_normal_double(double x)
{
    const struct vm_exponential e = vm_exponential(x);
    return vm_from_bits(vm_bits(1 + e.w) + (vm_bits(e.t) << 52));
}

/* Returns e^x. Multiplies by 2^n as two factors, so that a subnormal result is rounded only once. */
GRD_INLINE double vm_exp_double(double x)
{
    const struct vm_exponential e = vm_exponential(vm_clamp(x, -1400, 711));
    const uint64_t sum = vm_bits(e.t) + 2046, half = sum >> 1;
    return (1 + e.w) * vm_from_bits(half << 52) * vm_from_bits((sum - half) << 52);
}

GRD_INLINE double vm_exp2_double(double x)
{
    x = vm_clamp(x, -1080, 1025);
    const double t = x + VM_ROUNDER, n = t - VM_ROUNDER;
    const double f = x - n, r = f * VM_LN2;
    const double half = vm_fma(n, 0.5, VM_ROUNDER), rest = n - (half - VM_ROUNDER) + VM_ROUNDER;
    return (1 + vm_fma(r * r, vm_exp_q(r), r)) * vm_power_of_two(half) * vm_power_of_two(rest);
}

GRD_INLINE double vm_expm1_double(double x)
{
    const double a = vm_clamp(x, -50, 710);
    const double t = vm_fma(a, VM_LOG2E, VM_ROUNDER), n = t - VM_ROUNDER;
    const double r = vm_fma(n, -VM_LN2_HIGH, a) - n * VM_LN2_LOW;
    const double scale = vm_power_of_two(t - 1); /* 2^n / 2, because 2^n may overflow */
    const double y = 2 * vm_fma(scale, vm_fma(r * r, vm_exp_q(r), r), scale - 0.5);
    return vm_abs(x) < 0x1p-54 ? x : y;
}

/* ---- log ------------------------------------------------------------------------------------------------------------------- */
/* A positive number x in two parts: x = 2^exponent * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). */
struct vm_split {
    double f, exponent;
    uint64_t biased; /* exponent + 1023 */
};

/* Splits a positive normal x into f and exponent, with x = 2^exponent (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)). */
GRD_INLINE struct vm_split vm_split(double x)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    const uint64_t u = vm_bits(x) + (one - sqrt_half);
    struct vm_split s;
    s.biased = u >> 52;
    s.exponent = vm_from_bits(s.biased | 0x4330000000000000) - (0x1p52 + 1023);
    s.f = vm_from_bits((u & 0x000fffffffffffff) + sqrt_half) - 1;
    return s;
}

/* Returns y, the logarithm that the caller computed, if x is in (0, infinity). For all other x, returns log(x). */
GRD_INLINE double vm_log_special(double x, double y)
{
    y = x == INFINITY ? x : y;
    y = x > 0 ? y : NAN;
    return x == 0 ? -INFINITY : y;
}

/* Returns 1 / (2 + f) for 1 + f in [sqrt(1/2), sqrt(2)), by two Newton steps from a cubic approximation, because a vector division takes as long as
 * thirty multiplications. */
GRD_INLINE double vm_inverse_of_2_and(double f)
{
    static const double c[] = {0.49995695710714285, -0.2503862000360889, 0.12813332718832, -0.05713502297726911};
    const double d = 2 + f, y = vm_poly(c, 4, f), nearer = vm_fma(y, vm_fma(-d, y, 1), y);
    return vm_fma(nearer, vm_fma(-d, nearer, 1), nearer);
}

/* Returns tail = s (f^2 / 2 + z R(z)), with s = f / (2 + f), z = s^2 and a polynomial R. log(1 + f) is f - (f^2 / 2 - tail). */
GRD_INLINE double vm_log_tail(double f, double half_square)
{
    static const double c[] = {0.666666666666667,  0.3999999999989889,  0.28571428626253836, 0.22222211089379496,
                               0.1818289243253687, 0.15331611722055008, 0.14617807153417325};
    const double s = f * vm_inverse_of_2_and(f), z = s * s;
    return s * vm_fma(z, vm_poly_abreast(c, 7, z), half_square);
}

/* Returns log(2^exponent * (1 + f)). */
GRD_INLINE double vm_log_of_split(double f, double exponent)
{
    const double half_square = 0.5 * f * f;
    const double tail = vm_fma(exponent, VM_LN2_LOW, vm_log_tail(f, half_square));
    return vm_fma(exponent, VM_LN2_HIGH, f - (half_square - tail));
}

/* Splits a positive x into f and exponent, with x = 2^exponent (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)). A subnormal x is first scaled to a normal
 * number. */
GRD_INLINE struct vm_split vm_split_any(double x)
{
    const bool small = x < 0x1p-1022;
    struct vm_split s = vm_split(small ? x * 0x1p54 : x);
    s.exponent -= small ? 54 : 0;
    return s;
}

/* Returns log(x) for positive x that is neither subnormal nor infinite. */
GRD_INLINE double vm_log_normal_double(double x)
{
    const struct vm_split s = vm_split(x);
    return vm_log_of_split(s.f, s.exponent);
}

GRD_INLINE double vm_log_double(double x)
{
    const struct vm_split s = vm_split_any(x);
    return vm_log_special(x, vm_log_of_split(s.f, s.exponent));
}

/* Returns log(1 + x). 1 + x is split into 2^exponent (1 + f), and the rounding error of the sum 1 + x is added to f. */
GRD_INLINE double vm_log1p_double(double x)
{
    const double y = 1 + x, x_part = y - 1;
    const double error = (1 - (y - x_part)) + (x - x_part);
    const struct vm_split s = vm_split(y);
    const double f = vm_fma(error, vm_from_bits((s.biased < 2046 ? 2046 - s.biased : 0) << 52), s.f);
    const double result = vm_log_special(y, vm_log_of_split(f, s.exponent));
    return x == 0 ? x : result;
}

/* Returns the logarithm of x to a base other than e. inverse_high + inverse_low is 1 / log(base); two_high + two_low is the logarithm of 2 to this
 * base. */
GRD_INLINE double vm_log_base(double x, double inverse_high, double inverse_low, double two_high, double two_low)
{
    const struct vm_split s = vm_split_any(x);
    const double half_square = 0.5 * s.f * s.f;
    const double high = vm_from_bits(vm_bits(s.f - half_square) & 0xffffffff00000000);
    const double low = (s.f - high) - half_square + vm_log_tail(s.f, half_square);
    const double small = vm_fma(s.exponent, two_low, vm_fma(low + high, inverse_low, low * inverse_high));
    const double a = s.exponent * two_high, b = high * inverse_high;
    const double sum = a + b;
    const double y = sum + (small + ((a - sum) + b));
    return vm_log_special(x, y);
}

GRD_INLINE double vm_log2_double(double x)
{
    return vm_log_base(x, 0x1.715476p+0, 0x1.4ae0bf85ddf44p-26, 1, 0);
}

GRD_INLINE double vm_log10_double(double x)
{
    return vm_log_base(x, 0x1.bcb7b1p-2, 0x1.49b9438ca9aaep-28, 0x1.34413508p-2, 0x1.f79fef311f12bp-34);
}

/* Returns log((1 + s) / (1 - s)) = 2 s + 2/3 s^3 + ... for |s| <= 0.172, with a relative error of 2^-43. */
GRD_INLINE double vm_log_series_short(double s)
{
    static const double c[] = {0.6666666666737868, 0.3999999879244169, 0.28571755535032944, 0.22191337428065783, 0.19363884986633198};
    const double z = s * s;
    return vm_fma(z, vm_poly(c, 5, z), 2) * s;
}

/* Returns log(1 + f) for f >= 0 with the accuracy that float results need, even if 1 + f rounds to 1. */
GRD_INLINE double vm_log1p_short(double f)
{
    const struct vm_split split = vm_split(1 + f);
    const double near = f < 0.4 ? f : split.f, exponent = f < 0.4 ? 0 : split.exponent;
    return vm_fma(exponent, VM_LN2, vm_log_series_short(near / (2 + near)));
}

/* ---- pow --------------------------------------------------------------------------------------------------------------------- */
/* Returns x^y with the accuracy that a float result needs; x and y are floats converted to double. The result is 2^(y log2 |x|), negated if x is
 * negative and y is odd. log2 |x| is computed with a relative error of only 2^-43, because multiplying it by y enlarges its absolute error. */
GRD_INLINE double vm_pow_short(double x, double y)
{
    const double a = vm_abs(x), size = vm_abs(y), half = 0.5 * y;
    const struct vm_split split = vm_split(a);
    double log2 = vm_fma(vm_log_series_short(split.f / (2 + split.f)), VM_LOG2E, split.exponent);
    log2 = a == 0 ? -INFINITY : log2;
    log2 = a == INFINITY ? INFINITY : log2;
    const double exponent = a == 1 ? 0 : y * log2;
    double result = vm_exp2_short(exponent);

    /* floats from 2^24 on are even integers */
    const bool whole = (size >= 0x1p24) | (y + VM_ROUNDER - VM_ROUNDER == y);
    const bool odd = (size < 0x1p24) & whole & (half + VM_ROUNDER - VM_ROUNDER != half);
    const bool undefined = (x < 0) & (a != INFINITY) & !whole;
    result = undefined ? NAN : result;
    result = odd ? vm_copysign(result, x) : result;
    result = x != x ? x : result;
    return y == 0 ? 1 : result;
}

/* ---- sin, cos ------------------------------------------------------------------------------------------------------------------ */
/* With x = n pi/2 + r and |r| <= pi/4, n mod 4 selects sin(r) or cos(r) and the sign. pi/2 is split into a sum of numbers whose products with n are
 * exact. */
#define VM_TWO_OVER_PI 0x1.45f306dc9c883p-1
#define VM_PIO2_1 0x1.921fb54400000p+0
#define VM_PIO2_2 0x1.0b4611a600000p-34
#define VM_PIO2_3 0x1.3198a2e037073p-69
#define VM_PIO2_REST 0x1.0b4611a626331p-34 /* VM_PIO2_2 + VM_PIO2_3 */

/* Returns sin(x - n pi) for |x - n pi| <= pi/2, negated if `turns` is odd, with the accuracy that float results need. */
GRD_INLINE double vm_sin_near(double x, double n, uint64_t turns)
{
    static const double sine[] = {-0.16666666663881236, 0.008333332768753579, -0.000198410865614788, 2.75364635625748e-06,
                                  -2.4080190432969638e-08};
    const double r = vm_fma(-n, 2 * VM_PIO2_REST, vm_fma(-n, 2 * VM_PIO2_1, x)), z = r * r;
    return vm_from_bits(vm_bits(r * vm_fma(z, vm_poly(sine, 5, z), 1)) ^ turns << 63);
}

/* Returns sin(x) with the accuracy that float results need. */
GRD_INLINE double vm_sin_short(double x)
{
    const double t = vm_fma(x, 0.5 * VM_TWO_OVER_PI, VM_ROUNDER);
    return vm_sin_near(x, t - VM_ROUNDER, vm_bits(t));
}

/* Returns cos(x) as the sine of x + pi/2, with the accuracy that float results need. */
GRD_INLINE double vm_cos_short(double x)
{
    const double t = vm_fma(x, 0.5 * VM_TWO_OVER_PI, 0.5) + VM_ROUNDER;
    return vm_sin_near(x, (t - VM_ROUNDER) - 0.5, vm_bits(t));
}

/* Returns sin(x + quarter * pi/2). */
GRD_INLINE double vm_trig(double x, uint64_t quarter)
{
    static const double sine[] = {-0.16666666666666666,  0.00833333333333092,    -0.00019841269836717035,
                                  2.755731608103071e-06, -2.505112736468637e-08, 1.5917806876037754e-10};
    static const double cosine[] = {0.041666666666666664,    -0.001388888888888738,  2.4801587298739702e-05,
                                    -2.7557317258266183e-07, 2.0876143465572525e-09, -1.1382430722901563e-11};
    const double t = vm_fma(x, VM_TWO_OVER_PI, VM_ROUNDER), n = t - VM_ROUNDER;
    /* r + low = x - n pi/2, where `low` is what r loses by rounding */
    const double first = vm_fma(-n, VM_PIO2_1, x), difference = vm_fma(-n, VM_PIO2_2, first);
    const double tail = vm_fma(-n, VM_PIO2_3, vm_fma(-n, VM_PIO2_2, first - difference));
    const double r = difference + tail, low = (difference - r) + tail, z = r * r;
    quarter += vm_bits(t);
    const double s = r + vm_fma(r * z, vm_poly_abreast(sine, 6, z), vm_fma(-0.5 * z, low, low));
    const double w = vm_fma(z, -0.5, 1);
    const double c = w + (vm_fma(z, -0.5, 1 - w) + vm_fma(z * z, vm_poly_abreast(cosine, 6, z), -r * low));
    const double y = (quarter & 1) != 0 ? c : s;
    return vm_from_bits(vm_bits(y) ^ ((quarter & 2) << 62));
}

GRD_INLINE double vm_sin_double(double x)
{
    const double y = vm_trig(x, 0);
    return x == 0 ? x : y;
}

GRD_INLINE double vm_cos_double(double x)
{
    return vm_trig(x, 1);
}

GRD_INLINE double vm_tanh_double(double x)
{
    const double t = vm_expm1_double(2 * vm_clamp(vm_abs(x), 0, 22));
    return vm_signed(t / (t + 2), x);
}

/* Returns a / (1 + e^y) for y up to 760. Divides by 2^-96 (1 + e^y), which does not overflow, and multiplies by 2^-96 last, so that a subnormal
 * result is rounded only once. e^y is 2^n (1 + w), and the rounding error of 1 + 2^n is added to the divisor. */
GRD_INLINE double vm_logistic_double(double a, double y)
{
    const struct vm_exponential e = vm_exponential(y);
    const double small = 0x1p-96, scale = vm_power_of_two(e.t - 96), one = small + scale, one_low = small - (one - scale);
    return a / (one + vm_fma(scale, e.w, one_low)) * small;
}

GRD_INLINE double vm_sigmoid_double(double x)
{
    const double s = vm_logistic_double(1, vm_between(-40, 746, -x));
    return x == x ? s : x;
}

/* Returns x / (1 + e^-x). -infinity gives NaN, as -infinity / infinity does. */
GRD_INLINE double vm_silu_double(double x)
{
    const double y = vm_logistic_double(x < -760 ? -760 : x, vm_between(-40, 760, -x));
    const double right = x > 40 ? x : y;
    return x > -INFINITY ? right : NAN;
}

GRD_INLINE double vm_softplus_double(double x)
{
    const double y = vm_log1p_double(vm_exp_double(x));
    return x <= 40 ? y : x;
}

/* ---- erf, gelu ----------------------------------------------------------------------------------------------------------------------- */
/* Returns e^(b^2) erfc(b) for b in [0, 27.5]. It is p(u) / (b + 4) with a polynomial p and u = (b - 4) / (b + 4). */
GRD_INLINE double vm_erfcx(double b)
{
    static const double c[] = {1.095995661000491,       -0.9765487290808821,     0.7732087022652375,      -0.5408538313132207,
                               0.3308515878779825,      -0.17401093724042524,    0.07638151491000642,     -0.026370053332541235,
                               0.0061120556477607425,   -0.00028095893420234937, -0.00045505263527494783, 0.0001768131875167485,
                               -3.635338935865469e-06,  -1.8862141788750368e-05, 4.694725890285188e-06,   1.4269062796438086e-06,
                               -8.464456189715969e-07,  -7.912789673646787e-08,  1.2408010985923537e-07,  3.5265157733177e-09,
                               -1.5224847883687636e-08, -6.973176548183896e-10,  8.892365082453874e-10};
    const double u = (b - 4) / (b + 4), u2 = u * u, u4 = u2 * u2;
    return vm_fma(vm_poly(c + 12, 11, u), u4 * u4 * u4, vm_poly(c, 12, u)) / (b + 4);
}

/* Returns e^(b^2) erfc(b) for b in [0, 14.5] with the accuracy that float results need. It is p(u) / (b + 3) with a polynomial p and u = (b - 3) / (b
 * + 3). */
GRD_INLINE double vm_erfcx_short(double b)
{
    static const double c[] = {1.0740069070899243,     -0.8833944533017201,     0.5902283577293508,     -0.31046724544195786,
                               0.11952773645583661,    -0.02682759610122276,    -0.0012122981091737324, 0.003036977368128681,
                               -0.0005471072055244758, -0.00028649168811159455, 9.808030932569633e-05,  4.0485547824225195e-05};
    const double inverse = 1 / (b + 3);
    return vm_poly(c, 12, (b - 3) * inverse) * inverse;
}

/* Returns erf(x) for |x| <= 1. */
GRD_INLINE double vm_erf_near_double(double x)
{
    static const double c[] = {1.1283791670955126,     -0.3761263890318375,     0.11283791670954879,    -0.026866170645076792,
                               0.0052239776248180145,  -0.000854832698083379,   0.0001205533111164271,  -1.4925595266831182e-05,
                               1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09,
                               5.957176147748911e-11};
    return x * vm_poly(c, 13, x * x);
}

/* Returns erf(x) for x in [1, 6.1]. It is 1 - e^(-x^2) p(u) / (x + 5) with a polynomial p and u = (x - 5) / (x + 5). From 5.93 on it rounds to 1. */
GRD_INLINE double vm_erf_far(double x)
{
    static const double c[] = {1.1070463773306862,    -1.0262325991519283,     0.8811773333025705,     -0.6996919595878245,
                               0.5124334778905391,    -0.34481387753465714,    0.21201690686674685,    -0.11819631196227791,
                               0.05906375827706164,   -0.02600048660373351,    0.00975862789164573,    -0.003029420119042228,
                               0.0005171417878669028, -0.00013669226579566892, -0.00011497403619220153};
    const double inverse = 1 / (x + 5), u = (x - 5) * inverse;
    return 1 - vm_exp_normal_double(-x * x) * inverse * vm_poly_abreast(c, 15, u);
}

GRD_INLINE double vm_erf_double(double x)
{
    const double a = vm_clamp(vm_abs(x), 0, 6), small = vm_erf_near_double(a), large = vm_erf_far(a);
    return vm_signed(a < 1 ? small : large, x);
}

/* Returns x Phi(x), where Phi is the normal distribution function. With a = |x| this is max(x, 0) - a Phi(-a), and Phi(-a) = e^(-a^2 / 2) p(u) / (a +
 * 4) with a polynomial p and u = (a - 4) / (a + 4). a^2 and 1 / (a + 4) are computed as sums of two numbers. -infinity gives NaN, as the formula with
 * erf does. */
GRD_INLINE double vm_gelu_double(double x)
{
    static const double c[] = {0.7552851304157515,     -0.6078966419718921,     0.38713740074221453,     -0.1865218579596572,
                               0.060396574890936326,   -0.007540188966728124,   -0.003479692367389438,   0.0016308184576104754,
                               0.00013334431237575233, -0.00023109493536271035, -1.9082583511261594e-06, 3.514468706982154e-05,
                               7.16666225579593e-07,   -5.9201766151921e-06,    -6.296975544880668e-07,  1.021560576758331e-06,
                               2.7180857396675063e-07, -1.5497243908691357e-07, -8.541543325641438e-08,  1.3284881767700552e-08,
                               1.962560681648974e-08,  1.918245392136965e-09,   -2.524160137296985e-09,  -7.268937522870068e-10};
    const double a = vm_clamp(vm_abs(x), 0, 38.8), half = -0.5 * a, square = half * a;
    const struct vm_product e = vm_exp_product(square, vm_product_error(half, a, square));
    const double inverse = 1 / (a + 4), part = a * inverse, part_error = vm_product_error(a, inverse, part);
    const double inverse_low = inverse * (((1 - 4 * inverse) - part) - part_error), part_low = part_error + a * inverse_low;
    const double u = (1 - 8 * inverse) - 8 * inverse_low, u2 = u * u, u4 = u2 * u2;
    const double rest = vm_fma(vm_poly(c + 13, 11, u), u4 * u4 * u4, vm_poly(c + 1, 12, u)), step = u * rest;
    const double p = c[0] + step, p_low = vm_product_error(u, rest, step) + (step - (p - c[0]));
    const double tail = e.a * vm_fma(p, part, vm_fma(p, part_low, p_low * part)) * e.b;
    return x > -INFINITY ? (x >= 0 ? x : -0.0) - tail : NAN;
}

/* Returns x (1 + tanh(u / 2)) / 2 as x / (1 + e^-u) with u = x v and v = 2 sqrt(2 / pi) (1 + 0.044715 x^2). The rounding errors of u and v are
 * computed too and taken into account. */
GRD_INLINE double vm_gelu_tanh_double(double x)
{
    const double first = 0x1.9884533d43651p+0, first_low = -0x1.cbc0d30ebfd15p-54;
    const double third = 0x1.2444f2a4d8b4bp-4, third_low = -0x1.6c843a29d1c70p-61;
    const double a = vm_clamp(vm_abs(x), 0, 40), z = a * a, z_low = vm_product_error(a, a, z);
    const double w = third * z, w_low = vm_product_error(third, z, w) + (third * z_low + third_low * z);
    const double v = first + w, more = first > w ? first : w, less = first > w ? w : first;
    const double v_low = (less - (v - more)) + (w_low + first_low);
    const double u = a * v, u_low = vm_product_error(a, v, u) + a * v_low;
    const struct vm_product e = vm_exp_product(-u, -u_low);
    const double y = (x < 0 ? -a * e.a : x) / (1 + e.a * e.b) * (x < 0 ? e.b : 1);
    return x > -INFINITY ? y : NAN;
}

/* Returns mish(x) = x tanh(log(1 + e)) as x n / (n + 2) with e = exp(x) and n = e (e + 2). e is stored as two factors; the second factor is
 * multiplied last, so that a subnormal result is rounded only once. */
GRD_INLINE double vm_mish_double(double x)
{
    const struct vm_product e = vm_exp_product(x < 20 ? x : 20, 0);
    const double more = e.a * e.b + 2, a = x < 20 ? vm_clamp(x, -1500, 20) : x;
    const double y = a * (e.a * more / vm_fma(e.a * more, e.b, 2)) * e.b;
    const double right = x < 20 ? y : x;
    return x == -INFINITY ? NAN : right;
}

#ifndef HAS_FMA
/* gelu, gelu_tanh and mish for floats at instruction-set levels without fused multiply-add. They compute in double. Computing in float would take
 * longer, because without fused multiply-add the rounding error of a product takes many operations. */
GRD_INLINE float vm_gelu_float(float x)
{
    const double a = vm_clamp(vm_abs(x), 0, 14.5);
    const double q = 0.5 * vm_exp_short(-0.5 * a * a) * vm_erfcx_short(a * 0x1.6a09e667f3bcdp-1);
    const double y = x < 0 ? -a * q : x * (1 - q);
    return x > -INFINITY ? (float)y : NAN;
}

GRD_INLINE float vm_gelu_tanh_float(float x)
{
    const double a = x, y = a / (1 + vm_exp_short(-1.5957691216057308 * vm_fma(0.044715 * a * a, a, a)));
    return x > -INFINITY ? (float)y : NAN;
}

GRD_INLINE float vm_mish_float(float x)
{
    const double a = x < -125 ? -125 : x, e = vm_exp_short(a < 20 ? a : 20), n = e * (e + 2), y = a * (n / (n + 2));
    return x > -INFINITY ? (float)y : NAN;
}
#endif

/* ---- By type ---------------------------------------------------------------------------------------------------------------------------- */
GRD_INLINE float vm_pow_float(float x, float y)
{
    return (float)vm_pow_short(x, y);
}

GRD_INLINE float vm_sin_float(float x)
{
    return (float)vm_sin_short(x);
}

GRD_INLINE float vm_cos_float(float x)
{
    return (float)vm_cos_short(x);
}

#define vm_exp(x) _Generic((x), float : vm_exp_float, double : vm_exp_double)(x)
#define vm_exp2(x) _Generic((x), float : vm_exp2_float, double : vm_exp2_double)(x)
#define vm_expm1(x) _Generic((x), float : vm_expm1_float, double : vm_expm1_double)(x)
#define vm_log(x) _Generic((x), float : vm_log_float, double : vm_log_double)(x)
#define vm_log2(x) _Generic((x), float : vm_log2_float, double : vm_log2_double)(x)
#define vm_log10(x) _Generic((x), float : vm_log10_float, double : vm_log10_double)(x)
#define vm_log1p(x) _Generic((x), float : vm_log1p_float, double : vm_log1p_double)(x)
#define vm_sin(x) _Generic((x), float : vm_sin_float, double : vm_sin_double)(x)
#define vm_cos(x) _Generic((x), float : vm_cos_float, double : vm_cos_double)(x)
#define vm_tanh(x) _Generic((x), float : vm_tanh_float, double : vm_tanh_double)(x)
#define vm_sigmoid(x) _Generic((x), float : vm_sigmoid_float, double : vm_sigmoid_double)(x)
#define vm_silu(x) _Generic((x), float : vm_silu_float, double : vm_silu_double)(x)
#define vm_softplus(x) _Generic((x), float : vm_softplus_float, double : vm_softplus_double)(x)
#define vm_mish(x) _Generic((x), float : vm_mish_float, double : vm_mish_double)(x)
#define vm_erf(x) _Generic((x), float : vm_erf_float, double : vm_erf_double)(x)
#define vm_gelu(x) _Generic((x), float : vm_gelu_float, double : vm_gelu_double)(x)
#define vm_gelu_tanh(x) _Generic((x), float : vm_gelu_tanh_float, double : vm_gelu_tanh_double)(x)

#endif
