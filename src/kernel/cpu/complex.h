/* Defines arithmetic of complex numbers of the type C, a struct of typed.h. Also defines conversions to and from E, the C language's own complex
 * type. The functions of libm take numbers of type E. Only files compiled for complex dtypes include this header. Files compiled for real dtypes
 * include real.h, which defines functions of the same names. */
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

/* The value of function(x) as a C, where `function` is a function of libm that takes one complex number and returns one. */
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

/* Returns x * y. The real part is written as a sum, like the imaginary part. If one of the two were a difference, GCC 12 would make fused
 * multiply-adds of them although contraction is off, and the last elements of a loop would be rounded differently from the others. */
static inline C product(C x, C y)
{
    const R minus = -x.im;
    return number(x.re * y.re + minus * y.im, x.re * y.im + x.im * y.re);
}

/* Returns x / y by Smith's method, which divides by the larger part of y first, so that |y|^2 does not overflow. If y is 0, both parts of x are divided
 * by 0, whatever the signs of the zeros in y, as in PyTorch and NumPy. */
static inline C quotient(C x, C y)
{
    const bool real_larger = part_abs(y.re) >= part_abs(y.im);
    const R large = real_larger ? y.re : y.im, small = real_larger ? y.im : y.re;
    const R ratio = large == 0 ? 0 : small / large;
    const R scale = 1 / (large + small * ratio);
    /* the formulas add `minus` instead of subtracting x.re, because GCC 12 would turn a difference into a fused multiply-add */
    const R minus = -x.re;
    const R re = real_larger ? x.re + x.im * ratio : x.re * ratio + x.im;
    const R im = real_larger ? x.im + minus * ratio : x.im * ratio + minus;
    return large == 0 ? number(x.re * (R)INFINITY, x.im * (R)INFINITY) : number(re * scale, im * scale);
}

#endif
