/* Convolutions whose results have few channels, of each group: see convolution_direct.h. Places are lanes of vectors, each of which lies within one row. Depthwise ones
 * are of this kind: each channel is a group. */
#include <string.h>

#include "base/parallel.h"
#include "op/convolution_direct.h"

enum {
    BLOCK_VECTORS = 32,
    BLOCK_TAPS = 32,
    CHUNK = 64, /* vectors whose gradient is multiplied with all taps of a block before the next are */
    MOST_LANES_BYTES = 64,
    TASK_WORK = 1 << 18 /* multiplications worth a task */
};

/* Vectors of a row of a phase, of all its rows. */
static int64_t vectors_of_row(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    return grd_conv_pieces(phase->axes[2].count, r->kernel->lanes);
}

static int64_t vectors_of(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    return phase->axes[0].count * phase->axes[1].count * vectors_of_row(r, phase);
}

static int64_t all_vectors(const struct grd_conv_run *r)
{
    int64_t n = 0;
    for (int i = 0; i < r->nphases; i++)
        n += vectors_of(r, &r->phases[i]);
    return n;
}

static int64_t vectors_bytes(const struct grd_conv_run *r)
{
    return (all_vectors(r) * (int64_t)sizeof(struct grd_conv_vector) + 63) / 64 * 64;
}

int64_t grd_conv_lines_bytes(const struct grd_conv_run *r)
{
    return vectors_bytes(r) + (r->c->kind == GRD_CONV_WEIGHT ? 0 : r->c->groups * r->weights * r->size);
}

/* Items [begin, end): weights of a group and a phase. */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    char *const packed = r->packed + vectors_bytes(r);
    for (int64_t item = begin; item < end; item++)
        grd_conv_pack_weights(r, item / r->nphases, &r->phases[item % r->nphases], 0, r->rows, packed);
}

void grd_conv_lines_begin(struct grd_conv_run *r)
{
    struct grd_conv_vector *to = (struct grd_conv_vector *)(void *)r->packed;
    const int64_t lanes = r->kernel->lanes;
    for (int i = 0; i < r->nphases; i++) {
        const struct grd_conv_phase *phase = &r->phases[i];
        const int64_t count = phase->axes[2].count;
        for (int64_t place = 0; place < phase->places; place += count) {
            const int64_t at = grd_conv_place_at(r, phase, place), step = phase->axes[2].step;
            int32_t start;
            grd_conv_fill_places(r, phase, place, 1, &start);
            for (int64_t first = 0; first < count; first += lanes)
                *to++ = (struct grd_conv_vector){(int32_t)(start + first), (int32_t)(at + first * step),
                                                 (int32_t)grd_least(lanes, count - first)};
        }
    }
    if (r->c->kind != GRD_CONV_WEIGHT)
        grd_parallel_for(0, r->c->groups * r->nphases, 8, pack_items, r);
}

/* ---- Places and images ------------------------------------------------------------------------------------------------------------- */

/* Sums of n vectors to a plane of the result. */
static void write_row(const struct grd_conv_run *r, int64_t step, const struct grd_conv_vector *vectors, int64_t n, const char *sums,
                      char *plane)
{
    if (r->narrow == NULL) {
        r->kernel->put(n, vectors, sums, plane, r->to_column, step);
        return;
    }
    for (int64_t v = 0; v < n; v++)
        r->narrow(vectors[v].count,
                  (char *const[]){plane + vectors[v].place * r->to_column * r->itemsize,
                                  (char *)(uintptr_t)sums + v * r->kernel->lanes * r->size},
                  (const int64_t[]){step * r->itemsize, r->size}, NULL);
}

/* A block of vectors of a group of a sample of the wave. */
static void run_block(const struct grd_conv_run *r, int64_t sample, int64_t group, const struct grd_conv_phase *phase,
                      const struct grd_conv_vector *vectors, int64_t n)
{
    _Alignas(64) char sums[BLOCK_VECTORS * GRD_CONV_LINE_ROWS * MOST_LANES_BYTES];
    const int64_t row = n * r->kernel->lanes;
    memset(sums, 0, (size_t)(r->rows * row * r->size));
    for (int64_t i = 0; i < r->rows && r->bias != NULL; i++)
        r->cast(row, (char *const[]){sums + i * row * r->size, (char *)(uintptr_t)r->bias + (group * r->rows + i) * r->itemsize},
                (const int64_t[]){r->size, 0}, NULL);
    r->kernel->lines(
        &(struct grd_conv_lines){.nvectors = n,
                                 .depth = r->channels * phase->taps,
                                 .vectors = vectors,
                                 .taps = r->offsets + phase->offsets,
                                 .seen = r->from + (sample * r->source_sample + group * r->channels * r->source_channel) * r->size,
                                 .weights = r->packed + vectors_bytes(r) + (group * r->weights + phase->weights) * r->size,
                                 .sums = sums,
                                 .nrows = (int)r->rows});
    char *const to = r->to + ((r->first_sample + sample) * r->to_sample + group * r->rows * r->to_row) * r->itemsize;
    for (int64_t i = 0; i < r->rows; i++)
        write_row(r, phase->axes[2].step * r->to_column, vectors, n, sums + i * row * r->size, to + i * r->to_row * r->itemsize);
}

static int64_t blocks_of(const struct grd_conv_run *r)
{
    int64_t blocks = 0;
    for (int i = 0; i < r->nphases; i++)
        blocks += grd_conv_pieces(vectors_of(r, &r->phases[i]), BLOCK_VECTORS);
    return blocks;
}

/* Tasks [begin, end): blocks of a group of a sample of the wave. */
static void places_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t blocks = blocks_of(r);
    for (int64_t task = begin; task < end; task++) {
        const struct grd_conv_vector *vectors = (const struct grd_conv_vector *)(const void *)r->packed;
        const struct grd_conv_phase *phase = r->phases;
        int64_t within = task % blocks;
        for (; within >= grd_conv_pieces(vectors_of(r, phase), BLOCK_VECTORS); phase++) {
            within -= grd_conv_pieces(vectors_of(r, phase), BLOCK_VECTORS);
            vectors += vectors_of(r, phase);
        }
        run_block(r, task / blocks / r->c->groups, task / blocks % r->c->groups, phase, vectors + within * BLOCK_VECTORS,
                  grd_least(BLOCK_VECTORS, vectors_of(r, phase) - within * BLOCK_VECTORS));
    }
}

/* ---- Weights ---------------------------------------------------------------------------------------------------------------------------- */

/* Tasks [begin, end): blocks of taps of the channels of a group. */
static void weights_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const struct grd_conv_vector *vectors = (const struct grd_conv_vector *)(const void *)r->packed;
    const int64_t all = r->channels * r->taps, blocks = grd_conv_pieces(all, BLOCK_TAPS), n = all_vectors(r);
    _Alignas(64) char lanes[BLOCK_TAPS * GRD_CONV_LINE_ROWS * MOST_LANES_BYTES];
    char sums[BLOCK_TAPS * GRD_CONV_LINE_ROWS * 8];
    for (int64_t task = begin; task < end; task++) {
        const int64_t group = task / blocks, first = task % blocks * BLOCK_TAPS, taps = grd_least(BLOCK_TAPS, all - first);
        memset(lanes, 0, (size_t)(r->rows * taps * MOST_LANES_BYTES));
        for (int64_t sample = 0; sample < r->c->batch; sample++)
            for (int64_t v = 0; v < n; v += CHUNK)
                r->kernel->dots(&(struct grd_conv_dots){
                    .nvectors = grd_least(CHUNK, n - v),
                    .ntaps = taps,
                    .vectors = vectors + v,
                    .taps = r->offsets + first,
                    .seen = r->from + (sample * r->source_sample + group * r->channels * r->source_channel) * r->size,
                    .gradient = r->left + (sample * r->c->groups + group) * r->rows * r->places * r->size,
                    .gradient_row = r->places,
                    .sums = lanes,
                    .nrows = (int)r->rows});
        r->kernel->add_lanes(r->rows * taps, lanes, sums);
        for (int64_t i = 0; i < r->rows; i++)
            (r->narrow != NULL ? r->narrow : r->cast)(
                taps, (char *const[]){r->to + ((group * r->rows + i) * all + first) * r->itemsize, sums + i * taps * r->size},
                (const int64_t[]){r->itemsize, r->size}, NULL);
    }
}

void grd_conv_lines_run(struct grd_conv_run *r, int64_t samples)
{
    const int64_t all = r->channels * r->taps;
    const double work = (double)grd_least(r->places, BLOCK_VECTORS * r->kernel->lanes) * (double)all * (double)r->rows;
    const int64_t grain = work >= TASK_WORK ? 1 : (int64_t)(TASK_WORK / (work > 1 ? work : 1));
    if (r->c->kind == GRD_CONV_WEIGHT)
        grd_parallel_for(0, r->c->groups * grd_conv_pieces(all, BLOCK_TAPS), grain, weights_tasks, r);
    else
        grd_parallel_for(0, samples * r->c->groups * blocks_of(r), grain, places_tasks, r);
}
