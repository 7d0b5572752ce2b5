/* Defines pow for doubles, inline and without branches like the functions of vecmath.h. The error is at most 0.8 ulp. For infinities, NaN and zeros
 * the results are those that the C standard requires. */
#ifndef GRD_KERNEL_VECMATH_POWER_H
#define GRD_KERNEL_VECMATH_POWER_H

#include "kernel/cpu/vecmath.h"

#define VM_LN2_SHORT 0x1.62e42fefa2000p-1 /* its product with an integer below 2048 is exact */
#define VM_LN2_AFTER 0x1.9ef35793c7673p-41

/* A logarithm as the sum value + low, which has twice the digits of a double. */
struct vm_double_log {
    double value, low;
};

/* Returns the logarithm of a positive number a = 2^exponent (1 + f). With 1 + f = (1 + s) / (1 - s), log(1 + f) is 2 s + s^3 (2/3 + z p(z)), where z
 * = s^2 and p is a polynomial. The rounding errors of s, z and the sums are carried along. */
GRD_INLINE struct vm_double_log vm_log_in_two(double a)
{
    static const double c[] = {0x1.999999999999ap-2, 0x1.2492492492492p-2, 0x1.c71c71c71c71cp-3, 0x1.745d1745d1746p-3,
                               0x1.3b13b13b13b14p-3, 0x1.1111111111111p-3, 0x1.e1e1e1e1e1e1ep-4, 0x1.af286bca1af28p-4,
                               0x1.8618618618618p-4, 0x1.642c8590b2164p-4, 0x1.47ae147ae147bp-4};
    const double third = 0x1.5555555555555p-1, third_low = 0x1.5555555555555p-55;
    const struct vm_split split = vm_split_any(a);
    const double f = split.f, bottom = 2 + f, bottom_low = f - (bottom - 2), s = f / bottom, part = s * bottom;
    const double s_low = (((f - part) - vm_product_error(s, bottom, part)) - s * bottom_low) / bottom;
    const double z = s * s, z_low = vm_product_error(s, s, z) + 2 * s * s_low, p = vm_poly(c, 11, z), step = z * p;
    const double q = third + step, q_low = ((third - q) + step) + vm_fma(z_low, p, third_low);
    const double w = z * q, w_low = vm_product_error(z, q, w) + vm_fma(z, q_low, z_low * q);
    const double cubic = s * w, cubic_low = vm_product_error(s, w, cubic) + vm_fma(s, w_low, s_low * (2 + w));
    const double mantissa = 2 * s + cubic, mantissa_low = ((2 * s - mantissa) + cubic) + cubic_low;
    const double scale = split.exponent * VM_LN2_SHORT, value = scale + mantissa, rest = value - scale;
    const double low = (scale - (value - rest)) + (mantissa - rest) + vm_fma(split.exponent, VM_LN2_AFTER, mantissa_low);
    return (struct vm_double_log){value, low};
}

/* Returns e^(x + low) as the product of the two members of the result. The rounding errors of the reduced argument r and of the sum 1 + r are taken
 * into account. */
GRD_INLINE struct vm_product vm_exp_in_two(double x, double low)
{
    x = vm_clamp(x, -1400, 711);
    const double t = vm_fma(x, VM_LOG2E, VM_ROUNDER), n = t - VM_ROUNDER;
    const double near = x - n * VM_LN2_SHORT, after = vm_fma(n, -VM_LN2_AFTER, low), r = near + after, r_low = (near - r) + after;
    const double curve = vm_fma(r * r, vm_exp_q(r), vm_fma(r, r_low, r_low)), sum = 1 + r, sum_low = (1 - sum) + r;
    const double half = vm_fma(n, 0.5, VM_ROUNDER), rest = n - (half - VM_ROUNDER) + VM_ROUNDER;
    return (struct vm_product){(sum + (sum_low + curve)) * vm_power_of_two(half), vm_power_of_two(rest)};
}

GRD_INLINE double vm_pow_double(double x, double y)
{
    /* y is clamped to [-most, most]. If |y| is larger, the result overflows or vanishes anyway, unless |x| = 1. */
    const double a = vm_abs(x), size = vm_abs(y), half = 0.5 * size, most = 0x1p70;
    const struct vm_double_log log = vm_log_in_two(a);
    const double power = vm_clamp(y, -most, most), product = power * log.value;
    const double low = vm_product_error(power, log.value, product) + power * log.low;
    const double infinite = a == 0 ? -y : y; /* if log(a) is infinite, this has the sign of y * log(a) */
    const bool finite = (a > 0) & (a < INFINITY), bounded = (product > -1500) & (product < 1500);
    const struct vm_product e = vm_exp_in_two(product, bounded ? low : 0);
    double result = finite ? e.a * e.b : infinite > 0 ? INFINITY : 0;
    result = a == 1 ? 1 : result;

    /* doubles from 2^52 on are integers, from 2^53 on even integers */
    const bool whole = (size >= 0x1p52) | ((size + 0x1p52) - 0x1p52 == size);
    const bool odd = (size < 0x1p53) & whole & ((half + 0x1p52) - 0x1p52 != half);
    const bool undefined = ((x < 0) & (a != INFINITY) & !whole) | ((y != y) & (x != 1));
    result = undefined ? NAN : result;
    result = odd ? vm_copysign(result, x) : result;
    result = x != x ? x : result;
    return y == 0 ? 1 : result;
}

#define vm_pow(x, y) _Generic((x), float : vm_pow_float, double : vm_pow_double)(x, y)

#endif
