/* Functions by which the autograd floor adds grad_fn and tangent to a printed tensor. */
#ifndef GRD_CORE_PRINT_H
#define GRD_CORE_PRINT_H

#include "core/tensor.h"

/* The name printed as grad_fn=<AddBackward0>, or NULL for a leaf. Set by the autograd floor at load; NULL: nothing is printed. */
extern const char *(*grd_print_grad_fn)(const grd_tensor *t);
/* The tangent printed as tangent=tensor(…), pooled, or NULL: likewise. */
extern grd_tensor *(*grd_print_tangent)(const grd_tensor *t);

#endif
