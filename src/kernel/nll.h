/* Declares kernels that compute the negative log likelihood loss (nll_loss) and its gradient. */
#ifndef GRD_KERNEL_NLL_H
#define GRD_KERNEL_NLL_H

#include <stdint.h>

/* The arguments of nll_loss. The input has the shape (samples, classes, positions), the targets have the shape (samples, positions); both are
 * contiguous. A kernel call processes the targets with numbers in [begin, end). */
struct grd_nll {
    int64_t classes, positions;
    int64_t ignore; /* targets equal to this class index are ignored (ignore_index) */
    const int64_t *target;
    const void *weight; /* one per class, of the input's dtype; NULL means that all weights are 1 */
};

/* The sum of the losses and the sum of the weights of the targets that a kernel call processes. */
struct grd_nll_sums {
    double loss, weight;
};

/* The nll_loss kernels of one dtype. */
struct grd_nll_row {
    /* Checks the targets with numbers in [begin, end). Returns the number of the first target that is neither a valid class nor equal to `ignore`,
     * or -1 if there is none. */
    int64_t (*check)(const struct grd_nll *x, int64_t begin, int64_t end);
    /* For each target with class t the loss is -weight[t] * in[t]. Writes to ret_sums the sum of the losses and the sum of weight[t]. Also writes
     * each loss to `losses`, unless `losses` is NULL. */
    void (*forward)(const struct grd_nll *x, int64_t begin, int64_t end, const void *in, void *losses, struct grd_nll_sums *ret_sums);
    /* Writes the gradient of the input. For each target with class t, out[t] = -weight[t] * scale * g, where g is the element of `grad` for this
     * target; all other classes get 0. The elements of `grad` are grad_step apart; grad_step is 0 if all targets share one. */
    void (*backward)(const struct grd_nll *x, int64_t begin, int64_t end, const void *grad, int64_t grad_step, double scale, void *out);
};

#endif
