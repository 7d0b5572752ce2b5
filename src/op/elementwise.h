/* Runs all elementwise operators, which the schema declares with kernel = "unary", "binary" or "ternary". */
#ifndef GRD_OP_ELEMENTWISE_H
#define GRD_OP_ELEMENTWISE_H

#include "core/iter.h"
#include "gen/binary_kernels.h"
#include "gen/gradient_kernels.h"
#include "gen/ternary_kernels.h"
#include "gen/unary_kernels.h"
#include "core/tensor.h"
#include "kernel/table.h"

/* An error that replaces the default error if a dtype of the given category has no kernel. The schema declares it with `refuse`, to match PyTorch's
 * error. */
struct grd_refusal {
    uint8_t category; /* an enum grd_category: the dtypes for which the error is raised */
    grd_error_code code;
    const char *text;
};

/* Properties of an elementwise operator, generated from the schema. */
struct grd_elementwise {
    /* number of inputs, 1 to 3; kernels are looked up in the table for this number of inputs or, if `gradient` is true, in the gradient table */
    uint8_t inputs;
    uint8_t rule;    /* an enum grd_type_rule: how type promotion finds the result's dtype */
    uint16_t kernel; /* index of the operator's kernel in a dtype's kernel table */
    bool mask;       /* the first input is a bool mask, which type promotion ignores */
    bool divides;    /* a zero in the last input is an error for integers */
    /* The operator is commutative. So the variant `number` (see below) runs not only if the last input is a number, but also if the first is. */
    bool commutes;
    bool gradient;                        /* the operator computes a gradient, with a kernel from the gradient table */
    const struct grd_refusal *refusal;    /* error for dtypes without a kernel; NULL for the default error */
    const struct grd_elementwise *number; /* variant for half types that takes the last input as a number in `params`; NULL if none */
    const char *name;
};

/* The three functions below check the operands, run the kernel and return the result: `out` or, if `out` is NULL, a new tensor. `params` are the
 * operator's numbers, or NULL. If there is no kernel for the dtype, they raise NotImplementedError "\"tanh_cpu\" not implemented for 'Int'" or
 * op->refusal. */
grd_tensor *grd_op_unary(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_binary(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_ternary(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op,
                           const grd_scalar *params);

/* Returns the gradient computed by one fused kernel; `z` may be NULL. Returns NULL if the caller must use a formula of several operators instead.
 * This is so if calls of operators are recorded for backward or seen by a tensor subclass or mode, or if the inputs are not tensors of one
 * floating-point dtype. */
grd_tensor *grd_op_gradient(grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op, const grd_scalar *params);

#endif
