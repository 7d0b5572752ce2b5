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

/* The error that an operator raises, as PyTorch does, for a category of dtypes for which there is no kernel (`refuse` in the schema). */
struct grd_refusal {
    uint8_t category; /* an enum grd_category: the dtypes for which the error is raised */
    grd_error_code code;
    const char *text;
};

/* Properties of an elementwise operator, generated from the schema. */
struct grd_elementwise {
    /* number of inputs, 1 to 3; selects the unary, binary or ternary kernel table unless `gradient` */
    uint8_t inputs;
    uint8_t rule;                         /* an enum grd_type_rule: how type promotion finds the result's dtype */
    uint16_t kernel;                      /* index of the operator's kernel in a dtype's kernel table */
    bool mask;                            /* the first input is a bool mask, which type promotion ignores */
    bool divides;                         /* a zero in the last input is an error for integers */
    bool commutes;                        /* the operands can be swapped, so the first one may be a number, too */
    bool gradient;                        /* the operator computes a gradient, with a kernel from the gradient table */
    const struct grd_refusal *refusal;    /* error for dtypes without a kernel; NULL for the usual one */
    const struct grd_elementwise *number; /* variant for half types that takes the last input as a number in `params`; NULL if none */
    const char *name;
};

/* The three functions below check the operands, allocate the result (or take `out`) and run the kernel. `params` are the operator's numbers, or
 * NULL. If there is no kernel for the dtype, they raise NotImplementedError "\"tanh_cpu\" not implemented for 'Int'" or op->refusal. */
grd_tensor *grd_op_unary(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_binary(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_ternary(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op,
                           const grd_scalar *params);

/* Returns the gradient computed by one fused kernel; `z` may be NULL. Returns NULL if the caller must compute the gradient by a formula of other
 * operators: if their calls would be recorded for backward, if a tensor subclass or mode would see them, or if the inputs are not tensors of one
 * floating-point dtype. */
grd_tensor *grd_op_gradient(grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op, const grd_scalar *params);

#endif
