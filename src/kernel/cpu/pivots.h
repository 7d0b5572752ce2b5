/* Defines functions for the kernels that choose pivots (lu.c and ldl.c). These files are compiled once for each of float32,
 * float64, complex64 and complex128. */
#ifndef GRD_KERNEL_CPU_PIVOTS_H
#define GRD_KERNEL_CPU_PIVOTS_H

#include "kernel/cpu/exchange.h"
#include "kernel/cpu/matrix.h"

/* Returns |x|, or |real| + |imaginary| if x is complex. This is the magnitude by which LAPACK chooses pivots. */
GRD_INLINE R size_of(C x)
{
    return GRD_IS_COMPLEX ? fabs(real_part(x)) + fabs(imaginary_part(x)) : fabs(real_part(x));
}

/* Returns the index of the element of x with the largest size_of(), or the lowest such index if several elements have it. x has n > 0 elements. */
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
