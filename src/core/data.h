/* Tensors that change the storage they use. */
#ifndef GRD_CORE_DATA_H
#define GRD_CORE_DATA_H

#include "core/tensor.h"

/* Exchanges two batch tensors: each gets the elements, the sizes and the level of the other. */
void grd_batch_swap(grd_tensor *a, grd_tensor *b);

#endif
