/* Sorting along a dimension: sort, topk and the running extremes.
 *
 * Elements are compared by keys (order.h), so one algorithm serves every dtype. A stable sort moves keys byte by byte (radix sort, from the least
 * significant byte), or by insertion where there are few; what need not be stable leaves equal elements as PyTorch does (rank.h).
 * Invariant: a line is the work of one thread; lines are divided at fixed places. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "gradus/ops/full.h"
#include "gradus/ops/isnan.h"
#include "gradus/ops/max_dim.h"
#include "gradus/ops/median_dim.h"
#include "gradus/ops/reshape.h"
#include "gradus/ops/select.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/to.h"
#include "gradus/ops/where.h"
#include "gen/impl/sort.h"
#include "op/common.h"
#include "op/order.h"
#include "op/rank.h"

enum { FEW = 48, MANY = 32768, PARTS = 16, BYTES = 8, VALUES = 256 };

/* ---- One line --------------------------------------------------------------------------------------------------------------------- */

static void sort_by_insertion(struct grd_ranked *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const struct grd_ranked item = items[i];
        int64_t j = i;
        for (; j > 0 && items[j - 1].key > item.key; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

/* Ascending by key, equal keys in the order they come in. `other` has room for n. */
static void sort_by_key(struct grd_ranked *items, struct grd_ranked *other, int64_t n)
{
    if (n <= FEW) {
        sort_by_insertion(items, n);
        return;
    }
    int64_t counts[BYTES][VALUES] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int byte = 0; byte < BYTES; byte++)
            counts[byte][items[i].key >> 8 * byte & 0xff]++;
    struct grd_ranked *from = items, *to = other;
    for (int byte = 0; byte < BYTES; byte++) {
        int64_t *at = counts[byte], next = 0;
        if (at[from[0].key >> 8 * byte & 0xff] == n) /* the same everywhere */
            continue;
        for (int value = 0; value < VALUES; value++) {
            const int64_t count = at[value];
            at[value] = next;
            next += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[at[from[i].key >> 8 * byte & 0xff]++] = from[i];
        struct grd_ranked *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != items)
        memcpy(items, from, (size_t)n * sizeof *items);
}

/* ---- All lines ---------------------------------------------------------------------------------------------------------------------- */

/* What becomes of the lines of a tensor along one dimension: of each, `kept` values with their places. */
struct lines {
    const grd_tensor *self;
    grd_tensor *values, *indices; /* of equal strides */
    bool keeps_layout;            /* these are self's where self is dense, and contiguous otherwise */
    int64_t dim, n, kept, count, part;
    int64_t first; /* of those kept, once arranged */
    bool flipped;  /* the keys are */
    void (*arrange)(const struct lines *l, struct grd_ranked *items, struct grd_ranked *other);
    struct grd_ranked *scratch;
    int64_t scratch_part; /* items for each part */
};

static void read_line(const struct lines *l, const char *data, struct grd_ranked *items, uint64_t *keys)
{
    const int64_t stride = l->self->ndim > 0 ? grd_byte_stride(l->self, l->dim) : 0;
    const uint64_t flip = l->flipped ? UINT64_MAX : 0;
    grd_order_keys((grd_dtype)l->self->dtype, l->n, data, stride, keys);
    for (int64_t i = 0; i < l->n; i++)
        items[i] = (struct grd_ranked){keys[i] ^ flip, i};
}

/* The first element of a line of self, and where in the results it begins, in elements. */
static const char *find_line(const struct lines *l, int64_t line, int64_t *ret_at, int64_t *ret_step)
{
    const grd_tensor *self = l->self;
    const char *data = self->data;
    int64_t inner = 1, at = 0;
    for (int64_t i = self->ndim - 1; i >= 0; i--) {
        if (i == l->dim)
            continue;
        const int64_t index = line / inner % self->sizes[i];
        inner *= self->sizes[i];
        data += index * grd_byte_stride(self, i);
        at += index * l->values->strides[i];
    }
    *ret_at = at;
    *ret_step = self->ndim > 0 ? l->values->strides[l->dim] : 1;
    return data;
}

static void do_lines(int64_t begin, int64_t end, void *context)
{
    const struct lines *l = context;
    const int64_t size = l->self->itemsize, stride = l->self->ndim > 0 ? grd_byte_stride(l->self, l->dim) : 0;
    for (int64_t part = begin; part < end; part++) {
        struct grd_ranked *items = l->scratch + part * l->scratch_part, *other = items + l->n;
        const int64_t last = (part + 1) * l->part < l->count ? (part + 1) * l->part : l->count;
        for (int64_t line = part * l->part; line < last; line++) {
            int64_t at, step;
            const char *data = find_line(l, line, &at, &step);
            read_line(l, data, items, (uint64_t *)other);
            l->arrange(l, items, other);
            for (int64_t i = 0; i < l->kept; i++) {
                const int64_t index = items[l->first + i].index;
                memcpy(l->values->data + (at + i * step) * size, data + index * stride, (size_t)size);
                ((int64_t *)(void *)l->indices->data)[at + i * step] = index;
            }
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
        sizes[l->dim] = l->kept;
    l->n = self->ndim > 0 ? self->sizes[l->dim] : 1;
    l->count = l->n > 0 ? self->numel / l->n : 0;
    if (l->keeps_layout) {
        l->values = grd_new_like(self, GRD_DTYPE_NONE);
        l->indices = grd_new_like(self, GRD_INT64);
    } else {
        l->values = grd_new(grd_dims_from(sizes, self->ndim), (grd_dtype)self->dtype, grd_device_of(self));
        l->indices = grd_new(grd_dims_from(sizes, self->ndim), GRD_INT64, grd_device_of(self));
    }
    if (grd_pending())
        return;
    if (!grd_is_meta(self) && l->count > 0 && l->kept > 0) {
        l->part = (l->count - 1) / PARTS + 1;
        l->scratch_part = 2 * l->n;
        const int64_t parts = (l->count - 1) / l->part + 1;
        const size_t bytes = (size_t)(parts * l->scratch_part) * sizeof *l->scratch;
        if ((l->scratch = grd_alloc(bytes)) == NULL)
            return;
        grd_parallel_for(0, parts, 1, do_lines, l);
        grd_free(l->scratch, bytes);
    }
    ret[0] = l->values;
    ret[1] = l->indices;
}

/* ---- sort, topk ------------------------------------------------------------------------------------------------------------------------ */

static void arrange_stably(const struct lines *l, struct grd_ranked *items, struct grd_ranked *other)
{
    sort_by_key(items, other, l->n);
}

static void arrange(const struct lines *l, struct grd_ranked *items, struct grd_ranked *other)
{
    (void)other;
    grd_rank_sort(items, l->n);
}

static void arrange_largest(const struct lines *l, struct grd_ranked *items, struct grd_ranked *other)
{
    (void)other;
    grd_rank_largest(items, l->n, l->kept);
}

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
    l.kept = self->ndim > 0 ? self->sizes[l.dim] : 1;
    l.keeps_layout = true;
    stable = stable || is_always_stable(self, descending);
    l.arrange = stable ? arrange_stably : arrange;
    l.flipped = stable == descending;
    run_lines(&l, ret);
}

grd_tensor *op_argsort(grd_tensor *self, int64_t dim, bool descending, bool stable)
{
    return grd_sort(self, .dim = dim, .descending = descending, .stable = stable).indices;
}

/* The order among equal elements is PyTorch's (rank.h). */
void op_topk(grd_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, grd_tensor **ret)
{
    (void)sorted; /* they always are */
    struct lines l = {.self = self, .kept = k, .flipped = !largest, .arrange = arrange_largest};
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

static void arrange_kth(const struct lines *l, struct grd_ranked *items, struct grd_ranked *other)
{
    (void)other;
    grd_rank_kth(items, l->n, l->first);
}

void op_kthvalue(grd_tensor *self, int64_t k, int64_t dim, bool keepdim, grd_tensor **ret)
{
    struct lines l = {.self = self, .kept = 1, .arrange = arrange_kth};
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &l.dim) || !check_not_empty(self, l.dim, "kthvalue") ||
        !grd_check_ordered("kthvalue", (grd_dtype)self->dtype))
        return;
    if (k < 1 || k > (self->ndim > 0 ? self->sizes[l.dim] : 1)) {
        grd_raise(GRD_ERROR_RUNTIME, "kthvalue(): selected number k out of range for dimension %lld", (long long)l.dim);
        return;
    }
    l.first = k - 1;
    run_lines(&l, ret);
    drop_dim(l.dim, keepdim, ret);
}

/* Of elements equal to the median the one that a stable sort would put there. */
static void arrange_median(const struct lines *l, struct grd_ranked *items, struct grd_ranked *other)
{
    const uint64_t *keys = (const uint64_t *)other; /* where read_line left them */
    grd_rank_kth(items, l->n, l->first);
    struct grd_ranked *median = &items[l->first];
    int64_t before = l->first;
    for (int64_t i = 0; i < l->n; i++)
        before -= keys[i] < median->key;
    for (int64_t i = 0; i < l->n; i++)
        if (keys[i] == median->key && before-- == 0)
            median->index = i;
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

void op_median_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    struct lines l = {.self = self, .kept = 1, .arrange = arrange_median};
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &l.dim) || !check_not_empty(self, l.dim, "median") || !grd_check_ordered("median", (grd_dtype)self->dtype))
        return;
    l.first = self->ndim > 0 ? (self->sizes[l.dim] - 1) / 2 : 0;
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

/* Of equal elements the later one; NaN stays from where it comes. */
static void run_extremes(grd_tensor *self, int64_t dim, bool smallest, const char *name, grd_tensor **ret)
{
    ret[0] = ret[1] = grd_failed;
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_ordered(name, (grd_dtype)self->dtype))
        return;
    struct lines l = {.self = self, .dim = dim, .n = self->ndim > 0 ? self->sizes[dim] : 1};
    l.kept = l.n;
    l.values = grd_new(grd_sizes(self), (grd_dtype)self->dtype, grd_device_of(self));
    l.indices = grd_new(grd_sizes(self), GRD_INT64, grd_device_of(self));
    uint64_t *keys = grd_pending() ? NULL : grd_pool_array(l.n, sizeof *keys);
    if (keys == NULL)
        return;
    ret[0] = l.values;
    ret[1] = l.indices;
    const bool has_nan = grd_category_of((grd_dtype)self->dtype) == GRD_CATEGORY_FLOAT;
    const int64_t size = self->itemsize, stride = self->ndim > 0 ? grd_byte_stride(self, dim) : 0;
    for (int64_t line = 0; !grd_is_meta(self) && self->numel > 0 && line < self->numel / l.n; line++) {
        int64_t at, step, best = 0;
        const char *data = find_line(&l, line, &at, &step);
        grd_order_keys((grd_dtype)self->dtype, l.n, data, stride, keys);
        for (int64_t i = 0; i < l.n; i++) {
            const uint64_t key = smallest && !(has_nan && keys[i] == UINT64_MAX) ? ~keys[i] : keys[i];
            keys[i] = key;
            best = key >= keys[best] ? i : best;
            memcpy(l.values->data + (at + i * step) * size, data + best * stride, (size_t)size);
            ((int64_t *)(void *)l.indices->data)[at + i * step] = best;
        }
    }
}

void op_cummax(grd_tensor *self, int64_t dim, grd_tensor **ret)
{
    run_extremes(self, dim, false, "cummax", ret);
}

void op_cummin(grd_tensor *self, int64_t dim, grd_tensor **ret)
{
    run_extremes(self, dim, true, "cummin", ret);
}
