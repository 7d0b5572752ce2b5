/* Eigenvalues, singular values and least squares by LAPACK, one matrix at a time, over OpenBLAS. For eigh_svd.c and least_squares.c alone. */
#ifndef GRD_OP_LAPACK_EIGH_SVD_H
#define GRD_OP_LAPACK_EIGH_SVD_H

#include <stdbool.h>
#include <stddef.h>

#include "gradus/types.h"
#include "kernel/spectral.h"
#include "op/lapack_reflections.h"

/* The memory of a call: copies of matrices, and as much workspace as LAPACK asks for, in elements of the dtype, real numbers and integers. */
struct grd_lapack_work {
    int64_t copies, elements, reals, integers;
    size_t bytes; /* bytes of all parts */
};

/* Asks for the workspace of matrices of such sizes; false if there is no such routine. What the pointers of e and s lead to is not read. */
bool grd_lapack_eigh_work(grd_dtype dtype, const struct grd_eigh *e, struct grd_lapack_work *ret_work);
bool grd_lapack_svd_work(grd_dtype dtype, const struct grd_svd *s, struct grd_lapack_work *ret_work);
/* Computes one matrix, all of whose elements are finite. False, with nothing written, where OpenBLAS has no memory for the call. */
bool grd_lapack_eigh(grd_dtype dtype, const struct grd_eigh *e, const struct grd_lapack_work *w, char *work);
bool grd_lapack_svd(grd_dtype dtype, const struct grd_svd *s, const struct grd_lapack_work *w, char *work);

/* x = pinv(a) b, column by column: a of m x n, b of m x k, x of n x k. Singular values below rcond times the largest count as 0; the rank is how
 * many do not. */
struct grd_least_squares {
    int64_t m, n, k;
    double rcond;
    const void *a, *b;
    void *ret_x, *ret_factors; /* factors: T of a = Q T Z P as a triangle, of as many rows as the rank */
    int64_t *ret_rank;
};

/* Returns the memory for a call; no size may be 0. */
struct grd_lapack_work grd_lapack_least_squares_work(grd_dtype dtype, int64_t m, int64_t n, int64_t k);
/* Computes one matrix, all of whose elements are finite. False, and nothing of use is written, where its rank is full or not clear, there is no
 * such routine, or no memory for the call. */
bool grd_lapack_least_squares(grd_dtype dtype, const struct grd_least_squares *s, const struct grd_lapack_work *w, char *work);

#endif
