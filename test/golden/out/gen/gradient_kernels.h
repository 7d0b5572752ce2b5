/* Generated from schema by codegen. Do not edit. */
#pragma once

enum grd_gradient_kernel {
    GRD_GRADIENT_HIDDEN_TANH_BACKWARD,
    GRD_GRADIENT_COUNT
};
