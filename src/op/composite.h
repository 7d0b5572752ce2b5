/* Helps composites, which are operators made of calls of other operators, with in-place calls and out=, the strides of results, and checks of
 * values. */
#ifndef GRD_OP_COMPOSITE_H
#define GRD_OP_COMPOSITE_H

#include "core/tensor.h"

/* True if the operators that a composite calls on `t` are recorded for backward. Always false inside an operator that is recorded as one node. */
bool grd_composite_is_recorded(const grd_tensor *t);
/* Returns the tensor that a composite should read instead of `self`. It is a copy if the call is in place and recorded, because the recorded
 * operators save what they read and self will be overwritten; otherwise it is self. */
grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self);
/* Returns the result of a composite whose value has been computed. If `out` is NULL, the result is `value`. If `out` is self (in place), `value` is
 * copied to self, and the copy is recorded. Any other `out` is resized and filled. Like operators with kernels, raises RuntimeError if the dtype
 * cannot be cast, if an in-place call would change the sizes, or if out= is used with gradients. */
grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value);
/* Returns `value` if its strides are contiguous, also in dimensions of size 1, otherwise a contiguous copy. Composites call it where PyTorch computes
 * the result with a kernel, because such results have exactly these strides. */
grd_tensor *grd_composite_contiguous(grd_tensor *value);
/* Returns `value` if it has the strides of empty_like(like), also in dimensions of size 1, otherwise a copy with these strides. */
grd_tensor *grd_composite_like(grd_tensor *value, const grd_tensor *like);
/* Returns `value` if it has the strides that an elementwise operator would give its result for `inputs`, otherwise a copy with these strides. */
grd_tensor *grd_composite_elementwise(grd_tensor *value, grd_tensors inputs);
/* Returns `value` if it is in the wanted memory format, otherwise a copy that is. The format is channels_last if the strides of `like` suggest it,
 * otherwise contiguous. */
grd_tensor *grd_composite_suggested(grd_tensor *value, const grd_tensor *like);

/* Returns a view of `t`, which has the sizes (N, C, ...), with the channels as the last dimension. */
grd_tensor *grd_composite_channels_last(grd_tensor *t);

/* True if `t` has elements that a composite may read to decide what to do. False for meta tensors, empty tensors and while an error is pending. */
bool grd_composite_has_values(const grd_tensor *t);
/* Writes the least element of `t` and, unless ret_largest is NULL, the largest. Both are NaN if an element is NaN. False, with nothing written, for
 * meta tensors, empty tensors and while an error is pending. */
bool grd_composite_extremes(grd_tensor *t, double *ret_least, double *ret_largest);
/* Returns the matrices of `t` with their batch dimensions (all but the last two) expanded to `batch` and merged into one. */
grd_tensor *grd_fold_batch(grd_tensor *t, grd_dims batch);

/* False if an element of `t` is outside of [low, high]. True if `t` has no values to read (see grd_composite_has_values). */
bool grd_composite_within(grd_tensor *t, double low, double high);
/* Returns `t` expanded to the shape that `t` and `other` broadcast to. */
grd_tensor *grd_composite_broadcast(grd_tensor *t, const grd_tensor *other);
/* Returns `vector` reshaped to `ndim` dimensions: its elements lie along `dim`, and all other dimensions have size 1, so that it broadcasts over
 * them. Returns NULL if `vector` is NULL. */
grd_tensor *grd_composite_along(grd_tensor *vector, int64_t ndim, int64_t dim);
/* Marks `t`, the result of a factory function such as zeros(), as requiring a gradient if `requires_grad`, and returns it. Must be called after `t`
 * was filled, because writing in place to a leaf that requires a gradient is refused. Raises RuntimeError if the dtype is integral. */
grd_tensor *grd_composite_requiring(grd_tensor *t, bool requires_grad);
/* Returns the `n` tensors of `list` as an operator's list of results; an empty list while an error is pending. */
static inline grd_tensors grd_list_made(grd_tensor **list, int64_t n)
{
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(list, n);
}

#endif
