/* Matrix products as kernels, per dtype: on operands as they lie, on operands packed before, the packing, and dot products.
 * No BLAS here (op/blas.h), no threads and no memory: op/product.c cuts a large product into pieces and owns what is packed. */
#ifndef GRD_KERNEL_GEMM_H
#define GRD_KERNEL_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* c = alpha * a @ b + beta * c, with a of m x k, b of k x n, c of m x n. Strides in elements, of any sign; c is not read when beta is 0. */
struct grd_gemm {
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    grd_scalar alpha, beta;
};

typedef void grd_gemm_kernel(const struct grd_gemm *g);

/* c = a @ b, plus `added` where that is not NULL; it may be c. Columns of c and of `added` are contiguous. */
struct grd_small_gemm {
    int64_t m, n, k;
    const char *a, *b, *added;
    char *c;
    int64_t a_row, a_col, b_row, b_col, added_row, c_row;
};

typedef void grd_small_gemm_kernel(const struct grd_small_gemm *g);

/* No side is as long. */
enum { GRD_SMALL_GEMM_SIDE = 128 };

/* n equations for each of `count` right sides, which lie in x and are overwritten with the unknowns. Equation i has the unknowns up to i if `rises`,
 * otherwise those from i on: other coefficients are not used, nor are those of the diagonal if `unit`, which makes them 1. Strides in elements;
 * x_row or x_col is 1. */
struct grd_small_triangle {
    int64_t n, count;
    bool rises, unit;
    const char *a;
    int64_t equation, unknown;
    char *x;
    int64_t x_row, x_col;
};

typedef void grd_small_triangle_kernel(const struct grd_small_triangle *t);

/* The most equations. */
enum { GRD_SMALL_TRIANGLE_SIDE = 64 };

/* Copies k rows of `columns` columns, the given strides apart, into one panel, with zeros up to `width` columns. */
typedef void grd_pack_kernel(int64_t k, int64_t columns, int64_t width, const char *from, int64_t row, int64_t column, char *panel);

/* Adds rows of n neighbours to rows of n elements that are `step` apart. */
typedef void grd_add_rows_kernel(int64_t rows, int64_t n, char *to, int64_t to_row, int64_t step, const char *from, int64_t from_row);

/* Writes the sum of x[i] * y[i]. */
typedef void grd_dot_kernel(int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, void *ret_sum);

/* Integers are computed modulo 2^bits. Dtypes without kernels are computed in a wider one (op/product.c), or have no product. */
struct grd_product_kernels {
    grd_gemm_kernel *direct;
    /* a lies in strips: panels of its transpose, `strip` wide, one after the other; b in panels `panel` wide, the last one as wide as its
     * columns rounded up to `lanes`. Their strides are not read. */
    grd_gemm_kernel *packed;
    grd_pack_kernel *pack;
    grd_dot_kernel *dot;
    grd_add_rows_kernel *add_rows;
    /* Up to as many multiplications, of less than `depth` rows of b that are contiguous, packing takes longer than it saves. */
    int direct_work;
    grd_small_gemm_kernel *small;        /* NULL: none */
    int small_work;                      /* the most multiplications it is for */
    grd_small_triangle_kernel *triangle; /* NULL: none */
    int strip, panel, lanes;
    int depth; /* rows of a panel that the caches hold */
};

#endif
