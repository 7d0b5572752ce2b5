/* Compares the conversions of float16, bfloat16 and the float8 formats with a reference, which decodes with ldexp and finds the nearest value
 * by bisection. */
#include <math.h>
#include <stdbool.h>

#include "base/half.h"
#include "support.h"

struct format {
    int exponent, mantissa; /* number of bits of each field */
    bool has_infinity;      /* if false, the format has no infinity, and its NaN has all exponent and mantissa bits set */
};
static const struct format float16 = {5, 10, true}, bfloat16 = {8, 7, true}, e4m3fn = {4, 3, false}, e5m2 = {5, 2, true};

/* Returns the value of the unsigned bit pattern v. Patterns above the largest finite one are decoded as if they were finite numbers. */
static double value_of(struct format f, uint32_t v)
{
    int bias = (1 << (f.exponent - 1)) - 1;
    int exponent = (int)(v >> f.mantissa);
    uint32_t fraction = v & ((1u << f.mantissa) - 1);
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - f.mantissa);
    return ldexp(fraction + (1u << f.mantissa), exponent - bias - f.mantissa);
}

/* Returns the smallest bit pattern that is not a finite number. */
static uint32_t first_special(struct format f)
{
    uint32_t top = (1u << (f.exponent + f.mantissa)) - 1;
    return f.has_infinity ? top - ((1u << f.mantissa) - 1) : top;
}

static double decoded(struct format f, uint32_t v)
{
    uint32_t rest = v & ((1u << (f.exponent + f.mantissa)) - 1);
    double x = rest < first_special(f) ? value_of(f, rest) : f.has_infinity && rest == first_special(f) ? INFINITY : NAN;
    return rest == v ? x : -x;
}

/* Returns the bit pattern of x rounded to the format, ties to even, found by bisection. `nan` is the bit pattern of NaN. */
static uint32_t encoded(struct format f, float x, uint32_t nan)
{
    uint32_t sign = signbit(x) ? 1u << (f.exponent + f.mantissa) : 0;
    double a = fabs((double)x);
    if (isnan(x))
        return sign | nan;
    uint32_t low = 0, high = first_special(f); /* invariants: value(low) <= a; value(high) > a, unless `high` encodes infinity or NaN */
    if (!f.has_infinity && a >= value_of(f, high - 1))
        return sign | (high - 1); /* saturates */
    if (a >= value_of(f, high))
        return sign | high;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        *(value_of(f, middle) <= a ? &low : &high) = middle;
    }
    double below = a - value_of(f, low), above = value_of(f, high) - a;
    return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

static void same_float(float got, double want, uint32_t pattern)
{
    if (!(isnan(got) && isnan(want)) && !(got == (float)want && !signbit(got) == !signbit(want)))
        fail_msg("pattern %#x decodes to %a, not %a", pattern, got, want);
}

static void same_pattern(uint32_t got, uint32_t want, float x)
{
    if (got != want)
        fail_msg("%a encodes to %#x, not %#x", x, got, want);
}

static void every_bit_pattern_is_decoded(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < 65536; v++) {
        same_float(grd_from_float16((uint16_t)v), decoded(float16, v), v);
        same_float(grd_from_bfloat16((uint16_t)v), decoded(bfloat16, v), v);
    }
    for (uint32_t v = 0; v < 256; v++) {
        same_float(grd_from_float8_e4m3fn((uint8_t)v), decoded(e4m3fn, v), v);
        same_float(grd_from_float8_e5m2((uint8_t)v), decoded(e5m2, v), v);
    }
}

static void check_encoding(float x)
{
    same_pattern(grd_to_float16(x), encoded(float16, x, 0x7e00), x);
    same_pattern(grd_to_bfloat16(x), isnan(x) ? 0x7fc0 : encoded(bfloat16, x, 0), x);
    same_pattern(grd_to_float8_e4m3fn(x), encoded(e4m3fn, x, 0x7f), x);
    same_pattern(grd_to_float8_e5m2(x), encoded(e5m2, x, 0x7f), x);
}

/* Encodes every finite value of the formats float16, bfloat16, e4m3fn and e5m2, every midpoint between two neighbouring values, and the floats next
 * to each value and midpoint. */
static void values_and_midpoints_are_encoded(void **state)
{
    (void)state;
    const struct format formats[] = {float16, bfloat16, e4m3fn, e5m2};
    for (int i = 0; i < 4; i++) {
        struct format f = formats[i];
        for (uint32_t v = 0; v < first_special(f); v++) {
            const double points[] = {value_of(f, v), (value_of(f, v) + value_of(f, v + 1)) / 2};
            for (int k = 0; k < 2; k++) {
                float x = (float)points[k];
                check_encoding(x);
                check_encoding(-x);
                check_encoding(nextafterf(x, INFINITY));
                check_encoding(nextafterf(x, -INFINITY));
            }
        }
    }
    check_encoding(INFINITY);
    check_encoding(-INFINITY);
    check_encoding(NAN);
    check_encoding(-NAN);
}

static void floats_from_the_whole_range_are_encoded(void **state)
{
    (void)state;
    for (uint64_t u = 0; u <= UINT32_MAX; u += 1013)
        check_encoding(grd_float_from_bits((uint32_t)u));
}

static void encoding_inverts_decoding(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < 65536; v++) {
        if (!isnan(grd_from_float16((uint16_t)v)))
            assert_int_equal(grd_to_float16(grd_from_float16((uint16_t)v)), v);
        if (!isnan(grd_from_bfloat16((uint16_t)v)))
            assert_int_equal(grd_to_bfloat16(grd_from_bfloat16((uint16_t)v)), v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_pattern_is_decoded),
        cmocka_unit_test(values_and_midpoints_are_encoded),
        cmocka_unit_test(floats_from_the_whole_range_are_encoded),
        cmocka_unit_test(encoding_inverts_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
