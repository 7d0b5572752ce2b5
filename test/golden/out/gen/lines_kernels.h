/* Generated from schema by codegen. Do not edit. */
#pragma once

enum grd_lines_kernel_index {
    GRD_LINES_COUNT
};
