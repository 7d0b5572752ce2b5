/* exp for sums of exponentials: softmax, log_softmax, logsumexp. Branch-free, so that loops over it vectorise.
 *
 * The float ones stay in float, which halves their cost against vm_exp; their relative error is below 1.5 * 2^-23, far less than that of
 * the quotients they go into. Like vm_exp's, results may differ in the last bit between levels with fused multiply-add and without. */
#ifndef GRD_KERNEL_REDUCE_EXP_H
#define GRD_KERNEL_REDUCE_EXP_H

#include "kernel/cpu/vecmath.h"

/* exp(x) = 2^n * exp(r), n the integer nearest to x / log(2), exp(r) = 1 + r + r^2 * p(r); p interpolates at Chebyshev nodes.
 * Gives exp(r), and n + VM_ROUNDER_FLOAT in ret_rounded. NaN stays NaN. */
GRD_INLINE float reduce_exp_fraction(float x, float *ret_rounded)
{
    static const float c[] = {0.5f, 0x1.5554d80000000p-3f, 0x1.5554e40000000p-5f, 0x1.1210720000000p-7f, 0x1.6d49260000000p-10f};
    const float rounded = vm_fma_float(x, 0x1.715476p0f, VM_ROUNDER_FLOAT), n = rounded - VM_ROUNDER_FLOAT;
    const float r = vm_fma_float(n, 0x1.bd01060000000p-13f, vm_fma_float(n, -0.693359375f, x));
    *ret_rounded = rounded;
    return vm_fma_float(vm_poly_float(c, 5, r), r * r, r) + 1;
}

/* 2^n goes in as two factors, so that results become infinite or subnormal as they should. */
GRD_INLINE float reduce_exp_float(float x)
{
    float rounded;
    x = x > 89 ? 89 : x;
    const float p = reduce_exp_fraction(x < -105 ? -105 : x, &rounded);
    const struct vm_factors scale = vm_factors_float(rounded);
    return p * scale.a * scale.b;
}

/* For x <= 40: 2^n moved up by 2^64 and back down, which rounds subnormal results once. */
GRD_INLINE float reduce_exp_low_float(float x)
{
    float rounded;
    const float p = reduce_exp_fraction(x < -105 ? -105 : x, &rounded);
    return p * vm_scale_float(rounded, 64) * 0x1p-64f;
}

#define reduce_exp_low(x) _Generic((x), float : reduce_exp_low_float, double : vm_exp_double)(x)
#define reduce_exp(x) _Generic((x), float : reduce_exp_float, double : vm_exp_double)(x)

#endif
