/* The type of a wrapper tensor. */
#ifndef GRD_CORE_WRAPPER_H
#define GRD_CORE_WRAPPER_H

#include "core/tensor.h"
#include "gradus/wrapper.h"

/* Returns the type of a wrapper, or NULL for any other tensor. */
const grd_wrapper_type *grd_wrapper_type_of(const grd_tensor *t);

#endif
