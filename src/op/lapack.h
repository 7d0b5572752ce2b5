/* Declares functions that decompose and invert one column-major matrix and solve systems with it by LAPACK, which is called through OpenBLAS. They
 * return false, with nothing written, if OpenBLAS is not available or has no memory. The caller then uses this library's kernels. */
#ifndef GRD_OP_LAPACK_H
#define GRD_OP_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"
#include "kernel/decomposition.h"
#include "op/openblas.h"
#include "op/provider.h"

/* Largest side of a matrix (the smaller of the numbers of rows and columns) for which this library's kernels are at least as fast as LAPACK. */
enum { GRD_LAPACK_SIDE = 24 };

/* Makes the plan choose between the providers (implementations) "lapack" and "native" for matrices of the given side, i.e. the smaller of the
 * numbers of rows and columns. Always returns true. */
bool grd_plan_lapack(struct grd_plan *p, int64_t side);
/* True if the plan has chosen LAPACK for its matrices, and not this library's kernels. */
bool grd_lapack_is_chosen(const struct grd_plan *p);

/* Returns the LAPACK routine `name` for the dtype. The routine may be called until grd_openblas_end(). Returns NULL if the dtype has no such routine
 * or OpenBLAS has no memory for the call. */
grd_lapack_routine *grd_lapack_begin(grd_dtype dtype, enum grd_lapack_name name);
/* Returns a pointer to the constant -1, 0 or 1 (`value`) of the given floating-point or complex dtype. */
const void *grd_lapack_number(grd_dtype dtype, int value);

/* Overwrites the n x n lower triangular matrix L with the lower triangle of the inverse of L L^H. The diagonal of L must have no zero. Returns false,
 * with nothing written, if OpenBLAS is not available. */
bool grd_lapack_cholesky_inverse(grd_dtype dtype, int64_t n, void *l);
/* Solves the triangular system t->a y = x, or y t->a = x if t->left is false, and overwrites x with y. x is n x k if t->left, otherwise k x n, and
 * its columns are `leading` elements apart. Uses LAPACK if the plan has chosen it and OpenBLAS is available, otherwise a kernel. If `turned`, the
 * triangle is stored row by row, which is allowed only if t->left. */
void grd_solve_triangle(const struct grd_plan *p, grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading,
                        void *x);
/* Solves t->a y = x, or y t->a = x if t->left is false, always with LAPACK, and overwrites x with y. The parameters are those of
 * grd_solve_triangle(), but for real dtypes `turned` is allowed without t->left, too. Call this function between grd_openblas_begin() and
 * grd_openblas_end(). Returns false, with x unchanged, if OpenBLAS lacks a routine for the dtype. */
bool grd_lapack_solve(grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading, void *x);
/* Returns the number of elements of workspace for a LAPACK routine that processes a matrix with `columns` columns block by block. */
int64_t grd_lapack_block_work(int64_t columns);
/* Decomposes the n x n matrix a, which is Hermitian if `hermitian`, otherwise symmetric, and overwrites its lower triangle with L and D. ret_pivots
 * gets LAPACK's pivots, counted from 1. Two equal negative pivots mark a 2 x 2 block of D. *ret_info is 0, or the number, counted from 1, of a
 * diagonal element of D that is zero. `work` has grd_lapack_block_work(n) elements. Returns false, with nothing written, if OpenBLAS is not
 * available. */
bool grd_lapack_ldl(grd_dtype dtype, int64_t n, bool hermitian, void *a, void *work, int64_t *ret_pivots, int32_t *ret_info);
/* Solves A X = B, where B is the n x k matrix in x, and overwrites x with X. `ld` and `pivots` are the results of grd_lapack_ldl() for A. Returns
 * false, with x unchanged, if OpenBLAS is not available. */
bool grd_lapack_ldl_solve(grd_dtype dtype, int64_t n, int64_t k, bool hermitian, const void *ld, const int64_t *pivots, void *x);

#endif
