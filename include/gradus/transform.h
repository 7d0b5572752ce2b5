/* Declares batch tensors, from which vmap is built.
 *
 * A batch tensor looks like one element of a batch: its sizes, and the dims that operators take, are those of one element. It wraps a physical
 * tensor, whose dimension 0 is the batch. Batch tensors exist inside a batch level of a thread, from grd_batch_begin to grd_batch_end. Operators that
 * get a batch tensor run for all elements of the batch and return batch tensors. An operator raises RuntimeError if its result would have a different
 * size for each element of the batch. Reading the elements of a batch tensor also raises RuntimeError. */
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
/* Returns an ordinary tensor with all elements of the batch tensor `t`. Dimension `dim` of the returned tensor is the batch dimension. If `t` is no
 * batch tensor, it is first expanded as by grd_batch_expand. Raises IndexError if the returned tensor would have no dimension `dim`. */
GRD_API grd_tensor *grd_unbatch(grd_tensor *t, int64_t dim);
/* If `t` is a batch tensor, returns its physical tensor (the ordinary tensor whose dimension 0 is the batch), borrowed. Otherwise returns `t`. Pass
 * the physical tensor, not the batch tensor, to grd_set_requires_grad, grd_backward and grd_grad. */
GRD_API grd_tensor *grd_batch_physical(grd_tensor *t);

GRD_END_DECLS
#endif
