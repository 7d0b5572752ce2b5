/* Declares the hooks through which autograd tells the printer a tensor's grad_fn and tangent. They exist because core may not call autograd. */
#ifndef GRD_CORE_PRINT_H
#define GRD_CORE_PRINT_H

#include "core/tensor.h"

/* Returns the name that is printed as grad_fn=<AddBackward0>, or NULL for a leaf. Autograd sets this pointer when the library is loaded; if it is
 * NULL, no name is printed. */
extern const char *(*grd_print_grad_fn)(const grd_tensor *t);
/* Returns the tangent that is printed as tangent=tensor(...), owned by the innermost grd_scope, or NULL if `t` has none. Autograd sets this
 * pointer when the library is loaded; if it is NULL, no tangent is printed. */
extern grd_tensor *(*grd_print_tangent)(const grd_tensor *t);

#endif
