/* Convolves floating-point numbers directly, without copying windows. The operand that is read through windows (the "source", mostly the image) is
 * read in place or, if windows reach over its edge, from a copy with a border of zeros. Output positions and taps (kernel elements) are offsets into
 * the source. There are two implementations:
 *
 *  panels   vector lanes hold channels of the result (convolution_channel_lanes.c)
 *  lines    vector lanes hold output positions (convolution_place_lanes.c); for results with few channels, and for long rows with few products per
 *           position
 *
 * If the result is an image (GRD_CONV_IMAGE), its elements are computed in phases. A phase is all elements whose indices have the same remainders
 * modulo the stride; all of them use the same taps. Any other result is one phase.
 *
 * An item is one group of channels of one sample. Items are numbered sample by sample or, for the gradient of a weight, group by group. A wave is the
 * items that are computed together. Its size is limited so that the padded copies of its items fit into a cache. */
#ifndef GRD_OP_CONVOLUTION_DIRECT_H
#define GRD_OP_CONVOLUTION_DIRECT_H

#include "core/tensor.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/convolution.h"

enum {
    GRD_CONV_MOST_PHASES = 16,
    /* A direct convolution is used only if the padded copy of a sample has at most 4 * n + GRD_CONV_LEAST_COPIED elements, where n is the number of
     * elements of the sample. */
    GRD_CONV_LEAST_COPIED = 1 << 22,
    /* If one group of channels of one sample has at most this number of bytes, each task makes its own padded copy of the channels that it reads. */
    GRD_CONV_LOCAL_BYTES = 16 * 1024
};

/* Describes one phase along one dimension: its `count` result elements and what they read. Element number q of the phase is element first + q *
 * step of the result. It is the sum, for j from 0 to ntaps - 1, of source[q * source_step + origin + j * tap_stride] times kernel[tap + j *
 * tap_step]. grd_conv_choose has checked that all these numbers fit into 32 bits. */
struct grd_conv_axis {
    int32_t count, first, step, source_step, origin, tap_stride, tap, tap_step, ntaps;
};

/* A phase: all result elements that are sums over the same kernel elements. There are several phases if the result is an image and the stride is
 * above 1. */
struct grd_conv_phase {
    struct grd_conv_axis axes[GRD_CONV_DIMS];
    int64_t places, taps; /* the phase has `places` result elements, each of which is a sum over `taps` kernel elements */
    int64_t offsets;      /* index in grd_conv_run.offsets at which the offsets of this phase begin */
    int64_t weights;      /* index, in the packed weights of a group, at which the weights of this phase begin */
    /* Number of chains of this phase; 0 if none are used. A chain is a list of kernel elements that read the same source row, each for a different
     * output row. */
    int64_t nchains;
};

/* Everything about one direct convolution that its loops need. */
struct grd_conv_run {
    const struct grd_conv *c;
    const struct grd_conv_row *kernel;
    const struct grd_product_kernels *product;
    /* widen: converts elements from the operands' dtype to the dtype of the computation. narrow: converts back. NULL if the two dtypes are equal. */
    grd_loop_kernel *widen, *narrow;
    /* itemsize: bytes of an element of the operands; size: bytes of an element in the dtype of the computation */
    int64_t itemsize, size;
    /* Per group: the source has `channels` channels, the result has `rows` channels, and the kernel has `taps` elements per channel. */
    int64_t channels, rows, taps;
    bool is_lines; /* true if a vector holds several output positions, false if it holds several channels */
    /* Number of packed weights for each kernel element of each source channel. It is `rows`, rounded up to full vectors if vectors hold channels. */
    int64_t width;

    /* The spatial sizes of the source. The source is the operand that is read through windows: the image or, for GRD_CONV_IMAGE, the output. */
    const int64_t *size_seen;
    /* is_copied: the kernel reads a padded copy of the source. is_local: each task makes a copy of the samples that it reads. */
    bool is_copied, is_local;
    /* before: number of zeros before the source in its padded copy; extent: size of the copy */
    int64_t before[GRD_CONV_DIMS], extent[GRD_CONV_DIMS];
    /* The order of elements in the padded copy. Along dimension d, the indices with the same remainder modulo split[d] form a part. Parts begin
     * part[d] elements apart, and neighbouring elements of a part are source[d] elements apart. So the offset of index i is
     *
     *     i % split[d] * part[d] + i / split[d] * source[d]
     *
     * If vectors hold output positions and the result is not an image, split[d] is the stride of the convolution. The elements that one vector loads
     * are then contiguous in the copy. Otherwise split[d] is 1. If the source is not copied, source[d] is its stride along dimension d. */
    int64_t split[GRD_CONV_DIMS], part[GRD_CONV_DIMS], source[GRD_CONV_DIMS];
    int64_t source_sample, source_channel;
    int64_t wave; /* number of items that are computed together; an item is one group of channels of one sample */

    int nphases;
    /* Totals over all phases (sets of result elements that use the same kernel elements). noffsets: offsets of kernel elements. weights: packed
     * weights of a group. places: result elements of a channel. */
    int64_t noffsets, weights, places;

    /* The members below are set once the operands are known. `from` is the address of the source. `left` is the address of the operand that is not
     * read through windows. */
    const grd_tensor *seen;
    const char *from, *left, *bias;
    char *copy, *packed, *to;
    /* If the result is computed with channels first and transposed in the end, `turned` is the memory of the result, and `to` is scratch memory.
     * Otherwise `turned` is NULL. */
    char *turned;
    int32_t *offsets;
    /* array of chains (kernel elements that read one source row), used if is_lines; a phase's chains begin at index phase.offsets */
    struct grd_conv_chain *chains;
    /* distances in the result, in elements, from sample to sample, from channel to channel and from position to position */
    int64_t to_sample, to_row, to_column;
    int64_t seen_dims;     /* number of spatial dimensions of the source tensor (1 to 3) */
    grd_loop_kernel *cast; /* copies elements and converts them to the dtype of the computation if needed */
    /* The items that are computed now are [first_item, first_item + items). An item is one group of channels of one sample. */
    int64_t first_item, items;

    /* This must be the last member, because describe() sets only the members before it to 0. Only the first nphases elements are ever written. */
    struct grd_conv_phase phases[GRD_CONV_MOST_PHASES];
};

/* The data that the plan functions of convolution.c hand to the implementations, in the member `state` of struct grd_plan. */
struct grd_conv_state {
    struct grd_conv conv;
    struct grd_conv_run run; /* valid if conv.way is GRD_CONV_DIRECT */
};

static inline struct grd_conv_run *grd_conv_run_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct grd_conv_state) <= GRD_PLAN_STATE, "room in the plan");
    return &((struct grd_conv_state *)(uintptr_t)p->state)->run;
}

/* Returns n / size, rounded up. */
static inline int64_t grd_conv_pieces(int64_t n, int64_t size)
{
    return n / size + (n % size > 0);
}

/* Returns the number of the sample to which `item` belongs. An item is one group of channels of one sample. Items are numbered sample by sample
 * or, for the gradient of a weight, group by group. */
static inline int64_t grd_conv_sample(const struct grd_conv_run *r, int64_t item)
{
    return r->c->kind == GRD_CONV_WEIGHT ? item % r->c->batch : item / r->c->groups;
}

/* Returns the number of the group to which `item` belongs. An item is one group of channels of one sample. Items are numbered sample by sample or,
 * for the gradient of a weight, group by group. */
static inline int64_t grd_conv_group(const struct grd_conv_run *r, int64_t item)
{
    return r->c->kind == GRD_CONV_WEIGHT ? item / r->c->batch : item % r->c->groups;
}

/* Returns the distance, in elements of the source or its copy, from one sample to the next in the same group. If the source is copied, returns the
 * distance in the copy from one item to the next, where an item is one group of channels of one sample. In this case, consecutive items must be
 * consecutive samples of one group. */
static inline int64_t grd_conv_seen_step(const struct grd_conv_run *r)
{
    return r->is_copied ? r->channels * r->source_channel : r->source_sample;
}

/* Returns the address of the source elements of an item: one group of channels of one sample. */
static inline const char *grd_conv_seen(const struct grd_conv_run *r, int64_t item)
{
    const int64_t channel = r->channels * r->source_channel;
    return r->from + (r->is_copied ? (item - r->first_item) * channel
                                   : grd_conv_sample(r, item) * r->source_sample + grd_conv_group(r, item) * channel) *
                         r->size;
}

/* Copies the channels of an item (one group of one sample) into the interior of `to`, whose border must already be zero, and returns `to`. */
const char *grd_conv_copy_item(const struct grd_conv_run *r, int64_t item, char *to);

/* Returns the distance along dimension `dim`, in elements of the source, from the beginning of a window to the element that kernel index `tap` of the
 * phase multiplies. A phase is a set of result elements that use the same kernel elements. */
int64_t grd_conv_tap_offset(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int dim, int64_t tap);

/* Writes to `to` the offsets, in elements of the source, at which the windows of elements [first, first + n) of a phase begin. A phase is a set of
 * result elements that use the same kernel elements. The window of element 0 of the phase begins at offset `start`. */
void grd_conv_fill_places(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t start, int64_t first, int64_t n,
                          int32_t *to);
/* Returns the index, within a channel of the result, of element number `place` of a phase (a set of result elements that use the same kernel
 * elements). Neighbouring elements of the phase in a row are phase->axes[2].step apart. */
int64_t grd_conv_place_at(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t place);

/* Packs weights of one group for one phase (a set of result elements that use the same kernel elements) into `to`. There is one row for each source
 * channel in [begin, end) and each kernel element of the phase. A row holds the weights of `width` result channels from channel `first` on. */
void grd_conv_pack_channels(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                            int64_t begin, int64_t end, char *to);
/* Packs weights of one group for one phase (a set of result elements that use the same kernel elements). These are the weights between all source
 * channels and `width` result channels, from channel `first` on. The packed weights go to their place in `packed`, which holds the weights of all
 * groups. */
void grd_conv_pack_weights(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                           char *packed);
/* The six functions below run the two implementations: "panels" if a vector holds several channels, "lines" if it holds several output positions.
 * *_bytes returns the bytes of the packed weights, and *_begin packs the weights. *_run computes `items` items, beginning with number r->first_item.
 * An item is one group of channels of one sample. */
int64_t grd_conv_panels_bytes(const struct grd_conv_run *r);
void grd_conv_panels_begin(struct grd_conv_run *r);
void grd_conv_panels_run(struct grd_conv_run *r, int64_t items);
int64_t grd_conv_lines_bytes(const struct grd_conv_run *r);
void grd_conv_lines_begin(struct grd_conv_run *r);
void grd_conv_lines_run(struct grd_conv_run *r, int64_t items);

#endif
