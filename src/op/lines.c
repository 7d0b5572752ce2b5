/* The driver of kernels over lines: see lines.h. */
#include "op/lines.h"

#include <string.h>

#include "base/parallel.h"
#include "kernel/table.h"

enum {
    GRAIN = 1 << 13, /* elements worth a task */
    PARTS = 16,      /* at most so many pieces of work have scratch of their own */
    ALIGNMENT = 64
};

/* One operand: where line 0 begins, and how far apart in bytes are its elements and, along each of the other dimensions, lines. */
struct operand {
    char *data;
    int64_t along, strides[GRD_MAX_DIMS];
    grd_loop_kernel *cast; /* from, or of the result to, the dtype it has in memory; NULL: it lies as the kernel wants it */
    int64_t size;          /* bytes of an element in memory */
    int64_t block;         /* where its block begins in the scratch of a piece */
};

struct lines {
    grd_lines_kernel *kernel;
    grd_dtype as; /* computed in */
    int64_t dim, n, size;
    int noperands, ndim;         /* ndim: of the lines, innermost first */
    int64_t sizes[GRD_MAX_DIMS]; /* lines along each */
    bool columns;
    int64_t width, strips, strips_per_row; /* a strip is up to `width` lines along the innermost dimension */
    int64_t part, parts, part_bytes;       /* strips of a part, and its scratch */
    struct operand operands[GRD_LINES_OPERANDS];
};

static struct lines *lines_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct lines) <= GRD_PLAN_STATE, "room in the plan");
    return (struct lines *)(uintptr_t)p->state;
}

/* ---- The plan ----------------------------------------------------------------------------------------------------------------------- */

/* The dtype with a row that results of `dtype` are computed in. */
static grd_dtype computed_in(grd_dtype dtype)
{
    switch (grd_category_of(dtype)) {
    case GRD_CATEGORY_COMPLEX:
        return GRD_COMPLEX128;
    case GRD_CATEGORY_FLOAT:
        return dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
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
        dtype = sums && grd_category_of(from) <= GRD_CATEGORY_INTEGER ? GRD_INT64 : from;
    l->as = computed_in(dtype);
    l->kernel = find_kernel(l->as, kernel);
    if (l->kernel == NULL || dtype == GRD_BOOL || dtype > GRD_COMPLEX128 || from > GRD_COMPLEX128)
        return grd_raise_no_kernel(p->op->name, from > GRD_COMPLEX128 ? from : dtype);
    if (!grd_wrap_dim(self, dim, &l->dim))
        return false;
    for (int64_t i = 0; i < tensors.n; i++) {
        if (!grd_same_sizes(tensors.data[i], grd_sizes(self)) || tensors.data[i]->dtype != self->dtype)
            return grd_raise(GRD_ERROR_RUNTIME, "expected tensors of one shape and dtype");
        grd_plan_reads(p, tensors.data[i]);
    }
    l->noperands = 1 + (int)tensors.n;
    p->any_strides = p->aligned = true;
    p->prepare = prepare;
    return grd_plan_result(p, grd_sizes(self), dtype);
}

/* ---- How the operands lie ------------------------------------------------------------------------------------------------------------ */

/* The lines of an operand; neighbouring dimensions become one where every operand allows it. */
static void set_geometry(struct lines *l, grd_tensor *const *tensors)
{
    const grd_tensor *result = tensors[0];
    for (int i = 0; i < l->noperands; i++) {
        l->operands[i].data = tensors[i]->data;
        l->operands[i].size = tensors[i]->itemsize;
        l->operands[i].along = result->ndim > 0 ? grd_byte_stride(tensors[i], l->dim) : tensors[i]->itemsize;
    }
    l->n = result->ndim > 0 ? result->sizes[l->dim] : 1;
    l->ndim = 0;
    for (int d = result->ndim - 1; d >= 0; d--) {
        if (d == l->dim || result->sizes[d] == 1)
            continue;
        bool joins = l->ndim > 0;
        for (int i = 0; joins && i < l->noperands; i++)
            joins = grd_byte_stride(tensors[i], d) == l->operands[i].strides[l->ndim - 1] * l->sizes[l->ndim - 1];
        if (joins) {
            l->sizes[l->ndim - 1] *= result->sizes[d];
            continue;
        }
        for (int i = 0; i < l->noperands; i++)
            l->operands[i].strides[l->ndim] = grd_byte_stride(tensors[i], d);
        l->sizes[l->ndim++] = result->sizes[d];
    }
    if (l->ndim == 0) {
        l->sizes[l->ndim++] = 1;
        for (int i = 0; i < l->noperands; i++)
            l->operands[i].strides[0] = l->n * l->operands[i].size;
    }
}

/* True if the kernel can work on the operand where it is. */
static bool lies_right(const struct lines *l, const struct operand *o, grd_dtype dtype)
{
    return dtype == l->as && (l->columns ? o->strides[0] == l->size && o->along % l->size == 0 && o->along > 0
                                         : (o->along == l->size || l->n == 1) && o->strides[0] % l->size == 0);
}

/* Chooses the form that the first tensor lies in, if it lies in one, and finds what has to be brought into a block. */
static bool prepare(struct grd_plan *p)
{
    struct lines *l = lines_of(p);
    grd_tensor *tensors[GRD_LINES_OPERANDS] = {p->results[0]};
    if (p->results[0]->numel == 0)
        return true;
    for (int i = 1; i < l->noperands; i++)
        tensors[i] = p->in[i - 1];
    l->size = grd_dtype_table[l->as].size;
    set_geometry(l, tensors);
    const struct operand *first = &l->operands[1];
    l->columns = first->along != first->size && first->strides[0] == first->size && l->n > 1;
    l->width = l->columns ? GRD_LINES_COLUMNS : l->n < GRAIN ? GRAIN / l->n : 1;
    if (l->width > l->sizes[0])
        l->width = l->sizes[0];
    int64_t bytes = 0;
    for (int i = 0; i < l->noperands; i++) {
        struct operand *o = &l->operands[i];
        const grd_dtype dtype = (grd_dtype)tensors[i]->dtype;
        o->cast = lies_right(l, o, dtype) ? NULL : i == 0 ? grd_cast_kernel(l->as, dtype) : grd_cast_kernel(dtype, l->as);
        o->block = bytes;
        if (o->cast != NULL)
            bytes += (l->n * l->width * l->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    l->strips_per_row = (l->sizes[0] - 1) / l->width + 1;
    l->strips = l->strips_per_row * grd_sizes_product(l->sizes + 1, l->ndim - 1);
    const int64_t cost = l->n * l->width;
    l->part = cost < GRAIN ? GRAIN / cost : 1;
    if (bytes > 0 && l->part < (l->strips - 1) / PARTS + 1)
        l->part = (l->strips - 1) / PARTS + 1;
    l->parts = (l->strips - 1) / l->part + 1;
    l->part_bytes = bytes;
    p->scratch_bytes = (size_t)(bytes * l->parts);
    return true;
}

/* ---- The run -------------------------------------------------------------------------------------------------------------------------- */

/* Brings `lines` lines to the block of an operand, or from there; in columns form all lines' elements lie together. */
static void move(const struct lines *l, const struct operand *o, char *data, char *block, int64_t lines, bool back)
{
    int64_t rows = l->columns ? l->n : lines, length = l->columns ? lines : l->n;
    const int64_t row = l->columns ? o->along : o->strides[0], step = l->columns ? o->strides[0] : o->along;
    if (row == length * step) {
        length *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++) {
        char *here = data + i * row, *there = block + i * length * l->size;
        o->cast(length, (char *const[]){back ? here : there, back ? there : here},
                (const int64_t[]){back ? step : l->size, back ? l->size : step}, NULL);
    }
}

static void run_strip(const struct lines *l, int64_t strip, char *scratch)
{
    struct grd_lines_block b = {.n = l->n, .columns = l->columns};
    char *data[GRD_LINES_OPERANDS];
    const int64_t first = strip % l->strips_per_row * l->width;
    b.lines = l->sizes[0] - first < l->width ? l->sizes[0] - first : l->width;
    for (int i = 0; i < l->noperands; i++) {
        const struct operand *o = &l->operands[i];
        data[i] = o->data + first * o->strides[0];
        for (int64_t d = 1, rest = strip / l->strips_per_row; d < l->ndim; rest /= l->sizes[d], d++)
            data[i] += rest % l->sizes[d] * o->strides[d];
        b.data[i] = o->cast != NULL ? scratch + o->block : data[i];
        b.step[i] = o->cast != NULL ? (l->columns ? b.lines : l->n) : (l->columns ? o->along : o->strides[0]) / l->size;
        if (o->cast != NULL && i > 0)
            move(l, o, data[i], b.data[i], b.lines, false);
    }
    for (int i = l->noperands; i < GRD_LINES_OPERANDS; i++) {
        b.data[i] = b.data[1];
        b.step[i] = b.step[1];
    }
    l->kernel(&b);
    if (l->operands[0].cast != NULL)
        move(l, &l->operands[0], data[0], b.data[0], b.lines, true);
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
