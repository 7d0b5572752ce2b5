/* exp for sums of exponentials: softmax, log_softmax, logsumexp. Branch-free, so that loops over it vectorise.
 *
 * The float ones stay in float, which halves their cost against vm_exp; their relative error is below 1.5 * 2^-23, far less than that of
 * the quotients they go into. Like vm_exp's, results may differ in the last bit between levels with fused multiply-add and without. */
#ifndef GRD_KERNEL_REDUCE_EXP_H
#define GRD_KERNEL_REDUCE_EXP_H

#include "kernel/cpu/vecmath.h"

/* 1.5 * 2^23: adding it rounds to an integer and leaves that, in two's complement, in the low bits. */
#define REDUCE_ROUNDER 0x1.8p23f
#define REDUCE_INLINE static inline __attribute__((always_inline, unused))

/* a * b + c, fused where that is one instruction. */
REDUCE_INLINE float reduce_fma(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* exp(x) = 2^n * exp(r), n the integer nearest to x / log(2), exp(r) = 1 + r + r^2 * p(r); p interpolates at Chebyshev nodes.
 * Gives exp(r), and n + REDUCE_ROUNDER in ret_rounded. NaN stays NaN. */
REDUCE_INLINE float reduce_exp_fraction(float x, float *ret_rounded)
{
    float rounded = reduce_fma(x, 0x1.715476p0f, REDUCE_ROUNDER), n = rounded - REDUCE_ROUNDER;
    float r = reduce_fma(n, 0x1.bd01060000000p-13f, reduce_fma(n, -0.693359375f, x));
    float p = 0x1.6d49260000000p-10f;
    p = reduce_fma(p, r, 0x1.1210720000000p-7f);
    p = reduce_fma(p, r, 0x1.5554e40000000p-5f);
    p = reduce_fma(p, r, 0x1.5554d80000000p-3f);
    p = reduce_fma(p, r, 0.5f);
    *ret_rounded = rounded;
    return reduce_fma(p, r * r, r) + 1;
}

REDUCE_INLINE float reduce_power_of_two(int32_t n)
{
    float power;
    n = (int32_t)((uint32_t)(n + 127) << 23);
    memcpy(&power, &n, sizeof power);
    return power;
}

/* The whole number that reduce_exp_fraction rounded to; of NaN anything. */
REDUCE_INLINE int32_t reduce_whole(float rounded)
{
    int32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (int32_t)((uint32_t)bits << 9) >> 9;
}

/* 2^n goes in as two factors, so that results become infinite or subnormal as they should. */
REDUCE_INLINE float reduce_exp_float(float x)
{
    float rounded, p;
    x = x > 89 ? 89 : x;
    x = x < -105 ? -105 : x;
    p = reduce_exp_fraction(x, &rounded);
    int32_t whole = reduce_whole(rounded), half = whole >> 1;
    return p * reduce_power_of_two(half) * reduce_power_of_two(whole - half);
}

/* For x <= 40: 2^n moved up by 2^64 and back down, which rounds subnormal results once. */
REDUCE_INLINE float reduce_exp_low_float(float x)
{
    float rounded, p, power;
    int32_t bits;
    p = reduce_exp_fraction(x < -105 ? -105 : x, &rounded);
    memcpy(&bits, &rounded, sizeof bits);
    bits = (int32_t)(((uint32_t)bits + 127 + 64) << 23);
    memcpy(&power, &bits, sizeof power);
    return p * power * 0x1p-64f;
}

#define reduce_exp_low(x) _Generic((x), float : reduce_exp_low_float, double : vm_exp_double)(x)
#define reduce_exp(x) _Generic((x), float : reduce_exp_float, double : vm_exp_double)(x)

#endif
