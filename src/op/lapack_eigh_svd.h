/* Declares functions that compute eigenvalues, singular values and least squares of one matrix by LAPACK, which is called through OpenBLAS. Only
 * eigh_svd.c and least_squares.c use this header. */
#ifndef GRD_OP_LAPACK_EIGH_SVD_H
#define GRD_OP_LAPACK_EIGH_SVD_H

#include <stdbool.h>
#include <stddef.h>

#include "gradus/types.h"
#include "kernel/spectral.h"
#include "op/lapack_reflections.h"

/* Memory needed by one LAPACK call. `copies` counts elements for copies of matrices, and `elements` counts elements of workspace, both of the
 * matrix's dtype. `reals` counts real numbers of the same precision, and `integers` counts int64_t. */
struct grd_lapack_work {
    int64_t copies, elements, reals, integers;
    size_t bytes; /* size of all four arrays together, each rounded up to a multiple of 64 bytes */
};

/* Asks LAPACK for the workspace that the decomposition of a matrix of the sizes in `e` needs. Returns false if there is no such routine. The arrays
 * that `e` points to are not read. */
bool grd_lapack_eigh_work(grd_dtype dtype, const struct grd_eigh *e, struct grd_lapack_work *ret_work);
/* Asks LAPACK for the workspace that the decomposition of a matrix of the sizes in `s` needs. Returns false if there is no such routine. The arrays
 * that `s` points to are not read. */
bool grd_lapack_svd_work(grd_dtype dtype, const struct grd_svd *s, struct grd_lapack_work *ret_work);
/* Computes eigenvalues, and eigenvectors if e->ret_v is not NULL, of one matrix whose elements are all finite. `w` is the result of
 * grd_lapack_eigh_work(), and `work` is memory of w->bytes bytes. Returns false, with nothing written, if OpenBLAS has no memory for the call. */
bool grd_lapack_eigh(grd_dtype dtype, const struct grd_eigh *e, const struct grd_lapack_work *w, char *work);
/* Computes the singular value decomposition of one matrix whose elements are all finite. `w` is the result of grd_lapack_svd_work(), and `work` is
 * memory of w->bytes bytes. Returns false, with nothing written, if OpenBLAS has no memory for the call. */
bool grd_lapack_svd(grd_dtype dtype, const struct grd_svd *s, const struct grd_lapack_work *w, char *work);

/* Arguments of x = pinv(a) b for column-major matrices: a is m x n, b is m x k and x is n x k. Singular values below rcond times the largest count as
 * 0, and the rank is the number of the other singular values. */
struct grd_least_squares {
    int64_t m, n, k;
    double rcond;
    const void *a, *b;
    /* ret_factors: gelsy's decomposition a = Q T Z P. The upper triangular matrix T is in the first *ret_rank rows and columns. */
    void *ret_x, *ret_factors;
    int64_t *ret_rank;
};

/* Returns the memory that grd_lapack_least_squares() needs. m, n and k must not be 0. */
struct grd_lapack_work grd_lapack_least_squares_work(grd_dtype dtype, int64_t m, int64_t n, int64_t k);
/* Solves least squares by LAPACK's gelsy for one matrix whose elements are all finite. `w` is the result of grd_lapack_least_squares_work(), and
 * `work` is memory of w->bytes bytes. Returns true if the rank is certain and less than min(m, n). Otherwise returns false; the output arrays are
 * then undefined, and the caller must use another algorithm. Also returns false if the dtype has no such routine or OpenBLAS has no memory. */
bool grd_lapack_least_squares(grd_dtype dtype, const struct grd_least_squares *s, const struct grd_lapack_work *w, char *work);

#endif
