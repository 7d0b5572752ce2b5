/* Implements composite.h: out=, in-place calls, strides and value checks of composites, which are operators made of calls of other operators. */
#include "op/composite.h"

#include <stdio.h>
#include <string.h>

#include "base/object.h"
#include "core/given.h"
#include "core/iter.h"
#include "core/new.h"
#include "core/resize.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/op/composite.h"
#include "gradus/library.h"
#include "op/checks.h"
#include "op/dtypes.h"
#include "op/out.h"
#include "op/sizes.h"

static bool is_recording(void)
{
    return grd_grad_enabled() && (grd_thread.exclude >> GRD_KEY_AUTOGRAD & 1) == 0;
}

bool grd_composite_is_recorded(const grd_tensor *t)
{
    return is_recording() && grd_requires_grad(t);
}

static bool check_gradient(const grd_tensor *out, const grd_tensor *value)
{
    return !is_recording() || (!grd_requires_grad(value) && !grd_requires_grad(out)) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                     "requires grad.");
}

static bool check_out(const grd_tensor *out, const grd_tensor *value)
{
    return check_gradient(out, value) && grd_out_check(out, (grd_dtype)value->dtype, grd_device_of(value));
}

/* Returns `value`, or a copy of it if `out` has the same storage. Without the copy, writing to `out` could overwrite elements of `value` before
 * they are read. */
static grd_tensor *copied_from_out(const grd_tensor *out, grd_tensor *value)
{
    return out->storage == value->storage ? grd_clone(value) : value;
}

/* Warns, as PyTorch does, that a non-empty `out` is resized. An operator without tensor inputs warns only if it computes the length of its result,
 * as arange does. */
static bool warn_resized(const grd_op *op, grd_tensors inputs, const grd_tensor *out, const grd_tensor *result)
{
    char text[640];
    if (inputs.n > 0)
        return grd_warn_resized(out, grd_sizes(result));
    if (op->fills != GRD_FILLS_COMPUTED || out->numel == 0 || out->numel == result->numel)
        return true;
    const long long n = (long long)result->numel;
    snprintf(text, sizeof text,
             "The number of elements in the out tensor of shape %s is %lld which does not match the computed number of elements %lld. Note "
             "that this may "
             "occur as a result of rounding error. The out tensor will be resized to a tensor of shape (%lld,).",
             grd_list_text(grd_sizes(out)), (long long)out->numel, n, n);
    return grd_warn(text);
}

/* Resizes `out` to the sizes of `value` if their sizes differ, copies `value` to `out` and returns `out`. Returns grd_failed on an error. */
static grd_tensor *fill_out(grd_tensor *out, grd_tensor *value)
{
    value = copied_from_out(out, value);
    const bool fits = !grd_pending() && (grd_same_sizes(out, grd_sizes(value)) || grd_resize_like(out, grd_sizes(value), value->strides));
    return fits ? grd_copy_(out, value) : grd_failed;
}

grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self)
{
    return out != NULL && out == self && grd_composite_is_recorded(self) ? grd_clone(self) : self;
}

grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value)
{
    if (grd_pending() || out == NULL || out == value)
        return grd_pending() ? grd_failed : value;
    if (out != self)
        return (self == NULL || grd_check_no_partial_overlap(out, self)) && check_out(out, value) && grd_warn_resized(out, grd_sizes(value))
                   ? fill_out(out, value)
                   : grd_failed;
    const bool fits = grd_out_check(out, (grd_dtype)value->dtype, grd_device_of(value)) && grd_check_inplace_shape(out, grd_sizes(value));
    return fits ? grd_copy_(out, copied_from_out(out, value)) : grd_failed;
}

/* Returns `value` if it has the given strides, otherwise a copy with these strides. */
static grd_tensor *with_strides(grd_tensor *value, const int64_t *strides)
{
    if (grd_pending())
        return grd_failed;
    if (value->numel == 0 || memcmp(value->strides, strides, (size_t)value->ndim * sizeof *strides) == 0)
        return value;
    return grd_hidden_restrided(value, grd_dims_from(strides, value->ndim));
}

grd_tensor *grd_composite_contiguous(grd_tensor *value)
{
    int64_t strides[GRD_MAX_DIMS];
    grd_shape_contiguous_strides(grd_sizes(value), strides);
    return with_strides(value, strides);
}

grd_tensor *grd_composite_elementwise(grd_tensor *value, grd_tensors inputs)
{
    struct grd_planned planned;
    if (grd_pending() || !grd_iter_plan_result(inputs, (grd_dtype)value->dtype, &planned))
        return grd_failed;
    return planned.strided ? with_strides(value, planned.strides) : grd_composite_contiguous(value);
}

grd_tensor *grd_composite_suggested(grd_tensor *value, const grd_tensor *like)
{
    int64_t strides[GRD_MAX_DIMS];
    if (grd_pending())
        return grd_failed;
    const bool channels_last = grd_shape_suggests_channels_last(grd_sizes(like), like->strides);
    (channels_last ? grd_shape_channels_last_strides : grd_shape_contiguous_strides)(grd_sizes(value), strides);
    return with_strides(value, strides);
}

grd_tensor *grd_composite_like(grd_tensor *value, const grd_tensor *like)
{
    int64_t strides[GRD_MAX_DIMS];
    if (grd_shape_is_dense(grd_sizes(like), like->strides))
        return with_strides(value, like->strides);
    grd_shape_dense_strides(grd_sizes(like), like->strides, strides);
    return with_strides(value, strides);
}

grd_tensor *grd_composite_channels_last(grd_tensor *t)
{
    int64_t order[GRD_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++)
        order[i] = i == 0 ? 0 : i + 1 < t->ndim ? i + 1 : 1;
    return grd_permute(t, grd_dims_from(order, t->ndim));
}

bool grd_composite_has_values(const grd_tensor *t)
{
    return !grd_pending() && !grd_is_meta(t) && t->numel > 0;
}

bool grd_composite_extremes(grd_tensor *t, double *ret_least, double *ret_largest)
{
    t = grd_physical(t); /* under vmap, the tensor that holds all samples, so that the elements of all samples are read */
    if (!grd_composite_has_values(t))
        return false;
    *ret_least = grd_item_double(grd_amin(t));
    if (ret_largest != NULL)
        *ret_largest = grd_item_double(grd_amax(t));
    return !grd_pending();
}

bool grd_composite_within(grd_tensor *t, double low, double high)
{
    double least, largest;
    return !grd_composite_extremes(t, &least, &largest) || (least >= low && largest <= high);
}

grd_tensor *grd_composite_broadcast(grd_tensor *t, const grd_tensor *other)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    if (grd_pending() || !grd_shape_broadcast(grd_sizes(t), grd_sizes(other), sizes, &n))
        return grd_failed;
    return grd_same_sizes(t, grd_dims_from(sizes, n)) ? t : grd_expand(t, grd_dims_from(sizes, n));
}

grd_tensor *grd_composite_along(grd_tensor *vector, int64_t ndim, int64_t dim)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (vector == NULL || grd_pending())
        return vector;
    for (int64_t i = 0; i < ndim; i++)
        sizes[i] = i == dim ? vector->numel : 1;
    return grd_reshape(vector, grd_dims_from(sizes, ndim));
}

grd_tensor *grd_composite_requiring(grd_tensor *t, bool requires_grad)
{
    if (!grd_pending() && requires_grad && grd_dtype_is_integral((grd_dtype)t->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
    if (!grd_pending() && requires_grad)
        grd_mark_requires_grad(t, true);
    return grd_pending() ? grd_failed : t;
}

/* Raises RuntimeError and returns false if `out` partly overlaps an input, because writing could then overwrite elements of the input before they
 * are read. `out` may be one of the inputs if it already has the sizes of the result. */
static bool check_inputs(grd_tensors inputs, const grd_tensor *out, const grd_tensor *result)
{
    for (int64_t i = 0; i < inputs.n; i++) {
        const grd_tensor *input = inputs.data[i];
        const bool same = input == out && grd_same_sizes(out, grd_sizes(result));
        if (input != NULL && !same && !(input == out ? grd_check_no_overlap(out, input) : grd_check_no_partial_overlap(out, input)))
            return false;
    }
    return true;
}

static bool check_outs(const grd_op *op, grd_tensors inputs, grd_tensors outs, grd_tensors results)
{
    if (!grd_is_tensor_list(outs) || !grd_is_tensor_list(results))
        return grd_raise(GRD_ERROR_TYPE, "outs and results must be lists of tensors, without NULL");
    if (outs.n != results.n)
        return grd_raise(GRD_ERROR_TYPE, "%lld tensors were given for %lld results", (long long)outs.n, (long long)results.n);
    for (int64_t i = 0; i < inputs.n; i++)
        if (!grd_given_or_null(inputs.data[i], op->name, "inputs"))
            return false;
    for (int64_t i = 0; i < outs.n; i++)
        if (!grd_given(outs.data[i], op->name, "outs") || !grd_given(results.data[i], op->name, "results"))
            return false;
    for (int64_t i = 0; i < outs.n; i++)
        if (!grd_check_writable(op, outs.data[i]) || !grd_check_writable(op, results.data[i]) ||
            !check_gradient(outs.data[i], results.data[i]) ||
            !grd_check_out_dtype(op, i, outs.data[i], (grd_dtype)results.data[i]->dtype) ||
            !grd_out_check(outs.data[i], (grd_dtype)results.data[i]->dtype, grd_device_of(results.data[i])) ||
            !check_inputs(inputs, outs.data[i], results.data[i]))
            return false;
    return true;
}

bool grd_write_results(const grd_op *op, grd_tensors inputs, grd_tensors outs, grd_tensors results)
{
    if (grd_pending())
        return false;
    if (op == NULL)
        return grd_raise(GRD_ERROR_TYPE, "an operator is required, not NULL");
    const int64_t mark = grd_pool_mark();
    bool ok = check_outs(op, inputs, outs, results);
    for (int64_t i = 0; i < outs.n && ok; i++)
        ok = warn_resized(op, inputs, outs.data[i], results.data[i]);
    for (int64_t i = 0; i < outs.n && ok; i++) {
        grd_tensor *out = outs.data[i], *value = results.data[i];
        if (out->numel == value->numel && op->fills != GRD_FILLS_NOT)
            value = grd_reshape(value, grd_sizes(out));
        ok = out == value || !grd_is_failed(fill_out(out, value));
    }
    grd_pool_release(mark);
    if (!ok)
        grd_error_add_context(op->name);
    return ok;
}

grd_tensor *grd_fold_batch(grd_tensor *t, grd_dims batch)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t rows = t->sizes[t->ndim - 2], columns = t->sizes[t->ndim - 1];
    memcpy(sizes, batch.data, (size_t)batch.n * sizeof *sizes);
    sizes[batch.n] = rows;
    sizes[batch.n + 1] = columns;
    grd_tensor *expanded = grd_expand(t, grd_dims_from(sizes, batch.n + 2));
    return grd_reshape(expanded, grd_dims(grd_sizes_product(batch.data, batch.n), rows, columns));
}
