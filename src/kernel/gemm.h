/* Declares the matrix-product kernels of each dtype. There are kernels that multiply unpacked operands, that pack operands, that multiply packed
 * operands, and that compute dot products. They call no BLAS (see op/blas.h), start no threads and allocate nothing. op/product.c cuts a large
 * product into pieces and owns the packed copies. */
#ifndef GRD_KERNEL_GEMM_H
#define GRD_KERNEL_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* The product c = alpha * a @ b + beta * c, where a is m x k, b is k x n and c is m x n. Strides are in elements and may be negative. c is not read
 * if beta is 0. */
struct grd_gemm {
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    grd_scalar alpha, beta;
};

typedef void grd_gemm_kernel(const struct grd_gemm *g);

/* A small product c = a @ b, or c = a @ b + added if `added` is not NULL; `added` may be c. The rows of c and of `added` are contiguous. Strides are
 * in elements. */
struct grd_small_gemm {
    int64_t m, n, k;
    const char *a, *b, *added;
    char *c;
    int64_t a_row, a_col, b_row, b_col, added_row, c_row;
};

typedef void grd_small_gemm_kernel(const struct grd_small_gemm *g);

/* In a grd_small_gemm, m, n and k are all below this number. */
enum { GRD_SMALL_GEMM_SIDE = 128 };

/* A small triangular system of n equations with `count` right sides. x holds the right sides and is overwritten with the solutions. `a` holds the
 * coefficients. Coefficient (i, j) is read only for j <= i if `rises`, otherwise only for j >= i. If `unit`, the diagonal is not read and counts
 * as 1. `equation` and `unknown` are the strides of `a` along i and j. All strides are in elements. At least one of x_row and x_col is 1. */
struct grd_small_triangle {
    int64_t n, count;
    bool rises, unit;
    const char *a;
    int64_t equation, unknown;
    char *x;
    int64_t x_row, x_col;
};

typedef void grd_small_triangle_kernel(const struct grd_small_triangle *t);

/* The most equations of a grd_small_triangle. */
enum { GRD_SMALL_TRIANGLE_SIDE = 64 };

/* Packs k rows of `columns` elements, with strides `row` and `column`, into a panel. A panel has k contiguous rows of `width` elements; in each row
 * the elements from number `columns` on are zeros. */
typedef void grd_pack_kernel(int64_t k, int64_t columns, int64_t width, const char *from, int64_t row, int64_t column, char *panel);

/* Adds `rows` rows of n elements of `from` to rows of `to`. Elements are contiguous in a row of `from` and `step` apart in a row of `to`. to_row and
 * from_row are the distances between rows. Distances are in elements. */
typedef void grd_add_rows_kernel(int64_t rows, int64_t n, char *to, int64_t to_row, int64_t step, const char *from, int64_t from_row);

/* Writes the sum of x[i] * y[i] for i < n to ret_sum. Strides are in elements. */
typedef void grd_dot_kernel(int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, void *ret_sum);

/* The product kernels of one dtype. Integers are computed modulo 2^bits. A dtype without kernels is computed in a wider dtype (op/product.c)
 * or has no matrix product. */
struct grd_product_kernels {
    /* Multiplies operands without packing them. The strides are arbitrary. */
    grd_gemm_kernel *direct;
    /* Multiplies packed operands. `b` is packed in panels, i.e. contiguous blocks of `panel` columns. The last panel may be
     * narrower: its width is the number of remaining columns, rounded up to a multiple of `lanes`. The transpose of `a` is packed in panels of
     * `strip` columns. The strides of a and b are not read. */
    grd_gemm_kernel *packed;
    grd_pack_kernel *pack;
    grd_dot_kernel *dot;
    grd_add_rows_kernel *add_rows;
    /* The most multiplications for which `direct` is used, if k is below `depth` and the rows of b are contiguous. If the rows of b are not
     * contiguous, `direct` is used up to a quarter of this number. For products of this size, packing would take longer than it saves. */
    int direct_work;
    grd_small_gemm_kernel *small;        /* NULL if the dtype has none */
    int small_work;                      /* the most multiplications, m * n * k, for which `small` is used */
    grd_small_triangle_kernel *triangle; /* NULL if the dtype has none */
    /* strip: columns of a packed block of the transpose of `a`. panel: columns of a packed block of `b`. lanes: elements of a vector register. */
    int strip, panel, lanes;
    int depth; /* the most rows of a panel of `b` (a packed block of its columns), so few that the panel stays in the cache */
};

#endif
