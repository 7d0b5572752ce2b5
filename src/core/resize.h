/* Declares functions that change the sizes, strides and offset of a tensor in place. */
#ifndef GRD_CORE_RESIZE_H
#define GRD_CORE_RESIZE_H

#include "core/tensor.h"

/* Gives `t` these sizes, with contiguous strides and the same offset, and grows its storage if it is too small. If `t` already has these sizes,
 * nothing changes, not even its strides. Returns false, with RuntimeError, if the storage must grow but its memory is borrowed or shared. */
bool grd_resize(grd_tensor *t, grd_dims sizes);
/* Gives `t` these sizes, strides and offset (in elements). Returns false, with RuntimeError, if an element would be outside the storage. */
bool grd_set_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset);
/* Gives PyTorch's warning that an out= tensor was resized, if `out` has elements and its sizes differ from `sizes`, the sizes of the result. Returns
 * false if the warning handler raised an error. */
bool grd_warn_resized(const grd_tensor *out, grd_dims sizes);
/* Resizes `out` as grd_resize does and then gives it `strides`, unless `strides` is NULL or leaves gaps between elements. Returns false, with the
 * error raised, on failure. */
bool grd_resize_like(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* Resizes an out= tensor as grd_resize_like does, after giving the warning of grd_warn_resized. Returns false, with the error raised, on failure. */
bool grd_resize_out(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* Tells the autograd data of `t`, if there is any, that the sizes or the dtype of `t` have changed. A gradient of `t` must then match the new sizes
 * and the new dtype. */
void grd_tell_reshaped(grd_tensor *t);

#endif
