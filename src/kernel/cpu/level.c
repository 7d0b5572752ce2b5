/* The kernel table of one level, put together from the tables of the other files. No code here. */
#include "kernel/cpu/level.h"
#include "kernel/table.h"

/* Dtypes with objects at every level, dtypes built for the portable level only (see CMakeLists.txt), and those that are only converted. */
/* clang-format off */
#define DTYPES(X) \
    X(BOOL, bool) X(UINT8, uint8) X(INT8, int8) X(INT16, int16) X(INT32, int32) \
    X(INT64, int64) X(FLOAT16, float16) X(BFLOAT16, bfloat16) X(FLOAT32, float32) X(FLOAT64, float64)
/* clang-format on */
#define COMPLEX_DTYPES(X) X(COMPLEX64, complex64) X(COMPLEX128, complex128)
#define RARE_DTYPES(X) X(UINT16, uint16) X(UINT32, uint32) X(UINT64, uint64)
#define STORED_DTYPES(X) X(FLOAT8_E4M3FN, float8_e4m3fn) X(FLOAT8_E5M2, float8_e5m2)

#define AT_LEVEL(name, dtype) GRD_PASTE3(name, dtype, GRD_LEVEL)
#define PORTABLE(name, dtype) GRD_PASTE3(name, dtype, portable)

#define UNARY(DTYPE, dtype) [GRD_##DTYPE] = AT_LEVEL(grd_unary_row, dtype),
#define BINARY(DTYPE, dtype) [GRD_##DTYPE] = AT_LEVEL(grd_binary_row, dtype),
#define TERNARY(DTYPE, dtype) [GRD_##DTYPE] = AT_LEVEL(grd_ternary_row, dtype),
#define CAST(DTYPE, dtype) [GRD_##DTYPE] = AT_LEVEL(grd_cast_row, dtype),
#define PORTABLE_UNARY(DTYPE, dtype) [GRD_##DTYPE] = PORTABLE(grd_unary_row, dtype),
#define PORTABLE_BINARY(DTYPE, dtype) [GRD_##DTYPE] = PORTABLE(grd_binary_row, dtype),
#define PORTABLE_TERNARY(DTYPE, dtype) [GRD_##DTYPE] = PORTABLE(grd_ternary_row, dtype),
#define PORTABLE_CAST(DTYPE, dtype) [GRD_##DTYPE] = PORTABLE(grd_cast_row, dtype),

#define DECLARE_UNARY(DTYPE, dtype) extern grd_loop_kernel *const AT_LEVEL(grd_unary_row, dtype)[], *const PORTABLE(grd_unary_row, dtype)[];
#define DECLARE_BINARY(DTYPE, dtype)                                                                                                       \
    extern grd_loop_kernel *const AT_LEVEL(grd_binary_row, dtype)[], *const PORTABLE(grd_binary_row, dtype)[];
#define DECLARE_TERNARY(DTYPE, dtype)                                                                                                      \
    extern grd_loop_kernel *const AT_LEVEL(grd_ternary_row, dtype)[], *const PORTABLE(grd_ternary_row, dtype)[];
#define DECLARE_CAST(DTYPE, dtype) extern grd_loop_kernel *const AT_LEVEL(grd_cast_row, dtype)[], *const PORTABLE(grd_cast_row, dtype)[];
#define DECLARE_ALL(DTYPE, dtype)                                                                                                          \
    DECLARE_UNARY(DTYPE, dtype) DECLARE_BINARY(DTYPE, dtype) DECLARE_TERNARY(DTYPE, dtype) DECLARE_CAST(DTYPE, dtype)
DTYPES(DECLARE_ALL)
COMPLEX_DTYPES(DECLARE_ALL)
RARE_DTYPES(DECLARE_ALL)
STORED_DTYPES(DECLARE_CAST)

extern const struct grd_reduce_kernels GRD_AT_LEVEL(grd_reduce_kernels);
extern const struct grd_gemm_kernels GRD_AT_LEVEL(grd_gemm_kernels);
extern const struct grd_index_kernels GRD_AT_LEVEL(grd_index_kernels);
extern const struct grd_random_kernels GRD_AT_LEVEL(grd_random_kernels);

extern const struct grd_kernel_table GRD_AT_LEVEL(grd_kernel_table);

const struct grd_kernel_table GRD_AT_LEVEL(grd_kernel_table) = {
    .isa = GRD_ISA_NAME,
    .unary = {DTYPES(UNARY) COMPLEX_DTYPES(PORTABLE_UNARY) RARE_DTYPES(PORTABLE_UNARY)},
    .binary = {DTYPES(BINARY) COMPLEX_DTYPES(BINARY) RARE_DTYPES(PORTABLE_BINARY)},
    .ternary = {DTYPES(TERNARY) COMPLEX_DTYPES(TERNARY) RARE_DTYPES(PORTABLE_TERNARY)},
    .cast = {DTYPES(CAST) COMPLEX_DTYPES(PORTABLE_CAST) RARE_DTYPES(PORTABLE_CAST) STORED_DTYPES(PORTABLE_CAST)},
    .reduce = &GRD_AT_LEVEL(grd_reduce_kernels),
    .gemm = &GRD_AT_LEVEL(grd_gemm_kernels),
    .index = &GRD_AT_LEVEL(grd_index_kernels),
    .random = &GRD_AT_LEVEL(grd_random_kernels),
};
