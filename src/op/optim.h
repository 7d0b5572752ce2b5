/* What the steps of optimizers share: the checks, the memory, and the loop over the parameters (optim.c). */
#ifndef GRD_OP_OPTIM_H
#define GRD_OP_OPTIM_H

#include "core/tensor.h"
#include "kernel/optim.h"

enum { GRD_OPTIM_PARAM, GRD_OPTIM_GRAD, GRD_OPTIM_STATE, GRD_OPTIM_ROLES = GRD_OPTIM_STATE + GRD_OPTIM_STATES, GRD_OPTIM_VALUES = 3 };

/* The facts that all steps of one optimizer share. */
struct grd_optimizer {
    enum grd_optimizer_kind kind;
    const char *lists[GRD_OPTIM_ROLES]; /* the names of the parameters, the gradients, and each state */
    int nlists, noptional;              /* the last `noptional` lists may be empty: there is no such state then */
    const char *values[GRD_OPTIM_VALUES];
    int nvalues;
    /* Sets the numbers for one parameter from its values, which it may change. NULL: the numbers are those of all parameters. */
    void (*set_numbers)(void *numbers, double *values);
};

struct grd_optim_step {
    const struct grd_optimizer *optimizer;
    grd_tensors lists[GRD_OPTIM_ROLES];
    grd_tensors values[GRD_OPTIM_VALUES]; /* states of one real number; values[0], the count of steps, grows by 1 before the step */
    void *numbers;                        /* the struct of the kind, or one that begins with it */
};

/* Does a step in place. Returns the parameters; an absent list, with the error raised and nothing written, on failure. */
grd_tensors grd_optim_run(const struct grd_optim_step *step);

#endif
