/* Matrix products as kernels: one strided product, one strided dot product, per dtype.
 * No BLAS here (op/blas.h), no threads: an operator cuts a large product into pieces, and each piece is one call. */
#ifndef GRD_KERNEL_GEMM_H
#define GRD_KERNEL_GEMM_H

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

/* Writes the sum of x[i] * y[i] as one value of the accumulator: float for float16 and bfloat16, the dtype itself otherwise. */
typedef void grd_dot_kernel(int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, void *ret_sum);

/* Integers are computed modulo 2^bits; float16 and bfloat16 in float32, rounded once. NULL: no product for that dtype (bool, float8). */
struct grd_gemm_kernels {
    grd_gemm_kernel *gemm[GRD_DTYPE_COUNT];
    grd_dot_kernel *dot[GRD_DTYPE_COUNT];
};

#endif
