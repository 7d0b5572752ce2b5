/* Generated from schema by codegen. Do not edit. */
#include "gen/ternary_kernels.h"

enum {
};

const struct grd_map_kernel GRD_TYPED(grd_ternary_row)[GRD_TERNARY_COUNT] = {
};
