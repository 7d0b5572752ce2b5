/* Generated from schema by codegen. Do not edit. */
#include "gen/unary_kernels.h"
#include "gen/binary_kernels.h"
#include "gen/ternary_kernels.h"

enum {
    SIZES_1_CC = GRD_MAP_SIZES(1, sizeof(T), sizeof(T), 0),
    SIZES_C_C = GRD_MAP_SIZES(sizeof(T), sizeof(T), 0, 0),
    SIZES_C_CC = GRD_MAP_SIZES(sizeof(T), sizeof(T), sizeof(T), 0),
};

static void tanh_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    through_float32(n, data, strides, params, FLOAT32_ROW(grd_unary_row)[GRD_UNARY_TANH], SIZES_C_C);
}
static void neg_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    through_float32(n, data, strides, params, FLOAT32_ROW(grd_unary_row)[GRD_UNARY_NEG], SIZES_C_C);
}
static void sin_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    through_float32(n, data, strides, params, FLOAT32_ROW(grd_unary_row)[GRD_UNARY_SIN], SIZES_C_C);
}

grd_loop_kernel *const GRD_TYPED(grd_unary_row)[GRD_UNARY_COUNT] = {
    [GRD_UNARY_TANH] = tanh_loop,
    [GRD_UNARY_NEG] = neg_loop,
    [GRD_UNARY_SIN] = sin_loop,
};

static void sub_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    through_float32(n, data, strides, params, FLOAT32_ROW(grd_binary_row)[GRD_BINARY_SUB], SIZES_C_CC);
}
static void mul_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    through_float32(n, data, strides, params, FLOAT32_ROW(grd_binary_row)[GRD_BINARY_MUL], SIZES_C_CC);
}
static void lt_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    through_float32(n, data, strides, params, FLOAT32_ROW(grd_binary_row)[GRD_BINARY_LT], SIZES_1_CC);
}

grd_loop_kernel *const GRD_TYPED(grd_binary_row)[GRD_BINARY_COUNT] = {
    [GRD_BINARY_SUB] = sub_loop,
    [GRD_BINARY_MUL] = mul_loop,
    [GRD_BINARY_LT] = lt_loop,
};


grd_loop_kernel *const GRD_TYPED(grd_ternary_row)[GRD_TERNARY_COUNT] = {
};
