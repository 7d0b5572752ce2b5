/* Generated from schema by codegen. Do not edit. */
#pragma once

enum grd_unary_kernel {
    GRD_UNARY_TANH,
    GRD_UNARY_NEG,
    GRD_UNARY_SIN,
    GRD_UNARY_COUNT
};
