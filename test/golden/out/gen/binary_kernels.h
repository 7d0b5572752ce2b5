/* Generated from schema by codegen. Do not edit. */
#pragma once

enum grd_binary_kernel {
    GRD_BINARY_SUB,
    GRD_BINARY_MUL,
    GRD_BINARY_LT,
    GRD_BINARY_COUNT
};
