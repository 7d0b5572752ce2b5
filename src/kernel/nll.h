/* Declares kernels that compute the negative log likelihood loss (nll_loss) and its gradient. */
#ifndef GRD_KERNEL_NLL_H
#define GRD_KERNEL_NLL_H

#include <stdint.h>

/* The arguments of nll_loss. The input has the shape (samples, classes, positions), the targets have the shape (samples, positions); both are
 * contiguous. A kernel call processes the targets numbered begin to end - 1. */
struct grd_nll {
    int64_t classes, positions;
    int64_t ignore; /* targets with this number are ignored */
    const int64_t *target;
    const void *weight; /* one per class, of the input's dtype; NULL means that all weights are 1 */
};

/* Sums over the targets of a kernel call. */
struct grd_nll_sums {
    double loss, weight;
};

/* The nll_loss kernels of one dtype. */
struct grd_nll_row {
    /* Returns the number of the first target that is neither a class nor ignored, or -1. */
    int64_t (*check)(const struct grd_nll *x, int64_t begin, int64_t end);
    /* Writes to ret_sums the sum of the losses -weight[t] * in[t] and the sum of the weights weight[t], where t is the class of a target. Writes each
     * loss to `losses` unless that is NULL. */
    void (*forward)(const struct grd_nll *x, int64_t begin, int64_t end, const void *in, void *losses, struct grd_nll_sums *ret_sums);
    /* Writes for each target with class t the gradient out[t] = -weight[t] * scale * g, and 0 for all other classes. g is the target's element of
     * `grad`; these elements are grad_step apart, and grad_step is 0 if one gradient serves all targets. */
    void (*backward)(const struct grd_nll *x, int64_t begin, int64_t end, const void *grad, int64_t grad_step, double scale, void *out);
};

#endif
