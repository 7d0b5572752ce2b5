/* Decompositions of symmetric and Hermitian matrices, per dtype: A = L D L^T, or L D L^H if `hermitian`, with D of blocks of one or two rows. Matrices lie column by
 * column; of L and D in one lower triangle, D has the diagonal and, in a block of two rows, the element below it, and the diagonal of L is 1. Pivots are LAPACK's:
 * pivots[k] > 0 says that row and column k, a block, were exchanged with pivots[k]; pivots[k] = pivots[k + 1] < 0 that k and k + 1 are a block, and k + 1 was exchanged with
 * -pivots[k]. They count from 1. The rows of L before column k are not exchanged. */
#ifndef GRD_KERNEL_LDL_H
#define GRD_KERNEL_LDL_H

#include <stdbool.h>
#include <stdint.h>

enum grd_ldl_pivots { GRD_LDL_PIVOTS_FIT, GRD_LDL_PIVOTS_ZERO, GRD_LDL_PIVOTS_OUTSIDE };

struct grd_ldl_row {
    /* Overwrites an n x n matrix, whose lower triangle is read, with L and D. ret_info: 0, or the place of the first zero on the diagonal of D, from 1. */
    void (*factor)(int64_t n, bool hermitian, void *a, int32_t *ret_pivots, int32_t *ret_info);
    /* Puts zeros above the diagonal. */
    void (*clear_upper)(int64_t n, void *a);
    /* Says whether each of n pivots names a row, and negative ones come in pairs: so that `solve` stays inside of its matrices. */
    enum grd_ldl_pivots (*check_pivots)(int64_t n, const int32_t *pivots);
    /* Overwrites n x k right sides with the solutions. */
    void (*solve)(int64_t n, int64_t k, bool hermitian, const void *ld, const int32_t *pivots, void *x);
};

#endif
