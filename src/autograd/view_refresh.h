/* Views whose base was written: a new grad_fn for them, and which of them may not be written or refreshed. */
#ifndef GRD_AUTOGRAD_VIEW_REFRESH_H
#define GRD_AUTOGRAD_VIEW_REFRESH_H

#include "core/tensor.h"

/* Gives the view a grad_fn that leads to its base, if the base was written in place since the view got its present one. False, with RuntimeError, if
 * that is forbidden. */
bool grd_view_refresh(grd_tensor *view);
/* True, or false with RuntimeError if the view is one of several results of one operator, was made in no_grad mode, or by a custom function: its
 * history may not be rewritten. `indirect`: the write went through the base or another view. */
bool grd_refuse_special_view(const grd_tensor *view, bool indirect);
/* True, or false with RuntimeError if the dtype of the view is neither that of its base nor that of the real or complex numbers in the same memory.
 * Also refuses real parts of a base with the conjugate bit: the imaginary parts in memory have the other sign. */
bool grd_refuse_other_dtype(const grd_tensor *view);
void grd_view_refresh_init(void);

#endif
