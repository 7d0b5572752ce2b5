/* Tensors that change the storage they use. */
#ifndef GRD_CORE_DATA_H
#define GRD_CORE_DATA_H

#include "core/tensor.h"

/* Each of two batch tensors becomes the other. */
void grd_batch_swap(grd_tensor *a, grd_tensor *b);
/* The storage that `storage` borrows its data from; itself when it borrows none (data.c). */
struct grd_storage *grd_storage_root(struct grd_storage *storage);

#endif
