/* The eight-bit floats. e4m3fn: 4 exponent bits of bias 7, 3 mantissa bits, no infinity, 0x7f is NaN.
 * e5m2: 5 exponent bits of bias 15, 2 mantissa bits, IEEE. The sixteen-bit formats are inline in half.h. */
#include "base/half.h"

/* |x| as its float bits `a`, less than 2^16, rounded to nearest even; the carry may run into the next exponent. */
static uint8_t encode(uint32_t a, int mantissa, int bias)
{
    int shift = 23 - mantissa;
    if (a < (uint32_t)(128 - bias) << 23) {
        /* Subnormal: the sum has its unit in the last place where the result has it. */
        uint32_t magic = (uint32_t)(151 - bias - mantissa) << 23;
        return (uint8_t)(grd_float_bits(grd_float_from_bits(a) + grd_float_from_bits(magic)) - magic);
    }
    uint32_t half_below = (UINT32_C(1) << (shift - 1)) - 1 + ((a >> shift) & 1);
    return (uint8_t)((a - ((uint32_t)(127 - bias) << 23) + half_below) >> shift);
}

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
    uint32_t u = grd_float_bits(x), a = u & 0x7fffffff;
    uint8_t sign = (uint8_t)((u >> 24) & 0x80);
    if (a > 0x7f800000)
        return sign | 0x7f;
    /* There is no infinity: everything from the largest number, 448, on becomes that, as in PyTorch from 2.13. */
    return (uint8_t)(sign | (a >= 0x43e00000 ? 0x7e : encode(a, 3, 7)));
}

float grd_from_float8_e5m2(uint8_t v)
{
    if ((v & 0x7f) >= 0x7c)
        return grd_float_from_bits((uint32_t)(v & 0x80) << 24 | ((v & 0x7f) == 0x7c ? 0x7f800000 : 0x7fc00000));
    return decode(v, 2, 15);
}

uint8_t grd_to_float8_e5m2(float x)
{
    uint32_t u = grd_float_bits(x), a = u & 0x7fffffff;
    uint8_t sign = (uint8_t)((u >> 24) & 0x80);
    if (a > 0x7f800000)
        return sign | 0x7f;
    return (uint8_t)(sign | (a >= 0x47800000 ? 0x7c : encode(a, 2, 15)));
}
