/* Declares batch tensors, from which vmap is built.
 *
 * Inside a batch level of a thread (from grd_batch_begin to grd_batch_end) a function that is written for one element runs for all elements of a
 * batch at once. A batch tensor looks like one element: its sizes, and the dims that operators take, are those of one element. It wraps its
 * physical tensor, whose dimension 0 is the batch. Operators that get a batch tensor return batch tensors. Operators that get none behave as
 * usual, except random ones (grd_randomness). Views, in-place writes and gradients are those of the physical tensors. Two things raise
 * RuntimeError: reading the elements of a batch tensor, and an operator whose result would have a different size for each element of the batch. */
#ifndef GRADUS_TRANSFORM_H
#define GRADUS_TRANSFORM_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* The behaviour of random operators inside a batch level, i.e. between grd_batch_begin and grd_batch_end: raise an error, draw different numbers for
 * each element of the batch, or draw one set of numbers for all elements. */
typedef enum grd_randomness { GRD_RANDOMNESS_ERROR, GRD_RANDOMNESS_DIFFERENT, GRD_RANDOMNESS_SAME } grd_randomness;

/* Begins a batch level on this thread: until grd_batch_end, functions can run on batches of `size` elements. Returns false on failure: RuntimeError
 * if the thread already has a batch level, ValueError if `size` is negative. */
GRD_API bool grd_batch_begin(int64_t size, grd_randomness randomness);
/* Ends the batch level that grd_batch_begin began on this thread, if there is one. The batch tensors made in it cannot be used afterwards: operators
 * that get one raise RuntimeError. */
GRD_API void grd_batch_end(void);
/* Returns the number of elements in a batch, as given to this thread's grd_batch_begin. Returns -1 if grd_batch_begin was not called or the level has
 * ended. */
GRD_API int64_t grd_batch_size(void);
/* Returns the value of `randomness` that was given to this thread's grd_batch_begin. Returns GRD_RANDOMNESS_ERROR if grd_batch_begin was not called
 * or the level has ended. */
GRD_API grd_randomness grd_batch_randomness(void);

/* True if `t` is a batch tensor, i.e. has a hidden batch dimension as inside torch.vmap. */
GRD_API bool grd_is_batched(const grd_tensor *t);
/* Returns a batch tensor (a tensor with a hidden batch dimension, as inside torch.vmap) over the memory of `t`. Dimension `dim` of `t` becomes the
 * batch. Raises RuntimeError outside a batch level (grd_batch_begin), if `t` is a batch tensor already, or if dimension `dim` does not have the size
 * of the batch. */
GRD_API grd_tensor *grd_batch(grd_tensor *t, int64_t dim);
/* Returns `t` if it is already a batch tensor (a tensor with a hidden batch dimension, as inside torch.vmap). Otherwise returns a batch tensor that
 * has `t`, expanded, as every element of the batch. */
GRD_API grd_tensor *grd_batch_expand(grd_tensor *t);
/* Returns the tensor without its hidden batch dimension: all elements of the batch as an ordinary tensor, in which dimension `dim` is the batch. If
 * `t` is no batch tensor, it is first expanded as by grd_batch_expand. Raises IndexError if the ordinary tensor has no dimension `dim`. */
GRD_API grd_tensor *grd_unbatch(grd_tensor *t, int64_t dim);
/* Returns the physical tensor (the tensor with the batch as dimension 0) of a batch tensor, borrowed, or `t` if it is no batch tensor. To make a
 * leaf (grd_set_requires_grad) or ask for gradients, pass the physical tensor. */
GRD_API grd_tensor *grd_batch_physical(grd_tensor *t);

GRD_END_DECLS
#endif
