/* Declares kernels that compute the distances between the rows of two matrices (torch.cdist), and the gradient of the distances. */
#ifndef GRD_KERNEL_DISTANCE_H
#define GRD_KERNEL_DISTANCE_H

#include <stdint.h>

/* The arguments of a distance kernel: `rows` rows of x1 and `others` rows of x2, which have `width` contiguous elements each. */
struct grd_distance_block {
    int64_t rows, others, width;
    double p; /* exponent of the norm, at least 0 */
    const void *x1, *x2;
    void *out; /* has the shape (rows, others) */
};

/* Writes out[i, j] = p-norm of x1[i] - x2[j], summed in double. For p = 0 the norm is the number of nonzero elements, for p = infinity the largest
 * absolute value. The result is NaN if any difference is NaN. */
typedef void grd_distance_kernel(const struct grd_distance_block *block);

/* The arguments of the kernel for the gradient of x1, given `grad`, the gradients of the distances. The rows of x1 and x2 are contiguous and follow
 * each other. */
struct grd_distance_gradient {
    int64_t rows, others, width;
    double p; /* exponent of the norm, above 0 */
    const void *x1, *x2;
    /* `grad` and `distances` have the shape (rows, others) and any strides. `distances` may be NULL if p is infinity, since the distances are then
     * computed again. */
    const void *grad, *distances;
    int64_t grad_strides[2], distance_strides[2];
    void *out; /* has the shape (rows, width) */
};

/* Writes out[i] = sum over j of grad[i, j] sign(d) (|d| / distances[i, j])^(p - 1), where d = x1[i] - x2[j]. A term that is 0 / 0 counts as 0. If an
 * element of d is NaN, so is this element of out[i]. */
typedef void grd_distance_gradient_kernel(const struct grd_distance_gradient *x);

#endif
