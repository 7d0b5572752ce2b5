/* Defines the kernel table of one instruction-set level, which holds pointers to the kernels of all other files. A kernel that is not compiled for
 * this level is taken from the next lower level that has it. The list in src/kernel/CMakeLists.txt, from which gen/kernel_levels.h is generated, says
 * for which dtypes and levels each file is compiled. */
#include "gen/kernel_levels.h"
#include "kernel/cpu/level.h"
#include "kernel/bags.h"
#include "kernel/bytes.h"
#include "kernel/decomposition.h"
#include "kernel/channels.h"
#include "kernel/distance.h"
#include "kernel/eigen.h"
#include "kernel/histogram.h"
#include "kernel/lines.h"
#include "kernel/ldl.h"
#include "kernel/lu.h"
#include "kernel/margin.h"
#include "kernel/spectral.h"
#include "kernel/table.h"

/* GRD_ROWS_<file>(X, row) applies the macro X, one of the seven below, to each dtype for which the file is compiled. LOOPS, BLOCKS, LINES, KERNEL and
 * STRUCT declare what the file defines for the dtype. OF and AT make the entry of the dtype in the kernel table. AT is for structs, whose
 * entry is a pointer. */
#define LOOPS(file, row, DTYPE, dtype) extern grd_loop_kernel *const GRD_BUILT(file, row, dtype)[];
#define BLOCKS(file, row, DTYPE, dtype) extern const struct grd_map_kernel GRD_BUILT(file, row, dtype)[];
#define LINES(file, row, DTYPE, dtype) extern grd_lines_kernel *const GRD_BUILT(file, row, dtype)[];
#define KERNEL(file, row, DTYPE, dtype) extern row##_kernel GRD_BUILT(file, row, dtype);
#define STRUCT(file, row, DTYPE, dtype) extern const struct row GRD_BUILT(file, row, dtype);
#define OF(file, row, DTYPE, dtype) [GRD_##DTYPE] = GRD_BUILT(file, row, dtype),
#define AT(file, row, DTYPE, dtype) [GRD_##DTYPE] = &GRD_BUILT(file, row, dtype),

/* clang-format off */
GRD_ROWS_unary(BLOCKS, grd_unary_row)
GRD_ROWS_binary(BLOCKS, grd_binary_row)
GRD_ROWS_ternary(BLOCKS, grd_ternary_row)
GRD_ROWS_gradient(BLOCKS, grd_gradient_row)
GRD_ROWS_cast(LOOPS, grd_cast_row)
GRD_ROWS_lines(LINES, grd_lines_row)
GRD_ROWS_reduce(STRUCT, grd_reduce_row)
GRD_ROWS_gemm(STRUCT, grd_product_kernels)
GRD_ROWS_order(STRUCT, grd_order_row)
GRD_ROWS_optim(STRUCT, grd_optim_row)
GRD_ROWS_range(STRUCT, grd_range_row)
GRD_ROWS_bags(STRUCT, grd_bags_row)
GRD_ROWS_margin(STRUCT, grd_margin_row)
GRD_ROWS_histogram(STRUCT, grd_histogram_row)
GRD_ROWS_decomposition(STRUCT, grd_decomposition_row)
GRD_ROWS_jacobi(STRUCT, grd_spectral_row)
GRD_ROWS_eigen(STRUCT, grd_eigen_row)
GRD_ROWS_schur(STRUCT, grd_eigen_row)
GRD_ROWS_lu(STRUCT, grd_lu_row)
GRD_ROWS_ldl(STRUCT, grd_ldl_row)
GRD_ROWS_channels(STRUCT, grd_channels_row)
GRD_ROWS_distance(KERNEL, grd_distance)
GRD_ROWS_distance_gradient(KERNEL, grd_distance_gradient)
GRD_ROWS_nll(STRUCT, grd_nll_row)
GRD_ROWS_rnn(STRUCT, grd_rnn_row)
GRD_ROWS_ctc(STRUCT, grd_ctc_row)
GRD_ROWS_attention(STRUCT, grd_attention_row)
GRD_ROWS_pool(STRUCT, grd_pool_row)
GRD_ROWS_conv(STRUCT, grd_conv_row)
GRD_ROWS_resample(STRUCT, grd_resample_row)
GRD_ROWS_grid(STRUCT, grd_grid_row)
GRD_ROWS_fft(STRUCT, grd_fft_row)
GRD_ROWS_transpose(KERNEL, grd_transpose)
extern const struct grd_index_kernels GRD_BUILT_UNTYPED(index, grd_index_kernels);
extern const struct grd_bytes_kernels GRD_BUILT_UNTYPED(bytes, grd_bytes_kernels);
extern const struct grd_random_kernels GRD_BUILT_UNTYPED(random, grd_random_kernels);
/* clang-format on */

const struct grd_kernel_table GRD_AT_LEVEL(grd_kernel_table) = {
    .isa = GRD_ISA_NAME,
    .unary = {GRD_ROWS_unary(OF, grd_unary_row)},
    .binary = {GRD_ROWS_binary(OF, grd_binary_row)},
    .ternary = {GRD_ROWS_ternary(OF, grd_ternary_row)},
    .gradient = {GRD_ROWS_gradient(OF, grd_gradient_row)},
    .cast = {GRD_ROWS_cast(OF, grd_cast_row)},
    .lines = {GRD_ROWS_lines(OF, grd_lines_row)},
    .reduce = {GRD_ROWS_reduce(AT, grd_reduce_row)},
    /* signed integers use the kernels of unsigned ones, because their products are the same modulo 2^bits */
    .gemm = {GRD_ROWS_gemm(AT, grd_product_kernels) AT(gemm, grd_product_kernels, INT32, uint32)
                 AT(gemm, grd_product_kernels, INT64, uint64)},
    .index = &GRD_BUILT_UNTYPED(index, grd_index_kernels),
    .bytes = &GRD_BUILT_UNTYPED(bytes, grd_bytes_kernels),
    .transpose = {GRD_BUILT(transpose, grd_transpose, uint8), GRD_BUILT(transpose, grd_transpose, uint16),
                  GRD_BUILT(transpose, grd_transpose, uint32), GRD_BUILT(transpose, grd_transpose, uint64),
                  GRD_BUILT(transpose, grd_transpose, complex128)},
    .random = &GRD_BUILT_UNTYPED(random, grd_random_kernels),
    .order = {GRD_ROWS_order(AT, grd_order_row) AT(order, grd_order_row, BOOL, uint8)},
    .optim = {GRD_ROWS_optim(AT, grd_optim_row)},
    .range = {GRD_ROWS_range(AT, grd_range_row)},
    .bags = {GRD_ROWS_bags(AT, grd_bags_row)},
    .margin = {GRD_ROWS_margin(AT, grd_margin_row)},
    .histogram = {GRD_ROWS_histogram(AT, grd_histogram_row)},
    .decomposition = {GRD_ROWS_decomposition(AT, grd_decomposition_row)},
    .jacobi = {GRD_ROWS_jacobi(AT, grd_spectral_row)},
    .eigen = {GRD_ROWS_eigen(AT, grd_eigen_row) GRD_ROWS_schur(AT, grd_eigen_row)},
    .lu = {GRD_ROWS_lu(AT, grd_lu_row)},
    .ldl = {GRD_ROWS_ldl(AT, grd_ldl_row)},
    .channels = {GRD_ROWS_channels(AT, grd_channels_row)},
    .distance = {GRD_ROWS_distance(OF, grd_distance)},
    .distance_gradient = {GRD_ROWS_distance_gradient(OF, grd_distance_gradient)},
    .nll = {GRD_ROWS_nll(AT, grd_nll_row)},
    .rnn = {GRD_ROWS_rnn(AT, grd_rnn_row)},
    .ctc = {GRD_ROWS_ctc(AT, grd_ctc_row)},
    .attention = {GRD_ROWS_attention(AT, grd_attention_row)},
    .pool = {GRD_ROWS_pool(AT, grd_pool_row)},
    .conv = {GRD_ROWS_conv(AT, grd_conv_row)},
    .resample = {GRD_ROWS_resample(AT, grd_resample_row)},
    .grid = {GRD_ROWS_grid(AT, grd_grid_row)},
    .fft = {GRD_ROWS_fft(AT, grd_fft_row)},
};
