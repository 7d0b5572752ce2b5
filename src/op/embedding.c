/* Implements embedding, which returns rows of a table, and one_hot, which returns rows of the identity matrix.
 *
 * Invariants: every index is checked before anything is written. If a row is selected more than once, its gradients are added in the order of the
 * indices. */
#include <string.h>

#include "gen/binary_kernels.h"
#include "gen/uses/op/embedding.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "op/index_loops.h"
#include "op/checks.h"
#include "op/sizes.h"
#include "core/iter.h"

/* ---- embedding ----------------------------------------------------------------------------------------------------------- */

static bool check_embedding(grd_dims weight, const grd_tensor *indices)
{
    if (weight.n != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "'weight' must be 2-D");
    if (indices->ndim >= GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %d, the limit is %d", indices->ndim + 1, GRD_MAX_DIMS);
    return grd_is_index_dtype(indices) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s",
                     grd_dtype_name(indices->dtype));
}

/* Raises IndexError if an index in p->in[1] is not the number of a row of the table. plan_rows has written the number of rows to p->state. */
bool check_table_rows(struct grd_plan *p)
{
    const grd_tensor *index = p->in[1];
    return grd_kernels->index->check(index->numel, (const int64_t *)(const void *)index->data, 0, *(const int64_t *)(void *)p->state) < 0 ||
           grd_raise(GRD_ERROR_INDEX, "index out of range in self");
}

/* Plans to read `self` in dtype `as` and the indices as int64. Writes `rows`, the number of rows of the embedding table, to p->state, where
 * check_table_rows reads it. */
static bool plan_rows(struct grd_plan *p, grd_tensor *self, grd_dtype as, grd_tensor *indices, int64_t rows)
{
    *(int64_t *)(void *)p->state = rows;
    return grd_plan_reads_as(p, self, as) && grd_plan_reads_as(p, indices, GRD_INT64);
}

bool plan_embedding(struct grd_plan *p, grd_tensor *weight, grd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq)
{
    (void)padding_idx, (void)scale_grad_by_freq;
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_embedding(grd_sizes(weight), indices))
        return false;
    memcpy(sizes, indices->sizes, indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = weight->sizes[1];
    return plan_rows(p, weight, GRD_DTYPE_NONE, indices, weight->sizes[0]) &&
           grd_plan_result(p, grd_dims_from(sizes, (int64_t)indices->ndim + 1), (grd_dtype)weight->dtype);
}

/* Returns loops that copy rows between a table and a list. In `table`, p->in[1] selects the rows. In `list`, the rows are contiguous. `named` says
 * which operand the table is, GRD_RESULT or GRD_SOURCE; the list is the other one. */
static struct grd_indexed rows_of(const struct grd_plan *p, const grd_tensor *table, int named, char *list)
{
    const grd_tensor *index = p->in[1];
    const struct grd_indices rows = {.data = (const int64_t *)(const void *)index->data, .stored = index->numel};
    const int other = named == GRD_RESULT ? GRD_SOURCE : GRD_RESULT;
    struct grd_indexed x = {.in_order = named == GRD_RESULT};
    grd_indexed_slices(&x, table, named, &rows, 0, index->numel);
    x.data[other] = list;
    x.strides[other][0] = table->sizes[1] * table->itemsize;
    x.strides[other][1] = table->itemsize;
    return x;
}

void run_embedding(const struct grd_plan *p)
{
    struct grd_indexed x = rows_of(p, p->in[0], GRD_SOURCE, p->results[0]->data);
    x.kernel = grd_kernel_of_size(grd_kernels->index->gather, p->in[0]);
    grd_indexed_run(&x);
}

bool plan_hidden_embedding_backward(struct grd_plan *p, grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx,
                                    bool scale_grad_by_freq)
{
    (void)padding_idx;
    const grd_dtype dtype = grd_computed_dtype(grad->dtype);
    if (!check_embedding(sizes, indices))
        return false;
    if (grad->ndim != indices->ndim + 1 || grad->sizes[indices->ndim] != sizes.data[1] ||
        !grd_same_sizes(indices, grd_dims_from(grad->sizes, indices->ndim)))
        return grd_raise(GRD_ERROR_RUNTIME, "gradient of sizes %s does not belong to the indices", grd_list_text(grd_sizes(grad)));
    if (grd_kernels->index->add[dtype] == NULL ||
        (scale_grad_by_freq && grd_kernels->binary[dtype][GRD_BINARY_HIDDEN_DIV_TRUE].block == NULL))
        return grd_raise_no_kernel("embedding_backward", grad->dtype);
    grd_plan_scratch(p, scale_grad_by_freq ? (double)sizes.data[0] * (double)(sizeof(int64_t) + (size_t)grd_dtype_size(dtype)) : 0);
    return plan_rows(p, grad, dtype, indices, sizes.data[0]) && grd_plan_result(p, sizes, (grd_dtype)grad->dtype) &&
           grd_plan_computed_in(p, dtype);
}

/* Implements scale_grad_by_freq: divides each row of the result by the number of indices that select it, or by 1 if none does. The scratch memory
 * holds these numbers, first as int64, then converted to the dtype of the rows. */
static void divide_rows(const struct grd_plan *p)
{
    const grd_tensor *t = p->results[0], *index = p->in[1];
    const int64_t one = 1, rows = t->sizes[0], step = (int64_t)sizeof one, size = t->itemsize;
    char *counts = p->scratch, *divisors = counts + rows * step;
    memset(counts, 0, (size_t)(rows * step));
    grd_kernels->index->add[GRD_INT64](index->numel, (char *const[]){counts, (char *)(uintptr_t)&one, index->data},
                                       (const int64_t[]){0, 0, step}, &step);
    grd_map(rows, (char *const[]){counts, counts, (char *)(uintptr_t)&one}, (const int64_t[]){step, step, 0},
            &(struct grd_map){.kernel = &grd_kernels->binary[GRD_INT64][GRD_BINARY_MAXIMUM]});
    grd_kernels->cast[GRD_INT64][t->dtype](rows, (char *const[]){divisors, counts}, (const int64_t[]){size, step}, NULL);
    const int64_t own[] = {t->sizes[1] * size, size}, each[] = {size, 0};
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(t), 3, (char *const[]){t->data, t->data, divisors}, (const int64_t *const[]){own, own, each});
    grd_iter_run(&it, grd_map, &(struct grd_map){.kernel = &grd_kernels->binary[t->dtype][GRD_BINARY_HIDDEN_DIV_TRUE]});
}

void run_hidden_embedding_backward(const struct grd_plan *p, grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx,
                                   bool scale_grad_by_freq)
{
    (void)grad, (void)indices;
    grd_tensor *result = p->results[0];
    struct grd_indexed x = rows_of(p, result, GRD_RESULT, p->in[0]->data);
    x.kernel = grd_kernels->index->add[result->dtype];
    grd_zero_elements(result);
    grd_indexed_run(&x);
    if (scale_grad_by_freq)
        divide_rows(p);
    if (padding_idx >= 0 && padding_idx < sizes.data[0])
        memset(result->data + padding_idx * sizes.data[1] * result->itemsize, 0, (size_t)(sizes.data[1] * result->itemsize));
}

/* ---- one_hot ------------------------------------------------------------------------------------------------------------- */

/* Plans the result of one_hot for `classes` classes, which are its last dimension. */
static bool plan_classes(struct grd_plan *p, const grd_tensor *self, int64_t classes)
{
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[self->ndim] = classes;
    return grd_plan_result(p, grd_dims_from(sizes, (int64_t)self->ndim + 1), GRD_INT64);
}

bool plan_one_hot(struct grd_plan *p, grd_tensor *self, int64_t num_classes)
{
    if (self->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "one_hot is only applicable to index tensor of type LongTensor.");
    if (self->ndim >= GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %d, the limit is %d", self->ndim + 1, GRD_MAX_DIMS);
    if (self->numel == 0 && num_classes <= 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Can not infer total number of classes from empty tensor.");
    if (num_classes < -1)
        return grd_raise(GRD_ERROR_RUNTIME, "Class values must be smaller than num_classes.");
    return grd_plan_reads_as(p, self, GRD_INT64) && (num_classes < 0 ? grd_check_has_data(self) : plan_classes(p, self, num_classes));
}

bool check_one_hot(struct grd_plan *p, grd_tensor *self, int64_t num_classes)
{
    int64_t low = 0, high = -1;
    grd_kernels->index->range(self->numel, (const int64_t *)(const void *)p->in[0]->data, &low, &high);
    if (low < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Class values must be non-negative.");
    if (num_classes >= 0)
        return high < num_classes || grd_raise(GRD_ERROR_RUNTIME, "Class values must be smaller than num_classes.");
    return plan_classes(p, self, high == INT64_MAX ? high : high + 1);
}

void run_one_hot(const struct grd_plan *p)
{
    grd_tensor *result = p->results[0], *index = p->in[0];
    int64_t one = 1, size = (int64_t)sizeof one;
    struct grd_indexed x = {.kernel = grd_kernels->index->scatter[grd_index_size(size)], .step = size, .dim = 0, .n = 1};
    x.sizes[0] = index->numel;
    x.strides[GRD_RESULT][0] = result->sizes[index->ndim] * size;
    x.strides[GRD_INDEX][0] = size;
    x.data[GRD_RESULT] = result->data;
    x.data[GRD_SOURCE] = (char *)&one;
    x.data[GRD_INDEX] = index->data;
    grd_zero_elements(result);
    grd_indexed_run(&x);
}
