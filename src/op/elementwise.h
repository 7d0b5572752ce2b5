/* The law of elementwise operators: every operator declared with kernel = "unary", "binary" or "ternary". */
#ifndef GRD_OP_ELEMENTWISE_H
#define GRD_OP_ELEMENTWISE_H

#include "core/iter.h"
#include "gen/binary_kernels.h"
#include "gen/gradient_kernels.h"
#include "gen/ternary_kernels.h"
#include "gen/unary_kernels.h"
#include "core/tensor.h"
#include "kernel/table.h"

/* An error that PyTorch raises instead of the usual one for a missing kernel: `refuse` in the schema. */
struct grd_refusal {
    uint8_t category; /* grd_category of the dtypes */
    grd_error_code code;
    const char *text;
};

/* An entry of the schema. */
struct grd_elementwise {
    uint8_t inputs;                       /* 1, 2 or 3: also the kernel table, unless it is that of gradients */
    uint8_t rule;                         /* grd_type_rule */
    uint16_t kernel;                      /* index in that table */
    bool mask;                            /* the first input is a bool mask and takes no part in promotion */
    bool divides;                         /* a zero in the last input is an error for integers */
    bool commutes;                        /* a number may also come first */
    bool gradient;                        /* computes a gradient */
    const struct grd_refusal *refusal;    /* NULL: none */
    const struct grd_elementwise *number; /* runs instead if the last input is a number for tensors of a half type; NULL: this one runs */
    const char *name;
};

/* Checks, allocates (or takes `out`), runs the kernel. `params`: the operator's numbers, or NULL. Where there is no kernel for the dtype:
 * NotImplementedError "\"tanh_cpu\" not implemented for 'Int'", or what PyTorch says instead. */
grd_tensor *grd_op_unary(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_binary(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_ternary(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op,
                           const grd_scalar *params);

/* Returns the gradient that a kernel computes in one loop; `z` may be NULL. NULL if its formula must compute it: the calls would be recorded, a
 * subclass or mode would see them, or the inputs are not tensors of one floating dtype. */
grd_tensor *grd_op_gradient(grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op, const grd_scalar *params);

#endif
