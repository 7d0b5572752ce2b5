/* Converts gradients to the shape, dtype and device of the output that they belong to, and decides whether a gradient may be written in place.
 * Invariant: a gradient that grd_fit_gradient returns has the shape, dtype and device of its output. */
#include "autograd/gradient.h"
#include "autograd/node.h"
#include "base/text.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/gradient.h"

bool grd_is_exclusive(const grd_tensor *t)
{
    if (!grd_object_unique(t) || t->autograd != NULL || t->storage->release != NULL)
        return false;
    if (!grd_has(t, GRD_FLAG_CONTIGUOUS) && !grd_shape_is_dense(grd_dims_from(t->sizes, t->ndim), t->strides))
        return false;
    if (t->base == NULL)
        return grd_object_unique(t->storage);
    return grd_object_owned_as(t->base, GRD_VIEW_WEIGHT) && t->base->autograd == NULL && grd_object_unique(t->storage);
}

/* True if the output's shape broadcasts to the shape of `grad`. */
static bool is_broadcast_of(const struct grd_output *output, const grd_tensor *grad)
{
    int extra = grad->ndim - output->ndim;
    for (int i = 0; extra >= 0 && i < output->ndim; i++)
        if (output->sizes[i] != grad->sizes[extra + i] && output->sizes[i] != 1)
            return false;
    return extra >= 0;
}

/* Undoes a broadcast: returns the sum of `grad` over the dimensions that `output` lacks or in which `output` has size 1. The sum has the shape of
 * `output`. */
static grd_tensor *unbroadcast(const struct grd_output *output, grd_tensor *grad)
{
    int64_t dims[GRD_MAX_DIMS];
    int n = 0, extra = grad->ndim - output->ndim;
    for (int i = 0; i < grad->ndim; i++)
        if (i < extra || output->sizes[i - extra] != grad->sizes[i])
            dims[n++] = i;
    if (n > 0)
        grad = grd_sum(grad, .dim = grd_dims_from(dims, n), .keepdim = true);
    return extra > 0 && !grd_pending() ? grd_reshape(grad, grd_dims_from(output->sizes, output->ndim)) : grad;
}

/* True if the gradient can be converted to fit the output. False, with RuntimeError raised, otherwise. `same_shape`: the shapes are equal; `moves`:
 * the devices are different. */
static bool can_adapt(const struct grd_output *output, const grd_tensor *grad, bool same_shape, bool moves, const char *node_name,
                      int64_t index)
{
    char got[256], expected[256];
    if (!same_shape && !is_broadcast_of(output, grad))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Function %s returned an invalid gradient at index %lld - got %s but expected shape compatible with %s", node_name,
                         (long long)index, grd_format_int64s(got, sizeof got, grad->sizes, grad->ndim),
                         grd_format_int64s(expected, sizeof expected, output->sizes, output->ndim));
    if (!grd_dtype_is_inexact(grad->dtype))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Function %s returned an invalid gradient at index %lld - expected a floating point or complex dtype but got %s",
                         node_name, (long long)index, grd_dtype_name(grad->dtype));
    /* A zero-dimensional CPU tensor may be combined with tensors of any device, so its gradient may be on another device. */
    return !moves || output->ndim == 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "Function %s returned an invalid gradient at index %lld - expected device %s but got %s", node_name,
                     (long long)index, grd_device_text((grd_device){output->device, output->device_index}).chars,
                     grd_device_text(grd_device_of(grad)).chars);
}

grd_tensor *grd_adapt_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index)
{
    const grd_dims sizes = grd_dims_from(output->sizes, output->ndim);
    const grd_device device = {output->device, output->device_index};
    const bool same_shape = grd_dims_equal(grd_sizes(grad), sizes);
    const bool moves = grad->device != device.type || grad->device_index != device.index;
    if (!can_adapt(output, grad, same_shape, moves, node_name, index))
        return NULL;
    if (!same_shape)
        grad = unbroadcast(output, grad);
    if (!grd_pending() && (moves || grad->dtype != output->dtype))
        grad = grd_to(grad, .dtype = (grd_dtype)output->dtype, .device = device);
    return grd_pending() ? NULL : grad;
}
