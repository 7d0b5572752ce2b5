/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_LINES_KERNELS_H
#define GRD_GEN_LINES_KERNELS_H

enum grd_lines_kernel_index {
    GRD_LINES_COUNT
};

#endif
