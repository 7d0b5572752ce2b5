/* Converts between float and the smaller floating-point formats, rounding to nearest even as PyTorch does. The conversions of the 16-bit formats
 * are inline, because kernels call them for each element. */
#ifndef GRD_BASE_HALF_H
#define GRD_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t grd_float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float grd_float_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float grd_from_bfloat16(uint16_t h)
{
    return grd_float_from_bits((uint32_t)h << 16);
}

static inline uint16_t grd_to_bfloat16(float x)
{
    uint32_t u = grd_float_bits(x);
    uint16_t rounded = (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
    return x != x ? 0x7fc0 : rounded;
}

/* Converts a float16, given as its bits, to float. The function has no branches, so that compilers vectorise loops that call it. */
static inline float grd_from_float16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t rest = (uint32_t)(h & 0x7fff) << 13;
    /* For normal, infinite and NaN values, change the exponent from bias 15 to bias 127. An exponent of all ones is changed twice, so that all
     * its bits are ones again. */
    uint32_t exponent = rest & 0x0f800000;
    uint32_t normal = rest + 0x38000000 + (exponent == 0x0f800000 ? 0x38000000 : 0);
    uint32_t quiet = rest > 0x0f800000 ? 0x00400000 : 0; /* sets the quiet bit of a NaN, as processors' conversion instructions do */
    /* For zero and subnormal values, an exact subtraction of floats normalises the number. */
    uint32_t subnormal = grd_float_bits(grd_float_from_bits(rest + 0x38800000) - grd_float_from_bits(0x38800000));
    return grd_float_from_bits(sign | (exponent == 0 ? subnormal : normal | quiet));
}

static inline uint16_t grd_to_float16(float x)
{
    uint32_t u = grd_float_bits(x);
    uint32_t sign = (u >> 16) & 0x8000;
    uint32_t a = u & 0x7fffffff;
    /* For subnormal results, adding 0.5 leaves the rounded mantissa in the low bits. */
    uint32_t subnormal = grd_float_bits(grd_float_from_bits(a) + 0.5f) - 0x3f000000;
    uint32_t normal = (a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13;
    uint32_t finite = a < 0x38800000 ? subnormal : normal;
    uint32_t special = a > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)(sign | (a >= 0x47800000 ? special : finite));
}

/* The conversions of the 8-bit formats, declared below, are not inline (half.c). */
float grd_from_float8_e4m3fn(uint8_t v);
uint8_t grd_to_float8_e4m3fn(float x);
float grd_from_float8_e5m2(uint8_t v);
uint8_t grd_to_float8_e5m2(float x);

#endif
