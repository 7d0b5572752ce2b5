/* Search in sorted numbers, membership, and counts of integers. Elements are compared by their keys (order.h). */
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "gradus/ops/searchsorted.h"
#include "gen/impl/sort.h"
#include "gen/impl/view.h"
#include "gradus/library.h"
#include "op/common.h"
#include "op/copy.h"
#include "op/order.h"

enum { GRAIN = 4096, LIST_CHARS = 512 };

/* The keys of all elements in row-major order; NULL with the error raised. */
static uint64_t *keys_of(grd_tensor *t, grd_dtype dtype)
{
    t = grd_contiguous_as(t, dtype);
    uint64_t *keys = grd_pending() ? NULL : grd_pool_array(t->numel, sizeof *keys);
    if (keys != NULL)
        grd_order_keys(dtype, t->numel, t->data, t->itemsize, keys);
    return keys;
}

/* How many of n ascending keys are below `key`, or with `right` not above it. */
static int64_t position_of(uint64_t key, const uint64_t *keys, const int64_t *order, int64_t n, bool right)
{
    int64_t low = 0;
    while (n > 0) {
        const int64_t half = n / 2, middle = low + half;
        const uint64_t other = keys[order != NULL ? order[middle] : middle];
        const bool passes = right ? other <= key : other < key;
        low = passes ? middle + 1 : low;
        n = passes ? n - half - 1 : half;
    }
    return low;
}

/* ---- searchsorted ----------------------------------------------------------------------------------------------------------------- */

struct search {
    const uint64_t *keys, *wanted;
    const int64_t *order;
    int64_t n, each; /* lengths of a line of the sorted numbers, and of the wanted ones */
    bool one;        /* line of sorted numbers for all */
    bool right, narrow;
    void *to;
};

static void search_some(int64_t begin, int64_t end, void *context)
{
    const struct search *s = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t line = s->one ? 0 : i / s->each * s->n;
        const int64_t at = position_of(s->wanted[i], s->keys + line, s->order != NULL ? s->order + line : NULL, s->n, s->right);
        if (s->narrow)
            ((int32_t *)s->to)[i] = (int32_t)at;
        else
            ((int64_t *)s->to)[i] = at;
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

static bool check_sorter(const int64_t *order, int64_t count, int64_t n)
{
    for (int64_t i = 0; order != NULL && i < count; i++)
        if (order[i] < 0 || order[i] >= n)
            return grd_raise(GRD_ERROR_RUNTIME, "sorter index out of range");
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
    grd_tensor *order = sorter != NULL ? grd_contiguous_as(sorter, GRD_INT64) : NULL;
    struct search s = {.n = n,
                       .each = self->ndim > 0 ? self->sizes[self->ndim - 1] : 1,
                       .one = sorted->ndim == 1,
                       .right = right || (side != NULL && strcmp(side, "right") == 0),
                       .narrow = out_int32,
                       .to = result->data};
    s.keys = grd_pending() ? NULL : keys_of(sorted, dtype);
    s.wanted = grd_pending() ? NULL : keys_of(self, dtype);
    s.order = grd_pending() || order == NULL ? NULL : (const int64_t *)(const void *)order->data;
    if (grd_pending() || !check_sorter(s.order, sorted->numel, n))
        return grd_failed;
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

grd_tensor *op_isin(grd_tensor *elements, grd_tensor *test_elements, bool assume_unique, bool invert)
{
    (void)assume_unique; /* would gain nothing */
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){elements, test_elements}, 2);
    if (dtype == GRD_DTYPE_NONE || !grd_check_ordered("isin", dtype) || !grd_check_same_device(grd_tensors(elements, test_elements)))
        return grd_failed;
    grd_tensor *result = grd_new(grd_sizes(elements), GRD_BOOL, grd_device_of(elements));
    if (grd_pending() || grd_is_meta(elements))
        return result;
    grd_tensor *sorted[2] = {grd_failed, grd_failed};
    op_sort(op_reshape(grd_contiguous_as(test_elements, dtype), grd_dims(-1)), 0, false, true, sorted);
    const uint64_t *keys = grd_pending() ? NULL : keys_of(sorted[0], dtype), *wanted = grd_pending() ? NULL : keys_of(elements, dtype);
    if (grd_pending())
        return grd_failed;
    const bool has_nan = grd_category_of(dtype) == GRD_CATEGORY_FLOAT;
    const int64_t n = test_elements->numel;
    for (int64_t i = 0; i < elements->numel; i++) {
        const int64_t at = position_of(wanted[i], keys, NULL, n, false);
        const bool is_in = at < n && keys[at] == wanted[i] && !(has_nan && wanted[i] == UINT64_MAX);
        result->data[i] = is_in != invert;
    }
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
    const bool is_float = weights != NULL && weights->dtype == GRD_FLOAT32;
    const grd_dtype dtype = weights == NULL ? GRD_INT64 : is_float ? GRD_FLOAT32 : GRD_FLOAT64;
    grd_tensor *plain = grd_contiguous_as(self, GRD_INT64),
               *terms = weights == NULL || grd_pending() ? NULL : grd_contiguous_as(weights, dtype);
    if (grd_pending())
        return grd_failed;
    const int64_t *value = (const int64_t *)(const void *)plain->data;
    int64_t bins = minlength;
    for (int64_t i = 0; i < plain->numel; i++) {
        if (value[i] < 0 || value[i] == INT64_MAX)
            return grd_fail(GRD_ERROR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
        bins = value[i] >= bins ? value[i] + 1 : bins;
    }
    grd_tensor *result = grd_new_zeros(grd_dims(bins), dtype, grd_device_of(self));
    for (int64_t i = 0; !grd_pending() && i < plain->numel; i++) {
        if (terms == NULL)
            ((int64_t *)(void *)result->data)[value[i]]++;
        else if (is_float)
            ((float *)(void *)result->data)[value[i]] += ((const float *)(const void *)terms->data)[i];
        else
            ((double *)(void *)result->data)[value[i]] += ((const double *)(const void *)terms->data)[i];
    }
    return result;
}
