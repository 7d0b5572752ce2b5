/* Defines the elementwise functions of three inputs that are written by hand, because they need more than one expression. They belong to operators
 * whose schema entry has kernel = "ternary"; the other operators of this kind have an expression in the schema, from which their functions are
 * generated. The generated loops in gen/ternary_rows.h call ternary_<name>(x, y, z, scalar arguments of the operator) for each element. The build
 * compiles this file once per dtype. */
#include <math.h>

#include "kernel/cpu/elementwise.h"
#include "kernel/special.h"

#if GRD_IS_INTEGER
static inline C ternary_hidden_clamp_both(C x, C low, C high)
{
    const C above = x > low ? x : low;
    return above < high ? above : high;
}
#endif

#if GRD_IS_FLOAT
/* Returns x clamped to [low, high], or NaN if any input is NaN. If x is NaN, both comparisons are false, so x is returned. */
static inline C ternary_hidden_clamp_both(C x, C low, C high)
{
    const C above = low > x ? low : x, within = high < above ? high : above;
    return low == low && high == high ? within : (C)NAN;
}
#endif

#if GRD_IS_COMPLEX
/* Returns x + weight * (end - x) for complex numbers, starting from x if |weight| < 0.5 and otherwise from `end`. */
static inline C ternary_lerp(C x, C end, C weight)
{
    const C way = difference(end, x);
    const bool near_x = weight.re * weight.re + weight.im * weight.im < (R)0.25;
    return near_x ? sum(x, product(weight, way)) : difference(end, product(way, number(1 - weight.re, -weight.im)));
}
#endif

#include "gen/ternary_rows.h"
