/* Declares the kernel of forward-mode differentiation, which computes the tangents of results. Note [Tangents] is in dual.h. */
#ifndef GRD_AUTOGRAD_FORWARD_H
#define GRD_AUTOGRAD_FORWARD_H

#include "dispatch/op.h"

/* The boxed kernel of the dispatch key FORWARD: runs an operator and computes the tangents of its results. */
grd_boxed_kernel grd_forward_record;

#endif
