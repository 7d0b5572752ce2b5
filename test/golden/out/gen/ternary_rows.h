/* Generated from schema by codegen. Do not edit. */
#include "gen/ternary_kernels.h"

enum {
};

grd_loop_kernel *const GRD_TYPED(grd_ternary_row)[GRD_TERNARY_COUNT] = {
};
