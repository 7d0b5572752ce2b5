/* Computes the distances between all pairs of rows (cdist, pdist) and the gradient of cdist, without storing the differences of rows. Schema:
 * schema/loss.toml. */
#include "base/integer.h"
#include "kernel/distance.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/cdist.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/matrix_batch.h"
#include "op/plan.h"
#include "op/formula.h"

enum {
    GRAIN = 1 << 15, /* a task computes about this many differences of elements */
    MM_ROWS = 25     /* if x1 or x2 has more rows than this, Euclidean distances (p = 2) are computed by a matrix product, as in PyTorch */
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

bool grd_cdist_check(const grd_tensor *x1, const grd_tensor *x2, double p)
{
    if (!check_rows("X1", x1) || !check_rows("X2", x2))
        return false;
    if (grd_size_from_end(x1, 1) != grd_size_from_end(x2, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                         (long long)grd_size_from_end(x1, 1), (long long)grd_size_from_end(x2, 1));
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
    return p == 2 && (always || (of_large && (grd_size_from_end(x1, 2) > MM_ROWS || grd_size_from_end(x2, 2) > MM_ROWS)));
}

/* ---- Distances ------------------------------------------------------------------------------------------------------------------------- */

/* Writes the sizes of the result of cdist to ret_sizes, and their number to *ret_ndim. Raises RuntimeError if the batch dimensions of x1 and x2 do
 * not broadcast. */
static bool sizes_of(const grd_tensor *x1, const grd_tensor *x2, int64_t *ret_sizes, int64_t *ret_ndim)
{
    const grd_dims batch1 = grd_dims_from(x1->sizes, x1->ndim - 2), batch2 = grd_dims_from(x2->sizes, x2->ndim - 2);
    if (!grd_shape_broadcast(batch1, batch2, ret_sizes, ret_ndim))
        return false;
    *ret_ndim += 2;
    ret_sizes[*ret_ndim - 2] = grd_size_from_end(x1, 2);
    ret_sizes[*ret_ndim - 1] = grd_size_from_end(x2, 2);
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

/* The arguments of one call of cdist or pdist, or of a gradient; grd_parallel_for passes them to its tasks as `context`. */
struct distances {
    const struct grd_plan *plan;
    double p;
    /* True if p = inf and the distances given to the backward pass have a half dtype (float16 or bfloat16). In this case the kernel computes
     * the differences again, because rounded distances do not show which difference is the largest. */
    bool is_rounded;
};

/* Computes rows [begin, end) of the matrices of distances. Rows are numbered matrix by matrix. */
static void distances_of_rows(int64_t begin, int64_t end, void *context)
{
    const struct distances *d = context;
    const grd_tensor *x1 = d->plan->in[0], *x2 = d->plan->in[1], *result = d->plan->results[0];
    struct grd_distance_block block = {.others = grd_size_from_end(x2, 2), .width = grd_size_from_end(x1, 1), .p = d->p};
    const int64_t rows = grd_size_from_end(x1, 2), itemsize = result->itemsize;
    for (int64_t row = begin; row < end; row += block.rows) {
        const int64_t matrix = row / rows, first = row % rows;
        block.rows = grd_least(end - row, rows - first);
        block.x1 = grd_broadcast_matrix_at(x1, result, matrix) + first * block.width * itemsize;
        block.x2 = grd_broadcast_matrix_at(x2, result, matrix);
        block.out = result->data + row * block.others * itemsize;
        grd_kernels->distance[result->dtype](&block);
    }
}

void run_cdist_forward(const struct grd_plan *plan, grd_tensor *x1, grd_tensor *x2, double p)
{
    const int64_t others = grd_size_from_end(x2, 2), cost = others * (grd_size_from_end(x1, 1) + 1);
    struct distances d = {.plan = plan, .p = p};
    grd_parallel_for(0, plan->results[0]->numel / others, cost < GRAIN ? GRAIN / cost : 1, distances_of_rows, &d);
}

/* ---- Its gradient ------------------------------------------------------------------------------------------------------------------------ */

bool plan_cdist_backward(struct grd_plan *plan, grd_tensor *grad, grd_tensor *x1, grd_tensor *x2, double p, grd_tensor *cdist)
{
    const grd_dtype dtype = (grd_dtype)x1->dtype, as = dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
    int64_t sizes[GRD_MAX_DIMS], ndim;
    if (!grd_cdist_check(x1, x2, p) || !sizes_of(x1, x2, sizes, &ndim))
        return false;
    for (int i = 0; i < 2; i++) {
        /* `grad` and `cdist` are read with any strides, and copied only if their dtype must be converted. They are often transposed, because the
         * gradient of x2 is computed by this operator with x1 and x2 exchanged and `grad` and `cdist` transposed. */
        grd_tensor *t = i == 0 ? grad : cdist;
        if (!grd_same_sizes(t, grd_dims_from(sizes, ndim)))
            return grd_raise(GRD_ERROR_RUNTIME, "_cdist_backward: the distances have sizes %s, but %s has %s",
                             grd_list_text(grd_dims_from(sizes, ndim)), i == 0 ? "grad" : "cdist", grd_list_text(grd_sizes(t)));
        if (!((grd_dtype)t->dtype == as ? grd_plan_reads(plan, t) : grd_plan_reads_as(plan, t, as)))
            return false;
    }
    sizes[ndim - 1] = grd_size_from_end(x1, 1);
    return grd_plan_reads_as(plan, x1, as) && grd_plan_reads_as(plan, x2, as) && grd_plan_result(plan, grd_dims_from(sizes, ndim), dtype) &&
           grd_plan_computed_in(plan, as);
}

enum { ROWS = 16 }; /* a task computes the gradient for this many rows of one matrix of x1 */

/* Computes the gradient of x1 for groups [begin, end) of rows. A group is up to ROWS rows of one matrix. Groups are numbered matrix by matrix. */
static void gradient_of_rows(int64_t begin, int64_t end, void *context)
{
    const struct distances *d = context;
    const grd_tensor *grad = d->plan->in[0], *distance = d->plan->in[1], *x1 = d->plan->in[2], *x2 = d->plan->in[3];
    grd_tensor *result = d->plan->results[0];
    const int64_t rows = grd_size_from_end(x1, 2), others = grd_size_from_end(x2, 2), width = grd_size_from_end(x1, 1),
                  itemsize = x1->itemsize, groups = grd_ceil_div(rows, ROWS);
    const int last = result->ndim - 1;
    for (int64_t group = begin; group < end; group++) {
        const int64_t matrix = group / groups, row = group % groups * ROWS;
        grd_kernels->distance_gradient[x1->dtype](&(struct grd_distance_gradient){
            .rows = grd_least(ROWS, rows - row),
            .others = others,
            .width = width,
            .p = d->p,
            .x1 = grd_broadcast_matrix_at(x1, result, matrix) + row * width * itemsize,
            .x2 = grd_broadcast_matrix_at(x2, result, matrix),
            .grad = grd_broadcast_matrix_at(grad, result, matrix) + row * grad->strides[last - 1] * itemsize,
            .distances =
                d->is_rounded ? NULL : grd_broadcast_matrix_at(distance, result, matrix) + row * distance->strides[last - 1] * itemsize,
            .grad_strides = {grad->strides[last - 1], grad->strides[last]},
            .distance_strides = {distance->strides[last - 1], distance->strides[last]},
            .out = result->data + (matrix * rows + row) * width * itemsize,
        });
    }
}

void run_cdist_backward(const struct grd_plan *plan, grd_tensor *grad, grd_tensor *x1, grd_tensor *x2, double p, grd_tensor *cdist)
{
    const grd_tensor *to = plan->results[0];
    const int64_t rows = grd_size_from_end(x1, 2), width = grd_size_from_end(x1, 1),
                  cost = ROWS * (grd_size_from_end(x2, 2) + 1) * (width + 1);
    const bool is_half = x1->dtype != GRD_FLOAT32 && x1->dtype != GRD_FLOAT64;
    struct distances d = {.plan = plan, .p = p, .is_rounded = is_half && isinf(p)};
    (void)grad, (void)cdist;
    if (p == 0)
        memset(to->data, 0, (size_t)(to->numel * to->itemsize));
    else
        grd_parallel_for(0, to->numel / (rows * width) * grd_ceil_div(rows, ROWS), cost < GRAIN ? GRAIN / cost : 1, gradient_of_rows, &d);
}

grd_tensor *op_hidden_cdist_backward(grd_tensor *grad, grd_tensor *x1, grd_tensor *x2, double p, const char *compute_mode,
                                     grd_tensor *result)
{
    if (!grd_cdist_by_product(compute_mode, p, x1, x2))
        return grd_pending() ? grd_failed : grd_cdist_backward(grad, x1, x2, p, result);
    /* The gradient of row i of x1 is sum over j of ratio_ij (x1_i - x2_j), where ratio = grad / distance. Matrix products compute it. */
    grd_tensor *ratio = grd_quotient_or_zero(grad, result);
    return grd_sub(grd_mul(x1, grd_sum(ratio, .dim = grd_dims(-1), .keepdim = true)), grd_matmul(ratio, x2));
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

/* For pdist: computes the distances from each row in [begin, end) of x to all rows after it. */
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
    struct distances d = {.plan = plan, .p = p};
    const int64_t of_row = grd_greatest(1, self->sizes[0]) * grd_greatest(1, self->sizes[1]);
    grd_parallel_for(0, self->sizes[0] - 1, grd_greatest(1, GRAIN / of_row), distances_to_later_rows, &d);
}
