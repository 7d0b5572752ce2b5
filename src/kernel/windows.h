/* Planes read through windows: which elements the places of a convolution see through one tap of its kernel. Elements are moved as bytes, so there is one
 * instruction set and no dtype. */
#ifndef GRD_KERNEL_WINDOWS_H
#define GRD_KERNEL_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_WINDOW_DIMS = 3 };

/* At place p the tap t reads the element p * step + t * dilation - padding of a contiguous plane, or 0 where there is none. */
struct grd_windows {
    int64_t itemsize;
    int64_t plane[GRD_WINDOW_DIMS], places[GRD_WINDOW_DIMS];
    int64_t step[GRD_WINDOW_DIMS], dilation[GRD_WINDOW_DIMS], padding[GRD_WINDOW_DIMS];
};

/* Writes what the places [first, first + n), counted in row-major order, read through the tap. */
void grd_windows_line(const struct grd_windows *w, const char *plane, const int64_t tap[GRD_WINDOW_DIMS], int64_t first, int64_t n,
                      char *line);

/* Writes the offsets of places [first, first + n) of so many along each dimension: `start`, and the sum of each place's number times the step. */
void grd_windows_offsets(const int64_t counts[GRD_WINDOW_DIMS], const int64_t steps[GRD_WINDOW_DIMS], int64_t start, int64_t first,
                         int64_t n, int32_t *to);

#endif
