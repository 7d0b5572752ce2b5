/* Free blocks and where they come from: the free lists of a thread, slabs and extents, which all threads share, the system. For memory.c alone, which
 * counts what is in use; errors are raised there. Under AddressSanitizer, memcheck and
 * GRADUS_DEBUG=lifetimes nothing is cached, so that each of them sees every block. */
#ifndef GRD_BASE_BLOCKS_H
#define GRD_BASE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cold.h"
#include "base/extents.h"
#include "base/small_blocks.h"

enum {
    GRD_BLOCK_MAX_LOG = GRD_BLOCKS_SANITIZED ? 39 : GRD_EXTENT_MAX_LOG /* AddressSanitizer ends the process when asked for more */
};
#define GRD_BLOCK_MAX ((size_t)1 << GRD_BLOCK_MAX_LOG)

/* Finds out who watches the blocks; run by the library's constructor after grd_debug_init, before anything is allocated. */
void grd_blocks_init(void);

/* Bytes of the block that serves a size. */
size_t grd_block_size(size_t size);
/* A block for `size` bytes, at most GRD_BLOCK_MAX; NULL when there is none even without what is cached. Sets *ret_zero when the block
 * is known to be all zero, and leaves it alone otherwise. */
void *grd_block_take(size_t size, bool *ret_zero);
void grd_block_give(void *block, size_t size);

/* Opens the lists of this thread. */
void grd_blocks_start(struct grd_thread_cold *cold);
/* Hands all free blocks of this thread over to their slabs and to the free extents. */
void grd_blocks_share(void);
/* Gives free blocks of this thread, and those in no thread's list, back to the system. */
void grd_blocks_trim(void);

#endif
