/* Generated from schema by codegen. Do not edit. */
#include "gen/binary_kernels.h"

enum {
    SIZES_1_CC = GRD_MAP_SIZES(1, sizeof(T), sizeof(T), 0),
    SIZES_C_CC = GRD_MAP_SIZES(sizeof(T), sizeof(T), sizeof(T), 0),
};

#if GRD_IS_HALF
#if GRD_IS_BFLOAT16
static void sub_block(int64_t n, char *const *data, const void *params) { light_2(n, data, params, binary_sub); }
#endif
#else

#if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
static void sub_block(int64_t n, char *const *data, const void *params) { light_2(n, data, params, binary_sub); }
static void mul_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { map_2(n, data, binary_mul); }
#endif

#if GRD_IS_BOOL || GRD_IS_FLOAT || GRD_IS_INTEGER
static inline bool binary_lt(C x, C y) { return x < y; }
static void lt_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { test_2(n, data, binary_lt); }
#endif
#endif

const struct grd_map_kernel GRD_TYPED(grd_binary_row)[GRD_BINARY_COUNT] = {
    #if GRD_IS_HALF
    #if GRD_IS_BFLOAT16
    [GRD_BINARY_SUB] = {sub_block, SIZES_C_CC, LIGHT},
    #endif
    #else
    #if GRD_IS_BOOL || GRD_IS_COMPLEX || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_BINARY_SUB] = {sub_block, SIZES_C_CC, LIGHT},
    [GRD_BINARY_MUL] = {mul_block, SIZES_C_CC, false},
    #endif
    #if GRD_IS_BOOL || GRD_IS_FLOAT || GRD_IS_INTEGER
    [GRD_BINARY_LT] = {lt_block, SIZES_1_CC, false},
    #endif
    #endif
};
