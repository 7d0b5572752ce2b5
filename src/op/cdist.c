/* Distances between all pairs of rows, and their gradient, of which differences are made for a block of pairs at a time, so that the memory it
 * needs beside the result is that of a block or of one operand. Schema: schema/loss.toml. */
#include "kernel/distance.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "gen/uses/op/cdist.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/plan.h"
#include "op/reduce.h"
#include "op/formula.h"

enum {
    BLOCK = 1 << 18, /* differences made at a time */
    GRAIN = 1 << 15, /* differences of one piece of work */
    MM_ROWS = 25     /* PyTorch's: from more rows on distances for p = 2 come from a product */
};

/* ---- Checks ------------------------------------------------------------------------------------------------------------------------ */

static bool check_rows(const char *name, const grd_tensor *x)
{
    if (x->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "cdist only supports at least 2D tensors, %s got: %dD", name, (int)x->ndim);
    if (!grd_dtype_is_floating((grd_dtype)x->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "cdist only supports floating-point dtypes, %s got: %s", name,
                         grd_dtype_type_name((grd_dtype)x->dtype));
    return true;
}

static int64_t size_from_end(const grd_tensor *x, int from_end)
{
    return x->sizes[x->ndim - from_end];
}

bool grd_cdist_check(const grd_tensor *x1, const grd_tensor *x2, double p)
{
    if (!check_rows("X1", x1) || !check_rows("X2", x2))
        return false;
    if (size_from_end(x1, 1) != size_from_end(x2, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                         (long long)size_from_end(x1, 1), (long long)size_from_end(x2, 1));
    if (x1->dtype != x2->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name((grd_dtype)x1->dtype),
                         grd_dtype_type_name((grd_dtype)x2->dtype));
    return p >= 0 || grd_raise(GRD_ERROR_RUNTIME, "cdist only supports non-negative p values");
}

bool grd_cdist_by_product(const char *mode, double p, const grd_tensor *x1, const grd_tensor *x2)
{
    const bool always = strcmp(mode, "use_mm_for_euclid_dist") == 0, of_large = strcmp(mode, "use_mm_for_euclid_dist_if_necessary") == 0;
    if (!always && !of_large && strcmp(mode, "donot_use_mm_for_euclid_dist") != 0)
        return grd_raise(GRD_ERROR_VALUE, "%s is not a valid value for compute_mode: " GRD_WORDS_CDIST_COMPUTE_MODE, mode);
    return p == 2 && (always || (of_large && (size_from_end(x1, 2) > MM_ROWS || size_from_end(x2, 2) > MM_ROWS)));
}

/* ---- Distances ------------------------------------------------------------------------------------------------------------------------- */

/* The sizes of the distances; false, with an error pending, where the batches do not broadcast. */
static bool sizes_of(const grd_tensor *x1, const grd_tensor *x2, int64_t *ret_sizes, int64_t *ret_ndim)
{
    const grd_dims batch1 = grd_dims_from(x1->sizes, x1->ndim - 2), batch2 = grd_dims_from(x2->sizes, x2->ndim - 2);
    if (!grd_shape_broadcast(batch1, batch2, ret_sizes, ret_ndim))
        return false;
    *ret_ndim += 2;
    ret_sizes[*ret_ndim - 2] = size_from_end(x1, 2);
    ret_sizes[*ret_ndim - 1] = size_from_end(x2, 2);
    return true;
}

bool plan_cdist_forward(struct grd_plan *plan, grd_tensor *x1, grd_tensor *x2, double p)
{
    int64_t sizes[GRD_MAX_DIMS], ndim;
    (void)p;
    if (!grd_cdist_check(x1, x2, p) || !sizes_of(x1, x2, sizes, &ndim))
        return false;
    const grd_dtype dtype = (grd_dtype)x1->dtype, as = dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
    return grd_plan_reads_as(plan, x1, as) && grd_plan_reads_as(plan, x2, as) && grd_plan_result(plan, grd_dims_from(sizes, ndim), dtype) &&
           grd_plan_computed_in(plan, as);
}

/* The matrix of a contiguous operand that broadcasts to matrix `index` of the result. */
static const char *matrix_of(const grd_tensor *x, const grd_tensor *result, int64_t index)
{
    int64_t offset = 0;
    for (int d = x->ndim - 3, of = result->ndim - 3; d >= 0; d--, of--) {
        offset += x->sizes[d] == 1 ? 0 : index % result->sizes[of] * x->strides[d];
        index /= result->sizes[of];
    }
    return x->data + offset * x->itemsize;
}

struct distances {
    const struct grd_plan *plan;
    double p;
};

/* Rows [begin, end) of all matrices of the result. */
static void distances_of_rows(int64_t begin, int64_t end, void *context)
{
    const struct distances *d = context;
    const grd_tensor *x1 = d->plan->in[0], *x2 = d->plan->in[1], *result = d->plan->results[0];
    struct grd_distance_block block = {.others = size_from_end(x2, 2), .width = size_from_end(x1, 1), .p = d->p};
    const int64_t rows = size_from_end(x1, 2), itemsize = result->itemsize;
    for (int64_t row = begin; row < end; row += block.rows) {
        const int64_t matrix = row / rows, first = row % rows;
        block.rows = grd_least(end - row, rows - first);
        block.x1 = matrix_of(x1, result, matrix) + first * block.width * itemsize;
        block.x2 = matrix_of(x2, result, matrix);
        block.out = result->data + row * block.others * itemsize;
        grd_kernels->distance[result->dtype](&block);
    }
}

void run_cdist_forward(const struct grd_plan *plan, grd_tensor *x1, grd_tensor *x2, double p)
{
    const int64_t others = size_from_end(x2, 2), cost = others * (size_from_end(x1, 1) + 1);
    struct distances d = {plan, p};
    grd_parallel_for(0, plan->results[0]->numel / others, cost < GRAIN ? GRAIN / cost : 1, distances_of_rows, &d);
}

/* ---- Its gradient: composites, differentiable in their turn ---------------------------------------------------------------------------- */

struct pairs {
    int64_t sizes[GRD_MAX_DIMS], ndim; /* of the distances */
    int64_t batch, rows, others, width;
    grd_tensor *x1, *x2; /* [batch, rows, width] and [batch, others, width] */
};

/* False, with an error pending, where the batches do not broadcast. */
static bool pair_rows(grd_tensor *x1, grd_tensor *x2, struct pairs *ret_pairs)
{
    struct pairs pairs = {.rows = size_from_end(x1, 2), .others = size_from_end(x2, 2), .width = size_from_end(x1, 1)};
    if (!sizes_of(x1, x2, pairs.sizes, &pairs.ndim))
        return false;
    const grd_dims batch = grd_dims_from(pairs.sizes, pairs.ndim - 2);
    pairs.batch = grd_sizes_product(batch.data, batch.n);
    pairs.x1 = grd_fold_batch(x1, batch);
    pairs.x2 = grd_fold_batch(x2, batch);
    *ret_pairs = pairs;
    return !grd_pending();
}

/* Part of a batch: some of its matrices, or some rows of one. */
struct block {
    int64_t matrix, matrices, row, rows;
};

/* The first block, for block.matrices == 0, or the next; false when there is none. */
static bool next_block(const struct pairs *pairs, struct block *block)
{
    const double of_row = fmax(1, (double)pairs->others * (double)pairs->width), of_matrix = of_row * (double)pairs->rows;
    const int64_t most_rows = (int64_t)fmax(1, BLOCK / of_row), most_matrices = (int64_t)fmax(1, BLOCK / fmax(1, of_matrix));
    block->row += block->rows;
    if (block->row == pairs->rows || block->matrices == 0) {
        block->row = 0;
        block->matrix += block->matrices;
    }
    block->matrices = grd_least(most_matrices, pairs->batch - block->matrix);
    block->rows = of_matrix <= BLOCK ? pairs->rows : grd_least(most_rows, pairs->rows - block->row);
    return block->matrices > 0 && pairs->rows > 0;
}

/* The rows of a block, of [batch, rows, n]. */
static grd_tensor *rows_of(grd_tensor *t, const struct block *block)
{
    return grd_narrow(grd_narrow(t, 0, block->matrix, block->matrices), 1, block->row, block->rows);
}

/* x1[i] - x2[j] for the rows i of a block and all j: [matrices, rows, others, width]. */
static grd_tensor *differences(const struct pairs *pairs, const struct block *block)
{
    grd_tensor *x2 = grd_narrow(pairs->x2, 0, block->matrix, block->matrices);
    return grd_sub(grd_unsqueeze(rows_of(pairs->x1, block), -2), grd_unsqueeze(x2, -3));
}

/* d|x|_p / dx for differences x of rows with these distances, 0 where that is 0 / 0. For p < 1 the slope is infinite at 0, and 0 is taken. */
static grd_tensor *slopes(grd_tensor *x, grd_tensor *distance, double p)
{
    grd_tensor *direction = grd_sign(x), *norm = grd_unsqueeze(distance, -1);
    if (p == 1)
        return grd_where(grd_isnan(x), x, direction);
    if (isinf(p))
        return grd_mul(direction, grd_eq(grd_abs(x), norm));
    if (p == 2)
        return grd_quotient_or_zero(x, norm);
    grd_tensor *is_zero = grd_eq_scalar(x, grd_int(0));
    grd_tensor *share =
        grd_div(grd_abs(grd_masked_fill(x, is_zero, grd_int(1))), grd_masked_fill(norm, grd_eq_scalar(norm, grd_int(0)), grd_int(1)));
    return grd_mul(direction, grd_pow_scalar(share, grd_float(p - 1)));
}

/* With r = grad / distance: sum_j r_ij (x1_i - x2_j), as products. */
static grd_tensor *gradient_by_product(grd_tensor *grad, grd_tensor *distance, const struct pairs *pairs)
{
    grd_tensor *ratio = grd_quotient_or_zero(grad, distance);
    return grd_sub(grd_mul(pairs->x1, grd_sum(ratio, .dim = grd_dims(-1), .keepdim = true)), grd_matmul(ratio, pairs->x2));
}

/* sum_j grad_ij slope_ij for the rows i of a block: [matrices * rows, width]. */
static grd_tensor *gradient_of_block(grd_tensor *grad, grd_tensor *distance, const struct pairs *pairs, const struct block *block, double p)
{
    grd_tensor *slope = slopes(differences(pairs, block), rows_of(distance, block), p);
    grd_tensor *sum = grd_matmul(grd_unsqueeze(rows_of(grad, block), -2), slope);
    return grd_reshape(sum, grd_dims(block->matrices * block->rows, pairs->width));
}

/* The gradient of x1, its matrices one below the other. */
static grd_tensor *gradient_by_blocks(grd_tensor *grad, grd_tensor *distance, const struct pairs *pairs, double p)
{
    const size_t bytes = (size_t)(pairs->batch * pairs->rows) * sizeof(grd_tensor *);
    grd_tensor **parts = grd_alloc(bytes), *all = grd_failed;
    struct block block = {0};
    int64_t n = 0;
    while (!grd_pending() && next_block(pairs, &block)) {
        const grd_scope scope = grd_scope_open();
        parts[n++] = grd_scope_return(scope, gradient_of_block(grad, distance, pairs, &block, p));
    }
    const grd_tensors list = {n, parts};
    if (!grd_pending())
        all = grd_cat(list, .dim = 0);
    grd_free(parts, bytes);
    return all;
}

grd_tensor *op_hidden_cdist_backward(grd_tensor *grad, grd_tensor *x1, grd_tensor *x2, double p, const char *compute_mode,
                                     grd_tensor *result)
{
    const bool by_product = grd_cdist_by_product(compute_mode, p, x1, x2);
    struct pairs pairs;
    if (grd_pending() || !pair_rows(x1, x2, &pairs))
        return grd_failed;
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, pairs.sizes, sizeof sizes);
    sizes[pairs.ndim - 1] = pairs.width;
    const grd_dims to = grd_dims_from(sizes, pairs.ndim), flat = grd_dims(pairs.batch, pairs.rows, pairs.others);
    if (p == 0 || pairs.batch * pairs.rows * pairs.others * pairs.width == 0 || !grd_composite_has_values(grad))
        return grd_reshape(grd_zeros_like(pairs.x1), to);
    grad = grd_reshape(grad, flat);
    result = grd_reshape(result, flat);
    return grd_reshape(by_product ? gradient_by_product(grad, result, &pairs) : gradient_by_blocks(grad, result, &pairs, p), to);
}

/* ---- pdist ------------------------------------------------------------------------------------------------------------------------------- */

bool plan_pdist(struct grd_plan *plan, grd_tensor *self, double p)
{
    if (self->ndim != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "pdist only supports 2D tensors, got: %dD", self->ndim);
    if (!grd_dtype_is_floating((grd_dtype)self->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "pdist only supports floating-point dtypes");
    if (!(p >= 0))
        return grd_raise(GRD_ERROR_RUNTIME, "pdist only supports non-negative p values");
    const int64_t n = self->sizes[0];
    const grd_dtype dtype = (grd_dtype)self->dtype, as = dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
    if (n > INT64_C(1) << 31)
        return grd_raise(GRD_ERROR_RUNTIME, "pdist of %lld rows has more distances than a tensor elements", (long long)n);
    return grd_plan_reads_as(plan, self, as) && grd_plan_result(plan, grd_dims(n < 2 ? 0 : n * (n - 1) / 2), dtype) &&
           grd_plan_computed_in(plan, as);
}

/* The distances of rows [begin, end) to those after them. */
static void distances_to_later_rows(int64_t begin, int64_t end, void *context)
{
    const struct distances *d = context;
    const grd_tensor *x = d->plan->in[0], *result = d->plan->results[0];
    const int64_t n = x->sizes[0], row_bytes = x->sizes[1] * x->itemsize;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * (2 * n - i - 1) / 2;
        grd_kernels->distance[x->dtype](&(struct grd_distance_block){.rows = 1,
                                                                     .others = n - 1 - i,
                                                                     .width = x->sizes[1],
                                                                     .p = d->p,
                                                                     .x1 = x->data + i * row_bytes,
                                                                     .x2 = x->data + (i + 1) * row_bytes,
                                                                     .out = result->data + first * result->itemsize});
    }
}

void run_pdist(const struct grd_plan *plan, grd_tensor *self, double p)
{
    struct distances d = {plan, p};
    const int64_t of_row = grd_greatest(1, self->sizes[0]) * grd_greatest(1, self->sizes[1]);
    grd_parallel_for(0, self->sizes[0] - 1, grd_greatest(1, GRAIN / of_row), distances_to_later_rows, &d);
}
