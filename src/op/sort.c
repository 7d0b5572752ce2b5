/* Sorting along a dimension: sort, topk and the running extremes. The loops are in kernel/cpu/order.c.
 *
 * Invariant: a line is the work of one thread; lines are divided at fixed places. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "gen/op_impl.h"
#include "gradus/ops.h"
#include "op/common.h"
#include "op/order.h"

enum { MANY = 32768, PARTS = 16, COLUMNS = 512, GRAIN = 1 << 14 };

/* ---- Lines -------------------------------------------------------------------------------------------------------------------------- */

/* Of each line of a tensor along one dimension `block.kept` values with their places. */
struct lines {
    const grd_tensor *self;
    grd_tensor *values, *indices; /* of equal strides */
    bool keeps_layout;            /* these are self's where self is dense, and contiguous otherwise */
    int64_t dim, count, part;
    struct grd_rank_block block;
    int64_t scratch; /* items for each part */
};

/* Points a block to a line of self and to its place in the results. */
static void find_line(const struct lines *l, int64_t line, struct grd_rank_block *block)
{
    const grd_tensor *self = l->self;
    int64_t at = 0;
    block->in = self->data;
    for (int64_t i = self->ndim - 1; i >= 0; i--) {
        if (i == l->dim)
            continue;
        const int64_t index = line % self->sizes[i];
        line /= self->sizes[i];
        block->in += index * grd_byte_stride(self, i);
        at += index * l->values->strides[i];
    }
    block->values = l->values->data + at * self->itemsize;
    block->indices = (int64_t *)(void *)l->indices->data + at;
}

static void do_lines(int64_t begin, int64_t end, void *context)
{
    const struct lines *l = context;
    for (int64_t part = begin; part < end; part++) {
        struct grd_rank_block block = l->block;
        const int64_t last = (part + 1) * l->part < l->count ? (part + 1) * l->part : l->count;
        block.items += part * l->scratch;
        for (int64_t line = part * l->part; line < last; line++) {
            find_line(l, line, &block);
            grd_kernels->order[l->self->dtype]->rank(&block);
        }
    }
}

/* Fills ret with values and places, of the sizes of self but `kept` along dim. */
static void run_lines(struct lines *l, grd_tensor **ret)
{
    int64_t sizes[GRD_MAX_DIMS];
    const grd_tensor *self = l->self;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim > 0)
        sizes[l->dim] = l->block.kept;
    if (l->keeps_layout) {
        l->values = grd_new_like(self, GRD_DTYPE_NONE);
        l->indices = grd_new_like(self, GRD_INT64);
    } else {
        l->values = grd_new(grd_dims_from(sizes, self->ndim), (grd_dtype)self->dtype, grd_device_of(self));
        l->indices = grd_new(grd_dims_from(sizes, self->ndim), GRD_INT64, grd_device_of(self));
    }
    if (grd_pending())
        return;
    l->block.n = self->ndim > 0 ? self->sizes[l->dim] : 1;
    l->block.stride = self->ndim > 0 ? grd_byte_stride(self, l->dim) : 0;
    l->block.step = self->ndim > 0 ? l->values->strides[l->dim] : 1;
    l->count = l->block.n > 0 ? self->numel / l->block.n : 0;
    if (!grd_is_meta(self) && l->count > 0 && l->block.kept > 0) {
        l->part = (l->count - 1) / PARTS + 1;
        l->scratch = grd_rank_scratch(l->block.kind, l->block.n, l->block.kept);
        const int64_t parts = (l->count - 1) / l->part + 1;
        const size_t bytes = (size_t)(parts * l->scratch) * sizeof *l->block.items;
        if ((l->block.items = grd_alloc(bytes)) == NULL)
            return;
        grd_parallel_for(0, parts, 1, do_lines, l);
        grd_free(l->block.items, bytes);
    }
    ret[0] = l->values;
    ret[1] = l->indices;
}

/* ---- sort, topk ------------------------------------------------------------------------------------------------------------------------ */

/* PyTorch has a radix sort of its own for many integers. */
static bool is_always_stable(const grd_tensor *self, bool descending)
{
    return self->ndim == 1 && self->numel >= MANY && !descending && grd_category_of((grd_dtype)self->dtype) == GRD_CATEGORY_INTEGER;
}

void op_sort(grd_tensor *self, int64_t dim, bool descending, bool stable, grd_tensor **ret)
{
    struct lines l = {.self = self};
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &l.dim) || !grd_check_ordered("sort", (grd_dtype)self->dtype))
        return;
    l.keeps_layout = true;
    stable = stable || is_always_stable(self, descending);
    l.block.kept = self->ndim > 0 ? self->sizes[l.dim] : 1;
    l.block.kind = stable ? GRD_RANK_SORT_STABLY : GRD_RANK_SORT;
    l.block.flipped = stable == descending;
    run_lines(&l, ret);
}

grd_tensor *op_argsort(grd_tensor *self, int64_t dim, bool descending, bool stable)
{
    return grd_sort(self, .dim = dim, .descending = descending, .stable = stable).indices;
}

/* The order among equal elements is PyTorch's (kernel/rank.h). */
void op_topk(grd_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, grd_tensor **ret)
{
    (void)sorted; /* they always are */
    struct lines l = {.self = self, .block = {.kind = GRD_RANK_LARGEST, .kept = k, .flipped = !largest}};
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &l.dim) || !grd_check_ordered("topk", (grd_dtype)self->dtype))
        return;
    if (k < 0 || k > (self->ndim > 0 ? self->sizes[l.dim] : 1)) {
        grd_raise(GRD_ERROR_RUNTIME, "selected index k out of range");
        return;
    }
    run_lines(&l, ret);
}

/* ---- Single elements of the order ------------------------------------------------------------------------------------------------------ */

static bool check_not_empty(const grd_tensor *self, int64_t dim, const char *name)
{
    return self->ndim == 0 || self->sizes[dim] > 0 ||
           grd_raise(GRD_ERROR_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", name, (long long)dim);
}

/* One element of each line as the results of an operator. */
static void drop_dim(int64_t dim, bool keepdim, grd_tensor **ret)
{
    if (keepdim || grd_pending() || ret[0]->ndim == 0)
        return;
    ret[0] = grd_new_detached(grd_select(ret[0], dim, 0)); /* no view: what is recorded of a call is its result alone */
    ret[1] = grd_new_detached(grd_select(ret[1], dim, 0));
}

void op_kthvalue(grd_tensor *self, int64_t k, int64_t dim, bool keepdim, grd_tensor **ret)
{
    struct lines l = {.self = self, .block = {.kind = GRD_RANK_KTH, .kept = 1}};
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &l.dim) || !check_not_empty(self, l.dim, "kthvalue") ||
        !grd_check_ordered("kthvalue", (grd_dtype)self->dtype))
        return;
    if (k < 1 || k > (self->ndim > 0 ? self->sizes[l.dim] : 1)) {
        grd_raise(GRD_ERROR_RUNTIME, "kthvalue(): selected number k out of range for dimension %lld", (long long)l.dim);
        return;
    }
    l.block.first = k - 1;
    run_lines(&l, ret);
    drop_dim(l.dim, keepdim, ret);
}

/* The first NaN of each line, where there is one, in place of the median. */
static void prefer_nan(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    if (grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_FLOAT || self->ndim == 0 || grd_pending())
        return;
    const grd_max_dim_result first = grd_max_dim(grd_to(grd_isnan(self), .dtype = GRD_UINT8), dim, .keepdim = keepdim);
    grd_tensor *found = grd_to(first.values, .dtype = GRD_BOOL);
    ret[0] = grd_where(found, grd_number(grd_float((double)NAN)), ret[0]);
    ret[1] = grd_where(found, first.indices, ret[1]);
}

/* Of elements equal to the median the one that a stable sort would put there. */
void op_median_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    struct lines l = {.self = self, .block = {.kind = GRD_RANK_KTH_STABLY, .kept = 1}};
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &l.dim) || !check_not_empty(self, l.dim, "median") || !grd_check_ordered("median", (grd_dtype)self->dtype))
        return;
    l.block.first = self->ndim > 0 ? (self->sizes[l.dim] - 1) / 2 : 0;
    run_lines(&l, ret);
    drop_dim(l.dim, keepdim, ret);
    prefer_nan(self, l.dim, keepdim, ret);
}

grd_tensor *op_median(grd_tensor *self)
{
    if (self->numel > 0)
        return grd_median_dim(grd_reshape(self, grd_dims(-1)), 0).values;
    return grd_full(GRD_NO_DIMS, grd_float((double)NAN), .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
}

/* ---- Running extremes --------------------------------------------------------------------------------------------------------------------- */

/* Contiguous [outer, n, inner]; a strip is up to COLUMNS neighbours of inner. */
struct extremes {
    struct grd_extremes_block block; /* of which a strip is a part */
    const struct grd_order_row *row;
    int64_t strips, inner, itemsize; /* strips: of each of outer */
};

static void do_strips(int64_t begin, int64_t end, void *context)
{
    const struct extremes *e = context;
    for (int64_t strip = begin; strip < end; strip++) {
        struct grd_extremes_block block = e->block;
        const int64_t first = strip % e->strips * COLUMNS, at = strip / e->strips * block.n * e->inner + first;
        block.columns = e->inner - first < COLUMNS ? e->inner - first : COLUMNS;
        block.in = (const char *)block.in + at * e->itemsize;
        block.values = (char *)block.values + at * e->itemsize;
        block.indices += at;
        e->row->extremes(&block);
    }
}

/* Of equal elements the later one; NaN stays from where it comes. */
static void run_extremes(grd_tensor *self, int64_t dim, bool smallest, const char *name, grd_tensor **ret)
{
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_ordered(name, (grd_dtype)self->dtype))
        return;
    grd_tensor *values = grd_new(grd_sizes(self), (grd_dtype)self->dtype, grd_device_of(self));
    grd_tensor *indices = grd_new(grd_sizes(self), GRD_INT64, grd_device_of(self));
    const bool skip = grd_pending() || grd_is_meta(self) || self->numel == 0;
    grd_tensor *in = skip ? self : grd_contiguous_as(self, GRD_DTYPE_NONE);
    if (grd_pending())
        return;
    if (!skip) {
        const int64_t n = self->ndim > 0 ? self->sizes[dim] : 1, inner = self->ndim > 0 ? values->strides[dim] : 1;
        struct extremes e = {{smallest, n, 0, inner, in->data, values->data, (int64_t *)(void *)indices->data},
                             grd_kernels->order[self->dtype],
                             (inner - 1) / COLUMNS + 1,
                             inner,
                             self->itemsize};
        const int64_t work = n * (inner < COLUMNS ? inner : COLUMNS);
        grd_parallel_for(0, self->numel / n / inner * e.strips, work < GRAIN ? GRAIN / work : 1, do_strips, &e);
    }
    ret[0] = values;
    ret[1] = indices;
}

void op_cummax(grd_tensor *self, int64_t dim, grd_tensor **ret)
{
    run_extremes(self, dim, false, "cummax", ret);
}

void op_cummin(grd_tensor *self, int64_t dim, grd_tensor **ret)
{
    run_extremes(self, dim, true, "cummin", ret);
}
