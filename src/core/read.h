/* One element of a tensor. */
#ifndef GRD_CORE_READ_H
#define GRD_CORE_READ_H

#include "core/tensor.h"

/* An element of a tensor as a scalar: the conjugate of what lies in memory where the tensor is read so. */
grd_scalar grd_element_of(const grd_tensor *t, const void *element);

#endif
