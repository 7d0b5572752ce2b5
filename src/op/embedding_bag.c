/* Implements embedding_bag, which reduces bags of rows of a table. The loops are in kernel/cpu/bags.c, the formulas in schema/index.toml.
 *
 * Invariants: every index and offset is checked before anything is written. Each bag is reduced by one thread. */
#include "base/parallel.h"
#include "gen/uses/op/embedding_bag.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "kernel/bags.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/index_loops.h"
#include "op/lines.h"
#include "op/plan.h"

/* TABLE to FACTORS are indices of the inputs in plan->in. GRAIN is about the number of table elements that a task reads. */
enum { TABLE, INDICES, OFFSETS, FACTORS, GRAIN = 1 << 15 };

/* Data that plan_hidden_embedding_bag hands to run_hidden_embedding_bag. */
struct embedding_bag {
    struct grd_bags kernel;
    const struct grd_bags_row *kernels;
    char *out;
    int64_t *counts, *indices;
};

static struct embedding_bag *bags_of(const struct grd_plan *p)
{
    return (struct embedding_bag *)(uintptr_t)p->state;
}

int64_t grd_padding_row(grd_scalar padding_idx, const grd_tensor *weight)
{
    if (padding_idx.kind == GRD_SCALAR_NONE)
        return -1;
    const int64_t row = grd_scalar_int64(padding_idx), rows = weight->ndim > 0 ? weight->sizes[0] : 0;
    if (row >= -rows && row < rows)
        return row < 0 ? row + rows : row;
    grd_raise(GRD_ERROR_RUNTIME, "padding_idx must be within the number of embeddings, %lld through %lld, but got %lld", -(long long)rows,
              (long long)rows - 1, (long long)row);
    return -1;
}

static bool check_indices(const grd_tensor *indices, const grd_tensor *offsets)
{
    if (!grd_is_index_dtype(indices) || !grd_is_index_dtype(offsets))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s",
                         grd_dtype_name(grd_is_index_dtype(indices) ? offsets->dtype : indices->dtype));
    if (indices->ndim != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "input has to be a 1D Tensor, but got Tensor of dimension %d", indices->ndim);
    return offsets->ndim == 1 ||
           grd_raise(GRD_ERROR_RUNTIME, "offsets has to be a 1D Tensor, but got Tensor of dimension %d", offsets->ndim);
}

static bool check_factors(const grd_tensor *weight, const grd_tensor *indices, int64_t mode, const grd_tensor *factors)
{
    if (mode < GRD_BAG_SUM || mode > GRD_BAG_MAX)
        return grd_raise(GRD_ERROR_RUNTIME, "mode must be 0, 1 or 2: sum, mean or max");
    if (factors == NULL)
        return true;
    if (mode != GRD_BAG_SUM)
        return grd_raise(GRD_ERROR_RUNTIME, "embedding_bag: per_sample_weights only supported with mode='sum'");
    if (factors->dtype != weight->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name((grd_dtype)weight->dtype),
                         grd_dtype_type_name((grd_dtype)factors->dtype));
    return (factors->ndim == 1 && factors->numel == indices->numel) ||
           grd_raise(GRD_ERROR_RUNTIME, "expected per_sample_weights to be a 1D Tensor with one element for each index");
}

bool plan_hidden_embedding_bag(struct grd_plan *p, grd_tensor *weight, grd_tensor *indices, grd_tensor *offsets, bool scale_grad_by_freq,
                               int64_t mode, grd_tensor *per_sample_weights, int64_t padding_idx)
{
    (void)scale_grad_by_freq;
    const grd_dtype dtype = (grd_dtype)weight->dtype, as = grd_lines_dtype(dtype);
    struct embedding_bag *x = bags_of(p);
    if (grd_kernels->bags[as] == NULL)
        return grd_raise_no_kernel("embedding_bag", dtype);
    if (weight->ndim != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
    if (!check_indices(indices, offsets) || !check_factors(weight, indices, mode, per_sample_weights))
        return false;
    const int64_t width = weight->sizes[1], bags = offsets->numel, n = indices->numel;
    x->kernels = grd_kernels->bags[as];
    x->kernel = (struct grd_bags){.mode = (enum grd_bag_mode)mode, .width = width, .bags = bags, .n = n, .padding = padding_idx};
    return grd_plan_reads_as(p, weight, as) && grd_plan_reads_as(p, indices, GRD_INT64) && grd_plan_reads_as(p, offsets, GRD_INT64) &&
           grd_plan_reads_as(p, per_sample_weights, as) && grd_plan_result(p, grd_dims(bags, width), dtype) &&
           grd_plan_computed_in(p, as) && grd_plan_result(p, grd_dims(n), GRD_INT64) && grd_plan_result(p, grd_dims(bags), GRD_INT64) &&
           grd_plan_result(p, mode == GRD_BAG_MAX ? grd_dims(bags, width) : grd_dims(0), GRD_INT64);
}

bool check_hidden_embedding_bag(struct grd_plan *p, grd_tensor *weight, grd_tensor *indices, grd_tensor *offsets, bool scale_grad_by_freq,
                                int64_t mode, grd_tensor *per_sample_weights, int64_t padding_idx)
{
    (void)indices, (void)scale_grad_by_freq, (void)mode, (void)per_sample_weights, (void)padding_idx;
    struct grd_bags *x = &bags_of(p)->kernel;
    x->indices = (const int64_t *)(const void *)p->in[INDICES]->data;
    x->offsets = (const int64_t *)(const void *)p->in[OFFSETS]->data;
    if (x->bags > 0 && x->offsets[0] != 0)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got %lld",
            (long long)x->offsets[0]);
    if (x->bags > 0 && x->offsets[x->bags - 1] > x->n)
        return grd_raise(GRD_ERROR_RUNTIME, "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld",
                         (long long)x->n, (long long)x->offsets[x->bags - 1]);
    for (int64_t bag = 1; bag < offsets->numel; bag++)
        if (x->offsets[bag] < x->offsets[bag - 1])
            return grd_raise(GRD_ERROR_RUNTIME, "offsets must not decrease, but offsets[%lld] is %lld after %lld", (long long)bag,
                             (long long)x->offsets[bag], (long long)x->offsets[bag - 1]);
    return grd_kernels->index->check(x->n, x->indices, 0, weight->sizes[0]) < 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "embedding_bag: Expected idx >= 0 && idx < num_embeddings, but found an idx outside of [0, %lld)",
                     (long long)weight->sizes[0]);
}

static void reduce_bags(int64_t begin, int64_t end, void *context)
{
    const struct embedding_bag *x = context;
    x->kernels->reduce(&x->kernel, begin, end, x->out, x->counts, x->indices);
}

void run_hidden_embedding_bag(const struct grd_plan *p, grd_tensor *weight, grd_tensor *indices, grd_tensor *offsets,
                              bool scale_grad_by_freq, int64_t mode, grd_tensor *per_sample_weights, int64_t padding_idx)
{
    (void)weight, (void)indices, (void)offsets, (void)scale_grad_by_freq, (void)mode, (void)per_sample_weights, (void)padding_idx;
    struct embedding_bag *x = bags_of(p);
    x->kernel.bag_of = (int64_t *)(void *)p->results[1]->data;
    x->kernel.table = p->in[TABLE]->data;
    x->kernel.factors = p->in[FACTORS] == NULL ? NULL : p->in[FACTORS]->data;
    x->out = p->results[0]->data;
    x->counts = (int64_t *)(void *)p->results[2]->data;
    x->indices = (int64_t *)(void *)p->results[3]->data;
    const int64_t of_bag = (x->kernel.n / grd_greatest(1, x->kernel.bags) + 1) * grd_greatest(1, x->kernel.width);
    grd_parallel_for(0, x->kernel.bags, grd_greatest(1, GRAIN / of_bag), reduce_bags, x);
}
