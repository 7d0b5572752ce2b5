/* Distances between rows. */
#ifndef GRD_KERNEL_DISTANCE_H
#define GRD_KERNEL_DISTANCE_H

#include <stdint.h>

/* Rows of `width` elements, one after the other: every one of x1 with every one of x2. */
struct grd_distance_block {
    int64_t rows, others, width;
    double p; /* not negative */
    const void *x1, *x2;
    void *out; /* (rows, others) */
};

/* The p-norm of each difference, with sums in double: for p = 0 the number of elements that are not 0, for infinity the largest size. NaN wins. */
typedef void grd_distance_kernel(const struct grd_distance_block *block);

#endif
