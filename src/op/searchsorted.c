/* Implements searchsorted, bucketize and isin. The loops are in kernel/cpu/order.c. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/searchsorted.h"
#include "core/dtype.h"
#include "core/iter.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/index.h"
#include "op/order.h"
#include "op/plan.h"
#include "op/sizes.h"
#include "op/checks.h"

/* Number of searched values per task. */
enum { GRAIN = 4096 };

/* ---- searchsorted ----------------------------------------------------------------------------------------------------------------- */

/* Finds the positions of the values [begin, end) of p->in[1] in the sorted lines of p->in[0]. A line is the elements along the last dimension. */
static void search_some(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct grd_search_block *all = (const struct grd_search_block *)(const void *)p->state;
    const grd_tensor *sorted = p->in[0], *wanted = p->in[1];
    /* Number of values whose positions are searched in each sorted sequence. A sequence is the elements along the last dimension. */
    const int64_t each = sorted->ndim == 1 ? wanted->numel : wanted->sizes[wanted->ndim - 1];
    for (int64_t i = begin, next; i < end; i = next) {
        struct grd_search_block block = *all;
        const int64_t line = i / each * block.n;
        next = i / each * each + each < end ? i / each * each + each : end;
        block.count = next - i;
        block.sorted = sorted->data + line * sorted->itemsize;
        block.order = p->in[2] != NULL ? (const int64_t *)(const void *)p->in[2]->data + line : NULL;
        block.wanted = wanted->data + i * wanted->itemsize;
        block.to = p->results[0]->data + i * p->results[0]->itemsize;
        grd_kernels->order[wanted->dtype]->search(&block);
    }
}

static bool check_search(const grd_tensor *sorted, const grd_tensor *self, const char *side, bool right, const grd_tensor *sorter)
{
    if (sorted->ndim == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
    bool fits = sorted->ndim == 1 || sorted->ndim == self->ndim;
    for (int64_t i = 0; fits && sorted->ndim > 1 && i < sorted->ndim - 1; i++)
        fits = sorted->sizes[i] == self->sizes[i];
    if (!fits) {
        return grd_raise(GRD_ERROR_RUNTIME,
                         "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
                         "and input value tensor must match, but we got boundaries tensor %s and input value tensor %s",
                         grd_list_text(grd_sizes(sorted)), grd_list_text(grd_sizes(self)));
    }
    if (side != NULL && strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
    if (side != NULL && right && strcmp(side, "left") == 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    if (sorter != NULL && !grd_same_sizes(sorter, grd_sizes(sorted)))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor %s and got sorter "
                         "tensor %s",
                         grd_list_text(grd_sizes(sorted)), grd_list_text(grd_sizes(sorter)));
    if (sorter != NULL && sorter->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
                         grd_dtype_type_name((grd_dtype)sorter->dtype));
    return true;
}

bool plan_searchsorted(struct grd_plan *p, grd_tensor *sorted, grd_tensor *self, bool out_int32, bool right, const char *side,
                       grd_tensor *sorter)
{
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){sorted, self}, 2);
    if (dtype == GRD_DTYPE_NONE || !check_search(sorted, self, side, right, sorter) || !grd_check_ordered("searchsorted", dtype))
        return false;
    const int64_t n = sorted->sizes[sorted->ndim - 1];
    if (out_int32 && n > INT32_MAX)
        return grd_raise(GRD_ERROR_RUNTIME, "the size of boundaries' last dimension should be less than %d, but we got %lld", INT32_MAX,
                         (long long)n);
    *(struct grd_search_block *)(void *)p->state =
        (struct grd_search_block){.n = n, .right = right || (side != NULL && strcmp(side, "right") == 0), .narrow = out_int32};
    return grd_plan_reads_as(p, sorted, dtype) && grd_plan_reads_as(p, self, dtype) && grd_plan_reads_as(p, sorter, GRD_INT64) &&
           grd_plan_result(p, grd_sizes(self), out_int32 ? GRD_INT32 : GRD_INT64);
}

bool check_sorter(struct grd_plan *p)
{
    const grd_tensor *sorted = p->in[0], *sorter = p->in[2];
    return sorter == NULL ||
           grd_kernels->index->check(sorter->numel, (const int64_t *)(const void *)sorter->data, 0, sorted->sizes[sorted->ndim - 1]) < 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "sorter index out of range");
}

void run_search(const struct grd_plan *p)
{
    grd_parallel_for(0, p->results[0]->numel, GRAIN, search_some, (void *)(uintptr_t)p);
}

/* ---- isin --------------------------------------------------------------------------------------------------------------------------- */

/* Tests whether the elements [begin, end) of p->in[0] occur in p->in[1]. */
static void find_some(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *wanted = p->in[0], *numbers = p->in[1];
    grd_kernels->order[wanted->dtype]->find(numbers->numel, p->scratch != NULL ? p->scratch : numbers->data, end - begin,
                                            wanted->data + begin * wanted->itemsize, *(const bool *)p->state,
                                            (bool *)p->results[0]->data + begin);
}

/* Returns the dtype in which isin() compares. A zero-dimensional tensor `elements` keeps its values, as if it were a vector, also if the dtype of
 * test_elements cannot hold them. */
static grd_dtype dtype_of_members(grd_tensor *elements, grd_tensor *test_elements)
{
    grd_tensor *const inputs[] = {elements, test_elements};
    if (elements->ndim == 0 && !grd_has(elements, GRD_FLAG_NUMBER) && !grd_has(test_elements, GRD_FLAG_NUMBER))
        return grd_promote((grd_dtype)elements->dtype, (grd_dtype)test_elements->dtype);
    return grd_dtype_to_compare(inputs, 2, grd_result_type(inputs, 2));
}

/* Plans isin(). If there are few test elements, a linear search is fastest. Otherwise the test elements are sorted first. Scratch memory then holds
 * the sorted values, their indices and the sort's work array. */
bool plan_isin(struct grd_plan *p, grd_tensor *elements, grd_tensor *test_elements, bool assume_unique, bool invert)
{
    (void)assume_unique; /* no effect: a promise that elements are unique would not make the search faster */
    const grd_dtype dtype = dtype_of_members(elements, test_elements);
    const int64_t n = test_elements->numel;
    if (dtype == GRD_DTYPE_NONE)
        return false;
    if (grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "Unsupported input type encountered for isin(): %s", grd_dtype_type_name(dtype));
    if (!grd_check_ordered("isin", dtype))
        return false;
    if (!grd_is_few(n))
        grd_plan_scratch(p, (double)n * (sizeof(double) + sizeof(int64_t)) +
                                (double)grd_rank_scratch(GRD_RANK_SORT_STABLY, n, n) * sizeof(struct grd_ranked));
    *(bool *)p->state = invert;
    return grd_plan_reads_as(p, elements, dtype) && grd_plan_reads_as(p, test_elements, dtype) &&
           grd_plan_result(p, grd_sizes(elements), GRD_BOOL);
}

void run_membership(const struct grd_plan *p)
{
    const grd_tensor *numbers = p->in[1];
    const int64_t n = numbers->numel;
    if (p->scratch != NULL)
        grd_kernels->order[numbers->dtype]->rank(&(struct grd_rank_block){.kind = GRD_RANK_SORT_STABLY,
                                                                          .n = n,
                                                                          .kept = n,
                                                                          .in = numbers->data,
                                                                          .values = p->scratch,
                                                                          .indices = (int64_t *)(void *)p->scratch + n,
                                                                          .items = (struct grd_ranked *)(void *)p->scratch + n,
                                                                          .step = 1});
    grd_parallel_for(0, p->results[0]->numel, GRAIN, find_some, (void *)(uintptr_t)p);
}
