/* Defines the elementwise functions of one input that are written by hand, because they need more than one expression. They belong to operators whose
 * schema entry has kernel = "unary"; most other operators of this kind have an expression in the schema, from which their functions are generated.
 * The generated loops in gen/unary_rows.h call unary_<name>(x, scalar arguments of the operator) for each element; a function with a parameter n
 * computes a whole array instead. The build compiles this file once per dtype. Functions that vectorise are in vecmath.h. */
#include <math.h>
#include <string.h>

#include "kernel/cpu/lanes.h"
#include "kernel/cpu/elementwise.h"
#include "kernel/cpu/vecmath_power.h"
#include "kernel/cpu/vecmath_special.h"
#include "kernel/special.h"

/* ---- Floating point ----------------------------------------------------------------------------------------------------------- */
#if GRD_IS_FLOAT && !GRD_IS_HALF
/* Number of arguments that a function processes at a time. Before it computes their results, it checks whether all of them are in the range of a faster
 * method. PIECE arguments and PIECE results fit into the first-level cache together. */
enum { PIECE = 4096 / sizeof(C) };

/* An integer as wide as an element. */
typedef __typeof__(BY_TYPE((int32_t)0, (int64_t)0)) bits;
/* Says whether all_within() tests x or |x|. */
enum { SIGN_COUNTS, SIGN_DOES_NOT_COUNT };

/* Returns the bits of x as an integer. */
GRD_INLINE bits bits_of(C x)
{
    return (bits)BY_TYPE(vm_bits_float, vm_bits)(x);
}

/* True if all n numbers x (SIGN_COUNTS), or all |x| (SIGN_DOES_NOT_COUNT), are in [least, most]. The two bounds are not negative. Compares the bits
 * as integers, because positive floats are ordered like their bits, with NaN above all of them. */
GRD_INLINE bool all_within(int64_t n, const C *x, int sign, C least, C most)
{
    const bits counted = sign == SIGN_COUNTS ? -1 : BY_TYPE(INT32_MAX, INT64_MAX);
    bits smallest = bits_of(most), largest = bits_of(least);
    for (int64_t i = 0; i < n; i++) {
        const bits b = bits_of(x[i]) & counted;
        smallest = b < smallest ? b : smallest;
        largest = b > largest ? b : largest;
    }
    return smallest >= bits_of(least) && largest <= bits_of(most);
}

/* True if arguments are checked for their range, so that a faster function can be used for most of them. Instruction-set levels without fused
 * multiply-add use one loop for all arguments, which keeps the library small. */
#ifdef HAS_FMA
enum { CHECKS_RANGE = true };
#else
enum { CHECKS_RANGE = false };
#endif

/* Sets y[i] = general(x[i]) for i < n. A piece of PIECE neighbouring arguments is computed with shorter() instead if all its arguments lie in [least,
 * most] (see all_within() for `sign`). shorter() is faster and gives the same bits in this range. */
GRD_INLINE void shorter_if_within(int64_t n, C *y, const C *x, int sign, C least, C most, C (*shorter)(C), C (*general)(C))
{
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = grd_least(start + PIECE, n);
        if (CHECKS_RANGE && all_within(end - start, x + start, sign, least, most)) {
            IN_PLACE
            for (int64_t i = start; i < end; i++)
                y[i] = shorter(x[i]);
        } else {
            IN_PLACE
            for (int64_t i = start; i < end; i++)
                y[i] = general(x[i]);
        }
    }
}

static void unary_exp(int64_t n, C *y, const C *x)
{
    shorter_if_within(n, y, x, SIGN_DOES_NOT_COUNT, 0, BY_TYPE(87, 708), BY_TYPE(vm_exp_normal_float, vm_exp_normal_double),
                      BY_TYPE(vm_exp_float, vm_exp_double));
}

#if defined(__AVX512F__)
/* Returns correctly rounded square roots of normal numbers. Newton's method for the root and half its reciprocal takes half as long as the
 * processor's instruction. Before rounding, the result of the last Newton step differs from the exact root by less than half a unit in the last
 * place. The result is rounded down to `low`. So the correctly rounded root is `low` or the next larger number, here called `high`. It is `high`
 * exactly if x is above the square of the midpoint of `low` and `high`. The product low * high is slightly smaller than this square, but no
 * floating-point number lies between the two. So x is compared with the product, which the fused multiply-add does not round. */
GRD_INLINE vector roots_of_normal(vector x)
{
    const vector estimate = nearly_reciprocal_roots(x), half = everywhere((C)0.5);
    vector root = x * estimate, half_reciprocal = half * estimate;
    if (sizeof(C) == 8) {
        const vector rest = multiply_add(-root, half_reciprocal, half);
        root = multiply_add(root, rest, root);
        half_reciprocal = multiply_add(half_reciprocal, rest, half_reciprocal);
    }
    const lane_bits low = (lane_bits)multiply_add_down(multiply_add(-root, root, x), half_reciprocal, root);
    /* a comparison gives -1 where it is true, so subtracting it adds 1 */
    return (vector)(low - (multiply_add(-(vector)low, (vector)(low + 1), x) > 0));
}
#endif

static void unary_sqrt(int64_t n, C *y, const C *x)
{
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = grd_least(start + PIECE, n);
        int64_t i = start;
#if defined(__AVX512F__)
        if (all_within(end - start, x + start, SIGN_COUNTS, BY_TYPE(0x1p-100f, 0x1p-900), BY_TYPE(0x1p100f, 0x1p900)))
            for (; i + LANES <= end; i += LANES)
                store_vector(y + i, roots_of_normal(load_vector(x + i)));
#endif
        IN_PLACE
        for (; i < end; i++)
            y[i] = BY_TYPE(sqrtf, sqrt)(x[i]);
    }
}

static void unary_log(int64_t n, C *y, const C *x)
{
    shorter_if_within(n, y, x, SIGN_COUNTS, BY_TYPE(0x1p-126f, 0x1p-1022), BY_TYPE(0x1.fffffep127f, 0x1.fffffffffffffp1023),
                      BY_TYPE(vm_log_normal_float, vm_log_normal_double), BY_TYPE(vm_log_float, vm_log_double));
}

static void unary_erf(int64_t n, C *y, const C *x)
{
    const C below_1 = BY_TYPE(0x1.fffffep-1f, 0x1.fffffffffffffp-1);
    shorter_if_within(n, y, x, SIGN_DOES_NOT_COUNT, 0, below_1, BY_TYPE(vm_erf_near_float, vm_erf_near_double),
                      BY_TYPE(vm_erf_float, vm_erf_double));
}

/* Sets y[i] = reduced(x[i]) for i < n, or libm(x[i]) if |x[i]| > VM_TRIG_LIMIT. A piece of PIECE arguments is copied first if one of
 * them is above this limit, because y may be x, and then reduced() overwrites the arguments of libm(). */
GRD_INLINE void reduced_or_libm(int64_t n, C *y, const C *x, C (*reduced)(C), C (*libm)(C))
{
    C kept[PIECE];
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t m = grd_least(PIECE, n - start);
        const bool within = all_within(m, x + start, SIGN_DOES_NOT_COUNT, 0, (C)VM_TRIG_LIMIT);
        if (!within)
            memcpy(kept, x + start, (size_t)m * sizeof(C));
        IN_PLACE
        for (int64_t i = start; i < start + m; i++)
            y[i] = reduced(x[i]);
        for (int64_t i = 0; !within && i < m; i++)
            if (!(fabs(kept[i]) <= (C)VM_TRIG_LIMIT))
                y[start + i] = libm(kept[i]);
    }
}

static void unary_sin(int64_t n, C *y, const C *x)
{
    reduced_or_libm(n, y, x, BY_TYPE(vm_sin_float, vm_sin_double), BY_TYPE(sinf, sin));
}

static void unary_cos(int64_t n, C *y, const C *x)
{
    reduced_or_libm(n, y, x, BY_TYPE(vm_cos_float, vm_cos_double), BY_TYPE(cosf, cos));
}

static void unary_tan(int64_t n, C *y, const C *x)
{
    reduced_or_libm(n, y, x, BY_TYPE(vm_tan_float, vm_tan_double), BY_TYPE(tanf, tan));
}

static inline C unary_hidden_frexp_mantissa(C x)
{
    int exponent;
    return frexp(x, &exponent);
}

/* Returns the exponent that frexp() gives, but 0 for infinities and NaN, where C leaves the exponent unspecified. */
static inline C unary_hidden_frexp_exponent(C x)
{
    int exponent = 0;
    (void)frexp(x, &exponent);
    return isfinite(x) ? (C)exponent : 0;
}
#endif

/* ---- Complex --------------------------------------------------------------------------------------------------------------------- */
#if GRD_IS_COMPLEX
static const R ln2 = (R)0.69314718055994530942, ln10 = (R)2.30258509299404568402;

/* Returns e^x - 1 = (e^a - 1) cos b + (cos b - 1) + i e^a sin b for x = a + ib. cos b - 1 is computed as -2 sin^2(b / 2), so that nothing cancels
 * near 0. If a is infinite and b is not finite, the result is that of cexp() in annex G of the C standard, minus 1. */
static inline C unary_expm1(C x)
{
    if (x.im == 0)
        return number(expm1(x.re) + 0, x.im);
    if (isinf(x.re) && !isfinite(x.im))
        return x.re > 0 ? number(x.re, (R)NAN) : number(-1, 0);
    const R half = sin(x.im / 2);
    return number(expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im));
}

/* Returns log(1 + z) for z = a + ib. Near 0 it uses |1 + z|^2 = 1 + a (2 + a) + b^2, whose terms lose no digits of a and b. Elsewhere that sum would
 * cancel (near z = -1) or overflow, so the logarithm of the rounded sum 1 + z is computed. */
static inline C unary_log1p(C x)
{
    if (fabs(x.re) < (R)0.5 && fabs(x.im) < (R)0.5)
        return number(log1p(x.re * (2 + x.re) + x.im * x.im) / 2, atan2(x.im, 1 + x.re));
    return LIBM(log, number(1 + x.re, x.im));
}

/* Returns log(x) / log_of_base for a complex x. */
static inline C log_to_base(C x, R log_of_base)
{
    const C y = LIBM(log, x);
    return number(y.re / log_of_base, y.im / log_of_base);
}

static inline C unary_sinc(C x)
{
    const C angle = number(x.re * (R)3.14159265358979323846, x.im * (R)3.14159265358979323846);
    return x.re == 0 && x.im == 0 ? number(1, 0) : quotient(LIBM(sin, angle), angle);
}

/* Returns 1 + e^-x for a complex x, which is 1 / sigmoid(x). */
static inline C inverse_sigmoid(C x)
{
    const C e = LIBM(exp, number(-x.re, -x.im));
    return number(1 + e.re, e.im);
}
#endif

#include "gen/unary_rows.h"
