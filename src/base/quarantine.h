/* Freed blocks that are not given out again at once, while GRADUS_DEBUG=lifetimes: who uses one finds what says that it is gone. */
#ifndef GRD_BASE_QUARANTINE_H
#define GRD_BASE_QUARANTINE_H

#include <stddef.h>

#include "base/thread.h"

enum { GRD_QUARANTINE_BYTES = 64 * 1024 * 1024 };

/* What is told of blocks that come and go, by whoever knows what was in them. */
struct grd_quarantine_watcher {
    size_t (*enter)(void *block); /* returns how many bytes at its start stay readable and as they are: a multiple of 8 */
    void (*leave)(void *block);
};
/* NULL: nobody. Set once, while the library is loaded. */
extern GRD_HIDDEN const struct grd_quarantine_watcher *grd_quarantine_watcher;

/* Run by the library's constructor. */
void grd_quarantine_init(void);

/* Fills the block with ones, which read as NaN or -1, poisons it and keeps it; the oldest blocks leave, each by a call of `release`, until at most
 * GRD_QUARANTINE_BYTES are kept. */
void grd_quarantine_put(void *block, size_t size, void (*release)(void *block, size_t size));

#endif
