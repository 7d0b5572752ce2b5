/* Decompositions of matrices and solutions with triangular ones, per dtype: one matrix at a time, and Cholesky for many small ones at once.
 * Matrices lie column by column: element (i, j) of one with m rows is at i + j * m. */
#ifndef GRD_KERNEL_DECOMPOSITION_H
#define GRD_KERNEL_DECOMPOSITION_H

#include <stdbool.h>
#include <stdint.h>

/* Largest side of the matrices that `cholesky_many` takes, and how many it takes at once. */
enum { GRD_SMALL_MATRIX_SIDE = 16, GRD_MATRIX_LANES = 16, GRD_SMALL_MATRIX_SIZE = GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE };

/* The most elements of a matrix that is decomposed to Q and R with many at once. */
enum { GRD_SMALL_QR_SIZE = 2 * GRD_SMALL_MATRIX_SIZE };

/* Matrices m x n, one after the other, each row by row if `by_rows`, to be decomposed to Q, m x `columns` (0: none), and R, `rows` x n, with at most
 * GRD_SMALL_QR_SIZE elements in each of the three, and n or m at most GRD_SMALL_MATRIX_SIDE. */
struct grd_small_qr {
    int64_t count, m, n, columns, rows;
    bool by_rows;
    const void *a;
    void *ret_q, *ret_r;
};

/* The matrix is a triangle: elements on the other side of its diagonal are not read, nor is the diagonal if `unit`, which makes it 1. */
struct grd_triangle {
    int64_t n;
    int64_t stride; /* elements from one column of `a` to the next */
    bool upper, unit;
    bool left; /* of a y = x; otherwise y a = x */
    const void *a;
};

struct grd_decomposition_row {
    /* Overwrites a Hermitian n x n matrix, whose lower triangle is read, with L, a = L L^H, or with L^H if `upper`. ret_info: 0, or the order of the
     * first leading minor that is not positive; what is in `a` then is not defined. */
    void (*cholesky)(int64_t n, bool upper, void *a, int32_t *ret_info);
    /* Puts zeros above the diagonal of L, or if `upper` L^H in the place of both. */
    void (*finish_factor)(int64_t n, bool upper, void *l);
    /* Decomposes `count` matrices of a side up to GRD_SMALL_MATRIX_SIDE, one after the other in memory, each row by row if `by_rows`, of which the triangle
     * is read that is written. NULL for complex dtypes. */
    void (*cholesky_many)(int64_t count, int64_t n, bool by_rows, bool upper, const void *a, void *ret_l, int32_t *ret_info);
    /* Overwrites an m x n matrix with R, on and above the diagonal, and below it the vectors v of the reflections I - tau v v^H, whose first element is 1:
     * Q is their product, as LAPACK's geqrf has it. */
    void (*reflect)(int64_t m, int64_t n, void *a, void *ret_tau);
    /* Decomposes small matrices, many at once. NULL for complex dtypes. */
    void (*qr_many)(const struct grd_small_qr *s);
    /* Copies R, on and above the diagonal of an m x n matrix, to one of `rows` rows, with zeros below. */
    void (*take_upper)(int64_t m, int64_t n, int64_t rows, const void *a, void *ret_r);
    /* Writes the first `columns` columns of the product of k reflections, from `reflect` of a matrix with m rows. */
    void (*orthogonal)(int64_t m, int64_t columns, int64_t k, const void *a, const void *tau, void *ret_q);
    /* Overwrites x, m x columns, with Q x, where Q is the product of k reflections, or with Q^H x if `adjoint`. */
    void (*apply_reflections)(int64_t m, int64_t k, int64_t columns, bool adjoint, const void *a, const void *tau, void *x);
    /* Overwrites x, n x k or k x n with columns `leading` elements apart, with the solution y. */
    void (*solve)(const struct grd_triangle *t, int64_t k, int64_t leading, void *x);
    /* Does the same, with the same bits, for at most GRD_MATRIX_LANES triangles of a side up to GRD_SMALL_MATRIX_SIDE, from the left, and as many x, n x k
     * each, one after the other; the triangles lie row by row if `by_rows`. NULL for complex dtypes. */
    void (*solve_many)(const struct grd_triangle *t, bool by_rows, int64_t count, int64_t k, const void *const *matrices, void *x);
};

#endif
