/* Delays the reuse of freed memory blocks while GRADUS_DEBUG=lifetimes is set. Code that still uses a destroyed object then does not find a new
 * object at its address. Instead it finds bytes which show that the object was destroyed. */
#ifndef GRD_BASE_QUARANTINE_H
#define GRD_BASE_QUARANTINE_H

#include <stddef.h>

#include "base/thread.h"

enum { GRD_QUARANTINE_BYTES = 64 * 1024 * 1024 };

/* The functions that are called when a memory block enters and leaves the quarantine. They are set by core/lifetimes.c, which can tell what a
 * block holds. */
struct grd_quarantine_watcher {
    size_t (*enter)(void *block); /* returns how many bytes at the start of the block stay readable and unchanged, a multiple of 8 */
    void (*leave)(void *block);
};
/* The functions that are called when a block enters and leaves the quarantine; NULL if there are none. Set once, while the library is loaded. */
extern GRD_HIDDEN const struct grd_quarantine_watcher *grd_quarantine_watcher;

/* Registers the lock of the quarantine with base/fork.h, so that the lock is free in the child process after a fork. Called by grd_blocks_init. */
void grd_quarantine_init(void);

/* Puts a freed block of `size` bytes into the quarantine, a queue of freed blocks that are not reused yet. Sets all bits of the block to 1 (numbers
 * become NaN or -1) and poisons it, except for the bytes at its start that grd_quarantine_watcher keeps readable. While the queue holds more than
 * GRD_QUARANTINE_BYTES, frees the oldest block in the queue with the function that was passed as `release` for that block. */
void grd_quarantine_put(void *block, size_t size, void (*release)(void *block, size_t size));

#endif
