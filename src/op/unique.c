/* Distinct elements and slices: unique, unique_consecutive.
 *
 * None has a derivative, as in PyTorch: which of equal elements is taken would be arbitrary. So the parts these are made of record nothing. */
#include "gen/binary_kernels.h"
#include "gen/uses/op/unique.h"
#include "gradus/library.h"
#include "kernel/index.h"
#include "op/common.h"
#include "op/order.h"
#include "op/plan.h"

/* ---- Elements --------------------------------------------------------------------------------------------------------------- */

struct distinct {
    grd_tensor *sorted[2]; /* the elements in order, and where they were */
    int64_t *starts, runs;
};

static struct distinct *distinct_of(const struct grd_plan *p)
{
    return (struct distinct *)(uintptr_t)p->state;
}

bool plan_hidden_unique2(struct grd_plan *p, grd_tensor *self, bool sorted, bool return_inverse, bool return_counts)
{
    (void)sorted, (void)return_inverse, (void)return_counts; /* the check plans the results, always sorted */
    return grd_check_has_data(self) && grd_check_ordered("unique", (grd_dtype)self->dtype) && grd_plan_reads(p, self);
}

bool check_hidden_unique2(struct grd_plan *p, grd_tensor *self, bool sorted, bool return_inverse, bool return_counts)
{
    (void)sorted;
    struct distinct *d = distinct_of(p);
    op_sort(op_reshape(self, grd_dims(-1)), 0, false, true, d->sorted);
    d->starts = grd_pending() ? NULL : grd_pool_array(self->numel + 1, sizeof *d->starts);
    if (d->starts == NULL)
        return false;
    d->runs = grd_kernels->order[self->dtype]->runs(self->numel, d->sorted[0]->data, d->starts);
    return grd_plan_result(p, grd_dims(d->runs), (grd_dtype)self->dtype) &&
           grd_plan_result(p, return_inverse ? grd_sizes(self) : grd_dims(0), GRD_INT64) &&
           grd_plan_result(p, grd_dims(return_counts ? d->runs : 0), GRD_INT64);
}

void run_unique(const struct grd_plan *p)
{
    struct distinct *d = distinct_of(p);
    const grd_tensor *values = p->results[0], *inverse = p->results[1], *counts = p->results[2];
    const int64_t size = values->itemsize, step = (int64_t)sizeof *d->starts;
    grd_kernels->index->gather[grd_index_size(size)](d->runs, (char *const[]){values->data, d->sorted[0]->data, (char *)d->starts},
                                                     (const int64_t[]){size, 0, step}, &size);
    if (inverse->numel > 0)
        grd_kernels->index->number_runs(d->runs, d->starts, (const int64_t *)(const void *)d->sorted[1]->data,
                                        (int64_t *)(void *)inverse->data);
    grd_kernels->binary[GRD_INT64][GRD_BINARY_HIDDEN_SUB].block(
        counts->numel, (char *const[]){counts->data, (char *)(d->starts + 1), (char *)d->starts}, NULL);
}

/* ---- Slices and runs -------------------------------------------------------------------------------------------------------- */

/* Rows of a matrix in some order: the number of the run of equal rows that each is in, and how many rows each run has. */
struct runs {
    grd_tensor *numbers, *counts;
};

static struct runs runs_of(grd_tensor *rows)
{
    struct runs runs = {grd_failed, grd_failed};
    const int64_t n = rows->sizes[0];
    grd_tensor *begins = grd_zeros(grd_dims(n), .dtype = GRD_BOOL);
    if (n > 1 && rows->sizes[1] > 0) {
        grd_tensor *changes = grd_ne(grd_narrow(rows, 0, 1, n - 1), grd_narrow(rows, 0, 0, n - 1));
        grd_copy_(grd_narrow(begins, 0, 1, n - 1), grd_any(changes, .dim = grd_dims(1)));
    }
    runs.numbers = grd_cumsum(begins, 0);
    if (!grd_pending())
        runs.counts = grd_bincount(runs.numbers);
    return runs;
}

/* The order in which rows rise: from the last column to the first, each time keeping the order of equal ones. */
static grd_tensor *sorted_order(grd_tensor *rows)
{
    grd_tensor *order = grd_arange_end(grd_int(rows->sizes[0]));
    for (int64_t column = rows->sizes[1] - 1; column >= 0 && !grd_pending(); column--) {
        grd_tensor *keys = grd_index_select(grd_select(rows, 1, column), 0, order);
        order = grd_index_select(order, 0, grd_argsort(keys, .dim = 0, .stable = true));
    }
    return order;
}

/* Writes distinct slices of `self` along dim, in order or as runs of neighbours, with the run of each slice and the length of each run. */
static void distinct_slices(grd_tensor *self, int64_t dim, bool in_order, grd_tensor **ret)
{
    grd_tensor *moved = grd_movedim(self, grd_dims(dim), grd_dims(0));
    if (grd_pending())
        return;
    const int64_t n = moved->sizes[0];
    grd_tensor *rows = grd_reshape(moved, grd_dims(n, n > 0 ? moved->numel / n : 0));
    grd_tensor *order = grd_pending() ? grd_failed : in_order ? sorted_order(rows) : grd_arange_end(grd_int(n));
    if (grd_pending())
        return;
    const struct runs runs = runs_of(grd_index_select(rows, 0, order));
    grd_tensor *first = grd_sub(grd_cumsum(runs.counts, 0), runs.counts);
    grd_tensor *values = grd_index_select(moved, 0, grd_index_select(order, 0, first));
    grd_tensor *inverse = grd_scatter_(grd_empty_like(order), 0, order, runs.numbers);
    values = grd_movedim(values, grd_dims(0), grd_dims(dim));
    if (grd_pending())
        return;
    ret[0] = grd_new_detached(values); /* no view: what is recorded of a call is its result alone */
    ret[1] = inverse;
    ret[2] = runs.counts;
}

/* Wraps dim. A tensor without elements must be empty along dim alone. */
static bool check_slices(const grd_tensor *self, int64_t dim, int64_t *ret_dim)
{
    int64_t empty = 0;
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    if (!grd_wrap_dim(self, dim, ret_dim))
        return false;
    for (int64_t i = 0; i < self->ndim; i++)
        empty += self->sizes[i] == 0;
    if (self->sizes[*ret_dim] == 0)
        return empty == 1 || grd_raise(GRD_ERROR_RUNTIME, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return empty == 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
}

void op_unique_dim(grd_tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts, grd_tensor **ret)
{
    (void)sorted; /* they always are */
    (void)return_inverse;
    (void)return_counts;
    ret[0] = ret[1] = ret[2] = grd_failed;
    if (!grd_check_has_data(self) || !check_slices(self, dim, &dim) || !grd_check_ordered("unique_dim", (grd_dtype)self->dtype))
        return;
    distinct_slices(self, dim, true, ret);
}

void op_unique_consecutive(grd_tensor *self, bool return_inverse, bool return_counts, grd_scalar dim, grd_tensor **ret)
{
    const bool flat = dim.kind == GRD_SCALAR_NONE;
    int64_t along = 0;
    ret[0] = ret[1] = ret[2] = grd_failed;
    if (!grd_check_has_data(self) || !grd_check_ordered("unique", (grd_dtype)self->dtype) ||
        (!flat && !check_slices(self, grd_scalar_int64(dim), &along)))
        return;
    distinct_slices(flat ? grd_reshape(self, grd_dims(-1)) : self, along, false, ret);
    if (grd_pending() || !flat)
        return;
    ret[1] = return_inverse ? grd_reshape(ret[1], grd_sizes(self)) : grd_empty(grd_dims(0), .dtype = GRD_INT64);
    if (!return_counts)
        ret[2] = grd_empty(grd_dims(0), .dtype = GRD_INT64);
}

/* ---- Derivatives that PyTorch does not have ----------------------------------------------------------------------------------- */

grd_tensor *op_hidden_derivative_not_implemented(grd_tensor *grad, const char *name)
{
    (void)grad;
    return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented.", name);
}

grd_tensor *op_hidden_derivative_missing(grd_tensor *grad, const char *name)
{
    (void)grad;
    return grd_fail(GRD_ERROR_RUNTIME, "derivative for aten::%s is not implemented", name);
}
