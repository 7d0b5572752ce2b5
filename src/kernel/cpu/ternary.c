/* The bodies of operators with kernel = "ternary" that are more than an expression: ternary_<name>(x, y, z, numbers…), as in unary.c. Typed file. */
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
/* NaN in any input gives NaN: x stays where a comparison fails. */
static inline C ternary_hidden_clamp_both(C x, C low, C high)
{
    const C above = low > x ? low : x, within = high < above ? high : above;
    return low == low && high == high ? within : (C)NAN;
}
#endif

#if GRD_IS_COMPLEX
static inline C ternary_lerp(C x, C end, C weight)
{
    const C way = difference(end, x);
    const bool near_x = weight.re * weight.re + weight.im * weight.im < (R)0.25;
    return near_x ? sum(x, product(weight, way)) : difference(end, product(way, number(1 - weight.re, -weight.im)));
}
#endif

#include "gen/ternary_rows.h"
