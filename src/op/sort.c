/* Runs operators that sort elements along a dimension or select elements by their order: sort, topk, kthvalue, median, mode, and the running extremes
 * cummax and cummin. The loops are in kernel/cpu/order.c. In this file, a line is a sequence of elements along the dimension.
 *
 * Invariant: each line is computed by one thread, and lines are divided among threads at fixed positions. */
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/sort.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/index.h"
#include "op/order.h"
#include "op/plan.h"
#include "op/sizes.h"

enum {
    MANY = 32768,      /* minimum length of an integer vector that PyTorch sorts stably even without stable=True */
    PARTS = 16,        /* maximum number of tasks; it limits the scratch memory, since each task has its own */
    LEAST_PART = 4096, /* minimum number of elements per task */
    CACHE_LINE = 64,
    /* Maximum number of bytes of lines (sequences of elements along dim) that are copied at a time, so that they and their results stay in a
     * cache. */
    NEIGHBOURS = 1 << 17,
    /* For cummax and cummin: maximum number of columns that a kernel call processes together. A column is the elements along dim. */
    COLUMNS = 512,
    /* Elements per task of cummax and cummin. */
    GRAIN = 1 << 14
};

/* ---- Lines -------------------------------------------------------------------------------------------------------------------------- */

/* State of a call that finds `block.kept` values and their indices in each line. A line is a sequence of elements along `dim`. The plan functions,
 * e.g. plan_sort(), fill the state, and run_rank() reads it. The kernel reads contiguous elements, so lines that are not contiguous are copied to
 * scratch memory first. The results of such a line are also written to scratch memory, and are copied back, if neighbouring lines have results that
 * are adjacent in memory. A transposition copies several neighbouring lines at a time. */
struct lines {
    struct grd_rank_block block; /* arguments of the kernel that are the same for all lines (sequences of elements along `dim`) */
    /* dim: the dimension along which a line lies, e.g. the sorted dimension. beside: the dimension along which consecutive lines are neighbours; -1
     * if there is only one line. */
    int64_t dim, beside;
    int64_t count, part, together; /* count: number of lines; part: lines per task; together: lines that are processed at a time */
    /* Byte offsets, in a task's scratch memory, of copies of lines (`in`) and of their results (`values`, `indices`); -1 if the kernel reads or
     * writes the tensor itself. part_bytes: bytes of scratch memory per task. */
    int64_t in, values, indices, part_bytes;
    int64_t strides[GRD_MAX_DIMS]; /* strides of the results, in elements, for the dimensions of self */
    const struct grd_plan *plan;
};

static struct lines *lines_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct lines) <= GRD_PLAN_STATE, "room in the plan");
    return (struct lines *)(uintptr_t)p->state;
}

static bool prepare_lines(struct grd_plan *p);

/* Plans one kernel call with `block` for each line of self, i.e. for each sequence of elements along dim. The caller plans the results.
 * Returns false, with the error raised, on failure. */
static bool plan_lines_along(struct grd_plan *p, grd_tensor *self, int64_t dim, struct grd_rank_block block)
{
    struct lines *l = lines_of(p);
    block.n = grd_size_along(self, dim);
    l->block = block;
    l->dim = dim;
    l->plan = p;
    p->prepare = prepare_lines;
    return grd_plan_reads(p, self);
}

/* Plans the two contiguous results of an operator: `values` with the dtype of self, and `indices` (int64). Both have the sizes of self with `kept`
 * along dim. If `keepdim` is false, dimension dim is dropped, and `kept` must be 1. Returns false, with the error raised, on failure. */
static bool plan_kept(struct grd_plan *p, const grd_tensor *self, int64_t dim, int64_t kept, bool keepdim)
{
    int64_t sizes[GRD_MAX_DIMS];
    grd_dims dims = grd_dims_from(sizes, self->ndim);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim > 0) {
        sizes[dim] = kept;
        grd_shape_contiguous_strides(dims, lines_of(p)->strides);
        memmove(sizes + dim, sizes + dim + !keepdim, (size_t)(self->ndim - dim - !keepdim) * sizeof *sizes);
        dims.n -= !keepdim;
    }
    return grd_plan_result(p, dims, (grd_dtype)self->dtype) && grd_plan_result(p, dims, GRD_INT64);
}

/* Chooses the dimension along which consecutive lines are neighbours. A line is a sequence of elements along `dim`. Returns a dimension with stride 1
 * if there is one, because a transposition can then copy several lines at a time. Otherwise returns the last dimension except `dim`. Ignores
 * dimensions of size 1. Returns -1 if there is only one line. */
static int64_t find_beside(const grd_tensor *self, int64_t dim)
{
    int64_t beside = -1;
    for (int64_t i = 0; i < self->ndim; i++)
        if (i != dim && self->sizes[i] > 1 && (beside < 0 || self->strides[beside] != 1))
            beside = i;
    return beside;
}

/* Increases *bytes, the size of a buffer, by `more` rounded up to whole cache lines. Returns the offset of the added bytes. */
static int64_t take(int64_t *bytes, int64_t more)
{
    const int64_t at = *bytes;
    *bytes = at + grd_round_up(more, CACHE_LINE);
    return at;
}

/* Divides the lines (sequences of elements along l->dim) into tasks. Decides from the strides of self and of the results whether lines and their
 * results are copied, and requests the scratch memory for the copies. Always returns true. */
static bool prepare_lines(struct grd_plan *p)
{
    struct lines *l = lines_of(p);
    const grd_tensor *self = p->in[0], *values = p->results[0];
    struct grd_rank_block *block = &l->block;
    if (self->numel == 0)
        return true;
    if (values->ndim == self->ndim)
        memcpy(l->strides, values->strides, self->ndim * sizeof *l->strides);
    const int64_t size = self->itemsize, n = block->n;
    const bool gathers = self->ndim > 0 && n > 1 && self->strides[l->dim] != 1;
    l->beside = find_beside(self, l->dim);
    const int64_t step = self->ndim > 0 ? l->strides[l->dim] : 1;
    const bool scatters = gathers && l->beside >= 0 && step != 1 && l->strides[l->beside] == 1;
    block->step = scatters ? 1 : step;
    l->count = self->numel / n;
    const bool transposes = gathers && l->beside >= 0 && self->strides[l->beside] == 1;
    l->together = transposes ? CACHE_LINE / size : 1;
    while ((transposes || !gathers) && l->together * PARTS < l->count && 2 * l->together * n * size <= NEIGHBOURS)
        l->together *= 2;
    int64_t part = (l->count - 1) / PARTS + 1; /* number of lines (sequences of n elements along dim) per task */
    if (part < LEAST_PART / n)
        part = LEAST_PART / n;
    l->part = ((part - 1) / l->together + 1) * l->together;
    if ((double)n * (double)l->together > 0x1p48) {
        p->scratch_bytes = SIZE_MAX; /* an allocation of this size fails and raises an error */
        return true;
    }
    l->part_bytes = 0;
    take(&l->part_bytes, (int64_t)grd_rank_scratch(block->kind, n, block->kept) * (int64_t)sizeof *block->items);
    l->in = gathers ? take(&l->part_bytes, l->together * n * size) : -1;
    l->values = scatters ? take(&l->part_bytes, l->together * block->kept * size) : -1;
    l->indices = scatters ? take(&l->part_bytes, l->together * block->kept * (int64_t)sizeof *block->indices) : -1;
    p->scratch_bytes = (size_t)(l->part_bytes * ((l->count - 1) / l->part + 1));
    return true;
}

/* Describes `lines` adjacent lines, i.e. sequences of elements along the sorted dimension. `in`, `values` and `indices` are the addresses of the
 * first line and of its results. */
struct neighbours {
    int64_t lines;
    const char *in;
    char *values, *indices;
};

/* Returns up to l->together adjacent lines, beginning with line number `line`. A line is the elements of self along l->dim. Only lines with a number
 * below `last` are returned. */
static struct neighbours find_lines(const struct lines *l, int64_t line, int64_t last)
{
    const grd_tensor *self = l->plan->in[0];
    int64_t in = 0, at = 0, rest = line;
    struct neighbours found = {.lines = 1};
    for (int64_t i = self->ndim; i >= 0; i--) {
        const int64_t d = i == self->ndim ? l->beside : i;
        if (d < 0 || d == l->dim || (d == l->beside && i != self->ndim))
            continue;
        const int64_t index = rest % self->sizes[d];
        rest /= self->sizes[d];
        in += index * grd_byte_stride(self, d);
        at += index * l->strides[d];
        if (d == l->beside)
            found.lines = self->sizes[d] - index;
    }
    found.lines = found.lines < last - line ? found.lines : last - line;
    found.lines = found.lines < l->together ? found.lines : l->together;
    found.in = self->data + in;
    found.values = l->plan->results[0]->data + at * self->itemsize;
    found.indices = l->plan->results[1]->data + at * (int64_t)sizeof(int64_t);
    return found;
}

/* Copies adjacent lines, i.e. sequences of elements along l->dim, to the buffer `to`. `some` describes the lines. In the buffer each line is
 * contiguous, and lines follow each other without gaps. */
static void gather_lines(const struct lines *l, const struct neighbours *some, char *to)
{
    const grd_tensor *self = l->plan->in[0];
    const int64_t n = l->block.n, size = self->itemsize, stride = grd_byte_stride(self, l->dim);
    if (some->lines > 1)
        grd_kernels->transpose[grd_index_size(size)](some->lines, n, to, n * size, some->in, stride, false);
    else
        grd_cast_kernel((grd_dtype)self->dtype, (grd_dtype)self->dtype)(n, (char *const[]){to, (char *)(uintptr_t)some->in},
                                                                        (const int64_t[]){size, stride}, NULL);
}

/* Copies the results of `lines` adjacent lines (sequences along l->dim), with elements of `size` bytes, from scratch memory to the result tensor. */
static void scatter_lines(const struct lines *l, int64_t lines, char *to, const char *from, int64_t size)
{
    const int64_t kept = l->block.kept;
    grd_kernels->transpose[grd_index_size(size)](kept, lines, to, l->strides[l->dim] * size, from, kept * size, false);
}

/* Computes the results of tasks [begin, end). A task has l->part lines, i.e. sequences of elements along l->dim. */
static void do_lines(int64_t begin, int64_t end, void *context)
{
    const struct lines *l = context;
    const grd_tensor *self = l->plan->in[0];
    const int64_t size = self->itemsize, in_step = l->in >= 0 ? l->block.n * size : l->beside >= 0 ? grd_byte_stride(self, l->beside) : 0;
    for (int64_t part = begin; part < end; part++) {
        struct grd_rank_block block = l->block;
        const int64_t last = (part + 1) * l->part < l->count ? (part + 1) * l->part : l->count;
        char *const scratch = l->plan->scratch + part * l->part_bytes;
        block.items = (struct grd_ranked *)(void *)scratch;
        for (int64_t line = part * l->part; line < last;) {
            const struct neighbours some = find_lines(l, line, last);
            const char *in = some.in;
            char *values = l->values >= 0 ? scratch + l->values : some.values;
            char *indices = l->values >= 0 ? scratch + l->indices : some.indices;
            if (l->in >= 0) {
                gather_lines(l, &some, scratch + l->in);
                in = scratch + l->in;
            }
            for (int64_t i = 0; i < some.lines; i++) {
                const int64_t to = l->values >= 0 ? i * block.kept : l->beside >= 0 ? i * l->strides[l->beside] : 0;
                block.in = in + i * in_step;
                block.values = values + to * size;
                block.indices = (int64_t *)(void *)indices + to;
                grd_kernels->order[self->dtype]->rank(&block);
            }
            if (l->values >= 0) {
                scatter_lines(l, some.lines, some.values, values, size);
                scatter_lines(l, some.lines, some.indices, indices, (int64_t)sizeof(int64_t));
            }
            line += some.lines;
        }
    }
}

void run_rank(const struct grd_plan *p)
{
    struct lines *l = lines_of(p);
    grd_parallel_for(0, (l->count - 1) / l->part + 1, 1, do_lines, l);
}

/* ---- sort, topk ------------------------------------------------------------------------------------------------------------------------ */

/* True if PyTorch sorts self with radix sort, which is stable even without stable=True. PyTorch does so for long integer vectors in ascending
 * order. */
static bool is_always_stable(const grd_tensor *self, bool descending)
{
    return self->ndim == 1 && self->numel >= MANY && !descending && grd_category_of((grd_dtype)self->dtype) == GRD_CATEGORY_INTEGER;
}

static bool check_real(const char *function, const grd_tensor *self)
{
    return !grd_dtype_is_complex((grd_dtype)self->dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s does not support complex dtypes on CPU", function);
}

bool plan_sort(struct grd_plan *p, grd_tensor *self, int64_t dim, bool descending, bool stable)
{
    if (!grd_wrap_dim(self, dim, &dim) || !check_real("Sort", self) || !grd_check_ordered("sort", (grd_dtype)self->dtype))
        return false;
    stable = stable || is_always_stable(self, descending);
    const struct grd_rank_block block = {
        .kind = stable ? GRD_RANK_SORT_STABLY : GRD_RANK_SORT, .flipped = stable == descending, .kept = grd_size_along(self, dim)};
    return plan_lines_along(p, self, dim, block) && grd_plan_like(p, self, (grd_dtype)self->dtype) && grd_plan_like(p, self, GRD_INT64);
}

/* Plans topk(). Equal elements are returned in the same order as in PyTorch (kernel/rank.h). */
bool plan_topk(struct grd_plan *p, grd_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted)
{
    (void)sorted; /* the result is always sorted */
    if (!grd_wrap_dim(self, dim, &dim) || !check_real("topk", self) || !grd_check_ordered("topk", (grd_dtype)self->dtype))
        return false;
    if (k < 0 || k > grd_size_along(self, dim))
        return grd_raise(GRD_ERROR_RUNTIME, "selected index k out of range");
    /* As in PyTorch, a number (a tensor without dimensions) has one largest element, even for k = 0. */
    const int64_t kept = self->ndim == 0 ? 1 : k;
    return plan_lines_along(p, self, dim, (struct grd_rank_block){.kind = GRD_RANK_LARGEST, .kept = kept, .flipped = !largest}) &&
           plan_kept(p, self, dim, kept, true);
}

/* ---- kthvalue, median, mode ------------------------------------------------------------------------------------------------------------ */

/* Plans the operator `name`: kthvalue, median or mode. For each line (sequence of elements along dim) it returns one element and its index. If
 * several elements equal the returned one, kthvalue returns the same index as PyTorch, median the index that a stable sort puts in the middle, and
 * mode the last index. */
bool plan_choice(struct grd_plan *p, grd_tensor *self, int64_t k, int64_t dim, bool keepdim, const char *name)
{
    struct grd_rank_block block = {.kind = GRD_RANK_KTH, .kept = 1, .flipped = true};
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    const int64_t n = grd_size_along(self, dim);
    if (n == 0)
        return grd_raise(GRD_ERROR_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", name, (long long)dim);
    if (!grd_check_ordered(name, (grd_dtype)self->dtype))
        return false;
    if (strcmp(name, "median") == 0) {
        block.kind = GRD_RANK_MEDIAN;
        block.first = (n - 1) / 2;
    } else if (strcmp(name, "mode") == 0) {
        block.kind = GRD_RANK_MODE;
        block.flipped = false;
    } else if (k < 1 || k > n) {
        return grd_raise(GRD_ERROR_RUNTIME, "kthvalue(): selected number k out of range for dimension %lld", (long long)dim);
    } else {
        block.first = k - 1;
    }
    return plan_lines_along(p, self, dim, block) && plan_kept(p, self, dim, 1, keepdim);
}

/* ---- cummax, cummin ----------------------------------------------------------------------------------------------------------------------- */

/* State of a call of cummax or cummin, which plan_extremes() fills and run_extremes() reads. A contiguous tensor is treated as [outer, n, inner],
 * where n is the size along dim. A strip is up to COLUMNS adjacent elements along `inner`. */
struct extremes {
    struct grd_extremes_block block; /* arguments of the kernel that are the same for all strips */
    int64_t inner;
    const struct grd_plan *plan;
};

/* Returns the number of strips of at most COLUMNS elements into which the dimension `inner` is divided. */
static int64_t strips_of(int64_t inner)
{
    return (inner - 1) / COLUMNS + 1;
}

/* Computes the running extremes of the strips [begin, end). A strip is up to COLUMNS adjacent elements along `inner`. */
static void do_strips(int64_t begin, int64_t end, void *context)
{
    const struct extremes *e = context;
    const grd_tensor *in = e->plan->in[0], *values = e->plan->results[0], *indices = e->plan->results[1];
    const int64_t strips = strips_of(e->inner);
    for (int64_t strip = begin; strip < end; strip++) {
        struct grd_extremes_block block = e->block;
        const int64_t first = strip % strips * COLUMNS, at = strip / strips * block.n * e->inner + first;
        block.columns = e->inner - first < COLUMNS ? e->inner - first : COLUMNS;
        block.in = in->data + at * in->itemsize;
        block.values = values->data + at * in->itemsize;
        block.indices = (int64_t *)(void *)indices->data + at;
        grd_kernels->order[in->dtype]->extremes(&block);
    }
}

void run_extremes(const struct grd_plan *p)
{
    struct extremes e = *(const struct extremes *)(const void *)p->state;
    const int64_t work = e.block.n * (e.inner < COLUMNS ? e.inner : COLUMNS);
    e.plan = p;
    e.block.step = e.inner;
    grd_parallel_for(0, p->in[0]->numel / e.block.n / e.inner * strips_of(e.inner), work < GRAIN ? GRAIN / work : 1, do_strips, &e);
}

/* Plans cummax or cummin. Ties go to the later element. After the first NaN the running extreme stays NaN. */
bool plan_extremes(struct grd_plan *p, grd_tensor *self, int64_t dim, bool smallest)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_ordered(p->op->name, dtype))
        return false;
    struct extremes *e = (struct extremes *)(void *)p->state;
    *e = (struct extremes){.block = {.smallest = smallest, .n = grd_size_along(self, dim)}, .inner = 1};
    for (int64_t i = dim + 1; i < self->ndim; i++)
        e->inner *= self->sizes[i];
    return grd_plan_reads_as(p, self, dtype) && grd_plan_result(p, grd_sizes(self), dtype) &&
           grd_plan_result(p, grd_sizes(self), GRD_INT64);
}
