/* How an operator that is made of others writes a tensor it was given. */
#ifndef GRD_OP_COMPOSITE_H
#define GRD_OP_COMPOSITE_H

#include "core/tensor.h"

/* True while what is computed of t becomes a part of a graph; never inside an operator that is recorded as a whole. */
bool grd_composite_is_recorded(const grd_tensor *t);
/* What a composite reads in place of self: in place, while a gradient is recorded, a copy. Its parts save what they read, and self is overwritten. */
grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self);
/* What a composite returns: `value` where `out` is NULL. In place (out is self) the value is copied over it, and recorded as a copy is; any other `out`
 * takes the value's sizes. RuntimeError, as of an operator with a kernel: the dtype cannot be cast, in place the sizes differ, out= with gradients. */
grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value);

#endif
