/* Generated from schema by codegen. Do not edit. */
#include "gen/binary_kernels.h"

#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
static void sub_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    map_binary(n, data, strides, binary_sub);
}
#endif

#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
static void mul_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    map_binary(n, data, strides, binary_mul);
}
#endif

#if GRD_IS_BOOL || GRD_IS_FLOAT || GRD_IS_INTEGER
static void lt_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    map_binary_bool(n, data, strides, binary_lt);
}
#endif

grd_loop_kernel *const GRD_TYPED(grd_binary_row)[GRD_BINARY_COUNT] = {
#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_BINARY_SUB] = sub_loop,
#endif
#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_BINARY_MUL] = mul_loop,
#endif
#if GRD_IS_BOOL || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_BINARY_LT] = lt_loop,
#endif
};
