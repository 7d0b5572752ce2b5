/* Declarations that the files of src/optim share. */
#ifndef GRD_OPTIM_OPTIM_H
#define GRD_OPTIM_OPTIM_H

#include "gradus/types.h"

/* True if the list holds no NULL. False, with a TypeError that names the function, otherwise. */
bool grd_optim_check_list(grd_tensors parameters, const char *function);

#endif
