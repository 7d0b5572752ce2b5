/* What a wrapper says of itself. */
#ifndef GRD_CORE_WRAPPER_H
#define GRD_CORE_WRAPPER_H

#include "core/tensor.h"
#include "gradus/wrapper.h"

/* The type of a wrapper, NULL for other tensors. */
const grd_wrapper_type *grd_wrapper_type_of(const grd_tensor *t);

#endif
