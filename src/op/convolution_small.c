/* Computes small convolutions (see convolution.h) without packing and on one thread. The padded sample, the transposed weights and the offsets of
 * kernel elements are on the stack, and the kernel writes its sums to the result directly. */
#include <string.h>

#include "kernel/conv.h"
#include "kernel/table.h"
#include "op/convolution.h"
#include "op/product.h"
#include "op/sizes.h"

enum {
    MOST_WORK = 1 << 15, /* a convolution with more multiplications than this is not small */
    MOST_TAPS = 128,     /* limit on the kernel elements of all channels, whose offsets are on the stack */
    MOST_BYTES = 8192    /* limit on the bytes of a padded sample, which is on the stack */
};

/* The padded channels of one sample. */
struct planes {
    const char *data;
    int64_t row, plane; /* elements between two rows (row) and between two channels (plane) */
};

/* Holds, for each kernel element of each channel, its offset in the padded sample and a chain. A chain is a group of up to GRD_CONV_CHAIN kernel
 * elements that the vector kernel `line` processes together; here each chain has one element. */
struct taps {
    int32_t offsets[MOST_TAPS];
    struct grd_conv_chain chains[MOST_TAPS];
};

bool grd_conv_is_small(const struct grd_conv *c)
{
    const bool has_kernel = grd_kernels->conv[c->dtype] != NULL && grd_product_dtype(c->dtype) == c->dtype;
    if (!has_kernel || c->kind != GRD_CONV_PLACES || c->is_channels_last || c->groups != 1 || c->stride[2] != 1 || c->kernel[0] != 1 ||
        c->image[0] != 1 || c->padding[0] != 0)
        return false;
    const double taps = (double)c->inner * (double)c->kernel[1] * (double)c->kernel[2];
    const double height = (double)c->image[1] + 2 * (double)c->padding[1], width = (double)c->image[2] + 2 * (double)c->padding[2];
    return taps <= MOST_TAPS && taps * (double)c->batch * (double)c->outer * (double)c->places[1] * (double)c->places[2] <= MOST_WORK &&
           (double)c->inner * height * width * (double)grd_dtype_size(c->dtype) <= MOST_BYTES && c->image[1] > 0 && c->image[2] > 0;
}

/* Returns the channels of a sample, in place or, if there is padding, copied to `room` with a border of zeros. */
static struct planes planes_of(const struct grd_conv *c, const char *sample, char *room)
{
    const int64_t size = grd_dtype_size(c->dtype), row = c->image[2] + 2 * c->padding[2], plane = (c->image[1] + 2 * c->padding[1]) * row;
    if (c->padding[1] == 0 && c->padding[2] == 0)
        return (struct planes){sample, row, plane};
    memset(room, 0, (size_t)(c->inner * plane * size));
    for (int64_t channel = 0; channel < c->inner; channel++)
        for (int64_t y = 0; y < c->image[1]; y++, sample += c->image[2] * size)
            memcpy(room + (channel * plane + (y + c->padding[1]) * row + c->padding[2]) * size, sample, (size_t)(c->image[2] * size));
    return (struct planes){room, row, plane};
}

/* Fills *ret_taps for the n kernel elements of all channels. For each kernel element, writes its offset in the padded sample and a chain. A chain is
 * a list of kernel elements that the vector kernel processes together. Here it contains only this kernel element. */
static void find_taps(const struct grd_conv *c, const struct planes *planes, int64_t n, struct taps *ret_taps)
{
    const int64_t counts[GRD_CONV_DIMS] = {c->inner, c->kernel[1], c->kernel[2]};
    grd_windows_offsets(counts, (const int64_t[]){planes->plane, c->dilation[1] * planes->row, c->dilation[2]}, 0, 0, n, ret_taps->offsets);
    for (int32_t k = 0; k < n; k++)
        ret_taps->chains[k] = (struct grd_conv_chain){.tap = ret_taps->offsets[k], .count = 1, .weight = k};
}

void grd_conv_run_small(const struct grd_plan *p)
{
    const struct grd_conv *c = grd_conv_of(p);
    const struct grd_conv_row *kernel = grd_kernels->conv[c->dtype];
    const int64_t size = grd_dtype_size(c->dtype), places = grd_conv_product(c->places), image = c->inner * grd_conv_product(c->image);
    const bool biased = p->nreads > 2 && p->in[2] != NULL;
    _Alignas(64) char room[MOST_BYTES], weights[MOST_TAPS * GRD_CONV_LINE_ROWS * sizeof(double)], kept[GRD_CONV_KEPT_BYTES];
    struct taps taps;
    const int64_t depth = c->inner * grd_conv_product(c->kernel);
    struct grd_conv_line line = {.depth = depth,
                                 .nchains = depth,
                                 .lines = c->places[1],
                                 .n = c->places[2],
                                 .taps = taps.offsets,
                                 .chains = taps.chains,
                                 .weights = weights,
                                 .kept = kept,
                                 .sums_row = places,
                                 .sums_line = c->places[2]};
    for (int64_t sample = 0; sample < c->batch; sample++) {
        const struct planes planes = planes_of(c, p->in[0]->data + sample * image * size, room);
        if (sample == 0)
            find_taps(c, &planes, depth, &taps);
        line.seen = planes.data;
        line.seen_line = c->stride[1] * planes.row;
        for (int64_t row = 0; row < c->outer; row += line.nrows) {
            line.nrows = (int)grd_least(GRD_CONV_LINE_ROWS, c->outer - row);
            kernel->turn(line.nrows, line.depth, line.depth, p->in[1]->data + row * line.depth * size, weights, line.nrows);
            line.bias = biased ? p->in[2]->data + row * size : NULL;
            line.sums = p->results[0]->data + (sample * c->outer + row) * places * size;
            kernel->line(&line);
        }
    }
}
