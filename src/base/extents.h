/* Declares the allocation of extents: runs of whole pages that come from the system or are reused. Slabs, and memory blocks above 32 KiB, are
 * extents. Only blocks.c and slabs.c allocate and free extents. */
#ifndef GRD_BASE_EXTENTS_H
#define GRD_BASE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRD_EXTENT_MAX_LOG = 47 };

/* A size class of more than 1 KiB. There are four classes for each power of two up to 1 MiB, and sixteen for each larger power of two. */
struct grd_size_class {
    unsigned index; /* number of the class; classes are numbered by size from 0 */
    size_t size;    /* bytes of a memory block of this class */
};

/* Returns the smallest size class whose memory blocks hold `size` bytes. `size` must be more than 1024. */
static inline struct grd_size_class grd_size_class_of(size_t size)
{
    unsigned log = 63 - (unsigned)__builtin_clzll(size - 1);
    unsigned bits = log < 20 ? 2 : 4;
    unsigned step = (unsigned)((size - 1) >> (log - bits)) - (1u << bits);
    unsigned base = log < 20 ? (log - 10) * 4 : 40 + (log - 20) * 16;
    return (struct grd_size_class){base + step, ((size_t)step + 1 + ((size_t)1 << bits)) << (log - bits)};
}

/* Returns an extent of at least `size` bytes whose address is a multiple of `align`, a power of two. Returns NULL if the system has no memory
 * left, even after all free extents were returned to it. Sets *ret_zero to true if all bytes are known to be zero, and leaves *ret_zero unchanged
 * otherwise. */
void *grd_extent_take(size_t size, size_t align, bool *ret_zero);
/* Frees an extent that grd_extent_take returned for the same `size`. */
void grd_extent_give(void *extent, size_t size);

/* Returns all free extents to the system. */
void grd_extents_trim(void);
/* Sets the largest number of bytes of free extents that are kept for reuse from now on. */
void grd_extents_set_limit(int64_t bytes);
/* Returns the number of bytes of all extents, allocated and free, that are mapped from the system now. */
int64_t grd_extents_held(void);
/* Returns the largest value of grd_extents_held since the last call of grd_extents_reset_most_held. */
int64_t grd_extents_most_held(void);
/* Restarts the measurement of grd_extents_most_held from the current value. */
void grd_extents_reset_most_held(void);

/* Registers the lock of extents.c with base/fork.h, so that the lock is free in the child process after a fork. Called once. */
void grd_extents_init(void);

#endif
