/* Decompositions of large matrices by panels of columns, on all threads: LAPACK decomposes the panels. The bits depend on the sizes alone. */
#ifndef GRD_OP_LAPACK_BLOCKS_H
#define GRD_OP_LAPACK_BLOCKS_H

#include "base/parallel.h"
#include "op/plan.h"

/* The shorter side from which on two threads are faster than one call of LAPACK, and one thread as fast. */
enum { GRD_LU_PANELS_SIDE = 128, GRD_CHOLESKY_PANELS_SIDE = 192 };

/* The same as grd_lapack_lu and grd_lapack_cholesky. */
bool grd_lapack_lu_by_panels(grd_dtype dtype, int64_t m, int64_t n, void *a, int64_t *ret_pivots, int32_t *ret_info);
bool grd_lapack_cholesky_by_panels(grd_dtype dtype, int64_t n, void *a, int32_t *ret_info);

/* Runs a task over matrices of a batch. Threads share each of the last ones where those are too few to give each thread one. */
void grd_for_matrices(const struct grd_plan *p, int64_t side, int64_t count, int64_t grain, grd_task *task, void *context);

#endif
