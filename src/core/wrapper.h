/* Declares grd_wrapper_type_of, which returns the type of a wrapper tensor. */
#ifndef GRD_CORE_WRAPPER_H
#define GRD_CORE_WRAPPER_H

#include "core/tensor.h"
#include "gradus/wrapper.h"

/* Returns the type of `t` if it is a wrapper (a tensor that holds an object of another library), otherwise NULL. */
const grd_wrapper_type *grd_wrapper_type_of(const grd_tensor *t);

#endif
