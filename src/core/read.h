/* Declares grd_element_of, which reads one element of a tensor. */
#ifndef GRD_CORE_READ_H
#define GRD_CORE_READ_H

#include "core/tensor.h"

/* Returns the element of `t` at address `element` as a scalar. If `t` has the key CONJUGATE and is complex, this is the conjugate of the value in
 * memory. If `t` has the key CONJUGATE and is real, this is the negative of the value in memory. */
grd_scalar grd_element_of(const grd_tensor *t, const void *element);

#endif
