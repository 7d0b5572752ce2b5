/* The bodies of operators with kernel = "binary" that are more than an expression: binary_<name>(x, y, numbers…), as in unary.c. Typed file.
 * Integer division by zero gives 0: the operator has refused it before. */
#include <math.h>

#include "kernel/cpu/map.h"
#include "kernel/cpu/vecmath.h"
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
#if GRD_IS_FLOAT
/* Has the sign of y. */
static inline C binary_remainder(C x, C y)
{
    const C m = fmod(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

/* 0 where x is 0, whatever y is but NaN. One NaN for all: of two the product would keep the one or the other, as the loop happens to be compiled. */
static inline C binary_hidden_xlogy(C x, C y)
{
    const C z = x * vm_log(y), w = z != z ? (C)NAN : z;
    return ((x == 0) & (y == y)) != 0 ? 0 : w;
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
