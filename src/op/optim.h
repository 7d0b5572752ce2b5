/* Declares what the steps of all optimizers share: argument checks, memory, and the loop over the parameters (optim.c). */
#ifndef GRD_OP_OPTIM_H
#define GRD_OP_OPTIM_H

#include "core/tensor.h"
#include "kernel/optim.h"

/* Roles of an optimizer's lists of tensors. The lists are the parameters, their gradients, and the states that are tensors. The first state has the
 * role GRD_OPTIM_STATE. GRD_OPTIM_VALUES is the maximum number of scalar states of a parameter, e.g. its step count. */
enum { GRD_OPTIM_PARAM, GRD_OPTIM_GRAD, GRD_OPTIM_STATE, GRD_OPTIM_ROLES = GRD_OPTIM_STATE + GRD_OPTIM_STATES, GRD_OPTIM_VALUES = 3 };

/* Describes what all calls of one optimizer, e.g. Adam, have in common. */
struct grd_optimizer {
    enum grd_optimizer_kind kind;
    const char *lists[GRD_OPTIM_ROLES]; /* names of the lists, for errors: parameters, gradients, and each state */
    /* The last `noptional` lists may be empty. If such a list is empty, the optimizer does not use this state. */
    int nlists, noptional;
    /* Names of the scalar states, i.e. those that are one number per parameter, e.g. the step count. */
    const char *values[GRD_OPTIM_VALUES];
    int nvalues;
    /* Sets the kernel's arguments for one parameter (`numbers`) from the parameter's scalar states (`values`). It may change `values`. NULL if the
     * kernel's arguments are the same for all parameters. */
    void (*set_numbers)(void *numbers, double *values);
};

/* Arguments of grd_optim_run(). */
struct grd_optim_step {
    const struct grd_optimizer *optimizer;
    grd_tensors lists[GRD_OPTIM_ROLES];
    /* Scalar states: values[k] has one number for each parameter. values[0] is the step count, which is incremented before the step. */
    grd_tensors values[GRD_OPTIM_VALUES];
    void *numbers; /* the kernel's numeric arguments: the optimizer's struct of kernel/optim.h, or a struct that begins with it */
};

/* Runs one optimizer step in place. Returns the parameters. On failure it returns an empty list, with the error raised and nothing written. */
grd_tensors grd_optim_run(const struct grd_optim_step *step);

#endif
