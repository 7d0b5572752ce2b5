/* Allocates and frees memory blocks for memory.c, which counts the bytes in use and raises errors. Free blocks are in the free lists of each
 * thread, and in slabs (slabs.h) and extents (extents.h), which all threads share. Under AddressSanitizer, memcheck and GRADUS_DEBUG=lifetimes no
 * free block is cached: every block comes directly from the system, so that these tools see it. */
#ifndef GRD_BASE_BLOCKS_H
#define GRD_BASE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cold.h"
#include "base/extents.h"
#include "base/small_blocks.h"

enum {
    /* Base-2 logarithm of the size in bytes of the largest block. AddressSanitizer aborts at a larger request. */
    GRD_BLOCK_MAX_LOG = GRD_BLOCKS_SANITIZED ? 39 : GRD_EXTENT_MAX_LOG
};
#define GRD_BLOCK_MAX ((size_t)1 << GRD_BLOCK_MAX_LOG)

/* Decides whether free blocks are cached. Called by the library's constructor after grd_debug_init, before anything is allocated. */
void grd_blocks_init(void);

/* Returns the size in bytes of the block that grd_block_take returns for a request of `size` bytes. The block can be larger than the request. */
size_t grd_block_size(size_t size);
/* Returns a block for `size` bytes; `size` is at most GRD_BLOCK_MAX. Returns NULL if the system has no memory left, even after all free extents
 * were given back. Sets *ret_zero to true if all bytes of the block are known to be zero, and leaves *ret_zero unchanged otherwise. */
void *grd_block_take(size_t size, bool *ret_zero);
/* Frees a block that grd_block_take returned for the same `size`. */
void grd_block_give(void *block, size_t size);

/* Sets how many blocks each free list of this thread can hold. The lists of small blocks are in grd_thread, and those of medium blocks in `cold`. */
void grd_blocks_start(struct grd_thread_cold *cold);
/* Moves all blocks in this thread's free lists to the memory that all threads share, which consists of slabs (slabs.h) and free extents
 * (extents.h). */
void grd_blocks_share(void);
/* Gives free memory back to the system: the blocks in this thread's free lists, the unused slabs and the free extents. */
void grd_blocks_trim(void);

#endif
