/* Generated from schema by codegen. Do not edit. */
#include "gen/unary_kernels.h"

#if GRD_IS_COMPLEX || GRD_IS_FLOAT
static void tanh_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    map_unary(n, data, strides, unary_tanh);
}
#endif

#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
static void neg_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    map_unary(n, data, strides, unary_neg);
}
#endif

grd_loop_kernel *const GRD_TYPED(grd_unary_row)[GRD_UNARY_COUNT] = {
#if GRD_IS_COMPLEX || GRD_IS_FLOAT
    [GRD_UNARY_TANH] = tanh_loop,
#endif
#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_UNARY_NEG] = neg_loop,
#endif
};
