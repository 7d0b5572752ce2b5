/* Defines the arithmetic of real numbers as functions. complex.h defines functions of the same names for complex numbers, so a kernel can be written
 * once for real and complex dtypes. Also defines functions that several kernel files use. */
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

/* W is the type in which the functions below compute. It is unsigned for integers, so that they wrap around. For bool, a sum is "or" and a product is
 * "and". */
#if GRD_IS_INTEGER
typedef U W;
#else
typedef C W;
#endif

static inline C negative(C x)
{
    return (C) - (W)x; /* not 0 - x, which would give 0.0 for 0.0 instead of -0.0 */
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

/* Expands to of_float if the type C is float, and to of_double if it is double. */
#define BY_TYPE(of_float, of_double) _Generic((C)0, float : of_float, double : of_double)

/* Returns x / y rounded down, given m = fmod(x, y). It computes (x - m) / y, which is an integer except for rounding errors. floor(x / y) would be
 * one too large if the division x / y rounds up to an integer. */
static inline C quotient_less(C x, C y, C m)
{
    const bool below = (m != 0) & ((m < 0) != (y < 0));
    const C q = (x - m) / y - (below ? 1 : 0), whole = floor(q), nearest = q - whole > (C)0.5 ? whole + 1 : whole;
    const C quotient = x / y, found = q == 0 ? copysign((C)0, quotient) : nearest;
    return y == 0 ? quotient : found;
}

/* Returns x / y rounded down. */
static inline C floored_quotient(C x, C y)
{
    return quotient_less(x, y, fmod(x, y));
}

/* Returns x + weight * (end - x), computed from whichever of x and `end` is nearer to the result, so that a weight of 1 gives exactly `end`. */
static inline C interpolated(C x, C end, C weight)
{
    const C way = end - x;
    const bool near_x = (weight < (C)0.5) & (weight > (C)-0.5);
    const C start = near_x ? x : end, part = near_x ? weight : weight - 1;
    return start + part * way;
}

#endif

#endif
