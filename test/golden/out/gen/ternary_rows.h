/* Generated from schema by codegen. Do not edit. */
grd_loop_kernel *const GRD_TYPED(grd_ternary_row)[GRD_TERNARY_COUNT] = {
};
