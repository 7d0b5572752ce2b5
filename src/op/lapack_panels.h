/* Declares LU and Cholesky decompositions by LAPACK. A small matrix is decomposed by one call, a large one in panels (blocks of columns) on all
 * threads. The bits of the results depend on the matrix and not on the number of threads. The functions below return false, with nothing written, if
 * OpenBLAS is not available. */
#ifndef GRD_OP_LAPACK_PANELS_H
#define GRD_OP_LAPACK_PANELS_H

#include "base/parallel.h"
#include "gradus/types.h"
#include "op/plan.h"

/* Overwrites the lower triangle of a Hermitian n x n matrix a with L, where a = L L^H. *ret_info is 0, or the order of the first leading minor that
 * is not positive. Returns false, with nothing written, if OpenBLAS is not available. */
bool grd_lapack_cholesky(grd_dtype dtype, int64_t n, void *a, int32_t *ret_info);
/* Overwrites an m x n matrix with L and U. Row j + 1 was exchanged with row ret_pivots[j], where the first row has number 1. *ret_info is 0, or the
 * number of the first zero pivot. Returns false, with nothing written, if OpenBLAS is not available. */
bool grd_lapack_lu(grd_dtype dtype, int64_t m, int64_t n, void *a, int64_t *ret_pivots, int32_t *ret_info);

/* Runs `task` in parallel over the `count` matrices of a batch, `grain` matrices at a time. If count % threads is small and the matrices are large,
 * the calling thread alone runs `task` over the last count % threads matrices, so that LAPACK can use all threads for each of them. `side` is the
 * smaller of a matrix's numbers of rows and columns. */
void grd_for_matrices(const struct grd_plan *p, int64_t side, int64_t count, int64_t grain, grd_task *task, void *context);

#endif
