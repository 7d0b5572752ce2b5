/* Declares kernels that compute Cholesky and QR decompositions and solve triangular systems. There are kernels for one matrix, and some for many
 * small matrices at once. Matrices are column-major: element (i, j) of a matrix with m rows is at i + j * m. */
#ifndef GRD_KERNEL_DECOMPOSITION_H
#define GRD_KERNEL_DECOMPOSITION_H

#include <stdbool.h>
#include <stdint.h>

/* GRD_SMALL_MATRIX_SIDE: the largest side of the matrices that `cholesky_many` takes. GRD_MATRIX_LANES: the number of matrices that the kernels for
 * many matrices compute at once. */
enum { GRD_SMALL_MATRIX_SIDE = 16, GRD_MATRIX_LANES = 16, GRD_SMALL_MATRIX_SIZE = GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE };

/* The most elements of a matrix that qr_many decomposes, and also the most elements of Q and of R. */
enum { GRD_SMALL_QR_SIZE = 2 * GRD_SMALL_MATRIX_SIZE };

/* The arguments of qr_many. `count` matrices of m x n elements are decomposed into Q (m x `columns`; if `columns` is 0, Q is not computed) and R
 * (`rows` x n). Each matrix, each Q and each R has at most GRD_SMALL_QR_SIZE elements, and the smaller of m and n is at most GRD_SMALL_MATRIX_SIDE.
 * The matrices follow each other in memory, row-major if `by_rows`. */
struct grd_small_qr {
    int64_t count, m, n, columns, rows;
    bool by_rows;
    const void *a;
    void *ret_q, *ret_r;
};

/* A triangular system whose n x n matrix is `a`, an upper triangle if `upper`, otherwise a lower one. Elements on the other side of the diagonal are
 * not read. If `unit`, the diagonal is not read either and counts as 1. */
struct grd_triangle {
    int64_t n;
    int64_t stride; /* distance in elements from one column of `a` to the next */
    bool upper, unit;
    bool left; /* the equation that is solved for y: a y = x if `left`, otherwise y a = x */
    const void *a;
};

/* The decomposition kernels of one dtype. */
struct grd_decomposition_row {
    /* Computes the Cholesky decomposition a = L L^H of a Hermitian n x n matrix, of which the lower triangle is read. Overwrites `a` with L, or with
     * L^H if `upper`. ret_info receives 0, or the order of the first leading minor that is not positive; the content of `a` is then undefined. */
    void (*cholesky)(int64_t n, bool upper, void *a, int32_t *ret_info);
    /* On entry the lower triangle of `l` holds L. Overwrites `l` with L, or with L^H if `upper`, and sets the other triangle to zero. */
    void (*finish_factor)(int64_t n, bool upper, void *l);
    /* Computes the Cholesky factors of `count` matrices with a side up to GRD_SMALL_MATRIX_SIDE. The matrices follow each other in memory; each is
     * row-major if `by_rows`. Reads the triangle that it writes: the upper one if `upper`, otherwise the lower one. cholesky_many is NULL for complex
     * dtypes. */
    void (*cholesky_many)(int64_t count, int64_t n, bool by_rows, bool upper, const void *a, void *ret_l, int32_t *ret_info);
    /* Overwrites an m x n matrix with its Householder decomposition in the layout of LAPACK's geqrf. R is on and above the diagonal; below it
     * are the vectors v of the reflections I - tau v v^H, without their first element, which is 1. Q is the product of the reflections. */
    void (*reflect)(int64_t m, int64_t n, void *a, void *ret_tau);
    /* Decomposes many small matrices into Q and R at once. qr_many is NULL for complex dtypes. */
    void (*qr_many)(const struct grd_small_qr *s);
    /* Copies R, the elements on and above the diagonal of an m x n matrix, to a matrix with `rows` rows and zeros below the diagonal. */
    void (*take_upper)(int64_t m, int64_t n, int64_t rows, const void *a, void *ret_r);
    /* Writes the first `columns` columns of Q to ret_q. Q is the product of the k reflections that `reflect` stored in `a`, which has m rows, and in
     * `tau`. */
    void (*orthogonal)(int64_t m, int64_t columns, int64_t k, const void *a, const void *tau, void *ret_q);
    /* Overwrites x, of m x columns elements, with Q x, or with Q^H x if `adjoint`. Q is the product of the k reflections that `reflect` stored in `a`
     * and `tau`. */
    void (*apply_reflections)(int64_t m, int64_t k, int64_t columns, bool adjoint, const void *a, const void *tau, void *x);
    /* Overwrites the right sides x with the solutions of a triangular system. x is n x k if t->left, otherwise k x n. The columns of x are `leading`
     * elements apart. */
    void (*solve)(const struct grd_triangle *t, int64_t k, int64_t leading, void *x);
    /* Solves a y = x for `count` small systems at once. `count` is at most GRD_MATRIX_LANES, and the side of `a` at most GRD_SMALL_MATRIX_SIDE. The
     * results have the same bits as those of `solve`. matrices[i] is the matrix `a` of system i, row-major if `by_rows`. `x` holds the right sides, n
     * x k each, one after the other. solve_many is NULL for complex dtypes. */
    void (*solve_many)(const struct grd_triangle *t, bool by_rows, int64_t count, int64_t k, const void *const *matrices, void *x);
};

#endif
