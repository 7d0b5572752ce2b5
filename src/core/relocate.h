/* Declares grd_storage_replace, which gives new memory to a storage if the caller knows all its tensors. */
#ifndef GRD_CORE_RELOCATE_H
#define GRD_CORE_RELOCATE_H

#include "core/tensor.h"

/* Makes `data`, of `bytes` bytes, the memory of the storage that the `n` tensors share, after copying the old bytes as far as they fit.
 * release(context) is called when the storage no longer uses the memory. Returns false, with RuntimeError and nothing changed, if something
 * besides these tensors uses the storage, because it would keep the old address. */
bool grd_storage_replace(grd_tensor *const *tensors, int64_t n, void *data, int64_t bytes, void (*release)(void *context), void *context);

#endif
