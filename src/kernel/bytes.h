/* Kernels that move bytes as they are, with the widest registers of the level. */
#ifndef GRD_KERNEL_BYTES_H
#define GRD_KERNEL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/inline.h"
#include "kernel/table.h"

enum { GRD_PATTERN = 16, GRD_BYTES_SIZES = 4, GRD_LINE_LEAST = 32, GRD_JOINED_PARTS = 16 };

/* Rows of a result that are joined of parts. All parts of a row are written one after the other, since rows that are written in part are brought to the cache again
 * for the rest. */
struct grd_joined_rows {
    char *to;
    int64_t to_stride, parts;
    struct {
        const char *from;
        int64_t stride, bytes;
    } part[GRD_JOINED_PARTS];
};

/* Rows that are read at the places in a list. */
struct grd_listed_rows {
    int64_t n, bytes, to_stride, step;
    char *to;
    const char *from; /* of index 0 */
    const int64_t *index;
};

struct grd_bytes_kernels {
    /* Fills n > 0 bytes with a pattern of GRD_PATTERN; up to 63 more than those are written. */
    void (*fill)(int64_t n, char *to, const void *pattern);
    /* Copies n bytes, at least GRD_LINE_LEAST, from memory that does not overlap: call grd_copy_line. */
    void (*copy)(int64_t n, char *to, const char *from);
    /* Copies n bytes past the caches: Note [Large results] in kernel/map.c. */
    void (*copy_past)(int64_t n, char *to, const char *from);
    /* Rows begin to end; see Note [Between rows] in kernel/cpu/bytes.c. */
    void (*join_rows)(const struct grd_joined_rows *rows, int64_t begin, int64_t end);
    void (*gather_rows)(const struct grd_listed_rows *rows);
    /* to[i] = from[-i], for n elements of 1, 2, 4 and 8 bytes; with `past` past the caches. */
    void (*reverse[GRD_BYTES_SIZES])(int64_t n, char *to, const char *from, bool past);
    /* to[i] = from[2 * i], for the same elements. */
    void (*every_other[GRD_BYTES_SIZES])(int64_t n, char *to, const char *from);
    /* data: pairs, the first elements, the second ones, likewise, except bytes. */
    grd_loop_kernel *pair[GRD_BYTES_SIZES];
};

/* Copies `bytes` bytes, from `size` to 2 * `size` of them, as the first and the last `size`, which may overlap. */
GRD_INLINE void grd_copy_ends(char *to, const char *from, int64_t bytes, int64_t size)
{
    memcpy(to, from, (size_t)size);
    memcpy(to + bytes - size, from + bytes - size, (size_t)size);
}

/* At most 2 * GRD_LINE_LEAST bytes. */
GRD_INLINE void grd_copy_short(char *to, const char *from, int64_t bytes)
{
    if (bytes >= GRD_LINE_LEAST)
        grd_copy_ends(to, from, bytes, GRD_LINE_LEAST);
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

/* memcpy() for lines of tensors, long or short. */
static inline void grd_copy_line(char *to, const char *from, int64_t bytes)
{
    if (bytes > 2 * GRD_LINE_LEAST)
        grd_kernels->bytes->copy(bytes, to, from);
    else
        grd_copy_short(to, from, bytes);
}

#endif
