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

/* The arguments of the kernel that computes the gradient of x1 from `grad`, the gradient of the distances. x1 (rows x width) and x2 (others x width)
 * are contiguous matrices. */
struct grd_distance_gradient {
    int64_t rows, others, width;
    double p; /* exponent of the norm, above 0 */
    const void *x1, *x2;
    /* `grad` and `distances` have the shape (rows, others) and any strides. If `distances` is NULL, which is allowed only if p is infinity, the
     * kernel computes the distances again. */
    const void *grad, *distances;
    int64_t grad_strides[2], distance_strides[2];
    void *out; /* has the shape (rows, width) */
};

/* Writes out[i] = sum over j of grad[i, j] sign(d) (|d| / distances[i, j])^(p - 1), where d is the row x1[i] - x2[j] of `width` elements. A term that
 * is 0 / 0 counts as 0. If element k of d is NaN for some j, element k of out[i] is NaN. */
typedef void grd_distance_gradient_kernel(const struct grd_distance_gradient *x);

#endif
