/* Implements repeat, tile and repeat_interleave. */
#include <string.h>

#include "gen/uses/op/repeat.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/plan.h"
#include "kernel/index.h"
#include "kernel/table.h"

/* Returns a copy of self that is repeated along each dimension. self is expanded with a new dimension of size repeats[i] before each dimension i, the
 * expanded view is copied to a contiguous tensor, and the new dimensions are merged. */
grd_tensor *op_repeat(grd_tensor *self, grd_dims repeats)
{
    int64_t raised[2 * GRD_MAX_DIMS], expanded[2 * GRD_MAX_DIMS], result[GRD_MAX_DIMS], n = 0;
    if (repeats.n < self->ndim)
        return grd_fail(GRD_ERROR_RUNTIME, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    if (!grd_check_ndim(repeats.n))
        return grd_failed;
    int64_t numel;
    for (int64_t i = 0; i < repeats.n; i++) {
        int64_t dim = i - (repeats.n - self->ndim), size = dim >= 0 ? self->sizes[dim] : 1, times = repeats.data[i];
        if (__builtin_mul_overflow(size, times, &result[i]))
            result[i] = times < 0 ? -1 : INT64_MAX;
        if (times < 0 && result[i] >= 0)
            result[i] = -1;
        if (times != 1) {
            raised[n] = 1;
            expanded[n++] = times;
        }
        if (dim >= 0) {
            raised[n] = size;
            expanded[n++] = size;
        }
    }
    if (!grd_shape_numel(grd_dims_from(result, repeats.n), &numel))
        return grd_failed;
    grd_tensor *view = grd_expand(grd_reshape(self, grd_dims_from(raised, n)), grd_dims_from(expanded, n));
    return grd_unsafe_view(grd_clone(view, .memory_format = "contiguous"), grd_dims_from(result, repeats.n));
}

grd_dims grd_repeat_sizes(grd_dims repeats, grd_dims sizes, bool once)
{
    int64_t *const split = grd_pool_array(2 * repeats.n + 1, sizeof *split), n = 0;
    for (int64_t i = 0; split != NULL && i < repeats.n; i++) {
        const int64_t dim = i - (repeats.n - sizes.n);
        if (repeats.data[i] != 1)
            split[n++] = once ? 1 : repeats.data[i];
        if (dim >= 0)
            split[n++] = sizes.data[dim];
    }
    return grd_dims_from(split, n);
}

grd_tensor *op_tile(grd_tensor *self, grd_dims dims)
{
    int64_t repeats[GRD_MAX_DIMS];
    int64_t missing = (int64_t)self->ndim - dims.n;
    if (missing <= 0)
        return grd_repeat(self, dims);
    for (int64_t i = 0; i < self->ndim; i++)
        repeats[i] = i < missing ? 1 : dims.data[i - missing];
    return grd_repeat(self, grd_dims_from(repeats, self->ndim));
}

/* ---- repeat_interleave --------------------------------------------------------------------------------------------------------------- */

bool plan_repeat_interleave_indices(struct grd_plan *p, grd_tensor *repeats, grd_scalar output_size)
{
    (void)output_size;
    if (!grd_check_has_data(repeats))
        return false;
    if (repeats->dtype != GRD_INT64 && repeats->dtype != GRD_INT32)
        return grd_raise_no_kernel("repeat_interleave", (grd_dtype)repeats->dtype);
    if (repeats->ndim != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "repeat_interleave only accept 1D vector as repeat");
    return grd_plan_reads_as(p, repeats, GRD_INT64);
}

bool check_repeat_interleave_indices(struct grd_plan *p, grd_tensor *repeats, grd_scalar output_size)
{
    const int64_t total = grd_kernels->index->total(repeats->numel, (const int64_t *)(const void *)p->in[0]->data);
    if (total < 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         total == -1 ? "repeats can not be negative" : "the repeats add up to more than a tensor can hold");
    if (output_size.kind != GRD_SCALAR_NONE && grd_scalar_int64(output_size) != total)
        return grd_raise(GRD_ERROR_RUNTIME, "allocated size does not match required size");
    return grd_plan_result(p, grd_dims(total), GRD_INT64);
}

void run_repeat_interleave_indices(const struct grd_plan *p, grd_tensor *repeats, grd_scalar output_size)
{
    (void)output_size;
    grd_kernels->index->repeat(repeats->numel, (const int64_t *)(const void *)p->in[0]->data, (int64_t *)(void *)p->results[0]->data);
}

/* Sets *ret_self to the tensor whose elements are repeated, and *ret_dim to the dim along which they are repeated. If `dim` is None, *ret_self is
 * `self` flattened to one dimension, and *ret_dim is 0. Otherwise *ret_self is `self` with at least one dimension, and *ret_dim is `dim` counted from
 * the first dimension. Returns false, with an error, if `dim` is out of range. */
static bool repeated(grd_tensor *self, grd_scalar dim, grd_tensor **ret_self, int64_t *ret_dim)
{
    const bool merges = dim.kind == GRD_SCALAR_NONE;
    *ret_self = merges ? grd_reshape(self, grd_dims(-1)) : grd_atleast_1d(self);
    return !grd_pending() && grd_wrap_dim(*ret_self, merges ? 0 : grd_scalar_int64(dim), ret_dim);
}

grd_tensor *op_repeat_interleave(grd_tensor *self, int64_t repeats, grd_scalar dim, grd_scalar output_size)
{
    int64_t along, total, sizes[GRD_MAX_DIMS + 1];
    if (repeats < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Repeats must be non-negative");
    if (!repeated(self, dim, &self, &along))
        return grd_failed;
    if (__builtin_mul_overflow(self->sizes[along], repeats, &total))
        return grd_fail(GRD_ERROR_RUNTIME, "the repeats add up to more than a tensor can hold");
    if (output_size.kind != GRD_SCALAR_NONE && grd_scalar_int64(output_size) != total)
        return grd_fail(GRD_ERROR_RUNTIME, "allocated size does not match required size");
    for (int64_t i = 0; i <= self->ndim; i++)
        sizes[i] = i == along + 1 ? repeats : -1;
    grd_tensor *wide = grd_expand(grd_unsqueeze(self, along + 1), grd_dims_from(sizes, self->ndim + 1));
    return grd_flatten(grd_clone(wide, .memory_format = "contiguous"), .start_dim = along, .end_dim = along + 1);
}

grd_tensor *op_repeat_interleave_each(grd_tensor *self, grd_tensor *repeats, grd_scalar dim, grd_scalar output_size)
{
    int64_t along;
    if (!repeated(self, dim, &self, &along))
        return grd_failed;
    if (repeats->ndim == 0 || (repeats->ndim == 1 && repeats->numel == 1))
        repeats = grd_expand(grd_reshape(repeats, grd_dims(1)), grd_dims(self->sizes[along]));
    if (!grd_pending() && repeats->ndim == 1 && repeats->numel != self->sizes[along])
        grd_raise(GRD_ERROR_RUNTIME,
                  "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and input.size(%lld) = %lld",
                  (long long)repeats->numel, (long long)along, (long long)self->sizes[along]);
    return grd_pending() ? grd_failed : grd_index_select(self, along, grd_repeat_interleave_indices(repeats, .output_size = output_size));
}
