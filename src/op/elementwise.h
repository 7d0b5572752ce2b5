/* The one implementation behind every operator declared with kernel = "unary", "binary" or "ternary". */
#ifndef GRD_OP_ELEMENTWISE_H
#define GRD_OP_ELEMENTWISE_H

#include "core/iter.h"
#include "gen/binary_kernels.h"
#include "gen/ternary_kernels.h"
#include "gen/unary_kernels.h"
#include "kernel/table.h"

struct grd_elementwise {
    uint8_t inputs;  /* 1, 2, 3: which kernel table */
    uint16_t kernel; /* in that table */
    uint8_t rule;    /* grd_type_rule */
    bool mask;       /* the first input is a bool mask and takes no part in promotion */
    bool divides;    /* a zero in the last input is an error for integers */
    bool truth;      /* the result is bool, whatever the inputs are */
    bool integers;   /* for them, or bool, there is more to do than to call the kernel: they are converted, or looked through for zeros */
    const char *name;
};

/* Checks, allocates (or takes `out`), runs the kernel. `params`: the operator's numbers, or NULL. Where there is no kernel for the dtype:
 * NotImplementedError "\"tanh_cpu\" not implemented for 'Int'", or what PyTorch says instead. */
grd_tensor *grd_op_unary(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_binary(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op, const grd_scalar *params);
grd_tensor *grd_op_ternary(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op,
                           const grd_scalar *params);

#endif
