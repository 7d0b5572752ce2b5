/* Declares kernels that sample images at the points of a grid (grid_sample), and kernels for the gradients. */
#ifndef GRD_KERNEL_GRID_H
#define GRD_KERNEL_GRID_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_GRID_AXES = 3 }; /* the spatial axes of an image: depth, height and width */
enum grd_grid_mode { GRD_GRID_BILINEAR, GRD_GRID_NEAREST, GRD_GRID_BICUBIC };
enum grd_grid_padding { GRD_GRID_ZEROS, GRD_GRID_BORDER, GRD_GRID_REFLECTION };
enum { GRD_GRID_POINTS = 64 /* points in a block */, GRD_GRID_CHANNELS = 16 /* the most channels in a group */ };

/* The arguments of grid_sample. Images have the shape (samples, channels, depth, height, width), grids the shape (samples, points, dims); all are
 * contiguous. The coordinates of a point are along width, height and, if dims is 3, depth. The coordinates -1 and 1 are the ends of the image, or the
 * centres of its first and last elements if align_corners. An image has at most 2^31 - 1 elements. */
struct grd_grid {
    int64_t channels, sizes[GRD_GRID_AXES];
    int64_t points;
    int dims;
    enum grd_grid_mode mode;
    enum grd_grid_padding padding;
    bool align_corners;
};

/* The grid_sample kernels of one dtype. Points are processed in blocks of up to GRD_GRID_POINTS points of one sample; blocks are numbered through
 * all samples. */
struct grd_grid_row {
    /* Samples the images at the points of blocks [begin, end). `out` has the shape (samples, channels, points). */
    void (*forward)(const struct grd_grid *x, int64_t begin, int64_t end, const void *in, const void *grid, void *out);
    /* Adds the gradient of the images to grad_in, which must be zeros on entry, for groups [begin, end) of channels. A group is up to
     * GRD_GRID_CHANNELS channels of one sample. */
    void (*backward_image)(const struct grd_grid *x, int64_t begin, int64_t end, const void *grad, const void *grid, void *grad_in);
    /* Writes the gradient of the grid, i.e. of the coordinates of the points, for blocks [begin, end) of points. */
    void (*backward_grid)(const struct grd_grid *x, int64_t begin, int64_t end, const void *grad, const void *in, const void *grid,
                          void *grad_grid);
};

#endif
