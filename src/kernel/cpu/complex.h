/* Arithmetic of complex numbers as the struct C of typed.h, and the way to C's own complex type, E, for libm. Complex dtypes only. */
#ifndef GRD_KERNEL_COMPLEX_H
#define GRD_KERNEL_COMPLEX_H

#include <string.h>
#include <tgmath.h>

#include "kernel/cpu/typed.h"

static inline E to_libm(C x)
{
    E z;
    memcpy(&z, &x, sizeof z);
    return z;
}

static inline C of_libm(E z)
{
    C x;
    memcpy(&x, &z, sizeof x);
    return x;
}

/* A function of one number, as C's own complex type has it. */
#define LIBM(function, x) of_libm(function(to_libm(x)))

static inline C number(R re, R im)
{
    C x = {re, im};
    return x;
}

static inline C constant(double x)
{
    return number((R)x, 0);
}

static inline bool equal(C x, C y)
{
    return x.re == y.re && x.im == y.im;
}

static inline C negative(C x)
{
    return number(-x.re, -x.im);
}

static inline R part_abs(R x)
{
    return x < 0 ? -x : x;
}

static inline C sum(C x, C y)
{
    return number(x.re + y.re, x.im + y.im);
}

static inline C difference(C x, C y)
{
    return number(x.re - y.re, x.im - y.im);
}

/* The real part is a sum like the imaginary one: from a difference beside a sum, GCC 12 makes fused multiply-adds although contraction is
 * off, and the last elements of a loop would round differently. */
static inline C product(C x, C y)
{
    const R minus = -x.im;
    return number(x.re * y.re + minus * y.im, x.re * y.im + x.im * y.re);
}

/* Smith's method: divides by the larger part of y first, so that |y|^2 does not overflow. By zero: each part by zero. */
static inline C quotient(C x, C y)
{
    const bool real_larger = part_abs(y.re) >= part_abs(y.im);
    const R large = real_larger ? y.re : y.im, small = real_larger ? y.im : y.re;
    const R ratio = large == 0 ? 0 : small / large;
    const R scale = 1 / (large + small * ratio);
    const R minus = -x.re; /* as in product */
    const R re = real_larger ? x.re + x.im * ratio : x.re * ratio + x.im;
    const R im = real_larger ? x.im + minus * ratio : x.im * ratio + minus;
    const R re_infinity = copysign((R)INFINITY, y.re), im_infinity = copysign((R)INFINITY, y.im);
    const C by_zero = {x.re * re_infinity, x.im * im_infinity};
    return large == 0 ? by_zero : number(re * scale, im * scale);
}

#endif
