/* Declares kernels that decompose symmetric matrices as A = L D L^T, or Hermitian ones (if `hermitian`) as A = L D L^H, and solve systems with the
 * factors. D has diagonal blocks of one or two rows. Matrices are column-major. L and D share one lower triangle: D has the diagonal and, in a block
 * of two rows, the element below the diagonal; the diagonal of L is 1 and not stored.
 * Pivots are LAPACK's and count from 1. If pivots[k] > 0, row and column k are a block of one row and were exchanged with row and column pivots[k].
 * If pivots[k] = pivots[k + 1] < 0, rows k and k + 1 are a block, and row k + 1 was exchanged with row -pivots[k]. The exchanges do not apply to
 * earlier columns of L. */
#ifndef GRD_KERNEL_LDL_H
#define GRD_KERNEL_LDL_H

#include <stdbool.h>
#include <stdint.h>

/* Results of check_pivots. FIT: all pivots are valid. ZERO: a pivot is 0. OUTSIDE: a pivot is out of range, or a negative pivot has no equal
 * neighbour. */
enum grd_ldl_pivots { GRD_LDL_PIVOTS_FIT, GRD_LDL_PIVOTS_ZERO, GRD_LDL_PIVOTS_OUTSIDE };

/* The LDL kernels of one dtype. */
struct grd_ldl_row {
    /* Decomposes an n x n matrix, of which only the lower triangle is read, and overwrites it with L and D. ret_info receives 0, or the position,
     * counted from 1, of the first zero on the diagonal of D. */
    void (*factor)(int64_t n, bool hermitian, void *a, int32_t *ret_pivots, int32_t *ret_info);
    /* Sets the elements above the diagonal of an n x n matrix to zero. */
    void (*clear_upper)(int64_t n, void *a);
    /* Checks the n pivots. Each must be the number of a row (negated in a block of two rows), and negative pivots must come in equal pairs. With
     * other pivots `solve` would access memory outside of its matrices. */
    enum grd_ldl_pivots (*check_pivots)(int64_t n, const int32_t *pivots);
    /* Solves A X = B with `ld` and `pivots`, the decomposition of A by the member function `factor`. `x` holds B, a matrix of n x k elements, and
     * is overwritten with X. */
    void (*solve)(int64_t n, int64_t k, bool hermitian, const void *ld, const int32_t *pivots, void *x);
};

#endif
