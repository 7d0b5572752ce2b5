/* Normalisation of rows, and its derivatives; formulas are in schema/normalization.toml. */
#ifndef GRD_KERNEL_LAYER_NORM_H
#define GRD_KERNEL_LAYER_NORM_H

#include <stdbool.h>
#include <stdint.h>

/* Contiguous rows of n elements. Invariant: the order of additions depends on the block alone. */
struct grd_layer_norm_block {
    int64_t rows, n;
    bool centered;
    double eps;
    const void *in, *grad;
    const void *weight, *bias; /* n elements each, or NULL */
    void *mean, *rstd;         /* of each row: written by forward, read by the others */
    void *out;                 /* rows; of `weight_backward` one row, the sum over them */
};

struct grd_layer_norm_row {
    void (*forward)(const struct grd_layer_norm_block *block);
    void (*input_backward)(const struct grd_layer_norm_block *block);
    void (*weight_backward)(const struct grd_layer_norm_block *block);
};

#endif
