/* Declares helpers for composites, i.e. operators that only call other operators. They handle in-place calls and out=, give results PyTorch's
 * strides, and check values. */
#ifndef GRD_OP_COMPOSITE_H
#define GRD_OP_COMPOSITE_H

#include "core/tensor.h"

/* True if autograd records the operators that a composite calls on `t`. False inside an operator with a backward formula of its own, because that
 * operator is recorded as one node. */
bool grd_composite_is_recorded(const grd_tensor *t);
/* Returns what a composite should read instead of `self`. This is a copy of `self` if the call is in place and recorded for backward, because the
 * recorded operators save the tensors they read, and `self` is overwritten. Otherwise it is `self`. */
grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self);
/* Finishes a composite operator whose result is `value`. Returns `value` if `out` is NULL, otherwise `out`. If `out` is `self` (an in-place call),
 * copies `value` to `out` and records the copy for backward. Any other `out` is resized to the sizes of `value` and gets its elements. Raises
 * RuntimeError if the dtype cannot be cast, if an in-place call would change the sizes, or if out= is used with gradients. */
grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value);
/* Returns `value` if its strides are contiguous, even in dimensions of size 1, otherwise a contiguous copy. Used where PyTorch computes the result
 * with a kernel, whose results always have these strides. */
grd_tensor *grd_composite_contiguous(grd_tensor *value);
/* Returns `value` if it has the strides of empty_like(like), also in dimensions of size 1, otherwise a copy with these strides. */
grd_tensor *grd_composite_like(grd_tensor *value, const grd_tensor *like);
/* Returns `value` if it has the strides that an elementwise operator would give its result for `inputs`, otherwise a copy with these strides. */
grd_tensor *grd_composite_elementwise(grd_tensor *value, grd_tensors inputs);
/* Returns `value` in the channels_last format if the strides of `like` suggest this format, otherwise in the contiguous format. Copies `value`
 * only if it has another format. */
grd_tensor *grd_composite_suggested(grd_tensor *value, const grd_tensor *like);

/* Returns a view of `t`, which has the sizes (N, C, ...), with the channels as the last dimension. */
grd_tensor *grd_composite_channels_last(grd_tensor *t);

/* True if the values of `t` may be read to choose what to compute. False for meta tensors, for empty tensors, and while an error is pending. */
bool grd_composite_has_values(const grd_tensor *t);
/* Writes the smallest element of `t` to *ret_least and, unless ret_largest is NULL, the largest to *ret_largest. Both are NaN if an element is
 * NaN. Returns false and writes nothing for meta tensors, for empty tensors, and on an error. */
bool grd_composite_extremes(grd_tensor *t, double *ret_least, double *ret_largest);
/* Returns `t` as one batch of matrices (the last two dimensions): expands the other dimensions to `batch` and merges them into one dimension. */
grd_tensor *grd_fold_batch(grd_tensor *t, grd_dims batch);

/* True if all elements of `t` are in [low, high], or if `t` has no values to read (see grd_composite_has_values). */
bool grd_composite_within(grd_tensor *t, double low, double high);
/* Returns `t` expanded to the shape to which the shapes of `t` and `other` broadcast. */
grd_tensor *grd_composite_broadcast(grd_tensor *t, const grd_tensor *other);
/* Returns `vector` as a tensor of `ndim` dimensions. Its elements are along dimension `dim`, and all other dimensions have size 1 to broadcast.
 * Returns NULL if `vector` is NULL. */
grd_tensor *grd_composite_along(grd_tensor *vector, int64_t ndim, int64_t dim);
/* Sets requires_grad of `t`, a new tensor from a factory function such as zeros(), and returns `t`. Call this after `t` is filled, because in-place
 * writes to a leaf that requires a gradient are refused. Raises RuntimeError if the dtype is integral. */
grd_tensor *grd_composite_requiring(grd_tensor *t, bool requires_grad);
/* Returns the `n` tensors of `list` as an operator's list of results; an empty list while an error is pending. */
static inline grd_tensors grd_list_made(grd_tensor **list, int64_t n)
{
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(list, n);
}

#endif
