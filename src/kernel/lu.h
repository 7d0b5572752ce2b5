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
    bool transposed;                            /* solves with the transposed matrices; matrices[i] then holds transposed U and L */
    const void *matrices[GRD_MATRIX_LANES];     /* L and U of each system, transposed if `transposed` */
    const int32_t *exchanges[GRD_MATRIX_LANES]; /* the pivots of each system */
    /* right sides, n x k per system, one system after the other: overwritten with the solutions */
    void *x;
};

/* The arguments of the kernels that decompose `count` small n x n matrices, which follow each other in memory. n is at most GRD_SMALL_MATRIX_SIDE. */
struct grd_small_elimination {
    int64_t count, n;
    int64_t k;    /* right sides per matrix for solve_equations_many, at most GRD_SMALL_MATRIX_SIDE */
    bool by_rows; /* the matrices in `a` are row-major */
    const void *a;
    void *ret; /* the result of each matrix, one after the other */
    /* for determine_many: receives the logarithms of the absolute values of the determinants, and `ret` their signs; if it is NULL, `ret` receives
     * the determinants */
    void *ret_logarithms;
    int32_t *ret_pivots, *ret_info;
};

/* The LU kernels of one dtype. */
struct grd_lu_row {
    /* Overwrites an m x n matrix with L and U. ret_pivots receives min(m, n) pivots; ret_info receives 0, or the position, from 1, of the
     * first zero on the diagonal of U. */
    void (*factor)(int64_t m, int64_t n, void *a, int32_t *ret_pivots, int32_t *ret_info);
    /* The two functions below decompose (with the same bits as `factor`) and invert many small matrices. The inverse of a matrix whose info is not 0
     * is undefined. Both functions are NULL for complex dtypes. */
    void (*factor_many)(const struct grd_small_elimination *s);
    void (*invert_many)(const struct grd_small_elimination *s);
    /* Writes the determinants of many small matrices with the same bits as `determinant`, or signs and logarithms as `log_determinant`.
     * determine_many is NULL for complex dtypes. */
    void (*determine_many)(const struct grd_small_elimination *s);
    /* Solves many small systems: decomposes `a` and overwrites `ret`, which holds n x k right sides per matrix, with the solutions. The bits are
     * those of `factor` and two triangular solves. The solution for a matrix whose info is not 0 is undefined. solve_equations_many is NULL for
     * complex dtypes. */
    void (*solve_equations_many)(const struct grd_small_elimination *s);
    /* Solves small systems whose matrices are decomposed, with the same bits as two triangular solves. solve_many is NULL for complex dtypes. */
    void (*solve_many)(const struct grd_small_systems *s);
    /* Applies n_pivots row exchanges to an m x n matrix, or undoes them if `back`. */
    void (*exchange_rows)(int64_t m, int64_t n, int64_t n_pivots, const int32_t *pivots, bool back, void *a);
    /* Writes the permutation that the row exchanges make: ret_places[i] is the row, from 0, that ends as row i of an n x n matrix. */
    void (*find_places)(int64_t n, const int32_t *pivots, int64_t *ret_places);
    /* Sets the diagonal of a matrix of n columns with m elements each to ones. */
    void (*fill_diagonal)(int64_t n, int64_t m, void *x);
    /* Copies n columns of m elements: column i of x becomes column places[i] of `ret`. */
    void (*place_columns)(int64_t m, int64_t n, const int64_t *places, const void *x, void *ret);
    /* `determinant` writes the determinant. `log_determinant` writes its sign (for complex dtypes a complex number of absolute value 1) and the
     * logarithm of its absolute value, which is real. */
    void (*determinant)(int64_t n, const void *lu, const int32_t *pivots, void *ret);
    void (*log_determinant)(int64_t n, const void *lu, const int32_t *pivots, void *ret_sign, void *ret_log);
};

#endif
