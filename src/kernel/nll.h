/* The negative logarithms of the likelihoods of chosen classes, and their gradient. */
#ifndef GRD_KERNEL_NLL_H
#define GRD_KERNEL_NLL_H

#include <stdint.h>

/* An input of (samples, classes, positions) and targets of (samples, positions), contiguous. A kernel works on targets [begin, end). */
struct grd_nll {
    int64_t classes, positions;
    int64_t ignore; /* targets of this number count as nothing */
    const int64_t *target;
    const void *weight; /* of each class, elements of the input's dtype; NULL: ones */
};

struct grd_nll_sums {
    double loss, weight;
};

struct grd_nll_row {
    /* The place of the first target that is neither a class nor ignored, or -1. */
    int64_t (*check)(const struct grd_nll *x, int64_t begin, int64_t end);
    /* The sums of -weight[t] in[t] and of weight[t]; each loss as well unless `losses` is NULL. */
    void (*forward)(const struct grd_nll *x, int64_t begin, int64_t end, const void *in, void *losses, struct grd_nll_sums *ret_sums);
    /* out[t] = -weight[t] scale grad, and 0 for every other class. Gradients are grad_step elements apart: 0 for one that serves all. */
    void (*backward)(const struct grd_nll *x, int64_t begin, int64_t end, const void *grad, int64_t grad_step, double scale, void *out);
};

#endif
