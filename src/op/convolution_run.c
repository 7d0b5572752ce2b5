/* Computes convolutions as matrix products, for every dtype and shape (see convolution.h).
 *
 * If the result is an output, the right matrix has a column for each output position of each sample, and a row for each kernel element ("tap") of
 * each channel. Its elements are the image elements that the positions read through the taps. If the result is the gradient of a weight, the right
 * matrix is the transpose of this matrix. A task computes a block of columns: it packs the image elements into panels and calls the kernel for packed
 * products. If the result is an image, the product has a row, called a line, for each tap of each channel. A line holds the contributions of all
 * output positions to this channel through this tap. The lines are added to the image, tap by tap, as col2im does.
 *
 * Invariants: blocks depend on shapes alone, and the sums of a block are computed in a fixed order. So results do not depend on the number of
 * threads, bit for bit. Half types and small integers are computed in the dtype of their matrix products and rounded once. */
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/convolution.h"
#include "op/product.h"
#include "op/sizes.h"

enum {
    BLOCK_COLUMNS = 192, /* columns of the right matrix in a block; a multiple of the panel width of every kernel */
    BLOCK_ROWS = 64,     /* rows of the left matrix in a block, if the result is an image or the gradient of a weight */
    /* number of rows or columns of the right matrix that are read, and converted to the dtype of the computation, at a time */
    LINES = 32,
    MOST_SLOTS = 32, /* limit on the tasks that run at the same time, because each needs scratch memory (a slot) */
    /* Limit on the bytes of scratch memory for all tasks that run at the same time. */
    SLOT_BYTES = 64 << 20,
    /* Limit on the bytes of the products that are computed before they are added to an image. It is exceeded only if the products of one kernel
     * element need more. */
    WAVE_BYTES = 4 << 20
};

/* The part of an image that is computed at a time: samples [sample, sample + samples), channels [channel, channel + channels) and kernel elements
 * [tap, tap + taps). It has several samples only if it has all channels, and several channels only if it has all kernel elements. */
struct wave {
    int64_t sample, samples, channel, channels, tap, taps;
};

/* Everything about one convolution that its tasks need. */
struct run {
    const struct grd_conv *c;
    const struct grd_product_kernels *kernels;
    /* widen: converts elements from the operands' dtype to the dtype of the computation. narrow: converts back. NULL if the two dtypes are equal. */
    grd_loop_kernel *widen, *narrow;
    /* itemsize: bytes of an element of the operands; size: bytes of an element in the dtype of the computation */
    int64_t itemsize, size;
    struct grd_windows windows;
    int64_t taps, positions; /* a channel has `taps` kernel elements, a sample has `positions` output positions */
    /* The matrix of one group's left operand has `rows` rows and `depth` columns; a task multiplies `step` of these columns at a time. */
    int64_t rows, depth, step;
    /* left: the operand that is packed as the left matrix; seen: the operand that is read through windows; bias may be NULL */
    const char *left, *seen, *bias;
    char *to;
    /* Distances in the result, in elements, from sample to sample, from channel to channel and from position to position. */
    int64_t to_sample, to_row, to_column;
    char *packed; /* the packed weights of all groups */
    /* packed_bytes: bytes of a group's packed weights. panel_bytes, sums_bytes, rows_bytes: bytes of the panels, the sums and the packed rows in a
     * slot (the scratch memory of one task). */
    int64_t packed_bytes, panel_bytes, sums_bytes, rows_bytes;
    char *slots;
    /* A group has `blocks` tasks. The tasks of all groups are run in batches of at most `nslots`. `first` is the number of the first task in the
     * current batch. */
    int64_t nslots, blocks, first;
    struct wave wave; /* used only if the result is an image: the part of the image that is computed now */
    /* Only if the result is an image. group: the group that is computed now. line_bytes, plane_bytes: bytes of `lines` and `planes`. */
    int64_t group, line_bytes, plane_bytes;
    /* lines: the products for the part of the image that is computed now (`wave`). planes: image elements not yet rounded to the result's dtype; NULL
     * if no rounding is needed */
    char *lines, *planes;
};

static void widen(const struct run *r, int64_t n, const char *from, char *to)
{
    r->widen(n, (char *const[]){to, (char *)(uintptr_t)from}, (const int64_t[]){r->size, r->itemsize}, NULL);
}

/* ---- What is multiplied ------------------------------------------------------------------------------------------------------------ */

/* Packs columns [at, at + depth) of a left matrix with `rows` rows into strips, the blocks of rows that a product kernel reads together. Rows
 * start `row` elements apart. Each row consists of runs of `run` contiguous elements that start `distance` elements apart. */
static void pack_left(const struct run *r, const char *from, int64_t row, int64_t run, int64_t distance, int64_t rows, int64_t at,
                      int64_t depth, char *to)
{
    const int64_t strip = r->kernels->strip;
    _Alignas(64) char chunk[LINES * 64 * sizeof(grd_complex64)];
    for (int64_t i = 0; i < rows; i += strip) {
        const int64_t n = grd_least(strip, rows - i);
        for (int64_t k = at; k < at + depth;) {
            const int64_t length = grd_least(grd_least(run - k % run, at + depth - k), r->widen != NULL ? LINES : depth);
            const char *lines = from + (i * row + k / run * distance + k % run) * r->itemsize;
            char *const panel = to + (i * depth + (k - at) * strip) * r->size;
            if (r->widen != NULL) {
                for (int64_t line = 0; line < n; line++)
                    widen(r, length, lines + line * row * r->itemsize, chunk + line * length * r->size);
                r->kernels->pack(length, n, strip, chunk, 1, length, panel);
            } else {
                r->kernels->pack(length, n, strip, lines, 1, row, panel);
            }
            k += length;
        }
    }
}

/* Packs portions [begin, end) of the weights. A portion is r->step columns of the (rows x depth) matrix of one group's weights. */
static void pack_weights(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const int64_t strips = grd_round_up(r->rows, r->kernels->strip);
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t pieces = grd_ceil_div(r->depth, r->step), group = piece / pieces, at = piece % pieces * r->step;
        pack_left(r, r->left + group * r->rows * r->depth * r->itemsize, r->depth, r->depth, r->depth, r->rows, at,
                  grd_least(r->step, r->depth - at), r->packed + group * r->packed_bytes + strips * at * r->size);
    }
}

/* Packs the transpose of a (depth x rows) matrix of weights into strips, the blocks of rows that a product kernel reads together. The rows of the
 * (depth x rows) matrix start `distance` elements apart. */
static void pack_across(const struct run *r, const char *from, int64_t distance, int64_t rows, int64_t depth, char *to)
{
    enum { MOST_STRIP = 64 };
    const int64_t strip = r->kernels->strip;
    _Alignas(64) char chunk[LINES * MOST_STRIP * sizeof(grd_complex64)];
    for (int64_t i = 0; i < rows; i += strip) {
        const int64_t n = grd_least(strip, rows - i), most = r->widen != NULL ? LINES : depth;
        for (int64_t k = 0; k < depth; k += most) {
            const int64_t length = grd_least(most, depth - k);
            const char *lines = from + (k * distance + i) * r->itemsize;
            for (int64_t line = 0; r->widen != NULL && line < length; line++)
                widen(r, n, lines + line * distance * r->itemsize, chunk + line * n * r->size);
            r->kernels->pack(length, n, strip, r->widen != NULL ? chunk : lines, r->widen != NULL ? n : distance, 1,
                             to + (i * depth + k * strip) * r->size);
        }
    }
}

/* ---- What is read through windows ------------------------------------------------------------------------------------------------------ */

/* Writes to `line` the n elements that kernel element k multiplies at the output positions [first, first + n). Positions are numbered through all
 * samples, and kernel elements through all channels of the group. */
static void read_line(const struct run *r, int64_t group, int64_t k, int64_t first, int64_t n, char *line)
{
    const struct grd_conv *c = r->c;
    const int64_t channels = c->kind == GRD_CONV_IMAGE ? c->outer : c->inner, tap = k % r->taps;
    const int64_t taps[GRD_CONV_DIMS] = {tap / c->kernel[2] / c->kernel[1], tap / c->kernel[2] % c->kernel[1], tap % c->kernel[2]};
    const int64_t plane = grd_conv_product(r->windows.plane) * r->itemsize;
    while (n > 0) {
        const int64_t sample = first / r->positions, at = first % r->positions, length = grd_least(n, r->positions - at);
        grd_windows_line(&r->windows, r->seen + ((sample * c->groups + group) * channels + k / r->taps) * plane, taps, at, length, line);
        line += length * r->itemsize;
        first += length;
        n -= length;
    }
}

/* Packs elements of r->seen into `panel`. For each kernel element in [k, k + n) and each output position in [first, first + length), packs the
 * element of r->seen that the kernel element multiplies for this position. If `across`, the panel has a row for each position and a column for each
 * kernel element. Otherwise the panel has a row for each kernel element and a column for each position. */
static void pack_lines(const struct run *r, int64_t group, int64_t k, int64_t n, int64_t first, int64_t length, bool across, int64_t width,
                       char *panel)
{
    enum { MOST_PLACES = 64 };
    _Alignas(64) char lines[LINES * MOST_PLACES * 16], wide[LINES * MOST_PLACES * sizeof(grd_complex64)];
    const char *from = lines;
    for (int64_t i = 0; i < n; i++)
        read_line(r, group, k + i, first, length, lines + i * length * r->itemsize);
    if (r->widen != NULL) {
        widen(r, n * length, lines, wide);
        from = wide;
    }
    r->kernels->pack(across ? length : n, across ? n : length, width, from, across ? 1 : length, across ? length : 1, panel);
}

/* ---- Tasks -------------------------------------------------------------------------------------------------------------------------------- */

/* The scratch memory of one task: packed panels (blocks of columns of the right matrix), sums, and packed rows of the left matrix. */
struct slot {
    char *panels, *sums, *rows;
};

static struct slot slot_of(const struct run *r, int64_t task)
{
    char *const memory = r->slots + (task - r->first) * (r->panel_bytes + r->sums_bytes + r->rows_bytes);
    return (struct slot){memory, memory + r->panel_bytes, memory + r->panel_bytes + r->sums_bytes};
}

/* Multiplies packed rows of the left matrix by slot->panels, the packed columns of the right matrix. Writes the product to `to`, or adds it to `to`
 * if `added`. */
static void multiply(const struct run *r, const char *left, const struct slot *slot, int64_t rows, int64_t columns, int64_t depth,
                     bool added, char *to, int64_t to_row)
{
    r->kernels->packed(&(struct grd_gemm){.m = rows,
                                          .n = columns,
                                          .k = depth,
                                          .a = left,
                                          .b = slot->panels,
                                          .c = to,
                                          .c_row = to_row,
                                          .c_col = 1,
                                          .alpha = grd_int(1),
                                          .beta = grd_int(added)});
}

/* Packs a block of a group's right matrix into `panels`: rows [at, at + depth) and columns [first, first + columns). A column is an output
 * position. */
static void pack_places(const struct run *r, int64_t group, int64_t at, int64_t depth, int64_t first, int64_t columns, char *panels)
{
    const int64_t panel = r->kernels->panel;
    for (int64_t j = 0; j < columns; j += panel) {
        const int64_t n = grd_least(panel, columns - j), width = grd_round_up(n, r->kernels->lanes);
        for (int64_t k = 0; k < depth; k += LINES)
            pack_lines(r, group, at + k, grd_least(LINES, depth - k), first + j, n, false, width,
                       panels + (j * depth + k * width) * r->size);
    }
}

/* Converts n sums to the result's dtype and writes them to the result, from address `to` on and `step` elements apart. */
static void write_row(const struct run *r, const char *sums, int64_t n, char *to, int64_t step)
{
    if (r->narrow == NULL && step == 1)
        memcpy(to, sums, (size_t)(n * r->itemsize));
    else
        (r->narrow != NULL ? r->narrow : grd_cast_kernel(r->c->dtype, r->c->dtype))(n, (char *const[]){to, (char *)(uintptr_t)sums},
                                                                                    (const int64_t[]){step * r->itemsize, r->size}, NULL);
}

/* Sets n sums, which are `step` bytes apart, to the bias of a channel, or to zero if there is no bias. */
static void begin_sums(const struct run *r, int64_t channel, int64_t n, char *sums, int64_t step)
{
    static const char zero[16];
    const char *from = r->bias != NULL ? r->bias + channel * r->itemsize : zero;
    (r->widen != NULL ? r->widen : grd_cast_kernel(r->c->dtype, r->c->dtype))(n, (char *const[]){sums, (char *)(uintptr_t)from},
                                                                              (const int64_t[]){step, 0}, NULL);
}

/* Runs tasks [begin, end) of a convolution's output. A task computes a block of output positions in all channels of a group. */
static void places_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const int64_t strips = grd_round_up(r->rows, r->kernels->strip);
    for (int64_t task = begin; task < end; task++) {
        const struct slot slot = slot_of(r, task);
        const int64_t group = task / r->blocks, first = task % r->blocks * BLOCK_COLUMNS,
                      columns = grd_least(BLOCK_COLUMNS, r->c->batch * r->positions - first);
        for (int64_t row = 0; row < r->rows; row++)
            begin_sums(r, group * r->rows + row, columns, slot.sums + row * columns * r->size, r->size);
        for (int64_t at = 0; at < r->depth; at += r->step) {
            const int64_t depth = grd_least(r->step, r->depth - at);
            pack_places(r, group, at, depth, first, columns, slot.panels);
            multiply(r, r->packed + group * r->packed_bytes + strips * at * r->size, &slot, r->rows, columns, depth, true, slot.sums,
                     columns);
        }
        for (int64_t j = 0; j < columns;) {
            const int64_t sample = (first + j) / r->positions, at = (first + j) % r->positions,
                          n = grd_least(columns - j, r->positions - at);
            for (int64_t row = 0; row < r->rows; row++)
                write_row(r, slot.sums + (row * columns + j) * r->size, n,
                          r->to + (sample * r->to_sample + (group * r->rows + row) * r->to_row + at * r->to_column) * r->itemsize,
                          r->to_column);
            j += n;
        }
    }
}

/* Runs tasks [begin, end) that compute the gradient of a weight. A task computes the gradient for a block of output channels and a block of columns,
 * where a column is one kernel element of one image channel. Each sum is over the output positions of all samples. */
static void weight_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const struct grd_conv *c = r->c;
    const int64_t panel = r->kernels->panel, all = c->inner * r->taps, column_blocks = grd_ceil_div(all, BLOCK_COLUMNS);
    for (int64_t task = begin; task < end; task++) {
        const struct slot slot = slot_of(r, task);
        const int64_t group = task / r->blocks, row = task % r->blocks / column_blocks * BLOCK_ROWS,
                      first = task % column_blocks * BLOCK_COLUMNS;
        const int64_t rows = grd_least(BLOCK_ROWS, r->rows - row), columns = grd_least(BLOCK_COLUMNS, all - first);
        memset(slot.sums, 0, (size_t)(rows * columns * r->size));
        for (int64_t at = 0; at < r->depth; at += r->step) {
            const int64_t depth = grd_least(r->step, r->depth - at);
            pack_left(r, r->left + (group * r->rows + row) * r->positions * r->itemsize, r->positions, r->positions,
                      c->groups * r->rows * r->positions, rows, at, depth, slot.rows);
            for (int64_t j = 0; j < columns; j += panel) {
                const int64_t n = grd_least(panel, columns - j), width = grd_round_up(n, r->kernels->lanes);
                for (int64_t k = 0; k < depth; k += LINES) {
                    const int64_t length = grd_least(LINES, depth - k);
                    char *const to = slot.panels + (j * depth + k * width) * r->size;
                    pack_lines(r, group, first + j, n, at + k, length, true, width, to);
                }
            }
            multiply(r, slot.rows, &slot, rows, columns, depth, true, slot.sums, columns);
        }
        for (int64_t i = 0; i < rows; i++)
            write_row(r, slot.sums + i * columns * r->size, columns, r->to + ((group * r->rows + row + i) * all + first) * r->itemsize, 1);
    }
}

/* ---- Images ----------------------------------------------------------------------------------------------------------------------------------- */

/* Runs tasks [begin, end), which compute products for the gradient of an image. A line is the products of all output positions with one kernel
 * element of one channel. A task computes a block of the lines of r->wave, the part of the image that is computed now. */
static void line_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const struct wave *wave = &r->wave;
    const int64_t taps = grd_conv_product(r->c->kernel), lines = wave->channels * wave->taps, all = wave->samples * r->positions;
    const int64_t column_blocks = grd_ceil_div(all, BLOCK_COLUMNS);
    for (int64_t task = begin; task < end; task++) {
        const struct slot slot = slot_of(r, task);
        const int64_t row = task / column_blocks * BLOCK_ROWS, first = task % column_blocks * BLOCK_COLUMNS;
        const int64_t rows = grd_least(BLOCK_ROWS, lines - row), columns = grd_least(BLOCK_COLUMNS, all - first);
        const char *w = r->left + (r->group * r->depth * r->rows + wave->channel * taps + wave->tap + row) * r->itemsize;
        for (int64_t at = 0; at < r->depth; at += r->step) {
            const int64_t depth = grd_least(r->step, r->depth - at);
            pack_across(r, w + at * r->rows * r->itemsize, r->rows, rows, depth, slot.rows);
            pack_places(r, r->group, at, depth, wave->sample * r->positions + first, columns, slot.panels);
            multiply(r, slot.rows, &slot, rows, columns, depth, at > 0, r->lines + (row * all + first) * r->size, all);
        }
    }
}

/* Adds `line` to `plane`, a channel of the image whose elements are `step` apart. `line` holds one product with kernel element `tap` for each output
 * position. The product is added to the image element that the position reads through this kernel element. */
static void fold_line(const struct run *r, int64_t tap, const char *line, char *plane, int64_t step)
{
    const struct grd_conv *c = r->c;
    const int64_t taps[GRD_CONV_DIMS] = {tap / c->kernel[2] / c->kernel[1], tap / c->kernel[2] % c->kernel[1], tap % c->kernel[2]};
    /* Output positions [first, past) read an element inside the image through kernel element `tap`. Position p reads image element p * stride +
     * offset. */
    int64_t offset[GRD_CONV_DIMS], first[GRD_CONV_DIMS], past[GRD_CONV_DIMS];
    for (int d = 0; d < GRD_CONV_DIMS; d++) {
        offset[d] = taps[d] * c->dilation[d] - c->padding[d];
        first[d] = offset[d] < 0 ? grd_ceil_div(-offset[d], c->stride[d]) : 0;
        past[d] = offset[d] < c->image[d] ? grd_least(c->places[d], grd_ceil_div(c->image[d] - offset[d], c->stride[d])) : 0;
    }
    if (first[1] >= past[1] || first[2] >= past[2])
        return;
    const int64_t row = c->stride[1] * c->image[2] * step,
                  at = (first[1] * c->stride[1] + offset[1]) * c->image[2] + first[2] * c->stride[2] + offset[2];
    for (int64_t i = first[0]; i < past[0]; i++)
        r->kernels->add_rows(past[1] - first[1], past[2] - first[2],
                             plane + ((i * c->stride[0] + offset[0]) * c->image[1] * c->image[2] + at) * step * r->size, row,
                             c->stride[2] * step, line + ((i * c->places[1] + first[1]) * c->places[2] + first[2]) * r->size, c->places[2]);
}

/* Adds the products of line_tasks to channels [begin, end) of r->wave, the part of the image that is computed now. Channels are numbered sample by
 * sample. After the last kernel element, rounds the sums to the dtype of the result and writes them. */
static void fold_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *r = context;
    const struct wave *wave = &r->wave;
    const int64_t elements = grd_conv_product(r->c->image), all = wave->samples * r->positions;
    for (int64_t task = begin; task < end; task++) {
        const int64_t sample = task / wave->channels, channel = task % wave->channels,
                      row = r->group * r->c->inner + wave->channel + channel;
        char *const to = r->to + ((wave->sample + sample) * r->to_sample + row * r->to_row) * r->itemsize;
        char *const plane = r->planes != NULL ? r->planes + task * elements * r->size : to;
        const int64_t step = r->planes != NULL ? 1 : r->to_column;
        if (wave->tap == 0)
            begin_sums(r, row, elements, plane, step * r->size);
        for (int64_t tap = 0; tap < wave->taps && r->depth > 0; tap++)
            fold_line(r, wave->tap + tap, r->lines + ((channel * wave->taps + tap) * all + sample * r->positions) * r->size, plane, step);
        if (r->planes != NULL && wave->tap + wave->taps == grd_conv_product(r->c->kernel))
            write_row(r, plane, elements, to, r->to_column);
    }
}

/* ---- The run -------------------------------------------------------------------------------------------------------------------------------- */

/* Sets r->wave to the largest part of the image whose products fit into WAVE_BYTES. There is one product for each output position and each kernel
 * element of each channel. Also sets the sizes of the memory for this part. */
static void find_wave(struct run *r)
{
    const struct grd_conv *c = r->c;
    const int64_t taps = grd_conv_product(c->kernel), room = WAVE_BYTES / r->size, positions = grd_greatest(1, r->positions);
    const int64_t elements = r->widen != NULL ? grd_greatest(1, grd_conv_product(c->image)) : 1,
                  fit = grd_least(room / taps / positions, room / elements);
    r->wave.taps = grd_clamped(room / positions, 1, taps);
    r->wave.channels = r->wave.taps == taps ? grd_clamped(fit, 1, c->inner) : 1;
    r->wave.samples = r->wave.channels == c->inner ? grd_clamped(fit / grd_greatest(1, c->inner), 1, c->batch) : 1;
    r->line_bytes = grd_round_up(r->wave.channels * r->wave.taps * r->wave.samples * r->positions * r->size, 64);
    r->plane_bytes = r->widen != NULL ? grd_round_up(r->wave.channels * r->wave.samples * elements * r->size, 64) : 0;
}

static int64_t blocks_of_wave(const struct run *r)
{
    return grd_ceil_div(r->wave.channels * r->wave.taps, BLOCK_ROWS) * grd_ceil_div(r->wave.samples * r->positions, BLOCK_COLUMNS);
}

static struct run describe(const struct grd_conv *c)
{
    const grd_dtype computed = grd_product_dtype(c->dtype);
    const bool weight = c->kind == GRD_CONV_WEIGHT, image = c->kind == GRD_CONV_IMAGE;
    struct run r = {.c = c, .kernels = grd_kernels->gemm[computed], .itemsize = grd_dtype_size(c->dtype), .size = grd_dtype_size(computed)};
    if (computed != c->dtype) {
        r.widen = grd_cast_kernel(c->dtype, computed);
        r.narrow = grd_cast_kernel(computed, c->dtype);
    }
    r.positions = grd_conv_product(c->places);
    r.windows = (struct grd_windows){.itemsize = r.itemsize};
    /* If the convolution computes the image (GRD_CONV_IMAGE), it reads the output, y in convolution.h. Each position of y is read once, without
     * windows, so a sample of y is described as one row. */
    if (image) {
        for (int d = 0; d < GRD_CONV_DIMS; d++)
            r.windows.plane[d] = r.windows.places[d] = d == GRD_CONV_DIMS - 1 ? r.positions : 1;
        r.windows.step[GRD_CONV_DIMS - 1] = 1;
    } else {
        memcpy(r.windows.plane, c->image, sizeof c->image);
        memcpy(r.windows.places, c->places, sizeof c->places);
        memcpy(r.windows.step, c->stride, sizeof c->stride);
        memcpy(r.windows.dilation, c->dilation, sizeof c->dilation);
        memcpy(r.windows.padding, c->padding, sizeof c->padding);
    }
    r.taps = image ? 1 : grd_conv_product(c->kernel);
    r.rows = image ? c->inner * grd_conv_product(c->kernel) : c->outer;
    r.depth = weight ? c->batch * r.positions : image ? c->outer : c->inner * r.taps;
    r.step = grd_greatest(1, grd_least(r.depth, r.kernels->depth));
    if (image)
        find_wave(&r);
    const int64_t columns = weight ? c->inner * r.taps : (image ? r.wave.samples : c->batch) * r.positions;
    const int64_t block = grd_least(BLOCK_COLUMNS, columns), rows = weight || image ? grd_least(BLOCK_ROWS, r.rows) : r.rows;
    const int64_t strips = grd_round_up(rows, r.kernels->strip);
    r.blocks = image ? blocks_of_wave(&r) : grd_ceil_div(columns, BLOCK_COLUMNS) * (weight ? grd_ceil_div(r.rows, BLOCK_ROWS) : 1);
    r.packed_bytes = weight || image ? 0 : grd_round_up(strips * r.depth * r.size, 64);
    r.panel_bytes = grd_round_up(grd_round_up(block, r.kernels->panel) * r.step * r.size, 64);
    r.sums_bytes = image ? 0 : grd_round_up(rows * block * r.size, 64);
    r.rows_bytes = weight || image ? grd_round_up(strips * r.step * r.size, 64) : 0;
    const int64_t slot = grd_greatest(1, r.panel_bytes + r.sums_bytes + r.rows_bytes);
    r.nslots = grd_least(grd_least(MOST_SLOTS, grd_greatest(1, SLOT_BYTES / slot)), (image ? 1 : c->groups) * r.blocks);
    return r;
}

bool grd_conv_prepare(struct grd_plan *p)
{
    const struct run r = describe(grd_conv_of(p));
    p->scratch_bytes =
        (size_t)(r.c->groups * r.packed_bytes + r.line_bytes + r.plane_bytes + r.nslots * (r.panel_bytes + r.sums_bytes + r.rows_bytes)) +
        64;
    return true;
}

/* Runs the tasks with numbers 0 to tasks - 1, at most r->nslots of them at the same time. */
static void run_tasks(struct run *r, int64_t tasks, grd_task *task)
{
    for (r->first = 0; r->first < tasks; r->first += r->nslots)
        grd_parallel_for(r->first, grd_least(tasks, r->first + r->nslots), 1, task, r);
}

/* Computes an image part by part. For each part, line_tasks computes the contributions of the kernel elements, and fold_tasks adds them to the
 * image. */
static void run_waves(struct run *r)
{
    const struct grd_conv *c = r->c;
    const struct wave most = r->wave;
    const int64_t taps = grd_conv_product(c->kernel);
    for (int64_t sample = 0; sample < c->batch; sample += most.samples)
        for (int64_t row = 0; row < c->groups * c->inner; row += r->wave.channels) {
            r->group = row / c->inner;
            for (int64_t tap = 0; tap < taps; tap += most.taps) {
                const int64_t channel = row % c->inner;
                r->wave = (struct wave){sample,  grd_least(most.samples, c->batch - sample),
                                        channel, grd_least(most.channels, c->inner - channel),
                                        tap,     grd_least(most.taps, taps - tap)};
                run_tasks(r, blocks_of_wave(r), line_tasks);
                grd_parallel_for(0, r->wave.samples * r->wave.channels, 1, fold_tasks, r);
            }
        }
}

void grd_conv_run(const struct grd_plan *p)
{
    const struct grd_conv *c = grd_conv_of(p);
    const grd_tensor *result = p->results[0];
    const bool channels_last = !grd_has(result, GRD_FLAG_CONTIGUOUS), image = c->kind == GRD_CONV_IMAGE;
    struct run r = describe(c);
    const int64_t channels = c->groups * (image ? c->inner : c->outer), elements = grd_conv_product(image ? c->image : c->places);
    r.seen = p->in[0]->data;
    r.left = p->in[1]->data;
    r.bias = p->nreads > 2 && p->in[2] != NULL ? p->in[2]->data : NULL;
    r.to = result->data;
    r.to_sample = channels * elements;
    r.to_row = channels_last ? 1 : elements;
    r.to_column = channels_last ? channels : 1;
    r.packed = (char *)(((uintptr_t)p->scratch + 63) & ~(uintptr_t)63);
    r.lines = r.packed + c->groups * r.packed_bytes;
    r.planes = r.plane_bytes > 0 ? r.lines + r.line_bytes : NULL;
    r.slots = r.lines + r.line_bytes + r.plane_bytes;
    if (image) {
        run_waves(&r);
    } else if (c->kind == GRD_CONV_WEIGHT) {
        run_tasks(&r, c->groups * r.blocks, weight_tasks);
    } else {
        grd_parallel_for(0, c->groups * grd_ceil_div(r.depth, r.step), 1, pack_weights, &r);
        run_tasks(&r, c->groups * r.blocks, places_tasks);
    }
}
