/* Running a convolution of floating numbers without a copy of its windows: what the two ways of it share. What is seen is read where it lies, or,
 * where windows reach over its edge, from a copy with a border of zeros; taps and places are offsets into it.
 *
 *   panels   channels of the result are lanes of vectors (convolution_channel_lanes.c)
 *   lines    places are lanes: for results of few channels, and for long rows of places with few products each (convolution_place_lanes.c)
 *
 * The elements of an image are computed in phases, by their remainders by the strides: those of one see the same taps. Places are one phase.
 *
 * An item is a group of a sample. Items are run in waves, whose copies fit into a cache: sample by sample, or, for the gradient of a weight, group
 * by group. */
#ifndef GRD_OP_CONVOLUTION_DIRECT_H
#define GRD_OP_CONVOLUTION_DIRECT_H

#include "core/tensor.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/convolution.h"

enum {
    GRD_CONV_MOST_PHASES = 16,
    GRD_CONV_LEAST_COPIED = 1 << 22, /* a copy with its border may have so many elements however small the image is */
    GRD_CONV_LOCAL_BYTES = 16 * 1024 /* most bytes of an item that a task copies for itself */
};

/* Along one dimension: place q, of `count`, is the element `first` + q * step of the result, and sees the element q * source_step + origin + j *
 * tap_stride of the source through the tap tap + j * tap_step, for j of `ntaps`. grd_conv_choose has checked that these numbers are small. */
struct grd_conv_axis {
    int32_t count, first, step, source_step, origin, tap_stride, tap, tap_step, ntaps;
};

struct grd_conv_phase {
    struct grd_conv_axis axes[GRD_CONV_DIMS];
    int64_t places, taps; /* elements of the result, taps that they see */
    int64_t offsets;      /* where the offsets of the taps of all channels begin */
    int64_t weights;      /* where the panels of a group begin, in elements */
    int64_t nchains;
};

struct grd_conv_run {
    const struct grd_conv *c;
    const struct grd_conv_row *kernel;
    const struct grd_product_kernels *product;
    grd_loop_kernel *widen, *narrow; /* NULL if the dtype itself is computed in */
    int64_t itemsize, size;          /* bytes of an element, and of one computed in */
    int64_t channels, rows, taps;    /* of a group: channels of the source and of the result; taps of the kernel */
    bool is_lines;                   /* places are lanes, not channels */
    int64_t width;                   /* packed elements per tap of a channel: the rows, in panels rounded up to a multiple of the lanes */

    /* The source as the kernel reads it, with strides in elements. A copy may be split into parts by the remainders of the index, so that lanes are
     * contiguous: element i along a dimension is at i % split * part + i / split * source. */
    const int64_t *size_seen;
    bool is_copied, is_local;                             /* a local copy is made by each task that reads it */
    int64_t before[GRD_CONV_DIMS], extent[GRD_CONV_DIMS]; /* zeros before it, and its size with those on both sides */
    int64_t split[GRD_CONV_DIMS], part[GRD_CONV_DIMS], source[GRD_CONV_DIMS];
    int64_t source_sample, source_channel;
    int64_t wave; /* items at a time; of the gradient of a weight, all of some groups */

    int nphases;
    int64_t noffsets, weights, places; /* of all phases: offsets of taps, elements of weights of a group, elements of the result */

    /* The call. */
    const grd_tensor *seen;
    const char *from, *left, *bias;
    char *copy, *packed, *to;
    char *turned; /* NULL, or where the channels of the result are innermost, which `to` holds before */
    int32_t *offsets;
    struct grd_conv_chain *chains;        /* if places are lanes: the chains of all phases, each beginning where its offsets do */
    int64_t to_sample, to_row, to_column; /* strides of the result, in elements: of samples, channels, places */
    int64_t seen_dims;                    /* strides of the source, next to those of samples and channels */
    grd_loop_kernel *cast;                /* converts to the dtype that is computed in */
    int64_t first_item, items;            /* the first item of the wave, and its number of items */

    struct grd_conv_phase phases[GRD_CONV_MOST_PHASES]; /* the last member, since only as many as there are phases are written */
};

/* What the plan of a convolution hands to its run. */
struct grd_conv_state {
    struct grd_conv conv;
    struct grd_conv_run run; /* valid if the convolution is direct */
};

static inline struct grd_conv_run *grd_conv_run_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct grd_conv_state) <= GRD_PLAN_STATE, "room in the plan");
    return &((struct grd_conv_state *)(uintptr_t)p->state)->run;
}

static inline int64_t grd_conv_pieces(int64_t n, int64_t size)
{
    return n / size + (n % size > 0);
}

static inline int64_t grd_conv_sample(const struct grd_conv_run *r, int64_t item)
{
    return r->c->kind == GRD_CONV_WEIGHT ? item % r->c->batch : item / r->c->groups;
}

static inline int64_t grd_conv_group(const struct grd_conv_run *r, int64_t item)
{
    return r->c->kind == GRD_CONV_WEIGHT ? item / r->c->batch : item % r->c->groups;
}

/* Returns the elements from what a sample of the wave sees to what the next sample of its group sees, where the two follow each other. */
static inline int64_t grd_conv_seen_step(const struct grd_conv_run *r)
{
    return r->is_copied ? r->channels * r->source_channel : r->source_sample;
}

/* Returns the image that an item of the wave sees. */
static inline const char *grd_conv_seen(const struct grd_conv_run *r, int64_t item)
{
    const int64_t channel = r->channels * r->source_channel;
    return r->from + (r->is_copied ? (item - r->first_item) * channel
                                   : grd_conv_sample(r, item) * r->source_sample + grd_conv_group(r, item) * channel) *
                         r->size;
}

/* Copies the planes of an item to `to`, which holds zeros or another item; returns `to`. */
const char *grd_conv_copy_item(const struct grd_conv_run *r, int64_t item, char *to);

/* Returns the part of a tap's offset that is due to one dimension. */
int64_t grd_conv_tap_offset(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int dim, int64_t tap);

/* Writes where places [first, first + n) begin in the source, if place 0 begins at `start`. */
void grd_conv_fill_places(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t start, int64_t first, int64_t n,
                          int32_t *to);
/* Returns the offset, in elements of a plane of the result, of a place of a phase; the following places of its row are `step` elements further
 * each. */
int64_t grd_conv_place_at(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t place);

/* Packs the weights of `width` rows from `first` on, of a group and a phase: a row of the panel for each tap of channels [begin, end). */
void grd_conv_pack_channels(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                            int64_t begin, int64_t end, char *to);
/* Packs the weights of all channels to their place in `packed`, which holds all groups. */
void grd_conv_pack_weights(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                           char *packed);
/* Each of the two ways has three functions: the bytes of what it packs, what it does before the waves, and a wave of items. */
int64_t grd_conv_panels_bytes(const struct grd_conv_run *r);
void grd_conv_panels_begin(struct grd_conv_run *r);
void grd_conv_panels_run(struct grd_conv_run *r, int64_t items);
int64_t grd_conv_lines_bytes(const struct grd_conv_run *r);
void grd_conv_lines_begin(struct grd_conv_run *r);
void grd_conv_lines_run(struct grd_conv_run *r, int64_t items);

#endif
