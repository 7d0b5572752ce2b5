/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_OP_INDEX_H
#define GRD_GEN_OP_INDEX_H

#include "autograd/derivative.h"

enum grd_op_index {
    GRD_OP_TANH,
    GRD_OP_ADD,
    GRD_OP_SUB,
    GRD_OP_MUL,
    GRD_OP_NEG,
    GRD_OP_SIN,
    GRD_OP_LT,
    GRD_OP_TWICE,
    GRD_OP_UNBIND,
    GRD_OP_STACK,
    GRD_OP_MAX_DIM,
    GRD_OP_HIDDEN_PLACE,
    GRD_OP_ZEROS,
    GRD_OP_COUNT
};

extern const struct grd_derivative grd_derivative_tanh;
extern const struct grd_derivative grd_derivative_add;
extern const struct grd_derivative grd_derivative_sub;
extern const struct grd_derivative grd_derivative_mul;
extern const struct grd_derivative grd_derivative_neg;
extern const struct grd_derivative grd_derivative_unbind;
extern const struct grd_derivative grd_derivative_stack;
extern const struct grd_derivative grd_derivative_max_dim;

#endif
