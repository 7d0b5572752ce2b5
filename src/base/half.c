/* Converts between float and the 8-bit floating-point formats. e4m3fn has 4 exponent bits with bias 7, 3 mantissa bits, no infinity, and NaN as
 * 0x7f. e5m2 has 5 exponent bits with bias 15 and 2 mantissa bits, with infinity and NaN as in IEEE 754. The 16-bit formats are inline in half.h. */
#include "base/half.h"

/* Returns the 8-bit encoding of a float that is at least 0 and less than 2^16, rounded to nearest even. `a` is the float's bits. `mantissa` and
 * `bias` describe the format. A carry out of the mantissa correctly increases the exponent. */
static uint8_t encode(uint32_t a, int mantissa, int bias)
{
    int shift = 23 - mantissa;
    if (a < (uint32_t)(128 - bias) << 23) {
        /* The result is zero or subnormal. Adds the float whose bits are `magic`. Floats near this sum have the same spacing as the subnormal
         * numbers of the 8-bit format, so the addition rounds correctly. */
        uint32_t magic = (uint32_t)(151 - bias - mantissa) << 23;
        return (uint8_t)(grd_float_bits(grd_float_from_bits(a) + grd_float_from_bits(magic)) - magic);
    }
    uint32_t half_below = (UINT32_C(1) << (shift - 1)) - 1 + ((a >> shift) & 1);
    return (uint8_t)((a - ((uint32_t)(127 - bias) << 23) + half_below) >> shift);
}

/* Returns x in the 8-bit format with `mantissa` mantissa bits and exponent bias `bias`. If |x| is at least the float whose bits are `limit`, the
 * result is `above`. NaN gives 0x7f. The result has the sign of x in all cases. */
static uint8_t encode_any(float x, uint32_t limit, uint8_t above, int mantissa, int bias)
{
    const uint32_t u = grd_float_bits(x), a = u & 0x7fffffff;
    const uint8_t magnitude = a > 0x7f800000 ? 0x7f : a >= limit ? above : encode(a, mantissa, bias);
    return (uint8_t)((u >> 24) & 0x80) | magnitude;
}

/* Returns the value of `v`, a finite number in the 8-bit format with `mantissa` mantissa bits and exponent bias `bias`. */
static float decode(uint8_t v, int mantissa, int bias)
{
    uint32_t sign = (uint32_t)(v & 0x80) << 24;
    uint32_t rest = (uint32_t)(v & 0x7f) << (23 - mantissa);
    uint32_t one = (uint32_t)(128 - bias) << 23;
    if (rest >> 23 != 0)
        return grd_float_from_bits(sign | (rest + one - (UINT32_C(1) << 23)));
    return grd_float_from_bits(sign | grd_float_bits(grd_float_from_bits(rest + one) - grd_float_from_bits(one)));
}

float grd_from_float8_e4m3fn(uint8_t v)
{
    if ((v & 0x7f) == 0x7f)
        return grd_float_from_bits((uint32_t)(v & 0x80) << 24 | 0x7fc00000);
    return decode(v, 3, 7);
}

uint8_t grd_to_float8_e4m3fn(float x)
{
    /* The format has no infinity. Numbers above 448, the largest finite number, become 448, as in PyTorch since version 2.13. 0x43e00000 is the
     * float 448, and 0x7e is its encoding. */
    return encode_any(x, 0x43e00000, 0x7e, 3, 7);
}

float grd_from_float8_e5m2(uint8_t v)
{
    if ((v & 0x7f) >= 0x7c)
        return grd_float_from_bits((uint32_t)(v & 0x80) << 24 | ((v & 0x7f) == 0x7c ? 0x7f800000 : 0x7fc00000));
    return decode(v, 2, 15);
}

uint8_t grd_to_float8_e5m2(float x)
{
    /* Floats of 2^16 or more (0x47800000) become infinity (0x7c). Smaller floats that round up to 2^16 also become infinity, because
     * the carry in encode() then gives 0x7c. */
    return encode_any(x, 0x47800000, 0x7c, 2, 15);
}
