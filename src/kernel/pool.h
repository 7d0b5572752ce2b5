/* Declares kernels for pooling. They compute the largest element (max_pool) or the average (avg_pool) of each window of an image. */
#ifndef GRD_KERNEL_POOL_H
#define GRD_KERNEL_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_POOL_AXES = 3 }; /* the spatial axes of an image: depth, height and width */

/* The arguments of a pooling kernel. Images have depth, height and width and are contiguous, with `channels` elements at each position; if channels
 * are not innermost, each plane is an image of one channel. Along each axis, window o consists of the positions o * stride - padding + k * dilation
 * for k = 0 to kernel - 1; a position outside of [0, in) has no element. A kernel size of 0 means adaptive pooling: window o is then the range
 * [floor(o * in / out), ceil((o + 1) * in / out)). */
struct grd_pool {
    int64_t in[GRD_POOL_AXES], out[GRD_POOL_AXES];
    int64_t kernel[GRD_POOL_AXES], stride[GRD_POOL_AXES], padding[GRD_POOL_AXES], dilation[GRD_POOL_AXES];
    int64_t channels;
    bool include_pad; /* count_include_pad: padding elements count in the divisor of an average */
    int64_t divisor;  /* divisor_override: the divisor of averages; 0 means the number of elements in the window */
    int lines;        /* number of output rows (for gradients: input rows) computed together, at most GRD_POOL_LINES */
};

enum {
    GRD_POOL_CHANNELS = 64, /* largest_backward works on groups of channels of one image; a group has at most this many channels */
    GRD_POOL_LINES = 8,     /* the most rows that are processed together */
    /* extra bytes of each row in the scratch memory, for the padding on both sides and for vector loads beyond the end of the row */
    GRD_POOL_SLACK = 256
};

/* The pooling kernels of one dtype. They process rows [begin, end) of the output or, for gradients, of the input. Rows are counted through all
 * images, which have depth * height rows each. `memory` is scratch memory for 2 * x->lines rows of the input (for gradients x->lines + 1 rows of the
 * output), with GRD_POOL_SLACK more bytes for each row. If a window has several equal largest elements, the first one counts. If it has NaNs, the
 * last NaN counts as the largest element. An index is the position of an element within one image. */
struct grd_pool_row {
    /* Max pooling: writes the largest element of each window to `out` and, unless `indices` is NULL, its index. The number of positions of an
     * image must fit into an integer as large as an element, because the kernel counts positions in such integers. */
    void (*largest)(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, int64_t *indices, void *memory);
    /* The gradient of `largest`: adds each element of `grad` to the element of grad_in at the index that `largest` wrote. grad_in must be zeros on
     * entry. Indices outside of the image are skipped. Processes groups [begin, end); a group is up to GRD_POOL_CHANNELS channels of one image. */
    void (*largest_backward)(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, const int64_t *indices, void *grad_in);
    /* Average pooling: writes the average of each window to `out`. */
    void (*average)(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, void *memory);
    /* The gradient of `average`: writes the gradient of the input to grad_in. NULL for integer dtypes. */
    void (*average_backward)(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, void *grad_in, void *memory);
};

#endif
