/* Declares kernels for pooling. They compute the largest element (max_pool) or the average (avg_pool) of each window of an image. */
#ifndef GRD_KERNEL_POOL_H
#define GRD_KERNEL_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_POOL_AXES = 3 }; /* depth, height, width */

/* The arguments of a pooling kernel. Images have depth, height and width and are contiguous, with `channels` elements at each position; if channels
 * are not innermost, each plane is an image of one channel. Along each axis, window o has the elements o * stride - padding + k * dilation for k <
 * kernel, as far as they are in [0, in). A kernel size of 0 means adaptive pooling: window o has the elements [floor(o * in / out), ceil((o + 1) * in
 * / out)). */
struct grd_pool {
    int64_t in[GRD_POOL_AXES], out[GRD_POOL_AXES];
    int64_t kernel[GRD_POOL_AXES], stride[GRD_POOL_AXES], padding[GRD_POOL_AXES], dilation[GRD_POOL_AXES];
    int64_t channels;
    bool include_pad; /* the divisor of an average counts the elements of the padding */
    int64_t divisor;  /* the divisor of averages; 0 means the number of elements of the window */
    int lines;        /* number of rows that are processed together, at most GRD_POOL_LINES */
};

enum {
    GRD_POOL_CHANNELS = 64, /* the most channels of one image that a group of largest_backward has */
    GRD_POOL_LINES = 8,     /* the most rows that are processed together */
    /* bytes added to each row in `memory`: for padding before and after the row, and for vectors that are read beyond its end */
    GRD_POOL_SLACK = 256
};

/* The pooling kernels of one dtype. They process rows begin to end - 1 of the output or, for gradients, of the input. Rows are counted through all
 * images, which have depth * height rows each. `memory` is scratch memory for 2 * x->lines rows of the input (for gradients x->lines + 1 rows of the
 * output), with GRD_POOL_SLACK more bytes for each row. The largest element of a window is the first of equal ones, or the last NaN. Indices count
 * the positions of one image. */
struct grd_pool_row {
    /* Writes the largest elements and, unless `indices` is NULL, their indices. The number of positions of an image must fit into an integer of the
     * size of an element, because the kernel counts positions in such integers. */
    void (*largest)(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, int64_t *indices, void *memory);
    /* Adds each gradient to the element of `grad_in` that its index names; grad_in starts as zeros. Indices outside of the image are skipped.
     * Processes groups of channels begin to end - 1; each image has one group per GRD_POOL_CHANNELS channels or fewer. */
    void (*largest_backward)(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, const int64_t *indices, void *grad_in);
    /* Writes the averages of the windows. */
    void (*average)(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, void *memory);
    /* Writes the gradient of `average`. average_backward is NULL for integers. */
    void (*average_backward)(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, void *grad_in, void *memory);
};

#endif
