/* Defines the elementwise functions of two inputs that are written by hand, because the expression language of the schema cannot state them. They
 * belong to operators whose schema entry has kernel = "binary". The generated loops in gen/binary_rows.h call binary_<name>(x, y, scalar arguments of
 * the operator) for each element; a function with a parameter n computes a whole array instead. The build compiles this file once per dtype. Integer
 * division by zero returns 0 here. No caller sees that, because the operator raises an error before it runs the kernel. */
#include <math.h>

#include "kernel/cpu/elementwise.h"
#include "kernel/cpu/vecmath.h"
#include "kernel/cpu/vecmath_plane.h"
#include "kernel/cpu/vecmath_power.h"
#include "kernel/special.h"

/* ---- Integers: arithmetic wraps --------------------------------------------------------------------------------------------------- */
#if GRD_IS_INTEGER
/* Returns x / y rounded toward zero. Integers of at most 4 bytes are divided in floating point, which vectorises. The result is exact, because a
 * quotient that is not an integer differs from every integer by at least 1 / |y|, which is more than the rounding error of the division. */
static inline C truncated_quotient(C x, C y)
{
    if (sizeof(C) < sizeof(int32_t))
        return (C)(int32_t)((float)x / (float)y);
    return sizeof(C) == sizeof(int32_t) ? (C)((double)x / (double)y) : (C)(x / y);
}

/* Returns x / y rounded toward zero, or 0 if y is 0. A division by -1 is computed as a negation, because the processor traps when the smallest
 * integer is divided by -1. */
static inline C quotient_of(C x, C y)
{
    const bool minus_one = is_minus_one(y), zero = y == 0;
    const C divisor = zero | minus_one ? 1 : y, negated = (C)(0 - (U)x), q = truncated_quotient(x, divisor),
            found = minus_one ? negated : q;
    return zero ? 0 : found;
}

/* DIVIDES_IN_DOUBLE: int64 is divided in double if the processor has an instruction for trunc(). x86-64 without SSE4.1 has no such instruction,
 * and trunc() in software takes longer than an integer division. */
#if GRD_TAG == GRD_TAG_int64 && (!defined(__x86_64__) || defined(__SSE4_1__))
enum { DIVIDES_IN_DOUBLE = 1 };

/* Converts x in [-2^51, 2^51) to double with integer operations, which vectorise. This works because the last bits of the double 1.5 * 2^52 + x are
 * the bits of x. */
GRD_INLINE double small_to_double(int64_t x)
{
    return vm_from_bits(x + vm_bits(0x1.8p52)) - 0x1.8p52;
}

/* Converts an integral x in [-2^51, 2^51) to int64; the inverse of small_to_double(). */
GRD_INLINE int64_t small_from_double(double x)
{
    return vm_bits(x + 0x1.8p52) - vm_bits(0x1.8p52);
}

/* True if x and y are in [-2^50, 2^50). For these numbers small_quotient() is exact, because a quotient that is not an integer differs from every
 * integer by at least 1 / |y|, which is more than the rounding error of a division in double. */
GRD_INLINE bool has_small_quotient(int64_t x, int64_t y)
{
    return ((((uint64_t)x + (UINT64_C(1) << 50)) | ((uint64_t)y + (UINT64_C(1) << 50))) >> 51) == 0;
}

/* Returns x / y rounded toward zero, or 0 if y is 0. Requires has_small_quotient(x, y). The division is done in double, which vectorises. */
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

/* Sets z[i] = finish(x[i], y[i], q) for i < n, where q is x[i] / y[i] rounded toward zero. z may be x or y. Works on PART elements at a time. Divides
 * them in double if DIVIDES_IN_DOUBLE is 1 and has_small_quotient() is true for all of them, otherwise with quotient_of(). */
GRD_INLINE void after_division(int64_t n, C *z, const C *x, const C *y, C (*finish)(C x, C y, C q))
{
    enum { PART = 256 };
    for (int64_t start = 0; start < n; start += PART, x += PART, y += PART, z += PART) {
        const int64_t count = grd_least(n - start, PART);
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

/* Returns q, the quotient rounded toward zero. This function is passed to after_division() as `finish`. */
GRD_INLINE C quotient_itself(C x, C y, C q)
{
    (void)x, (void)y;
    return q;
}

/* Returns x - q * y, or 0 if y is 0. If q is x / y rounded toward zero, this is the remainder with the sign of x. */
GRD_INLINE C rest_of(C x, C y, C q)
{
    const C m = (C)((U)x - (U)q * (U)y);
    return y == 0 ? 0 : m;
}

/* True if the quotient q, which is x / y rounded toward zero, is larger than floor(x / y). m is the remainder x - q * y. */
static inline bool is_rounded_up(C m, C y)
{
    return (m != 0) & (is_negative(m) != is_negative(y));
}

/* Returns the remainder x - floor(x / y) * y, which has the sign of y, as in torch.remainder. q is x / y rounded toward zero. */
GRD_INLINE C rest_above(C x, C y, C q)
{
    const C m = rest_of(x, y, q), moved = (C)((U)m + (U)y);
    return is_rounded_up(m, y) ? moved : m;
}

/* Returns x / y rounded down. q is x / y rounded toward zero. */
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

/* Returns x^y by repeated squaring. If y is negative, the result is 1 / x^|y| rounded toward zero, which is 0 unless x is 1 or -1. */
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

/* Returns |x| as an unsigned number, which is exact for the smallest integer, too. */
static inline U magnitude(C x)
{
    return is_negative(x) ? 0 - (U)x : (U)x;
}

/* Returns the greatest common divisor of x and y by Euclid's algorithm. */
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

/* Returns x << y, or 0 if y is negative or not below the number of bits of the dtype. */
static inline C binary_bitwise_left_shift(C x, C y)
{
    const bool shifts = !is_negative(y) && (uint64_t)y < 8 * sizeof(C);
    return shifts ? (C)((U)x << y) : 0;
}

/* Returns x >> y. If y is negative or not below the number of bits of the dtype, returns -1 for a negative x and 0 otherwise. */
static inline C binary_bitwise_right_shift(C x, C y)
{
    const bool shifts = !is_negative(y) && (uint64_t)y < 8 * sizeof(C);
    return shifts ? (C)(x >> y) : is_negative(x) ? (C)-1 : 0;
}
#endif

/* ---- Floating point ------------------------------------------------------------------------------------------------------------------ */
#if GRD_IS_FLOAT && !GRD_IS_HALF
/* True if fmod_of_short_quotient(x, y) is exact. That is so if |x / y| is below 2^24 (float) or 2^26 (double), y is finite, and y is so large that
 * its product with the quotient does not underflow. */
GRD_INLINE bool has_short_quotient(C x, C y)
{
    const C fewer = sizeof(C) == sizeof(float) ? (C)0x1p24 : (C)0x1p26, least = sizeof(C) == sizeof(float) ? 0 : (C)0x1p-900;
    return (fabs(x) < fabs(y) * fewer) & (fabs(y) > least) & (fabs(y) < (C)INFINITY);
}

/* Returns fmod(x, y) as |x| - trunc(|x| / |y|) * |y| with the sign of x. Requires has_short_quotient(x, y). If rounding makes trunc(|x| / |y|) one
 * too large, the result is negative before the sign is set, and |y| is added to it. */
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

/* Sets z[i] = finish(x[i], y[i], fmod(x[i], y[i])) for i < n. z may be x or y. The C library's fmod(), which does not vectorise, is called only for
 * elements for which has_short_quotient() is false. */
GRD_INLINE void after_fmod(int64_t n, C *z, const C *x, const C *y, C (*finish)(C x, C y, C m))
{
    enum { PART = 256 };
    C m[PART];
    for (int64_t start = 0; start < n; start += PART, x += PART, y += PART, z += PART) {
        const int64_t count = grd_least(n - start, PART);
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

/* Returns m, which is fmod(x, y). This function is passed to after_fmod() as `finish`. */
GRD_INLINE C itself(C x, C y, C m)
{
    (void)x, (void)y;
    return m;
}

/* Returns the remainder x - floor(x / y) * y, computed from m = fmod(x, y). The remainder has the sign of y, even if it is 0. */
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
/* Returns the float16 or bfloat16 number that follows x in the direction of y. x and y hold numbers of that dtype as floats. `dropped` is the number
 * of significand bits of a float that the dtype lacks (13 or 16). A normal number changes by one unit in its last remaining bit, a subnormal number
 * by the smallest positive number, and an infinity becomes the largest finite number. */
static inline C next_half(C x, C y, int dropped)
{
    const C least_normal = dropped == 13 ? 0x1p-14f : 0x1p-126f, least = dropped == 13 ? 0x1p-24f : 0x1p-133f, a = fabs(x);
    const bool grows = (x < y) == (x > 0);
    if (a == INFINITY)
        return copysign(dropped == 13 ? 65504.0f : 0x1.fep127f, x);
    if (a < least_normal || (a == least_normal && !grows)) {
        const C next = x + (x < y ? least : -least);
        return next == 0 ? copysign(next, x) : next;
    }
    const uint32_t step = UINT32_C(1) << dropped;
    return vm_from_bits_float(vm_bits_float(x) + (grows ? step : 0 - step));
}
#endif

/* Returns nextafter(x, y). If the dtype is float16 or bfloat16, x and y are float32 values, and `dropped` is the number of bits by which the dtype's
 * significand is shorter than that of float32. For other dtypes `dropped` is 0. */
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

/* Returns x * logarithm, where `logarithm` was computed from y. Returns 0 if x is 0 and y is not NaN. If the product is NaN, returns the constant
 * NAN, because the bits of the computed NaN would depend on the order in which the compiler multiplies x and `logarithm`. */
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
/* Returns x^y. Any number to the power 0 is 1, and 0 to a positive real power is 0. These two cases are tested here, because the C library's cpow()
 * can return NaN for them. */
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
