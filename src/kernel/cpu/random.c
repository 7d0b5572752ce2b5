/* Words of the engine, uniform numbers and Box–Muller, compiled once per level.
 * Invariant: every level gives the bits of PyTorch's CPU generator on a processor with fused multiply-add; so each fusion is written out here,
 * and nothing else may fuse. */
#include <math.h>

#include "base/half.h"
#include "kernel/cpu/level.h"
#include "kernel/random.h"

enum { HALF_BLOCK = 8, BLOCK = 16 };

#define INLINE static inline __attribute__((always_inline))

/* ---- Words and uniform numbers ---------------------------------------------------------------------------------------------------- */

static void words(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_words)
{
    while (n > 0) {
        if (engine->left == 1)
            grd_mt19937_renew(engine);
        const int ready = engine->left - 1, count = n < ready ? (int)n : ready;
        const uint32_t *state = engine->state + engine->next;
        for (int i = 0; i < count; i++)
            ret_words[i] = grd_mt19937_temper(state[i]);
        engine->left -= count;
        engine->next += count;
        ret_words += count;
        n -= count;
    }
}

/* Both products and their sum are exact. */
INLINE double unit_double(const uint32_t *pair)
{
    return (double)(int32_t)(pair[0] & 0x1fffff) * 0x1p-21 + (double)pair[1] * 0x1p-53;
}

static void uniform_float(int64_t n, const uint32_t *words, float from, float to, float *ret_values)
{
    const float range = to - from;
    for (int64_t i = 0; i < n; i++) {
        const float x = fmaf((float)(int32_t)(words[i] & 0xffffff) * 0x1p-24f, range, from);
        ret_values[i] = x == to ? from : x;
    }
}

static void uniform_double(int64_t n, const uint32_t *words, double from, double to, double *ret_values)
{
    const double range = to - from;
    for (int64_t i = 0; i < n; i++) {
        const double x = fma(unit_double(words + 2 * i), range, from);
        ret_values[i] = x == to ? from : x;
    }
}

static void bernoulli(int64_t n, const uint32_t *words, double p, uint8_t *ret_values)
{
    for (int64_t i = 0; i < n; i++)
        ret_values[i] = unit_double(words + 2 * i) < p;
}

/* ---- Box–Muller -------------------------------------------------------------------------------------------------------------------
 *
 *   radius = sqrt(-2 log(1 - u1)), angle = 2 pi u2;  mean + std * radius * cos(angle), mean + std * radius * sin(angle)
 *
 * PyTorch's float code is the Cephes single-precision log, sin and cos with multiplications fused into the additions that follow them. */

INLINE float bits_select(int32_t mask, float yes, float no)
{
    return grd_float_from_bits(((uint32_t)mask & grd_float_bits(yes)) | (~(uint32_t)mask & grd_float_bits(no)));
}

/* Cephes logf for positive normal x: x = m 2^e with m in [sqrt(1/2), sqrt(2)), a polynomial in m - 1. */
INLINE float log_cephes(float x)
{
    uint32_t u = grd_float_bits(x);
    float e = (float)((int32_t)(u >> 23) - 0x7f) + 1;
    float m = grd_float_from_bits((u & 0x807fffff) | 0x3f000000);
    int32_t low = -(m < 0.707106781186547524f);
    float fraction = (m - 1) + bits_select(low, m, 0);
    e -= bits_select(low, 1, 0);
    float z = fraction * fraction;
    float y = 7.0376836292e-2f;
    y = fmaf(y, fraction, -1.1514610310e-1f);
    y = fmaf(y, fraction, 1.1676998740e-1f);
    y = fmaf(y, fraction, -1.2420140846e-1f);
    y = fmaf(y, fraction, 1.4249322787e-1f);
    y = fmaf(y, fraction, -1.6668057665e-1f);
    y = fmaf(y, fraction, 2.0000714765e-1f);
    y = fmaf(y, fraction, -2.4999993993e-1f);
    y = fmaf(y, fraction, 3.3333331174e-1f);
    y = y * fraction;
    y = fmaf(y, z, e * -2.12194440e-4f);
    y = fmaf(z, -0.5f, y);
    return fmaf(e, 0.693359375f, fraction + y);
}

/* Cephes sincosf for 0 <= x < 8192: x = j pi/4 + r in three steps, polynomials for sin r and cos r, exchanged and signed by j. */
INLINE void sincos_cephes(float x, float *ret_sin, float *ret_cos)
{
    int32_t j = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    float y = (float)j;
    float r = fmaf(y, -0.78515625f, x);
    r = fmaf(y, -2.4187564849853515625e-4f, r);
    r = fmaf(y, -3.77489497744594108e-8f, r);
    float z = r * r;
    float c = 2.443315711809948e-5f;
    c = fmaf(c, z, -1.388731625493765e-3f);
    c = fmaf(c, z, 4.166664568298827e-2f);
    c = c * z;
    c = fmaf(c, z, z * -0.5f) + 1;
    float s = -1.9515295891e-4f;
    s = fmaf(s, z, 8.3321608736e-3f);
    s = fmaf(s, z, -1.6666654611e-1f);
    s = s * z;
    s = fmaf(s, r, r);
    int32_t straight = -((j & 2) == 0);
    float sine = bits_select(straight, s, c), cosine = bits_select(straight, c, s);
    *ret_sin = grd_float_from_bits(grd_float_bits(sine) ^ ((uint32_t)(j & 4) << 29));
    *ret_cos = grd_float_from_bits(grd_float_bits(cosine) ^ ((uint32_t)(~(j - 2) & 4) << 29));
}

static void normal_float(int64_t n, float *data, float mean, float std)
{
    for (int64_t b = 0; b < n; b++, data += BLOCK)
        for (int i = 0; i < HALF_BLOCK; i++) {
            float sine, cosine, radius = sqrtf(-2 * log_cephes(1 - data[i]));
            sincos_cephes(6.2831853071795864769f * data[i + HALF_BLOCK], &sine, &cosine);
            data[i] = fmaf(radius * cosine, std, mean);
            data[i + HALF_BLOCK] = fmaf(radius * sine, std, mean);
        }
}

static void normal_double(int64_t n, double *data, double mean, double std)
{
    for (int64_t b = 0; b < n; b++, data += BLOCK)
        for (int i = 0; i < HALF_BLOCK; i++) {
            double radius = sqrt(-2 * log(1 - data[i])), angle = 6.283185307179586477 * data[i + HALF_BLOCK];
            data[i] = fma(radius * cos(angle), std, mean);
            data[i + HALF_BLOCK] = fma(radius * sin(angle), std, mean);
        }
}

extern const struct grd_random_kernels GRD_AT_LEVEL(grd_random_kernels);
const struct grd_random_kernels GRD_AT_LEVEL(grd_random_kernels) = {words,     uniform_float, uniform_double,
                                                                    bernoulli, normal_float,  normal_double};
