/* Arithmetic of real numbers as functions, for expressions that serve complex ones, too (complex.h), and bodies that several files of kernels share. */
#ifndef GRD_KERNEL_CPU_REAL_H
#define GRD_KERNEL_CPU_REAL_H

#include <tgmath.h>

#include "kernel/cpu/typed.h"

static inline C constant(double x)
{
    return (C)x;
}

static inline bool equal(C x, C y)
{
    return x == y;
}

/* Sums of bool elements are their "or" and products their "and"; integers wrap, through the unsigned type. */
#if GRD_IS_INTEGER
typedef U W;
#else
typedef C W;
#endif

static inline C negative(C x)
{
    return (C) - (W)x; /* 0 - x would make 0.0 of 0.0 */
}

static inline C sum(C x, C y)
{
#if GRD_IS_BOOL
    return x | y;
#else
    return (C)((W)x + (W)y);
#endif
}

static inline C difference(C x, C y)
{
    return (C)((W)x - (W)y);
}

static inline C product(C x, C y)
{
    return (C)((W)x * (W)y);
}

#if GRD_IS_FLOAT
static inline C quotient(C x, C y)
{
    return x / y;
}

/* Chooses the one of two functions that takes a C. */
#define BY_TYPE(of_float, of_double) _Generic((C)0, float : of_float, double : of_double)

/* For m = fmod(x, y). q = (x - m) / y is an integer but for rounding; floor(x / y) itself would be one too large where x / y rounds up to an integer. */
static inline C quotient_less(C x, C y, C m)
{
    const bool below = (m != 0) & ((m < 0) != (y < 0));
    const C q = (x - m) / y - (below ? 1 : 0), whole = floor(q), nearest = q - whole > (C)0.5 ? whole + 1 : whole;
    const C quotient = x / y, found = q == 0 ? copysign((C)0, quotient) : nearest;
    return y == 0 ? quotient : found;
}

static inline C floored_quotient(C x, C y)
{
    return quotient_less(x, y, fmod(x, y));
}

/* x + weight * (end - x), from the nearer end, so that weight 1 gives `end`. */
static inline C interpolated(C x, C end, C weight)
{
    const C way = end - x;
    const bool near_x = (weight < (C)0.5) & (weight > (C)-0.5);
    const C start = near_x ? x : end, part = near_x ? weight : weight - 1;
    return start + part * way;
}

#endif

#endif
