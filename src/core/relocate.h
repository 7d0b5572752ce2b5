/* Declares grd_storage_replace, which gives new memory to a storage if the caller knows all its tensors. */
#ifndef GRD_CORE_RELOCATE_H
#define GRD_CORE_RELOCATE_H

#include "core/tensor.h"

/* Gives new memory to the storage that the `n` tensors share. The new memory is `data`, of `bytes` bytes; the old contents are copied to it first, as
 * many bytes as fit. The storage calls release(context) when it no longer uses `data`. Returns false, with RuntimeError and nothing changed, if
 * anything besides these tensors uses the storage, because such a user would keep the old address. */
bool grd_storage_replace(grd_tensor *const *tensors, int64_t n, void *data, int64_t bytes, void (*release)(void *context), void *context);

#endif
