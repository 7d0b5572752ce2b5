/* Declares kernels that compute the mean and variance of each channel of a batch, normalise the channels, and compute the gradient.
 * src/op/batch_norm.c combines these kernels.
 *
 * The elements of one channel are numbered from 0 to samples * positions - 1. Kernels process pieces. A piece consists of the elements [first, last)
 * of some channels. It is small enough to stay in the cache while it is read twice. An array with one value per channel has `channels` elements.
 * Invariant: a sum is made of several partial sums, and the position of an element in its piece chooses the partial sum to which it is added. So
 * results depend neither on the instruction set nor on the number of threads. */
#ifndef GRD_KERNEL_CHANNELS_H
#define GRD_KERNEL_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

/* The shape and layout of a tensor. If `innermost` (channels_last), element i of channel c is at i * channels + c; otherwise the tensor is contiguous
 * with shape (samples, channels, positions). */
struct grd_channels {
    int64_t samples, channels, positions;
    bool innermost;
};

/* A part of the tensor: elements [first, last) of each of the channels [begin, end). */
struct grd_channel_piece {
    int64_t first, last, begin, end;
};

/* The arguments of group normalisation. Each sample has `groups` groups of `width` neighbouring channels, with `positions` elements per channel. */
struct grd_channel_groups {
    int64_t width, groups, positions;
    double eps;
    const void *weight, *bias; /* one value per channel of a sample; NULL means weights of 1 or biases of 0 */
};

/* The channel kernels of one dtype. Arrays such as `mean`, `scale` and `ret_product` have one value per channel. */
struct grd_channels_row {
    /* Writes for each channel the mean of its elements in `piece` and the sum of (element - mean)^2 over these elements. */
    void (*moments)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, void *ret_mean, void *ret_squares);
    /* Writes for each channel the sums of grad and of grad * (data - mean) over its elements in `piece`. */
    void (*products)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *grad, const void *mean,
                     void *ret_grad, void *ret_product);
    /* Writes (data - mean) * scale + shift to `out` for the elements in `piece`. */
    void (*normalise)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *mean, const void *scale,
                      const void *shift, void *out);
    /* Writes the gradient of the input, grad * scale - share - (data - mean) * slope, to `out` for the elements in `piece`. */
    void (*gradient)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *grad, const void *mean,
                     const void *share, const void *slope, const void *scale, void *out);
    /* Combines the results of `moments` for pieces of `length` elements of each channel. `means` and `squares` hold one array of `channels` values
     * per piece, one after the other. Writes the mean and the variance (divided by n, not n - 1) of the channels [begin, end). */
    void (*combine)(const struct grd_channels *x, int64_t length, int64_t begin, int64_t end, const void *means, const void *squares,
                    void *ret_mean, void *ret_variance);
    /* Adds up the two sums per channel that `products` has written for each piece of the tensor; a piece has `length` elements of each channel.
     * `firsts` holds the first sums, and `seconds` the second sums. Both hold one array of `channels` values per piece, one after the other. Writes
     * the totals of the channels [begin, end). */
    void (*add)(const struct grd_channels *x, int64_t length, int64_t begin, int64_t end, const void *firsts, const void *seconds,
                void *ret_first, void *ret_second);
    /* Writes weight / sqrt(variance + eps) to ret_scale for the channels [begin, end). If `weight` is NULL, all weights are 1. */
    void (*scales)(int64_t begin, int64_t end, const void *variance, double eps, const void *weight, void *ret_scale);
    /* Computes the arguments `share` and `slope` of the kernel `gradient`: share = scale * sum / count and slope = scale * product / count /
     * (variance + eps). `sum` and `product` are the sums over each channel of grad and of grad * (data - mean). If `count` is 0, mean and variance
     * are constants, and share and slope become 0. ret_weight receives the gradient of the weight. */
    void (*slopes)(int64_t begin, int64_t end, double count, const void *variance, double eps, const void *scale, const void *sum,
                   const void *product, void *ret_share, void *ret_slope, void *ret_weight);
    /* Writes three numbers for each channel of the groups [begin, end): the mean of its group; scale = weight / sqrt(variance + eps), with the
     * variance of its group; and shift = bias. `mean` and `variance` have one value per group. */
    void (*spread)(const struct grd_channel_groups *x, int64_t begin, int64_t end, const void *mean, const void *variance, void *ret_mean,
                   void *ret_scale, void *ret_shift);
    /* Computes, for the channels of groups [begin, end), the arguments `share` and `slope` of the kernel `gradient`. `variance` has one value per
     * group. `sum` and `product` have one value per channel: the sums of grad and of grad * (data - mean). `product` is overwritten with the
     * channel's contribution to the gradient of the weight. */
    void (*group_slopes)(const struct grd_channel_groups *x, int64_t begin, int64_t end, const void *variance, const void *sum,
                         void *product, void *ret_share, void *ret_slope);
};

#endif
