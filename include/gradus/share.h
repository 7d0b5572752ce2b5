/* Declares functions for memory that several processes share, and for files mapped into memory.
 *
 *     grd_share_memory(&weight, 1, NULL);
 *     int descriptor = grd_shared_descriptor(weight);      passed to another process by SCM_RIGHTS or inherited by fork
 *     grd_tensor *bytes = grd_open_shared(descriptor, n);  in the other process: a tensor over the same bytes
 *
 * All processes write to the same bytes. The library does not order or synchronize the writes of two processes. */
#ifndef GRADUS_SHARE_H
#define GRADUS_SHARE_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Moves the storage of the `n` tensors to shared memory. The tensors must be all the tensors over this storage (grd_storage_owned_by). If `name`
 * is not NULL, it must begin with '/' and not be in use. Processes then find the memory by this name (shm_open) until its last user is gone.
 * Without a name they can get the memory only by its descriptor. Memory that is already shared stays where it is. Returns false, with an error,
 * on failure: RuntimeError if something else uses the storage, OSError if a system call fails. */
GRD_API bool grd_share_memory(grd_tensor *const *tensors, int64_t n, const char *name);
/* True if the storage of `t` is in memory shared by processes, or in a file mapped into memory. */
GRD_API bool grd_is_shared(const grd_tensor *t);
/* Returns the file descriptor of the shared memory of `t`, or -1 if there is none. The storage owns the descriptor. */
GRD_API int grd_shared_descriptor(const grd_tensor *t);
/* Returns the name of the shared memory of `t`, or the path of the mapped file; NULL if there is none. The string lives as long as the storage. */
GRD_API const char *grd_shared_name(const grd_tensor *t);
/* Adds one to the user count of the named shared memory of `t`. Call this function once for each process that will open the memory, e.g. before
 * sending the name to the process. The memory then stays alive until the process calls grd_open_shared_name, which takes over the count. Does nothing
 * if `t` is not in shared memory that has a name. */
GRD_API void grd_shared_announce(const grd_tensor *t);
/* Returns the first `bytes` bytes of the shared memory with this file descriptor as a one-dimensional uint8 tensor. The library uses a duplicate of
 * the descriptor, so the caller may close `descriptor`. Raises RuntimeError if the memory is smaller. */
GRD_API grd_tensor *grd_open_shared(int descriptor, int64_t bytes);
/* Returns the first `bytes` bytes of the shared memory called `name` as a one-dimensional uint8 tensor. Before each call, the sender of the name
 * must have called grd_shared_announce once. A call that fails takes the announced user off the count, if the system still lets it map the count. */
GRD_API grd_tensor *grd_open_shared_name(const char *name, int64_t bytes);
/* Returns the first `bytes` bytes of a file as a one-dimensional uint8 tensor. The system reads a page of the file when it is first used. With
 * `shared`, writes to the tensor go to the file, which is created or lengthened if necessary. Without `shared`, the file is not changed. Raises
 * OSError if a system call fails, and RuntimeError if the file is too short. */
GRD_API grd_tensor *grd_map_file(const char *path, bool shared, int64_t bytes);

GRD_END_DECLS
#endif
