/* Declares kernels that make one step of an optimizer on n elements. Parameters and state are updated in place.
 *
 * An optimizer consists of an entry in GRD_OPTIMIZERS, a struct with the numbers of its step, and a function in cpu/optim.c. */
#ifndef GRD_KERNEL_OPTIM_H
#define GRD_KERNEL_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/* The list of optimizers. Each X(name) stands for an optimizer whose step is the function `name` in cpu/optim.c and whose numeric arguments are in
 * struct grd_<name>_numbers. */
#define GRD_OPTIMIZERS(X) X(sgd) X(adam) X(adadelta) X(adagrad) X(adamax) X(asgd) X(nadam) X(radam) X(rmsprop) X(rprop)

#define GRD_OPTIMIZER_ENUM(name) GRD_OPTIMIZER_##name,
enum grd_optimizer_kind { GRD_OPTIMIZERS(GRD_OPTIMIZER_ENUM) GRD_OPTIMIZER_KINDS };
#undef GRD_OPTIMIZER_ENUM

enum { GRD_OPTIM_STATES = 3 }; /* the most state tensors of an optimizer */

/* The numbers that every optimizer has. A step uses the gradient g = grad + weight_decay * param. If `maximize`, it uses
 * g = weight_decay * param - grad. */
struct grd_optim_numbers {
    double lr;
    double weight_decay;
    double shrink; /* 1 - lr * weight_decay for decoupled weight decay, otherwise 1; the step first multiplies the parameter by it */
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
    struct grd_optim_numbers common; /* common.lr is already divided by 1 + (step - 1) * lr_decay */
    double eps;
};

struct grd_adamax_numbers {
    struct grd_optim_numbers common; /* the caller has divided lr by 1 - beta1^step */
    double beta1, beta2, eps;
};

struct grd_asgd_numbers {
    struct grd_optim_numbers common; /* common.lr is the decaying step size that PyTorch's ASGD calls eta */
    double kept;                     /* 1 - lambd * eta, by which each step multiplies the parameter */
    double mu;
};

struct grd_nadam_numbers {
    struct grd_optim_numbers common;
    double beta1, beta2, eps;
    double correction; /* 1 - beta2^step */
    /* A step adds grad_factor * g / d + mean_factor * mean / d to the parameter. `mean` is the moving average of g. d is
     * sqrt(square / correction) + eps, where `square` is the moving average of g^2. */
    double grad_factor, mean_factor;
};

struct grd_radam_numbers {
    struct grd_optim_numbers common;
    double beta1, beta2, eps;
    double correction; /* 1 - beta1^step */
    /* true: the step is divided by the root of the moving average of g^2. false in the first steps, whose average covers too few
     * gradients to be reliable. */
    bool adaptive;
    double root; /* sqrt(1 - beta2^step) */
    /* RAdam's rectification term, computed by the caller; used only if `adaptive`. */
    double rectified;
};

struct grd_rmsprop_numbers {
    struct grd_optim_numbers common;
    double alpha, eps, momentum;
};

struct grd_rprop_numbers {
    struct grd_optim_numbers common;
    /* The step size is multiplied by `shrinks` if the sign of the gradient has changed, and by `grows` if it has not. */
    double shrinks, grows;
    /* The step size is kept between `least` and `greatest`. */
    double least, greatest;
};

/* The arguments of one step of an optimizer. All arrays have n contiguous elements and do not overlap. */
struct grd_optim_block {
    enum grd_optimizer_kind kind;
    int64_t n;
    void *param;
    const void *grad;
    /* The state arrays, in the order of the operator's arguments. state[i] is NULL if the optimizer runs without it, e.g. without a momentum
     * buffer. */
    void *state[GRD_OPTIM_STATES];
    const void *numbers; /* points to the struct grd_<name>_numbers that belongs to `kind`, e.g. struct grd_adam_numbers */
};

/* The optimizer kernel of one dtype. */
struct grd_optim_row {
    void (*step)(const struct grd_optim_block *block);
};

#endif
