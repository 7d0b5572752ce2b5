/* Shared by the kernels of matrix decompositions, which are compiled for float32, float64, complex64 and complex128. Defines functions of one number,
 * real or complex, and sums over columns, which are contiguous.
 * Invariant: the order in which the terms of a sum are added depends only on the length of a column, so results do not depend on the instruction-set
 * level. */
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

/* Subtracts factor * x[i] from a[i] for each i < n. */
GRD_INLINE void subtract_multiple(int64_t n, C factor, const T *restrict x, T *restrict a)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = difference(a[i], product(factor, x[i]));
}

/* Returns the sum of conj(x[i]) * y[i] over i < n. */
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

/* Returns the Euclidean norm of x, or NaN if an element is NaN. The elements are divided by the largest absolute value of a real or imaginary part
 * first, so that their squares do not overflow. */
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
