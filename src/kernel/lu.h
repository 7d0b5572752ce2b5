/* Decompositions by elimination, per dtype: P^T A = L U with rows exchanged, and what is computed of it. Matrices lie column by column: element (i, j) of one with m
 * rows is at i + j * m. Of L and U in one matrix, U has the diagonal, and that of L is 1. Pivots count from 1: row j was exchanged with row pivots[j], one after the other. */
#ifndef GRD_KERNEL_LU_H
#define GRD_KERNEL_LU_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/decomposition.h"

/* Systems of equations, at most GRD_MATRIX_LANES, with matrices of a side up to GRD_SMALL_MATRIX_SIDE. */
struct grd_small_systems {
    int64_t count, n, k;
    bool transposed;                            /* the matrices are transposed, and so are L and U */
    const void *matrices[GRD_MATRIX_LANES];     /* L and U, or transposed U and L */
    const int32_t *exchanges[GRD_MATRIX_LANES]; /* the pivots */
    void *x;                                    /* right sides, n x k each, one after the other: overwritten with the solutions */
};

/* Square matrices of a side up to GRD_SMALL_MATRIX_SIDE, one after the other. */
struct grd_small_elimination {
    int64_t count, n;
    int64_t k;    /* right sides of a matrix, of equations, at most GRD_SMALL_MATRIX_SIDE */
    bool by_rows; /* each matrix lies row by row */
    const void *a;
    void *ret;            /* what is computed of each, one after the other */
    void *ret_logarithms; /* of the absolute values of determinants, in which case ret has their signs; NULL for determinants themselves */
    int32_t *ret_pivots, *ret_info;
};

struct grd_lu_row {
    /* Overwrites an m x n matrix with L and U. ret_pivots: as many as the shorter side. ret_info: 0, or the place of the first zero on the diagonal of U, from 1. */
    void (*factor)(int64_t m, int64_t n, void *a, int32_t *ret_pivots, int32_t *ret_info);
    /* Decompose, with the same bits, and invert small matrices; the inverse of one with info is not defined. NULL for complex dtypes. */
    void (*factor_many)(const struct grd_small_elimination *s);
    void (*invert_many)(const struct grd_small_elimination *s);
    /* Writes the determinants of small matrices, with the bits of `determinant`, or those of `log_determinant`. NULL for complex dtypes. */
    void (*determine_many)(const struct grd_small_elimination *s);
    /* Overwrites right sides, n x k each, with solutions, which have the bits of two triangles after each other; that of a matrix with info is not defined. NULL for
     * complex dtypes. */
    void (*solve_equations_many)(const struct grd_small_elimination *s);
    /* Solves small systems, with the bits of two triangles after each other. NULL for complex dtypes. */
    void (*solve_many)(const struct grd_small_systems *s);
    /* Exchanges the rows of an m x n matrix as n_pivots pivots say, or `back`. */
    void (*exchange_rows)(int64_t m, int64_t n, int64_t n_pivots, const int32_t *pivots, bool back, void *a);
    /* The row of an n x n matrix, from 0, that the pivots brought to each place. */
    void (*find_places)(int64_t n, const int32_t *pivots, int64_t *ret_places);
    /* Puts ones on the diagonal of n columns of m elements. */
    void (*fill_diagonal)(int64_t n, int64_t m, void *x);
    /* Copies n columns of m elements to the columns of ret with these numbers. */
    void (*place_columns)(int64_t m, int64_t n, const int64_t *places, const void *x, void *ret);
    /* Writes the determinant; and its sign, of absolute value 1, with the logarithm of its absolute value, which is real. */
    void (*determinant)(int64_t n, const void *lu, const int32_t *pivots, void *ret);
    void (*log_determinant)(int64_t n, const void *lu, const int32_t *pivots, void *ret_sign, void *ret_log);
};

#endif
