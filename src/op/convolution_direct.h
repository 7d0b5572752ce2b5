/* Convolves floating-point numbers directly, without copying windows. The operand that is read through windows (the "source", mostly the image) is
 * read in place or, if windows reach over its edge, from a copy with a border of zeros. Output positions and taps (kernel elements) are offsets into
 * the source. There are two implementations:
 *
 *  panels   vector lanes hold channels of the result (convolution_channel_lanes.c)
 *  lines    vector lanes hold output positions (convolution_place_lanes.c); for results with few channels, and for long rows with few products per
 *           position
 *
 * If the result is an image (GRD_CONV_IMAGE), its elements are computed in phases, by their remainder modulo the stride, because the elements of one
 * phase are reached by the same taps. Other results are one phase.
 *
 * An item is a group of channels of a sample. As many items are computed together (a wave) as have copies that fit into a cache: sample by sample or,
 * for the gradient of a weight, group by group. */
#ifndef GRD_OP_CONVOLUTION_DIRECT_H
#define GRD_OP_CONVOLUTION_DIRECT_H

#include "core/tensor.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/convolution.h"

enum {
    GRD_CONV_MOST_PHASES = 16,
    /* a direct convolution is used only if the padded copy of a sample has at most 4 times the sample's elements plus this number */
    GRD_CONV_LEAST_COPIED = 1 << 22,
    /* if one group of channels of one sample takes at most this number of bytes, each task makes its own padded copy of the channels it reads */
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
    /* Number of chains of this phase; 0 if none are used. A chain is kernel elements that read one source row at successive output rows. */
    int64_t nchains;
};

/* Everything about one direct convolution that its loops need. */
struct grd_conv_run {
    const struct grd_conv *c;
    const struct grd_conv_row *kernel;
    const struct grd_product_kernels *product;
    grd_loop_kernel *widen, *narrow; /* convert the operands' dtype to that of the computation and back; both NULL if these are equal */
    int64_t itemsize, size;          /* bytes of an element of the operands (itemsize), and in the dtype of the computation (size) */
    /* Per group: the source has `channels` channels, the result has `rows` channels, and the kernel has `taps` elements per channel. */
    int64_t channels, rows, taps;
    bool is_lines; /* true if a vector holds several output positions, false if it holds several channels */
    /* Number of packed weights for each kernel element of each source channel: `rows` or, if vectors hold channels, `rows` rounded up to full
     * vectors. */
    int64_t width;

    /* The source is the operand that is read through windows: the image or, for GRD_CONV_IMAGE, the output. size_seen: its spatial sizes. In a
     * padded copy, element i of a dimension is at i % split * part + i / split * source. `split` is above 1 only if vectors hold output positions
     * and the stride is above 1; then the elements that one vector loads are contiguous in the copy. */
    const int64_t *size_seen;
    /* is_copied: the kernel reads a padded copy of the source. is_local: each task makes a copy of the samples that it reads. */
    bool is_copied, is_local;
    int64_t before[GRD_CONV_DIMS], extent[GRD_CONV_DIMS]; /* per dimension: zeros before the source in its padded copy; size of this copy */
    int64_t split[GRD_CONV_DIMS], part[GRD_CONV_DIMS], source[GRD_CONV_DIMS];
    int64_t source_sample, source_channel;
    int64_t wave; /* number of items (a group of a sample) that are computed together */

    int nphases;
    /* totals over all phases: offsets of kernel elements, packed weights of a group, and result elements of a channel */
    int64_t noffsets, weights, places;

    /* The members below are set once the operands are known. `from` is the address of the source, and `left` that of the operand without windows. */
    const grd_tensor *seen;
    const char *from, *left, *bias;
    char *copy, *packed, *to;
    char *turned; /* the result's memory if its channels are innermost and `to` is scratch memory with channels first; otherwise NULL */
    int32_t *offsets;
    /* array of chains (kernel elements that read one source row), used if is_lines; a phase's chains begin at index phase.offsets */
    struct grd_conv_chain *chains;
    int64_t to_sample, to_row, to_column; /* elements of the result between two samples, two channels and two positions */
    int64_t seen_dims;                    /* number of spatial dimensions of the source tensor (1 to 3) */
    grd_loop_kernel *cast;                /* copies elements, converted to the dtype of the computation if that differs */
    /* items (an item is one group of channels of one sample) [first_item, first_item + items) are computed now */
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

/* Returns the distance, in elements of the source or its copy, from one sample to the next in the same group. It is used where samples are read in
 * place or are copied one after the other. */
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

/* Returns how far, in elements of the source, kernel index `tap` along dimension `dim` is from the beginning of a window. */
int64_t grd_conv_tap_offset(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int dim, int64_t tap);

/* Writes to `to` the offsets, in elements of the source, of the windows that result elements [first, first + n) of a phase read. The window of
 * element 0 begins at offset `start`. */
void grd_conv_fill_places(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t start, int64_t first, int64_t n,
                          int32_t *to);
/* Returns the index, within a channel of the result, of element number `place` of a phase. Further elements of the phase in the same row follow at
 * a distance of phase->axes[2].step. */
int64_t grd_conv_place_at(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t place);

/* Packs weights of one group and phase into `to`, for `width` channels of the result from channel `first` on, as rows of `width` numbers. There is
 * one row for each source channel in [begin, end) and kernel element of the phase. */
void grd_conv_pack_channels(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                            int64_t begin, int64_t end, char *to);
/* Packs the weights of one group for one phase (result elements that use the same kernel elements): for all source channels and for `width`
 * channels of the result from channel `first` on. `packed` holds the weights of all groups; the function finds the place in it. */
void grd_conv_pack_weights(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                           char *packed);
/* The six functions below run the two implementations: "panels" if a vector holds several channels, "lines" if it holds several output positions.
 * *_bytes returns the bytes of the packed weights, and *_begin packs the weights. *_run computes `items` items (an item is one group of channels
 * of one sample) from number r->first_item on. */
int64_t grd_conv_panels_bytes(const struct grd_conv_run *r);
void grd_conv_panels_begin(struct grd_conv_run *r);
void grd_conv_panels_run(struct grd_conv_run *r, int64_t items);
int64_t grd_conv_lines_bytes(const struct grd_conv_run *r);
void grd_conv_lines_begin(struct grd_conv_run *r);
void grd_conv_lines_run(struct grd_conv_run *r, int64_t items);

#endif
