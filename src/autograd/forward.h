/* Forward-mode differentiation: the kernel that computes the tangents of results. Note [Tangents] is in dual.h. */
#ifndef GRD_AUTOGRAD_FORWARD_H
#define GRD_AUTOGRAD_FORWARD_H

#include "dispatch/op.h"

/* The boxed kernel of the FORWARD key. */
grd_boxed_kernel grd_forward_record;

#endif
