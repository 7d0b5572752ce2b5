/* Use of tensors that are gone, while GRADUS_DEBUG=lifetimes. A tensor that dies leaves a tombstone in the memory of its header, which stays readable while the
 * block is in quarantine: it has no elements and the key LIFETIMES, which no live tensor has. In other modes there are no tombstones. */
#ifndef GRD_CORE_LIFETIMES_H
#define GRD_CORE_LIFETIMES_H

#include "base/debug.h"
#include "base/trace.h"
#include "core/tensor.h"

/* Run once, by the library's constructor, before anything is made. */
void grd_lifetimes_init(void);

/* A tensor is made, by the operator that the thread runs. */
void grd_lifetimes_born(grd_tensor *t);
/* The tensor is the result of the operator. */
void grd_lifetimes_made_by(const grd_tensor *t, const char *operator);
/* The tensor's last owner has gone: puts the tombstone where it was. Its block need not be free yet. */
void grd_lifetimes_died(grd_tensor *t);

/* References that callers of the public functions own. False, with RuntimeError, for one more of a dead tensor, and for one less of a tensor that has none. */
bool grd_lifetimes_kept(grd_tensor *t, const char *function);
bool grd_lifetimes_dropped(grd_tensor *t, const char *function);

/* "a tensor made by mul that is gone: scope 3, at depth 1, opened in …, was closed"; returns ret_text. */
enum { GRD_LIFE_CHARS = 512 };
const char *grd_lifetimes_describe(const grd_tensor *dead, char *ret_text);
/* RuntimeError "grd_item: argument 't' is a tensor made by mul that is gone: …". Always false. */
bool grd_lifetimes_refuse(const grd_tensor *dead, const char *function, const char *argument);

#endif
