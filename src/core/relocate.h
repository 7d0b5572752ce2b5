/* Other memory for a storage whose owners are all known. */
#ifndef GRD_CORE_RELOCATE_H
#define GRD_CORE_RELOCATE_H

#include "core/tensor.h"

/* Gives the storage of the tensors, which are all its owners, other memory, into which as many bytes are copied as fit (relocate.c). RuntimeError, and
 * nothing changes, when it has other owners. */
bool grd_storage_replace(grd_tensor *const *tensors, int64_t n, void *data, int64_t bytes, void (*release)(void *context), void *context);

#endif
