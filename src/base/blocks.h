/* Free blocks and where they come from: the free lists of a thread, the lists all threads share, the system. For memory.c alone, which
 * counts what is in use; errors are raised there. Under AddressSanitizer nothing is cached, so that it sees every block. */
#ifndef GRD_BASE_BLOCKS_H
#define GRD_BASE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cold.h"
#include "base/small.h"

enum {
    GRD_BLOCK_MAX_LOG = GRD_BLOCKS_SANITIZED ? 39 : 47 /* AddressSanitizer ends the process when asked for more */
};
#define GRD_BLOCK_MAX ((size_t)1 << GRD_BLOCK_MAX_LOG)

/* Bytes of the block that serves a size. */
size_t grd_block_size(size_t size);
/* A block for `size` bytes, at most GRD_BLOCK_MAX; NULL when there is none even without what is cached. Sets *ret_zero when the block
 * is known to be all zero, and leaves it alone otherwise. */
void *grd_block_take(size_t size, bool *ret_zero);
void grd_block_give(void *block, size_t size);

/* Opens the lists of this thread. */
void grd_blocks_start(struct grd_thread_cold *cold);
/* Hands all free blocks of this thread to the shared lists. */
void grd_blocks_share(void);
/* Gives free blocks of this thread and of the shared lists back to the system. */
void grd_blocks_trim(void);
/* Larger blocks that are free are given back beyond so many bytes; 0: beyond a quarter of the memory this process may use. */
void grd_blocks_set_cap(int64_t bytes);
/* Bytes taken from the system and not given back. */
int64_t grd_blocks_held(void);

/* Around a fork. */
void grd_blocks_lock(void);
void grd_blocks_unlock(void);

#endif
