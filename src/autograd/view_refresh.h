/* Gives views a new grad_fn after their base was written in place, and refuses views for which this is not allowed. */
#ifndef GRD_AUTOGRAD_VIEW_REFRESH_H
#define GRD_AUTOGRAD_VIEW_REFRESH_H

#include "core/tensor.h"

/* If the base of the view was written in place since the view got its grad_fn, gives the view a new grad_fn that leads to the base. False, with
 * RuntimeError, if the view may not get a new grad_fn. */
bool grd_view_refresh(grd_tensor *view);
/* True if the view may be written in place. With `indirect`: true if the view may get a new grad_fn because its base was written. False, with
 * RuntimeError, for a view that is one of several results of an operator, that was made in no_grad mode, or that a custom function made. */
bool grd_refuse_special_view(const grd_tensor *view, bool indirect);
/* True if the view has the dtype of its base, or one dtype is complex and the other is its real dtype. False, with RuntimeError, for other dtypes.
 * Also false for a real view of a base with the conjugate bit, because the imaginary parts in memory then have the wrong sign. */
bool grd_refuse_other_dtype(const grd_tensor *view);
/* Makes fork wait until no thread holds the lock of view_refresh.c. Called once, when the library is loaded. */
void grd_view_refresh_init(void);

#endif
