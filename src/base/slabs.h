/* A slab is an extent (a run of pages) that is cut into memory blocks of one size class of at most 32 KiB. Slabs hold the free blocks that are in
 * no thread's free list. Only blocks.c takes blocks from slabs and gives blocks back. */
#ifndef GRD_BASE_SLABS_H
#define GRD_BASE_SLABS_H

#include "base/small_blocks.h"

/* A slab class is the size class of the blocks in a slab. Slab classes are numbered from 0: first the size classes of blocks up to 1 KiB, then those
 * up to 32 KiB. */
enum { GRD_MEDIUM_SLAB_CLASSES = 20, GRD_SLAB_CLASSES = GRD_SMALL_CLASSES + GRD_MEDIUM_SLAB_CLASSES };

/* Returns the size in bytes of the blocks of medium size class `index`. */
static inline size_t grd_medium_size(unsigned index)
{
    return (size_t)(index % 4 + 5) << (index / 4 + 8);
}

/* Returns a linked list of 1 to `n` free blocks of slab class `class` and writes their number to *ret_taken. Returns NULL if there is no memory. */
void *grd_slab_take(unsigned class, int64_t n, int64_t *ret_taken);
/* Frees the blocks in a linked list into their slabs. All of them have the slab class `class`. */
void grd_slab_give(unsigned class, void *blocks);
/* Frees all slabs whose blocks are all free and in no thread's free list. */
void grd_slabs_trim(void);

/* Registers the lock of slabs.c with base/fork.h, so that the lock is free in the child process after a fork. Called once. */
void grd_slabs_init(void);

#endif
