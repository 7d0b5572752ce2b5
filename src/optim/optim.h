/* Declares a function that checks a list of parameters, for use in all files of src/optim. */
#ifndef GRD_OPTIM_OPTIM_H
#define GRD_OPTIM_OPTIM_H

#include "gradus/types.h"

/* True if `parameters` is a list of tensors without NULL. Otherwise raises a TypeError that names `function`. */
bool grd_optim_check_list(grd_tensors parameters, const char *function);

#endif
