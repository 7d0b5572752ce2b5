/* The products of one instruction-set level, by dtype. The loops are in gemm.c, one object per dtype. */
#include "gen/kernel_levels.h"
#include "kernel/cpu/level.h"
#include "kernel/gemm.h"

/* Dtypes with kernels of their own, and the dtypes each serves: signed integers are multiplied as unsigned ones. */
#define KERNELS(X) X(uint32) X(uint64) X(float32) X(float64) X(complex64) X(complex128)
/* clang-format off */
#define SERVED(X) \
    X(UINT32, uint32) X(INT32, uint32) X(UINT64, uint64) X(INT64, uint64) \
    X(FLOAT32, float32) X(FLOAT64, float64) X(COMPLEX64, complex64) X(COMPLEX128, complex128)
/* clang-format on */

#define DECLARE(dtype) extern const struct grd_product_kernels GRD_BUILT(gemm, grd_product, dtype);
KERNELS(DECLARE)

extern const struct grd_gemm_kernels GRD_AT_LEVEL(grd_gemm_kernels);

#define ENTRY(NAME, dtype) [GRD_##NAME] = &GRD_BUILT(gemm, grd_product, dtype),
const struct grd_gemm_kernels GRD_AT_LEVEL(grd_gemm_kernels) = {.of = {SERVED(ENTRY)}};
