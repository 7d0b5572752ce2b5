/* Running a convolution of floating numbers without a copy of its windows: see convolution.h. What is seen is read where it lies, or, where windows reach over its
 * edge, from a copy with a border of zeros. The sums of a block of places and a panel of channels are on the stack; the kernel (kernel/conv.h) adds to them the products
 * of a panel of weights with what the places see.
 *
 *   places   rows of the kernel are places, its columns channels, the panel holds weights
 *   image    likewise, for each remainder of the image's elements by the strides: those see the same taps
 *   weight   rows are the taps of channels, columns channels of the places, and the panel holds the places' gradient
 *
 * Invariant: blocks depend on shapes alone, and each is computed in one order, so the bits do not depend on the number of threads. */
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/convolution.h"
#include "op/product.h"

enum {
    BLOCK_ROWS = 128,
    DEPTH = 512,                 /* of a panel at a time: it stays in the second-level cache */
    MOST_WIDTH = 48,             /* of a panel, in elements of 4 bytes */
    SUMS_BYTES = BLOCK_ROWS * MOST_WIDTH * 4,
    MOST_SLOTS = 16,             /* tasks that have memory of their own at a time */
    LEAST_CHANNELS = 8,          /* of the result: with fewer, most of a vector would be wasted */
    MOST_PHASES = 16,
    WAVE_BYTES = 32 << 20,       /* of copies with a border, if those are of more than one sample */
    TASK_WORK = 1 << 18          /* multiplications worth a task */
};

/* Along one dimension: place q, of `count`, is the element `first` + q * step of the result, and sees the element q * source_step + origin + j * tap_stride of the source
 * through the tap tap + j * tap_step, for j of `ntaps`. */
struct axis {
    int64_t count, first, step, source_step, origin, tap_stride, tap, tap_step, ntaps;
};

struct phase {
    struct axis axes[GRD_CONV_DIMS];
    int64_t places, taps; /* elements of the result, taps that they see */
    int64_t offsets;      /* where those of the taps of all channels begin, of all offsets */
    int64_t weights;      /* where the panels of a group begin, in elements */
    int64_t first_block;  /* of a sample and a group */
};

struct run {
    const struct grd_conv *c;
    const struct grd_conv_row *kernel;
    const struct grd_product_kernels *product;
    grd_loop_kernel *widen, *narrow; /* NULL: computed in the dtype itself */
    int64_t itemsize, size;          /* bytes of an element, and of one computed in */
    int64_t channels, rows, taps;    /* of a group: channels of the source and of the result; taps of the kernel */
    int64_t vectors, panels;         /* of a group's rows, or columns of the kernel */

    /* The source as the kernel reads it: strides in elements. */
    const int64_t *size_seen;
    bool is_copied;
    int64_t before[GRD_CONV_DIMS], extent[GRD_CONV_DIMS]; /* zeros before it, and its size with those on both sides */
    int64_t source_sample, source_channel, source[GRD_CONV_DIMS];
    int64_t wave; /* samples that are copied at a time */

    int nphases;
    struct phase phases[MOST_PHASES];
    int64_t noffsets, weights, blocks; /* offsets of taps, elements of weights of a group, blocks of a sample and a group */

    /* The call. */
    const grd_tensor *seen;
    const char *from, *left, *bias;
    char *copy, *packed, *to;
    int32_t *offsets;
    int64_t to_sample, to_row, to_column; /* strides of the result, in elements: of samples, channels, places */
    int64_t left_sample, left_channel, left_place; /* likewise of the places' gradient */
    int64_t seen_dims;                    /* of the source, beside samples and channels */
    grd_loop_kernel *cast;                /* to what is computed in */
    int64_t first_sample, first_task;     /* of the wave */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* ---- Which taps see what ---------------------------------------------------------------------------------------------------------- */

static struct axis axis_of_places(const struct grd_conv *c, int dim)
{
    return (struct axis){.count = c->places[dim],
                         .step = 1,
                         .source_step = c->stride[dim],
                         .origin = -c->padding[dim],
                         .tap_stride = c->dilation[dim],
                         .tap_step = 1,
                         .ntaps = c->kernel[dim]};
}

/* The elements i of the image for which (i + padding) % stride is `remainder`: such see taps t where (remainder - t * dilation) % stride is 0. */
static struct axis axis_of_image(const struct grd_conv *c, int dim, int64_t remainder)
{
    const int64_t stride = c->stride[dim], padding = c->padding[dim], dilation = c->dilation[dim];
    const int64_t first = (remainder - padding % stride + stride) % stride;
    struct axis axis = {.count = c->image[dim] > first ? ceil_div(c->image[dim] - first, stride) : 0, .first = first, .step = stride, .source_step = 1};
    int64_t last = -1;
    axis.tap = -1;
    axis.tap_step = 1;
    for (int64_t t = 0; t < c->kernel[dim] && t <= 2 * stride && last < 0; t++)
        if ((remainder - t % stride * (dilation % stride) % stride + stride) % stride == 0) {
            if (axis.tap >= 0)
                last = t;
            else
                axis.tap = t;
        }
    if (axis.tap < 0)
        return axis;
    axis.tap_step = last < 0 ? 1 : last - axis.tap;
    axis.ntaps = last < 0 ? 1 : (c->kernel[dim] - 1 - axis.tap) / axis.tap_step + 1;
    axis.origin = (first + padding - remainder) / stride + floor_div(remainder - axis.tap * dilation, stride);
    axis.tap_stride = -(axis.tap_step * dilation / stride);
    return axis;
}

/* Widens [low, high] to the elements of the source that are seen along a dimension. */
static void reach(const struct axis *axis, int64_t *low, int64_t *high)
{
    if (axis->count == 0 || axis->ntaps == 0)
        return;
    const int64_t first = axis->origin + grd_least(0, (axis->ntaps - 1) * axis->tap_stride);
    const int64_t last = axis->origin + (axis->count - 1) * axis->source_step + grd_greatest(0, (axis->ntaps - 1) * axis->tap_stride);
    *low = grd_least(*low, first);
    *high = grd_greatest(*high, last);
}

/* Finds the phases, how far they see, and where their offsets, weights and blocks are. */
static void find_phases(struct run *r)
{
    const struct grd_conv *c = r->c;
    const bool image = c->kind == GRD_CONV_IMAGE;
    int64_t low[GRD_CONV_DIMS] = {0}, high[GRD_CONV_DIMS];
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        high[d] = r->size_seen[d] - 1;
    r->nphases = image ? (int)grd_conv_product(c->stride) : 1;
    for (int i = 0; i < r->nphases; i++) {
        struct phase *phase = &r->phases[i];
        int64_t rest = i;
        phase->places = phase->taps = 1;
        for (int d = GRD_CONV_DIMS - 1; d >= 0; d--) {
            phase->axes[d] = image ? axis_of_image(c, d, rest % c->stride[d]) : axis_of_places(c, d);
            rest /= c->stride[d];
            phase->places *= phase->axes[d].count;
            phase->taps *= phase->axes[d].ntaps;
        }
        for (int d = 0; d < GRD_CONV_DIMS && phase->places > 0 && phase->taps > 0; d++)
            reach(&phase->axes[d], low + d, high + d);
        phase->offsets = r->noffsets;
        phase->weights = r->weights;
        phase->first_block = r->blocks;
        r->noffsets += r->channels * phase->taps;
        r->weights += r->channels * phase->taps * r->vectors * r->kernel->lanes;
        r->blocks += ceil_div(phase->places, BLOCK_ROWS);
    }
    for (int d = 0; d < GRD_CONV_DIMS; d++) {
        r->before[d] = -low[d];
        r->extent[d] = high[d] - low[d] + 1;
    }
}

/* ---- Whether, and with how much memory ------------------------------------------------------------------------------------------------- */

/* All that follows from shapes; strides of the source are those of a copy. */
static void describe(const struct grd_conv *c, struct run *r)
{
    const grd_dtype computed = grd_product_dtype(c->dtype);
    const bool image = c->kind == GRD_CONV_IMAGE;
    memset(r, 0, sizeof *r);
    r->c = c;
    r->kernel = grd_kernels->conv[computed];
    r->product = grd_kernels->gemm[computed];
    r->itemsize = grd_dtype_size(c->dtype);
    r->size = grd_dtype_size(computed);
    if (computed != c->dtype) {
        r->widen = grd_cast_kernel(c->dtype, computed);
        r->narrow = grd_cast_kernel(computed, c->dtype);
    }
    r->channels = image ? c->outer : c->inner;
    r->rows = image ? c->inner : c->outer;
    r->taps = grd_conv_product(c->kernel);
    r->vectors = ceil_div(r->rows, r->kernel->lanes);
    r->panels = ceil_div(r->vectors, GRD_CONV_VECTORS);
    r->size_seen = image ? c->places : c->image;
    find_phases(r);
    r->source[2] = 1;
    r->source[1] = r->extent[2];
    r->source[0] = r->extent[1] * r->extent[2];
    r->source_channel = r->extent[0] * r->source[0];
    r->source_sample = c->groups * r->channels * r->source_channel;
    r->wave = grd_least(c->batch, grd_greatest(1, WAVE_BYTES / (r->source_sample * r->size)));
    if (c->kind == GRD_CONV_WEIGHT)
        r->wave = c->batch;
}

bool grd_conv_is_direct(const struct grd_conv *c)
{
    const grd_dtype computed = grd_product_dtype(c->dtype);
    if (grd_kernels->conv[computed] == NULL || (c->kind == GRD_CONV_IMAGE ? c->inner : c->outer) < LEAST_CHANNELS)
        return false;
    const int64_t most = INT32_MAX / 4;
    double phases = 1, elements = (double)c->groups * (double)(c->kind == GRD_CONV_IMAGE ? c->outer : c->inner);
    for (int d = 0; d < GRD_CONV_DIMS; d++) {
        if (c->padding[d] > most || c->dilation[d] > most || c->stride[d] > most || c->kernel[d] > most || c->image[d] > most || c->places[d] > most ||
            c->places[d] * c->stride[d] + c->kernel[d] * c->dilation[d] > most)
            return false;
        phases *= c->kind == GRD_CONV_IMAGE ? (double)c->stride[d] : 1;
        elements *= c->kind == GRD_CONV_IMAGE ? (double)c->places[d] : (double)c->image[d];
    }
    if (phases > MOST_PHASES || c->batch * c->groups == 0 || elements == 0)
        return false;
    struct run r;
    describe(c, &r);
    const double copied = (double)c->groups * (double)r.channels * (double)r.extent[0] * (double)r.extent[1] * (double)r.extent[2];
    return copied < (double)most && copied <= 4 * elements + 4096;
}

/* True if the kernel can read the source where it lies. */
static bool lies_well(const struct run *r, const grd_tensor *seen)
{
    double reach = 0;
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        if (r->extent[d] != r->size_seen[d])
            return false;
    for (int d = 0; d < seen->ndim; d++)
        reach += (double)(seen->sizes[d] - 1) * (double)llabs(seen->strides[d]);
    return r->widen == NULL && reach < INT32_MAX;
}

/* Bytes of a panel of the places' gradient, for each task that computes a part of a weight's. */
static int64_t panel_bytes(const struct run *r)
{
    return DEPTH * GRD_CONV_VECTORS * r->kernel->lanes * r->size;
}

static int64_t weight_tasks(const struct run *r)
{
    return r->c->groups * r->panels * ceil_div(r->channels * r->taps, BLOCK_ROWS);
}

static size_t rounded(int64_t bytes)
{
    return (size_t)((bytes + 63) / 64 * 64);
}

/* The parts of scratch, one after the other. */
struct parts {
    size_t offsets, packed, copy, left, all;
};

static struct parts parts_of(const struct run *r, bool is_copied)
{
    const struct grd_conv *c = r->c;
    const bool weight = c->kind == GRD_CONV_WEIGHT;
    struct parts parts;
    parts.offsets = 64;
    parts.packed = parts.offsets + rounded((r->noffsets + (weight ? r->phases[0].places : 0)) * (int64_t)sizeof(int32_t));
    parts.copy = parts.packed + rounded(weight ? grd_least(MOST_SLOTS, weight_tasks(r)) * panel_bytes(r) : c->groups * r->weights * r->size);
    parts.left = parts.copy + (is_copied ? rounded(r->wave * r->source_sample * r->size) : 0);
    const int64_t multiplied = weight ? c->batch * c->groups * r->rows * r->phases[0].places : c->groups * c->outer * c->inner * r->taps;
    parts.all = parts.left + (r->widen != NULL ? rounded(multiplied * r->size) : 0);
    return parts;
}

bool grd_conv_prepare_direct(struct grd_plan *p)
{
    struct run r;
    describe(grd_conv_of(p), &r);
    p->scratch_bytes = parts_of(&r, !lies_well(&r, p->in[0])).all;
    return true;
}

/* ---- Before the tasks ---------------------------------------------------------------------------------------------------------------- */

/* Planes [begin, end), of all channels of the wave's samples, into the copy, with their borders. */
static void copy_planes(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const grd_tensor *t = r->seen;
    const int64_t channels = r->c->groups * r->channels, n = t->ndim, dims = r->seen_dims;
    int64_t strides[GRD_CONV_DIMS] = {0};
    for (int64_t d = 0; d < dims; d++)
        strides[GRD_CONV_DIMS - dims + d] = t->strides[n - dims + d];
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t sample = r->first_sample + plane / channels, channel = plane % channels;
        const char *from = t->data + ((n == dims + 2 ? sample * t->strides[0] : 0) + channel * t->strides[n - dims - 1]) * r->itemsize;
        char *const to = r->copy + plane * r->source_channel * r->size;
        memset(to, 0, (size_t)(r->source_channel * r->size));
        for (int64_t i = 0; i < r->size_seen[0]; i++)
            for (int64_t j = 0; j < r->size_seen[1]; j++) {
                const char *row = from + (i * strides[0] + j * strides[1]) * r->itemsize;
                char *line = to + ((r->before[0] + i) * r->source[0] + (r->before[1] + j) * r->source[1] + r->before[2]) * r->size;
                if (r->widen == NULL && strides[2] == 1)
                    memcpy(line, row, (size_t)(r->size_seen[2] * r->itemsize));
                else
                    r->cast(r->size_seen[2], (char *const[]){line, (char *)(uintptr_t)row}, (const int64_t[]){r->size, strides[2] * r->itemsize}, NULL);
            }
    }
}

/* Writes the offsets of the taps of all channels, phase by phase. */
static void fill_offsets(struct run *r)
{
    for (int i = 0; i < r->nphases; i++) {
        const struct phase *phase = &r->phases[i];
        const struct axis *a = phase->axes;
        int32_t *to = r->offsets + phase->offsets;
        for (int64_t channel = 0; channel < r->channels; channel++)
            for (int64_t j = 0; j < a[0].ntaps; j++)
                for (int64_t k = 0; k < a[1].ntaps; k++)
                    for (int64_t l = 0; l < a[2].ntaps && phase->taps > 0; l++)
                        *to++ = (int32_t)(channel * r->source_channel + (a[0].origin + r->before[0] + j * a[0].tap_stride) * r->source[0] +
                                          (a[1].origin + r->before[1] + k * a[1].tap_stride) * r->source[1] +
                                          (a[2].origin + r->before[2] + l * a[2].tap_stride) * r->source[2]);
    }
}

/* The offsets of places [first, first + n) of a phase, to which those of taps are added. */
static void fill_places(const struct run *r, const struct phase *phase, int64_t first, int64_t n, int32_t *to)
{
    const struct axis *a = phase->axes;
    int64_t l = first % a[2].count, k = first / a[2].count % a[1].count, j = first / a[2].count / a[1].count;
    for (int64_t i = 0; i < n; i++) {
        to[i] = (int32_t)(j * a[0].source_step * r->source[0] + k * a[1].source_step * r->source[1] + l * a[2].source_step * r->source[2]);
        if (++l == a[2].count) {
            l = 0;
            if (++k == a[1].count) {
                k = 0;
                j++;
            }
        }
    }
}

/* Vectors of a panel: as even as they can be. */
static int vectors_of(const struct run *r, int64_t panel)
{
    return (int)(r->vectors / r->panels + (panel < r->vectors % r->panels));
}

static int64_t first_vector(const struct run *r, int64_t panel)
{
    return panel * (r->vectors / r->panels) + grd_least(panel, r->vectors % r->panels);
}

/* Weights of a phase and a group into panels: items [begin, end) are channels of the source, of each group, phase and panel. */
static void pack_weights(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const bool image = r->c->kind == GRD_CONV_IMAGE;
    const int64_t lanes = r->kernel->lanes, of_channel = image ? r->c->inner * r->taps : r->taps, of_row = image ? r->taps : r->c->inner * r->taps;
    for (int64_t item = begin; item < end; item++) {
        const int64_t panel = item % r->panels, which = item / r->panels % r->nphases, group = item / r->panels / r->nphases;
        const struct phase *phase = &r->phases[which];
        const struct axis *a = phase->axes;
        const int64_t first = first_vector(r, panel) * lanes, width = vectors_of(r, panel) * lanes, columns = grd_least(width, r->rows - first);
        const char *from = r->left + (group * r->c->outer * r->c->inner * r->taps + first * of_row) * r->size;
        char *to = r->packed + (group * r->weights + phase->weights + r->channels * phase->taps * first) * r->size;
        if (phase->taps == r->taps && !image) { /* taps of all channels are neighbours */
            r->product->pack(r->channels * r->taps, columns, width, from, 1, of_row, to);
            continue;
        }
        for (int64_t channel = 0; channel < r->channels && phase->taps > 0; channel++)
            for (int64_t j = 0; j < a[0].ntaps; j++)
                for (int64_t k = 0; k < a[1].ntaps; k++) {
                    const int64_t tap = ((a[0].tap + j * a[0].tap_step) * r->c->kernel[1] + a[1].tap + k * a[1].tap_step) * r->c->kernel[2] + a[2].tap;
                    r->product->pack(a[2].ntaps, columns, width, from + (channel * of_channel + tap) * r->size, a[2].tap_step, of_row, to);
                    to += a[2].ntaps * width * r->size;
                }
    }
}

/* ---- Places and images ------------------------------------------------------------------------------------------------------------------- */

/* Columns of sums, which are channels from `channel` on, to places [first, first + n) of a sample. */
static void write_sums(const struct run *r, const struct phase *phase, int64_t sample, int64_t channel, int64_t columns, int64_t width, int64_t first, int64_t n,
                       const char *sums)
{
    const struct axis *a = phase->axes;
    const int64_t *sizes = r->c->kind == GRD_CONV_IMAGE ? r->c->image : r->c->places;
    char *const to = r->to + (sample * r->to_sample + channel * r->to_row) * r->itemsize;
    if (r->nphases == 1 && r->narrow == NULL && r->to_column == 1) {
        r->kernel->turn(n, columns, width, sums, to + first * r->itemsize, r->to_row);
        return;
    }
    for (int64_t i = 0; i < n;) {
        const int64_t place = first + i, l = place % a[2].count, k = place / a[2].count % a[1].count, j = place / a[2].count / a[1].count;
        const int64_t run = grd_least(n - i, a[2].count - l);
        char *const at = to + (((a[0].first + j * a[0].step) * sizes[1] + a[1].first + k * a[1].step) * sizes[2] + a[2].first + l * a[2].step) * r->to_column * r->itemsize;
        const int64_t step = a[2].step * r->to_column * r->itemsize;
        grd_loop_kernel *const cast = r->narrow != NULL ? r->narrow : r->cast;
        if (r->to_row == 1)
            for (int64_t q = 0; q < run; q++)
                cast(columns, (char *const[]){at + q * step, (char *)(uintptr_t)sums + (i + q) * width * r->size}, (const int64_t[]){r->itemsize, r->size}, NULL);
        else
            for (int64_t q = 0; q < columns; q++)
                cast(run, (char *const[]){at + q * r->to_row * r->itemsize, (char *)(uintptr_t)sums + (i * width + q) * r->size},
                     (const int64_t[]){step, width * r->size}, NULL);
        i += run;
    }
}

/* Fills each row of the sums with the bias of the columns, or with zeros. */
static void begin_sums(const struct run *r, int64_t channel, int64_t columns, int64_t width, int64_t n, char *sums)
{
    memset(sums, 0, (size_t)(n * width * r->size));
    if (r->bias == NULL)
        return;
    r->cast(columns, (char *const[]){sums, (char *)(uintptr_t)r->bias + channel * r->itemsize}, (const int64_t[]){r->size, r->itemsize}, NULL);
    for (int64_t i = 1; i < n; i++)
        memcpy(sums + i * width * r->size, sums, (size_t)(columns * r->size));
}

/* Tasks [begin, end): blocks of places of a group of a sample of the wave. */
static void places_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const int64_t lanes = r->kernel->lanes;
    _Alignas(64) char sums[SUMS_BYTES];
    int32_t places[BLOCK_ROWS];
    for (int64_t task = begin; task < end; task++) {
        const int64_t block = task % r->blocks, group = task / r->blocks % r->c->groups, sample = task / r->blocks / r->c->groups;
        const struct phase *phase = r->phases;
        while (phase < r->phases + r->nphases - 1 && block >= phase[1].first_block)
            phase++;
        const int64_t first = (block - phase->first_block) * BLOCK_ROWS, n = grd_least(BLOCK_ROWS, phase->places - first), depth = r->channels * phase->taps;
        fill_places(r, phase, first, n, places);
        for (int64_t panel = 0; panel < r->panels; panel++) {
            const int64_t begins = first_vector(r, panel) * lanes, width = vectors_of(r, panel) * lanes, columns = grd_least(width, r->rows - begins);
            const char *weights = r->packed + (group * r->weights + phase->weights + depth * begins) * r->size;
            begin_sums(r, group * r->rows + begins, columns, width, n, sums);
            for (int64_t at = 0; at < depth; at += DEPTH)
                r->kernel->multiply(&(struct grd_conv_block){.nrows = n,
                                                             .depth = grd_least(DEPTH, depth - at),
                                                             .rows = places,
                                                             .taps = r->offsets + phase->offsets + at,
                                                             .seen = r->from + (sample * r->source_sample + group * r->channels * r->source_channel) * r->size,
                                                             .panel = weights + at * width * r->size,
                                                             .sums = sums,
                                                             .vectors = vectors_of(r, panel)});
            write_sums(r, phase, r->first_sample + sample, group * r->rows + begins, columns, width, first, n, sums);
        }
    }
}

/* ---- Weights --------------------------------------------------------------------------------------------------------------------------------- */

/* Tasks [begin, end): blocks of taps of the channels of a group, for a panel of channels of the places. */
static void weights_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const int64_t lanes = r->kernel->lanes, all = r->channels * r->taps, blocks = ceil_div(all, BLOCK_ROWS), places = r->phases[0].places;
    const int32_t *at_places = r->offsets + r->noffsets;
    _Alignas(64) char sums[SUMS_BYTES];
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % blocks * BLOCK_ROWS, panel = task / blocks % r->panels, group = task / blocks / r->panels;
        const int64_t n = grd_least(BLOCK_ROWS, all - first), begins = first_vector(r, panel) * lanes, width = vectors_of(r, panel) * lanes;
        const int64_t columns = grd_least(width, r->rows - begins);
        char *const gradient = r->packed + (task - r->first_task) * panel_bytes(r);
        memset(sums, 0, (size_t)(n * width * r->size));
        for (int64_t sample = 0; sample < r->c->batch; sample++)
            for (int64_t at = 0; at < places; at += DEPTH) {
                const int64_t depth = grd_least(DEPTH, places - at);
                r->product->pack(depth, columns, width,
                                 r->left + (sample * r->left_sample + (group * r->rows + begins) * r->left_channel + at * r->left_place) * r->size, r->left_place,
                                 r->left_channel, gradient);
                r->kernel->multiply(&(struct grd_conv_block){.nrows = n,
                                                             .depth = depth,
                                                             .rows = r->offsets + first,
                                                             .taps = at_places + at,
                                                             .seen = r->from + (sample * r->source_sample + group * r->channels * r->source_channel) * r->size,
                                                             .panel = gradient,
                                                             .sums = sums,
                                                             .vectors = vectors_of(r, panel)});
            }
        char *const to = r->to + ((group * r->rows + begins) * all + first) * r->itemsize;
        if (r->narrow == NULL)
            r->kernel->turn(n, columns, width, sums, to, all);
        else
            for (int64_t q = 0; q < columns; q++)
                r->narrow(n, (char *const[]){to + q * all * r->itemsize, sums + q * r->size}, (const int64_t[]){r->itemsize, width * r->size}, NULL);
    }
}

/* ---- The whole --------------------------------------------------------------------------------------------------------------------------------- */

/* What is multiplied, in the dtype that is computed in. */
static const char *in_computed(const struct run *r, const grd_tensor *t, char *room)
{
    if (r->widen == NULL)
        return t->data;
    r->widen(t->numel, (char *const[]){room, t->data}, (const int64_t[]){r->size, r->itemsize}, NULL);
    return room;
}

/* Tasks that are worth a thread. */
static int64_t grain_of(const struct run *r)
{
    const double work = (double)grd_least(BLOCK_ROWS, r->phases[0].places) * (double)(r->channels * r->phases[0].taps) * (double)r->rows;
    return work >= TASK_WORK ? 1 : (int64_t)(TASK_WORK / grd_greatest((int64_t)work, 1));
}

static void read_source(struct run *r)
{
    const grd_tensor *t = r->seen;
    const int64_t dims = r->seen_dims;
    if (r->is_copied) {
        r->from = r->copy;
        return;
    }
    r->from = t->data;
    r->source_sample = t->ndim == dims + 2 ? t->strides[0] : 0;
    r->source_channel = t->strides[t->ndim - dims - 1];
    for (int64_t d = 0; d < dims; d++)
        r->source[GRD_CONV_DIMS - dims + d] = t->strides[t->ndim - dims + d];
    r->wave = r->c->batch;
}

void grd_conv_run_direct(const struct grd_plan *p)
{
    const struct grd_conv *c = grd_conv_of(p);
    const grd_tensor *result = p->results[0];
    const bool channels_last = !grd_has(result, GRD_FLAG_CONTIGUOUS), weight = c->kind == GRD_CONV_WEIGHT;
    struct run r;
    describe(c, &r);
    r.seen = p->in[0];
    r.is_copied = !lies_well(&r, r.seen);
    r.seen_dims = weight ? result->ndim - 2 : p->in[1]->ndim - 2;
    r.cast = r.widen != NULL ? r.widen : grd_cast_kernel(c->dtype, c->dtype);
    const struct parts parts = parts_of(&r, r.is_copied);
    char *const scratch = (char *)((uintptr_t)p->scratch & ~(uintptr_t)63);
    r.offsets = (int32_t *)(void *)(scratch + parts.offsets);
    r.packed = scratch + parts.packed;
    r.copy = scratch + parts.copy;
    r.left = in_computed(&r, p->in[1], scratch + parts.left);
    r.bias = p->nreads > 2 && p->in[2] != NULL ? p->in[2]->data : NULL;
    r.to = result->data;
    const int64_t positions = grd_conv_product(c->kind == GRD_CONV_IMAGE ? c->image : c->places);
    r.to_sample = c->groups * r.rows * positions;
    r.to_row = channels_last ? 1 : positions;
    r.to_column = channels_last ? c->groups * r.rows : 1;
    read_source(&r);
    fill_offsets(&r);
    if (weight) {
        r.left_sample = c->groups * r.rows * positions;
        r.left_channel = positions;
        r.left_place = 1;
        fill_places(&r, r.phases, 0, r.phases[0].places, r.offsets + r.noffsets);
    } else {
        grd_parallel_for(0, c->groups * r.nphases * r.panels, 1, pack_weights, &r);
    }
    for (r.first_sample = 0; r.first_sample < c->batch; r.first_sample += r.wave) {
        const int64_t samples = grd_least(r.wave, c->batch - r.first_sample);
        if (r.is_copied)
            grd_parallel_for(0, samples * c->groups * r.channels, grd_greatest(1, (1 << 14) / r.source_channel), copy_planes, &r);
        if (!weight)
            grd_parallel_for(0, samples * c->groups * r.blocks, grain_of(&r), places_tasks, &r);
        if (!r.is_copied)
            break;
    }
    for (r.first_task = 0; weight && r.first_task < weight_tasks(&r); r.first_task += MOST_SLOTS)
        grd_parallel_for(r.first_task, grd_least(weight_tasks(&r), r.first_task + MOST_SLOTS), 1, weights_tasks, &r);
}
