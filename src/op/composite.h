/* How an operator that is made of others writes a tensor it was given. */
#ifndef GRD_OP_COMPOSITE_H
#define GRD_OP_COMPOSITE_H

#include "core/tensor.h"

/* True while what is computed of t becomes a part of a graph; never inside an operator that is recorded as a whole. */
bool grd_composite_is_recorded(const grd_tensor *t);
/* Returns the tensor that a composite reads in place of self: in place, while a gradient is recorded, a copy. Its parts save what they read, and self is overwritten. */
grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self);
/* Returns the result of a composite: `value` where `out` is NULL. In place (out is self) the value is copied over it, and recorded as a copy is; any other `out`
 * takes the value's sizes. RuntimeError, as of an operator with a kernel: the dtype cannot be cast, in place the sizes differ, out= with gradients. */
grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value);
/* `value` as the result of an operator of PyTorch that has one kernel where Gradus has several operators: contiguous, or with the strides of
 * empty_like(like). Strides of dimensions of size 1 are set as well. */
grd_tensor *grd_composite_contiguous(grd_tensor *value);
grd_tensor *grd_composite_like(grd_tensor *value, const grd_tensor *like);
/* The same with the strides that an elementwise operator gives its result for these inputs, and with channels last where `like` suggests them,
 * contiguous otherwise. */
grd_tensor *grd_composite_elementwise(grd_tensor *value, grd_tensors inputs);
grd_tensor *grd_composite_suggested(grd_tensor *value, const grd_tensor *like);

/* A view of (N, C, …) with the channels as the last dimension. */
grd_tensor *grd_composite_channels_last(grd_tensor *t);

/* False where there is nothing to read: of the meta device, and of no elements. For composites that go another way by the values they read. */
bool grd_composite_has_values(const grd_tensor *t);
/* The least element and, unless that is NULL, the largest, for checks of values. False, with nothing found, where there is nothing to read: no elements, the meta device, an error
 * pending. NaN where an element is. */
bool grd_composite_extremes(grd_tensor *t, double *ret_least, double *ret_largest);
/* Matrices whose batch dimensions, all but the last two, are broadcast to `batch` and folded into one. */
grd_tensor *grd_fold_batch(grd_tensor *t, grd_dims batch);

/* False where an element is outside of [low, high]. */
bool grd_composite_within(grd_tensor *t, double low, double high);
/* t expanded to the sizes that it and the other broadcast to, as PyTorch's functions do before they call their operators. */
grd_tensor *grd_composite_broadcast(grd_tensor *t, const grd_tensor *other);
/* A vector as it broadcasts along one dimension of a tensor of `ndim`; NULL stays. */
grd_tensor *grd_composite_along(grd_tensor *vector, int64_t ndim, int64_t dim);
/* A factory's result, which is filled in place by now: that would be refused on a leaf that needs a gradient. RuntimeError: its dtype has none. */
grd_tensor *grd_composite_requiring(grd_tensor *t, bool requires_grad);
/* A list as it is returned; without elements when an error is pending. */
static inline grd_tensors grd_list_made(grd_tensor **list, int64_t n)
{
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(list, n);
}

#endif
