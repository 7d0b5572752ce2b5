/* Reductions: sum, mean, prod, extremes and their places, any, all, counts, moments, norms, logsumexp.
 *
 * Scans are in scan.c, softmax in softmax.c; the loops are in kernel/cpu/reduce.c.
 *
 * Every reduction is a grid of strips (neighbouring outputs, at most STRIP) by pieces (ranges of the reduced elements). The grid
 * follows from shape and strides alone, each cell is done by one thread, and pieces are combined in order: the same bits for any
 * number of threads. Invariant: gathered values and centers are in strip order, results in row-major order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "gen/op_impl.h"
#include "gradus/ops.h"
#include "kernel/reduce.h"
#include "kernel/table.h"
#include "op/common.h"

enum {
    STRIP = 256,        /* outputs done together */
    LEAF = 8192,        /* elements of a line per kernel call */
    ROWS = 64,          /* rows of columns per kernel call */
    CONVERTED = 2048,   /* elements converted at a time */
    FLUSH = 32,         /* kernel calls before a partial result moves up a level */
    LEVELS = 3,
    MANY_STRIPS = 16,   /* enough strips to keep every thread busy without cutting the reduced elements */
    LEAST_PIECE = 1 << 16, /* elements in a cell of the grid when they are cut */
    MOST_PIECES = 64,
    GRAIN = 1 << 15,    /* elements worth a thread's while */
    WIDEST = 16         /* bytes of the largest gathered value */
};

/* What becomes of a gathered value v, with the number a and the center c, before it is converted to the result's dtype. */
enum finish {
    AS_IS,
    DIVIDE,      /* v / a */
    ROOT,        /* sqrt(v) */
    DIVIDE_ROOT, /* sqrt(v / a) */
    LOG,         /* log(v) + c */
    ANY,         /* v != 0 */
    ALL          /* v == a */
};

struct dim {
    int64_t size, stride; /* bytes of the input */
    int64_t step;         /* of a kept dim: outputs */
};

struct reduction {
    enum grd_reduce_kind kind;
    grd_dtype read, gathers; /* what the kernel reads and gathers in */
    grd_reduce_kernel *kernel, *merge;
    grd_loop_kernel *convert; /* to `read`; NULL: elements are read in place */
    const char *in;
    int64_t in_size, read_size, gathered_size, center_size; /* bytes of one */
    bool columns;    /* which kernel: neighbours in a strip are contiguous, or the elements of one output */
    bool in_one;     /* a block can be converted in one call: its lines (or rows) follow each other without gaps */
    int nreduced, nkept;
    struct dim strip;                                       /* the kept dim whose neighbours are done together */
    struct dim reduced[GRD_MAX_DIMS], kept[GRD_MAX_DIMS];   /* the innermost first; kept is without strip */
    int64_t outputs, n;                                     /* results, and elements for each */
    int64_t width, strips_per_row, strips, piece, pieces;
    const char *center; /* in strip order */
    char *gathered;     /* [pieces][outputs], in strip order; NULL: finish each strip at once */
    enum finish finish;
    double number;
    char *result; /* NULL: only gather */
    int64_t result_size;
    grd_loop_kernel *store; /* to the result's dtype */
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
    return stride < 0 ? -stride : stride;
}

/* ---- The grid -------------------------------------------------------------------------------------------------------------- */
/* By rising stride. */
static void add_reduced(struct reduction *r, int64_t size, int64_t stride)
{
    int at = r->nreduced++;
    for (; at > 0 && distance(r->reduced[at - 1].stride) > distance(stride); at--)
        r->reduced[at] = r->reduced[at - 1];
    r->reduced[at] = (struct dim){size, stride, 0};
}

static void join_reduced(struct reduction *r)
{
    int last = 0;
    for (int i = 1; i < r->nreduced; i++) {
        if (r->reduced[i].stride == r->reduced[last].stride * r->reduced[last].size)
            r->reduced[last].size *= r->reduced[i].size;
        else
            r->reduced[++last] = r->reduced[i];
    }
    r->nreduced = last + 1;
}

/* In the order of dimensions; joins the one before where it continues it. */
static void add_kept(struct reduction *r, int64_t size, int64_t stride)
{
    struct dim *before = r->nkept > 0 ? &r->kept[r->nkept - 1] : NULL;
    if (before != NULL && stride == before->stride * before->size)
        before->size *= size;
    else
        r->kept[r->nkept++] = (struct dim){size, stride, r->outputs};
    r->outputs *= size;
}

/* Takes the best kept dimension for strips out of the list, and decides which of the two kernels fits. */
static void choose_strip(struct reduction *r)
{
    const struct dim *inner = &r->reduced[0];
    bool lines = inner->stride == r->in_size && inner->size > 1;
    if (r->nkept == 0) {
        r->strip = (struct dim){1, r->in_size, 1};
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

static void choose_grid(struct reduction *r, grd_dtype from)
{
    const struct dim *inner = &r->reduced[0], *along = r->columns ? &r->strip : inner, *across = r->columns ? inner : &r->strip;
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

/* Everything but what to do with the results. `mask`: the dims that are reduced. */
static void plan(struct reduction *r, enum grd_reduce_kind kind, grd_dtype read, const grd_tensor *self, uint64_t mask)
{
    r->kind = kind;
    r->read = read;
    r->in = self->data;
    r->in_size = self->itemsize;
    r->nreduced = r->nkept = 0;
    r->outputs = r->n = 1;
    r->columns = false;
    r->center = NULL;
    r->gathered = NULL;
    r->finish = AS_IS;
    r->number = 0;
    r->result = NULL;
    for (int d = self->ndim - 1; d >= 0; d--) {
        int64_t size = self->sizes[d], stride = self->strides[d] * r->in_size;
        if (mask >> d & 1) {
            r->n *= size;
            if (size > 1)
                add_reduced(r, size, stride);
        } else if (size > 1) {
            add_kept(r, size, stride);
        } else {
            r->outputs *= size;
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

/* Chooses the kernels: after the plan, and again for another kind over the same plan. */
static void choose_kernel(struct reduction *r, enum grd_reduce_kind kind)
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
static void fill_identity(const struct reduction *r, int64_t n, void *gathered)
{
    double number = r->kind == GRD_REDUCE_PROD ? 1 : r->kind == GRD_REDUCE_MAX ? -INFINITY : r->kind == GRD_REDUCE_MIN ? INFINITY : 0;
    bool highest = r->kind == GRD_REDUCE_MIN || r->kind == GRD_REDUCE_FIND, lowest = r->kind == GRD_REDUCE_MAX;
    for (int64_t i = 0; i < n; i++) {
        switch (r->gathers) {
        case GRD_UINT8:
            ((uint8_t *)gathered)[i] = highest ? UINT8_MAX : 0;
            break;
        case GRD_UINT64:
            ((uint64_t *)gathered)[i] = highest ? UINT64_MAX : 0;
            break;
        case GRD_INT64:
            ((int64_t *)gathered)[i] = highest ? INT64_MAX : lowest ? INT64_MIN : (int64_t)number;
            break;
        case GRD_FLOAT32:
            ((float *)gathered)[i] = (float)number;
            break;
        case GRD_FLOAT64:
            ((double *)gathered)[i] = number;
            break;
        default:
            ((grd_complex128 *)gathered)[i] = (grd_complex128){number, 0};
        }
    }
}

static void merge(const struct reduction *r, int64_t n, void *into, const void *from)
{
    r->merge(&(struct grd_reduce_block){.outputs = n, .n = 1, .in = from, .gathered = into});
}

/* Brings a block of outputs x n into `buffer`, in the layout the kernel wants. */
static void convert_block(const struct reduction *r, struct grd_reduce_block *b, int64_t row_stride, char *buffer)
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
        r->convert(along, (char *const[]){buffer + i * along * r->read_size, (char *)(uintptr_t)(b->in + i * row_stride)}, strides,
                   NULL);
    b->in = buffer;
    b->stride = (r->columns ? b->outputs : b->n) * r->read_size;
}

/* Partial results climb levels, FLUSH of one making one of the next: errors grow slowly however many blocks there are. */
struct cascade {
    int64_t calls;
    _Alignas(64) char level[LEVELS][STRIP * WIDEST];
};

static void cascade_flush(const struct reduction *r, struct cascade *c, int64_t width)
{
    int64_t due = ++c->calls;
    for (int l = 0; l + 1 < LEVELS && due % FLUSH == 0; l++, due /= FLUSH) {
        merge(r, width, c->level[l + 1], c->level[l]);
        fill_identity(r, width, c->level[l]);
    }
}

static const char *strip_base(const struct reduction *r, int64_t row, int64_t *ret_output)
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
static void gather(const struct reduction *r, const char *base, const char *center, int64_t width, int64_t begin, int64_t end,
                   void *gathered)
{
    const struct dim *inner = &r->reduced[0];
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

/* Finishes one strip and writes it to the result. */
static void finish_strip(const struct reduction *r, void *gathered, const char *center, int64_t width, int64_t output)
{
    int64_t parts = r->gathers == GRD_COMPLEX128 ? 2 : 1;
    double *v = gathered;
    const double *c = (const double *)(const void *)center;
    uint8_t flags[STRIP];
    char *from = gathered;
    int64_t from_size = r->gathered_size;
    switch (r->finish) {
    case AS_IS:
        break;
    case DIVIDE:
        for (int64_t i = 0; i < width * parts; i++)
            v[i] /= r->number;
        break;
    case ROOT:
        for (int64_t i = 0; i < width * parts; i += parts)
            v[i] = sqrt(v[i]);
        break;
    case DIVIDE_ROOT:
        for (int64_t i = 0; i < width * parts; i += parts)
            v[i] = sqrt(v[i] / r->number);
        break;
    case LOG:
        for (int64_t i = 0; i < width; i++)
            v[i] = log(v[i]) + c[i];
        break;
    case ANY:
    case ALL:
        for (int64_t i = 0; i < width; i++) {
            double count = r->gathers == GRD_INT64 ? (double)((int64_t *)gathered)[i] : v[i * parts];
            flags[i] = r->finish == ANY ? count != 0 : count == r->number;
        }
        from = (char *)flags;
        from_size = 1;
        break;
    }
    if (r->result != NULL)
        r->store(width, (char *const[]){r->result + output * r->result_size, from},
                 (const int64_t[]){r->strip.step * r->result_size, from_size}, NULL);
}

static void reduce_cells(int64_t begin, int64_t end, void *context)
{
    const struct reduction *r = context;
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
    const struct reduction *r = context;
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

/* Bytes of scratch for gathered values, when they are wanted or have to be merged. */
static int64_t scratch_bytes(const struct reduction *r, bool wanted)
{
    return wanted || r->pieces > 1 ? greater(1, r->pieces * r->outputs * r->gathered_size) : 0;
}

static void run(const struct reduction *r)
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
static bool is_float(grd_dtype dtype)
{
    return grd_category_of(dtype) == GRD_CATEGORY_FLOAT;
}

static bool is_complex(grd_dtype dtype)
{
    return grd_category_of(dtype) == GRD_CATEGORY_COMPLEX;
}

static bool is_integral(grd_dtype dtype)
{
    return grd_category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

/* float8 and quantized dtypes are stored and converted only. */
static bool has_arithmetic(grd_dtype dtype)
{
    return dtype <= GRD_COMPLEX128;
}

/* The dtype with a kernel that elements of `from` are read as, to give a result of dtype `to`. */
static grd_dtype read_as(enum grd_reduce_kind kind, grd_dtype from, grd_dtype to)
{
    bool choosing = kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN || kind == GRD_REDUCE_FIND;
    bool summing = kind == GRD_REDUCE_SUM || kind == GRD_REDUCE_PROD;
    grd_dtype wanted = summing && !(is_integral(from) && is_integral(to)) ? to : from;
    if (is_complex(wanted))
        return GRD_COMPLEX128;
    if (is_float(wanted))
        return from == GRD_FLOAT32 || from == GRD_FLOAT16 || from == GRD_BFLOAT16 ? GRD_FLOAT32 : GRD_FLOAT64;
    if (from == GRD_UINT64 && choosing)
        return GRD_UINT64;
    return from == GRD_BOOL || from == GRD_UINT8 ? GRD_UINT8 : GRD_INT64;
}

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

static int64_t reduced_count(grd_dims sizes, uint64_t mask)
{
    int64_t count = 1;
    for (int64_t d = 0; d < sizes.n; d++)
        if (mask >> d & 1)
            count *= sizes.data[d];
    return count;
}

static uint64_t all_dims(const grd_tensor *self)
{
    return self->ndim == 64 ? ~(uint64_t)0 : ((uint64_t)1 << self->ndim) - 1;
}

/* The mask of an optional single dim: all when absent. */
static bool optional_dim_mask(const grd_tensor *self, grd_scalar dim, uint64_t *ret_mask)
{
    int64_t d;
    if (dim.kind == GRD_SCALAR_NONE) {
        *ret_mask = all_dims(self);
        return true;
    }
    if (!grd_wrap_dim(self, grd_scalar_int64(dim), &d))
        return false;
    *ret_mask = (uint64_t)1 << d;
    return true;
}

/* The result tensor of a reduction; grd_failed, with the error raised, when there can be none. */
static grd_tensor *prepare(grd_tensor *out, const grd_tensor *self, uint64_t mask, bool keepdim, grd_dtype dtype)
{
    int64_t sizes[GRD_MAX_DIMS];
    int64_t n = reduced_sizes(self, mask, keepdim, sizes);
    return grd_out_prepare(out, grd_dims_from(sizes, n), dtype, grd_device_of(self));
}

static void store_in(struct reduction *r, grd_tensor *result)
{
    grd_dtype from = r->finish == ANY || r->finish == ALL ? GRD_BOOL : r->gathers;
    r->result = result->data;
    r->result_size = result->itemsize;
    r->store = grd_kernels->cast[from][result->dtype];
}

/* The whole way of a reduction in one pass. */
static grd_tensor *reduce(grd_tensor *out, grd_tensor *self, uint64_t mask, bool keepdim, enum grd_reduce_kind kind, grd_dtype dtype,
                          enum finish finish, double number)
{
    grd_tensor *result = prepare(out, self, mask, keepdim, dtype);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        struct reduction r;
        plan(&r, kind, read_as(kind, (grd_dtype)self->dtype, dtype), self, mask);
        choose_kernel(&r, kind);
        r.finish = finish;
        r.number = number;
        store_in(&r, result);
        int64_t bytes = scratch_bytes(&r, false);
        if (bytes > 0 && (r.gathered = grd_alloc((size_t)bytes)) == NULL)
            return grd_failed;
        run(&r);
        grd_free(r.gathered, (size_t)bytes);
    }
    return grd_out_finish(out, result);
}

/* ---- Sums and products ------------------------------------------------------------------------------------------------------------ */
/* Integers and bool add up in int64. */
static grd_dtype sum_dtype(const grd_tensor *self, grd_dtype dtype)
{
    if (dtype != GRD_DTYPE_NONE)
        return dtype;
    return is_integral((grd_dtype)self->dtype) ? GRD_INT64 : (grd_dtype)self->dtype;
}

static bool check_arithmetic(const char *name, const grd_tensor *self, grd_dtype dtype)
{
    if (!has_arithmetic((grd_dtype)self->dtype))
        return grd_raise_no_kernel(name, (grd_dtype)self->dtype);
    return has_arithmetic(dtype) || grd_raise_no_kernel(name, dtype);
}

grd_tensor *op_sum(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    grd_dtype to = sum_dtype(self, dtype);
    if (!check_arithmetic("sum", self, to) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    if (to == GRD_BOOL)
        return reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, ANY, 0);
    return reduce(out, self, mask, keepdim, GRD_REDUCE_SUM, to, AS_IS, 0);
}

grd_tensor *op_mean(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    grd_dtype to = dtype != GRD_DTYPE_NONE ? dtype : (grd_dtype)self->dtype;
    if (!is_float(to) && !is_complex(to)) {
        grd_raise(GRD_ERROR_RUNTIME, "could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s",
                  dtype != GRD_DTYPE_NONE ? "Optional" : "Input", grd_dtype_type_name(to));
        return grd_failed;
    }
    if (!check_arithmetic("mean", self, to) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    return reduce(out, self, mask, keepdim, GRD_REDUCE_SUM, to, DIVIDE, (double)reduced_count(grd_sizes(self), mask));
}

grd_tensor *op_prod(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    grd_dtype to = sum_dtype(self, dtype);
    if (!check_arithmetic("prod", self, to) || !optional_dim_mask(self, dim, &mask))
        return grd_failed;
    if (to == GRD_BOOL)
        return reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, ALL, (double)reduced_count(grd_sizes(self), mask));
    return reduce(out, self, mask, keepdim, GRD_REDUCE_PROD, to, AS_IS, 0);
}

grd_tensor *op_nansum(grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    if (is_complex((grd_dtype)self->dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "nansum on CPU does not support complex inputs");
        return grd_failed;
    }
    if (is_float((grd_dtype)self->dtype))
        self = grd_masked_fill(self, grd_ne(self, self), grd_int(0));
    return grd_sum(self, .dim = dim, .keepdim = keepdim, .dtype = dtype);
}

/* ---- Truth and counts --------------------------------------------------------------------------------------------------------------- */
/* Unlike elsewhere, an empty list of dims reduces none. */
static bool truth_mask(const grd_tensor *self, grd_dims dim, uint64_t *ret_mask)
{
    if (dim.data != NULL && dim.n == 0) {
        *ret_mask = 0;
        return true;
    }
    return grd_shape_dim_mask(dim, self->ndim, ret_mask);
}

static grd_tensor *truth(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, const char *name, enum finish finish)
{
    uint64_t mask;
    grd_dtype to = self->dtype == GRD_UINT8 ? GRD_UINT8 : GRD_BOOL;
    if (!check_arithmetic(name, self, to) || !truth_mask(self, dim, &mask))
        return grd_failed;
    if (out != NULL && out->dtype != GRD_BOOL && out->dtype != GRD_UINT8) {
        grd_raise(GRD_ERROR_RUNTIME, "%s only supports bool tensor for result, got: %s", name, grd_dtype_type_name((grd_dtype)out->dtype));
        return grd_failed;
    }
    if (out != NULL)
        to = (grd_dtype)out->dtype;
    return reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, finish, (double)reduced_count(grd_sizes(self), mask));
}

grd_tensor *op_any(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return truth(out, self, dim, keepdim, "any", ANY);
}

grd_tensor *op_all(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return truth(out, self, dim, keepdim, "all", ALL);
}

grd_tensor *op_count_nonzero(grd_tensor *out, grd_tensor *self, grd_dims dim)
{
    uint64_t mask;
    if (!check_arithmetic("count_nonzero", self, GRD_INT64) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    return reduce(out, self, mask, false, GRD_REDUCE_NONZERO, GRD_INT64, AS_IS, 0);
}

/* ---- Extremes ----------------------------------------------------------------------------------------------------------------------- */
/* There is no extreme of nothing. */
static bool check_not_empty(const grd_tensor *self, bool dim_given, uint64_t mask, grd_error_code code, const char *hint)
{
    if (self->numel != 0)
        return true;
    if (!dim_given)
        return grd_raise(code, "Expected reduction dim to be specified for input.numel() == 0.%s", hint);
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return grd_raise(GRD_ERROR_INDEX, "Expected reduction dim %d to have non-zero size.", d);
    return true;
}

static const char specify_dim[] = " Specify the reduction dim with the 'dim' argument.";

static grd_tensor *extreme(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, const char *name, enum grd_reduce_kind kind)
{
    uint64_t mask;
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (dtype == GRD_COMPLEX64 || dtype == GRD_COMPLEX128 || !has_arithmetic(dtype)) {
        grd_raise_no_kernel(name, dtype);
        return grd_failed;
    }
    if (!grd_shape_dim_mask(dim, self->ndim, &mask) || !check_not_empty(self, dim.n > 0, mask, GRD_ERROR_RUNTIME, specify_dim))
        return grd_failed;
    if (out != NULL && out->dtype != dtype) {
        grd_raise(GRD_ERROR_RUNTIME, "Expected the dtype for input and out to match, but got %s for input's dtype and %s for out's dtype.",
                  grd_dtype_type_name(dtype), grd_dtype_type_name((grd_dtype)out->dtype));
        return grd_failed;
    }
    return reduce(out, self, mask, keepdim, kind, dtype, AS_IS, 0);
}

grd_tensor *op_max(grd_tensor *out, grd_tensor *self)
{
    return extreme(out, self, (grd_dims){NULL, 0}, false, "max", GRD_REDUCE_MAX);
}

grd_tensor *op_min(grd_tensor *out, grd_tensor *self)
{
    return extreme(out, self, (grd_dims){NULL, 0}, false, "min", GRD_REDUCE_MIN);
}

grd_tensor *op_amax(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return extreme(out, self, dim, keepdim, "amax", GRD_REDUCE_MAX);
}

grd_tensor *op_amin(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return extreme(out, self, dim, keepdim, "amin", GRD_REDUCE_MIN);
}

/* The extreme in a first pass, its first place in a second; `values` may be NULL. False when memory ran out. */
static bool find_extreme(grd_tensor *values, grd_tensor *places, const grd_tensor *self, uint64_t mask, enum grd_reduce_kind kind)
{
    struct reduction r;
    plan(&r, kind, read_as(kind, (grd_dtype)self->dtype, (grd_dtype)self->dtype), self, mask);
    choose_kernel(&r, kind);
    int64_t extreme_bytes = scratch_bytes(&r, true);
    char *extremes = grd_alloc((size_t)extreme_bytes);
    if (extremes == NULL)
        return false;
    if (values != NULL)
        store_in(&r, values);
    r.gathered = extremes;
    struct reduction second = r;
    choose_kernel(&second, GRD_REDUCE_FIND);
    second.center = extremes;
    store_in(&second, places);
    int64_t bytes = scratch_bytes(&second, false);
    second.gathered = NULL;
    if (bytes > 0 && (second.gathered = grd_alloc((size_t)bytes)) == NULL) {
        grd_free(extremes, (size_t)extreme_bytes);
        return false;
    }
    run(&r);
    run(&second);
    grd_free(second.gathered, (size_t)bytes);
    grd_free(extremes, (size_t)extreme_bytes);
    return true;
}

static void extreme_with_place(grd_tensor *self, int64_t dim, bool keepdim, const char *name, enum grd_reduce_kind kind, grd_tensor **ret)
{
    int64_t d;
    grd_dtype dtype = (grd_dtype)self->dtype;
    ret[0] = ret[1] = grd_failed;
    if (is_complex(dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "does not support complex input");
        return;
    }
    if (!has_arithmetic(dtype)) {
        grd_raise_no_kernel(name, dtype);
        return;
    }
    if (!grd_wrap_dim(self, dim, &d) || !check_not_empty(self, true, (uint64_t)1 << d, GRD_ERROR_INDEX, ""))
        return;
    grd_tensor *values = prepare(NULL, self, (uint64_t)1 << d, keepdim, dtype);
    grd_tensor *places = prepare(NULL, self, (uint64_t)1 << d, keepdim, GRD_INT64);
    if (grd_pending() || (!grd_is_meta(values) && !find_extreme(values, places, self, (uint64_t)1 << d, kind)))
        return;
    ret[0] = values;
    ret[1] = places;
}

void op_max_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    extreme_with_place(self, dim, keepdim, "max", GRD_REDUCE_MAX, ret);
}

void op_min_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    extreme_with_place(self, dim, keepdim, "min", GRD_REDUCE_MIN, ret);
}

static grd_tensor *place(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim, const char *name, enum grd_reduce_kind kind)
{
    uint64_t mask;
    grd_dtype dtype = (grd_dtype)self->dtype;
    bool everywhere = dim.kind == GRD_SCALAR_NONE;
    if (is_complex(dtype) || dtype == GRD_BOOL) {
        grd_raise(GRD_ERROR_RUNTIME, "does not support %s input", dtype == GRD_BOOL ? "bool" : "complex");
        return grd_failed;
    }
    if (!has_arithmetic(dtype)) {
        grd_raise_no_kernel(name, dtype);
        return grd_failed;
    }
    if (!optional_dim_mask(self, dim, &mask) || !check_not_empty(self, !everywhere, mask, GRD_ERROR_INDEX, ""))
        return grd_failed;
    grd_tensor *places = prepare(out, self, mask, keepdim, GRD_INT64);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(places)) {
        /* The place in row-major order: over a contiguous tensor all dims are one. */
        grd_tensor *in_order = everywhere ? grd_contiguous_as(self, GRD_DTYPE_NONE) : self;
        if (grd_pending() || !find_extreme(NULL, places, in_order, mask, kind))
            return grd_failed;
    }
    return grd_out_finish(out, places);
}

grd_tensor *op_argmax(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim)
{
    return place(out, self, dim, keepdim, "argmax", GRD_REDUCE_MAX);
}

grd_tensor *op_argmin(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim)
{
    return place(out, self, dim, keepdim, "argmin", GRD_REDUCE_MIN);
}

/* ---- Moments ------------------------------------------------------------------------------------------------------------------------ */
/* The mean in a first pass, the squared distances from it in a second. `mean` may be NULL. False when memory ran out. */
static bool moments(grd_tensor *spread, grd_tensor *mean, const grd_tensor *self, uint64_t mask, double correction, enum finish finish)
{
    struct reduction r;
    double n = (double)reduced_count(grd_dims_from(self->sizes, self->ndim), mask);
    plan(&r, GRD_REDUCE_SUM, read_as(GRD_REDUCE_SUM, (grd_dtype)self->dtype, (grd_dtype)self->dtype), self, mask);
    choose_kernel(&r, GRD_REDUCE_SUM);
    int64_t bytes = scratch_bytes(&r, true);
    r.finish = DIVIDE;
    r.number = n;
    struct reduction second = r;
    choose_kernel(&second, GRD_REDUCE_SQUARE);
    second.finish = finish;
    second.number = n - correction > 0 ? n - correction : 0;
    store_in(&second, spread);
    int64_t second_bytes = scratch_bytes(&second, false);
    if (mean != NULL)
        store_in(&r, mean);
    if ((r.gathered = grd_alloc((size_t)bytes)) == NULL)
        return false;
    if (second_bytes > 0 && (second.gathered = grd_alloc((size_t)second_bytes)) == NULL) {
        grd_free(r.gathered, (size_t)bytes);
        return false;
    }
    second.center = r.gathered;
    run(&r);
    run(&second);
    grd_free(second.gathered, (size_t)second_bytes);
    grd_free(r.gathered, (size_t)bytes);
    return true;
}

static bool check_moments(const grd_tensor *self, const char *names)
{
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (!is_float(dtype) && !is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "%s only support floating point and complex dtypes", names);
    return check_arithmetic("var", self, dtype);
}

static double correction_of(grd_scalar correction)
{
    return correction.kind == GRD_SCALAR_NONE ? 1 : grd_scalar_double(correction);
}

static grd_tensor *moment(grd_tensor *out, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, enum finish finish)
{
    uint64_t mask;
    if (!check_moments(self, "std and var") || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    grd_tensor *result = prepare(out, self, mask, keepdim, grd_dtype_to_real((grd_dtype)self->dtype));
    if (grd_pending() || (!grd_is_meta(result) && !moments(result, NULL, self, mask, correction_of(correction), finish)))
        return grd_failed;
    return grd_out_finish(out, result);
}

grd_tensor *op_var(grd_tensor *out, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim)
{
    return moment(out, self, dim, correction, keepdim, DIVIDE);
}

grd_tensor *op_std(grd_tensor *out, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim)
{
    return moment(out, self, dim, correction, keepdim, DIVIDE_ROOT);
}

static void moment_and_mean(grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, const char *name, enum finish finish,
                            grd_tensor **ret)
{
    uint64_t mask;
    ret[0] = ret[1] = grd_failed;
    if (!check_moments(self, name) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return;
    grd_tensor *spread = prepare(NULL, self, mask, keepdim, grd_dtype_to_real((grd_dtype)self->dtype));
    grd_tensor *mean = prepare(NULL, self, mask, keepdim, (grd_dtype)self->dtype);
    if (grd_pending() || (!grd_is_meta(spread) && !moments(spread, mean, self, mask, correction_of(correction), finish)))
        return;
    ret[0] = spread;
    ret[1] = mean;
}

void op_var_mean(grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, grd_tensor **ret)
{
    moment_and_mean(self, dim, correction, keepdim, "var_mean", DIVIDE, ret);
}

void op_std_mean(grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim, grd_tensor **ret)
{
    moment_and_mean(self, dim, correction, keepdim, "std_mean", DIVIDE_ROOT, ret);
}

/* ---- Norms -------------------------------------------------------------------------------------------------------------------------- */
static bool check_norm_not_empty(const grd_tensor *self, bool dim_given, uint64_t mask, double p)
{
    if (self->numel != 0 || (p >= 0 && !isinf(p)))
        return true;
    char name[32];
    snprintf(name, sizeof name, isinf(p) ? "%sinf" : "%s%g", isinf(p) && p < 0 ? "-" : "", p);
    if (!dim_given)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "cannot compute the %s norm on an empty tensor because the operation does not have an identity", name);
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "cannot compute the %s norm on the dimension %d because this dimension is empty and the operation does "
                             "not have an identity", name, d);
    return true;
}

static double norm_order(grd_scalar p)
{
    return p.kind == GRD_SCALAR_NONE ? 2 : grd_scalar_double(p);
}

grd_tensor *op_norm(grd_tensor *out, grd_tensor *self, grd_scalar order, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    double p = norm_order(order);
    grd_dtype from = (grd_dtype)self->dtype, as = dtype != GRD_DTYPE_NONE ? dtype : from, to = grd_dtype_to_real(as);
    if (!is_float(from) && !is_complex(from)) {
        grd_raise(GRD_ERROR_RUNTIME, "Expected a floating point or complex tensor as input. Got %s", grd_dtype_type_name(from));
        return grd_failed;
    }
    if (!is_float(as) && !is_complex(as)) {
        grd_raise(GRD_ERROR_RUNTIME, "dtype should be floating point or complex, but got %s", grd_dtype_type_name(as));
        return grd_failed;
    }
    if (is_complex(from) != is_complex(as)) {
        grd_raise(GRD_ERROR_RUNTIME, "dtype should be %s for %s inputs, but got %s", is_complex(from) ? "complex" : "real",
                  is_complex(from) ? "complex" : "real", grd_dtype_type_name(as));
        return grd_failed;
    }
    if (!check_arithmetic("norm", self, as) || !grd_shape_dim_mask(dim, self->ndim, &mask) ||
        !check_norm_not_empty(self, dim.n > 0, mask, p) || !grd_out_check(out, to, grd_device_of(self)))
        return grd_failed;
    if (as != from && !grd_is_meta(self))
        self = grd_contiguous_as(self, as);
    if (grd_pending())
        return grd_failed;
    if (p == 0)
        return reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, AS_IS, 0);
    if (p == 1 || grd_is_meta(self))
        return reduce(out, self, mask, keepdim, GRD_REDUCE_ABS, to, AS_IS, 0);
    if (p == 2)
        return reduce(out, self, mask, keepdim, GRD_REDUCE_SQUARE, to, ROOT, 0);
    grd_tensor *magnitudes = reduce(NULL, self, 0, false, GRD_REDUCE_ABS, to, AS_IS, 0);
    if (isinf(p)) {
        if (grd_pending())
            return grd_failed;
        return reduce(out, magnitudes, mask, keepdim, p > 0 ? GRD_REDUCE_MAX : GRD_REDUCE_MIN, to, AS_IS, 0);
    }
    grd_tensor *powers = grd_pow_scalar(magnitudes, grd_float(p));
    if (grd_pending())
        return grd_failed;
    grd_tensor *sum = reduce(NULL, powers, mask, keepdim, GRD_REDUCE_SUM, to, AS_IS, 0);
    grd_tensor *norm = grd_pow_scalar(sum, grd_float(1 / p));
    if (grd_pending() || out == NULL)
        return norm;
    grd_tensor *result = grd_out_prepare(out, grd_sizes(norm), to, grd_device_of(norm));
    if (grd_pending() || !grd_copy_elements(result, norm))
        return grd_failed;
    return grd_out_finish(out, result);
}

/* |self|, for complex numbers too: the norm over no dims. */
grd_tensor *op__modulus(grd_tensor *self)
{
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (is_integral(dtype) || !has_arithmetic(dtype)) {
        grd_raise_no_kernel("_modulus", dtype);
        return grd_failed;
    }
    return reduce(NULL, self, 0, false, GRD_REDUCE_ABS, grd_dtype_to_real(dtype), AS_IS, 0);
}

/* ---- logsumexp: log(sum(exp(x - max))) + max ------------------------------------------------------------------------------- */
static bool log_sum_exp(grd_tensor *result, const grd_tensor *self, uint64_t mask)
{
    struct reduction r;
    plan(&r, GRD_REDUCE_MAX, self->dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32, self, mask);
    choose_kernel(&r, GRD_REDUCE_MAX);
    int64_t bytes = scratch_bytes(&r, true), center_bytes = greater(1, r.outputs * (int64_t)sizeof(double));
    struct reduction second = r;
    choose_kernel(&second, GRD_REDUCE_EXP);
    second.finish = LOG;
    store_in(&second, result);
    int64_t second_bytes = scratch_bytes(&second, false);
    bool done = false;
    r.gathered = grd_alloc((size_t)bytes);
    double *center = grd_alloc((size_t)center_bytes);
    if (second_bytes > 0)
        second.gathered = grd_alloc((size_t)second_bytes);
    if (!grd_pending()) {
        run(&r);
        /* An infinite maximum cannot be subtracted, and need not: exp of it is 0 or infinite already. */
        for (int64_t i = 0; i < r.outputs; i++) {
            double max = r.gathers == GRD_FLOAT64 ? ((double *)(void *)r.gathered)[i] : (double)((float *)(void *)r.gathered)[i];
            center[i] = isinf(max) ? 0 : max;
        }
        second.center = (const char *)center;
        run(&second);
        done = true;
    }
    grd_free(second.gathered, (size_t)second_bytes);
    grd_free(center, (size_t)center_bytes);
    grd_free(r.gathered, (size_t)bytes);
    return done;
}

grd_tensor *op_logsumexp(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    grd_dtype to = grd_dtype_to_float((grd_dtype)self->dtype);
    if (is_complex(to) || !has_arithmetic(to)) {
        grd_raise_no_kernel("logsumexp", to);
        return grd_failed;
    }
    if (!grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    grd_tensor *result = prepare(out, self, mask, keepdim, to);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        if (is_integral((grd_dtype)self->dtype))
            self = grd_contiguous_as(self, to);
        if (grd_pending() || !log_sum_exp(result, self, mask))
            return grd_failed;
    }
    return grd_out_finish(out, result);
}

/* ---- Gradients: composites, differentiable in their turn --------------------------------------------------------------- */
/* A reduced tensor with its reduced dims back as size 1. */
static grd_tensor *restored(grd_tensor *t, grd_dims sizes, uint64_t mask, bool keepdim)
{
    int64_t with_ones[GRD_MAX_DIMS];
    if (keepdim)
        return t;
    for (int64_t d = 0; d < sizes.n; d++)
        with_ones[d] = mask >> d & 1 ? 1 : sizes.data[d];
    return grd_reshape(t, grd_dims_from(with_ones, sizes.n));
}

grd_tensor *op__sum_backward(grd_tensor *grad, grd_dims sizes, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    return grd_expand(restored(grad, sizes, mask, keepdim), sizes);
}

grd_tensor *op__mean_backward(grd_tensor *grad, grd_dims sizes, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    grd_tensor *share = grd_div_scalar(grad, grd_float((double)reduced_count(sizes, mask)));
    return grd_expand(restored(share, sizes, mask, keepdim), sizes);
}

/* Ties share the gradient evenly. */
grd_tensor *op__extreme_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    grd_tensor *ties = grd_to(grd_eq(self, restored(result, sizes, mask, keepdim)), .dtype = grd_tensor_dtype(grad));
    return grd_mul(grd_div(restored(grad, sizes, mask, keepdim), grd_sum(ties, .dim = dim, .keepdim = true)), ties);
}

/* The gradient goes to the place each value came from. */
grd_tensor *op__choose_backward(grd_tensor *grad, grd_tensor *places, grd_dims sizes, int64_t dim, bool keepdim)
{
    int64_t d;
    if (!grd_shape_wrap_dim(dim, sizes.n, &d))
        return grd_failed;
    grd_tensor *nothing = grd_zeros(sizes, .dtype = grd_tensor_dtype(grad), .device = grd_tensor_device(grad));
    uint64_t mask = (uint64_t)1 << d;
    return grd_scatter_add(nothing, d, restored(places, sizes, mask, keepdim), restored(grad, sizes, mask, keepdim));
}

/* a / b with 0 where b is 0. */
static grd_tensor *quotient_or_zero(grd_tensor *a, grd_tensor *b)
{
    return grd_masked_fill(grd_div(a, b), grd_eq_scalar(b, grd_int(0)), grd_int(0));
}

grd_tensor *op__var_backward(grd_tensor *grad, grd_tensor *self, grd_dims dim, grd_scalar correction, bool keepdim)
{
    uint64_t mask;
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    double n = (double)reduced_count(sizes, mask) - correction_of(correction);
    grd_tensor *centered = grd_sub(self, grd_mean(self, .dim = dim, .keepdim = true));
    return grd_mul(grd_mul_scalar(restored(grad, sizes, mask, keepdim), grd_float(2 / n)), centered);
}

/* Where the deviation is zero, so is the gradient. */
grd_tensor *op__std_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_dims dim, grd_scalar correction, bool keepdim)
{
    grd_tensor *grad_var = quotient_or_zero(grad, grd_mul_scalar(result, grd_int(2)));
    return grd__var_backward(grad_var, self, dim, correction, keepdim);
}

grd_tensor *op__modulus_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result)
{
    return grd_mul(quotient_or_zero(self, result), grad);
}

/* d|x|_p / dx = x |x|^(p-2) / |x|_p^(p-1), and 0 where that is 0 / 0, as at the origin. */
grd_tensor *op__norm_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_scalar order, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    double p = norm_order(order);
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    if (p == 0)
        return grd_zeros_like(self);
    grd_tensor *g = restored(grad, sizes, mask, keepdim), *norm = restored(result, sizes, mask, keepdim);
    if (p == 2)
        return grd_mul(quotient_or_zero(self, norm), g);
    grd_tensor *size = grd__modulus(self), *direction = quotient_or_zero(self, size);
    if (p == 1)
        return grd_mul(direction, g);
    if (isinf(p)) {
        grd_tensor *ties = grd_to(grd_eq(size, norm), .dtype = grd_tensor_dtype(size));
        return grd_mul(grd_mul(direction, ties), grd_div(g, grd_sum(ties, .dim = dim, .keepdim = true)));
    }
    grd_tensor *powers = grd_masked_fill(grd_pow_scalar(size, grd_float(p - 1)), grd_eq_scalar(size, grd_int(0)), grd_int(0));
    grd_tensor *scale = p < 1 ? grd_mul(g, grd_pow_scalar(norm, grd_float(1 - p)))
                              : quotient_or_zero(g, grd_pow_scalar(norm, grd_float(p - 1)));
    return grd_mul(grd_mul(direction, powers), scale);
}

grd_tensor *op__logsumexp_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    return grd_mul(restored(grad, sizes, mask, keepdim), grd_exp(grd_sub(self, restored(result, sizes, mask, keepdim))));
}
