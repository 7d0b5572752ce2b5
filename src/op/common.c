/* Helpers of the operator files: see common.h. No operator lives here, and nothing here dispatches. */
#include "op/common.h"

#include <string.h>

#include "op/copy.h"

/* ---- Checks ------------------------------------------------------------------------------------------------------------- */

static bool check_device(grd_device a, grd_device b)
{
    return (a.type == b.type && a.index == b.index) || grd_raise_devices(a, b);
}

bool grd_check_same_device(grd_tensors tensors)
{
    const grd_tensor *first = NULL;
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (t == NULL)
            continue;
        if (first == NULL)
            first = t;
        else if (GRD_UNLIKELY(t->device != first->device || t->device_index != first->device_index))
            return check_device(grd_device_of(first), grd_device_of(t));
    }
    return true;
}

bool grd_check_has_data(const grd_tensor *t)
{
    return !grd_is_meta(t) || grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "not available on the meta device");
}

bool grd_raise_no_kernel(const char *name, grd_dtype dtype)
{
    return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", name + strspn(name, "_"),
                     grd_dtype_type_name(dtype));
}

bool grd_same_sizes(const grd_tensor *t, grd_dims sizes)
{
    return t->ndim == sizes.n && memcmp(t->sizes, sizes.data, (size_t)sizes.n * sizeof *sizes.data) == 0;
}

/* ---- Where the result goes --------------------------------------------------------------------------------------------- */

bool grd_out_check(const grd_tensor *out, grd_dtype dtype, grd_device device)
{
    if (out == NULL)
        return true;
    return check_device(device, grd_device_of(out)) && grd_check_castable(dtype, out->dtype) && grd_check_no_internal_overlap(out);
}

bool grd_out_check_inputs(const grd_tensor *out, grd_tensors inputs)
{
    for (int64_t i = 0; i < inputs.n && out != NULL; i++)
        if (inputs.data[i] != NULL && !grd_check_no_partial_overlap(out, inputs.data[i]))
            return false;
    return true;
}

bool grd_out_resize(grd_tensor *out, grd_dims sizes, grd_dtype dtype, grd_device device)
{
    return grd_out_check(out, dtype, device) && (grd_same_sizes(out, sizes) || grd_resize_out(out, sizes));
}

grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result)
{
    if (grd_pending())
        return grd_failed;
    if (out == NULL || out == result)
        return result;
    if (!grd_out_resize(out, grd_sizes(result), (grd_dtype)result->dtype, grd_device_of(result)))
        return grd_failed;
    return grd_copy_elements(out, result) ? out : grd_failed;
}

/* ---- Copies --------------------------------------------------------------------------------------------------------------- */

static bool is_whole(const grd_tensor *to, const grd_tensor *from)
{
    return to->ndim == from->ndim && memcmp(to->sizes, from->sizes, (size_t)to->ndim * sizeof *to->sizes) == 0;
}

static bool copy_broadcast(grd_tensor *to, const grd_tensor *from)
{
    int64_t strides_to[GRD_MAX_DIMS], strides_from[GRD_MAX_DIMS];
    for (int64_t i = 0; i < to->ndim; i++) {
        int64_t own = i - (to->ndim - from->ndim);
        strides_to[i] = grd_byte_stride(to, i);
        strides_from[i] = own < 0 || from->sizes[own] == 1 ? 0 : grd_byte_stride(from, own);
    }
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(to), 2, (char *const[]){to->data, from->data}, (const int64_t *const[]){strides_to, strides_from});
    grd_iter_run(&it, grd_cast_kernel(from->dtype, to->dtype), NULL);
    return true;
}

/* What is written may be read later where memory is shared: then a copy is taken first. */
static bool needs_copy_first(const grd_tensor *to, const grd_tensor *from)
{
    if (to->storage != from->storage && (to->storage->release == NULL || from->storage->release == NULL))
        return false;
    return to->data != from->data || to->dtype != from->dtype || !is_whole(to, from) ||
           memcmp(to->strides, from->strides, (size_t)to->ndim * sizeof *to->strides) != 0;
}

bool grd_copy_elements(grd_tensor *to, const grd_tensor *from)
{
    if (grd_is_meta(to) || to->numel == 0)
        return true;
    if (grd_cast_kernel(from->dtype, to->dtype) == NULL)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"copy_\" not implemented for '%s' to '%s'", grd_dtype_type_name(from->dtype),
                         grd_dtype_type_name(to->dtype));
    if (needs_copy_first(to, from)) {
        from = grd_clone_contiguous(from, from->dtype);
        if (grd_pending())
            return false;
    }
    if (!is_whole(to, from))
        return copy_broadcast(to, from);
    grd_copy_strided(to, from);
    return true;
}

grd_tensor *grd_clone_contiguous(const grd_tensor *t, grd_dtype dtype)
{
    grd_tensor *copy = grd_new(grd_sizes(t), dtype == GRD_DTYPE_NONE ? (grd_dtype)t->dtype : dtype, grd_device_of(t));
    if (grd_pending())
        return grd_failed;
    return grd_copy_elements(copy, t) ? copy : grd_failed;
}

grd_tensor *grd_contiguous_as(grd_tensor *t, grd_dtype dtype)
{
    if (grd_has(t, GRD_FLAG_CONTIGUOUS) && (dtype == GRD_DTYPE_NONE || t->dtype == dtype))
        return t;
    return grd_clone_contiguous(t, dtype);
}
