/* Runs direct convolutions (see convolution_direct.h) whose results have many channels. A vector holds neighbouring channels of the result, and a
 * panel is a few such vectors. The sums of a block of output positions for one panel are on the stack, in one row for each position. The kernel
 * (kernel/conv.h) multiplies packed weights by the image elements that the positions read, and adds the products to these sums.
 *
 * The gradient of a weight is computed by the same kernel. Then there is one row of sums for each kernel element of each source channel, and the
 * gradient of the output is packed instead of the weights.
 *
 * Without groups, the positions of all samples that are computed together are numbered consecutively. If there are few positions, each task packs a
 * few rows of the weights of its panel at a time and multiplies them with all positions while they are in the cache. Otherwise the weights of all
 * panels are packed first. */
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "op/convolution_direct.h"
#include "op/sizes.h"

enum {
    BLOCK_ROWS = 96, /* output positions in a block; a multiple of the tile height of every kernel */
    /* Number of rows of packed weights that are multiplied at a time, so that they stay in the L2 cache. There is one row for each kernel element of
     * each source channel. */
    DEPTH = 128,
    MOST_WIDTH = 64, /* largest number of channels in a panel (the channels in a few vectors), if elements have 4 bytes */
    SUMS_BYTES = BLOCK_ROWS * MOST_WIDTH * 4,
    FEW_ROWS = 256,  /* with groups = 1 and at most this many output positions, each task packs the weights that it needs itself */
    FEW_DEPTH = 192, /* the most rows of weights that a task packs and multiplies at a time if it packs weights itself (see FEW_ROWS) */
    /* For the gradient of a weight: limit on the output positions whose window offsets are listed at a time, unless one sample has more positions. */
    FEW_PLACES = 4096,
    TASK_WORK = 1 << 18 /* a thread takes several tasks at a time, with about this many multiplications in total */
};

static int64_t vectors_of_row(const struct grd_conv_run *r)
{
    return r->width / r->kernel->lanes;
}

/* Returns the number of panels into which the channels of the result are divided. A panel is the channels in a few vectors, one channel per lane. */
static int64_t panels_of(const struct grd_conv_run *r)
{
    return grd_conv_pieces(vectors_of_row(r), r->kernel->vectors);
}

/* Returns the number of vectors in panel number `panel`. A panel is the channels in a few vectors, one channel per lane. The sizes of two
 * panels differ by at most one vector. */
static int vectors_of(const struct grd_conv_run *r, int64_t panel)
{
    return (int)(vectors_of_row(r) / panels_of(r) + (panel < vectors_of_row(r) % panels_of(r)));
}

static int64_t first_vector(const struct grd_conv_run *r, int64_t panel)
{
    return panel * (vectors_of_row(r) / panels_of(r)) + grd_least(panel, vectors_of_row(r) % panels_of(r));
}

/* True if all elements of a phase (the result elements that use the same kernel elements) are empty sums without bias. clear_samples has already
 * written 0 to them. */
static bool is_blank(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    return r->bias == NULL && r->channels * phase->taps == 0;
}

/* Returns the number of rows of one matrix product. Each row is one element of a phase (the result elements that use the same kernel elements). With
 * groups = 1 these are the elements of `items` samples, otherwise of one sample. Returns 0 if the phase is blank (see is_blank). */
static int64_t rows_of(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t items)
{
    return is_blank(r, phase) ? 0 : r->c->groups == 1 ? items * phase->places : phase->places;
}

/* Returns the number of blocks of result elements to compute. A block is up to BLOCK_ROWS elements of one phase, i.e. elements that use the same
 * kernel elements. */
static int64_t blocks_of(const struct grd_conv_run *r, int64_t items)
{
    int64_t blocks = 0;
    for (int i = 0; i < r->nphases; i++)
        blocks += grd_conv_pieces(rows_of(r, &r->phases[i], items), BLOCK_ROWS);
    return blocks;
}

/* True if groups = 1 and there are so few result elements that packing all weights in advance is not worth it. In this case each task packs the
 * weights that it needs. */
static bool has_few_places(const struct grd_conv_run *r)
{
    for (int i = 0; i < r->nphases; i++)
        if (rows_of(r, &r->phases[i], r->wave) > FEW_ROWS || r->phases[i].taps > FEW_DEPTH)
            return false;
    return r->c->groups == 1;
}

static int64_t tasks_of_group(const struct grd_conv_run *r)
{
    return panels_of(r) * grd_conv_pieces(r->channels * r->taps, BLOCK_ROWS);
}

/* For the gradient of a weight, r->packed begins with a list that holds, for each output position, the offset at which its window begins. Returns
 * the size of this list in bytes. */
static int64_t places_bytes(const struct grd_conv_run *r)
{
    return (grd_greatest(r->places, FEW_PLACES) * (int64_t)sizeof(int32_t) + 63) / 64 * 64;
}

/* Returns the number of samples that are processed at a time: as many as have at most FEW_PLACES output positions together, but at least 1. The list
 * in r->packed has room for the window offsets of these positions. */
static int64_t samples_at_once(const struct grd_conv_run *r)
{
    const int64_t step = grd_greatest(1, llabs(grd_conv_seen_step(r)));
    return grd_greatest(1, grd_least(r->c->batch, grd_least(FEW_PLACES / r->places, INT32_MAX / 4 / step)));
}

/* Returns the address in r->packed of one panel of the packed gradient of the output. The panel (the channels in a few vectors) starts at
 * channel `begins` of the group `group` and contains all samples. */
static char *gradient_of(const struct grd_conv_run *r, int64_t group, int64_t begins)
{
    const int64_t first_group = r->first_item / r->c->batch;
    return r->packed + places_bytes(r) + ((group - first_group) * r->width + begins) * r->c->batch * r->places * r->size;
}

int64_t grd_conv_panels_bytes(const struct grd_conv_run *r)
{
    if (r->c->kind == GRD_CONV_WEIGHT)
        return places_bytes(r) + r->wave * r->places * r->width * r->size;
    return has_few_places(r) ? 0 : r->c->groups * r->weights * r->size;
}

/* Writes to `to` the offsets, in elements, of the windows that elements first to first + n - 1 of a phase read. A phase is the result elements that
 * use the same kernel elements; its elements are numbered sample after sample. */
static void fill_rows(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t first, int64_t n, int32_t *to)
{
    while (n > 0) {
        const int64_t sample = first / phase->places, at = first % phase->places, run = grd_least(n, phase->places - at);
        grd_conv_fill_places(r, phase, sample * grd_conv_seen_step(r), at, run, to);
        to += run;
        first += run;
        n -= run;
    }
}

/* Packs portions [begin, end) of the weights. A portion is the weights of one group of the convolution, one phase (result elements that use the
 * same kernel elements) and one panel (the channels in a few vectors). */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t panels = panels_of(r), lanes = r->kernel->lanes;
    for (int64_t item = begin; item < end; item++)
        grd_conv_pack_weights(r, item / panels / r->nphases, &r->phases[item / panels % r->nphases], first_vector(r, item % panels) * lanes,
                              vectors_of(r, item % panels) * lanes, r->packed);
}

/* Writes zeros to samples [begin, end) of the result. */
static void clear_samples(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    memset(r->to + begin * r->to_sample * r->itemsize, 0, (size_t)((end - begin) * r->to_sample * r->itemsize));
}

void grd_conv_panels_begin(struct grd_conv_run *r)
{
    bool is_partly_blank = false;
    for (int i = 0; i < r->nphases && r->c->kind == GRD_CONV_IMAGE; i++)
        is_partly_blank = is_partly_blank || is_blank(r, &r->phases[i]);
    if (is_partly_blank)
        grd_parallel_for(0, r->c->batch, 1, clear_samples, r);
    if (r->c->kind == GRD_CONV_WEIGHT)
        fill_rows(r, r->phases, 0, samples_at_once(r) * r->places, (int32_t *)(void *)r->packed);
    else if (!has_few_places(r))
        grd_parallel_for(0, r->c->groups * r->nphases * panels_of(r), 1, pack_items, r);
}

/* Writes `sums` to channels [channel, channel + columns) and positions [first, first + n) of one sample. `sums` has one row of `width` elements
 * per position and one column per channel. The channels must be the innermost dimension of the result in memory. */
static void write_across(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t sample, int64_t channel, int64_t columns,
                         int64_t width, int64_t first, int64_t n, const char *sums)
{
    char *const to = r->to + (sample * r->to_sample + channel) * r->itemsize;
    for (int64_t i = 0; i < n; i++)
        (r->narrow != NULL ? r->narrow : r->cast)(columns,
                                                  (char *const[]){to + grd_conv_place_at(r, phase, first + i) * r->to_column * r->itemsize,
                                                                  (char *)(uintptr_t)sums + i * width * r->size},
                                                  (const int64_t[]){r->itemsize, r->size}, NULL);
}

/* Writes `sums` to channels [channel, channel + columns) and positions [first, first + n) of one sample. `sums` has one row per channel and one
 * column per position. The channels must not be the innermost dimension of the result. If there are several phases, neighbouring positions are
 * phase->axes[2].step elements apart. */
static void write_turned(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t sample, int64_t channel, int64_t columns,
                         int64_t first, int64_t n, const char *sums)
{
    const int64_t count = phase->axes[2].count, step = phase->axes[2].step;
    for (int64_t i = 0, run; i < n; i += run) {
        run = step == 1 && r->nphases == 1 ? n : grd_least(n - i, count - (first + i) % count);
        char *const to = r->to + (sample * r->to_sample + channel * r->to_row + grd_conv_place_at(r, phase, first + i)) * r->itemsize;
        if (r->narrow == NULL)
            r->kernel->put(&(struct grd_conv_put){.n = columns,
                                                  .columns = run,
                                                  .sums = sums + i * r->size,
                                                  .parts = 1,
                                                  .width = n,
                                                  .to = to,
                                                  .to_row = r->to_row,
                                                  .step = step});
        else
            for (int64_t j = 0; j < columns; j++)
                r->narrow(run, (char *const[]){to + j * r->to_row * r->itemsize, (char *)(uintptr_t)sums + (j * n + i) * r->size},
                          (const int64_t[]){step * r->itemsize, r->size}, NULL);
    }
}

/* Writes `sums` to channels [channel, channel + columns) and positions [first, first + n) of one sample of the result. `sums` has one row of
 * `width` elements per position and one column per channel. The result may have any strides. */
static void write_places(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t sample, int64_t channel, int64_t columns,
                         int64_t width, int64_t first, int64_t n, const char *sums)
{
    _Alignas(64) char turned[SUMS_BYTES];
    char *const to = r->to + (sample * r->to_sample + channel * r->to_row + first) * r->itemsize;
    if (r->to_column != 1)
        write_across(r, phase, sample, channel, columns, width, first, n, sums);
    else if (r->nphases == 1 && r->narrow == NULL)
        r->kernel->turn(n, columns, width, sums, to, r->to_row);
    else
        for (int64_t i = 0; i < n; i += BLOCK_ROWS) {
            const int64_t rows = grd_least(BLOCK_ROWS, n - i);
            r->kernel->turn(rows, columns, width, sums + i * width * r->size, turned, rows);
            write_turned(r, phase, sample, channel, columns, first + i, rows, turned);
        }
}

/* Writes `sums` to channels [channel, channel + columns) and positions [first, first + n) of the result. Positions are numbered across samples:
 * position 0 is the first one of the sample to which `item` (one group of one sample) belongs. `sums` has one row of `width` elements per position
 * and one column per channel. */
static void write_sums(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t item, int64_t channel, int64_t columns,
                       int64_t width, int64_t first, int64_t n, const char *sums)
{
    while (n > 0) {
        const int64_t sample = first / phase->places, at = first % phase->places, run = grd_least(n, phase->places - at);
        write_places(r, phase, grd_conv_sample(r, item) + sample, channel, columns, width, at, run, sums);
        sums += run * width * r->size;
        first += run;
        n -= run;
    }
}

/* Returns the bias of channels [channel, channel + columns), converted and padded with zeros to `width` elements, in `room`; NULL if there is no
 * bias. */
static const char *bias_of(const struct grd_conv_run *r, int64_t channel, int64_t columns, int64_t width, char *room)
{
    if (r->bias == NULL)
        return NULL;
    memset(room + columns * r->size, 0, (size_t)((width - columns) * r->size));
    r->cast(columns, (char *const[]){room, (char *)(uintptr_t)r->bias + channel * r->itemsize}, (const int64_t[]){r->size, r->itemsize},
            NULL);
    return room;
}

/* Runs tasks [begin, end) of a convolution or of its gradient for the image. A task computes up to BLOCK_ROWS positions of the result for one
 * panel (the channels in a few vectors). */
static void places_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t lanes = r->kernel->lanes, blocks = blocks_of(r, r->items);
    _Alignas(64) char sums[SUMS_BYTES], bias_room[MOST_WIDTH * 4];
    int32_t places[BLOCK_ROWS];
    for (int64_t task = begin; task < end; task++) {
        const int64_t panel = task % panels_of(r), block = task / panels_of(r);
        const int64_t item = r->first_item + block / blocks, group = grd_conv_group(r, item);
        const struct grd_conv_phase *phase = r->phases;
        int64_t within = block % blocks;
        for (int64_t all; within >= (all = grd_conv_pieces(rows_of(r, phase, r->items), BLOCK_ROWS)); phase++)
            within -= all;
        const int64_t first = within * BLOCK_ROWS, n = grd_least(BLOCK_ROWS, rows_of(r, phase, r->items) - first),
                      depth = r->channels * phase->taps;
        if (panel == 0 || task == begin)
            fill_rows(r, phase, first, n, places);
        const int64_t begins = first_vector(r, panel) * lanes, width = vectors_of(r, panel) * lanes,
                      columns = grd_least(width, r->rows - begins), channel = group * r->rows + begins;
        const char *weights = r->packed + (group * r->weights + phase->weights + depth * begins) * r->size;
        const char *bias = bias_of(r, channel, columns, width, bias_room);
        for (int64_t at = 0; at == 0 || at < depth; at += DEPTH)
            r->kernel->multiply(&(struct grd_conv_block){.nrows = n,
                                                         .depth = grd_least(DEPTH, depth - at),
                                                         .rows = places,
                                                         .taps = r->offsets + phase->offsets + at,
                                                         .seen = grd_conv_seen(r, item),
                                                         .panel = weights + at * width * r->size,
                                                         .bias = bias,
                                                         .sums = sums,
                                                         .vectors = vectors_of(r, panel),
                                                         .is_first = at == 0});
        write_sums(r, phase, item, channel, columns, width, first, n, sums);
    }
}

/* Runs tasks [begin, end) of a convolution or of its gradient for the image, if there are few output positions. A task is one panel (the
 * channels in a few vectors) in one phase (the result elements that use the same kernel elements). It packs the weights and computes these channels
 * at all positions. */
static void panels_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    _Alignas(64) char sums[FEW_ROWS * MOST_WIDTH * 4], weights[FEW_DEPTH * MOST_WIDTH * 4], bias_room[MOST_WIDTH * 4];
    int32_t places[FEW_ROWS];
    for (int64_t task = begin; task < end; task++) {
        const struct grd_conv_phase *phase = &r->phases[task / panels_of(r)];
        const int64_t panel = task % panels_of(r), lanes = r->kernel->lanes, width = vectors_of(r, panel) * lanes;
        const int64_t channel = first_vector(r, panel) * lanes, columns = grd_least(width, r->rows - channel);
        const int64_t n = rows_of(r, phase, r->items), piece = phase->taps > 0 ? FEW_DEPTH / phase->taps : r->channels;
        const char *bias = bias_of(r, channel, columns, width, bias_room);
        fill_rows(r, phase, 0, n, places);
        for (int64_t at = 0; at < r->channels; at += piece) {
            const int64_t past = grd_least(r->channels, at + piece);
            grd_conv_pack_channels(r, 0, phase, channel, width, at, past, weights);
            r->kernel->multiply(&(struct grd_conv_block){.nrows = n,
                                                         .depth = (past - at) * phase->taps,
                                                         .rows = places,
                                                         .taps = r->offsets + phase->offsets + at * phase->taps,
                                                         .seen = grd_conv_seen(r, r->first_item),
                                                         .panel = weights,
                                                         .bias = bias,
                                                         .sums = sums,
                                                         .vectors = vectors_of(r, panel),
                                                         .is_first = at == 0});
        }
        write_sums(r, phase, r->first_item, channel, columns, width, 0, n, sums);
    }
}

/* Packs portions [begin, end) of the gradient of the output. A portion is one panel (the channels in a few vectors) of one sample. */
static void pack_gradients(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t panels = panels_of(r), lanes = r->kernel->lanes;
    for (int64_t i = begin; i < end; i++) {
        const int64_t item = r->first_item + i / panels, panel = i % panels, sample = grd_conv_sample(r, item),
                      group = grd_conv_group(r, item);
        const int64_t begins = first_vector(r, panel) * lanes, width = vectors_of(r, panel) * lanes;
        const int64_t channel = (sample * r->c->groups + group) * r->rows + begins;
        r->product->pack(r->places, grd_least(width, r->rows - begins), width, r->left + channel * r->places * r->size, 1, r->places,
                         gradient_of(r, group, begins) + sample * r->places * width * r->size);
    }
}

/* Runs tasks [begin, end) of the gradient of a weight. A task computes this gradient for up to BLOCK_ROWS elements of the kernel and one panel (a
 * few vectors) of output channels, summed over all samples. */
static void weights_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t lanes = r->kernel->lanes, all = r->channels * r->taps, blocks = grd_conv_pieces(all, BLOCK_ROWS);
    const int64_t batch = r->c->batch, samples = samples_at_once(r);
    const int32_t *at_places = (const int32_t *)(const void *)r->packed;
    _Alignas(64) char sums[SUMS_BYTES], turned[SUMS_BYTES];
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % blocks * BLOCK_ROWS, panel = task / blocks % panels_of(r), group = task / blocks / panels_of(r);
        const int64_t n = grd_least(BLOCK_ROWS, all - first), begins = first_vector(r, panel) * lanes, width = vectors_of(r, panel) * lanes;
        const int64_t columns = grd_least(width, r->rows - begins);
        const char *gradient = gradient_of(r, group, begins);
        for (int64_t sample = 0; sample < batch; sample += samples) {
            const int64_t places = grd_least(samples, batch - sample) * r->places;
            for (int64_t at = 0, depth; at < places; at += depth, gradient += depth * width * r->size) {
                depth = grd_least(DEPTH, places - at);
                r->kernel->multiply(&(struct grd_conv_block){.nrows = n,
                                                             .depth = depth,
                                                             .rows = r->offsets + first,
                                                             .taps = at_places + at,
                                                             .seen = grd_conv_seen(r, group * batch + sample),
                                                             .panel = gradient,
                                                             .sums = sums,
                                                             .vectors = vectors_of(r, panel),
                                                             .is_first = sample == 0 && at == 0});
            }
        }
        char *const to = r->to + ((group * r->rows + begins) * all + first) * r->itemsize;
        r->kernel->turn(n, columns, width, sums, r->narrow == NULL ? to : turned, r->narrow == NULL ? all : n);
        for (int64_t q = 0; q < columns && r->narrow != NULL; q++)
            r->narrow(n, (char *const[]){to + q * all * r->itemsize, turned + q * n * r->size}, (const int64_t[]){r->itemsize, r->size},
                      NULL);
    }
}

/* Returns how many tasks a thread takes at a time. Together they have about TASK_WORK multiplications. */
static int64_t grain_of(const struct grd_conv_run *r)
{
    const double rows = (double)grd_least(BLOCK_ROWS, rows_of(r, r->phases, r->items));
    const double work = rows * (double)(r->channels * r->phases[0].taps) * (double)r->rows / (double)panels_of(r);
    return work >= TASK_WORK ? 1 : (int64_t)(TASK_WORK / (work > 1 ? work : 1));
}

void grd_conv_panels_run(struct grd_conv_run *r, int64_t items)
{
    r->items = items;
    if (r->c->kind != GRD_CONV_WEIGHT) {
        if (has_few_places(r))
            grd_parallel_for(0, r->nphases * panels_of(r), 1, panels_tasks, r);
        else
            grd_parallel_for(0, (r->c->groups == 1 ? 1 : items) * blocks_of(r, items) * panels_of(r), grain_of(r), places_tasks, r);
        return;
    }
    const int64_t tasks = tasks_of_group(r), first = r->first_item / r->c->batch * tasks;
    grd_parallel_for(0, items * panels_of(r), grd_greatest(1, TASK_WORK / 16 / (r->places * r->width)), pack_gradients, r);
    grd_parallel_for(first, first + items / r->c->batch * tasks, 1, weights_tasks, r);
}
