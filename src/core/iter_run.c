/* Running an elementwise kernel over what iter.c has bound: see iter.h.
 *
 * Lives here: the loops over everything but the innermost dimension, and conversion in cache-sized pieces. Not here: conversions themselves
 * (grd_cast_kernel).
 *
 * Invariant: nothing can fail; pieces of work are the same for every number of threads. */
#include "core/iter.h"

#include "base/parallel.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/index.h"

/* Of one operand: all of them stay in the first-level cache. */
enum { BUFFER_BYTES = 16 * GRD_ITER_FEW };

/* ---- Running ---------------------------------------------------------------------------------------------------------------------- */

struct run {
    const struct grd_iter *it;
    grd_loop_kernel *kernel;
    const void *params;
    grd_loop_kernel *cast[GRD_ITER_OPERANDS]; /* NULL: as it lies in memory */
    unsigned turned;                          /* bit i: operand i is, Note [Turned operands] */
    int64_t lines, columns;                   /* how many lines are taken at a time, and columns of them transposed */
    int64_t packed;                           /* how many lines are brought together at most, Note [Packed lines]; 0: none are */
};

static grd_loop_kernel *cast_of(const struct grd_iter *it, int operand)
{
    const grd_dtype memory = it->dtypes[operand], wanted = it->wanted[operand];
    return operand == 0 ? grd_cast_kernel(wanted, memory) : grd_cast_kernel(memory, wanted);
}

enum { TURNED = 2, TURNED_BYTES = 32768, CACHE_LINE = 64, MOST_TURNED = 1 << 18 /* elements of the lines taken at a time */ };

/* Note [Turned operands]
 * The elements of a line of a transposed operand lie in as many lines of the cache, and their neighbours belong to the next lines. So as many lines are
 * taken at a time as a line of the cache has elements, and are transposed into a buffer, some columns of them at a time. */
static void find_turned(struct run *run, const struct grd_iter *it)
{
    int found = 0;
    int64_t widest = 1;
    run->turned = 0;
    run->lines = 1;
    for (int i = 1; i < it->noperands && it->ndim > 1 && found < TURNED; i++) {
        const int64_t size = it->dtypes[i] != GRD_DTYPE_NONE ? grd_dtype_table[it->dtypes[i]].size : 0,
                      lines = size > 0 ? CACHE_LINE / size : 0;
        if (size == 0 || it->strides[i][1] != size || it->strides[i][0] == size || it->strides[i][0] == 0)
            continue;
        if (it->shape[0] < lines || it->shape[1] < lines || it->shape[0] > MOST_TURNED / lines)
            continue;
        run->turned |= 1u << i;
        run->lines = run->lines > lines ? run->lines : lines;
        widest = widest > size ? widest : size;
        found++;
    }
    run->columns = TURNED_BYTES / (run->lines * widest);
}

static void make_run(struct run *run, const struct grd_iter *it, grd_loop_kernel *kernel, const void *params)
{
    run->it = it;
    run->kernel = kernel;
    run->params = params;
    run->packed = 0;
    for (int i = 0; i < it->noperands && it->converts; i++)
        run->cast[i] = it->dtypes[i] != it->wanted[i] ? cast_of(it, i) : NULL;
    find_turned(run, it);
}

/* n elements in a line, some of them in another dtype than the kernel's. An operand with stride 0 is converted once; others need pieces that fit the
 * buffers. */
static void run_converted(const struct run *run, int64_t n, char *const *data, const int64_t *strides)
{
    _Alignas(64) char buffers[GRD_ITER_OPERANDS][BUFFER_BYTES];
    const struct grd_iter *it = run->it;
    char *at[GRD_ITER_OPERANDS];
    int64_t steps[GRD_ITER_OPERANDS], piece = n;
    for (int i = 0; i < it->noperands; i++) {
        at[i] = run->cast[i] != NULL ? buffers[i] : data[i];
        steps[i] = run->cast[i] == NULL ? strides[i] : i > 0 && strides[i] == 0 ? 0 : (int64_t)grd_dtype_table[it->wanted[i]].size;
        if (run->cast[i] != NULL && steps[i] == 0)
            run->cast[i](1, (char *const[]){buffers[i], data[i]}, (const int64_t[]){0, 0}, NULL);
        else if (run->cast[i] != NULL)
            piece = GRD_ITER_FEW;
    }
    for (int64_t done = 0; done < n; done += piece) {
        const int64_t count = n - done < piece ? n - done : piece;
        for (int i = 0; i < it->noperands; i++) {
            if (run->cast[i] == NULL)
                at[i] = data[i] + done * strides[i];
            else if (i > 0 && steps[i] != 0)
                run->cast[i](count, (char *const[]){buffers[i], data[i] + done * strides[i]}, (const int64_t[]){steps[i], strides[i]},
                             NULL);
        }
        run->kernel(count, at, steps, run->params);
        if (run->cast[0] != NULL)
            run->cast[0](count, (char *const[]){data[0] + done * strides[0], buffers[0]}, (const int64_t[]){strides[0], steps[0]}, NULL);
    }
}

static void run_line(const struct run *run, int64_t n, char *const *data, const int64_t *strides)
{
    if (run->it->converts)
        run_converted(run, n, data, strides);
    else
        run->kernel(n, data, strides, run->params);
}

/* True if lines of n elements lie one behind the other, or are all the same element. */
static bool lies_packed(int64_t n, int64_t size, int64_t stride, int64_t line_stride)
{
    return (stride == size && line_stride == n * size) || (stride == 0 && line_stride == 0);
}

/* Note [Packed lines]
 * A kernel is called once for many short lines, since calls would cost more than the work: operands whose lines do not lie one behind the other are copied to
 * buffers first, and a result is copied back. */
static void run_packed(const struct run *run, int64_t lines, int64_t n, char *const *data, const int64_t *strides,
                       const int64_t *line_strides)
{
    _Alignas(64) char buffers[GRD_ITER_OPERANDS][BUFFER_BYTES];
    const struct grd_iter *it = run->it;
    char *at[GRD_ITER_OPERANDS];
    int64_t sizes[GRD_ITER_OPERANDS], steps[GRD_ITER_OPERANDS];
    bool lies_so[GRD_ITER_OPERANDS];
    for (int i = 0; i < it->noperands; i++) {
        sizes[i] = grd_dtype_table[it->dtypes[i]].size;
        lies_so[i] = lies_packed(n, sizes[i], strides[i], line_strides[i]);
        steps[i] = lies_so[i] ? strides[i] : sizes[i];
    }
    for (int64_t line = 0, some; line < lines; line += some) {
        some = lines - line < run->packed ? lines - line : run->packed;
        for (int i = 0; i < it->noperands; i++) {
            char *const here = data[i] + line * line_strides[i];
            at[i] = lies_so[i] ? here : buffers[i];
            if (i > 0 && !lies_so[i] && (line == 0 || line_strides[i] != 0))
                grd_copy_lines(some, n, sizes[i], at[i], (const int64_t[]){sizes[i], n * sizes[i]}, here,
                               (const int64_t[]){strides[i], line_strides[i]});
        }
        run_line(run, some * n, at, steps);
        if (!lies_so[0])
            grd_copy_lines(some, n, sizes[0], data[0] + line * line_strides[0], (const int64_t[]){strides[0], line_strides[0]}, at[0],
                           (const int64_t[]){sizes[0], n * sizes[0]});
    }
}

static void run_lines(const struct run *run, int64_t lines, int64_t n, char **at, const int64_t *strides, const int64_t *line_strides)
{
    if (run->packed > 0) {
        run_packed(run, lines, n, at, strides, line_strides);
        return;
    }
    for (; lines > 0; lines--) {
        run_line(run, n, at, strides);
        for (int i = 0; i < run->it->noperands; i++)
            at[i] += line_strides[i];
    }
}

/* Where a walk over the outer dimensions stands. */
struct cursor {
    int64_t index[GRD_MAX_DIMS];   /* [0] is within the innermost line */
    char *line[GRD_ITER_OPERANDS]; /* first element of the line */
};

static void cursor_set(struct cursor *c, const struct grd_iter *it, int64_t position)
{
    for (int i = 0; i < it->noperands; i++)
        c->line[i] = it->data[i];
    for (int d = 0; d < it->ndim; d++) {
        c->index[d] = position % it->shape[d];
        position /= it->shape[d];
        for (int i = 0; d > 0 && i < it->noperands; i++)
            c->line[i] += c->index[d] * it->strides[i][d];
    }
}

/* Moves on by `lines` along dimension 1, which has that many left. */
static void cursor_advance(struct cursor *c, const struct grd_iter *it, int64_t lines)
{
    c->index[0] = 0;
    for (int d = 1; d < it->ndim; d++) {
        c->index[d] += lines;
        for (int i = 0; i < it->noperands; i++)
            c->line[i] += lines * it->strides[i][d];
        if (c->index[d] < it->shape[d])
            return;
        for (int i = 0; i < it->noperands; i++)
            c->line[i] -= it->shape[d] * it->strides[i][d];
        c->index[d] = 0;
        lines = 1;
    }
}

enum { SHORT_LINE = 8, COLUMN = 1024 };

/* Note [Short lines]
 * With few elements in the innermost dimension the calls would cost more than the work. Whole lines are then taken
 * COLUMN at a time and worked on column by column, while they are in the cache. */
static void run_columns(const struct run *run, const struct cursor *c, int64_t lines)
{
    const struct grd_iter *it = run->it;
    int64_t strides[GRD_ITER_OPERANDS];
    char *at[GRD_ITER_OPERANDS];
    for (int i = 0; i < it->noperands; i++)
        strides[i] = it->strides[i][1];
    for (int64_t column = 0; column < it->shape[0]; column++) {
        for (int i = 0; i < it->noperands; i++)
            at[i] = c->line[i] + column * it->strides[i][0];
        run_line(run, lines, at, strides);
    }
}

static void run_turned(const struct run *run, const struct cursor *c, int64_t lines)
{
    _Alignas(CACHE_LINE) char buffers[TURNED][TURNED_BYTES];
    const struct grd_iter *it = run->it;
    int64_t steps[GRD_ITER_OPERANDS], next[GRD_ITER_OPERANDS], n;
    char *at[GRD_ITER_OPERANDS];
    for (int64_t column = 0; column < it->shape[0]; column += n) {
        int filled = 0;
        n = it->shape[0] - column < run->columns ? it->shape[0] - column : run->columns;
        for (int i = 0; i < it->noperands; i++) {
            at[i] = c->line[i] + column * it->strides[i][0];
            steps[i] = it->strides[i][0];
            next[i] = it->strides[i][1];
            if ((run->turned >> i & 1) == 0)
                continue;
            const int64_t size = it->strides[i][1];
            grd_kernels->transpose[grd_index_size(size)](lines, n, buffers[filled], n * size, at[i], it->strides[i][0], false);
            at[i] = buffers[filled++];
            steps[i] = size;
            next[i] = n * size;
        }
        run_lines(run, lines, n, at, steps, next);
    }
}

static void run_range(const struct run *run, int64_t begin, int64_t end, bool columns)
{
    const struct grd_iter *it = run->it;
    int64_t strides[GRD_ITER_OPERANDS], line_strides[GRD_ITER_OPERANDS];
    char *at[GRD_ITER_OPERANDS];
    for (int i = 0; i < it->noperands; i++) {
        strides[i] = it->ndim > 0 ? it->strides[i][0] : 0;
        line_strides[i] = it->ndim > 1 ? it->strides[i][1] : 0;
    }
    if (it->ndim < 2) {
        for (int i = 0; i < it->noperands; i++)
            at[i] = it->data[i] + begin * strides[i];
        run_line(run, end - begin, at, strides);
        return;
    }
    struct cursor c;
    cursor_set(&c, it, begin);
    while (begin < end) {
        const int64_t left = it->shape[1] - c.index[1], whole = c.index[0] == 0 ? (end - begin) / it->shape[0] : 0;
        int64_t lines = left < whole ? left : whole; /* that are whole and lie one after the other along dimension 1 */
        if (columns && lines > 1) {
            lines = lines < COLUMN ? lines : COLUMN;
            run_columns(run, &c, lines);
        } else if (run->turned != 0 && lines >= run->lines) {
            lines = run->lines;
            run_turned(run, &c, lines);
        } else if (lines > 0) {
            for (int i = 0; i < it->noperands; i++)
                at[i] = c.line[i];
            run_lines(run, lines, it->shape[0], at, strides, line_strides);
        } else {
            const int64_t rest = it->shape[0] - c.index[0], n = rest < end - begin ? rest : end - begin;
            for (int i = 0; i < it->noperands; i++)
                at[i] = c.line[i] + c.index[0] * strides[i];
            run_line(run, n, at, strides);
            begin += n;
        }
        begin += lines * it->shape[0];
        lines = lines > 0 ? lines : 1;
        if (begin < end)
            cursor_advance(&c, it, lines);
    }
}

static bool has_short_lines(const struct grd_iter *it)
{
    return it->ndim > 1 && it->shape[0] <= SHORT_LINE && it->shape[1] > it->shape[0];
}

static void run_piece(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    run_range(run, begin, end, run->packed == 0 && has_short_lines(run->it));
}

/* ---- Few elements --------------------------------------------------------------------------------------------------------------- */

/* The dimensions of a tensor that has to be copied, innermost first: those with more than one element, but two at least. */
struct lines {
    int ndim;
    int64_t shape[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};

static void find_lines(struct lines *lines, const struct grd_iter *it, const grd_tensor *t)
{
    const int64_t *const sizes = t->sizes, *const strides = t->strides, itemsize = t->itemsize;
    int ndim = 0;
    for (int k = 0, own = t->ndim - 1; k < it->ndim; k++, own--) {
        if (it->shape[k] == 1)
            continue;
        lines->shape[ndim] = it->shape[k];
        lines->strides[ndim++] = own >= 0 && sizes[own] == it->shape[k] ? grd_wrapping_product(strides[own], itemsize) : 0;
    }
    for (; ndim < 2; ndim++)
        lines->shape[ndim] = 1, lines->strides[ndim] = 0;
    lines->ndim = ndim;
}

/* Copies the elements of a tensor, line by line, to a block that has them one after the other, or from there. */
static void bring(const struct grd_iter *it, const grd_tensor *t, char *block, bool back)
{
    struct lines lines;
    find_lines(&lines, it, t);
    const int64_t size = t->itemsize, n = lines.shape[0], packed[] = {size, n * size};
    int64_t index[GRD_MAX_DIMS];
    for (int d = 2; d < lines.ndim; d++)
        index[d] = 0;
    char *data = t->data;
    for (int d = 1; d < lines.ndim; block += lines.shape[1] * packed[1]) {
        if (back)
            grd_copy_lines(lines.shape[1], n, size, data, lines.strides, block, packed);
        else
            grd_copy_lines(lines.shape[1], n, size, block, packed, data, lines.strides);
        for (d = 2; d < lines.ndim && ++index[d] == lines.shape[d]; d++) {
            data -= (index[d] - 1) * lines.strides[d];
            index[d] = 0;
        }
        data += d < lines.ndim ? lines.strides[d] : 0;
    }
}

/* Where an operand has its elements one after the other, as the kernel takes them: where it lies, or else in one of two buffers. */
static char *packed(const struct grd_iter *it, int operand, char *buffer, char *converted)
{
    const grd_tensor *t = it->tensors[operand];
    const bool lies_so = grd_has(t, GRD_FLAG_CONTIGUOUS) && t->numel == it->numel, converts = it->dtypes[operand] != it->wanted[operand];
    char *const at = lies_so ? t->data : buffer;
    if (operand > 0 && !lies_so)
        bring(it, t, buffer, false);
    if (operand > 0 && converts)
        cast_of(it, operand)(it->numel, (char *const[]){converted, at},
                             (const int64_t[]){grd_dtype_table[it->wanted[operand]].size, t->itemsize}, NULL);
    return converts ? converted : at;
}

/* Writes the elements of a result that the kernel has left in `at` to where they belong. */
static void unpack(const struct grd_iter *it, char *at, char *buffer)
{
    const grd_tensor *t = it->tensors[0];
    const bool lies_so = grd_has(t, GRD_FLAG_CONTIGUOUS) && t->numel == it->numel;
    char *const to = lies_so ? t->data : buffer;
    if (at != to)
        cast_of(it, 0)(it->numel, (char *const[]){to, at}, (const int64_t[]){t->itemsize, grd_dtype_table[it->wanted[0]].size}, NULL);
    if (!lies_so)
        bring(it, t, buffer, true);
}

/* ---- All elements ------------------------------------------------------------------------------------------------------------------- */

static bool is_nothing(const struct grd_iter *it)
{
    return it->numel == 0 || it->device.type == GRD_DEVICE_META;
}

/* Elements of a piece of work: as many lines as are turned together, or twice as many, and so on. */
static int64_t grain_of(const struct run *run)
{
    const int64_t turned = run->lines * run->it->shape[0];
    const int64_t grain = grd_iter_grain(run->it->numel);
    return run->turned == 0 ? grain : (grain + turned - 1) / turned * turned;
}

static void run_all(struct run *run)
{
    if (run->it->numel <= GRD_ITER_GRAIN)
        run_piece(0, run->it->numel, run);
    else
        grd_parallel_for(0, run->it->numel, grain_of(run), run_piece, run);
}

void grd_iter_run(const struct grd_iter *it, grd_loop_kernel *kernel, const void *params)
{
    struct run run;
    if (is_nothing(it))
        return;
    make_run(&run, it, kernel, params);
    run_all(&run);
}

static int64_t bytes_of_operands(const struct grd_iter *it)
{
    int64_t sum = 0;
    for (int i = 0; i < it->noperands; i++) {
        int64_t bytes = grd_dtype_table[it->dtypes[i]].size;
        for (int d = 0; d < it->ndim; d++)
            bytes *= it->strides[i][d] != 0 ? it->shape[d] : 1;
        sum += bytes;
    }
    return sum;
}

static bool lies_packed_in(const struct grd_iter *it, int operand)
{
    const int64_t *const strides = it->strides[operand];
    return lies_packed(it->shape[0], grd_dtype_table[it->dtypes[operand]].size, strides[0], strides[1]);
}

/* Longer lines take less time where they are: half as long ones with each operand that is copied for all lines. Conversions make a call longer. */
static int64_t packed_lines(const struct grd_iter *it, bool converts)
{
    enum { LONGEST = 64, LONGEST_CONVERTED = 256 };
    int64_t widest = 1;
    int copied = 0;
    if (it->ndim < 2)
        return 0;
    for (int i = 0; i < it->noperands; i++) {
        const int64_t size = grd_dtype_table[it->dtypes[i]].size;
        widest = size > widest ? size : widest;
        copied += it->strides[i][1] != 0 && !lies_packed_in(it, i);
    }
    return it->shape[0] <= (converts ? LONGEST_CONVERTED : LONGEST) >> copied ? BUFFER_BYTES / (widest * it->shape[0]) : 0;
}

static __attribute__((noinline)) void map_many(const struct grd_iter *it, const struct grd_map *map)
{
    struct grd_map large = *map;
    struct run run;
    make_run(&run, it, grd_map, &large);
    run.packed = packed_lines(it, it->converts || map->half != GRD_DTYPE_NONE);
    const bool buffered = it->dtypes[0] != it->wanted[0] || (run.packed > 0 && !lies_packed_in(it, 0));
    if (!buffered)
        large.stores = grd_stores_for(bytes_of_operands(it), it->noperands, it->data);
    run_all(&run);
}

/* Note [Few elements]
 * Where all elements of an operand fit into a buffer, those that do not lie there one after the other, as the kernel takes them, are brought together
 * first, and the kernel is called once: to order dimensions, and to call it for single lines, would cost more than the work. */
void grd_iter_map(const struct grd_iter *it, const struct grd_map *map)
{
    _Alignas(64) char buffers[GRD_ITER_OPERANDS][BUFFER_BYTES], converted[GRD_ITER_OPERANDS][BUFFER_BYTES];
    char *at[GRD_ITER_OPERANDS];
    int64_t sizes[GRD_ITER_OPERANDS];
    if (is_nothing(it))
        return;
    if (!it->few) {
        map_many(it, map);
        return;
    }
    for (int i = 0; i < it->noperands; i++) {
        at[i] = packed(it, i, buffers[i], converted[i]);
        sizes[i] = grd_dtype_table[it->wanted[i]].size;
    }
    if (map->half == GRD_DTYPE_NONE)
        map->kernel->block(it->numel, at, map->params);
    else
        grd_map(it->numel, at, sizes, map);
    unpack(it, at[0], buffers[0]);
}

void grd_iter_run_serial(const struct grd_iter *it, grd_loop_kernel *kernel, const void *params)
{
    struct run run;
    if (is_nothing(it))
        return;
    make_run(&run, it, kernel, params);
    run.turned = 0;
    run_range(&run, 0, it->numel, false);
}
