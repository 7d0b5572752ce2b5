/* Products through CBLAS, one thread each: operators cut large products into pieces. Where OpenBLAS is not there nothing is served. */
#ifndef GRD_OP_BLAS_H
#define GRD_OP_BLAS_H

#include <stdbool.h>

#include "kernel/gemm.h"

/* True if a product of that size is faster through OpenBLAS than through the kernels of this level, and OpenBLAS is there. */
bool grd_blas_worth(grd_dtype dtype, int64_t m, int64_t n, int64_t k);

/* True if OpenBLAS is there, has a call for the dtype, and can read the strides: each operand needs one unit stride and the other at least as
 * large as a row. */
bool grd_blas_serves(grd_dtype dtype, const struct grd_gemm *g);

/* Computes a product that is served. False, with nothing done, when OpenBLAS can have no memory for it. */
bool grd_blas_gemm(grd_dtype dtype, const struct grd_gemm *g);

#endif
