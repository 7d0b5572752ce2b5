/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_TERNARY_KERNELS_H
#define GRD_GEN_TERNARY_KERNELS_H

enum grd_ternary_kernel {
    GRD_TERNARY_COUNT
};

#endif
