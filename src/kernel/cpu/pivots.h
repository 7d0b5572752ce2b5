/* What kernels share that choose pivots and exchange rows. Typed: float32 float64 complex64 complex128. */
#ifndef GRD_KERNEL_CPU_PIVOTS_H
#define GRD_KERNEL_CPU_PIVOTS_H

#include "kernel/cpu/matrix.h"

/* The size by which a pivot is chosen, as in LAPACK. */
GRD_INLINE R size_of(C x)
{
    return GRD_IS_COMPLEX ? fabs(real_part(x)) + fabs(imaginary_part(x)) : fabs(real_part(x));
}

/* Exchanges n elements, `step` apart from one another. */
GRD_INLINE void exchange(int64_t n, int64_t step, T *x, T *y)
{
    for (int64_t i = 0; i < n * step; i += step) {
        const T kept = x[i];
        x[i] = y[i];
        y[i] = kept;
    }
}

/* The place of the largest element of at least one, the first of equal ones. */
GRD_INLINE int64_t largest_of(int64_t n, const T *x)
{
    int64_t at = 0;
    R largest = size_of(x[0]);
    for (int64_t i = 1; i < n; i++)
        if (size_of(x[i]) > largest) {
            largest = size_of(x[i]);
            at = i;
        }
    return at;
}

#endif
