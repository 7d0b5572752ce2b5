/* Transforms of functions: batch tensors, on which vmap is built.
 *
 * Inside a level of a thread (grd_batch_begin) a function that is written for one element runs for all elements of a batch at once. A batch tensor
 * looks like one element: its sizes, and the dims that operators take, are those of an element. Below it is its physical tensor, whose dimension 0
 * is the batch. Operators that get a batch tensor return batch tensors; those that get none do what they always do, but for random ones. Views,
 * in-place writes and gradients are those of the physical tensors. The elements of a batch tensor cannot be read: RuntimeError, as for operators
 * whose result would have another size for each element. */
#ifndef GRADUS_TRANSFORM_H
#define GRADUS_TRANSFORM_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Says how random operators behave inside a level: refuse, draw for each element of the batch, or draw once for all of them. */
typedef enum grd_randomness { GRD_RANDOMNESS_ERROR, GRD_RANDOMNESS_DIFFERENT, GRD_RANDOMNESS_SAME } grd_randomness;

/* Begins the level of this thread, for batches of `size` elements. RuntimeError: there is one already. ValueError: a negative size. False on
 * failure. */
GRD_API bool grd_batch_begin(int64_t size, grd_randomness randomness);
/* Ends it, if there is one. Batch tensors that are left cannot be used any more: operators that get one raise RuntimeError. */
GRD_API void grd_batch_end(void);
/* Returns the size of the batch, or -1 outside of a level. */
GRD_API int64_t grd_batch_size(void);
/* Returns the randomness of the level; GRD_RANDOMNESS_ERROR outside of one. */
GRD_API grd_randomness grd_batch_randomness(void);

/* True for a batch tensor. */
GRD_API bool grd_is_batched(const grd_tensor *t);
/* Returns a batch tensor over `t`, whose dimension `dim` is the batch. RuntimeError: no level, a batch tensor, or another size than the level's. */
GRD_API grd_tensor *grd_batch(grd_tensor *t, int64_t dim);
/* Returns `t` as a batch tensor: one that is none is expanded, so that all elements of the batch are `t`. */
GRD_API grd_tensor *grd_batch_expand(grd_tensor *t);
/* Returns the physical tensor of a batch tensor with the batch as dimension `dim`; what is no batch tensor is expanded first. IndexError: no such
 * dimension. */
GRD_API grd_tensor *grd_unbatch(grd_tensor *t, int64_t dim);
/* Returns the physical tensor of a batch tensor itself, borrowed; any other tensor as it is. Leaves are made of it (grd_set_requires_grad), and
 * gradients asked for. */
GRD_API grd_tensor *grd_batch_physical(grd_tensor *t);

GRD_END_DECLS
#endif
