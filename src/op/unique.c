/* Computes unique and unique_consecutive, which find the distinct elements of a tensor or the distinct slices along a dimension.
 *
 * As in PyTorch, these operators have no derivative, because it would depend on which of several equal elements is returned. Therefore autograd does
 * not record the operators that are called here. */
#include <string.h>

#include "gen/binary_kernels.h"
#include "gen/uses/op/unique.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/index.h"
#include "op/order.h"
#include "op/plan.h"
#include "op/checks.h"
#include "op/copy.h"
#include "op/sizes.h"

/* Describes the distinct rows that were found. A row is one element, or the elements of a slice, and equal rows are adjacent. */
struct distinct {
    const char *rows;
    const int64_t *places; /* index of each row in self, from which the inverse is computed; NULL if no inverse is wanted */
    int64_t size;          /* bytes of a row */
    const int64_t *starts; /* index of the first row of each run of equal rows; one more element at the end is the number of rows */
    /* Number of distinct rows. */
    int64_t runs;
};

static bool is_complex(const grd_tensor *t)
{
    return grd_category_of((grd_dtype)t->dtype) == GRD_CATEGORY_COMPLEX;
}

bool plan_distinct(struct grd_plan *p, grd_tensor *self, const char *name)
{
    return grd_check_has_data(self) && (is_complex(self) || grd_check_ordered(name, (grd_dtype)self->dtype)) && grd_plan_reads(p, self);
}

void run_distinct(const struct grd_plan *p)
{
    const struct distinct *d = (const struct distinct *)(const void *)p->state;
    const grd_tensor *values = p->results[0], *inverse = p->results[1], *counts = p->results[2];
    const int64_t itemsize = values->itemsize, step = (int64_t)sizeof *d->starts;
    char *const starts = (char *)(uintptr_t)d->starts;
    for (int64_t at = 0; at < d->size; at += itemsize)
        grd_kernels->index->gather[grd_index_size(itemsize)](d->runs,
                                                             (char *const[]){values->data + at, (char *)(uintptr_t)d->rows + at, starts},
                                                             (const int64_t[]){d->size, 0, step}, &d->size);
    if (inverse->numel > 0)
        grd_kernels->index->number_runs(d->runs, d->starts, d->places, (int64_t *)(void *)inverse->data);
    grd_kernels->binary[GRD_INT64][GRD_BINARY_HIDDEN_SUB].block(counts->numel, (char *const[]){counts->data, starts + step, starts}, NULL);
}

/* Returns the address of the elements of an int64 tensor. */
static const int64_t *int64s(const grd_tensor *t)
{
    return (const int64_t *)(const void *)t->data;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------- */

/* Returns the indices that sort the rows lexicographically. Rows are sorted stably by each column, from the last column to the first. */
static grd_tensor *sorted_order(grd_tensor *rows)
{
    grd_tensor *order = grd_arange_end(grd_int(rows->sizes[0]));
    for (int64_t column = rows->sizes[1] - 1; column >= 0 && !grd_pending(); column--) {
        grd_tensor *keys = grd_index_select(grd_select(rows, 1, column), 0, order);
        order = grd_index_select(order, 0, grd_argsort(keys, .dim = 0, .stable = true));
    }
    return order;
}

/* Returns t as n rows of `length` elements. A complex element becomes two real ones, so that rows are ordered by the real part first. */
static grd_tensor *as_rows(grd_tensor *t, int64_t n, int64_t length)
{
    grd_tensor *rows = grd_reshape(t, grd_dims(n, length));
    return is_complex(t) ? grd_reshape(grd_view_as_real(rows), grd_dims(n, 2 * length)) : rows;
}

/* Finds the distinct rows and describes them in the plan's state. Writes their number to *ret_runs. Returns false on an error. If `in_order`, all
 * rows are sorted first, otherwise only adjacent rows are compared. */
static bool find_rows(struct grd_plan *p, grd_tensor *rows, bool in_order, int64_t *ret_runs)
{
    if (grd_pending())
        return false;
    const int64_t n = rows->sizes[0];
    grd_tensor *places = in_order ? sorted_order(rows) : grd_arange_end(grd_int(n));
    rows = grd_index_select(rows, 0, places);
    grd_tensor *changes = grd_any(grd_ne(grd_slice(rows, .start = grd_int(1)), grd_slice(rows, .end = grd_int(-1))), .dim = grd_dims(1));
    grd_tensor *begins = grd_nonzero(grd_cat(grd_tensors(grd_ones(grd_dims(n > 0), .dtype = GRD_BOOL), changes)));
    grd_tensor *starts = grd_cat(grd_tensors(grd_reshape(begins, grd_dims(-1)), grd_full(grd_dims(1), grd_int(n))));
    if (grd_pending())
        return false;
    *ret_runs = starts->numel - 1;
    *(struct distinct *)(void *)p->state =
        (struct distinct){rows->data, int64s(places), rows->sizes[1] * rows->itemsize, int64s(starts), *ret_runs};
    return true;
}

/* ---- Elements --------------------------------------------------------------------------------------------------------------- */

/* Returns the elements of self in ascending order, in new memory, without their indices. Returns NULL, with the error raised, on failure. */
static const void *sorted_elements(grd_tensor *self)
{
    const grd_tensor *elements = grd_contiguous_as(self, GRD_DTYPE_NONE);
    const int64_t n = self->numel;
    void *to = grd_pool_array(n + 1, (size_t)self->itemsize), *spare = grd_pool_array(n + 1, (size_t)self->itemsize);
    return grd_pending() ? NULL : grd_kernels->order[self->dtype]->sort(n, elements->data, to, spare);
}

/* Finds the distinct elements of a real tensor and describes them in the plan's state. Writes their number to *ret_runs. If `in_order`, all elements
 * are sorted first, otherwise only adjacent elements are compared. If `inverse`, the original indices of the sorted elements are kept. Returns false
 * on an error. */
static bool find_real_elements(struct grd_plan *p, grd_tensor *self, bool in_order, bool inverse, int64_t *ret_runs)
{
    grd_tensor *ordered[2] = {grd_failed, grd_failed};
    const bool moves = in_order && inverse;
    if (moves)
        op_sort(op_reshape(self, grd_dims(-1)), 0, false, true, ordered);
    else if (inverse)
        ordered[1] = grd_arange_end(grd_int(self->numel));
    const void *elements = moves ? ordered[0]->data : in_order ? sorted_elements(self) : grd_contiguous(self)->data;
    int64_t *starts = grd_pending() ? NULL : grd_pool_array(self->numel + 1, sizeof *starts);
    if (starts == NULL)
        return false;
    *ret_runs = grd_kernels->order[self->dtype]->runs(self->numel, elements, starts);
    *(struct distinct *)(void *)p->state =
        (struct distinct){elements, inverse ? int64s(ordered[1]) : NULL, self->itemsize, starts, *ret_runs};
    return true;
}

/* Finds the distinct elements, and plans the three results: values, inverse and counts. If `in_order`, all elements are sorted first, otherwise only
 * adjacent elements are compared. Returns false, with the error raised, on failure. */
static bool find_elements(struct grd_plan *p, grd_tensor *self, bool in_order, bool inverse, bool counts)
{
    int64_t runs = 0;
    const bool found = is_complex(self) ? find_rows(p, as_rows(self, self->numel, 1), in_order, &runs)
                                        : find_real_elements(p, self, in_order, inverse, &runs);
    if (!found)
        return false;
    return grd_plan_result(p, grd_dims(runs), (grd_dtype)self->dtype) &&
           grd_plan_result(p, inverse ? grd_sizes(self) : grd_dims(0), GRD_INT64) &&
           grd_plan_result(p, grd_dims(counts ? runs : 0), GRD_INT64);
}

bool check_unique2(struct grd_plan *p, grd_tensor *self, bool sorted, bool return_inverse, bool return_counts)
{
    (void)sorted; /* the result is always sorted */
    return find_elements(p, self, true, return_inverse, return_counts);
}

/* ---- Slices ----------------------------------------------------------------------------------------------------------------- */

/* Finds the distinct slices along dim, and plans the results. If `in_order`, all slices are sorted first, otherwise only adjacent slices are
 * compared. Returns false, with the error raised, on failure. */
static bool find_slices(struct grd_plan *p, grd_tensor *self, int64_t dim, bool in_order)
{
    const int64_t n = self->sizes[dim], length = n > 0 ? self->numel / n : 0;
    int64_t runs = 0;
    grd_tensor *rows = as_rows(grd_movedim(self, grd_dims(dim), grd_dims(0)), n, length);
    if (!find_rows(p, rows, in_order, &runs))
        return false;
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[dim] = 1;
    grd_shape_contiguous_strides(grd_dims_from(sizes, self->ndim), strides);
    sizes[dim] = runs;
    strides[dim] = length; /* slices are contiguous, and one follows the other */
    return grd_plan_strided(p, grd_dims_from(sizes, self->ndim), strides, (grd_dtype)self->dtype) &&
           grd_plan_result(p, grd_dims(n), GRD_INT64) && grd_plan_result(p, grd_dims(runs), GRD_INT64);
}

/* Writes dim to *ret_dim, with a negative dim converted to the dimension's number. Returns false with an error if dim is out of range or if a
 * dimension other than dim is empty (RuntimeError). */
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

bool plan_unique_dim(struct grd_plan *p, grd_tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts)
{
    /* All three results are always computed, and the slices are always sorted. */
    (void)sorted, (void)return_inverse, (void)return_counts;
    return check_slices(self, dim, &dim) && plan_distinct(p, self, "unique_dim");
}

bool check_unique_dim(struct grd_plan *p, grd_tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts)
{
    (void)sorted, (void)return_inverse, (void)return_counts;
    return grd_wrap_dim(self, dim, &dim) && find_slices(p, self, dim, true);
}

bool check_unique_consecutive(struct grd_plan *p, grd_tensor *self, bool return_inverse, bool return_counts, grd_scalar dim)
{
    int64_t along;
    if (dim.kind != GRD_SCALAR_NONE)
        return check_slices(self, grd_scalar_int64(dim), &along) && find_slices(p, self, along, false);
    return find_elements(p, self, false, return_inverse, return_counts);
}
