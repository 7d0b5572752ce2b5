/* Slabs: extents cut into blocks of one class, up to 32 KiB, and those of their blocks that are in no thread's free list. For blocks.c
 * alone. */
#ifndef GRD_BASE_SLABS_H
#define GRD_BASE_SLABS_H

#include "base/small_blocks.h"

/* Classes of slabs are the small ones and, behind them, the medium ones of at most 32 KiB. */
enum { GRD_MEDIUM_SLAB_CLASSES = 20, GRD_SLAB_CLASSES = GRD_SMALL_CLASSES + GRD_MEDIUM_SLAB_CLASSES };

/* Bytes of a block of a medium class, the inverse of grd_size_class_of. */
static inline size_t grd_medium_size(unsigned index)
{
    return (size_t)(index % 4 + 5) << (index / 4 + 8);
}

/* Returns between 1 and n free blocks, linked, the last to NULL, and sets *ret_taken to their number; NULL when there is no memory. */
void *grd_slab_take(unsigned class, int64_t n, int64_t *ret_taken);
/* Takes back blocks of one class, linked, the last to NULL. */
void grd_slab_give(unsigned class, void *blocks);
/* Gives all slabs without blocks in use or in a thread's list back as extents. */
void grd_slabs_trim(void);

/* The lock is held around a fork; run once. */
void grd_slabs_init(void);

#endif
