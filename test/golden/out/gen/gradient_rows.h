/* Generated from schema by codegen. Do not edit. */
#include "gen/gradient_kernels.h"

enum {
    SIZES_C_CC = GRD_MAP_SIZES(sizeof(T), sizeof(T), sizeof(T), 0),
};

#if GRD_IS_FLOAT
static inline C gradient_hidden_tanh_backward(C x, C y) { return x * (1 - (y * y)); }
static void hidden_tanh_backward_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { map_2(n, data, gradient_hidden_tanh_backward); }
#endif

const struct grd_map_kernel GRD_TYPED(grd_gradient_row)[GRD_GRADIENT_COUNT] = {
    #if GRD_IS_FLOAT
    [GRD_GRADIENT_HIDDEN_TANH_BACKWARD] = {hidden_tanh_backward_block, SIZES_C_CC, false},
    #endif
};
