/* The engine of reductions: strips, pieces, cells. What is reduced, and the checks, are in reduce_plan.c; the loops in kernel/cpu/reduce.c.
 *
 * Every reduction is a grid of strips (neighbouring outputs, at most GRD_REDUCE_STRIP) by pieces (ranges of the reduced elements). The grid
 * follows from shape and strides alone, each cell is done by one thread, and pieces are combined in order: the same bits for any
 * number of threads.
 * Invariant: gathered values and centers are in strip order, results in row-major order. */
#include "op/reduce.h"

#include <string.h>

#include "base/parallel.h"
#include "core/geometry.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/sizes.h"

enum {
    CONVERTED = 2048, /* elements converted at a time */
    FLUSH = 32,       /* kernel calls before a partial result moves up a level */
    LEVELS = 3,
    MANY_STRIPS = 16,      /* enough strips to keep every thread busy without cutting the reduced elements */
    LEAST_PIECE = 1 << 16, /* elements in a cell of the grid when they are cut */
    MOST_PIECES = 64,
    STRETCH = 64, /* contiguous elements of bfloat16 that are worth reading without a conversion */
    NARROW = 16,  /* most columns of narrow rows */
    NARROW_BLOCK = 1 << 16,
    NARROW_LEAST = 64, /* least number of narrow rows */
    WHOLE = 64,        /* elements that fill cache lines, whatever their size */
    GRAIN = 1 << 15,   /* elements worth a thread's while */
    ALIGNMENT = 64
};

static int64_t distance(int64_t stride)
{
    return stride < 0 ? grd_wrapping_product(-1, stride) : stride;
}

/* ---- The grid -------------------------------------------------------------------------------------------------------------- */
/* Adds a reduced dimension; they are sorted by rising stride. */
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

/* Adds a kept dimension, in order; merges it with the one before where the two are one run. */
static void add_kept(struct grd_reduction *r, int64_t size, int64_t stride)
{
    struct grd_reduction_dim *before = r->nkept > 0 ? &r->kept[r->nkept - 1] : NULL;
    if (before != NULL && stride == grd_wrapping_product(before->stride, before->size))
        before->size = grd_wrapping_product(before->size, size);
    else
        r->kept[r->nkept++] = (struct grd_reduction_dim){size, stride, r->outputs};
    r->outputs = grd_wrapping_product(r->outputs, size);
}

/* True if a kept dimension and the innermost reduced one are short rows that follow each other in memory: Note [Narrow rows] in
 * kernel/cpu/reduce.c. */
static bool is_narrow(const struct grd_reduction *r, int kept)
{
    return r->reduced[0].stride == r->kept[kept].size * r->in_size && r->reduced[0].size >= NARROW_LEAST;
}

/* Takes the best kept dimension for strips out of the list, and chooses one of the two kernels. */
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
    else if (unit >= 0 && (r->kept[unit].size >= 16 || unit == widest || is_narrow(r, unit)))
        choice = unit;
    r->columns = !lines && (inner->size < GRD_REDUCE_ROWS || r->kept[choice].size >= 16 || choice == unit);
    r->strip = r->kept[choice];
    memmove(r->kept + choice, r->kept + choice + 1, (size_t)(--r->nkept - choice) * sizeof *r->kept);
}

/* True if all passes have kernels for bfloat16, and its runs are long enough; short ones are converted together. */
static bool reads_halves(const struct grd_reduction *r, grd_dtype from, int64_t stretch)
{
    bool all = from == GRD_BFLOAT16 && r->read == GRD_FLOAT32 && stretch >= STRETCH;
    for (int i = 0; all && i < r->npasses; i++)
        all = grd_kernels->reduce[from]->kinds[r->passes[i].what.kind].lines != NULL;
    return all;
}

static void choose_grid(struct grd_reduction *r, grd_dtype from)
{
    const struct grd_reduction_dim *inner = &r->reduced[0], *along = r->columns ? &r->strip : inner;
    const bool gaps = along->size > 1 && along->stride != r->in_size;
    if (!gaps && reads_halves(r, from, along->size)) {
        r->read = from;
        r->read_size = r->in_size;
    }
    /* Same bytes, other name: bool as uint8, uint64 as int64. */
    const bool converts = from != r->read && !(from == GRD_BOOL && r->read == GRD_UINT8) && !(from == GRD_UINT64 && r->read == GRD_INT64);
    r->convert = converts || gaps ? grd_kernels->cast[converts ? from : r->read][r->read] : NULL;
    const int64_t block = r->convert != NULL ? CONVERTED : GRD_REDUCE_LEAF * 2;
    r->width = grd_least(r->strip.size, r->columns ? GRD_REDUCE_STRIP
                                                   : grd_least(GRD_REDUCE_STRIP, grd_greatest(1, block / grd_greatest(inner->size, 1))));
    r->strips_per_row = (r->strip.size + r->width - 1) / r->width;
    r->strips = r->strips_per_row * (r->outputs / r->strip.size);
}

static void set_grid(struct grd_reduction *r, const grd_tensor *self)
{
    const grd_dtype from = r->parts ? grd_dtype_to_real((grd_dtype)self->dtype) : (grd_dtype)self->dtype;
    r->in = self->data;
    r->in_size = r->parts ? self->itemsize / 2 : self->itemsize;
    r->read_size = grd_dtype_size(r->read);
    r->nreduced = r->nkept = 0;
    r->outputs = r->n = 1;
    r->strips = 0;
    if (r->parts)
        add_kept(r, 2, r->in_size);
    for (int d = self->ndim - 1; d >= 0; d--) {
        /* The strides of an empty tensor may be anything: Note [Unused strides]. */
        int64_t size = self->sizes[d], stride = self->numel > 0 ? grd_byte_stride(self, d) : 0;
        if (r->mask >> d & 1) {
            r->n = grd_wrapping_product(r->n, size);
            if (size > 1 && self->numel > 0) /* the product of sizes beside a 0 may overflow */
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
    if (r->outputs == 0)
        return;
    choose_strip(r);
    choose_grid(r, from);
}

/* ---- The passes ---------------------------------------------------------------------------------------------------------------- */
static void set_kernels(struct grd_reduction *r, struct grd_reduction_pass *pass)
{
    const enum grd_reduce_kind kind = pass->what.kind;
    const grd_dtype gathers = grd_reduce_gathers(kind, r->read);
    const struct grd_reduce_row *row = grd_kernels->reduce[r->read], *merging = grd_kernels->reduce[gathers];
    const bool itself = kind == GRD_REDUCE_PROD || kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN;
    const bool elements = kind == GRD_REDUCE_FIND || kind == GRD_REDUCE_EXP;
    pass->kernel = r->columns ? row->kinds[kind].columns : row->kinds[kind].lines;
    pass->begin = row->kinds[kind].begin;
    pass->end = row->end[pass->what.finish];
    pass->merge = merging->kinds[kind == GRD_REDUCE_FIND ? GRD_REDUCE_MIN : itself ? kind : GRD_REDUCE_SUM].columns;
    pass->gathered_size = grd_dtype_size(gathers);
    pass->center_size = elements ? r->read_size : pass->gathered_size;
}

static void set_result(struct grd_reduction *r, struct grd_reduction_pass *pass, grd_tensor *const *results)
{
    pass->result = NULL;
    if (pass->what.result == GRD_REDUCE_NO_RESULT)
        return;
    const grd_tensor *result = results[pass->what.result];
    const grd_dtype finished = grd_reduce_finished(pass->what.finish, grd_reduce_gathers(pass->what.kind, r->read));
    const grd_dtype to = r->parts ? grd_dtype_to_real((grd_dtype)result->dtype) : (grd_dtype)result->dtype;
    pass->result = result->data;
    pass->result_size = grd_dtype_size(to);
    pass->finished_size = grd_dtype_size(finished);
    pass->store = grd_kernels->cast[finished][to];
}

static void cut(const struct grd_reduction *r, struct grd_reduction_pass *pass)
{
    pass->n = pass->what.first && r->n > 1 ? 1 : r->n;
    pass->piece = pass->n;
    if (!pass->what.first && r->strips < MANY_STRIPS && r->outputs * r->n > 4 * LEAST_PIECE)
        pass->piece = grd_greatest(grd_greatest(1, LEAST_PIECE / r->width), (r->n + MOST_PIECES - 1) / MOST_PIECES);
    if (!r->columns && pass->piece > WHOLE) /* pieces of a line begin where cache lines do */
        pass->piece = grd_least(pass->n, (pass->piece + WHOLE - 1) / WHOLE * WHOLE);
    pass->pieces = pass->n > 0 ? (pass->n + pass->piece - 1) / pass->piece : 1;
}

/* True if a sum of complex64 is computed as that of its parts, one more kept dimension, the innermost: the complex kernels would convert it to
 * complex128 first. */
static bool sums_parts(const struct grd_reduction *r, const grd_tensor *self, const grd_tensor *result)
{
    const struct grd_reduce_pass *what = &r->passes[0].what;
    return r->npasses == 1 && what->kind == GRD_REDUCE_SUM && (what->finish == GRD_FINISH_NONE || what->finish == GRD_FINISH_DIVIDE) &&
           self->dtype == GRD_COMPLEX64 && (result->dtype == GRD_COMPLEX64 || result->dtype == GRD_COMPLEX128) && self->ndim < GRD_MAX_DIMS;
}

bool grd_reduction_prepare(struct grd_plan *p)
{
    struct grd_reduction *r = grd_reduction_of(p);
    r->parts = sums_parts(r, p->in[0], p->results[0]);
    if (r->parts)
        r->read = GRD_FLOAT32;
    set_grid(r, p->in[0]);
    for (int i = 0; r->strips > 0 && i < r->npasses; i++) {
        struct grd_reduction_pass *pass = &r->passes[i];
        set_kernels(r, pass);
        set_result(r, pass, p->results);
        cut(r, pass);
        pass->gathered = -1;
        if (pass->pieces == 1 && i + 1 == r->npasses)
            continue;
        pass->gathered = (int64_t)p->scratch_bytes;
        p->scratch_bytes += (size_t)((pass->pieces * r->outputs * pass->gathered_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    return true;
}

/* ---- One cell ----------------------------------------------------------------------------------------------------------------- */
static void merge(const struct grd_reduction_pass *pass, int64_t n, void *into, const void *from)
{
    pass->merge(&(struct grd_reduce_block){.outputs = n, .n = 1, .in = from, .gathered = into});
}

/* Converts a block of outputs x n into `buffer`, in the layout of the kernel. */
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

/* Partial results in levels, FLUSH of one level making one of the next, so that rounding errors grow slowly with the number of blocks. */
struct cascade {
    int64_t calls;
    _Alignas(64) char level[LEVELS][GRD_REDUCE_STRIP * GRD_REDUCE_WIDEST];
};

static void cascade_flush(const struct grd_reduction_pass *pass, struct cascade *c, int64_t width)
{
    int64_t due = ++c->calls;
    for (int l = 0; l + 1 < LEVELS && due % FLUSH == 0; l++, due /= FLUSH) {
        merge(pass, width, c->level[l + 1], c->level[l]);
        pass->begin(width, c->level[l]);
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
static void gather(const struct grd_reduction *r, const struct grd_reduction_pass *pass, const char *base, const char *center,
                   int64_t width, int64_t begin, int64_t end, void *gathered)
{
    const struct grd_reduction_dim *inner = &r->reduced[0];
    const bool narrow = width < NARROW && inner->stride == width * r->read_size; /* Note [Narrow rows] in kernel/cpu/reduce.c */
    int64_t longest = !r->columns ? GRD_REDUCE_LEAF : narrow ? NARROW_BLOCK / width : width < 32 ? GRD_REDUCE_ROWS * 8 : GRD_REDUCE_ROWS;
    _Alignas(64) char buffer[CONVERTED * GRD_REDUCE_WIDEST];
    if (r->convert != NULL)
        longest = grd_least(longest, grd_greatest(1, CONVERTED / width));
    bool single = end - begin <= longest * FLUSH && r->nreduced == 1;
    struct cascade cascade;
    pass->begin(width, gathered);
    if (!single) {
        cascade.calls = 0;
        for (int l = 0; l < LEVELS; l++)
            pass->begin(width, cascade.level[l]);
    }
    for (int64_t i = begin; i < end;) {
        int64_t at = i % inner->size, rest = i / inner->size;
        const char *in = base + at * inner->stride;
        for (int d = 1; d < r->nreduced; d++) {
            in += rest % r->reduced[d].size * r->reduced[d].stride;
            rest /= r->reduced[d].size;
        }
        int64_t row_end = grd_least(end, i + inner->size - at);
        while (i < row_end) {
            int64_t n = grd_least(longest, row_end - i);
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
            pass->kernel(&block);
            if (!single)
                cascade_flush(pass, &cascade, width);
            in += n * inner->stride;
            i += n;
        }
    }
    if (!single)
        for (int l = 0; l < LEVELS; l++)
            merge(pass, width, gathered, cascade.level[l]);
}

/* ---- A pass ------------------------------------------------------------------------------------------------------------------------ */
struct work {
    const struct grd_reduction *r;
    const struct grd_reduction_pass *pass;
    char *gathered;     /* NULL: each strip is finished at once */
    const char *center; /* in strip order, or NULL */
};

struct strip {
    int64_t width, place; /* outputs, and the first of them in strip order */
    int64_t output;       /* in row-major order */
    const char *base;     /* the first element of its first output */
    const char *center;
};

static struct strip strip_of(const struct work *w, int64_t strip)
{
    const struct grd_reduction *r = w->r;
    const int64_t row = strip / r->strips_per_row, first = strip % r->strips_per_row * r->width;
    struct strip s = {.width = grd_least(r->width, r->strip.size - first), .place = row * r->strip.size + first};
    s.base = strip_base(r, row, &s.output) + first * r->strip.stride;
    s.output += first * r->strip.step;
    s.center = w->center != NULL ? w->center + s.place * w->pass->center_size : NULL;
    return s;
}

/* Finishes the values of a strip, and writes them to the result. */
static void finish_strip(const struct work *w, const struct strip *s, char *gathered)
{
    const struct grd_reduction_pass *pass = w->pass;
    if (pass->end != NULL)
        pass->end(s->width, gathered, s->center, pass->number);
    if (pass->result != NULL)
        pass->store(s->width, (char *const[]){pass->result + s->output * pass->result_size, gathered},
                    (const int64_t[]){w->r->strip.step * pass->result_size, pass->finished_size}, NULL);
}

static void reduce_cells(int64_t begin, int64_t end, void *context)
{
    const struct work *w = context;
    const struct grd_reduction_pass *pass = w->pass;
    for (int64_t cell = begin; cell < end; cell++) {
        const int64_t piece = cell % pass->pieces;
        const struct strip s = strip_of(w, cell / pass->pieces);
        _Alignas(64) char own[GRD_REDUCE_STRIP * GRD_REDUCE_WIDEST];
        char *gathered = w->gathered != NULL ? w->gathered + (piece * w->r->outputs + s.place) * pass->gathered_size : own;
        gather(w->r, pass, s.base, s.center, s.width, piece * pass->piece, grd_least(pass->n, (piece + 1) * pass->piece), gathered);
        if (pass->pieces == 1)
            finish_strip(w, &s, gathered);
    }
}

/* Adds up the pieces of each strip, two by two, and finishes it. */
static void merge_strips(const struct work *w)
{
    const struct grd_reduction_pass *pass = w->pass;
    const int64_t next = w->r->outputs * pass->gathered_size;
    for (int64_t strip = 0; strip < w->r->strips; strip++) {
        const struct strip s = strip_of(w, strip);
        char *gathered = w->gathered + s.place * pass->gathered_size;
        for (int64_t step = 1; step < pass->pieces; step *= 2)
            for (int64_t piece = 0; piece + step < pass->pieces; piece += 2 * step)
                merge(pass, s.width, gathered + piece * next, gathered + (piece + step) * next);
        finish_strip(w, &s, gathered);
    }
}

static void run_pass(struct work *w)
{
    const int64_t cells = w->r->strips * w->pass->pieces, cost = grd_greatest(1, w->r->width * grd_least(w->pass->piece, w->pass->n));
    if (cells == 1)
        reduce_cells(0, 1, w);
    else
        grd_parallel_for(0, cells, grd_greatest(1, GRAIN / cost), reduce_cells, w);
    if (w->pass->pieces > 1)
        merge_strips(w);
}

void run_reduce(const struct grd_plan *p)
{
    const struct grd_reduction *r = grd_reduction_of(p);
    struct work w = {.r = r};
    for (int i = 0; i < r->npasses; i++, w.center = w.gathered) {
        w.pass = &r->passes[i];
        w.gathered = w.pass->gathered >= 0 ? p->scratch + w.pass->gathered : NULL;
        run_pass(&w);
    }
}
