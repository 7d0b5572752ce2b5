/* The bodies of operators with kernel = "unary" that are more than an expression: unary_<name>(x, numbers…) over the compute type C. Typed file.
 * The schema has the others (expr), from which they are generated, with the loops and the table. The functions that vectorise are in vecmath.h. */
#include <math.h>
#include <string.h>

#include "kernel/cpu/map.h"
#include "kernel/cpu/vecmath_power.h"
#include "kernel/cpu/vecmath_special.h"
#include "kernel/special.h"

/* ---- Floating point ----------------------------------------------------------------------------------------------------------- */
#if GRD_IS_FLOAT && !GRD_IS_HALF
static inline bool all_within(int64_t n, const C *x, C limit)
{
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= !(fabs(x[i]) <= limit);
    return outside == 0;
}

/* y = near(x), and far(x) out of the range of vm_sin, vm_cos and vm_tan; y may be x, so that a part of the arguments is kept where it is needed. */
INLINE void near_and_far(int64_t n, C *y, const C *x, C (*near)(C), C (*far)(C))
{
    enum { PART = 256 };
    C kept[PART];
    for (int64_t start = 0; start < n; start += PART) {
        const int64_t m = n - start < PART ? n - start : PART;
        const bool within = all_within(m, x + start, VM_TRIG_LIMIT);
        if (!within)
            memcpy(kept, x + start, (size_t)m * sizeof(C));
        IN_PLACE
        for (int64_t i = start; i < start + m; i++)
            y[i] = near(x[i]);
        for (int64_t i = 0; !within && i < m; i++)
            if (!(fabs(kept[i]) <= (C)VM_TRIG_LIMIT))
                y[start + i] = far(kept[i]);
    }
}

static void unary_sin(int64_t n, C *y, const C *x)
{
    near_and_far(n, y, x, BY_TYPE(vm_sin_float, vm_sin_double), BY_TYPE(sinf, sin));
}

static void unary_cos(int64_t n, C *y, const C *x)
{
    near_and_far(n, y, x, BY_TYPE(vm_cos_float, vm_cos_double), BY_TYPE(cosf, cos));
}

static void unary_tan(int64_t n, C *y, const C *x)
{
    near_and_far(n, y, x, BY_TYPE(vm_tan_float, vm_tan_double), BY_TYPE(tanf, tan));
}

static inline C unary_hidden_frexp_mantissa(C x)
{
    int exponent;
    return frexp(x, &exponent);
}

/* Of infinities and NaN C says nothing. */
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

/* (e^a - 1) cos b + (cos b - 1) + i e^a sin b, with cos b - 1 = -2 sin^2(b / 2): nothing cancels near 0. Where factors have no value the results are those that
 * C's annex G gives exp. */
static inline C unary_expm1(C x)
{
    if (x.im == 0)
        return number(expm1(x.re) + 0, x.im);
    if (isinf(x.re) && !isfinite(x.im))
        return x.re > 0 ? number(x.re, (R)NAN) : number(-1, 0);
    const R half = sin(x.im / 2);
    return number(expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im));
}

/* |1 + z|^2 = 1 + a (2 + a) + b^2 near 0, where a and b lose nothing in it. Elsewhere the sum cancels, at z = -1, or overflows. */
static inline C unary_log1p(C x)
{
    if (fabs(x.re) < (R)0.5 && fabs(x.im) < (R)0.5)
        return number(log1p(x.re * (2 + x.re) + x.im * x.im) / 2, atan2(x.im, 1 + x.re));
    return LIBM(log, number(1 + x.re, x.im));
}

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

/* 1 + e^-x */
static inline C inverse_sigmoid(C x)
{
    const C e = LIBM(exp, number(-x.re, -x.im));
    return number(1 + e.re, e.im);
}
#endif

#include "gen/unary_rows.h"
