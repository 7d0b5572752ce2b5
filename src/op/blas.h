/* The only door to OpenBLAS: products through CBLAS, one thread each. Built with GRD_OPENBLAS=0 it serves nothing.
 * Threads are ours: OpenBLAS is told once to use one, and operators cut large products into pieces. */
#ifndef GRD_OP_BLAS_H
#define GRD_OP_BLAS_H

#include <stdbool.h>

#include "kernel/gemm.h"

/* Whether a product of that size is faster through OpenBLAS than through the kernels of this level. */
bool grd_blas_worth(grd_dtype dtype, int64_t m, int64_t n, int64_t k);

/* Computes the product and returns true; false, with nothing done, where CBLAS has no call for the dtype or the strides: each
 * operand needs one unit stride and the other at least as large as a row. */
bool grd_blas_gemm(grd_dtype dtype, const struct grd_gemm *g);

#endif
