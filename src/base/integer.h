/* Small functions of integers. */
#ifndef GRD_BASE_INTEGER_H
#define GRD_BASE_INTEGER_H

#include <stdint.h>

#include "base/inline.h"

/* Returns the smaller of a and b. */
GRD_INLINE int64_t grd_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the larger of a and b. */
GRD_INLINE int64_t grd_greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns value, or the nearest of the limits low <= high if value is outside them. */
GRD_INLINE int64_t grd_clamped(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Returns a / b rounded up, for b > 0. */
GRD_INLINE int64_t grd_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* Returns the least multiple of unit > 0 that is at least a. */
GRD_INLINE int64_t grd_round_up(int64_t a, int64_t unit)
{
    return grd_ceil_div(a, unit) * unit;
}

#endif
