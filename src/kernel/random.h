/* The arithmetic of random numbers that profits from the instruction set. Drawing itself is serial and lives in op/random.c. */
#ifndef GRD_KERNEL_RANDOM_H
#define GRD_KERNEL_RANDOM_H

#include <stdint.h>

struct grd_random_kernels {
    /* Box–Muller on n blocks of 16 uniform numbers from [0, 1), in place: 8 radii, then 8 angles; normal numbers of that mean and
     * deviation come out. The float one rounds as PyTorch's 256-bit code does, at every level. */
    void (*normal_float)(int64_t n, float *data, float mean, float std);
    void (*normal_double)(int64_t n, double *data, double mean, double std);
};

#endif
