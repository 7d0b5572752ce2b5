/* Runs an elementwise kernel over the elements of an iterator; see iter.h. A line is the elements along the innermost dimension of the iteration,
 * dimension 0.
 *
 * This file has the loops over the outer dimensions, and converts dtypes through buffers that fit into the cache. The conversion kernels are
 * elsewhere (grd_cast_kernel).
 *
 * Invariant: nothing can fail, and the division of the elements into parts for the threads does not depend on the number of threads. */
#include "core/iter.h"

#include "base/integer.h"
#include "base/parallel.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/index.h"

/* Bytes in the buffer of one operand: 4 KiB, which is GRD_ITER_FEW elements of 16 bytes, the largest dtype. The buffers of all GRD_ITER_OPERANDS
 * operands, 24 KiB, fit into a first-level cache of 32 KiB. */
enum { BUFFER_BYTES = 16 * GRD_ITER_FEW };

/* ---- Running ---------------------------------------------------------------------------------------------------------------------- */

/* A kernel with the decisions about how to run it over the elements of an iterator. All threads share it, and none writes to it. */
struct run {
    const struct grd_iter *it;
    grd_loop_kernel *kernel;
    const void *params;
    grd_loop_kernel *cast[GRD_ITER_OPERANDS]; /* conversion kernel of operand i, or NULL; set only if it->converts */
    unsigned turned;                          /* bit i is set if operand i is copied into a transposed buffer; see Note [Turned operands] */
    /* A line is the elements along dimension 0. `lines` is the number of lines that are processed together if an operand is transposed, otherwise
     * 1. `columns` is the number of elements of each of these lines that are transposed at a time. */
    int64_t lines, columns;
    /* Largest number of lines (of elements along dimension 0) that are copied into buffers for one kernel call, see Note [Packed lines]. 0 if the
     * kernel is called for each line. */
    int64_t packed;
};

/* Returns the conversion kernel of an operand. For an input it converts from the dtype in memory to the dtype that the kernel reads, and for the
 * result from the dtype that the kernel writes to the dtype in memory. */
static grd_loop_kernel *cast_of(const struct grd_iter *it, int operand)
{
    const grd_dtype memory = it->dtypes[operand], wanted = it->wanted[operand];
    return operand == 0 ? grd_cast_kernel(wanted, memory) : grd_cast_kernel(memory, wanted);
}

/* For Note [Turned operands]: TURNED is the maximum number of operands that are transposed, and TURNED_BYTES the size in bytes of the buffer for each
 * of them. MOST_TURNED is the maximum number of elements in a group of lines. */
enum { TURNED = 2, TURNED_BYTES = 32768, CACHE_LINE = 64, MOST_TURNED = 1 << 18 };

/* Note [Turned operands]
 * A line is the elements along dimension 0. The elements of a transposed operand are contiguous along dimension 1 instead. So each element of a line
 * is in a different cache line, which also has elements of the next lines. Processing one line after the other would load each cache line many times.
 * Therefore lines are processed in groups. A group has as many lines as a cache line has elements. The elements of a group are first transposed into
 * a buffer, as many columns at a time as fit.
 * At most TURNED operands are transposed. Each thread processes whole groups. An operand is not transposed if a group would have more than
 * MOST_TURNED elements, because the parts for the threads would be too large. */
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

/* Runs the kernel on one line, i.e. on `n` elements along dimension 0 of the iteration, and converts the operands whose dtype in memory is not the
 * kernel's. Processes GRD_ITER_FEW elements at a time, because this many fit into the buffers. An operand with stride 0 is converted only once. */
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

/* Runs the kernel on one line, which consists of `n` elements along dimension 0 of the iteration. data[i] is the address of its first element in
 * operand i, and strides[i] the stride in bytes. */
static void run_line(const struct run *run, int64_t n, char *const *data, const int64_t *strides)
{
    if (run->it->converts)
        run_converted(run, n, data, strides);
    else
        run->kernel(n, data, strides, run->params);
}

/* A line is `n` elements of `size` bytes along dimension 0. True if the lines of an operand follow each other in memory without gaps, or if all of
 * them consist of one broadcast element. */
static bool lies_packed(int64_t n, int64_t size, int64_t stride, int64_t line_stride)
{
    return (stride == size && line_stride == n * size) || (stride == 0 && line_stride == 0);
}

/* Note [Packed lines]
 * A line is the elements along the innermost dimension. If lines are short, a kernel call for each line takes longer than the kernel's work on the
 * line. So the kernel is called once for many lines. Operands whose lines do not follow each other in memory are first copied into buffers. If the
 * result is such an operand, the kernel writes to a buffer, which is then copied to the result. */
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

/* Runs the kernel on `lines` lines, each of which has `n` elements along dimension 0 of the iteration. at[i] is the address of the first line in
 * operand i; it is changed. strides[i] is the distance in bytes between elements of a line. line_strides[i] is the distance in bytes between
 * lines. */
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

/* A position in the iteration: an element, and the line (along dimension 0) that contains it. */
struct cursor {
    int64_t index[GRD_MAX_DIMS];   /* index[0] is the index in the innermost dimension */
    char *line[GRD_ITER_OPERANDS]; /* address of the first element of the current line in each operand */
};

/* Moves the cursor to element number `position`, counted in the order of the iteration. */
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

/* Moves the cursor to the start of the line (the elements along dimension 0) that is `lines` steps further along dimension 1. At least `lines`
 * lines must be left along dimension 1. If none is left afterwards, moves on along the outer dimensions. */
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

enum { SHORT_LINE = 8, COLUMN = 1024 }; /* in elements */

/* Note [Short lines]
 * A line is the elements along the innermost dimension. If a line has at most SHORT_LINE elements, a kernel call for each line takes longer than the
 * kernel's work on the line. So up to COLUMN lines, whose elements stay in the cache, are processed together, with one kernel call for each column. A
 * column is the elements that have the same index in the innermost dimension. */
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

/* Runs the kernel on `lines` lines (a line is the elements along dimension 0), after transposing the operands in run->turned into buffers; see Note
 * [Turned operands]. */
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

/* Runs the kernel on elements number `begin` to `end` - 1. A line is the elements along dimension 0. If `columns` is true, several lines are
 * processed together, column by column; see Note [Short lines]. */
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
        /* Number of complete lines (along dimension 0) from the cursor to the end of dimension 1, or to `end` if it comes first. */
        int64_t lines = left < whole ? left : whole;
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

/* The dimensions along which a tensor is copied, innermost first. Strides are in bytes. Dimensions of size 1 are left out. If fewer than two
 * dimensions remain, dimensions of size 1 and stride 0 are appended. */
struct lines {
    int ndim;
    int64_t shape[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};

/* Writes to *lines the sizes and the byte strides of `t` broadcast to the shape of the iteration. Dimensions of size 1 are left out. */
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

/* Copies the elements of `t`, broadcast to the shape of the iteration, to the contiguous buffer `block`. If `back` is true, copies from `block` to
 * `t` instead. */
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

/* Returns the address of the elements of an operand, contiguous and in the dtype of the kernel. If they have another dtype, converts them into
 * `converted`. If only contiguity is missing, copies them into `buffer`. Otherwise this is the operand's own memory. For operand 0, the result,
 * copies nothing and returns the address that the kernel writes to. */
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

/* Copies the result, which the kernel has written to `at`, to the result tensor, unless `at` is the tensor's own memory. If the result must also
 * be converted to another dtype and is not contiguous, it is first converted into `buffer`. */
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

/* Returns the number of elements that one thread processes without interruption. If operands are transposed, this number is a multiple of the
 * number of elements in a group of lines (Note [Turned operands]). */
static int64_t grain_of(const struct run *run)
{
    const int64_t turned = run->lines * run->it->shape[0];
    const int64_t grain = grd_iter_grain(run->it->numel);
    return run->turned == 0 ? grain : grd_round_up(grain, turned);
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

/* Returns the number of bytes that all operands together occupy in memory. A dimension with stride 0 counts as size 1. */
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

/* True if the operand's lines (the elements along dimension 0) follow each other in memory without gaps, or if all lines read one broadcast
 * element, i.e. their strides are 0. */
static bool lies_packed_in(const struct grd_iter *it, int operand)
{
    const int64_t *const strides = it->strides[operand];
    return lies_packed(it->shape[0], grd_dtype_table[it->dtypes[operand]].size, strides[0], strides[1]);
}

/* Returns how many lines (the elements along dimension 0) are copied into buffers for one kernel call. Returns 0 if a line has more than LONGEST
 * elements, because for such lines one kernel call for each line is faster. This limit is halved for each operand that must be copied. It is higher
 * if dtypes are converted, because conversion makes each kernel call more expensive. */
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

/* Runs the kernel of `map` over all elements of an iteration with more than GRD_ITER_FEW elements. */
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
 * If all elements of an operand fit into a buffer, operands that are not contiguous are first copied into buffers, and the kernel is called once.
 * Sorting the dimensions, or calling the kernel for each line (the elements along one dimension), would take longer than the kernel's work. */
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
