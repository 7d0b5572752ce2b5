/* Householder reflections of matrices by LAPACK: QR decompositions and products with their Q. Each function returns false, with nothing written,
 * where OpenBLAS does not serve. Of large matrices they run on all threads. */
#ifndef GRD_OP_LAPACK_REFLECTIONS_H
#define GRD_OP_LAPACK_REFLECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* Overwrites an m x n matrix as `reflect` of grd_decomposition_row does; with the elements of the workspace. */
int64_t grd_lapack_reflect_work(int64_t m, int64_t n);
bool grd_lapack_reflect(grd_dtype dtype, int64_t m, int64_t n, void *a, void *ret_tau, void *work);
/* The product Q of k reflections, whose vectors of m elements are columns of a; or its adjoint. */
struct grd_reflections {
    int64_t m, k;
    bool adjoint;
    const void *a, *tau;
};
/* Writes the first `columns` columns of Q, at least k. `is_from_reflect`: the workspace is that of grd_lapack_reflect, as it left it. */
int64_t grd_lapack_orthogonal_work(int64_t columns, int64_t k);
bool grd_lapack_orthogonal(grd_dtype dtype, const struct grd_reflections *r, bool is_from_reflect, int64_t columns, void *ret_q,
                           void *work);
/* Overwrites x, m x columns, with Q x. */
int64_t grd_lapack_reflections_work(int64_t k, int64_t columns);
bool grd_lapack_apply_reflections(grd_dtype dtype, const struct grd_reflections *r, int64_t columns, void *x, void *work);

#endif
