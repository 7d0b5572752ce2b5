/* Convolutions whose results have enough channels to be lanes of vectors: see convolution_direct.h. The sums of a block of places and a panel of
 * channels are on the stack; the kernel (kernel/conv.h) adds to them the products of a panel of weights with what the places see. For the gradient
 * of a weight the rows of the block are taps of channels, and panels, packed before, hold the gradient of the places of all samples.
 *
 * Without groups, places of all samples of a wave are counted one after the other. If they are few, each task packs the weights of its panel piece
 * by piece, and multiplies them with all places while they are in the cache; otherwise the weights of all panels are packed before. */
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "op/convolution_direct.h"
#include "op/sizes.h"

enum {
    BLOCK_ROWS = 96, /* a multiple of the tiles of every kernel */
    DEPTH = 128,     /* rows of a panel that are used at a time, so that they stay in the second-level cache */
    MOST_WIDTH = 64, /* width of a panel, in elements of 4 bytes */
    SUMS_BYTES = BLOCK_ROWS * MOST_WIDTH * 4,
    FEW_ROWS = 256,     /* places with which each task packs its own weights, at most */
    FEW_DEPTH = 192,    /* rows of a panel that such a task packs at a time */
    FEW_PLACES = 4096,  /* places of several samples whose offsets are in one list */
    TASK_WORK = 1 << 18 /* multiplications worth a task */
};

static int64_t vectors_of_row(const struct grd_conv_run *r)
{
    return r->width / r->kernel->lanes;
}

static int64_t panels_of(const struct grd_conv_run *r)
{
    return grd_conv_pieces(vectors_of_row(r), r->kernel->vectors);
}

/* Returns the number of vectors of a panel; panels are as even as they can be. */
static int vectors_of(const struct grd_conv_run *r, int64_t panel)
{
    return (int)(vectors_of_row(r) / panels_of(r) + (panel < vectors_of_row(r) % panels_of(r)));
}

static int64_t first_vector(const struct grd_conv_run *r, int64_t panel)
{
    return panel * (vectors_of_row(r) / panels_of(r)) + grd_least(panel, vectors_of_row(r) % panels_of(r));
}

/* True for a phase whose places see nothing: their sums are the zeros that the result begins with. */
static bool is_blank(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    return r->bias == NULL && r->channels * phase->taps == 0;
}

/* Returns how many places of a phase are counted one after the other: those of all samples of a wave, or of one item. */
static int64_t rows_of(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t items)
{
    return is_blank(r, phase) ? 0 : r->c->groups == 1 ? items * phase->places : phase->places;
}

/* Returns the number of blocks of places, over all phases. */
static int64_t blocks_of(const struct grd_conv_run *r, int64_t items)
{
    int64_t blocks = 0;
    for (int i = 0; i < r->nphases; i++)
        blocks += grd_conv_pieces(rows_of(r, &r->phases[i], items), BLOCK_ROWS);
    return blocks;
}

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

/* Returns the bytes of the list of place offsets, which precedes the panels in scratch. */
static int64_t places_bytes(const struct grd_conv_run *r)
{
    return (grd_greatest(r->places, FEW_PLACES) * (int64_t)sizeof(int32_t) + 63) / 64 * 64;
}

/* Returns how many samples have their places in the list of offsets. */
static int64_t samples_at_once(const struct grd_conv_run *r)
{
    const int64_t step = grd_greatest(1, llabs(grd_conv_seen_step(r)));
    return grd_greatest(1, grd_least(r->c->batch, grd_least(FEW_PLACES / r->places, INT32_MAX / 4 / step)));
}

/* Returns the panel that holds the gradient of the places of all samples of a group; `begins` is its first channel. */
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

/* Writes where rows [first, first + n), counted from the first place of an item, begin in the source. */
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

/* Packs items [begin, end): an item is the weights of a group, a phase and a panel. */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t panels = panels_of(r), lanes = r->kernel->lanes;
    for (int64_t item = begin; item < end; item++)
        grd_conv_pack_weights(r, item / panels / r->nphases, &r->phases[item / panels % r->nphases], first_vector(r, item % panels) * lanes,
                              vectors_of(r, item % panels) * lanes, r->packed);
}

/* Zeroes samples [begin, end) of the result. */
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

/* Writes rows of sums, whose columns are channels from `channel` on, to places [first, first + n) of a sample whose channels are innermost. */
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

/* Writes transposed sums, whose rows are channels from `channel` on, to places [first, first + n) of a sample, which are parts of rows of the
 * result. */
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

/* Writes columns of sums, which are channels from `channel` on, to places [first, first + n) of a sample. */
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

/* Writes the sums of rows [first, first + n), counted from the first place of an item. */
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

/* Returns the bias of `columns` channels, padded to full vectors; NULL if there is none. */
static const char *bias_of(const struct grd_conv_run *r, int64_t channel, int64_t columns, int64_t width, char *room)
{
    if (r->bias == NULL)
        return NULL;
    memset(room + columns * r->size, 0, (size_t)((width - columns) * r->size));
    r->cast(columns, (char *const[]){room, (char *)(uintptr_t)r->bias + channel * r->itemsize}, (const int64_t[]){r->size, r->itemsize},
            NULL);
    return room;
}

/* Runs tasks [begin, end): a task is a panel of a block of places of an item, or of the wave. */
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

/* Runs tasks [begin, end): a task is a panel of a phase for all places of the wave, which are few. */
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

/* Packs items [begin, end): an item is a panel of the gradient of a sample's places. */
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

/* Runs tasks [begin, end): a task is a block of taps of the channels of a group, for a panel of channels of the places. */
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

/* Returns how many tasks are worth a thread. */
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
