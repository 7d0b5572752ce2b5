/* Generated from schema by codegen. Do not edit. */
#include "dispatch/op.h"
#include "op/formula.h"

extern struct grd_op grd_operator_tanh, grd_operator_add, grd_operator_sub, grd_operator_mul, grd_operator_neg, grd_operator_sin, grd_operator_lt, grd_operator_twice,
    grd_operator_unbind, grd_operator_stack, grd_operator_max_dim, grd_operator_hidden_place, grd_operator_zeros, grd_operator_scaled_tanh;
struct grd_op *const grd_op_table[] = {
    &grd_operator_tanh, &grd_operator_add, &grd_operator_sub, &grd_operator_mul, &grd_operator_neg, &grd_operator_sin, &grd_operator_lt, &grd_operator_twice, &grd_operator_unbind,
    &grd_operator_stack, &grd_operator_max_dim, &grd_operator_hidden_place, &grd_operator_zeros, &grd_operator_scaled_tanh
};

const int64_t grd_op_table_size = 14;

/* The functions that formulas read at run time may call. The last row has no name. */
const struct grd_function grd_function_table[] = {
    {0},
};
