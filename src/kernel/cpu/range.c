/* Computes evenly spaced numbers (arange, linspace), and powers with such numbers as exponents (logspace); see kernel/range.h. The build compiles
 * this file once for each of int64, float32 and float64. Each evenly spaced number is a product and a sum, both rounded to the dtype and never fused,
 * as in PyTorch. */
#include "kernel/range.h"

#include <math.h>

#include "kernel/cpu/typed.h"

/* A is the type in which the numbers are computed. It is unsigned for integers, so that they wrap around. NUMBER() returns the value of a grd_scalar
 * in that type. */
#if GRD_IS_INTEGER
typedef U A;
#define NUMBER(scalar) ((A)(scalar).v.i)
#else
typedef T A;
#define NUMBER(scalar) ((A)(scalar).v.c.re)
#endif

GRD_INLINE void put_line(int64_t n, int64_t first, A start, A step, T *values, int64_t stride)
{
    for (int64_t i = 0; i < n; i++)
        values[i * stride] = (T)(start + step * (A)(first + i));
}

static void line(int64_t n, int64_t first, grd_scalar start, grd_scalar step, void *ret_values, int64_t stride)
{
    if (stride == 1)
        put_line(n, first, NUMBER(start), NUMBER(step), ret_values, 1);
    else
        put_line(n, first, NUMBER(start), NUMBER(step), ret_values, stride);
}

#if GRD_TAG == GRD_TAG_float64
static void powers(int64_t n, double base, double *values)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = pow(base, values[i]);
}

static void complex_powers(int64_t n, double base, double *pairs)
{
    for (int64_t i = 0; i < 2 * n; i += 2) {
        const double size = pow(base, pairs[i]), angle = pairs[i + 1] * log(base);
        pairs[i] = size * cos(angle);
        pairs[i + 1] = size * sin(angle);
    }
}
#endif

const struct grd_range_row GRD_TYPED(grd_range_row) = {
    .line = line,
#if GRD_TAG == GRD_TAG_float64
    .powers = powers,
    .complex_powers = complex_powers,
#endif
};
