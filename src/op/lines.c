/* The driver of kernels over lines: see lines.h. */
#include "op/lines.h"

#include <string.h>

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
    GRAIN = 1 << 13, /* elements worth a task */
    PARTS = 16,      /* at most so many pieces of work have scratch of their own */
    ALIGNMENT = 64,
    CACHE_LINE = 64,
    BLOCK = 1 << 18, /* bytes of an operand's block: those of several operands, or three times as much of one, stay in a cache of 1 MiB */
    TOGETHER = 2048, /* elements of lines that are converted together: they and what the kernel keeps of them stay in the first cache */
    AHEAD = 8,       /* rows that are prefetched: the hardware does not prefetch beyond a page */
    TURNED = 64      /* rows of a block that are transposed before they are converted; they fill cache lines of the operand */
};

/* One operand: where line 0 begins, and the strides in bytes of its elements and, along each of the other dimensions, of its lines. */
struct operand {
    char *data;
    int64_t along, strides[GRD_MAX_DIMS];
    grd_loop_kernel *cast; /* converts from the dtype in memory or, for the result, to it; NULL: the kernel works in place */
    int64_t size;          /* bytes of an element in memory */
    int64_t block;         /* where its block begins in the scratch of a piece */
    bool converts;         /* the dtype in memory is another than that computed in */
    bool transposed;       /* its block is the transpose of the operand: a column of the block has stride 1 in memory */
    uint8_t kind;          /* grd_lines_operand */
};

struct lines {
    grd_lines_kernel *kernel;
    grd_dtype as; /* the dtype that is computed in */
    int64_t n, size;
    int first, past;               /* the dims that are a line */
    int nresults, noperands, ndim; /* ndim: of the lines, innermost first */
    int64_t sizes[GRD_MAX_DIMS];   /* lines along each */
    bool has_columns, columns;     /* has_columns: the kernel supports columns; columns: it gets them */
    double numbers[GRD_LINES_NUMBERS];
    int64_t width, strips, strips_per_row; /* a strip is up to `width` lines along the innermost dimension */
    int64_t part, parts, part_bytes;       /* strips of a part, and its scratch */
    int64_t turned;                        /* offset in the scratch of the rows that are transposed but not yet converted */
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
        dtype = !sums ? from : grd_category_of(from) <= GRD_CATEGORY_INTEGER ? GRD_INT64 : grd_plan_sums_in(p->out, from);
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

/* ---- How the operands lie ------------------------------------------------------------------------------------------------------------ */

/* Sets length and stride of a line's elements, which one stride separates: see grd_lines_reads. */
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

/* Sets the strides of the lines; merges adjacent dimensions where every operand allows it. */
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

/* True if the kernel can work on the operand in place. */
static bool lies_right(const struct lines *l, const struct operand *o, grd_dtype dtype)
{
    return dtype == l->as && (l->columns ? o->strides[0] == l->size && o->along % l->size == 0 && o->along > 0
                                         : (o->along == l->size || l->n == 1) && o->strides[0] % l->size == 0);
}

/* Finds the operands that have to be copied into a block. */
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

/* True if one block serves the result and the first tensor: both need one, and a kernel may write where it reads. */
static bool shares_block(const struct lines *l)
{
    return l->nresults == 1 && l->operands[0].cast != NULL && l->operands[1].cast != NULL;
}

/* Returns the number of lines of a strip: at most `width`, and so few that the block of an operand stays in a cache. If a block is transposed, or
 * has columns, the strip covers full cache lines of the operand. */
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

/* Chooses between lines and columns by the strides of the first tensor, and divides the work. */
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
            bytes += (l->n * l->width * l->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
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

/* Moves rows x length elements between the block of an operand and memory, where the rows have stride 1 and `step` is the stride along one.
 * `turned` has room for TURNED rows. */
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

/* Copies `lines` lines to the block of an operand or, if `back`, from it; in columns form element i of all lines lies together. */
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
    if (l->noperands == 2) { /* kernels of one and of two tensors share their loops: the second tensor is then the first */
        b.data[2] = b.data[1];
        b.step[2] = b.step[1];
    }
    l->kernel(&b);
    for (int i = 0; i < l->nresults; i++)
        if (l->operands[i].cast != NULL)
            move(l, &l->operands[i], data[i], b.data[i], b.lines, scratch + l->turned, true);
}

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

/* ---- Shortcut -------------------------------------------------------------------------------------------------------------------------- */

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
