/* Declares functions that copy the input elements covered by the windows of a convolution (im2col). Elements are moved as bytes. So the functions are
 * compiled only once, and not for each dtype and instruction set. */
#ifndef GRD_KERNEL_WINDOWS_H
#define GRD_KERNEL_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_WINDOW_DIMS = 3 };

/* Describes a convolution over a contiguous plane with sizes plane[] and output positions with sizes places[]. Along each dimension, output
 * position p at kernel position t reads element p * step + t * dilation - padding of the plane, or 0 if there is no such element. */
struct grd_windows {
    int64_t itemsize;
    int64_t plane[GRD_WINDOW_DIMS], places[GRD_WINDOW_DIMS];
    int64_t step[GRD_WINDOW_DIMS], dilation[GRD_WINDOW_DIMS], padding[GRD_WINDOW_DIMS];
};

/* Writes to `line` the n elements of `plane` that n output positions read at kernel position `tap`. The output positions are numbered in row-major
 * order and begin with number `first`. */
void grd_windows_line(const struct grd_windows *w, const char *plane, const int64_t tap[GRD_WINDOW_DIMS], int64_t first, int64_t n,
                      char *line);

/* Writes the offsets of n positions of a grid with sizes counts[]. A position with coordinates i[] has the offset start + sum of i[d] * steps[d] over
 * all dimensions d. The positions are numbered in row-major order and begin with number `first`. */
void grd_windows_offsets(const int64_t counts[GRD_WINDOW_DIMS], const int64_t steps[GRD_WINDOW_DIMS], int64_t start, int64_t first,
                         int64_t n, int32_t *to);

#endif
