/* The bodies of operators with kernel = "binary" that are more than an expression: binary_<name>(x, y, numbers…), as in unary.c. Typed file.
 * Integer division by zero gives 0: the operator has refused it before. */
#include <math.h>

#include "kernel/cpu/map.h"
#include "kernel/cpu/vecmath.h"
#include "kernel/cpu/vecmath_plane.h"
#include "kernel/special.h"

/* ---- Integers: arithmetic wraps --------------------------------------------------------------------------------------------------- */
#if GRD_IS_INTEGER
/* The processor traps on the smallest number divided by -1. */
static inline C binary_hidden_div_trunc(C x, C y)
{
    if (is_minus_one(y))
        return (C)(0 - (U)x);
    return y == 0 ? 0 : (C)(x / y);
}

static inline C binary_fmod(C x, C y)
{
    return y == 0 || is_minus_one(y) ? 0 : (C)(x % y);
}

/* Has the sign of y. */
static inline C binary_remainder(C x, C y)
{
    const C m = binary_fmod(x, y);
    return m != 0 && is_negative(m) != is_negative(y) ? (C)(m + y) : m;
}

static inline C binary_hidden_div_floor(C x, C y)
{
    const C q = binary_hidden_div_trunc(x, y), m = binary_fmod(x, y);
    return m != 0 && is_negative(m) != is_negative(y) ? (C)(q - 1) : q;
}

/* By squaring. A negative exponent: 1 / x^|y| rounded toward zero. */
static inline C binary_hidden_pow(C x, C y)
{
    if (is_negative(y))
        return x == 1 || (is_minus_one(x) && y % 2 == 0) ? 1 : is_minus_one(x) ? x : 0;
    U result = 1, base = (U)x;
    for (U exponent = (U)y; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return (C)result;
}

static inline U magnitude(C x)
{
    return is_negative(x) ? 0 - (U)x : (U)x;
}

/* Euclid's. */
static inline C binary_gcd(C x, C y)
{
    U a = magnitude(x), b = magnitude(y);
    while (b != 0) {
        const U rest = a % b;
        a = b;
        b = rest;
    }
    return (C)a;
}

static inline C binary_lcm(C x, C y)
{
    const U divisor = magnitude(binary_gcd(x, y));
    const C multiple = (C)(divisor == 0 ? 0 : magnitude(x) / divisor * magnitude(y));
    return (C)magnitude(multiple);
}

/* 0 where y is negative or not below the width. */
static inline C binary_bitwise_left_shift(C x, C y)
{
    const bool shifts = !is_negative(y) && (uint64_t)y < 8 * sizeof(C);
    return shifts ? (C)((U)x << y) : 0;
}

/* Only the sign is left where y is negative or not below the width. */
static inline C binary_bitwise_right_shift(C x, C y)
{
    const bool shifts = !is_negative(y) && (uint64_t)y < 8 * sizeof(C);
    return shifts ? (C)(x >> y) : is_negative(x) ? (C)-1 : 0;
}
#endif

/* ---- Floating point ------------------------------------------------------------------------------------------------------------------ */
#if GRD_IS_FLOAT && !GRD_IS_HALF
/* Has the sign of y, also where it is 0. */
static inline C binary_remainder(C x, C y)
{
    const C m = fmod(x, y), zero = copysign((C)0, y);
    return m == 0 ? zero : (m < 0) != (y < 0) ? m + y : m;
}

#if GRD_TAG == GRD_TAG_float32
/* Of a half type, whose normal numbers are floats without the last bits, and whose subnormal ones lie at an equal distance. */
static inline C next_half(C x, C y, int dropped)
{
    const C least_normal = dropped == 13 ? 0x1p-14f : 0x1p-126f, least = dropped == 13 ? 0x1p-24f : 0x1p-133f, a = fabs(x);
    const bool grows = (x < y) == (x > 0);
    if (a < least_normal || (a == least_normal && !grows)) {
        const C next = x + (x < y ? least : -least);
        return next == 0 ? copysign(next, x) : next;
    }
    const uint32_t step = UINT32_C(1) << dropped;
    return vm_from_bits_float(vm_bits_float(x) + (grows ? step : 0 - step));
}
#endif

/* `dropped`: the bits of a float that a half type lacks; 0 of other types. */
static inline C binary_hidden_nextafter(C x, C y, C dropped)
{
    if (x != x || y != y)
        return (C)NAN;
#if GRD_TAG == GRD_TAG_float32
    if (dropped != 0)
        return x == y ? y : next_half(x, y, (int)dropped);
#else
    (void)dropped;
#endif
    return nextafter(x, y);
}

/* x times a logarithm of y: 0 where x is 0, whatever y is but NaN. One NaN for all: of two the product would keep the one or the other, as the loop
 * happens to be compiled. */
static inline C times_logarithm(C x, C y, C logarithm)
{
    const C z = x * logarithm, w = z != z ? (C)NAN : z;
    return ((x == 0) & (y == y)) != 0 ? 0 : w;
}

static inline C binary_hidden_xlogy(C x, C y)
{
    return times_logarithm(x, y, vm_log(y));
}

static inline C binary_special_xlog1py(C x, C y)
{
    return times_logarithm(x, y, vm_log1p(y));
}
#endif

/* ---- Complex ---------------------------------------------------------------------------------------------------------------------------- */
#if GRD_IS_COMPLEX
/* Any number to the power 0 is 1, 0 to a positive real power 0: libm gives NaN. */
static inline C binary_hidden_pow(C x, C y)
{
    if (y.re == 0 && y.im == 0)
        return number(1, 0);
    if (x.re == 0 && x.im == 0 && y.re > 0 && y.im == 0)
        return number(0, 0);
    return of_libm(pow(to_libm(x), to_libm(y)));
}
#endif

#include "gen/binary_rows.h"
