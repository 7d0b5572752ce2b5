/* Declares kernels that make one step of an optimizer on n elements. Parameters and state are updated in place.
 *
 * An optimizer consists of an entry in GRD_OPTIMIZERS, a struct with the numbers of its step, and a function in cpu/optim.c. */
#ifndef GRD_KERNEL_OPTIM_H
#define GRD_KERNEL_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/* The list of optimizers. For an entry X(name), struct grd_<name>_numbers has the numbers of the step, and the function `name` of cpu/optim.c makes
 * the step. */
#define GRD_OPTIMIZERS(X) X(sgd) X(adam) X(adadelta) X(adagrad) X(adamax) X(asgd) X(nadam) X(radam) X(rmsprop) X(rprop)

#define GRD_OPTIMIZER_ENUM(name) GRD_OPTIMIZER_##name,
enum grd_optimizer_kind { GRD_OPTIMIZERS(GRD_OPTIMIZER_ENUM) GRD_OPTIMIZER_KINDS };
#undef GRD_OPTIMIZER_ENUM

enum { GRD_OPTIM_STATES = 3 }; /* the most state tensors of an optimizer */

/* The numbers that every optimizer has. The gradient from which a step computes the update is g = grad + weight_decay * param, or g = -grad +
 * weight_decay * param if `maximize`. */
struct grd_optim_numbers {
    double lr;
    double weight_decay;
    double shrink; /* the parameter is first multiplied by this number: 1 - lr * weight_decay for decoupled weight decay, otherwise 1 */
    bool maximize;
};

struct grd_sgd_numbers {
    struct grd_optim_numbers common;
    double momentum, dampening;
    bool nesterov;
    bool first; /* true in the first step: the momentum buffer is not initialised yet */
};

struct grd_adam_numbers {
    struct grd_optim_numbers common; /* the caller has divided lr by 1 - beta1^step */
    double beta1, beta2, eps;
    double correction; /* sqrt(1 - beta2^step) */
};

struct grd_adadelta_numbers {
    struct grd_optim_numbers common;
    double rho, eps;
};

struct grd_adagrad_numbers {
    struct grd_optim_numbers common; /* the caller has divided lr by 1 + (step - 1) * lr_decay */
    double eps;
};

struct grd_adamax_numbers {
    struct grd_optim_numbers common; /* the caller has divided lr by 1 - beta1^step */
    double beta1, beta2, eps;
};

struct grd_asgd_numbers {
    struct grd_optim_numbers common; /* lr is PyTorch's eta, which decreases with the steps */
    double kept;                     /* 1 - lambd * eta */
    double mu;
};

struct grd_nadam_numbers {
    struct grd_optim_numbers common;
    double beta1, beta2, eps;
    double correction;               /* 1 - beta2^step */
    double grad_factor, mean_factor; /* factors of g / denominator and of mean / denominator in the update */
};

struct grd_radam_numbers {
    struct grd_optim_numbers common;
    double beta1, beta2, eps;
    double correction; /* 1 - beta1^step */
    bool adaptive;     /* false in the first steps, while the variance of the adaptive learning rate is too large */
    double root;       /* sqrt(1 - beta2^step) */
    /* The rectification term, computed by the caller. */
    double rectified;
};

struct grd_rmsprop_numbers {
    struct grd_optim_numbers common;
    double alpha, eps, momentum;
};

struct grd_rprop_numbers {
    struct grd_optim_numbers common;
    double shrinks, grows; /* factors of the step size when the sign of the gradient changes and when it stays */
    /* Limits of the step size. */
    double least, greatest;
};

/* The arguments of one step of an optimizer. All arrays have n contiguous elements and do not overlap. */
struct grd_optim_block {
    enum grd_optimizer_kind kind;
    int64_t n;
    void *param;
    const void *grad;
    void *state[GRD_OPTIM_STATES]; /* in the order of the operator's tensor lists; NULL if the optimizer runs without this state */
    const void *numbers;           /* the struct grd_<name>_numbers of `kind` */
};

/* The optimizer kernel of one dtype. */
struct grd_optim_row {
    void (*step)(const struct grd_optim_block *block);
};

#endif
