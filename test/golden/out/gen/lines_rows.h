/* Generated from schema by codegen. Do not edit. */
grd_lines_kernel *const GRD_TYPED(grd_lines_row)[GRD_LINES_COUNT] = {
};
