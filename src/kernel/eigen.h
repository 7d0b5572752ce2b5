/* Eigenvalues of general square matrices, per dtype. Matrices lie column by column. */
#ifndef GRD_KERNEL_EIGEN_H
#define GRD_KERNEL_EIGEN_H

#include <stdbool.h>
#include <stdint.h>

struct grd_eigen_row {
    /* A V = V diag(w) of an n x n matrix, with complex w and V, which has columns of length 1. ret_v NULL: the values alone. `work` has n (2 n + 5) elements.
     * info: 0, or how many values were not found. */
    void (*eig)(int64_t n, const void *a, void *ret_w, void *ret_v, int32_t *ret_info, void *work);
    /* For real dtypes, the same results from those of LAPACK: parts of w, and columns of V, which for a pair of conjugates are their real and imaginary part. */
    void (*join)(int64_t n, const void *w_real, const void *w_imaginary, const void *v, void *ret_w, void *ret_v);
};

#endif
