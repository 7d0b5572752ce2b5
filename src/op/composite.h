/* What composites, operators made of other operators, share: in-place calls and out=, the strides of results, checks of values. */
#ifndef GRD_OP_COMPOSITE_H
#define GRD_OP_COMPOSITE_H

#include "core/tensor.h"

/* True if what is computed from `t` becomes a part of the graph. Never true inside an operator that is recorded as one node. */
bool grd_composite_is_recorded(const grd_tensor *t);
/* Returns what a composite reads in place of `self`: a copy if the call is in place and recorded, since its parts save what they read and self is
 * overwritten; otherwise self. */
grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self);
/* Returns the result of a composite. `out` NULL: `value`. In place (out is self): self, with the value copied over it, which is recorded. Any
 * other `out` is resized to the value and filled. RuntimeError, as for operators with kernels: the dtype cannot be cast, the sizes differ in
 * place, out= with gradients. */
grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value);
/* Returns `value` with the strides that PyTorch's single kernel gives: contiguous, or those of empty_like(like). Strides of dimensions of size 1
 * are set as well. */
grd_tensor *grd_composite_contiguous(grd_tensor *value);
grd_tensor *grd_composite_like(grd_tensor *value, const grd_tensor *like);
/* Returns `value` with the strides that an elementwise operator gives its result for these inputs. */
grd_tensor *grd_composite_elementwise(grd_tensor *value, grd_tensors inputs);
grd_tensor *grd_composite_suggested(grd_tensor *value, const grd_tensor *like);

/* Returns a view of (N, C, …) with the channels as the last dimension. */
grd_tensor *grd_composite_channels_last(grd_tensor *t);

/* False for meta tensors and empty ones. For composites that branch on the values they read. */
bool grd_composite_has_values(const grd_tensor *t);
/* Finds the least element and, unless ret_largest is NULL, the largest; both are NaN if an element is. False, with nothing written, if there is
 * nothing to read: no elements, the meta device, an error pending. */
bool grd_composite_extremes(grd_tensor *t, double *ret_least, double *ret_largest);
/* Returns matrices with their batch dimensions, all but the last two, expanded to `batch` and folded into one. */
grd_tensor *grd_fold_batch(grd_tensor *t, grd_dims batch);

/* False if an element lies outside of [low, high]. */
bool grd_composite_within(grd_tensor *t, double low, double high);
/* Returns t expanded to the shape that it and `other` broadcast to. */
grd_tensor *grd_composite_broadcast(grd_tensor *t, const grd_tensor *other);
/* Returns a vector reshaped so that it broadcasts along one dimension of a tensor of `ndim` dimensions; NULL stays NULL. */
grd_tensor *grd_composite_along(grd_tensor *vector, int64_t ndim, int64_t dim);
/* Marks a factory's result as requiring a gradient if `requires_grad`. This comes after it was filled in place, which is refused on such a leaf.
 * RuntimeError: integral dtypes cannot require gradients. */
grd_tensor *grd_composite_requiring(grd_tensor *t, bool requires_grad);
/* Returns a list of results; an empty one when an error is pending. */
static inline grd_tensors grd_list_made(grd_tensor **list, int64_t n)
{
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(list, n);
}

#endif
