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

/* The gradient of x1, given the gradients of the distances. Rows of x1, and of x2, are contiguous and follow each other. */
struct grd_distance_gradient {
    int64_t rows, others, width;
    double p; /* positive */
    const void *x1, *x2;
    const void *grad, *distances; /* (rows, others), with strides in elements; distances NULL: found again, of the largest difference */
    int64_t grad_strides[2], distance_strides[2];
    void *out; /* (rows, width) */
};

/* With d = x1[i] - x2[j]: out[i] = sum_j grad[i, j] sign(d) (|d| / distance[i, j])^(p - 1), and 0 where that is 0 / 0. NaN in a difference stays. */
typedef void grd_distance_gradient_kernel(const struct grd_distance_gradient *x);

#endif
