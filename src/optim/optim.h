/* What the files of this floor share. */
#ifndef GRD_OPTIM_OPTIM_H
#define GRD_OPTIM_OPTIM_H

#include "gradus/types.h"

/* False, with TypeError naming the function, unless it is a list of tensors without NULL. */
bool grd_optim_check_list(grd_tensors parameters, const char *function);

#endif
