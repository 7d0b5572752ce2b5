/* Runs direct convolutions (see convolution_direct.h) with neighbouring output positions in a vector. Depthwise convolutions run this way, because
 * each group has one channel. Up to GRD_CONV_LINE_ROWS channels of the result are computed at a time and are stored without a transposition.
 *
 * If rows are short, several rows are computed as one long row, which includes the padding between the rows of the source. The sums at the padding
 * are computed as well, but are not written. If the result is an image and the stride is above 1, the phases of the last dimension are computed one
 * after the other and are interleaved when they are written.
 *
 * If samples are small, each task copies the samples it reads to a buffer on the stack, which stays in the L1 cache. */
#include <string.h>

#include "base/parallel.h"
#include "kernel/map.h"
#include "op/convolution_direct.h"
#include "op/sizes.h"

enum {
    /* Number of kernel elements for which one task computes the gradient of a weight. */
    BLOCK_TAPS = 32,
    SUMS = 4096, /* limit on the number of sums that a task keeps on the stack for one block of result elements */
    /* kernels with more rows than this are not divided into chains of elements that share a loaded source row (find_chains) */
    MOST_CHAINED = 32,
    CHUNK = 1024, /* output positions that a task processes for all its kernel elements before it reads the next positions */
    /* Bytes of the widest vector of any instruction set. */
    MOST_LANES_BYTES = 64,
    TASK_WORK = 1 << 18 /* a thread takes several tasks at a time, with about this many multiplications in total */
};

int64_t grd_conv_lines_bytes(const struct grd_conv_run *r)
{
    return r->c->kind == GRD_CONV_WEIGHT ? 0 : r->c->groups * r->weights * r->size;
}

/* Packs portions [begin, end) of the weights. A portion is the weights of one group for one phase (result elements that use the same kernel
 * elements). */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    for (int64_t item = begin; item < end; item++)
        for (int64_t row = 0; row < r->rows; row += GRD_CONV_LINE_ROWS)
            grd_conv_pack_weights(r, item / r->nphases, &r->phases[item % r->nphases], row, grd_least(GRD_CONV_LINE_ROWS, r->rows - row),
                                  r->packed);
}

/* Looks for the source row that kernel row `tap` reads for output row y + step. Returns the kernel row that reads this source row for output row y,
 * or -1 if there is none. The result is the same for every y. */
static int64_t next_of_chain(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t tap, int step)
{
    const int64_t wanted = grd_conv_tap_offset(r, phase, 1, tap) + step * r->source[1];
    for (int64_t i = 0; i < phase->axes[1].ntaps; i++)
        if (grd_conv_tap_offset(r, phase, 1, i) == wanted)
            return i;
    return -1;
}

/* Adds chains to r->chains: one for each source channel, kernel plane and kernel column. A chain is `count` kernel elements that read the same source
 * row, each for a different output row. The first element is in kernel row `tap`, the second one in kernel row `next`. */
static void add_chains(struct grd_conv_run *r, struct grd_conv_phase *phase, int64_t tap, int64_t count, int64_t next)
{
    const struct grd_conv_axis *a = phase->axes;
    for (int64_t plane = 0; plane < r->channels * a[0].ntaps; plane++)
        for (int64_t column = 0; column < a[2].ntaps; column++) {
            const int64_t number = (plane * a[1].ntaps + tap) * a[2].ntaps + column;
            r->chains[phase->offsets + phase->nchains++] = (struct grd_conv_chain){.tap = r->offsets[phase->offsets + number],
                                                                                   .count = (int32_t)count,
                                                                                   .weight = (int32_t)number,
                                                                                   .step = (int32_t)((next - tap) * a[2].ntaps)};
        }
}

/* Divides the kernel elements of a phase into chains. The elements of a chain read the same source row, each for a different output row, so the
 * source row is loaded only once (see struct grd_conv_chain). A chain has at most GRD_CONV_CHAIN elements. */
static void find_chains(struct grd_conv_run *r, struct grd_conv_phase *phase)
{
    const int64_t taps = phase->taps > 0 ? phase->axes[1].ntaps : 0;
    const bool is_chained = taps <= MOST_CHAINED && r->source[1] != 0;
    for (int64_t first = 0; first < taps; first++) {
        if (is_chained && next_of_chain(r, phase, first, -1) >= 0)
            continue;
        for (int64_t tap = first; tap >= 0;) {
            const int64_t second = is_chained ? next_of_chain(r, phase, tap, 1) : -1;
            int64_t past = second, count = 1;
            for (; past >= 0 && count < GRD_CONV_CHAIN; count++)
                past = next_of_chain(r, phase, past, 1);
            add_chains(r, phase, tap, count, second);
            tap = past;
        }
    }
}

void grd_conv_lines_begin(struct grd_conv_run *r)
{
    if (r->c->kind == GRD_CONV_WEIGHT)
        return;
    for (int i = 0; i < r->nphases && r->rows % GRD_CONV_LINE_ROWS == 1; i++)
        find_chains(r, &r->phases[i]);
    grd_parallel_for(0, r->c->groups * r->nphases, 8, pack_items, r);
}

/* ---- Places and images ------------------------------------------------------------------------------------------------------------- */

/* Describes how the result elements of several phases are divided into blocks. A phase is a set of result elements that use the same kernel elements.
 * A block is several full rows, or a part of one row. All blocks have nearly the same size. */
struct blocks {
    const struct grd_conv_phase *phases; /* array of `parts` phases, which differ only in the last dimension */
    /* true if the rows of a block are computed as one long row, which includes the padding between the rows of the source; the sums at the padding
     * are not used */
    bool is_one_line;
    bool writes_result; /* true if the kernel writes its sums directly to the result */
    int64_t channels;   /* number of result channels that are computed at a time */
    /* parts: number of phases in the array `phases`. part: room, in elements, for the sums of one channel in one phase. */
    int64_t parts, part;
    int64_t width;         /* distance between two rows of sums, in elements */
    int64_t rows, columns; /* largest number of rows and columns of a block */
    /* A plane (the rows of one depth index) has in_plane blocks one below the other and in_row blocks side by side. There are `all` blocks in
     * total. */
    int64_t in_plane, in_row, all;
};

/* Returns the number of phases that differ only in the last dimension: the stride along this dimension if the result is an image, otherwise 1. A
 * phase is a set of result elements that use the same kernel elements. */
static int64_t parts_of(const struct grd_conv_run *r)
{
    return r->c->kind == GRD_CONV_IMAGE ? r->c->stride[2] : 1;
}

static struct blocks blocks_of(const struct grd_conv_run *r, const struct grd_conv_phase *phases)
{
    const int64_t planes = phases->axes[0].count, rows = phases->axes[1].count, parts = parts_of(r);
    const int64_t channels = grd_least(r->rows, GRD_CONV_LINE_ROWS);
    struct blocks b = {.phases = phases, .channels = channels, .parts = parts, .part = SUMS / (channels * parts), .rows = 1};
    int64_t columns = 0;
    for (int64_t i = 0; i < parts; i++)
        columns = grd_greatest(columns, phases[i].axes[2].count);
    /* If the result is an image, it can have elements to which no kernel element contributes. A phase of such elements can have longer rows than the
     * source. */
    b.width = grd_greatest(r->source[1], columns);
    b.columns = grd_least(columns, b.part);
    b.in_row = grd_conv_pieces(columns, b.part);
    if (b.in_row == 1 && rows > 1 && b.width <= b.part)
        b.rows = grd_conv_pieces(rows, grd_conv_pieces(rows, b.part / b.width));
    b.in_plane = grd_conv_pieces(rows, b.rows);
    b.all = planes * b.in_plane * b.in_row;
    const int64_t lanes = r->kernel->lanes;
    /* Rows of an expanded tensor of width 1 are 0 elements apart, so they do not lie in one long row. */
    b.is_one_line = b.width == r->source[1] && 2 * b.width < grd_conv_pieces(b.columns, lanes) * lanes;
    b.writes_result = !b.is_one_line && parts == 1 && r->narrow == NULL && r->to_column == 1;
    return b;
}

/* Returns the number of blocks into which the result of one group of one sample is divided. Phases (struct grd_conv_phase) whose
 * elements differ only in the column share their blocks. ret_blocks[i], where i is the index of the first of these phases, describes them. */
static int64_t all_blocks(const struct grd_conv_run *r, struct blocks ret_blocks[GRD_CONV_MOST_PHASES])
{
    int64_t all = 0;
    for (int64_t i = 0; i < r->nphases; i += parts_of(r)) {
        ret_blocks[i] = blocks_of(r, &r->phases[i]);
        all += ret_blocks[i].all;
    }
    return all;
}

/* Writes n rows of `columns` elements from `sums` to the result at `to`, where rows are `row` elements apart. In `sums` each phase (a set of result
 * elements that use the same kernel elements) has its own array. In the result the elements of the phases alternate. */
static void write_rows(const struct grd_conv_run *r, const struct blocks *b, int64_t n, int64_t columns, const char *sums, char *to,
                       int64_t row)
{
    _Alignas(64) char woven[SUMS * 4], narrowed[SUMS * 4];
    struct grd_conv_put put = {.n = n,
                               .columns = columns,
                               .sums = sums,
                               .parts = b->parts,
                               .part = b->channels * b->part,
                               .width = b->width,
                               .to = to,
                               .to_row = row,
                               .step = r->to_column};
    if (r->narrow != NULL) {
        put.to = woven;
        put.to_row = columns;
        put.step = 1;
    }
    r->kernel->put(&put);
    if (r->narrow == NULL)
        return;
    const bool is_contiguous = r->to_column == 1 && row == columns;
    r->narrow(n * columns, (char *const[]){is_contiguous ? to : narrowed, woven}, (const int64_t[]){r->itemsize, r->size}, NULL);
    if (!is_contiguous)
        grd_copy_lines(n, columns, r->itemsize, to, (const int64_t[]){r->to_column * r->itemsize, row * r->itemsize}, narrowed,
                       (const int64_t[]){r->itemsize, columns * r->itemsize});
}

/* One block of result elements. `item` is the number of the item (a group of channels of a sample), and `column` is the block's first column.
 * `seen` is the address at which the window of the block's first element begins. `to` is the address of the first element in the result,
 * in the first channel of the group. Rows of the block are to_line elements apart in the result. */
struct block {
    int64_t item, column, rows, columns;
    const char *seen;
    char *to;
    int64_t to_line;
};

/* Computes channels [first, first + n) of a block of result elements. */
static void run_channels(const struct grd_conv_run *r, const struct blocks *b, const struct block *block, int64_t first, int64_t n)
{
    _Alignas(64) char sums[SUMS * 8], kept[GRD_CONV_KEPT_BYTES];
    char bias[GRD_CONV_LINE_ROWS * 8];
    const int64_t group = grd_conv_group(r, block->item);
    char *const to = block->to + first * r->to_row * r->itemsize;
    if (r->bias != NULL)
        r->cast(n, (char *const[]){bias, (char *)(uintptr_t)r->bias + (group * r->rows + first) * r->itemsize},
                (const int64_t[]){r->size, r->itemsize}, NULL);
    for (int64_t i = 0; i < b->parts; i++) {
        const struct grd_conv_phase *phase = &b->phases[i];
        const int64_t columns = grd_least(b->columns, phase->axes[2].count - block->column), depth = r->channels * phase->taps;
        if (columns > 0)
            r->kernel->line(
                &(struct grd_conv_line){.lines = b->is_one_line ? 1 : block->rows,
                                        .n = b->is_one_line ? (block->rows - 1) * b->width + columns : columns,
                                        .depth = depth,
                                        .nchains = phase->nchains,
                                        .taps = r->offsets + phase->offsets,
                                        .chains = r->chains + phase->offsets,
                                        .seen = block->seen,
                                        .weights = r->packed + (group * r->weights + phase->weights + depth * first) * r->size,
                                        .bias = r->bias != NULL ? bias : NULL,
                                        .sums = b->writes_result ? to : sums + phase->axes[2].first * b->channels * b->part * r->size,
                                        .kept = kept,
                                        .seen_line = r->source[1],
                                        .sums_row = b->writes_result ? r->to_row : b->part,
                                        .sums_line = b->writes_result ? block->to_line : b->width,
                                        .nrows = (int)n});
    }
    for (int64_t i = 0; i < n && !b->writes_result; i++)
        write_rows(r, b, block->rows, block->columns, sums + i * b->part * r->size, to + i * r->to_row * r->itemsize, block->to_line);
}

/* Computes result block number `number` of an item (one group of one sample). `seen` is the address of the source elements of the item. */
static void run_block(const struct grd_conv_run *r, int64_t item, const char *seen, const struct blocks *b, int64_t number)
{
    const struct grd_conv_axis *a = b->phases->axes;
    const int64_t *sizes = r->c->kind == GRD_CONV_IMAGE ? r->c->image : r->c->places;
    const int64_t plane = number / b->in_row / b->in_plane, row = number / b->in_row % b->in_plane * b->rows,
                  column = number % b->in_row * b->columns;
    const int64_t at = ((a[0].first + plane * a[0].step) * sizes[1] + a[1].first + row * a[1].step) * sizes[2] + column * b->parts;
    const int64_t channel = grd_conv_group(r, item) * r->rows;
    const struct block block = {.item = item,
                                .column = column,
                                .rows = grd_least(b->rows, a[1].count - row),
                                .columns = grd_least(b->columns * b->parts, sizes[2] - column * b->parts),
                                .seen = seen + (plane * r->source[0] + row * r->source[1] + column) * r->size,
                                .to = r->to +
                                      (grd_conv_sample(r, item) * r->to_sample + channel * r->to_row + at * r->to_column) * r->itemsize,
                                .to_line = a[1].step * sizes[2] * r->to_column};
    for (int64_t first = 0; first < r->rows; first += b->channels)
        run_channels(r, b, &block, first, grd_least(b->channels, r->rows - first));
}

/* Runs tasks [begin, end) of a convolution, or of its gradient with respect to the input. A task computes one block of one group of one sample. */
static void places_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    struct blocks blocks[GRD_CONV_MOST_PHASES];
    const int64_t all = all_blocks(r, blocks), parts = parts_of(r);
    _Alignas(64) char copy[GRD_CONV_LOCAL_BYTES];
    if (r->is_local)
        memset(copy, 0, (size_t)(r->channels * r->source_channel * r->size));
    for (int64_t task = begin; task < end;) {
        const int64_t item = r->first_item + task / all;
        const char *const seen = r->is_local ? grd_conv_copy_item(r, item, copy) : grd_conv_seen(r, item);
        int64_t block = task % all;
        for (int64_t i = 0; i < r->nphases && task < end; i += parts) {
            for (; block < blocks[i].all && task < end; block++, task++)
                run_block(r, item, seen, &blocks[i], block);
            block -= blocks[i].all;
        }
    }
}

/* ---- Weights ---------------------------------------------------------------------------------------------------------------------------- */

/* Adds the contribution of one item (a group of channels of one sample) to the sums in `lanes`, for the gradient of a weight. Multiplies the output's
 * gradient in channels [row, row + rows) with the source elements at `seen` that kernel elements [first, first + taps) read. Processes a few rows, or
 * a part of a long row, at a time. */
static void add_item(const struct grd_conv_run *r, int64_t item, const char *seen, int64_t row, int64_t rows, int64_t first, int64_t taps,
                     char *lanes)
{
    const struct grd_conv_axis *a = r->phases[0].axes;
    const int64_t columns = a[2].count, lines = grd_greatest(1, CHUNK / columns);
    const int64_t from = ((grd_conv_sample(r, item) * r->c->groups + grd_conv_group(r, item)) * r->rows + row) * r->places;
    for (int64_t plane = 0; plane < a[0].count; plane++)
        for (int64_t line = 0; line < a[1].count; line += lines)
            for (int64_t at = 0; at < columns; at += CHUNK)
                r->kernel->dots(&(struct grd_conv_dots){.lines = grd_least(lines, a[1].count - line),
                                                        .n = grd_least(CHUNK, columns - at),
                                                        .ntaps = taps,
                                                        .taps = r->offsets + first,
                                                        .seen = seen + (plane * r->source[0] + line * r->source[1] + at) * r->size,
                                                        .gradient = r->left + (from + (plane * a[1].count + line) * columns + at) * r->size,
                                                        .seen_row = r->source[1],
                                                        .gradient_channel = r->places,
                                                        .sums = lanes,
                                                        .nrows = (int)rows});
}

/* Returns the number of tasks into which the gradient of a group's weight is divided. */
static int64_t weights_tasks_of_group(const struct grd_conv_run *r)
{
    return grd_conv_pieces(r->channels * r->taps, BLOCK_TAPS) * grd_conv_pieces(r->rows, GRD_CONV_LINE_ROWS);
}

/* Runs tasks [begin, end) of the gradient of a weight. A task computes the gradient for up to GRD_CONV_LINE_ROWS output channels and BLOCK_TAPS
 * kernel elements of a group. */
static void weights_tasks(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t all = r->channels * r->taps, blocks = grd_conv_pieces(all, BLOCK_TAPS), tasks = weights_tasks_of_group(r);
    _Alignas(64) char lanes[BLOCK_TAPS * GRD_CONV_LINE_ROWS * MOST_LANES_BYTES];
    _Alignas(64) char copy[GRD_CONV_LOCAL_BYTES];
    char sums[BLOCK_TAPS * GRD_CONV_LINE_ROWS * 8];
    if (r->is_local)
        memset(copy, 0, (size_t)(r->channels * r->source_channel * r->size));
    for (int64_t task = begin; task < end; task++) {
        const int64_t group = task / tasks, first = task % blocks * BLOCK_TAPS, taps = grd_least(BLOCK_TAPS, all - first);
        const int64_t row = task % tasks / blocks * GRD_CONV_LINE_ROWS, rows = grd_least(GRD_CONV_LINE_ROWS, r->rows - row);
        memset(lanes, 0, (size_t)(rows * taps * MOST_LANES_BYTES));
        for (int64_t sample = 0; sample < r->c->batch; sample++) {
            const int64_t item = group * r->c->batch + sample;
            add_item(r, item, r->is_local ? grd_conv_copy_item(r, item, copy) : grd_conv_seen(r, item), row, rows, first, taps, lanes);
        }
        r->kernel->add_lanes(rows * taps, lanes, sums);
        for (int64_t i = 0; i < rows; i++)
            (r->narrow != NULL ? r->narrow : r->cast)(
                taps, (char *const[]){r->to + ((group * r->rows + row + i) * all + first) * r->itemsize, sums + i * taps * r->size},
                (const int64_t[]){r->itemsize, r->size}, NULL);
    }
}

void grd_conv_lines_run(struct grd_conv_run *r, int64_t items)
{
    struct blocks of_phases[GRD_CONV_MOST_PHASES];
    const bool weight = r->c->kind == GRD_CONV_WEIGHT;
    const int64_t all = r->channels * r->taps, of_item = weight ? 1 : all_blocks(r, of_phases),
                  n = weight ? r->places * r->c->batch : r->places / of_item;
    const double work = (double)n * (double)all * (double)r->rows;
    int64_t grain = work >= TASK_WORK ? 1 : (int64_t)(TASK_WORK / (work > 1 ? work : 1));
    if (r->is_local)
        grain = grd_conv_pieces(grain, of_item) * of_item;
    if (weight) {
        const int64_t tasks = weights_tasks_of_group(r), first = r->first_item / r->c->batch * tasks;
        grd_parallel_for(first, first + items / r->c->batch * tasks, grain, weights_tasks, r);
    } else {
        grd_parallel_for(0, items * of_item, grain, places_tasks, r);
    }
}
