/* Runs kernels that process lines, i.e. all elements along one dimension of a tensor, for operators such as softmax and cumsum. Lines in a layout
 * or dtype that the kernel cannot read are copied to scratch memory. */
#include "op/lines.h"

#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/index.h"
#include "kernel/table.h"
#include "op/checks.h"
#include "op/dtypes.h"
#include "op/sizes.h"

enum {
    GRAIN = 1 << 13, /* number of elements that are enough work for one task */
    PARTS = 16,      /* maximum number of tasks if each task needs scratch memory */
    ALIGNMENT = 64,
    CACHE_LINE = 64,
    /* Maximum bytes of the block of scratch memory for the lines of one operand. If two operands share one block, the maximum is 3 * BLOCK. Four
     * blocks, or one shared block, fit into 1 MiB of cache. */
    BLOCK = 1 << 18,
    TOGETHER = 2048, /* elements that are converted at a time; these and the kernel's data fit into the first-level cache */
    AHEAD = 8,       /* distance in rows from the current row to the row that is prefetched by software; needed because the hardware
                      * prefetcher stops at page boundaries */
    TURNED = 64      /* number of rows of a scratch block that are transposed at a time; each transposed column then fills whole cache
                      * lines */
};

/* Describes a result or input of the operator. A line is the elements along the operator's dimension. `data` is the address of the first line.
 * `along` is the stride in bytes between elements of a line. strides[d] is the stride in bytes from one line to the next along dimension d of the
 * member `sizes` of struct lines. */
struct operand {
    char *data;
    int64_t along, strides[GRD_MAX_DIMS];
    /* Converts between the dtype in memory and the dtype of the kernel. NULL if the kernel reads or writes the tensor's memory directly. */
    grd_loop_kernel *cast;
    int64_t size;  /* bytes of an element in memory */
    int64_t block; /* offset in bytes, in a task's scratch memory, of the copies of the operand's lines */
    bool converts; /* true if the dtype in memory differs from the dtype of the kernel */
    /* True if the copy in scratch memory is transposed: elements that are adjacent in the tensor's memory form a column of the copy. */
    bool transposed;
    uint8_t kind; /* how the kernel uses the operand, a value of enum grd_lines_operand */
};

/* The data that an operator's plan passes to run_lines(). A line is the elements along the operator's dimension. */
struct lines {
    grd_lines_kernel *kernel;
    grd_dtype as; /* dtype in which the kernel computes */
    /* `n` is the number of elements of a line. `size` is the number of bytes of an element in the kernel's dtype. */
    int64_t n, size;
    int first, past; /* a line is the elements along dimensions first to past - 1 of the result */
    /* noperands: number of results and inputs; ndim: number of dimensions outside a line, where merged dimensions count as one */
    int nresults, noperands, ndim;
    int64_t sizes[GRD_MAX_DIMS]; /* number of lines along each of the ndim dimensions, the innermost first */
    /* has_columns: the kernel supports the layout "columns". columns: this layout is used. In this layout, element i of one line is followed in
     * memory by element i of the next line (kernel/lines.h). */
    bool has_columns, columns;
    double numbers[GRD_LINES_NUMBERS];
    /* Maximum number of lines of a strip (the lines of one kernel call), number of all strips, and number of strips along the innermost dimension. */
    int64_t width, strips, strips_per_row;
    int64_t part, parts, part_bytes; /* strips per task, number of tasks, bytes of scratch memory per task */
    /* Offset in bytes, in a task's scratch memory, of a buffer for rows that are both transposed and converted. It holds the rows between these two
     * steps. */
    int64_t turned;
    /* Maximum number of tasks; INT64_MAX if there is no limit. If tasks need scratch memory, the limit is PARTS. If a result has kind
     * GRD_LINES_SUM, its number of rows is also a limit, because each task adds to its own row. */
    int64_t most_parts;
    struct operand operands[GRD_LINES_OPERANDS];
};

static struct lines *lines_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct lines) <= GRD_PLAN_STATE, "room in the plan");
    return (struct lines *)(uintptr_t)p->state;
}

/* ---- The plan ----------------------------------------------------------------------------------------------------------------------- */

grd_dtype grd_lines_dtype(grd_dtype dtype)
{
    switch (grd_category_of(dtype)) {
    case GRD_CATEGORY_COMPLEX:
        return GRD_COMPLEX128;
    case GRD_CATEGORY_FLOAT:
        return grd_computed_dtype(dtype);
    default:
        return GRD_INT64;
    }
}

/* Returns the kernel for the dtype, or NULL if there is none. */
static grd_lines_kernel *find_kernel(grd_dtype dtype, enum grd_lines_kernel_index kernel)
{
    grd_lines_kernel *const *row = grd_kernels->lines[dtype];
    return row != NULL ? row[kernel] : NULL;
}

static bool prepare(struct grd_plan *p);

bool plan_lines(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_tensors tensors, int64_t dim, grd_dtype dtype, bool sums)
{
    struct lines *l = lines_of(p);
    grd_tensor *self = tensors.data[0];
    const grd_dtype from = (grd_dtype)self->dtype;
    if (dtype == GRD_DTYPE_NONE)
        dtype = sums ? grd_plan_sums_in(p->out, from) : from;
    l->as = grd_lines_dtype(dtype);
    l->kernel = find_kernel(l->as, kernel);
    if (l->kernel == NULL || dtype == GRD_BOOL || dtype > GRD_COMPLEX128 || from > GRD_COMPLEX128)
        return grd_raise_no_kernel(p->op->name, from > GRD_COMPLEX128 ? from : dtype);
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    l->first = (int)dim;
    l->past = self->ndim > 0 ? (int)dim + 1 : 0;
    for (int64_t i = 0; i < tensors.n; i++) {
        if (!grd_same_sizes(tensors.data[i], grd_sizes(self)) || tensors.data[i]->dtype != self->dtype)
            return grd_raise(GRD_ERROR_RUNTIME, "expected tensors of one shape and dtype");
        grd_plan_reads(p, tensors.data[i]);
    }
    l->nresults = 1;
    l->noperands = 1 + (int)tensors.n;
    l->has_columns = true;
    for (int i = 0; i < l->noperands; i++)
        l->operands[i].kind = GRD_LINES_LINE;
    p->any_strides = p->aligned = true;
    p->prepare = prepare;
    return grd_plan_result(p, grd_sizes(self), dtype);
}

bool grd_lines_check(enum grd_lines_kernel_index kernel, const char *name, grd_dtype dtype)
{
    return find_kernel(grd_lines_dtype(dtype), kernel) != NULL || grd_raise_no_kernel(name, dtype);
}

bool grd_lines_reads(struct grd_plan *p, grd_tensor *t, int first)
{
    int64_t stride = -1;
    for (int d = t->ndim - 1; d >= first; d--) {
        if (t->sizes[d] == 1)
            continue;
        if (stride != -1 && t->strides[d] != stride)
            return grd_plan_reads_as(p, t, (grd_dtype)t->dtype);
        stride = t->strides[d] * t->sizes[d];
    }
    return grd_plan_reads(p, t);
}

bool grd_lines_plan(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_dtype as, int first, const enum grd_lines_operand *kinds,
                    const double *numbers)
{
    struct lines *l = lines_of(p);
    l->kernel = find_kernel(as, kernel);
    l->as = as;
    l->first = first;
    l->past = p->planned[0].ndim;
    l->nresults = p->nresults;
    l->noperands = p->nresults + p->nreads;
    l->has_columns = false;
    for (int i = 0; i < l->noperands; i++)
        l->operands[i].kind = (uint8_t)kinds[i];
    memcpy(l->numbers, numbers, sizeof l->numbers);
    p->prepare = prepare;
    return true;
}

/* ---- Layout of the operands ---------------------------------------------------------------------------------------------------------- */

/* Sets the number of elements of a line (the elements along the operator's dimensions) and, for each operand, its address and the stride between
 * elements of a line. One stride is enough, because grd_lines_reads() has copied tensors whose lines need several. */
static void set_line(struct lines *l, grd_tensor *const *tensors)
{
    const grd_tensor *result = tensors[0];
    int inner = -1;
    l->n = 1;
    for (int d = l->first; d < l->past; d++) {
        l->n *= result->sizes[d];
        inner = result->sizes[d] != 1 || inner < 0 ? d : inner;
    }
    for (int i = 0; i < l->noperands; i++) {
        struct operand *o = &l->operands[i];
        o->data = tensors[i] != NULL && tensors[i]->numel > 0 ? tensors[i]->data : NULL;
        if (o->kind == GRD_LINES_SUM && o->data != NULL) {
            l->most_parts = tensors[i]->sizes[0];
            memset(o->data, 0, (size_t)(tensors[i]->numel * l->size));
        }
        if (o->kind != GRD_LINES_LINE)
            continue;
        o->size = tensors[i]->itemsize;
        o->along = inner >= 0 ? grd_byte_stride(tensors[i], inner) : o->size;
    }
}

/* Sets the strides between lines for each operand. A line is the elements along the operator's dimension. Adjacent dimensions that are not part of a
 * line are merged if the strides of all operands allow it. */
static void set_geometry(struct lines *l, grd_tensor *const *tensors)
{
    const grd_tensor *result = tensors[0];
    l->ndim = 0;
    for (int d = result->ndim - 1; d >= 0; d--) {
        if ((d >= l->first && d < l->past) || result->sizes[d] == 1)
            continue;
        bool joins = l->ndim > 0;
        for (int i = 0; joins && i < l->noperands; i++)
            joins = l->operands[i].kind != GRD_LINES_LINE ||
                    grd_byte_stride(tensors[i], d) == l->operands[i].strides[l->ndim - 1] * l->sizes[l->ndim - 1];
        if (joins) {
            l->sizes[l->ndim - 1] *= result->sizes[d];
            continue;
        }
        for (int i = 0; i < l->noperands; i++)
            l->operands[i].strides[l->ndim] = l->operands[i].kind == GRD_LINES_LINE ? grd_byte_stride(tensors[i], d) : 0;
        l->sizes[l->ndim++] = result->sizes[d];
    }
    if (l->ndim == 0) {
        l->sizes[l->ndim++] = 1;
        for (int i = 0; i < l->noperands; i++)
            l->operands[i].strides[0] = l->operands[i].kind == GRD_LINES_LINE ? l->n * l->operands[i].size : 0;
    }
}

/* True if the kernel can read or write the operand in place, because its dtype and strides are those the kernel needs. */
static bool lies_right(const struct lines *l, const struct operand *o, grd_dtype dtype)
{
    return dtype == l->as && (l->columns ? o->strides[0] == l->size && o->along % l->size == 0 && o->along > 0
                                         : (o->along == l->size || l->n == 1) && o->strides[0] % l->size == 0);
}

/* Decides for each operand whether it is copied to or from scratch memory, and how its elements are converted. An operand is copied if the kernel
 * cannot access its layout or dtype. */
static void set_casts(struct lines *l, grd_tensor *const *tensors)
{
    for (int i = 0; i < l->noperands; i++) {
        struct operand *o = &l->operands[i];
        o->cast = NULL;
        o->transposed = o->converts = false;
        if (o->kind == GRD_LINES_LINE && !lies_right(l, o, (grd_dtype)tensors[i]->dtype)) {
            const grd_dtype dtype = (grd_dtype)tensors[i]->dtype;
            o->converts = dtype != l->as;
            o->cast = i < l->nresults ? grd_cast_kernel(l->as, dtype) : grd_cast_kernel(dtype, l->as);
            o->transposed = l->n > 1 && (l->columns ? o->along : o->strides[0]) == o->size;
        }
    }
}

/* True if one block of scratch memory first holds the copy of the first input and then the result, because the kernel can access neither of them
 * directly. Sharing is possible because a kernel may write its result over its input. */
static bool shares_block(const struct lines *l)
{
    return l->nresults == 1 && l->operands[0].cast != NULL && l->operands[1].cast != NULL;
}

/* Returns how many lines one call of the kernel processes: at most `width`, and so few that an operand's block of scratch memory fits into a cache.
 * If neighbouring lines of an operand are adjacent in memory, the number is a multiple of the elements of a cache line, so that no cache line is
 * fetched by two calls. */
static int64_t width_of_blocks(const struct lines *l, int64_t width)
{
    bool has_blocks = false, transposes = false;
    int64_t size = l->size < CACHE_LINE ? l->size : CACHE_LINE;
    for (int i = 0; i < l->noperands; i++) {
        const struct operand *o = &l->operands[i];
        has_blocks |= o->cast != NULL;
        transposes |= o->transposed;
        size = o->transposed && o->size < size ? o->size : size;
    }
    const int64_t least = CACHE_LINE / size;
    const int64_t block = shares_block(l) ? 3 * BLOCK : BLOCK;
    if (has_blocks && width * l->n * l->size > block)
        width = block / (l->n * l->size);
    if (has_blocks && !transposes && !l->columns && width * l->n > TOGETHER)
        width = TOGETHER / l->n;
    if (transposes || (has_blocks && l->columns))
        width = width < least ? least : width / least * least;
    width = width < 1 ? 1 : width;
    return width < l->sizes[0] ? width : l->sizes[0];
}

/* Chooses the layout in which the kernel reads lines, by the strides of the first input. Either each line is contiguous, or the kernel uses the
 * layout "columns" (kernel/lines.h). Then divides the work into tasks. Always returns true. */
static bool prepare(struct grd_plan *p)
{
    struct lines *l = lines_of(p);
    grd_tensor *tensors[GRD_LINES_OPERANDS] = {p->results[0]};
    if (p->results[0]->numel == 0)
        return true;
    for (int i = 1; i < l->noperands; i++)
        tensors[i] = i < l->nresults ? p->results[i] : p->in[i - l->nresults];
    l->size = grd_dtype_table[l->as].size;
    l->most_parts = INT64_MAX;
    set_line(l, tensors);
    set_geometry(l, tensors);
    const struct operand *first = &l->operands[l->nresults];
    l->columns = l->has_columns && first->along != first->size && first->strides[0] == first->size && l->n > 1;
    set_casts(l, tensors);
    l->width = l->columns ? GRD_LINES_COLUMNS : l->n < GRAIN ? GRAIN / (l->n + (l->n == 0)) : 1;
    l->width = width_of_blocks(l, l->width);
    int64_t bytes = 0;
    for (int i = 0; i < l->noperands; i++) {
        struct operand *o = &l->operands[i];
        o->block = i == 1 && shares_block(l) ? 0 : bytes;
        if (o->cast != NULL && !(i == 1 && shares_block(l)))
            bytes += grd_round_up(l->n * l->width * l->size, ALIGNMENT);
    }
    l->turned = bytes;
    for (int i = 0; i < l->noperands; i++) {
        const struct operand *o = &l->operands[i];
        if (o->transposed && bytes < l->turned + TURNED * (l->columns ? l->width : l->n) * o->size)
            bytes = l->turned + TURNED * (l->columns ? l->width : l->n) * o->size;
    }
    l->strips_per_row = (l->sizes[0] - 1) / l->width + 1;
    l->strips = l->strips_per_row * grd_sizes_product(l->sizes + 1, l->ndim - 1);
    const int64_t cost = l->n * l->width;
    l->part = cost < GRAIN ? GRAIN / (cost + (cost == 0)) : 1;
    if (bytes > 0 && l->most_parts > PARTS)
        l->most_parts = PARTS;
    if (l->part < (l->strips - 1) / l->most_parts + 1)
        l->part = (l->strips - 1) / l->most_parts + 1;
    l->parts = (l->strips - 1) / l->part + 1;
    l->part_bytes = bytes;
    p->scratch_bytes = (size_t)(bytes * l->parts);
    return true;
}

/* ---- The run -------------------------------------------------------------------------------------------------------------------------- */

/* Copies `rows` rows of `length` elements from a tensor's memory at `data` to the scratch memory `block`, or from `block` to `data` if `back`. In the
 * tensor's memory, element i of one row is followed by element i of the next row, and the elements of a row are `step` bytes apart. So the copy
 * transposes. `turned` is a buffer of TURNED rows that is needed if the dtype is converted, too. */
static void transpose_block(const struct lines *l, const struct operand *o, char *data, char *block, int64_t rows, int64_t length,
                            int64_t step, char *turned, bool back)
{
    grd_transpose_kernel *const transpose = grd_kernels->transpose[grd_index_size(o->size)];
    const int64_t to_block[] = {l->size, o->size}, from_block[] = {o->size, l->size};
    for (int64_t first = 0; first < rows; first += TURNED, data += TURNED * o->size, block += TURNED * length * l->size) {
        const int64_t count = rows - first < TURNED ? rows - first : TURNED;
        char *const here = o->converts ? turned : block;
        if (back && o->converts)
            o->cast(count * length, (char *const[]){turned, block}, from_block, NULL);
        if (back)
            transpose(length, count, data, step, here, length * o->size, false);
        else
            transpose(count, length, here, length * o->size, data, step, false);
        if (!back && o->converts)
            o->cast(count * length, (char *const[]){block, turned}, to_block, NULL);
    }
}

/* Copies `lines` lines (a line is the elements along the operator's dimension) from a tensor's memory at `data` to the scratch memory `block`, or
 * from `block` to `data` if `back`. Converts the dtype. In `block` each line is contiguous or, if l->columns, element i of one line is followed by
 * element i of the next line. */
static void move(const struct lines *l, const struct operand *o, char *data, char *block, int64_t lines, char *turned, bool back)
{
    int64_t rows = l->columns ? l->n : lines, length = l->columns ? lines : l->n;
    const int64_t row = l->columns ? o->along : o->strides[0], step = l->columns ? o->strides[0] : o->along;
    if (o->transposed) {
        transpose_block(l, o, data, block, rows, length, step, turned, back);
        return;
    }
    if (row == length * step) {
        length *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++) {
        char *here = data + i * row, *there = block + i * length * l->size;
        for (int64_t at = 0; step == o->size && i + AHEAD < rows && at < length * step; at += CACHE_LINE)
            __builtin_prefetch(here + AHEAD * row + at);
        o->cast(length, (char *const[]){back ? here : there, back ? there : here},
                (const int64_t[]){back ? step : l->size, back ? l->size : step}, NULL);
    }
}

/* Runs the kernel on one strip, i.e. on a few neighbouring lines. Before the call, inputs that the kernel cannot read in place are copied to
 * scratch memory. After the call, results that it could not write in place are copied from there. */
static void run_strip(const struct lines *l, int64_t strip, char *scratch)
{
    struct grd_lines_block b = {.n = l->n, .columns = l->columns, .numbers = l->numbers};
    char *data[GRD_LINES_OPERANDS];
    const int64_t row = strip / l->strips_per_row, first = strip % l->strips_per_row * l->width;
    b.lines = l->sizes[0] - first < l->width ? l->sizes[0] - first : l->width;
    for (int i = 0; i < l->noperands; i++) {
        const struct operand *o = &l->operands[i];
        if (o->kind != GRD_LINES_LINE) {
            const int64_t at = o->kind == GRD_LINES_VALUE ? row * l->sizes[0] + first
                               : o->kind == GRD_LINES_SUM ? strip / l->part * l->n
                                                          : 0;
            b.data[i] = o->data == NULL ? NULL : o->data + at * l->size;
            b.step[i] = o->kind == GRD_LINES_VALUE;
            continue;
        }
        data[i] = o->data + first * o->strides[0];
        for (int64_t d = 1, rest = row; d < l->ndim; rest /= l->sizes[d], d++)
            data[i] += rest % l->sizes[d] * o->strides[d];
        b.data[i] = o->cast != NULL ? scratch + o->block : data[i];
        b.step[i] = o->cast != NULL ? (l->columns ? b.lines : l->n) : (l->columns ? o->along : o->strides[0]) / l->size;
        if (o->cast != NULL && i >= l->nresults)
            move(l, o, data[i], b.data[i], b.lines, scratch + l->turned, false);
    }
    /* Kernels with one input and with two share their loops and always read a second input. If there is only one input, it is passed twice. */
    if (l->noperands == 2) {
        b.data[2] = b.data[1];
        b.step[2] = b.step[1];
    }
    l->kernel(&b);
    for (int i = 0; i < l->nresults; i++)
        if (l->operands[i].cast != NULL)
            move(l, &l->operands[i], data[i], b.data[i], b.lines, scratch + l->turned, true);
}

/* Runs the tasks with the numbers begin to end - 1. Each task has its own scratch memory. */
static void run_parts(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct lines *l = lines_of(p);
    for (int64_t part = begin; part < end; part++) {
        const int64_t past = (part + 1) * l->part < l->strips ? (part + 1) * l->part : l->strips;
        for (int64_t strip = part * l->part; strip < past; strip++)
            run_strip(l, strip, p->scratch + part * l->part_bytes);
    }
}

void run_lines(const struct grd_plan *p)
{
    grd_parallel_for(0, lines_of(p)->parts, 1, run_parts, (void *)(uintptr_t)p);
}

/* ---- Shortcut for small tensors -------------------------------------------------------------------------------------------------------- */

grd_tensor *shortcut_lines(enum grd_lines_kernel_index index, grd_tensor *out, grd_tensors tensors, int64_t dim, grd_dtype dtype)
{
    const grd_tensor *self = tensors.data[0];
    const grd_dtype from = (grd_dtype)self->dtype;
    const int64_t ndim = self->ndim;
    if (out != NULL || ndim == 0 || (dim != ndim - 1 && dim != -1) || (dtype != GRD_DTYPE_NONE && dtype != from) ||
        (uint64_t)self->numel - 1 >= GRAIN || self->device != GRD_DEVICE_CPU || grd_lines_dtype(from) != from)
        return NULL;
    struct grd_lines_block block;
    block.n = self->sizes[ndim - 1];
    block.columns = false;
    for (int i = 0; i < GRD_LINES_OPERANDS; i++) {
        const grd_tensor *t = i > 0 && i <= tensors.n ? tensors.data[i - 1] : self;
        if (!grd_has(t, GRD_FLAG_CONTIGUOUS) ||
            (t != self && (t->device != self->device || t->dtype != self->dtype || !grd_same_sizes(t, grd_sizes(self)))))
            return NULL;
        block.data[i] = t->data;
        block.step[i] = block.n;
    }
    grd_lines_kernel *const kernel = find_kernel(from, index);
    grd_tensor *const result = kernel != NULL ? grd_new(grd_sizes(self), from, GRD_CPU) : NULL;
    if (result == NULL || grd_is_failed(result))
        return result;
    block.lines = ndim == 1 ? 1 : (uint32_t)self->numel / (uint32_t)block.n;
    block.data[0] = result->data;
    kernel(&block);
    return result;
}
