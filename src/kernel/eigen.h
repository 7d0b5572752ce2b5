/* Declares kernels that compute eigenvalues and eigenvectors of general square matrices. Matrices are column-major. */
#ifndef GRD_KERNEL_EIGEN_H
#define GRD_KERNEL_EIGEN_H

#include <stdbool.h>
#include <stdint.h>

/* The eigenvalue kernels of one dtype. */
struct grd_eigen_row {
    /* Computes the eigenvalues w and eigenvectors V of an n x n matrix A, with A V = V diag(w). w and V are complex, and the columns of V have the
     * norm 1. If ret_v is NULL, computes only w. `work` is scratch memory of n (2 n + 5) elements. ret_info receives 0, or the number of eigenvalues
     * that were not found. */
    void (*eig)(int64_t n, const void *a, void *ret_w, void *ret_v, int32_t *ret_info, void *work);
    /* Converts results of LAPACK's geev for real dtypes to those of `eig`. w_real and w_imaginary become the complex w. For a conjugate pair of
     * eigenvalues, two columns of `v` hold the real and the imaginary part of one eigenvector; they become two complex eigenvectors. */
    void (*join)(int64_t n, const void *w_real, const void *w_imaginary, const void *v, void *ret_w, void *ret_v);
};

#endif
