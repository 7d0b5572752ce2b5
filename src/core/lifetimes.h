/* Detects uses of freed tensors in the debug mode GRADUS_DEBUG=lifetimes. A tensor that is freed leaves a tombstone in the memory of its header,
 * which stays readable while the memory is in quarantine, i.e. not reused yet. A tombstone has no elements, and it has the key LIFETIMES, which no
 * live tensor has. Without this debug mode there are no tombstones. */
#ifndef GRD_CORE_LIFETIMES_H
#define GRD_CORE_LIFETIMES_H

#include "base/debug.h"
#include "base/trace.h"
#include "core/tensor.h"

/* Registers the functions that are called when the memory of a tensor enters or leaves the quarantine. The quarantine delays the reuse of freed
 * memory. Called once, by the library's constructor, before any tensor is made. */
void grd_lifetimes_init(void);

/* Makes a record of the new tensor `t`, as made by the operator that this thread is running. */
void grd_lifetimes_born(grd_tensor *t);
/* Records that `operator` returned `t`. */
void grd_lifetimes_made_by(const grd_tensor *t, const char *operator);
/* Records that the last owner of `t` has dropped it, and turns `t` into a tombstone, i.e. a header without elements that is safe to read. The memory
 * block of `t` may still be in use, if other tensors use the storage in it. */
void grd_lifetimes_died(grd_tensor *t);

/* Records that the public function `function` gives its caller a reference to `t`. Returns false, with RuntimeError, if `t` is dead. */
bool grd_lifetimes_kept(grd_tensor *t, const char *function);
/* Records that the caller of the public function `function` gives up a reference to `t`. Returns false, with RuntimeError, if `t` is dead or callers
 * own no reference to it. */
bool grd_lifetimes_dropped(grd_tensor *t, const char *function);

/* Writes how the tensor died to ret_text, which has room for GRD_LIFE_CHARS characters, e.g. "a tensor made by mul that has been freed: scope 3, at
 * depth 1, opened in ..., was closed". Returns ret_text. */
enum { GRD_LIFE_CHARS = 512 };
const char *grd_lifetimes_describe(const grd_tensor *dead, char *ret_text);
/* Raises RuntimeError "grd_item: argument 't' is a tensor made by mul that has been freed: ...". Always returns false. */
bool grd_lifetimes_refuse(const grd_tensor *dead, const char *function, const char *argument);

#endif
