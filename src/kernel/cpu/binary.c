/* The bodies of operators with kernel = "binary" that are more than an expression: binary_<name>(x, y, numbers…), as in unary.c. Typed file.
 * Integer division by zero gives 0: the operator has refused it before. */
#include <math.h>

#include "kernel/cpu/elementwise.h"
#include "kernel/cpu/vecmath.h"
#include "kernel/cpu/vecmath_plane.h"
#include "kernel/cpu/vecmath_power.h"
#include "kernel/special.h"

/* ---- Integers: arithmetic wraps --------------------------------------------------------------------------------------------------- */
#if GRD_IS_INTEGER
/* Quotients of narrow integers are computed as floating point, which vectorises, and are exact: what they have behind the point is more than its rounding. */
static inline C truncated_quotient(C x, C y)
{
    if (sizeof(C) < sizeof(int32_t))
        return (C)(int32_t)((float)x / (float)y);
    return sizeof(C) == sizeof(int32_t) ? (C)((double)x / (double)y) : (C)(x / y);
}

/* The processor traps on the smallest number divided by -1. */
static inline C quotient_of(C x, C y)
{
    const bool minus_one = is_minus_one(y), zero = y == 0;
    const C divisor = zero | minus_one ? 1 : y, negated = (C)(0 - (U)x), q = truncated_quotient(x, divisor),
            found = minus_one ? negated : q;
    return zero ? 0 : found;
}

/* Before x86-64-v2 rounding is many instructions, and takes longer than dividing integers. */
#if GRD_TAG == GRD_TAG_int64 && (!defined(__x86_64__) || defined(__SSE4_1__))
enum { DIVIDES_IN_DOUBLE = 1 };

/* Returns x as a double, and the integer that a double is; both in [-2^51, 2^51): added to 1.5 * 2^52, they are the last bits of the sum. */
GRD_INLINE double small_to_double(int64_t x)
{
    return vm_from_bits(x + vm_bits(0x1.8p52)) - 0x1.8p52;
}

GRD_INLINE int64_t small_from_double(double x)
{
    return vm_bits(x + 0x1.8p52) - vm_bits(0x1.8p52);
}

/* Quotients in double vectorise. They are exact for x and y in [-2^50, 2^50): what they have behind the point is more than its rounding. */
GRD_INLINE bool has_small_quotient(int64_t x, int64_t y)
{
    return ((((uint64_t)x + (UINT64_C(1) << 50)) | ((uint64_t)y + (UINT64_C(1) << 50))) >> 51) == 0;
}

GRD_INLINE C small_quotient(C x, C y)
{
    const C q = small_from_double(trunc(small_to_double(x) / small_to_double(y == 0 ? 1 : y)));
    return y == 0 ? 0 : q;
}
#else
enum { DIVIDES_IN_DOUBLE = 0 };

GRD_INLINE bool has_small_quotient(C x, C y)
{
    (void)x, (void)y;
    return false;
}

GRD_INLINE C small_quotient(C x, C y)
{
    return quotient_of(x, y);
}
#endif

/* z = finish(x, y, x / y rounded toward zero); z may be x or y. */
GRD_INLINE void after_division(int64_t n, C *z, const C *x, const C *y, C (*finish)(C x, C y, C q))
{
    enum { PART = 256 };
    for (int64_t start = 0; start < n; start += PART, x += PART, y += PART, z += PART) {
        const int64_t count = at_most(n - start, PART);
        uint64_t large = !DIVIDES_IN_DOUBLE;
        for (int64_t i = 0; DIVIDES_IN_DOUBLE && i < count; i++)
            large |= !has_small_quotient(x[i], y[i]);
        IN_PLACE
        for (int64_t i = 0; large == 0 && i < count; i++)
            z[i] = finish(x[i], y[i], small_quotient(x[i], y[i]));
        IN_PLACE
        for (int64_t i = 0; large != 0 && i < count; i++)
            z[i] = finish(x[i], y[i], quotient_of(x[i], y[i]));
    }
}

GRD_INLINE C quotient_itself(C x, C y, C q)
{
    (void)x, (void)y;
    return q;
}

GRD_INLINE C rest_of(C x, C y, C q)
{
    const C m = (C)((U)x - (U)q * (U)y);
    return y == 0 ? 0 : m;
}

/* True if m, the remainder of a division by y that is rounded toward zero, is that of another quotient where it is rounded down. */
static inline bool is_rounded_up(C m, C y)
{
    return (m != 0) & (is_negative(m) != is_negative(y));
}

/* Has the sign of y. */
GRD_INLINE C rest_above(C x, C y, C q)
{
    const C m = rest_of(x, y, q), moved = (C)((U)m + (U)y);
    return is_rounded_up(m, y) ? moved : m;
}

GRD_INLINE C quotient_below(C x, C y, C q)
{
    const C less = (C)((U)q - 1);
    return is_rounded_up(rest_of(x, y, q), y) ? less : q;
}

static void binary_hidden_div_trunc(int64_t n, C *z, const C *x, const C *y)
{
    after_division(n, z, x, y, quotient_itself);
}

static void binary_hidden_div_floor(int64_t n, C *z, const C *x, const C *y)
{
    after_division(n, z, x, y, quotient_below);
}

static void binary_fmod(int64_t n, C *z, const C *x, const C *y)
{
    after_division(n, z, x, y, rest_of);
}

static void binary_remainder(int64_t n, C *z, const C *x, const C *y)
{
    after_division(n, z, x, y, rest_above);
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
/* True if fmod_of_short_quotient(x, y) is right: the integer part of x / y fits the significand with bits to spare, y is finite, and no product of
 * it underflows. */
GRD_INLINE bool has_short_quotient(C x, C y)
{
    const C fewer = sizeof(C) == sizeof(float) ? (C)0x1p24 : (C)0x1p26, least = sizeof(C) == sizeof(float) ? 0 : (C)0x1p-900;
    return (fabs(x) < fabs(y) * fewer) & (fabs(y) > least) & (fabs(y) < (C)INFINITY);
}

/* fmod(x, y) = |x| - trunc(|x| / |y|) |y|, with the sign of x. The rounded quotient may be one too large, which makes the difference negative: then
 * |y| is added. */
GRD_INLINE C fmod_of_short_quotient(C x, C y)
{
    const C a = fabs(x), b = fabs(y), q = trunc(a / b);
#ifdef HAS_FMA
    const C m = BY_TYPE(vm_fma_float, vm_fma)(-q, b, a);
#elif GRD_TAG == GRD_TAG_float32
    const C m = (C)((double)a - (double)q * b);
#else
    const C product = q * b, m = (a - product) - vm_product_error(q, b, product);
#endif
    return copysign(m < 0 ? m + b : m, x);
}

/* z = finish(x, y, fmod(x, y)); z may be x or y. */
GRD_INLINE void after_fmod(int64_t n, C *z, const C *x, const C *y, C (*finish)(C x, C y, C m))
{
    enum { PART = 256 };
    C m[PART];
    for (int64_t start = 0; start < n; start += PART, x += PART, y += PART, z += PART) {
        const int64_t count = at_most(n - start, PART);
        int far = 0;
        for (int64_t i = 0; i < count; i++) {
            m[i] = fmod_of_short_quotient(x[i], y[i]);
            far |= !has_short_quotient(x[i], y[i]);
        }
        for (int64_t i = 0; far != 0 && i < count; i++)
            if (!has_short_quotient(x[i], y[i]))
                m[i] = fmod(x[i], y[i]);
        IN_PLACE
        for (int64_t i = 0; i < count; i++)
            z[i] = finish(x[i], y[i], m[i]);
    }
}

GRD_INLINE C itself(C x, C y, C m)
{
    (void)x, (void)y;
    return m;
}

/* Has the sign of y, also where it is 0. */
GRD_INLINE C remainder_less(C x, C y, C m)
{
    (void)x;
    const C zero = copysign((C)0, y), moved = (m < 0) != (y < 0) ? m + y : m;
    return m == 0 ? zero : moved;
}

static void binary_fmod(int64_t n, C *z, const C *x, const C *y)
{
    after_fmod(n, z, x, y, itself);
}

static void binary_remainder(int64_t n, C *z, const C *x, const C *y)
{
    after_fmod(n, z, x, y, remainder_less);
}

static void binary_hidden_div_floor(int64_t n, C *z, const C *x, const C *y)
{
    after_fmod(n, z, x, y, quotient_less);
}

#if GRD_TAG == GRD_TAG_float32
/* nextafter(x, y) of a half type, whose values are held in floats: normal numbers lack the last `dropped` bits, subnormal ones are equally spaced. */
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
