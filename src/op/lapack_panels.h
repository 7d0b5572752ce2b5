/* L U and Cholesky decompositions by LAPACK: of small matrices by one call, of large ones by panels of columns, on all threads. The bits depend on
 * the sizes alone. */
#ifndef GRD_OP_LAPACK_PANELS_H
#define GRD_OP_LAPACK_PANELS_H

#include "base/parallel.h"
#include "gradus/types.h"
#include "op/plan.h"

/* Overwrites the lower triangle of a Hermitian matrix with L, a = L L^H; info as in grd_decomposition_row. */
bool grd_lapack_cholesky(grd_dtype dtype, int64_t n, void *a, int32_t *ret_info);
/* Overwrites an m x n matrix with L and U; row j was exchanged with row pivots[j], counted from 1. */
bool grd_lapack_lu(grd_dtype dtype, int64_t m, int64_t n, void *a, int64_t *ret_pivots, int32_t *ret_info);

/* Runs a task over the matrices of a batch. If the last ones are too few to give each thread one, threads share each of these. */
void grd_for_matrices(const struct grd_plan *p, int64_t side, int64_t count, int64_t grain, grd_task *task, void *context);

#endif
