/* Extents: runs of whole pages, from the system or from what is kept of those that are free. Slabs and blocks above 32 KiB are extents.
 * For blocks.c and slabs.c alone. */
#ifndef GRD_BASE_EXTENTS_H
#define GRD_BASE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRD_EXTENT_MAX_LOG = 47 };

/* Size classes above 1 KiB: four for each power of two up to 1 MiB, sixteen above. Classes number the sizes from the smallest on. */
struct grd_size_class {
    unsigned index;
    size_t size; /* bytes of a block of the class */
};

static inline struct grd_size_class grd_size_class_of(size_t size)
{
    unsigned log = 63 - (unsigned)__builtin_clzll(size - 1);
    unsigned bits = log < 20 ? 2 : 4;
    unsigned step = (unsigned)((size - 1) >> (log - bits)) - (1u << bits);
    unsigned base = log < 20 ? (log - 10) * 4 : 40 + (log - 20) * 16;
    return (struct grd_size_class){base + step, ((size_t)step + 1 + ((size_t)1 << bits)) << (log - bits)};
}

/* Returns an extent of at least `size` bytes that begins at a multiple of `align`, a power of two; NULL when there is none even
 * without what is kept. Sets *ret_zero when the extent is known to be all zero, and leaves it alone otherwise. */
void *grd_extent_take(size_t size, size_t align, bool *ret_zero);
/* Gives back an extent that was taken with `size`. */
void grd_extent_give(void *extent, size_t size);

/* Returns all free extents to the system. */
void grd_extents_trim(void);
/* From now on at most so many bytes of free extents are kept, however many were in use. */
void grd_extents_set_limit(int64_t bytes);
/* Bytes taken from the system and not returned: now, and at most since the last reset. */
int64_t grd_extents_held(void);
int64_t grd_extents_most_held(void);
void grd_extents_reset_most_held(void);

/* The lock is held around a fork; run once. */
void grd_extents_init(void);

#endif
