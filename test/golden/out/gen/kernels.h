/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_KERNELS_H
#define GRD_GEN_KERNELS_H

enum grd_unary_kernel {
    GRD_UNARY_TANH,
    GRD_UNARY_NEG,
    GRD_UNARY_COUNT
};

enum grd_binary_kernel {
    GRD_BINARY_SUB,
    GRD_BINARY_MUL,
    GRD_BINARY_LT,
    GRD_BINARY_COUNT
};

enum grd_ternary_kernel {
    GRD_TERNARY_COUNT
};

#endif
