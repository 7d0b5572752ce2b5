/* Images sampled at the points of a grid, and the gradients of that. */
#ifndef GRD_KERNEL_GRID_H
#define GRD_KERNEL_GRID_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_GRID_AXES = 3 }; /* depth, height, width */
enum grd_grid_mode { GRD_GRID_BILINEAR, GRD_GRID_NEAREST, GRD_GRID_BICUBIC };
enum grd_grid_padding { GRD_GRID_ZEROS, GRD_GRID_BORDER, GRD_GRID_REFLECTION };
enum { GRD_GRID_POINTS = 64 /* a block */, GRD_GRID_CHANNELS = 16 /* a part */ };

/* Images (samples, channels, depth, height, width) and grids (samples, points, dims): the coordinates of a point are those along width, height and, of three dims,
 * depth; -1 and 1 are the ends of the image, or the middles of its first and last elements if align_corners. All contiguous. An image has at most 2^31 - 1 elements. */
struct grd_grid {
    int64_t channels, sizes[GRD_GRID_AXES];
    int64_t points;
    int dims;
    enum grd_grid_mode mode;
    enum grd_grid_padding padding;
    bool align_corners;
};

struct grd_grid_row {
    /* Blocks [begin, end) of points, of which each sample has its own: out is (samples, channels, points). */
    void (*forward)(const struct grd_grid *x, int64_t begin, int64_t end, const void *in, const void *grid, void *out);
    /* Parts [begin, end) of the channels, of which each sample has its own: adds to grad_in, which is zero. */
    void (*backward_image)(const struct grd_grid *x, int64_t begin, int64_t end, const void *grad, const void *grid, void *grad_in);
    /* Blocks of points: writes the gradients of their coordinates. */
    void (*backward_grid)(const struct grd_grid *x, int64_t begin, int64_t end, const void *grad, const void *in, const void *grid,
                          void *grad_grid);
};

#endif
