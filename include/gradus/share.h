/* Memory that processes share, and files as memory.
 *
 *     grd_share_memory(&weight, 1, NULL);                  a descriptor of the memory goes to another process, by SCM_RIGHTS or by fork,
 *     int descriptor = grd_shared_descriptor(weight);
 *     grd_tensor *bytes = grd_open_shared(descriptor, n);  and opens the same bytes there
 *
 * Every process writes to the same bytes; nothing orders the writes of two processes. */
#ifndef GRADUS_SHARE_H
#define GRADUS_SHARE_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Moves the storage of the tensors, which are all that lie over it (grd_storage_owned_by), to shared memory. With a name, which begins with '/'
 * and is new, the memory is found by it (shm_open) until no process has it open; else it has a descriptor alone. Memory that is shared already
 * stays where it is. False, with the error set: RuntimeError when something else uses the storage, OSError when the system refuses. */
GRD_API bool grd_share_memory(grd_tensor *const *tensors, int64_t n, const char *name);
/* True if the storage of `t` is shared, or a file in memory. */
GRD_API bool grd_is_shared(const grd_tensor *t);
/* The descriptor of shared memory, which the storage owns; -1 where it has none. */
GRD_API int grd_shared_descriptor(const grd_tensor *t);
/* The name of shared memory, or the path of a file in memory; NULL where it has none. It lives as long as the storage. */
GRD_API const char *grd_shared_name(const grd_tensor *t);
/* Counts a user of named memory who is on the way, e.g. a name in a message: the one who opens the name takes this count over. No effect on other
 * tensors. */
GRD_API void grd_shared_announce(const grd_tensor *t);
/* The first `bytes` bytes of shared memory as a one-dimensional uint8 tensor. The descriptor is duplicated. RuntimeError when the memory is
 * smaller. */
GRD_API grd_tensor *grd_open_shared(int descriptor, int64_t bytes);
/* The memory of that name, whose user was announced. */
GRD_API grd_tensor *grd_open_shared_name(const char *name, int64_t bytes);
/* The first bytes of a file as a one-dimensional uint8 tensor, read when they are used. If `shared`, what is written goes into the file, which is
 * made or lengthened where that is needed; otherwise the file stays as it is. OSError when the system refuses, RuntimeError when the file is
 * shorter. */
GRD_API grd_tensor *grd_map_file(const char *path, bool shared, int64_t bytes);

GRD_END_DECLS
#endif
