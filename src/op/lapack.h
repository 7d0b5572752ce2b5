/* Routines of LAPACK as decompositions call them, over OpenBLAS, on one matrix that lies column by column. Each returns false, with nothing
 * written, where OpenBLAS does not serve: then the kernels do it. */
#ifndef GRD_OP_LAPACK_H
#define GRD_OP_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"
#include "kernel/decomposition.h"
#include "op/openblas.h"
#include "op/provider.h"

/* The largest side of a matrix on which the kernels are as fast. */
enum { GRD_LAPACK_SIDE = 24 };

/* Chooses between the providers "lapack" and "native" of an operator on matrices of that side. */
bool grd_plan_lapack(struct grd_plan *p, int64_t side);
bool grd_lapack_is_chosen(const struct grd_plan *p);

/* Returns a routine that may be called until grd_openblas_end; NULL where there is none, or no memory for it. */
grd_lapack_routine *grd_lapack_begin(grd_dtype dtype, enum grd_lapack_name name);
/* Returns -1, 0 or 1 as an element. */
const void *grd_lapack_number(grd_dtype dtype, int value);

/* Overwrites the lower triangle L with that of the inverse of L L^H; its diagonal has no zero. */
bool grd_lapack_cholesky_inverse(grd_dtype dtype, int64_t n, void *l);
/* Overwrites x, n x k or k x n with columns `leading` elements apart, as `solve` of grd_decomposition_row does: with LAPACK if that is chosen and
 * serves, otherwise with the kernel. `turned`, from the left alone: the triangle is as t says, but lies row by row. */
void grd_solve_triangle(const struct grd_plan *p, grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading,
                        void *x);
/* Overwrites x as grd_solve_triangle does, with LAPACK. To be called between grd_openblas_begin and grd_openblas_end. Of real dtypes, `turned` is
 * allowed from the right, too. */
bool grd_lapack_solve(grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading, void *x);
/* Returns the number of elements of workspace for a routine that takes columns by blocks. */
int64_t grd_lapack_block_work(int64_t columns);
/* Overwrites the lower triangle of a symmetric matrix, or a Hermitian one, with L and D, with pivots of grd_ldl_row; `work` is for n columns. */
bool grd_lapack_ldl(grd_dtype dtype, int64_t n, bool hermitian, void *a, void *work, int64_t *ret_pivots, int32_t *ret_info);
/* Overwrites n x k right sides with the solutions. */
bool grd_lapack_ldl_solve(grd_dtype dtype, int64_t n, int64_t k, bool hermitian, const void *ld, const int64_t *pivots, void *x);

#endif
