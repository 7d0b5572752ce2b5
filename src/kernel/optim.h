/* One step of an optimizer over n elements: parameters and state are read and written in place. */
#ifndef GRD_KERNEL_OPTIM_H
#define GRD_KERNEL_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/* What a step works on. All arrays are contiguous and apart from each other. */
struct grd_optim_block {
    int64_t n;
    void *param;
    const void *grad;
    void *state[3]; /* SGD: momentum buffer. Adam: mean, mean of squares, its maximum. NULL: none */
};

struct grd_sgd_numbers {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
    bool first; /* the buffer holds nothing yet */
};

struct grd_adam_numbers {
    double weight_decay; /* added to the gradient, in units of the parameter */
    double shrink;       /* the parameter is multiplied by this before the step */
    double beta1, beta2, eps;
    double step_size;  /* lr / (1 - beta1^step) */
    double correction; /* sqrt(1 - beta2^step) */
    bool maximize;
};

struct grd_optim_row {
    void (*sgd)(const struct grd_optim_block *block, const struct grd_sgd_numbers *numbers);
    void (*adam)(const struct grd_optim_block *block, const struct grd_adam_numbers *numbers);
};

#endif
