/* Gives a tensor other sizes, strides and offset in place. */
#ifndef GRD_CORE_RESIZE_H
#define GRD_CORE_RESIZE_H

#include "core/tensor.h"

/* Resizes an `out` tensor in place: contiguous, from the same offset; grows the storage when it is too small. RuntimeError
 * when that storage is borrowed or has other views. Nothing changes when the sizes are those it has. */
bool grd_resize(grd_tensor *t, grd_dims sizes);
/* Gives the tensor itself other sizes, strides and offset, within its storage. */
bool grd_set_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset);
/* Warns, as PyTorch does, that an out= with elements has not the sizes of the result. False when the warning became an error. */
bool grd_warn_resized(const grd_tensor *out, grd_dims sizes);
/* grd_resize to the strides of a result, where those have no gaps. NULL: contiguous. */
bool grd_resize_like(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* The same for an out= that a caller gave: with the warning. */
bool grd_resize_out(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* Called where a tensor got other sizes or another dtype: what its history says of it follows. */
void grd_tell_reshaped(grd_tensor *t);

#endif
