/* Defines exp() for sums of exponentials, in softmax, log_softmax and logsumexp. The functions have no branches, so loops that call them vectorise.
 *
 * The float functions compute in float, which takes half the time of vm_exp. Their relative error is below 1.5 * 2^-23, which is small against the
 * rounding errors of the sums and quotients made of them. As with vm_exp, results of instruction-set levels with and without fused multiply-add may
 * differ in the last bit. */
#ifndef GRD_KERNEL_REDUCE_EXP_H
#define GRD_KERNEL_REDUCE_EXP_H

#include "kernel/cpu/vecmath.h"

/* Splits exp(x) into 2^n * exp(r), where n is the integer nearest to x / log(2). Returns exp(r) and writes n + VM_ROUNDER_FLOAT to *ret_rounded.
 * exp(r) is computed as 1 + r + r^2 * p(r), where the polynomial p interpolates at Chebyshev nodes. If x is NaN, the result is NaN. */
GRD_INLINE float reduce_exp_fraction(float x, float *ret_rounded)
{
    static const float c[] = {0.5f, 0x1.5554d80000000p-3f, 0x1.5554e40000000p-5f, 0x1.1210720000000p-7f, 0x1.6d49260000000p-10f};
    const float rounded = vm_fma_float(x, 0x1.715476p0f, VM_ROUNDER_FLOAT), n = rounded - VM_ROUNDER_FLOAT;
    const float r = vm_fma_float(n, 0x1.bd01060000000p-13f, vm_fma_float(n, -0.693359375f, x));
    *ret_rounded = rounded;
    return vm_fma_float(vm_poly_float(c, 5, r), r * r, r) + 1;
}

/* Returns exp(x) = 2^n * exp(r). It multiplies by 2^n as two factors, because 2^n alone can overflow or underflow although the result does not. */
GRD_INLINE float reduce_exp_float(float x)
{
    float rounded;
    x = x > 89 ? 89 : x;
    const float p = reduce_exp_fraction(x < -105 ? -105 : x, &rounded);
    const struct vm_factors scale = vm_factors_float(rounded);
    return p * scale.a * scale.b;
}

/* Returns exp(x) = 2^n * exp(r) for x <= 40. It multiplies by 2^(n + 64) and then by 2^-64, so that a subnormal result is rounded only once. */
GRD_INLINE float reduce_exp_low_float(float x)
{
    float rounded;
    const float p = reduce_exp_fraction(x < -105 ? -105 : x, &rounded);
    return p * vm_scale_float(rounded, 64) * 0x1p-64f;
}

#define reduce_exp_low(x) _Generic((x), float : reduce_exp_low_float, double : vm_exp_double)(x)
#define reduce_exp(x) _Generic((x), float : reduce_exp_float, double : vm_exp_double)(x)

#endif
