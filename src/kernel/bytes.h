/* Kernels that move bytes as they are, with the widest registers of the level. */
#ifndef GRD_KERNEL_BYTES_H
#define GRD_KERNEL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/table.h"

enum { GRD_PATTERN = 16, GRD_BYTES_SIZES = 4, GRD_LINE_LEAST = 32 };

struct grd_bytes_kernels {
    /* Fills n > 0 bytes with a pattern of GRD_PATTERN; up to 63 more than those are written. */
    void (*fill)(int64_t n, char *to, const void *pattern);
    /* Copies n bytes, at least GRD_LINE_LEAST, from memory that does not overlap: call grd_copy_line. */
    void (*copy)(int64_t n, char *to, const char *from);
    /* The same past the caches: Note [Large results] in kernel/map.c. */
    void (*copy_past)(int64_t n, char *to, const char *from);
    /* to[i] = from[-i], for n elements of 1, 2, 4 and 8 bytes; with `past` past the caches. */
    void (*reverse[GRD_BYTES_SIZES])(int64_t n, char *to, const char *from, bool past);
    /* to[i] = from[2 * i], for the same elements. */
    void (*every_other[GRD_BYTES_SIZES])(int64_t n, char *to, const char *from);
    /* data: pairs, the first elements, the second ones, likewise, except bytes. */
    grd_loop_kernel *pair[GRD_BYTES_SIZES];
};

/* The first and the last `size` of some bytes, which are all of them. */
static inline __attribute__((always_inline)) void grd_copy_ends(char *to, const char *from, int64_t bytes, int64_t size)
{
    memcpy(to, from, (size_t)size);
    memcpy(to + bytes - size, from + bytes - size, (size_t)size);
}

/* memcpy() for lines of tensors, long or short. */
static inline void grd_copy_line(char *to, const char *from, int64_t bytes)
{
    if (bytes >= GRD_LINE_LEAST)
        grd_kernels->bytes->copy(bytes, to, from);
    else if (bytes >= 16)
        grd_copy_ends(to, from, bytes, 16);
    else if (bytes >= 8)
        grd_copy_ends(to, from, bytes, 8);
    else if (bytes >= 4)
        grd_copy_ends(to, from, bytes, 4);
    else
        for (int64_t i = 0; i < bytes; i++)
            to[i] = from[i];
}

#endif
