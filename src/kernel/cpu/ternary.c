/* The scalar bodies of operators with kernel = "ternary": ternary_<name>(x, y, z, numbers…) over the compute type C. Typed file.
 * The loops are in map.h; the table is generated from the schema. */
#include <math.h>

#include "kernel/cpu/map.h"
#include "kernel/table.h"
#if GRD_IS_COMPLEX
#include "kernel/cpu/complex.h"
#endif
#if GRD_IS_FLOAT
#include "kernel/cpu/real.h"
#endif

static inline C ternary_hidden_where(bool condition, C x, C y)
{
    return condition ? x : y;
}

#if GRD_IS_INTEGER
static inline C ternary_hidden_addcmul(C x, C y, C z, C value)
{
    return (C)((U)x + (U)value * (U)y * (U)z);
}

static inline C ternary_hidden_clamp_both(C x, C low, C high)
{
    const C above = x > low ? x : low;
    return above < high ? above : high;
}
#endif

#if GRD_IS_FLOAT
static inline C ternary_lerp(C x, C end, C weight)
{
    return interpolated(x, end, weight);
}

static inline C ternary_hidden_addcmul(C x, C y, C z, C value)
{
    return x + value * y * z;
}

static inline C ternary_hidden_addcdiv(C x, C y, C z, C value)
{
    return x + value * y / z;
}

/* NaN in any input gives NaN. One choice at a time: conditions that are joined do not vectorise here. */
static inline C ternary_hidden_clamp_both(C x, C low, C high)
{
    const C larger = x > low ? x : low, above = x != x ? x : larger;
    const C smaller = above < high ? above : high;
    return above != above ? above : smaller;
}
#endif

#if GRD_IS_COMPLEX
static inline C ternary_lerp(C x, C end, C weight)
{
    const C way = difference(end, x);
    const bool near_x = weight.re * weight.re + weight.im * weight.im < (R)0.25;
    return near_x ? sum(x, product(weight, way)) : difference(end, product(way, number(1 - weight.re, -weight.im)));
}

static inline C ternary_hidden_addcmul(C x, C y, C z, C value)
{
    return sum(x, product(product(value, y), z));
}

static inline C ternary_hidden_addcdiv(C x, C y, C z, C value)
{
    return sum(x, quotient(product(value, y), z));
}
#endif

#include "gen/ternary_rows.h"
