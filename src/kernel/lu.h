/* Declares kernels that decompose matrices with row exchanges, P^T A = L U, and compute inverses, solutions and determinants from L and U. Matrices
 * are column-major: element (i, j) of a matrix with m rows is at i + j * m. L and U share one matrix: U has the diagonal, and the diagonal of L is 1
 * and not stored. Pivots count from 1: for j = 0, 1, ..., row j was exchanged with row pivots[j] - 1. */
#ifndef GRD_KERNEL_LU_H
#define GRD_KERNEL_LU_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/decomposition.h"

/* The arguments of solve_many, which solves up to GRD_MATRIX_LANES systems of equations. Each system has an n x n matrix that is already decomposed,
 * with n at most GRD_SMALL_MATRIX_SIDE, and k right sides. */
struct grd_small_systems {
    int64_t count, n, k;
    bool transposed;                            /* true: solves A^T X = B; matrices[i] then holds the transposes of U and L */
    const void *matrices[GRD_MATRIX_LANES];     /* matrices[i]: L and U of system i in one matrix, transposed if `transposed` */
    const int32_t *exchanges[GRD_MATRIX_LANES]; /* exchanges[i]: the pivots of system i */
    /* the right sides, an n x k matrix for each system, one after the other; overwritten with the solutions */
    void *x;
};

/* The arguments of the kernels for many small matrices: `count` matrices of n x n elements, which follow each other in memory. n is at most
 * GRD_SMALL_MATRIX_SIDE. */
struct grd_small_elimination {
    int64_t count, n;
    int64_t k;    /* number of right sides per matrix; only for solve_equations_many, at most GRD_SMALL_MATRIX_SIDE */
    bool by_rows; /* the matrices in `a` are row-major */
    const void *a;
    void *ret; /* receives the results of all matrices, one after the other */
    /* Only for determine_many. If not NULL, receives log|det| of each matrix, and `ret` receives the signs. If NULL, `ret` receives the
     * determinants. */
    void *ret_logarithms;
    int32_t *ret_pivots, *ret_info;
};

/* The LU kernels of one dtype. */
struct grd_lu_row {
    /* Decomposes an m x n matrix and overwrites it with L and U. ret_pivots receives min(m, n) pivots. ret_info receives 0, or the position,
     * counted from 1, of the first zero on the diagonal of U. */
    void (*factor)(int64_t m, int64_t n, void *a, int32_t *ret_pivots, int32_t *ret_info);
    /* factor_many decomposes many small matrices, with the same bits as `factor`. invert_many inverts many small matrices; the inverse of a matrix
     * is undefined if its ret_info is not 0. Both functions are NULL for complex dtypes. */
    void (*factor_many)(const struct grd_small_elimination *s);
    void (*invert_many)(const struct grd_small_elimination *s);
    /* Writes the determinants of many small matrices, or their signs and logarithms. Gives the same bits as `determinant` or
     * `log_determinant`. NULL for complex dtypes. */
    void (*determine_many)(const struct grd_small_elimination *s);
    /* Solves many small systems A X = B: decomposes the matrices in `a`, and overwrites the right sides in `ret` (n x k per matrix) with the
     * solutions. Gives the same bits as `factor` and two triangular solves. A solution is undefined if ret_info of its matrix is not 0. NULL for
     * complex dtypes. */
    void (*solve_equations_many)(const struct grd_small_elimination *s);
    /* Solves small systems with matrices already decomposed into L and U. Gives the same bits as two triangular solves. NULL for complex dtypes. */
    void (*solve_many)(const struct grd_small_systems *s);
    /* Applies n_pivots row exchanges to an m x n matrix, or undoes them if `back`. */
    void (*exchange_rows)(int64_t m, int64_t n, int64_t n_pivots, const int32_t *pivots, bool back, void *a);
    /* Converts the row exchanges in `pivots` to a permutation of n rows: row ret_places[i] of the original matrix becomes row i. The elements of
     * ret_places count from 0. */
    void (*find_places)(int64_t n, const int32_t *pivots, int64_t *ret_places);
    /* Sets the diagonal elements of a matrix to 1. The matrix has n columns of m elements. */
    void (*fill_diagonal)(int64_t n, int64_t m, void *x);
    /* Copies n columns of m elements: column i of x becomes column places[i] of `ret`. */
    void (*place_columns)(int64_t m, int64_t n, const int64_t *places, const void *x, void *ret);
    /* The two functions below read a decomposed n x n matrix. `determinant` writes its determinant. `log_determinant` writes the sign of the
     * determinant (for complex dtypes a complex number of absolute value 1) and the logarithm of its absolute value, which is real. */
    void (*determinant)(int64_t n, const void *lu, const int32_t *pivots, void *ret);
    void (*log_determinant)(int64_t n, const void *lu, const int32_t *pivots, void *ret_sign, void *ret_log);
};

#endif
