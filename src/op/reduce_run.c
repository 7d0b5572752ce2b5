/* Runs reductions. Dtypes and checks are in reduce_plan.c, and the loops in kernel/cpu/reduce.c.
 *
 * A reduction is divided into a grid of cells. A cell is a strip (at most GRD_REDUCE_STRIP adjacent outputs) times a piece (a range of the reduced
 * elements). The grid depends only on shape and strides, each cell is computed by one thread, and pieces are combined in order. So the bits do not
 * depend on the number of threads.
 *
 * Invariant: accumulated values and centers are in strip order (struct grd_reduction), results in row-major order. */
#include "base/integer.h"
#include "op/reduce.h"

#include <string.h>

#include "base/parallel.h"
#include "core/geometry.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/sizes.h"

enum {
    CONVERTED = 2048, /* elements converted at a time */
    FLUSH = 32,       /* number of partial results that are added to a level before the level is merged into the next one */
    /* Number of levels of partial results. A full level is merged into the next level. This keeps rounding errors small (see struct cascade). */
    LEVELS = 3,
    /* With this many strips (groups of adjacent outputs), the strips alone keep all threads busy, so the reduced elements are not divided. */
    MANY_STRIPS = 16,
    /* Minimum number of elements of a piece. A piece is a range of the reduced elements, for all outputs of a strip (group of adjacent outputs). */
    LEAST_PIECE = 1 << 16,
    /* Maximum number of pieces, i.e. ranges of the reduced elements that are accumulated in parallel and merged. */
    MOST_PIECES = 64,
    STRETCH = 64, /* minimum number of contiguous bfloat16 elements for which the bfloat16 kernel is faster than converting them */
    /* Maximum number of outputs per row for the narrow kernel. It reduces several short contiguous rows as one long row. */
    NARROW = 16,
    /* Elements per call of the narrow kernel. */
    NARROW_BLOCK = 1 << 16,
    NARROW_LEAST = 64, /* minimum number of short rows for which the narrow kernel is used */
    WHOLE = 64,        /* number of elements that fills whole cache lines for every dtype */
    GRAIN = 1 << 15,   /* minimum number of elements per task */
    ALIGNMENT = 64
};

/* Returns the absolute value of a stride. */
static int64_t distance(int64_t stride)
{
    return stride < 0 ? grd_wrapping_product(-1, stride) : stride;
}

/* ---- The grid -------------------------------------------------------------------------------------------------------------- */
/* Inserts a reduced dimension into r->reduced, which stays sorted by ascending absolute stride. */
static void add_reduced(struct grd_reduction *r, int64_t size, int64_t stride)
{
    int at = r->nreduced++;
    for (; at > 0 && distance(r->reduced[at - 1].stride) > distance(stride); at--)
        r->reduced[at] = r->reduced[at - 1];
    r->reduced[at] = (struct grd_reduction_dim){size, stride, 0};
}

/* Merges neighbouring dimensions of r->reduced that can be traversed as one dimension. This is the case if the outer stride is the product of the
 * inner size and the inner stride. */
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

/* Adds a dimension that is not reduced. The caller adds the innermost one first. The new dimension is merged with the previous one if both can be
 * traversed as one dimension, i.e. if `stride` is the size of the previous one times its stride. */
static void add_kept(struct grd_reduction *r, int64_t size, int64_t stride)
{
    struct grd_reduction_dim *before = r->nkept > 0 ? &r->kept[r->nkept - 1] : NULL;
    if (before != NULL && stride == grd_wrapping_product(before->stride, before->size))
        before->size = grd_wrapping_product(before->size, size);
    else
        r->kept[r->nkept++] = (struct grd_reduction_dim){size, stride, r->outputs};
    r->outputs = grd_wrapping_product(r->outputs, size);
}

/* True if r->kept[kept] and the innermost reduced dimension form short rows that follow each other in memory. Kernels reduce several such rows as one
 * long row. See Note [Narrow rows] in kernel/cpu/reduce.c. */
static bool is_narrow(const struct grd_reduction *r, int kept)
{
    return r->reduced[0].stride == r->kept[kept].size * r->in_size && r->reduced[0].size >= NARROW_LEAST;
}

/* Chooses the dimension along which strips (groups of adjacent outputs) lie, and moves it from r->kept to r->strip. Sets r->columns to true if
 * kernels read one element of each output of a strip at a time, and to false if they read all elements of one output, then those of the next. */
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

/* True if the kernels read bfloat16 elements without conversion. This requires a bfloat16 kernel for every pass, and long runs of contiguous
 * elements. `stretch` is the number of elements of a run. Short runs are faster if many of them are converted together. */
static bool reads_halves(const struct grd_reduction *r, grd_dtype from, int64_t stretch)
{
    bool all = from == GRD_BFLOAT16 && r->read == GRD_FLOAT32 && stretch >= STRETCH;
    for (int i = 0; all && i < r->npasses; i++)
        all = grd_kernels->reduce[from]->kinds[r->passes[i].what.kind].lines != NULL;
    return all;
}

/* Decides whether elements are converted before the kernels read them, and chooses the width and number of strips (groups of adjacent outputs). */
static void choose_grid(struct grd_reduction *r, grd_dtype from)
{
    const struct grd_reduction_dim *inner = &r->reduced[0], *along = r->columns ? &r->strip : inner;
    const bool gaps = along->size > 1 && along->stride != r->in_size;
    if (!gaps && reads_halves(r, from, along->size)) {
        r->read = from;
        r->read_size = r->in_size;
    }
    /* Bool is read as uint8, and uint64 is read as int64. Neither needs a conversion, since the bytes are the same. */
    const bool converts = from != r->read && !(from == GRD_BOOL && r->read == GRD_UINT8) && !(from == GRD_UINT64 && r->read == GRD_INT64);
    r->convert = converts || gaps ? grd_kernels->cast[converts ? from : r->read][r->read] : NULL;
    const int64_t block = r->convert != NULL ? CONVERTED : GRD_REDUCE_LEAF * 2;
    r->width = grd_least(r->strip.size, r->columns ? GRD_REDUCE_STRIP
                                                   : grd_least(GRD_REDUCE_STRIP, grd_greatest(1, block / grd_greatest(inner->size, 1))));
    r->strips_per_row = grd_ceil_div(r->strip.size, r->width);
    r->strips = r->strips_per_row * (r->outputs / r->strip.size);
}

/* Sets the members of r that depend on the sizes and strides of self. */
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
        /* The strides of an empty tensor may have any value (Note [Unused strides]) and could overflow, so they are replaced by 0. */
        int64_t size = self->sizes[d], stride = self->numel > 0 ? grd_byte_stride(self, d) : 0;
        if (r->mask >> d & 1) {
            r->n = grd_wrapping_product(r->n, size);
            if (size > 1 && self->numel > 0) /* skips empty tensors, because the product of their nonzero sizes may overflow */
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
/* Sets the kernels of a pass, and the sizes in bytes of the values that it accumulates and writes. */
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

/* Sets the address and the element size of the tensor to which a pass writes, and the kernel that converts the finished values to its dtype. If the
 * pass has no result tensor, sets the address to NULL. */
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

/* Divides the elements that a pass reads per output into pass->pieces pieces of pass->piece elements, which several threads can accumulate in
 * parallel. There is more than one piece only if there are few strips (groups of adjacent outputs). */
static void cut(const struct grd_reduction *r, struct grd_reduction_pass *pass)
{
    pass->n = pass->what.first && r->n > 1 ? 1 : r->n;
    pass->piece = pass->n;
    if (!pass->what.first && r->strips < MANY_STRIPS && r->outputs * r->n > 4 * LEAST_PIECE)
        pass->piece = grd_greatest(grd_greatest(1, LEAST_PIECE / r->width), grd_ceil_div(r->n, MOST_PIECES));
    /* Rounds the piece up to a multiple of WHOLE elements, so that each piece begins at a cache line boundary. This matters only for kernels that
     * read all elements of an output before those of the next. */
    if (!r->columns && pass->piece > WHOLE)
        pass->piece = grd_least(pass->n, grd_round_up(pass->piece, WHOLE));
    pass->pieces = pass->n > 0 ? grd_ceil_div(pass->n, pass->piece) : 1;
}

/* True if a sum of complex64 is computed as sums of real and imaginary parts, which form an innermost dimension that is not reduced. These float32
 * sums are faster than the complex kernels, which would convert the elements to complex128. */
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
        p->scratch_bytes += (size_t)grd_round_up(pass->pieces * r->outputs * pass->gathered_size, ALIGNMENT);
    }
    return true;
}

/* ---- Computation of one cell -------------------------------------------------------------------------------------------------- */
/* Combines the n accumulated values at `from` with the n values at `into`, e.g. by addition, and stores the results at `into`. */
static void merge(const struct grd_reduction_pass *pass, int64_t n, void *into, const void *from)
{
    pass->merge(&(struct grd_reduce_block){.outputs = n, .n = 1, .in = from, .gathered = into});
}

/* Converts a block of outputs x n elements to `buffer`, in the layout that the kernel reads. Sets the block's address and stride to those of the
 * buffer. */
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

/* Partial results for one strip (group of adjacent outputs), in levels. Kernels accumulate into level 0. After FLUSH kernel calls, level 0 is merged
 * into level 1 and reset. After FLUSH such merges, level 1 is merged into level 2 and reset. This keeps rounding errors small for many elements. */
struct cascade {
    int64_t calls;
    _Alignas(64) char level[LEVELS][GRD_REDUCE_STRIP * GRD_REDUCE_WIDEST];
};

/* Counts a kernel call, and merges each level of partial results that is full (struct cascade) into the next level. */
static void cascade_flush(const struct grd_reduction_pass *pass, struct cascade *c, int64_t width)
{
    int64_t due = ++c->calls;
    for (int l = 0; l + 1 < LEVELS && due % FLUSH == 0; l++, due /= FLUSH) {
        merge(pass, width, c->level[l + 1], c->level[l]);
        pass->begin(width, c->level[l]);
    }
}

/* Returns the address of the first input element of a row of outputs. A row consists of all outputs along the dimension r->strip, and `row` is its
 * number. Writes the index of the row's first output in the row-major result to *ret_output. */
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

/* Accumulates the elements [begin, end) of each of `width` adjacent outputs. `base` is the address of the first element of the first output. */
static void gather(const struct grd_reduction *r, const struct grd_reduction_pass *pass, const char *base, const char *center,
                   int64_t width, int64_t begin, int64_t end, void *gathered)
{
    const struct grd_reduction_dim *inner = &r->reduced[0];
    /* True if rows are short and contiguous, so that the kernel can reduce several rows as one long row. */
    const bool narrow = width < NARROW && inner->stride == width * r->read_size;
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

/* ---- Computation of one pass ------------------------------------------------------------------------------------------------------- */
/* Arguments of the tasks of one pass. */
struct work {
    const struct grd_reduction *r;
    const struct grd_reduction_pass *pass;
    /* Accumulated values of all cells. A cell is a piece (range of the reduced elements) of one strip (group of adjacent outputs). NULL if each strip
     * has only one piece, because the task that accumulates the piece then also finishes the strip. */
    char *gathered;
    /* Values of the previous pass, e.g. the means that a pass for variances subtracts. One value per output, in strip order (see struct
     * grd_reduction). NULL for the first pass. */
    const char *center;
};

/* Describes one strip, i.e. a group of adjacent outputs. */
struct strip {
    /* width: number of outputs. place: index of the first output, counted with the dimension r->strip as the innermost one. */
    int64_t width, place;
    int64_t output;   /* index of the first output in row-major order */
    const char *base; /* address of the first element of the first output */
    /* Values of the previous pass for these outputs, e.g. the means that a pass for variances subtracts. NULL in the first pass. */
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

/* Turns the accumulated values `gathered` of a strip of outputs into finished values, e.g. divides sums by a count. If the pass has a result tensor,
 * writes the finished values to it. */
static void finish_strip(const struct work *w, const struct strip *s, char *gathered)
{
    const struct grd_reduction_pass *pass = w->pass;
    if (pass->end != NULL)
        pass->end(s->width, gathered, s->center, pass->number);
    if (pass->result != NULL)
        pass->store(s->width, (char *const[]){pass->result + s->output * pass->result_size, gathered},
                    (const int64_t[]){w->r->strip.step * pass->result_size, pass->finished_size}, NULL);
}

/* Accumulates the cells [begin, end). A cell is a piece (range of the reduced elements) of one strip (group of adjacent outputs). If a strip has
 * one piece, also writes its finished values. */
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

/* For each strip (group of adjacent outputs), merges the accumulated values of its pieces (ranges of the reduced elements) pairwise, and writes
 * the finished values to the result. */
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

/* Runs one pass over the tensor: accumulates all cells in parallel and, if the reduced elements are divided, merges the pieces. */
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
