/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_BINARY_KERNELS_H
#define GRD_GEN_BINARY_KERNELS_H

enum grd_binary_kernel {
    GRD_BINARY_SUB,
    GRD_BINARY_MUL,
    GRD_BINARY_LT,
    GRD_BINARY_COUNT
};

#endif
