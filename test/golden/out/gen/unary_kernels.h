/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_UNARY_KERNELS_H
#define GRD_GEN_UNARY_KERNELS_H

enum grd_unary_kernel {
    GRD_UNARY_TANH,
    GRD_UNARY_NEG,
    GRD_UNARY_SIN,
    GRD_UNARY_COUNT
};

#endif
