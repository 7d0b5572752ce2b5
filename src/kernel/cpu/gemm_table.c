/* The products of one instruction-set level, by dtype. The loops are in gemm.c, one object per dtype. */
#include "gen/kernel_levels.h"
#include "kernel/cpu/level.h"
#include "kernel/gemm.h"

/* Dtypes with a product of their own, and the dtypes each serves: signed integers are multiplied as unsigned ones. */
#define KERNELS(X) X(uint8) X(uint16) X(uint32) X(uint64) X(float16) X(bfloat16) X(float32) X(float64) X(complex64) X(complex128)
/* clang-format off */
#define SERVED(X) \
    X(UINT8, uint8) X(INT8, uint8) X(UINT16, uint16) X(INT16, uint16) X(UINT32, uint32) \
    X(INT32, uint32) X(UINT64, uint64) X(INT64, uint64) X(FLOAT16, float16) X(BFLOAT16, bfloat16) \
    X(FLOAT32, float32) X(FLOAT64, float64) X(COMPLEX64, complex64) X(COMPLEX128, complex128)
/* clang-format on */

#define DECLARE(dtype)                                                                                                                     \
    extern grd_gemm_kernel GRD_BUILT(gemm, grd_gemm, dtype);                                                                               \
    extern grd_dot_kernel GRD_BUILT(gemm, grd_dot, dtype);
KERNELS(DECLARE)

extern const struct grd_gemm_kernels GRD_AT_LEVEL(grd_gemm_kernels);

#define GEMM_ENTRY(NAME, dtype) [GRD_##NAME] = GRD_BUILT(gemm, grd_gemm, dtype),
#define DOT_ENTRY(NAME, dtype) [GRD_##NAME] = GRD_BUILT(gemm, grd_dot, dtype),
const struct grd_gemm_kernels GRD_AT_LEVEL(grd_gemm_kernels) = {
    .gemm = {SERVED(GEMM_ENTRY)},
    .dot = {SERVED(DOT_ENTRY)},
};
