/* The scalar bodies of operators with kernel = "binary": binary_<name>(x, y, numbers…) over the compute type C. Typed file.
 * Integer division by zero gives 0: the operator has refused it before. The loops are in map.h; the table is generated from the schema. */
#include <math.h>

#include "kernel/cpu/map.h"
#include "kernel/cpu/vecmath.h"
#include "kernel/table.h"
#if GRD_IS_COMPLEX
#include "kernel/cpu/complex.h"
#endif
#if GRD_IS_FLOAT
#include "kernel/cpu/real.h"
#endif

/* ---- Logic: every dtype ------------------------------------------------------------------------------------------------------ */
static inline bool is_true(C x)
{
#if GRD_IS_COMPLEX
    return x.re != 0 || x.im != 0;
#else
    return x != 0;
#endif
}

static inline bool binary_logical_and(C x, C y)
{
    return is_true(x) && is_true(y);
}

static inline bool binary_logical_or(C x, C y)
{
    return is_true(x) || is_true(y);
}

static inline bool binary_logical_xor(C x, C y)
{
    return is_true(x) != is_true(y);
}

#if GRD_IS_COMPLEX
static inline bool binary_eq(C x, C y)
{
    return x.re == y.re && x.im == y.im;
}

static inline bool binary_ne(C x, C y)
{
    return x.re != y.re || x.im != y.im;
}
#else
static inline bool binary_eq(C x, C y)
{
    return x == y;
}

static inline bool binary_ne(C x, C y)
{
    return x != y;
}

static inline bool binary_lt(C x, C y)
{
    return x < y;
}

static inline bool binary_le(C x, C y)
{
    return x <= y;
}

static inline bool binary_gt(C x, C y)
{
    return x > y;
}

static inline bool binary_ge(C x, C y)
{
    return x >= y;
}
#endif

/* ---- Bool and integers ---------------------------------------------------------------------------------------------------------- */
#if GRD_IS_BOOL || GRD_IS_INTEGER
static inline C binary_bitwise_and(C x, C y)
{
    return x & y;
}

static inline C binary_bitwise_or(C x, C y)
{
    return x | y;
}

static inline C binary_bitwise_xor(C x, C y)
{
    return x ^ y;
}

static inline C binary_maximum(C x, C y)
{
    return x > y ? x : y;
}

static inline C binary_minimum(C x, C y)
{
    return x < y ? x : y;
}

static inline C binary_fmax(C x, C y)
{
    return binary_maximum(x, y);
}

static inline C binary_fmin(C x, C y)
{
    return binary_minimum(x, y);
}
#endif

#if GRD_IS_BOOL
static inline C binary_hidden_add(C x, C y)
{
    return x | y;
}

static inline C binary_hidden_add_scaled(C x, C y, C alpha)
{
    return x | (alpha & y);
}

static inline C binary_mul(C x, C y)
{
    return x & y;
}
#endif

/* ---- Integers: arithmetic wraps --------------------------------------------------------------------------------------------------- */
#if GRD_IS_INTEGER
static inline C binary_hidden_add(C x, C y)
{
    return (C)((U)x + (U)y);
}

static inline C binary_hidden_add_scaled(C x, C y, C alpha)
{
    return (C)((U)x + (U)alpha * (U)y);
}

static inline C binary_hidden_sub(C x, C y)
{
    return (C)((U)x - (U)y);
}

static inline C binary_mul(C x, C y)
{
    return (C)((U)x * (U)y);
}

static inline bool is_negative(C x)
{
#if GRD_IS_SIGNED
    return x < 0;
#else
    (void)x;
    return false;
#endif
}

static inline bool is_minus_one(C y)
{
#if GRD_IS_SIGNED
    return y == -1;
#else
    (void)y;
    return false;
#endif
}

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

static inline C binary_hidden_relu_backward(C grad, C y)
{
    return y == 0 || is_negative(y) ? 0 : grad;
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
static inline C binary_hidden_add(C x, C y)
{
    return x + y;
}

static inline C binary_hidden_add_scaled(C x, C y, C alpha)
{
    return x + alpha * y;
}

static inline C binary_hidden_sub(C x, C y)
{
    return x - y;
}

static inline C binary_mul(C x, C y)
{
    return x * y;
}

static inline C binary_hidden_div_true(C x, C y)
{
    return x / y;
}

static inline C binary_hidden_div_trunc(C x, C y)
{
    return trunc(x / y);
}

static inline C binary_fmod(C x, C y)
{
    return fmod(x, y);
}

/* Has the sign of y. */
static inline C binary_remainder(C x, C y)
{
    const C m = fmod(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

static inline C binary_hidden_div_floor(C x, C y)
{
    return floored_quotient(x, y);
}

static inline C binary_hidden_lerp_number(C x, C end, C weight)
{
    return interpolated(x, end, weight);
}

static inline C binary_hidden_pow(C x, C y)
{
    return vm_pow(x, y);
}

/* 0 where x is 0, whatever y is but NaN. One NaN for all: of two the product would keep the one or the other, as the loop happens to be compiled. */
static inline C binary_hidden_xlogy(C x, C y)
{
    const C z = x * vm_log(y), w = z != z ? (C)NAN : z;
    return ((x == 0) & (y == y)) != 0 ? 0 : w;
}

static inline C binary_hypot(C x, C y)
{
    return hypot(x, y);
}

static inline C binary_copysign(C x, C y)
{
    return copysign(x, y);
}

static inline C binary_atan2(C x, C y)
{
    return atan2(x, y);
}

static inline C binary_hidden_relu_backward(C grad, C y)
{
    return y <= 0 ? 0 : grad;
}

/* NaN where either is NaN. */
static inline C binary_maximum(C x, C y)
{
    return ((x > y) | (x != x)) != 0 ? x : y;
}

static inline C binary_minimum(C x, C y)
{
    return ((x < y) | (x != x)) != 0 ? x : y;
}

/* The other one where one is NaN. */
static inline C binary_fmax(C x, C y)
{
    return ((x >= y) | (y != y)) != 0 ? x : y;
}

static inline C binary_fmin(C x, C y)
{
    return ((x <= y) | (y != y)) != 0 ? x : y;
}
#endif

/* ---- Complex ---------------------------------------------------------------------------------------------------------------------------- */
#if GRD_IS_COMPLEX
static inline C binary_hidden_add(C x, C y)
{
    return sum(x, y);
}

static inline C binary_hidden_add_scaled(C x, C y, C alpha)
{
    return sum(x, product(alpha, y));
}

static inline C binary_hidden_sub(C x, C y)
{
    return difference(x, y);
}

static inline C binary_mul(C x, C y)
{
    return product(x, y);
}

static inline C binary_hidden_div_true(C x, C y)
{
    return quotient(x, y);
}

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
