/* Helpers of the operator files: see common.h. No operator lives here, and nothing here dispatches. */
#include "op/common.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/object.h"
#include "base/text.h"
#include "op/copy.h"

enum { LIST_CHARS = 1024 };

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
    if (grd_is_batch(t))
        return grd_raise_batch_data();
    return !grd_is_meta(t) || grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "not available on the meta device");
}

bool grd_raise_no_kernel(const char *name, grd_dtype dtype)
{
    static const char special[] = "special_"; /* PyTorch's names of kernels leave it out. */
    name += strspn(name, "_");
    name += strncmp(name, special, sizeof special - 1) == 0 ? sizeof special - 1 : 0;
    return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", name, grd_dtype_type_name(dtype));
}

const char *grd_list_text(grd_dims list)
{
    char *text = grd_pool_alloc(LIST_CHARS);
    return text != NULL ? grd_format_int64s(text, LIST_CHARS, list.data, list.n) : "[]";
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

bool grd_out_resize(grd_tensor *out, const grd_tensor *result)
{
    const grd_dims sizes = grd_sizes(result);
    return grd_out_check(out, (grd_dtype)result->dtype, grd_device_of(result)) &&
           (grd_same_sizes(out, sizes) || grd_resize_out(out, sizes, result->strides));
}

grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result)
{
    if (grd_pending())
        return grd_failed;
    if (out == NULL || out == result)
        return result;
    if (!grd_out_resize(out, result))
        return grd_failed;
    return grd_copy_elements(out, result) ? out : grd_failed;
}

/* ---- Dtypes --------------------------------------------------------------------------------------------------------------- */

const struct grd_limits grd_limits[GRD_DTYPE_COUNT] = {
    [GRD_BOOL] = {"bool", 1, 1},
    [GRD_UINT8] = {"unsigned char", 8, UINT8_MAX},
    [GRD_INT8] = {"signed char", 7, INT8_MAX},
    [GRD_UINT16] = {"unsigned short", 16, UINT16_MAX},
    [GRD_INT16] = {"short", 15, INT16_MAX},
    [GRD_UINT32] = {"unsigned int", 32, UINT32_MAX},
    [GRD_INT32] = {"int", 31, INT32_MAX},
    [GRD_UINT64] = {"unsigned long", 64, (double)UINT64_MAX},
    [GRD_INT64] = {"long", 63, (double)INT64_MAX},
    [GRD_FLOAT16] = {"c10::Half", 11, 65504},
    [GRD_BFLOAT16] = {"c10::BFloat16", 8, 0x1.fep127},
    [GRD_FLOAT32] = {"float", FLT_MANT_DIG, FLT_MAX},
    [GRD_FLOAT64] = {"double", DBL_MANT_DIG, DBL_MAX},
    [GRD_COMPLEX32] = {"c10::complex<c10::Half>", 11, 65504},
    [GRD_COMPLEX64] = {"c10::complex<float>", FLT_MANT_DIG, FLT_MAX},
    [GRD_COMPLEX128] = {"c10::complex<double>", DBL_MANT_DIG, DBL_MAX},
};

double grd_dtype_epsilon(grd_dtype dtype)
{
    return ldexp(1, 1 - grd_limits[dtype].digits);
}

void grd_int64_bounds(grd_dtype dtype, int64_t *ret_low, int64_t *ret_high)
{
    const struct grd_limits *limits = &grd_limits[dtype];
    *ret_high = limits->largest >= 0x1p63 ? INT64_MAX : (int64_t)limits->largest;
    const bool has_sign = dtype != GRD_BOOL && !grd_dtype_is_unsigned(dtype);
    *ret_low = !has_sign ? 0 : limits->largest >= 0x1p63 ? INT64_MIN : -*ret_high - grd_dtype_is_integral(dtype);
}

/* ---- Copies --------------------------------------------------------------------------------------------------------------- */

grd_tensor grd_spread(const grd_tensor *t, const grd_tensor *to, int64_t *strides)
{
    grd_tensor part = *t;
    for (int64_t i = to->ndim - 1, own = (int64_t)t->ndim - 1; i >= 0; i--, own--)
        strides[i] = own < 0 || t->sizes[own] == 1 ? 0 : t->strides[own];
    part.flags = 0;
    part.ndim = to->ndim;
    part.sizes = to->sizes;
    part.strides = strides;
    part.numel = to->numel;
    return part;
}

bool grd_is_same_view(const grd_tensor *a, const grd_tensor *b)
{
    return a == b || (a->data == b->data && a->dtype == b->dtype && grd_same_sizes(a, grd_sizes(b)) &&
                      memcmp(a->strides, b->strides, a->ndim * sizeof *a->strides) == 0);
}

bool grd_copy_elements(grd_tensor *to, const grd_tensor *from)
{
    int64_t strides[GRD_MAX_DIMS];
    if (grd_is_meta(to) || to->numel == 0)
        return true;
    if (grd_cast_kernel(from->dtype, to->dtype) == NULL)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"copy_\" not implemented for '%s' to '%s'", grd_dtype_type_name(from->dtype),
                         grd_dtype_type_name(to->dtype));
    if (grd_may_share_bytes(to, from) && !grd_is_same_view(to, from)) /* what is written may be read later */
        from = grd_clone_contiguous(from, from->dtype);
    if (grd_pending())
        return false;
    const grd_tensor part = grd_same_sizes(from, grd_sizes(to)) ? *from : grd_spread(from, to, strides);
    grd_copy_strided(to, &part);
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
