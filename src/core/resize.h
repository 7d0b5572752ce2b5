/* Gives a tensor other sizes, strides and offset in place. */
#ifndef GRD_CORE_RESIZE_H
#define GRD_CORE_RESIZE_H

#include "core/tensor.h"

/* Gives `t` these sizes in place, contiguous from the same offset, and grows its storage if that is too small. RuntimeError: the storage must grow
 * but is borrowed or shared. Nothing changes, strides included, if `t` has these sizes already. */
bool grd_resize(grd_tensor *t, grd_dims sizes);
/* Gives `t` other sizes, strides and offset in place. RuntimeError: they do not lie in its storage. */
bool grd_set_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset);
/* Warns, as PyTorch does, if `out` has elements and other sizes than the result. False if the warning handler made an error pending. */
bool grd_warn_resized(const grd_tensor *out, grd_dims sizes);
/* Resizes `out` as grd_resize does and then gives it `strides`, unless these are NULL or leave gaps. */
bool grd_resize_like(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* Does the work of grd_resize_like for an out= argument: gives the warning of grd_warn_resized first. */
bool grd_resize_out(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* Tells the autograd state of `t`, if there is any, that the sizes or the dtype of `t` have changed, so that it follows. */
void grd_tell_reshaped(grd_tensor *t);

#endif
