/* Generated from schema by codegen. Do not edit. */
#pragma once

enum grd_ternary_kernel {
    GRD_TERNARY_COUNT
};
