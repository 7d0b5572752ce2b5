/* What kernels of matrices share: parts of numbers, real or complex, and sums over columns, which are contiguous. Typed: float32 float64 complex64 complex128.
 * Invariant: sums run in lanes by the place in a column, so that they do not depend on the level. */
#ifndef GRD_KERNEL_CPU_MATRIX_H
#define GRD_KERNEL_CPU_MATRIX_H

#include <tgmath.h>

#include "kernel/cpu/typed.h"

#if GRD_IS_COMPLEX
#include "kernel/cpu/complex.h"
#else
#include "kernel/cpu/real.h"
#endif

enum { COLUMN_LANES = 8 };

/* ---- Numbers and columns -------------------------------------------------------------------------------------------------------------- */

#if GRD_IS_COMPLEX
GRD_INLINE C conjugate(C x)
{
    return number(x.re, -x.im);
}

GRD_INLINE R real_part(C x)
{
    return x.re;
}

GRD_INLINE R imaginary_part(C x)
{
    return x.im;
}

GRD_INLINE C scaled(C x, R factor)
{
    return number(x.re * factor, x.im * factor);
}
#else
typedef T R;

GRD_INLINE C conjugate(C x)
{
    return x;
}

GRD_INLINE R real_part(C x)
{
    return x;
}

GRD_INLINE R imaginary_part(C x)
{
    (void)x;
    return 0;
}

GRD_INLINE C scaled(C x, R factor)
{
    return x * factor;
}

GRD_INLINE C number(R re, R im)
{
    (void)im;
    return re;
}
#endif

/* Subtracts factor * x. */
GRD_INLINE void subtract_multiple(int64_t n, C factor, const T *restrict x, T *restrict a)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = difference(a[i], product(factor, x[i]));
}

/* The sum of conj(x[i]) * y[i]. */
GRD_INLINE C inner_product(int64_t n, const T *x, const T *y)
{
    C lanes[COLUMN_LANES] = {0};
    int64_t i = 0;
    for (; i + COLUMN_LANES <= n; i += COLUMN_LANES)
        LANEWISE for (int l = 0; l < COLUMN_LANES; l++) lanes[l] = sum(lanes[l], product(conjugate(x[i + l]), y[i + l]));
    for (int l = 0; i < n; i++, l++)
        lanes[l] = sum(lanes[l], product(conjugate(x[i]), y[i]));
    for (int step = COLUMN_LANES / 2; step > 0; step /= 2)
        for (int l = 0; l < step; l++)
            lanes[l] = sum(lanes[l], lanes[l + step]);
    return lanes[0];
}

/* The Euclidean norm, without overflow on the way. NaN if an element is. */
static inline R norm_of(int64_t n, const T *x)
{
    R largest = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fmax(fabs(real_part(x[i])), fabs(imaginary_part(x[i]))));
        total += real_part(x[i]) + imaginary_part(x[i]);
    }
    if (largest == 0 || isinf(largest))
        return isnan(total) ? total : largest;
    R squares = 0;
    for (int64_t i = 0; i < n; i++) {
        const R re = real_part(x[i]) / largest, im = imaginary_part(x[i]) / largest;
        squares += re * re + im * im;
    }
    return largest * sqrt(squares);
}

#endif
