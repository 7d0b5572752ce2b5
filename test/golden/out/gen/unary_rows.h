/* Generated from schema by codegen. Do not edit. */
#include "gen/unary_kernels.h"

enum {
    SIZES_C_C = GRD_MAP_SIZES(sizeof(T), sizeof(T), 0, 0),
};

#if GRD_IS_HALF
static void neg_block(int64_t n, char *const *data, __attribute__((unused)) const void *params)
{
    T *made = (T *)data[0];
    const T *self_data = (const T *)data[1];
    IN_PLACE for (int64_t i = 0; i < n; i++)
        made[i] = (T)(self_data[i] ^ 0x8000);
}
#else

#if GRD_IS_COMPLEX || GRD_IS_FLOAT
static void tanh_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { map_1(n, data, unary_tanh); }
#if GRD_IS_COMPLEX
static inline C unary_sin(C x) { return LIBM(sin, x); }
#endif
#if GRD_IS_FLOAT
static void sin_block(int64_t n, char *const *data, __attribute__((unused)) const void *params)
{
    unary_sin(n, (C *)data[0], (const C *)data[1]);
}
#endif
#if GRD_IS_COMPLEX
static void sin_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { map_1(n, data, unary_sin); }
#endif
#endif

#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
static inline C unary_neg(C x) { return negative(x); }
static void neg_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { map_1(n, data, unary_neg); }
#endif
#endif

const struct grd_map_kernel GRD_TYPED(grd_unary_row)[GRD_UNARY_COUNT] = {
    #if GRD_IS_HALF
    [GRD_UNARY_NEG] = {neg_block, SIZES_C_C, false},
    #else
    #if GRD_IS_COMPLEX || GRD_IS_FLOAT
    [GRD_UNARY_TANH] = {tanh_block, SIZES_C_C, false},
    [GRD_UNARY_SIN] = {sin_block, SIZES_C_C, false},
    #endif
    #if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_UNARY_NEG] = {neg_block, SIZES_C_C, false},
    #endif
    #endif
};
