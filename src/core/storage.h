/* Declares functions that free or grow the data of a storage. */
#ifndef GRD_CORE_STORAGE_H
#define GRD_CORE_STORAGE_H

#include "core/tensor.h"

/* Frees the data of a storage although the storage still has owners. The caller knows that none of them reads the data any more. */
void grd_storage_empty(struct grd_storage *storage);
/* Grows the data of a tensor to `bytes` bytes and keeps the existing bytes. Returns false, with RuntimeError, if the data is borrowed, or if other
 * tensors use the storage, because these tensors would keep the old address. */
bool grd_storage_grow(grd_tensor *t, int64_t bytes);

#endif
