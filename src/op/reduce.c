/* The engine of reductions: strips, pieces, cells. What is reduced, and the checks, are in the files of the operators; the loops in
 * kernel/cpu/reduce.c.
 *
 * Every reduction is a grid of strips (neighbouring outputs, at most STRIP) by pieces (ranges of the reduced elements). The grid
 * follows from shape and strides alone, each cell is done by one thread, and pieces are combined in order: the same bits for any
 * number of threads. A few lines of a small tensor would be one cell: they are done without a plan.
 * Invariant: gathered values and centers are in strip order, results in row-major order. */
#include "op/reduce.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"

enum {
    STRIP = 256,      /* outputs done together */
    BLOCK = 8,        /* outputs for which a plan costs more than the work */
    LEAF = 8192,      /* elements of a line per kernel call */
    ROWS = 64,        /* rows of columns per kernel call */
    CONVERTED = 2048, /* elements converted at a time */
    FLUSH = 32,       /* kernel calls before a partial result moves up a level */
    LEVELS = 3,
    MANY_STRIPS = 16,      /* enough strips to keep every thread busy without cutting the reduced elements */
    LEAST_PIECE = 1 << 16, /* elements in a cell of the grid when they are cut */
    MOST_PIECES = 64,
    GRAIN = 1 << 15, /* elements worth a thread's while */
    WIDEST = 16      /* bytes of the largest gathered value */
};

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t distance(int64_t stride)
{
    return stride < 0 ? grd_wrapping_product(-1, stride) : stride;
}

/* ---- The grid -------------------------------------------------------------------------------------------------------------- */
/* By rising stride. */
static void add_reduced(struct grd_reduction *r, int64_t size, int64_t stride)
{
    int at = r->nreduced++;
    for (; at > 0 && distance(r->reduced[at - 1].stride) > distance(stride); at--)
        r->reduced[at] = r->reduced[at - 1];
    r->reduced[at] = (struct grd_reduction_dim){size, stride, 0};
}

static void join_reduced(struct grd_reduction *r)
{
    int last = 0;
    for (int i = 1; i < r->nreduced; i++) {
        if (r->reduced[i].stride == grd_wrapping_product(r->reduced[last].stride, r->reduced[last].size))
            r->reduced[last].size = grd_wrapping_product(r->reduced[last].size, r->reduced[i].size);
        else
            r->reduced[++last] = r->reduced[i];
    }
    r->nreduced = last + 1;
}

/* In the order of dimensions; joins the one before where it continues it. */
static void add_kept(struct grd_reduction *r, int64_t size, int64_t stride)
{
    struct grd_reduction_dim *before = r->nkept > 0 ? &r->kept[r->nkept - 1] : NULL;
    if (before != NULL && stride == grd_wrapping_product(before->stride, before->size))
        before->size = grd_wrapping_product(before->size, size);
    else
        r->kept[r->nkept++] = (struct grd_reduction_dim){size, stride, r->outputs};
    r->outputs = grd_wrapping_product(r->outputs, size);
}

/* Takes the best kept dimension for strips out of the list, and decides which of the two kernels fits. */
static void choose_strip(struct grd_reduction *r)
{
    const struct grd_reduction_dim *inner = &r->reduced[0];
    bool lines = inner->stride == r->in_size && inner->size > 1;
    if (r->nkept == 0) {
        r->strip = (struct grd_reduction_dim){1, r->in_size, 1};
        r->columns = inner->size == 1;
        return;
    }
    int unit = -1, widest = 0;
    for (int i = 0; i < r->nkept; i++) {
        if (r->kept[i].stride == r->in_size && r->kept[i].size > 1)
            unit = i;
        if (r->kept[i].size > r->kept[widest].size)
            widest = i;
    }
    int choice = widest;
    if (lines)
        choice = r->kept[0].size >= 16 ? 0 : widest;
    else if (unit >= 0 && (r->kept[unit].size >= 16 || unit == widest))
        choice = unit;
    r->columns = !lines && (inner->size < ROWS || r->kept[choice].size >= 16 || choice == unit);
    r->strip = r->kept[choice];
    memmove(r->kept + choice, r->kept + choice + 1, (size_t)(--r->nkept - choice) * sizeof *r->kept);
}

static void choose_grid(struct grd_reduction *r, grd_dtype from)
{
    const struct grd_reduction_dim *inner = &r->reduced[0];
    const struct grd_reduction_dim *along = r->columns ? &r->strip : inner, *across = r->columns ? inner : &r->strip;
    bool gaps = along->size > 1 && along->stride != r->in_size;
    /* Same bytes, other name: bool as uint8, uint64 as int64. */
    bool converts = from != r->read && !(from == GRD_BOOL && r->read == GRD_UINT8) && !(from == GRD_UINT64 && r->read == GRD_INT64);
    r->convert = converts || gaps ? grd_kernels->cast[converts ? from : r->read][r->read] : NULL;
    r->in_one = !gaps && across->stride == along->size * r->in_size;
    int64_t block = r->convert != NULL ? CONVERTED : LEAF * 2;
    r->width = lesser(r->strip.size, r->columns ? STRIP : lesser(STRIP, greater(1, block / greater(inner->size, 1))));
    r->strips_per_row = (r->strip.size + r->width - 1) / r->width;
    r->strips = r->strips_per_row * (r->outputs / r->strip.size);
    r->piece = r->n;
    if (r->strips < MANY_STRIPS && r->outputs * r->n > 4 * LEAST_PIECE)
        r->piece = greater(greater(1, LEAST_PIECE / r->width), (r->n + MOST_PIECES - 1) / MOST_PIECES);
    r->pieces = r->n > 0 ? (r->n + r->piece - 1) / r->piece : 1;
}

void grd_reduction_plan(struct grd_reduction *r, grd_dtype read, const grd_tensor *self, uint64_t mask)
{
    r->read = read;
    r->in = self->data;
    r->in_size = self->itemsize;
    r->nreduced = r->nkept = 0;
    r->outputs = r->n = 1;
    r->columns = false;
    r->center = NULL;
    r->gathered = NULL;
    r->finish = GRD_FINISH_NONE;
    r->number = 0;
    r->result = NULL;
    for (int d = self->ndim - 1; d >= 0; d--) {
        /* Those of an empty tensor may be any: Note [Unused strides]. */
        int64_t size = self->sizes[d], stride = self->numel > 0 ? grd_byte_stride(self, d) : 0;
        if (mask >> d & 1) {
            r->n = grd_wrapping_product(r->n, size);
            if (size > 1 && self->numel > 0) /* the sizes beside a 0 may have any product */
                add_reduced(r, size, stride);
        } else if (size > 1) {
            add_kept(r, size, stride);
        } else {
            r->outputs = grd_wrapping_product(r->outputs, size);
        }
    }
    if (r->nreduced == 0)
        add_reduced(r, r->n == 0 ? 0 : 1, r->in_size);
    join_reduced(r);
    if (r->outputs == 0) {
        r->strips = 0;
        r->pieces = 1;
        return;
    }
    choose_strip(r);
    choose_grid(r, (grd_dtype)self->dtype);
}

void grd_reduction_kernel(struct grd_reduction *r, enum grd_reduce_kind kind)
{
    const struct grd_reduce_kernels *kernels = grd_kernels->reduce;
    const struct grd_reduce_row *row = kernels->reduce[r->read];
    r->kind = kind;
    r->kernel = r->columns ? row->columns[kind] : row->lines[kind];
    r->gathers = grd_reduce_gathers(kind, r->read);
    r->read_size = grd_dtype_size(r->read);
    r->gathered_size = grd_dtype_size(r->gathers);
    r->center_size = grd_dtype_size(kind == GRD_REDUCE_FIND ? r->read : r->gathers);
    bool itself = kind == GRD_REDUCE_PROD || kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN;
    r->merge = kernels->reduce[r->gathers]->columns[kind == GRD_REDUCE_FIND ? GRD_REDUCE_MIN : itself ? kind : GRD_REDUCE_SUM];
}

/* ---- One cell ----------------------------------------------------------------------------------------------------------------- */
static void fill_identity(const struct grd_reduction *r, int64_t n, void *gathered)
{
    double number = r->kind == GRD_REDUCE_PROD ? 1 : r->kind == GRD_REDUCE_MAX ? -INFINITY : r->kind == GRD_REDUCE_MIN ? INFINITY : 0;
    bool highest = r->kind == GRD_REDUCE_MIN || r->kind == GRD_REDUCE_FIND, lowest = r->kind == GRD_REDUCE_MAX;
    int64_t integer = highest ? INT64_MAX : lowest ? INT64_MIN : (int64_t)number;
    switch (r->gathers) {
    case GRD_UINT8:
        memset(gathered, highest ? UINT8_MAX : 0, (size_t)n);
        break;
    case GRD_UINT64:
        memset(gathered, highest ? UINT8_MAX : 0, (size_t)n * sizeof(uint64_t));
        break;
    case GRD_INT64:
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)gathered)[i] = integer;
        break;
    case GRD_FLOAT32:
        for (int64_t i = 0; i < n; i++)
            ((float *)gathered)[i] = (float)number;
        break;
    case GRD_FLOAT64:
        for (int64_t i = 0; i < n; i++)
            ((double *)gathered)[i] = number;
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((grd_complex128 *)gathered)[i] = (grd_complex128){number, 0};
    }
}

static void merge(const struct grd_reduction *r, int64_t n, void *into, const void *from)
{
    r->merge(&(struct grd_reduce_block){.outputs = n, .n = 1, .in = from, .gathered = into});
}

/* Brings a block of outputs x n into `buffer`, in the layout the kernel wants. */
static void convert_block(const struct grd_reduction *r, struct grd_reduce_block *b, int64_t row_stride, char *buffer)
{
    int64_t along = r->columns ? b->outputs : b->n, across = r->columns ? b->n : b->outputs;
    int64_t stride = r->columns ? r->strip.stride : r->reduced[0].stride;
    if (along == 1)
        stride = r->in_size;
    int64_t strides[2] = {r->read_size, stride};
    if (row_stride == along * stride) {
        along *= across;
        across = 1;
    }
    for (int64_t i = 0; i < across; i++)
        r->convert(along, (char *const[]){buffer + i * along * r->read_size, (char *)(uintptr_t)(b->in + i * row_stride)}, strides, NULL);
    b->in = buffer;
    b->stride = (r->columns ? b->outputs : b->n) * r->read_size;
}

/* Partial results climb levels, FLUSH of one making one of the next: errors grow slowly however many blocks there are. */
struct cascade {
    int64_t calls;
    _Alignas(64) char level[LEVELS][STRIP * WIDEST];
};

static void cascade_flush(const struct grd_reduction *r, struct cascade *c, int64_t width)
{
    int64_t due = ++c->calls;
    for (int l = 0; l + 1 < LEVELS && due % FLUSH == 0; l++, due /= FLUSH) {
        merge(r, width, c->level[l + 1], c->level[l]);
        fill_identity(r, width, c->level[l]);
    }
}

static const char *strip_base(const struct grd_reduction *r, int64_t row, int64_t *ret_output)
{
    const char *in = r->in;
    *ret_output = 0;
    for (int i = 0; i < r->nkept; i++) {
        int64_t index = row % r->kept[i].size;
        row /= r->kept[i].size;
        in += index * r->kept[i].stride;
        *ret_output += index * r->kept[i].step;
    }
    return in;
}

/* Gathers the elements [begin, end) of `width` outputs whose first element is at `base`. */
static void gather(const struct grd_reduction *r, const char *base, const char *center, int64_t width, int64_t begin, int64_t end,
                   void *gathered)
{
    const struct grd_reduction_dim *inner = &r->reduced[0];
    int64_t longest = !r->columns ? LEAF : width < 32 ? ROWS * 8 : ROWS;
    _Alignas(64) char buffer[CONVERTED * WIDEST];
    if (r->convert != NULL)
        longest = lesser(longest, greater(1, CONVERTED / width));
    bool single = end - begin <= longest * FLUSH && r->nreduced == 1;
    struct cascade cascade;
    fill_identity(r, width, gathered);
    if (!single) {
        cascade.calls = 0;
        for (int l = 0; l < LEVELS; l++)
            fill_identity(r, width, cascade.level[l]);
    }
    for (int64_t i = begin; i < end;) {
        int64_t at = i % inner->size, rest = i / inner->size;
        const char *in = base + at * inner->stride;
        for (int d = 1; d < r->nreduced; d++) {
            in += rest % r->reduced[d].size * r->reduced[d].stride;
            rest /= r->reduced[d].size;
        }
        int64_t row_end = lesser(end, i + inner->size - at);
        while (i < row_end) {
            int64_t n = lesser(longest, row_end - i);
            struct grd_reduce_block block = {
                .outputs = width,
                .n = n,
                .stride = r->columns ? inner->stride : r->strip.stride,
                .in = in,
                .gathered = single ? gathered : cascade.level[0],
                .center = center,
                .first = i,
            };
            if (r->convert != NULL)
                convert_block(r, &block, block.stride, buffer);
            r->kernel(&block);
            if (!single)
                cascade_flush(r, &cascade, width);
            in += n * inner->stride;
            i += n;
        }
    }
    if (!single)
        for (int l = 0; l < LEVELS; l++)
            merge(r, width, gathered, cascade.level[l]);
}

/* What becomes of `width` gathered values, in place; any and all are bytes in `flags` after it. */
static __attribute__((noinline)) void finish_values(const struct grd_reduction *r, void *gathered, const char *center, int64_t width,
                                                    uint8_t *flags)
{
    int64_t parts = r->gathers == GRD_COMPLEX128 ? 2 : 1;
    double *v = gathered;
    const double *c = (const double *)(const void *)center;
    switch (r->finish) {
    case GRD_FINISH_NONE:
        break;
    case GRD_FINISH_DIVIDE:
        for (int64_t i = 0; i < width * parts; i++)
            v[i] /= r->number;
        break;
    case GRD_FINISH_MEAN:
        for (int64_t i = 0; i < width * parts; i++)
            v[i] = v[i] / r->number + c[i];
        break;
    case GRD_FINISH_ROOT:
        for (int64_t i = 0; i < width * parts; i += parts)
            v[i] = sqrt(v[i]);
        break;
    case GRD_FINISH_DIVIDE_ROOT:
        for (int64_t i = 0; i < width * parts; i += parts)
            v[i] = sqrt(v[i] / r->number);
        break;
    case GRD_FINISH_LOG:
        for (int64_t i = 0; i < width; i++)
            v[i] = log(v[i]) + c[i];
        break;
    case GRD_FINISH_ANY:
    case GRD_FINISH_ALL:
        for (int64_t i = 0; i < width; i++) {
            double count = r->gathers == GRD_INT64 ? (double)((int64_t *)gathered)[i] : v[i * parts];
            flags[i] = r->finish == GRD_FINISH_ANY ? count != 0 : count == r->number;
        }
        break;
    }
}

static inline bool is_truth(enum grd_reduce_finish finish)
{
    return finish == GRD_FINISH_ANY || finish == GRD_FINISH_ALL;
}

/* Finishes one strip and writes it to the result. */
static inline void finish_strip(const struct grd_reduction *r, void *gathered, const char *center, int64_t width, int64_t output)
{
    uint8_t flags[STRIP];
    if (GRD_UNLIKELY(r->finish != GRD_FINISH_NONE))
        finish_values(r, gathered, center, width, flags);
    if (r->result == NULL)
        return;
    const bool truth = is_truth(r->finish);
    r->store(width, (char *const[]){r->result + output * r->result_size, truth ? (char *)flags : gathered},
             (const int64_t[]){r->strip.step * r->result_size, truth ? 1 : r->gathered_size}, NULL);
}

static void reduce_cells(int64_t begin, int64_t end, void *context)
{
    const struct grd_reduction *r = context;
    for (int64_t cell = begin; cell < end; cell++) {
        int64_t strip = cell / r->pieces, piece = cell % r->pieces, output;
        int64_t row = strip / r->strips_per_row, first = strip % r->strips_per_row * r->width;
        int64_t width = lesser(r->width, r->strip.size - first), place = row * r->strip.size + first;
        const char *base = strip_base(r, row, &output) + first * r->strip.stride;
        const char *center = r->center != NULL ? r->center + place * r->center_size : NULL;
        _Alignas(64) char own[STRIP * WIDEST];
        void *gathered = r->gathered != NULL ? r->gathered + (piece * r->outputs + place) * r->gathered_size : own;
        gather(r, base, center, width, piece * r->piece, lesser(r->n, (piece + 1) * r->piece), gathered);
        if (r->pieces == 1)
            finish_strip(r, gathered, center, width, output + first * r->strip.step);
    }
}

/* Adds up the pieces of each strip, two by two, and finishes it. */
static void merge_strips(int64_t begin, int64_t end, void *context)
{
    const struct grd_reduction *r = context;
    for (int64_t strip = begin; strip < end; strip++) {
        int64_t row = strip / r->strips_per_row, first = strip % r->strips_per_row * r->width, output;
        int64_t width = lesser(r->width, r->strip.size - first), place = row * r->strip.size + first;
        char *gathered = r->gathered + place * r->gathered_size;
        int64_t next = r->outputs * r->gathered_size;
        for (int64_t step = 1; step < r->pieces; step *= 2)
            for (int64_t piece = 0; piece + step < r->pieces; piece += 2 * step)
                merge(r, width, gathered + piece * next, gathered + (piece + step) * next);
        strip_base(r, row, &output);
        const char *center = r->center != NULL ? r->center + place * r->center_size : NULL;
        finish_strip(r, gathered, center, width, output + first * r->strip.step);
    }
}

int64_t grd_reduction_scratch(const struct grd_reduction *r, bool wanted)
{
    return wanted || r->pieces > 1 ? greater(1, r->pieces * r->outputs * r->gathered_size) : 0;
}

void grd_reduction_run(const struct grd_reduction *r)
{
    if (r->strips == 0)
        return;
    int64_t cells = r->strips * r->pieces;
    void *context = (void *)(uintptr_t)r;
    if (cells == 1)
        reduce_cells(0, 1, context);
    else
        grd_parallel_for(0, cells, greater(1, GRAIN / greater(1, r->width * lesser(r->piece, r->n))), reduce_cells, context);
    if (r->pieces > 1)
        merge_strips(0, r->strips, context);
}

/* ---- Around it: shapes, dtypes, results ------------------------------------------------------------------------------------------ */
static int64_t reduced_sizes(const grd_tensor *self, uint64_t mask, bool keepdim, int64_t *ret_sizes)
{
    int64_t n = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (!(mask >> d & 1))
            ret_sizes[n++] = self->sizes[d];
        else if (keepdim)
            ret_sizes[n++] = 1;
    }
    return n;
}

double grd_reduce_count(grd_dims sizes, uint64_t mask)
{
    double count = 1;
    for (int64_t d = 0; d < sizes.n; d++)
        if (mask >> d & 1)
            count *= (double)sizes.data[d];
    return count;
}

grd_tensor *grd_reduce_prepare(grd_tensor *out, const grd_tensor *self, uint64_t mask, bool keepdim, grd_dtype dtype)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t n = reduced_sizes(self, mask, keepdim, sizes);
    if (out == NULL)
        return grd_new(grd_dims_from(sizes, n), dtype, grd_device_of(self));
    return grd_out_prepare(out, grd_dims_from(sizes, n), dtype, grd_device_of(self));
}

void grd_reduction_store(struct grd_reduction *r, grd_tensor *result)
{
    grd_dtype from = is_truth(r->finish) ? GRD_BOOL : r->gathers;
    r->result = result->data;
    r->result_size = result->itemsize;
    r->store = grd_kernels->cast[from][result->dtype];
}

/* Whether one call of the kernel for lines does it all: the last dims of a small contiguous tensor. The plan would come to the same call. */
static inline bool is_one_block(const grd_tensor *self, uint64_t mask, int64_t outputs)
{
    const bool last = mask != 0 && self->ndim < GRD_MAX_DIMS && mask + (mask & -mask) == (uint64_t)1 << self->ndim;
    return last && grd_has(self, GRD_FLAG_CONTIGUOUS) && self->numel <= LEAF && outputs > 0 && outputs <= BLOCK &&
           self->numel >= 2 * outputs;
}

static inline bool starts_from_zero(enum grd_reduce_kind kind)
{
    return kind != GRD_REDUCE_PROD && kind < GRD_REDUCE_MAX;
}

static void reduce_block(struct grd_reduction *r, const grd_tensor *self, grd_tensor *result)
{
    const int64_t outputs = result->numel, n = outputs == 1 ? self->numel : (uint32_t)self->numel / (uint32_t)outputs;
    _Alignas(WIDEST) char gathered[BLOCK * WIDEST] = {0};
    r->gathers = grd_reduce_gathers(r->kind, r->read);
    if (!starts_from_zero(r->kind))
        fill_identity(r, outputs, gathered);
    grd_kernels->reduce->reduce[r->read]->lines[r->kind](&(struct grd_reduce_block){
        .outputs = outputs, .n = n, .stride = n * (int64_t)self->itemsize, .in = self->data, .gathered = gathered});
    r->gathered_size = grd_dtype_table[r->gathers].size;
    r->strip.step = 1;
    grd_reduction_store(r, result);
    finish_strip(r, gathered, NULL, outputs, 0);
}

static __attribute__((noinline)) bool reduce_planned(struct grd_reduction *r, const grd_tensor *self, uint64_t mask, grd_tensor *result)
{
    const enum grd_reduce_finish finish = r->finish;
    const double number = r->number;
    grd_reduction_plan(r, r->read, self, mask);
    grd_reduction_kernel(r, r->kind);
    r->finish = finish;
    r->number = number;
    grd_reduction_store(r, result);
    const int64_t bytes = grd_reduction_scratch(r, false);
    if (bytes > 0 && (r->gathered = grd_alloc((size_t)bytes)) == NULL)
        return false;
    grd_reduction_run(r);
    grd_free(r->gathered, (size_t)bytes);
    return true;
}

grd_tensor *grd_reduce(grd_tensor *out, grd_tensor *self, uint64_t mask, bool keepdim, enum grd_reduce_kind kind, grd_dtype dtype,
                       enum grd_reduce_finish finish, double number)
{
    grd_tensor *result = grd_reduce_prepare(out, self, mask, keepdim, dtype);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        struct grd_reduction r;
        r.kind = kind;
        r.read = grd_reduce_read_as(kind, (grd_dtype)self->dtype, dtype);
        r.finish = finish;
        r.number = number;
        if (r.read == (grd_dtype)self->dtype && is_one_block(self, mask, result->numel))
            reduce_block(&r, self, result);
        else if (!reduce_planned(&r, self, mask, result))
            return grd_failed;
    }
    return GRD_LIKELY(out == NULL) ? result : grd_out_finish(out, result);
}
