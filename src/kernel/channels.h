/* Loops over the channels of a batch: their moments, and what normalises them and its gradient. src/op/batch_norm.c puts them together.
 *
 * The elements of a channel are numbered from 0 to samples * positions. A piece of them, [first, last), is so short that it stays in the cache while
 * it is read twice. Values of channels are arrays of `channels` elements.
 * Invariant: sums run in lanes by the place in a piece, so that they depend on neither the level nor the number of threads. */
#ifndef GRD_KERNEL_CHANNELS_H
#define GRD_KERNEL_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Element i of channel c lies at i * channels + c where channels are innermost; otherwise the tensor is (samples, channels, positions), contiguous. */
struct grd_channels {
    int64_t samples, channels, positions;
    bool innermost;
};

/* Elements [first, last) of channels [begin, end). */
struct grd_channel_piece {
    int64_t first, last, begin, end;
};

/* Groups of `width` channels, `groups` of them in a sample, of `positions` elements each. */
struct grd_channel_groups {
    int64_t width, groups, positions;
    double eps;
    const void *weight, *bias; /* of the channels of a sample, or NULL */
};

struct grd_channels_row {
    /* The mean, and the sum of the squares of the distances from it, of each channel's elements. */
    void (*moments)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, void *ret_mean, void *ret_squares);
    /* The sums of grad and of grad * (data - mean). */
    void (*products)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *grad, const void *mean,
                     void *ret_grad, void *ret_product);
    /* out = (data - mean) * scale + shift */
    void (*normalise)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *mean, const void *scale,
                      const void *shift, void *out);
    /* out = grad * scale - share - (data - mean) * slope */
    void (*gradient)(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *grad, const void *mean,
                     const void *share, const void *slope, const void *scale, void *out);
    /* The mean and the variance (with correction 0) of channels [begin, end) from the moments of pieces of `length` elements, whose values lie
     * one array after the other. */
    void (*combine)(const struct grd_channels *x, int64_t length, int64_t begin, int64_t end, const void *means, const void *squares,
                    void *ret_mean, void *ret_variance);
    /* The sums over the pieces of both values. */
    void (*add)(const struct grd_channels *x, int64_t length, int64_t begin, int64_t end, const void *firsts, const void *seconds,
                void *ret_first, void *ret_second);
    /* scale = weight / sqrt(variance + eps), a weight that is NULL being 1. */
    void (*scales)(int64_t begin, int64_t end, const void *variance, double eps, const void *weight, void *ret_scale);
    /* What `gradient` takes, from the sums over all elements: share = scale * sum / count and slope = scale * product / count / (variance + eps), or 0
     * where the moments are constants, which a count of 0 says; and the gradient of the weight. */
    void (*slopes)(int64_t begin, int64_t end, double count, const void *variance, double eps, const void *scale, const void *sum,
                   const void *product, void *ret_share, void *ret_slope, void *ret_weight);
    /* The same for groups [begin, end) of neighbouring channels, which have one mean and variance each: values of channels from those of groups. */
    void (*spread)(const struct grd_channel_groups *x, int64_t begin, int64_t end, const void *mean, const void *variance, void *ret_mean,
                   void *ret_scale, void *ret_shift);
    void (*group_slopes)(const struct grd_channel_groups *x, int64_t begin, int64_t end, const void *variance, const void *sum,
                         void *product, void *ret_share, void *ret_slope);
};

#endif
