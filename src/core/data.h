/* Declares grd_batch_swap, which exchanges the contents of two batch tensors, i.e. of tensors that stand for one element of a batch inside vmap. */
#ifndef GRD_CORE_DATA_H
#define GRD_CORE_DATA_H

#include "core/tensor.h"

/* Exchanges the contents of two batch tensors (tensors that stand for one element of a batch inside vmap): their sizes, strides and keys, and the
 * tensors that hold the whole batch. Used by in-place forms of views such as transpose_. */
void grd_batch_swap(grd_tensor *a, grd_tensor *b);

#endif
