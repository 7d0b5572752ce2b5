/* Sorting along a dimension: sort, topk and the running extremes. The loops are in kernel/cpu/order.c.
 *
 * Invariant: a line is the work of one thread; lines are divided at fixed places. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/sort.h"
#include "op/order.h"
#include "op/plan.h"

enum { MANY = 32768, PARTS = 16, COLUMNS = 512, GRAIN = 1 << 14 };

/* ---- Lines -------------------------------------------------------------------------------------------------------------------------- */

/* Of each line of a tensor along one dimension `block.kept` values with their places. */
struct lines {
    struct grd_rank_block block; /* of which each line has its own */
    int64_t dim, count, part;    /* lines, and those of a part */
    int64_t scratch;             /* items for each part */
    int64_t strides[GRD_MAX_DIMS];
    const struct grd_plan *plan;
};

static struct lines *lines_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct lines) <= GRD_PLAN_STATE, "room in the plan");
    return (struct lines *)(uintptr_t)p->state;
}

/* Plans what `block` says to do with each line along dim; its results are planned beside. */
static bool plan_lines_along(struct grd_plan *p, grd_tensor *self, int64_t dim, struct grd_rank_block block)
{
    struct lines *l = lines_of(p);
    block.n = grd_size_along(self, dim);
    l->block = block;
    l->dim = dim;
    l->count = block.n > 0 ? self->numel / block.n : 0;
    l->part = l->count > PARTS ? (l->count - 1) / PARTS + 1 : 1;
    const uint64_t parts = (uint64_t)(l->count > PARTS ? PARTS : l->count), items = grd_rank_scratch(block.kind, block.n, block.kept);
    l->scratch = (int64_t)items;
    if (__builtin_mul_overflow(parts * sizeof *block.items, items, &p->scratch_bytes))
        p->scratch_bytes = SIZE_MAX; /* which is refused when it is asked for */
    return grd_plan_reads(p, self);
}

/* `kept` elements of each line, contiguous. Without `keepdim` the dimension, of which one is kept, is not among the results'. */
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

/* Points a block to a line of self and to its place in the results. */
static void find_line(const struct lines *l, int64_t line, struct grd_rank_block *block)
{
    const grd_tensor *self = l->plan->in[0];
    int64_t at = 0;
    block->in = self->data;
    for (int64_t i = self->ndim - 1; i >= 0; i--) {
        if (i == l->dim)
            continue;
        const int64_t index = line % self->sizes[i];
        line /= self->sizes[i];
        block->in += index * grd_byte_stride(self, i);
        at += index * l->strides[i];
    }
    block->values = l->plan->results[0]->data + at * self->itemsize;
    block->indices = (int64_t *)(void *)l->plan->results[1]->data + at;
}

static void do_lines(int64_t begin, int64_t end, void *context)
{
    const struct lines *l = context;
    for (int64_t part = begin; part < end; part++) {
        struct grd_rank_block block = l->block;
        const int64_t last = (part + 1) * l->part < l->count ? (part + 1) * l->part : l->count;
        block.items = (struct grd_ranked *)(void *)l->plan->scratch + part * l->scratch;
        for (int64_t line = part * l->part; line < last; line++) {
            find_line(l, line, &block);
            grd_kernels->order[l->plan->in[0]->dtype]->rank(&block);
        }
    }
}

void run_rank(const struct grd_plan *p)
{
    struct lines *l = lines_of(p);
    const grd_tensor *self = p->in[0], *values = p->results[0];
    if (values->ndim == self->ndim)
        memcpy(l->strides, values->strides, self->ndim * sizeof *l->strides);
    l->plan = p;
    l->block.stride = self->ndim > 0 ? grd_byte_stride(self, l->dim) : 0;
    l->block.step = self->ndim > 0 ? l->strides[l->dim] : 1;
    grd_parallel_for(0, (l->count - 1) / l->part + 1, 1, do_lines, l);
}

/* ---- sort, topk ------------------------------------------------------------------------------------------------------------------------ */

/* PyTorch has a radix sort of its own for many integers. */
static bool is_always_stable(const grd_tensor *self, bool descending)
{
    return self->ndim == 1 && self->numel >= MANY && !descending && grd_category_of((grd_dtype)self->dtype) == GRD_CATEGORY_INTEGER;
}

bool plan_sort(struct grd_plan *p, grd_tensor *self, int64_t dim, bool descending, bool stable)
{
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_ordered("sort", (grd_dtype)self->dtype))
        return false;
    stable = stable || is_always_stable(self, descending);
    const struct grd_rank_block block = {
        .kind = stable ? GRD_RANK_SORT_STABLY : GRD_RANK_SORT, .flipped = stable == descending, .kept = grd_size_along(self, dim)};
    return plan_lines_along(p, self, dim, block) && grd_plan_like(p, self, (grd_dtype)self->dtype) && grd_plan_like(p, self, GRD_INT64);
}

/* The order among equal elements is PyTorch's (kernel/rank.h). */
bool plan_topk(struct grd_plan *p, grd_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted)
{
    (void)sorted; /* they always are */
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_ordered("topk", (grd_dtype)self->dtype))
        return false;
    if (k < 0 || k > grd_size_along(self, dim))
        return grd_raise(GRD_ERROR_RUNTIME, "selected index k out of range");
    return plan_lines_along(p, self, dim, (struct grd_rank_block){.kind = GRD_RANK_LARGEST, .kept = k, .flipped = !largest}) &&
           plan_kept(p, self, dim, k, true);
}

/* ---- Single elements of the order ------------------------------------------------------------------------------------------------------ */

/* One element of each line: the k-th smallest, or the median or the mode, of equal ones that which a stable sort would put there or, for the mode, last. */
bool plan_choice(struct grd_plan *p, grd_tensor *self, int64_t k, int64_t dim, bool keepdim, const char *name)
{
    struct grd_rank_block block = {.kind = GRD_RANK_KTH, .kept = 1};
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    const int64_t n = grd_size_along(self, dim);
    if (n == 0)
        return grd_raise(GRD_ERROR_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", name, (long long)dim);
    if (!grd_check_ordered(name, (grd_dtype)self->dtype))
        return false;
    if (strcmp(name, "median") == 0) {
        block.kind = GRD_RANK_MEDIAN;
        block.flipped = true;
        block.first = (n - 1) / 2;
    } else if (strcmp(name, "mode") == 0) {
        block.kind = GRD_RANK_MODE;
    } else if (k < 1 || k > n) {
        return grd_raise(GRD_ERROR_RUNTIME, "kthvalue(): selected number k out of range for dimension %lld", (long long)dim);
    } else {
        block.first = k - 1;
    }
    return plan_lines_along(p, self, dim, block) && plan_kept(p, self, dim, 1, keepdim);
}

/* ---- Running extremes --------------------------------------------------------------------------------------------------------------------- */

/* Contiguous [outer, n, inner]; a strip is up to COLUMNS neighbours of inner. */
struct extremes {
    struct grd_extremes_block block; /* of which a strip is a part */
    int64_t inner;
    const struct grd_plan *plan;
};

static int64_t strips_of(int64_t inner)
{
    return (inner - 1) / COLUMNS + 1;
}

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

/* Of equal elements the later one; NaN stays from where it comes. */
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
