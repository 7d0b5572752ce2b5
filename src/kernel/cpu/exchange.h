/* Exchanges elements of two arrays. Included by kernels, which are compiled once for each of their dtypes. */
#ifndef GRD_KERNEL_CPU_EXCHANGE_H
#define GRD_KERNEL_CPU_EXCHANGE_H

#include "kernel/cpu/typed.h"

/* Exchanges n elements of x with n elements of y. The elements of both arrays are `step` apart. */
GRD_INLINE void exchange(int64_t n, int64_t step, T *x, T *y)
{
    for (int64_t i = 0; i < n * step; i += step) {
        const T kept = x[i];
        x[i] = y[i];
        y[i] = kept;
    }
}

#endif
