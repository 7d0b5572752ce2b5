/* exp for sums of exponentials: softmax, log_softmax, logsumexp. Branch-free, so that loops over it vectorise.
 *
 * The float one stays in float, which halves its cost against vm_exp; its relative error is below 1.5 * 2^-23, far less than that of the
 * quotients it goes into. No fused operation: the same bits at every instruction-set level. */
#ifndef GRD_KERNEL_REDUCE_EXP_H
#define GRD_KERNEL_REDUCE_EXP_H

#include "kernel/cpu/vecmath.h"

/* exp(x) = 2^n * exp(r), n the integer nearest to x / log(2), exp(r) = 1 + r + r^2 * p(r); p interpolates at Chebyshev nodes.
 * 2^n goes in as two factors, so that results become infinite or subnormal as they should. NaN stays NaN. */
static inline __attribute__((always_inline, unused)) float reduce_exp_float(float x)
{
    const float round = 0x1.8p23f; /* x + round - round is x rounded to an integer */
    x = x > 89 ? 89 : x;
    x = x < -105 ? -105 : x;
    float n = (x * 0x1.715476p0f + round) - round;
    float r = (x - n * 0.693359375f) - n * -0x1.bd01060000000p-13f;
    float p = 0x1.6d49260000000p-10f;
    p = p * r + 0x1.1210720000000p-7f;
    p = p * r + 0x1.5554e40000000p-5f;
    p = p * r + 0x1.5554d80000000p-3f;
    p = p * r + 0x1.0000000000000p-1f;
    p = p * (r * r) + r + 1;
    int32_t whole = (int32_t)(n == n ? n : 0), half = whole >> 1;
    int32_t low = (half + 127) << 23, high = (whole - half + 127) << 23;
    float a, b;
    memcpy(&a, &low, sizeof a);
    memcpy(&b, &high, sizeof b);
    return p * a * b;
}

#define reduce_exp(x) _Generic((x), float: reduce_exp_float, double: vm_exp_double)(x)

#endif
