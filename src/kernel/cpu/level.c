/* The kernel table of one level, put together from the tables of the other files. No code here. A row that is not built at this level is
 * that of the next level below (gen/kernel_levels.h). */
#include "gen/kernel_levels.h"
#include "kernel/cpu/level.h"
#include "kernel/lines.h"
#include "kernel/table.h"

/* clang-format off */
#define DTYPES(X) \
    X(BOOL, bool) X(UINT8, uint8) X(INT8, int8) X(UINT16, uint16) X(INT16, int16) X(UINT32, uint32) X(INT32, int32) \
    X(UINT64, uint64) X(INT64, int64) X(FLOAT32, float32) X(FLOAT64, float64) X(COMPLEX64, complex64) X(COMPLEX128, complex128)
#define HALF_DTYPES(X) X(FLOAT16, float16) X(BFLOAT16, bfloat16)
#define ORDERED_DTYPES(X) \
    X(UINT8, uint8) X(INT8, int8) X(UINT16, uint16) X(INT16, int16) X(UINT32, uint32) X(INT32, int32) X(UINT64, uint64) X(INT64, int64) \
    X(FLOAT16, float16) X(BFLOAT16, bfloat16) X(FLOAT32, float32) X(FLOAT64, float64)
#define FLOAT_DTYPES(X) X(FLOAT16, float16) X(BFLOAT16, bfloat16) X(FLOAT32, float32) X(FLOAT64, float64)
#define STORED_DTYPES(X) X(FLOAT8_E4M3FN, float8_e4m3fn) X(FLOAT8_E5M2, float8_e5m2)
/* clang-format on */

#define ORDER(DTYPE, dtype) [GRD_##DTYPE] = &GRD_BUILT(order, grd_order_row, dtype),
#define UNARY(DTYPE, dtype) [GRD_##DTYPE] = GRD_BUILT(unary, grd_unary_row, dtype),
#define BINARY(DTYPE, dtype) [GRD_##DTYPE] = GRD_BUILT(binary, grd_binary_row, dtype),
#define TERNARY(DTYPE, dtype) [GRD_##DTYPE] = GRD_BUILT(ternary, grd_ternary_row, dtype),
#define CAST(DTYPE, dtype) [GRD_##DTYPE] = GRD_BUILT(cast, grd_cast_row, dtype),
#define NLL(DTYPE, dtype) [GRD_##DTYPE] = &GRD_BUILT(nll, grd_nll_row, dtype),

#define DECLARE(DTYPE, dtype)                                                                                                              \
    extern const struct grd_map_kernel GRD_BUILT(unary, grd_unary_row, dtype)[], GRD_BUILT(binary, grd_binary_row, dtype)[],               \
        GRD_BUILT(ternary, grd_ternary_row, dtype)[];
#define DECLARE_CAST(DTYPE, dtype) extern grd_loop_kernel *const GRD_BUILT(cast, grd_cast_row, dtype)[];
#define DECLARE_ORDER(DTYPE, dtype) extern const struct grd_order_row GRD_BUILT(order, grd_order_row, dtype);
DTYPES(DECLARE)
DTYPES(DECLARE_CAST)
HALF_DTYPES(DECLARE_CAST)
STORED_DTYPES(DECLARE_CAST)
ORDERED_DTYPES(DECLARE_ORDER)

extern grd_lines_kernel *const GRD_BUILT(lines, grd_lines_row, int64)[], *const GRD_BUILT(lines, grd_lines_row, float32)[],
                                                                             *const GRD_BUILT(lines, grd_lines_row, float64)[],
                                                                                 *const GRD_BUILT(lines, grd_lines_row, complex128)[];
extern const struct grd_reduce_kernels GRD_AT_LEVEL(grd_reduce_kernels);
extern const struct grd_gemm_kernels GRD_AT_LEVEL(grd_gemm_kernels);
extern const struct grd_index_kernels GRD_BUILT_PLAIN(index, grd_index_kernels);
extern const struct grd_random_kernels GRD_BUILT_PLAIN(random, grd_random_kernels);
extern const struct grd_optim_row GRD_BUILT(optim, grd_optim_row, float32), GRD_BUILT(optim, grd_optim_row, float64);

extern const struct grd_range_row GRD_BUILT(range, grd_range_row, int64), GRD_BUILT(range, grd_range_row, float32),
    GRD_BUILT(range, grd_range_row, float64);

extern void GRD_BUILT(distance, grd_distance, float32)(const struct grd_distance_block *),
    GRD_BUILT(distance, grd_distance, float64)(const struct grd_distance_block *);

#define DECLARE_NLL(DTYPE, dtype) extern const struct grd_nll_row GRD_BUILT(nll, grd_nll_row, dtype);
FLOAT_DTYPES(DECLARE_NLL)

extern const struct grd_kernel_table GRD_AT_LEVEL(grd_kernel_table);

const struct grd_kernel_table GRD_AT_LEVEL(grd_kernel_table) = {
    .isa = GRD_ISA_NAME,
    .unary = {DTYPES(UNARY)},
    .binary = {DTYPES(BINARY)},
    .ternary = {DTYPES(TERNARY)},
    .cast = {DTYPES(CAST) HALF_DTYPES(CAST) STORED_DTYPES(CAST)},
    .lines = {[GRD_INT64] = GRD_BUILT(lines, grd_lines_row, int64),
              [GRD_FLOAT32] = GRD_BUILT(lines, grd_lines_row, float32),
              [GRD_FLOAT64] = GRD_BUILT(lines, grd_lines_row, float64),
              [GRD_COMPLEX128] = GRD_BUILT(lines, grd_lines_row, complex128)},
    .reduce = &GRD_AT_LEVEL(grd_reduce_kernels),
    .gemm = &GRD_AT_LEVEL(grd_gemm_kernels),
    .index = &GRD_BUILT_PLAIN(index, grd_index_kernels),
    .order = {[GRD_BOOL] = &GRD_BUILT(order, grd_order_row, uint8), ORDERED_DTYPES(ORDER)},
    .random = &GRD_BUILT_PLAIN(random, grd_random_kernels),
    .optim = {[GRD_FLOAT32] = &GRD_BUILT(optim, grd_optim_row, float32), [GRD_FLOAT64] = &GRD_BUILT(optim, grd_optim_row, float64)},
    .range = {[GRD_INT64] = &GRD_BUILT(range, grd_range_row, int64),
              [GRD_FLOAT32] = &GRD_BUILT(range, grd_range_row, float32),
              [GRD_FLOAT64] = &GRD_BUILT(range, grd_range_row, float64)},
    .distance = {[GRD_FLOAT32] = GRD_BUILT(distance, grd_distance, float32), [GRD_FLOAT64] = GRD_BUILT(distance, grd_distance, float64)},
    .nll = {FLOAT_DTYPES(NLL)},
};
