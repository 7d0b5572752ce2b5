/* Pooling: the windows of images, and the largest element or the average of each. */
#ifndef GRD_KERNEL_POOL_H
#define GRD_KERNEL_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_POOL_AXES = 3 }; /* depth, height, width */

/* Images of depth, height and width, contiguous, with `channels` elements at each place; planes in a row are images of one channel. Along each axis window o has
 * the elements o * stride - padding + k * dilation, k < kernel, as far as they are in [0, in). kernel 0: an adaptive window, all of
 * [floor(o * in / out), ceil((o + 1) * in / out)). */
struct grd_pool {
    int64_t in[GRD_POOL_AXES], out[GRD_POOL_AXES];
    int64_t kernel[GRD_POOL_AXES], stride[GRD_POOL_AXES], padding[GRD_POOL_AXES], dilation[GRD_POOL_AXES];
    int64_t channels;
    bool include_pad; /* an average counts the elements of the padding */
    int64_t divisor;  /* of every average; 0: the number of elements */
    int lines;        /* rows that are worked on together */
};

enum {
    GRD_POOL_CHANNELS = 64, /* of one image, that one part of largest_backward has */
    GRD_POOL_LINES = 8,     /* rows that are worked on together, at most */
    GRD_POOL_SLACK = 256    /* bytes around a line: margins, and what may be read behind it */
};

/* Kernels work on rows [begin, end), of which each image has its depth times its height, of the output or, for gradients, of the input. `memory` has room for
 * 2 x->lines rows of the input or, for gradients, x->lines + 1 of the output, each with GRD_POOL_SLACK.
 * The largest element is the first of those that compare equal, or the last NaN; indices count the places of one image. */
struct grd_pool_row {
    /* The largest elements, and where they are unless `indices` is NULL. An image has no more places than an integer as wide as an element counts. */
    void (*largest)(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, int64_t *indices, void *memory);
    /* Adds each gradient at its index to `grad_in`, which is zero; those outside of the image go nowhere. Parts [begin, end), of which each image has one per
     * GRD_POOL_CHANNELS channels or fewer. */
    void (*largest_backward)(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, const int64_t *indices, void *grad_in);
    void (*average)(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, void *memory);
    /* NULL: integers have no gradient. */
    void (*average_backward)(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, void *grad_in, void *memory);
};

#endif
