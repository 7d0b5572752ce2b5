/* Convolutions whose results have few channels, of each group: see convolution_direct.h. Places are lanes of vectors. Depthwise ones are of this kind: each channel is a
 * group.
 *
 * Places of a plane are counted as they lie in the source, whose rows are longer than theirs: so all that a block of rows sees is one line, and so are its sums. Those
 * between the rows are computed, but not written. */
#include <string.h>

#include "base/parallel.h"
#include "op/convolution_direct.h"

enum {
    BLOCK_TAPS = 32,
    CHUNK = 1024, /* places whose gradient is multiplied with all taps of a block before the next are */
    MOST_LANES_BYTES = 64,
    TASK_WORK = 1 << 18 /* multiplications worth a task */
};

int64_t grd_conv_lines_bytes(const struct grd_conv_run *r)
{
    return r->c->kind == GRD_CONV_WEIGHT ? 0 : r->c->groups * r->weights * r->size;
}

/* Items [begin, end): weights of a group and a phase. */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    for (int64_t item = begin; item < end; item++)
        grd_conv_pack_weights(r, item / r->nphases, &r->phases[item % r->nphases], 0, r->rows, r->packed);
}

void grd_conv_lines_begin(struct grd_conv_run *r)
{
    if (r->c->kind != GRD_CONV_WEIGHT)
        grd_parallel_for(0, r->c->groups * r->nphases, 8, pack_items, r);
}

/* ---- Places and images ------------------------------------------------------------------------------------------------------------- */

/* Blocks of a phase: of whole rows, as even as can be, or parts of one. */
struct blocks {
    int64_t rows, columns;         /* of a block, at most */
    int64_t in_plane, in_row, all; /* blocks of the rows of a plane, of the columns of a row, of all */
};

/* Elements from a row of places to the next; where nothing is seen, rows may be longer than those of the source. */
static int64_t width_of(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    return grd_greatest(r->source[1], phase->axes[2].count);
}

static struct blocks blocks_of(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    const int64_t planes = phase->axes[0].count, rows = phase->axes[1].count, columns = phase->axes[2].count;
    struct blocks b = {.rows = 1, .columns = grd_least(columns, GRD_CONV_LINE), .in_row = grd_conv_pieces(columns, GRD_CONV_LINE)};
    if (b.in_row == 1 && rows > 1 && width_of(r, phase) <= GRD_CONV_LINE)
        b.rows = grd_conv_pieces(rows, grd_conv_pieces(rows, GRD_CONV_LINE / width_of(r, phase)));
    b.in_plane = grd_conv_pieces(rows, b.rows);
    b.all = planes * b.in_plane * b.in_row;
    return b;
}

/* Sums of rows of a block to a plane of the result. */
static void write_rows(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t n, int64_t columns, const char *sums,
                       char *to)
{
    const int64_t step = phase->axes[2].step * r->to_column, width = width_of(r, phase),
                  row = phase->axes[1].step * r->to_column * (r->c->kind == GRD_CONV_IMAGE ? r->c->image : r->c->places)[2];
    if (r->narrow == NULL)
        r->kernel->put(n, columns, width, sums, to, row, step);
    else
        for (int64_t i = 0; i < n; i++)
            r->narrow(columns, (char *const[]){to + i * row * r->itemsize, (char *)(uintptr_t)sums + i * width * r->size},
                      (const int64_t[]){step * r->itemsize, r->size}, NULL);
}

/* A block of places of a phase of an item of the wave. */
static void run_block(const struct grd_conv_run *r, int64_t item, const struct grd_conv_phase *phase, const struct blocks *b,
                      int64_t block)
{
    _Alignas(64) char sums[GRD_CONV_LINE_ROWS * GRD_CONV_LINE * 8];
    char bias[GRD_CONV_LINE_ROWS * 8];
    const struct grd_conv_axis *a = phase->axes;
    const int64_t plane = block / b->in_row / b->in_plane, row = block / b->in_row % b->in_plane * b->rows,
                  column = block % b->in_row * b->columns;
    const int64_t rows = grd_least(b->rows, a[1].count - row), columns = grd_least(b->columns, a[2].count - column);
    const int64_t group = grd_conv_group(r, item);
    if (r->bias != NULL)
        r->cast(r->rows, (char *const[]){bias, (char *)(uintptr_t)r->bias + group * r->rows * r->itemsize},
                (const int64_t[]){r->size, r->itemsize}, NULL);
    r->kernel->line(&(struct grd_conv_line){
        .n = (rows - 1) * width_of(r, phase) + columns,
        .depth = r->channels * phase->taps,
        .taps = r->offsets + phase->offsets,
        .seen = grd_conv_seen(r, item) + (plane * r->source[0] + row * r->source[1] + column) * r->size,
        .weights = r->packed + (group * r->weights + phase->weights) * r->size,
        .bias = r->bias != NULL ? bias : NULL,
        .sums = sums,
        .nrows = (int)r->rows});
    const int64_t at = grd_conv_place_at(r, phase, (plane * a[1].count + row) * a[2].count + column);
    char *const to = r->to + (grd_conv_sample(r, item) * r->to_sample + group * r->rows * r->to_row + at * r->to_column) * r->itemsize;
    for (int64_t i = 0; i < r->rows; i++)
        write_rows(r, phase, rows, columns, sums + i * GRD_CONV_LINE * r->size, to + i * r->to_row * r->itemsize);
}

static int64_t all_blocks(const struct grd_conv_run *r)
{
    int64_t all = 0;
    for (int i = 0; i < r->nphases; i++)
        all += blocks_of(r, &r->phases[i]).all;
    return all;
}

/* Tasks [begin, end): blocks of an item of the wave. */
static void places_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t all = all_blocks(r);
    for (int64_t task = begin; task < end;) {
        const int64_t item = task / all;
        int64_t block = task % all;
        for (int i = 0; i < r->nphases && task < end; i++) {
            const struct blocks b = blocks_of(r, &r->phases[i]);
            for (; block < b.all && task < end; block++, task++)
                run_block(r, r->first_item + item, &r->phases[i], &b, block);
            block -= b.all;
        }
    }
}

/* ---- Weights ---------------------------------------------------------------------------------------------------------------------------- */

/* Adds what an item gives to taps from `first` on: its planes by lines, or by parts of one. */
static void add_item(const struct grd_conv_run *r, int64_t item, int64_t first, int64_t taps, char *lanes)
{
    const struct grd_conv_axis *a = r->phases[0].axes;
    const int64_t columns = a[2].count, lines = grd_greatest(1, CHUNK / columns);
    const int64_t from = (grd_conv_sample(r, item) * r->c->groups + grd_conv_group(r, item)) * r->rows * r->places;
    for (int64_t plane = 0; plane < a[0].count; plane++)
        for (int64_t row = 0; row < a[1].count; row += lines)
            for (int64_t at = 0; at < columns; at += CHUNK)
                r->kernel->dots(&(struct grd_conv_dots){
                    .lines = grd_least(lines, a[1].count - row),
                    .n = grd_least(CHUNK, columns - at),
                    .ntaps = taps,
                    .taps = r->offsets + first,
                    .seen = grd_conv_seen(r, item) + (plane * r->source[0] + row * r->source[1] + at) * r->size,
                    .gradient = r->left + (from + (plane * a[1].count + row) * columns + at) * r->size,
                    .seen_row = r->source[1],
                    .gradient_channel = r->places,
                    .sums = lanes,
                    .nrows = (int)r->rows});
}

/* Tasks [begin, end): blocks of taps of the channels of a group. */
static void weights_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t all = r->channels * r->taps, blocks = grd_conv_pieces(all, BLOCK_TAPS);
    _Alignas(64) char lanes[BLOCK_TAPS * GRD_CONV_LINE_ROWS * MOST_LANES_BYTES];
    char sums[BLOCK_TAPS * GRD_CONV_LINE_ROWS * 8];
    for (int64_t task = begin; task < end; task++) {
        const int64_t group = task / blocks, first = task % blocks * BLOCK_TAPS, taps = grd_least(BLOCK_TAPS, all - first);
        memset(lanes, 0, (size_t)(r->rows * taps * MOST_LANES_BYTES));
        for (int64_t sample = 0; sample < r->c->batch; sample++)
            add_item(r, group * r->c->batch + sample, first, taps, lanes);
        r->kernel->add_lanes(r->rows * taps, lanes, sums);
        for (int64_t i = 0; i < r->rows; i++)
            (r->narrow != NULL ? r->narrow : r->cast)(
                taps, (char *const[]){r->to + ((group * r->rows + i) * all + first) * r->itemsize, sums + i * taps * r->size},
                (const int64_t[]){r->itemsize, r->size}, NULL);
    }
}

void grd_conv_lines_run(struct grd_conv_run *r, int64_t items)
{
    const int64_t all = r->channels * r->taps, n = r->c->kind == GRD_CONV_WEIGHT ? r->places * r->c->batch : r->places / all_blocks(r);
    const double work = (double)n * (double)all * (double)r->rows;
    const int64_t grain = work >= TASK_WORK ? 1 : (int64_t)(TASK_WORK / (work > 1 ? work : 1));
    if (r->c->kind == GRD_CONV_WEIGHT) {
        const int64_t blocks = grd_conv_pieces(all, BLOCK_TAPS), first = r->first_item / r->c->batch * blocks;
        grd_parallel_for(first, first + items / r->c->batch * blocks, grain, weights_tasks, r);
    } else {
        grd_parallel_for(0, items * all_blocks(r), grain, places_tasks, r);
    }
}
