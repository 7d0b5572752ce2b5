/* The data of a storage: given back, and grown. */
#ifndef GRD_CORE_STORAGE_H
#define GRD_CORE_STORAGE_H

#include "core/tensor.h"

/* Gives the data back before the storage goes; nobody reads it any more. */
void grd_storage_empty(struct grd_storage *storage);
/* Grows the data of a tensor that shares it with no other, keeping what is there; RuntimeError otherwise: others would keep the old address. */
bool grd_storage_grow(grd_tensor *t, int64_t bytes);

#endif
