/* Declares kernels that copy, fill and reorder elements as bytes, with the widest registers of the instruction-set level. */
#ifndef GRD_KERNEL_BYTES_H
#define GRD_KERNEL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/inline.h"
#include "kernel/table.h"

/* GRD_PATTERN: size in bytes of the pattern that `fill` repeats. GRD_BYTES_SIZES: number of element sizes that have kernels (1, 2, 4 and 8 bytes).
 * GRD_LINE_LEAST: the fewest bytes that `copy` accepts. GRD_JOINED_PARTS: the most tensors that a grd_joined_rows concatenates. */
enum { GRD_PATTERN = 16, GRD_BYTES_SIZES = 4, GRD_LINE_LEAST = 32, GRD_JOINED_PARTS = 16 };

/* A concatenation of `parts` tensors along a dimension that is not the first. Row i of the result is row i of each tensor, one after the other.
 * The result is written row by row. If one tensor were copied after the other, cache lines of the result in which two tensors meet would be loaded
 * twice. `bytes` is the size of a row of one tensor; strides are in bytes. */
struct grd_joined_rows {
    char *to;
    int64_t to_stride, parts;
    struct {
        const char *from;
        int64_t stride, bytes;
    } part[GRD_JOINED_PARTS];
};

/* The arguments of gather_rows, which copies row index[i] of `from` to row i of `to`, for n rows. */
struct grd_listed_rows {
    /* `bytes` is the size of a row. Rows of `to` begin to_stride bytes apart, and rows of `from` begin `step` bytes apart. */
    int64_t n, bytes, to_stride, step;
    char *to;
    const char *from; /* the row with index 0 */
    const int64_t *index;
};

struct grd_bytes_kernels {
    /* Fills n > 0 bytes with a repeated pattern of GRD_PATTERN bytes. Up to 63 bytes after these n bytes may be overwritten. */
    void (*fill)(int64_t n, char *to, const void *pattern);
    /* Copies n >= GRD_LINE_LEAST bytes between memory that does not overlap. Callers use grd_copy_line, which takes any n. */
    void (*copy)(int64_t n, char *to, const char *from);
    /* Copies n bytes with stores that bypass the caches, see Note [Large results] in kernel/map.c. */
    void (*copy_past)(int64_t n, char *to, const char *from);
    /* Writes rows [begin, end) of a concatenation. See Note [Between rows] in kernel/cpu/bytes.c. */
    void (*join_rows)(const struct grd_joined_rows *rows, int64_t begin, int64_t end);
    void (*gather_rows)(const struct grd_listed_rows *rows);
    /* Copies n elements in reverse order, to[i] = from[-i]; one function for each element size of 1, 2, 4 and 8 bytes. If `past`, the stores
     * bypass the caches. */
    void (*reverse[GRD_BYTES_SIZES])(int64_t n, char *to, const char *from, bool past);
    /* Copies every second element: to[i] = from[2 * i]. every_other[i] is for elements of 2^i bytes. */
    void (*every_other[GRD_BYTES_SIZES])(int64_t n, char *to, const char *from);
    /* Interleaves two arrays: data[0] receives pairs of elements, with first elements from data[1] and second elements from data[2]. pair[i] is for
     * elements of 2^i bytes; pair[0] is NULL. */
    grd_loop_kernel *pair[GRD_BYTES_SIZES];
};

/* Copies `bytes` bytes, where size <= bytes <= 2 * size. It copies the first `size` and then the last `size` bytes; the two ranges may overlap. */
GRD_INLINE void grd_copy_ends(char *to, const char *from, int64_t bytes, int64_t size)
{
    memcpy(to, from, (size_t)size);
    memcpy(to + bytes - size, from + bytes - size, (size_t)size);
}

/* Copies `bytes` bytes, at most 2 * GRD_LINE_LEAST. */
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

/* Copies a line, which is `bytes` contiguous bytes, e.g. a row of a matrix. Short lines are copied inline, and longer lines by the kernel for the
 * instruction set in use. */
static inline void grd_copy_line(char *to, const char *from, int64_t bytes)
{
    if (bytes > 2 * GRD_LINE_LEAST)
        grd_kernels->bytes->copy(bytes, to, from);
    else
        grd_copy_short(to, from, bytes);
}

#endif
