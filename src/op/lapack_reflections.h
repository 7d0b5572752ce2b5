/* Declares functions that compute QR decompositions by Householder reflections, and products with their Q, using LAPACK. Large matrices are processed
 * on all threads. The functions whose names end in _work return a number of elements of workspace. The other functions return false, with nothing
 * written, if OpenBLAS is not available. */
#ifndef GRD_OP_LAPACK_REFLECTIONS_H
#define GRD_OP_LAPACK_REFLECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* Returns the number of elements of workspace for grd_lapack_reflect(). */
int64_t grd_lapack_reflect_work(int64_t m, int64_t n);
/* Overwrites an m x n matrix with R and, below its diagonal, with the vectors of Householder reflections. ret_tau gets a factor for each of the
 * min(m, n) reflections. `work` has grd_lapack_reflect_work(m, n) elements. Returns false, with nothing written, if OpenBLAS is not available. */
bool grd_lapack_reflect(grd_dtype dtype, int64_t m, int64_t n, void *a, void *ret_tau, void *work);
/* Describes the product Q of k Householder reflections, or the adjoint of Q if `adjoint`. The reflection vectors are stored below the diagonal
 * of the m x k matrix a, one vector per column. `tau` has a factor for each reflection. */
struct grd_reflections {
    int64_t m, k;
    bool adjoint;
    const void *a, *tau;
};
/* Returns the number of elements of workspace for grd_lapack_orthogonal(). */
int64_t grd_lapack_orthogonal_work(int64_t columns, int64_t k);
/* Writes the first `columns` columns of Q to ret_q; `columns` is at least k. Set `is_from_reflect` only if r comes from grd_lapack_reflect() and
 * `work` is unchanged since that call. If `is_from_reflect`, the triangular factors of the blocks of reflections are read from `work`, otherwise
 * computed. Returns false if OpenBLAS is not available. */
bool grd_lapack_orthogonal(grd_dtype dtype, const struct grd_reflections *r, bool is_from_reflect, int64_t columns, void *ret_q,
                           void *work);
/* Returns the number of elements of workspace for grd_lapack_apply_reflections(). */
int64_t grd_lapack_reflections_work(int64_t k, int64_t columns);
/* Overwrites the m x `columns` matrix x with Q x, or with Q^H x if r->adjoint. `work` has grd_lapack_reflections_work(r->k, columns) elements.
 * Returns false, with x unchanged, if OpenBLAS is not available. */
bool grd_lapack_apply_reflections(grd_dtype dtype, const struct grd_reflections *r, int64_t columns, void *x, void *work);

#endif
