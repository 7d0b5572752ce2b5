/* One step of an optimizer over n elements: parameters and state are read and written in place.
 *
 * An optimizer is an entry of GRD_OPTIMIZERS, a struct of the numbers of its step, and an update in cpu/optim.c. */
#ifndef GRD_KERNEL_OPTIM_H
#define GRD_KERNEL_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/* X(name): the update is the function `name` of cpu/optim.c, its numbers are struct grd_<name>_numbers. */
#define GRD_OPTIMIZERS(X) X(sgd) X(adam) X(adadelta) X(adagrad) X(adamax) X(asgd) X(nadam) X(radam) X(rmsprop) X(rprop)

#define GRD_OPTIMIZER_ENUM(name) GRD_OPTIMIZER_##name,
enum grd_optimizer_kind { GRD_OPTIMIZERS(GRD_OPTIMIZER_ENUM) GRD_OPTIMIZER_KINDS };
#undef GRD_OPTIMIZER_ENUM

enum { GRD_OPTIM_STATES = 3 };

/* The numbers that every optimizer has. The update is given g = grad (its opposite to maximize) + weight_decay * param. */
struct grd_optim_numbers {
    double lr;
    double weight_decay;
    double shrink; /* the parameter is multiplied by it first: 1 - lr * weight_decay where the decay is decoupled */
    bool maximize;
};

struct grd_sgd_numbers {
    struct grd_optim_numbers common;
    double momentum, dampening;
    bool nesterov;
    bool first; /* the buffer holds nothing yet */
};

struct grd_adam_numbers {
    struct grd_optim_numbers common; /* lr / (1 - beta1^step) */
    double beta1, beta2, eps;
    double correction; /* sqrt(1 - beta2^step) */
};

struct grd_adadelta_numbers {
    struct grd_optim_numbers common;
    double rho, eps;
};

struct grd_adagrad_numbers {
    struct grd_optim_numbers common; /* lr / (1 + (step - 1) * lr_decay) */
    double eps;
};

struct grd_adamax_numbers {
    struct grd_optim_numbers common; /* lr / (1 - beta1^step) */
    double beta1, beta2, eps;
};

struct grd_asgd_numbers {
    struct grd_optim_numbers common; /* eta */
    double kept;                     /* 1 - lambd * eta */
    double mu;
};

struct grd_nadam_numbers {
    struct grd_optim_numbers common;
    double beta1, beta2, eps;
    double correction;               /* 1 - beta2^step */
    double grad_factor, mean_factor; /* of the two parts of the step */
};

struct grd_radam_numbers {
    struct grd_optim_numbers common;
    double beta1, beta2, eps;
    double correction; /* 1 - beta1^step */
    bool adaptive;     /* false in the first steps, while the variance is not known well enough */
    double root;       /* sqrt(1 - beta2^step) */
    double rectified;
};

struct grd_rmsprop_numbers {
    struct grd_optim_numbers common;
    double alpha, eps, momentum;
};

struct grd_rprop_numbers {
    struct grd_optim_numbers common;
    double shrinks, grows; /* the factors of a step's size */
    double least, greatest;
};

/* One call of a step. All arrays are contiguous and do not overlap. */
struct grd_optim_block {
    enum grd_optimizer_kind kind;
    int64_t n;
    void *param;
    const void *grad;
    void *state[GRD_OPTIM_STATES]; /* in the order of the operator's lists. NULL: this state does not exist */
    const void *numbers;           /* the struct of its kind */
};

struct grd_optim_row {
    void (*step)(const struct grd_optim_block *block);
};

#endif
