/* Search in sorted numbers, membership, and counts of integers. The loops are in kernel/cpu/order.c and index.c. */
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "gen/op_impl.h"
#include "gradus/gradus.h"
#include "kernel/index.h"
#include "op/common.h"
#include "op/copy.h"
#include "op/order.h"

enum { GRAIN = 4096, LIST_CHARS = 512 };

/* ---- searchsorted ----------------------------------------------------------------------------------------------------------------- */

struct search {
    struct grd_search_block block; /* the first line */
    const struct grd_order_row *row;
    int64_t each; /* wanted numbers of a line */
    bool one;     /* line of sorted numbers for all */
    int64_t itemsize, result_size;
};

static void search_some(int64_t begin, int64_t end, void *context)
{
    const struct search *s = context;
    for (int64_t i = begin, next; i < end; i = next) {
        struct grd_search_block block = s->block;
        const int64_t line = s->one ? 0 : i / s->each;
        next = s->one || (line + 1) * s->each > end ? end : (line + 1) * s->each;
        block.count = next - i;
        block.wanted = (const char *)block.wanted + i * s->itemsize;
        block.to = (char *)block.to + i * s->result_size;
        block.sorted = (const char *)block.sorted + line * block.n * s->itemsize;
        block.order = block.order != NULL ? block.order + line * block.n : NULL;
        s->row->search(&block);
    }
}

static bool check_search(const grd_tensor *sorted, const grd_tensor *self, const char *side, bool right, const grd_tensor *sorter)
{
    if (sorted->ndim == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "boundaries tensor should have positive dimension, but got 0 dimension");
    bool fits = sorted->ndim == 1 || sorted->ndim == self->ndim;
    for (int64_t i = 0; fits && sorted->ndim > 1 && i < sorted->ndim - 1; i++)
        fits = sorted->sizes[i] == self->sizes[i];
    if (!fits) {
        char own[LIST_CHARS], other[LIST_CHARS];
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must "
            "match, but we got boundaries tensor %s and input value tensor %s",
            grd_format_int64s(own, sizeof own, sorted->sizes, sorted->ndim),
            grd_format_int64s(other, sizeof other, self->sizes, self->ndim));
    }
    if (side != NULL && strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "side can only be 'left' or 'right' but got %s", side);
    if (side != NULL && right && strcmp(side, "left") == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "side and right can't be set to opposites, got side of left while right was True");
    if (sorter != NULL && (sorter->dtype != GRD_INT64 || !grd_same_sizes(sorter, grd_sizes(sorted))))
        return grd_raise(GRD_ERROR_RUNTIME, "sorter must be of dtype long and of the sizes of the sorted sequence");
    return true;
}

grd_tensor *op_searchsorted(grd_tensor *sorted, grd_tensor *self, bool out_int32, bool right, const char *side, grd_tensor *sorter)
{
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){sorted, self}, 2);
    if (dtype == GRD_DTYPE_NONE || !check_search(sorted, self, side, right, sorter) || !grd_check_ordered("searchsorted", dtype) ||
        !grd_check_same_device(grd_tensors(sorted, self, sorter)))
        return grd_failed;
    const int64_t n = sorted->sizes[sorted->ndim - 1];
    if (out_int32 && n > INT32_MAX)
        return grd_fail(GRD_ERROR_RUNTIME, "the size of boundaries' last dimension should be less than %d, but we got %lld", INT32_MAX,
                        (long long)n);
    grd_tensor *result = grd_new(grd_sizes(self), out_int32 ? GRD_INT32 : GRD_INT64, grd_device_of(self));
    if (grd_pending() || grd_is_meta(self) || self->numel == 0)
        return result;
    grd_tensor *order = sorter != NULL ? grd_contiguous_as(sorter, GRD_INT64) : sorted;
    grd_tensor *from = grd_pending() ? sorted : grd_contiguous_as(sorted, dtype),
               *wanted = grd_pending() ? self : grd_contiguous_as(self, dtype);
    if (grd_pending())
        return grd_failed;
    struct search s = {.block = {.n = n,
                                 .sorted = from->data,
                                 .wanted = wanted->data,
                                 .order = sorter != NULL ? (const int64_t *)(const void *)order->data : NULL,
                                 .right = right || (side != NULL && strcmp(side, "right") == 0),
                                 .narrow = out_int32,
                                 .to = result->data},
                       .row = grd_kernels->order[dtype],
                       .each = self->ndim > 0 ? self->sizes[self->ndim - 1] : 1,
                       .one = sorted->ndim == 1,
                       .itemsize = wanted->itemsize,
                       .result_size = result->itemsize};
    if (sorter != NULL && grd_kernels->index->check(sorted->numel, s.block.order, 0, n) >= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "sorter index out of range");
    grd_parallel_for(0, self->numel, GRAIN, search_some, &s);
    return result;
}

grd_tensor *op_bucketize(grd_tensor *self, grd_tensor *boundaries, bool out_int32, bool right)
{
    if (boundaries->ndim == 1)
        return grd_searchsorted(boundaries, self, .out_int32 = out_int32, .right = right);
    return grd_fail(GRD_ERROR_RUNTIME, "boundaries tensor must be 1 dimension, but got dim(%d)", boundaries->ndim);
}

/* ---- isin --------------------------------------------------------------------------------------------------------------------------- */

struct membership {
    const struct grd_order_row *row;
    int64_t n, itemsize;
    const char *numbers, *wanted;
    bool invert, *to;
};

static void find_some(int64_t begin, int64_t end, void *context)
{
    const struct membership *m = context;
    m->row->find(m->n, m->numbers, end - begin, m->wanted + begin * m->itemsize, m->invert, m->to + begin);
}

grd_tensor *op_isin(grd_tensor *elements, grd_tensor *test_elements, bool assume_unique, bool invert)
{
    (void)assume_unique; /* would gain nothing */
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){elements, test_elements}, 2);
    if (dtype == GRD_DTYPE_NONE || !grd_check_ordered("isin", dtype) || !grd_check_same_device(grd_tensors(elements, test_elements)))
        return grd_failed;
    grd_tensor *result = grd_new(grd_sizes(elements), GRD_BOOL, grd_device_of(elements));
    if (grd_pending() || grd_is_meta(elements))
        return result;
    grd_tensor *numbers[2] = {grd_contiguous_as(test_elements, dtype), NULL}, *wanted = grd_contiguous_as(elements, dtype);
    if (!grd_pending() && !grd_is_few(test_elements->numel))
        op_sort(op_reshape(numbers[0], grd_dims(-1)), 0, false, true, numbers);
    if (grd_pending())
        return grd_failed;
    struct membership m = {grd_kernels->order[dtype], test_elements->numel, wanted->itemsize, numbers[0]->data, wanted->data, invert,
                           (bool *)result->data};
    grd_parallel_for(0, elements->numel, GRAIN, find_some, &m);
    return result;
}

/* ---- bincount ------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_bincount(grd_tensor *self, grd_tensor *weights, int64_t minlength)
{
    if (self->ndim != 1 || grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_INTEGER)
        return grd_fail(GRD_ERROR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
    if (minlength < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "minlength should be >= 0");
    if (weights != NULL && !grd_same_sizes(weights, grd_sizes(self)))
        return grd_fail(GRD_ERROR_RUNTIME, "weights should be 1-d and have the same length as input");
    if (!grd_check_has_data(self) || !grd_check_same_device(grd_tensors(self, weights)))
        return grd_failed;
    const grd_dtype dtype = weights == NULL ? GRD_INT64 : weights->dtype == GRD_FLOAT32 ? GRD_FLOAT32 : GRD_FLOAT64;
    grd_tensor *plain = grd_contiguous_as(self, GRD_INT64),
               *terms = weights == NULL || grd_pending() ? NULL : grd_contiguous_as(weights, dtype);
    int64_t low = 0, high = -1, one = 1;
    if (grd_pending())
        return grd_failed;
    grd_kernels->index->range(plain->numel, (const int64_t *)(const void *)plain->data, &low, &high);
    if (low < 0 || high == INT64_MAX)
        return grd_fail(GRD_ERROR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
    grd_tensor *result = grd_new_zeros(grd_dims(high >= minlength ? high + 1 : minlength), dtype, grd_device_of(self));
    if (!grd_pending())
        grd_kernels->index->add[dtype](plain->numel, (char *const[]){result->data, terms != NULL ? terms->data : (char *)&one, plain->data},
                                       (const int64_t[]){0, terms != NULL ? terms->itemsize : 0, plain->itemsize},
                                       &(const int64_t){result->itemsize});
    return result;
}
