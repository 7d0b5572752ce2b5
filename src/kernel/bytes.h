/* Kernels that move bytes as they are, with the widest registers of the level. */
#ifndef GRD_KERNEL_BYTES_H
#define GRD_KERNEL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/table.h"

enum { GRD_PATTERN = 16, GRD_BYTES_SIZES = 4, GRD_LINE_LEAST = 256 };

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

/* memcpy() for what may be long, like a line of a tensor. */
static inline void grd_copy_line(char *to, const char *from, int64_t bytes)
{
    if (bytes >= GRD_LINE_LEAST)
        grd_kernels->bytes->copy(bytes, to, from);
    else
        memcpy(to, from, (size_t)bytes);
}

#endif
