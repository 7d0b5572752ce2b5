/* Computes matrix products through CBLAS. Each call runs on one thread, because the calling operators already divide large products among threads.
 * Without OpenBLAS the functions below return false. */
#ifndef GRD_OP_BLAS_H
#define GRD_OP_BLAS_H

#include <stdbool.h>

#include "kernel/gemm.h"

/* True if OpenBLAS is available and computes an (m, k) by (k, n) product faster than this library's kernels for the CPU's instruction set. */
bool grd_blas_worth(grd_dtype dtype, int64_t m, int64_t n, int64_t k);

/* True if OpenBLAS is available, has a product function for the dtype, and can read the operands of `g`. Each matrix must have one stride of 1,
 * and the other stride must be at least as large as the dimension with stride 1. The rows of c must be contiguous. */
bool grd_blas_serves(grd_dtype dtype, const struct grd_gemm *g);

/* Computes the product `g`, for which grd_blas_serves must be true. Returns false, with nothing computed, if OpenBLAS cannot allocate its memory. */
bool grd_blas_gemm(grd_dtype dtype, const struct grd_gemm *g);

#endif
