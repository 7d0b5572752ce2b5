/* Reads elements, sizes, strides and other properties of tensors for the public API.
 *
 * Invariant: every function accepts NULL and grd_failed, the tensor that a failed call returns. */
#include "core/read.h"

#include <math.h>
#include <string.h>

#include "core/dtype.h"
#include "core/geometry.h"
#include "core/given.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/small_tensor.h"
#include "core/tensor.h"
#include "core/transfer.h"

/* Returns `t`. If `t` is NULL or freed, raises the error and returns grd_failed, a tensor that is safe to read. */
static const grd_tensor *required(const grd_tensor *t, const char *function)
{
    return grd_given(t, function, "t") ? t : grd_failed;
}

/* ---- Elements ------------------------------------------------------------------------------------------------------------------ */

grd_scalar grd_element_of(const grd_tensor *t, const void *element)
{
    grd_scalar s = grd_scalar_read(element, (grd_dtype)t->dtype);
    if (grd_is_conjugated(t) && s.kind == GRD_SCALAR_COMPLEX)
        s.v.c.im = -s.v.c.im;
    else if (grd_is_conjugated(t))
        s.v.c.re = -s.v.c.re;
    return s;
}

/* If `t` has the key CONJUGATE, conjugates `n` elements that were copied from `t` and now have dtype `dtype`. If the dtype of `t` is real, they are
 * negated instead (Note [Conjugated when read]). */
static void conjugate_read(const grd_tensor *t, void *elements, grd_dtype dtype, int64_t n)
{
    if (!grd_is_conjugated(t))
        return;
    for (int64_t i = 0; i < n; i++) {
        char *const element = (char *)elements + i * grd_dtype_table[dtype].size;
        grd_complex128 x;
        grd_element_convert(element, dtype, &x, GRD_COMPLEX128);
        x = grd_dtype_is_complex((grd_dtype)t->dtype) ? (grd_complex128){x.re, -x.im} : (grd_complex128){-x.re, x.im};
        grd_element_convert(&x, GRD_COMPLEX128, element, dtype);
    }
}

/* Copies `t`, a one-element tensor that is not in CPU memory, to the CPU. Writes the element, converted to `dtype`, to *ret_element. Returns false,
 * with the error raised, for a batch tensor (inside vmap), for a meta tensor, or if the copy failed. */
static __attribute__((noinline)) bool fetch_item(const grd_tensor *t, void *ret_element, grd_dtype dtype)
{
    if (grd_is_batch(t))
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
            "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
            "report.");
    if (grd_is_meta(t))
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor.item() cannot be called on meta tensors");
    const int64_t mark = grd_pool_mark();
    const grd_tensor *near = grd_on_cpu(t);
    if (!grd_is_failed(near))
        grd_element_convert(near->data, (grd_dtype)t->dtype, ret_element, dtype);
    grd_pool_release(mark);
    return !grd_pending();
}

/* Writes the element of the one-element tensor `t` to ret_element. The element is converted to `dtype`, or keeps its dtype if `dtype` is
 * GRD_DTYPE_NONE. Returns false, with the error raised in the name of `function`, on failure. */
static bool read_item(const grd_tensor *t, const char *function, void *ret_element, grd_dtype dtype)
{
    t = required(t, function);
    if (grd_pending() || grd_is_failed(t))
        return false;
    if (t->numel != 1 && !grd_is_batch(t))
        return grd_raise(GRD_ERROR_RUNTIME, "a Tensor with %lld elements cannot be converted to Scalar", (long long)t->numel);
    dtype = dtype == GRD_DTYPE_NONE ? (grd_dtype)t->dtype : dtype;
    if (GRD_LIKELY((grd_keys_read(t) >> GRD_KEY_CPU & 1) != 0))
        grd_element_convert(t->data, (grd_dtype)t->dtype, ret_element, dtype);
    else if (!fetch_item(t, ret_element, dtype))
        return false;
    conjugate_read(t, ret_element, dtype, 1);
    return true;
}

grd_scalar grd_item(grd_tensor *t)
{
    /* Fast path for tensors with the key CPU. The batch tensors of vmap do not have this key. grd_failed_tensor has it, and its element is NaN. */
    if (GRD_LIKELY(t != NULL && (grd_keys_read(t) & (1u << GRD_KEY_CPU | 1u << GRD_KEY_CONJUGATE)) == 1u << GRD_KEY_CPU && t->numel == 1 &&
                   !grd_pending()))
        return grd_scalar_read(t->data, (grd_dtype)t->dtype);
    grd_complex128 element;
    return read_item(t, "grd_item", &element, GRD_DTYPE_NONE) ? grd_scalar_read(&element, (grd_dtype)t->dtype) : grd_float(NAN);
}

double grd_item_double(grd_tensor *t)
{
    double element;
    return read_item(t, "grd_item_double", &element, GRD_FLOAT64) ? element : (double)NAN;
}

int64_t grd_item_int64(grd_tensor *t)
{
    int64_t element;
    return read_item(t, "grd_item_int64", &element, GRD_INT64) ? element : 0;
}

/* Converts all elements of `t` to `dtype` and writes them to `to` in row-major order. */
static void convert_all(const grd_tensor *t, char *to, grd_dtype dtype)
{
    int64_t index[GRD_MAX_DIMS] = {0}, step = grd_dtype_table[dtype].size;
    const char *from = t->data;
    for (int64_t done = 0; done < t->numel; done++, to += step) {
        grd_element_convert(from, (grd_dtype)t->dtype, to, dtype);
        for (int dim = t->ndim - 1; dim >= 0; dim--) {
            if (++index[dim] < t->sizes[dim]) {
                from += grd_byte_stride(t, dim);
                break;
            }
            from -= (t->sizes[dim] - 1) * grd_byte_stride(t, dim);
            index[dim] = 0;
        }
    }
}

void grd_to_memory(grd_tensor *tensor, void *ret_data, grd_dtype dtype)
{
    const grd_tensor *t = required(tensor, "grd_to_memory");
    if (grd_pending() || grd_is_failed(t) || !grd_check_dtype(dtype) || t->numel == 0 ||
        !grd_given_pointer(ret_data, "grd_to_memory", "ret_data"))
        return;
    const int64_t mark = grd_pool_mark();
    const grd_tensor *near = grd_on_cpu(t);
    if (!grd_is_failed(near) && t->dtype == dtype && (t->flags & GRD_FLAG_CONTIGUOUS))
        memcpy(ret_data, near->data, (size_t)(t->numel * t->itemsize));
    else if (!grd_is_failed(near))
        convert_all(near, ret_data, dtype);
    if (!grd_is_failed(near))
        conjugate_read(t, ret_data, dtype, t->numel);
    grd_pool_release(mark);
}

bool grd_is_conj(const grd_tensor *t)
{
    t = required(t, "grd_is_conj");
    return grd_is_conjugated(t) && grd_dtype_is_complex((grd_dtype)t->dtype);
}

bool grd_is_neg(const grd_tensor *t)
{
    t = required(t, "grd_is_neg");
    return grd_is_conjugated(t) && !grd_dtype_is_complex((grd_dtype)t->dtype);
}

/* ---- Geometry -------------------------------------------------------------------------------------- */

int64_t grd_ndim(const grd_tensor *t)
{
    return required(t, "grd_ndim")->ndim;
}

int64_t grd_numel(const grd_tensor *t)
{
    return required(t, "grd_numel")->numel;
}

grd_dims grd_sizes(const grd_tensor *t)
{
    t = required(t, "grd_sizes");
    return grd_dims_from(t->sizes, t->ndim);
}

grd_dims grd_strides(const grd_tensor *t)
{
    t = required(t, "grd_strides");
    return grd_dims_from(t->strides, t->ndim);
}

/* Returns entries[dim], where `entries` is the sizes or strides of `t` and `dim` may be negative. Returns 0, with IndexError, if `dim` is out of
 * range. */
static int64_t entry_at(const grd_tensor *t, const int64_t *entries, int64_t dim)
{
    if (t->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    return grd_shape_wrap_dim(dim, t->ndim, &dim) ? entries[dim] : 0;
}

int64_t grd_size(const grd_tensor *t, int64_t dim)
{
    t = required(t, "grd_size");
    return entry_at(t, t->sizes, dim);
}

int64_t grd_stride(const grd_tensor *t, int64_t dim)
{
    t = required(t, "grd_stride");
    return entry_at(t, t->strides, dim);
}

int64_t grd_offset(const grd_tensor *t)
{
    return required(t, "grd_offset")->offset;
}

grd_dtype grd_tensor_dtype(const grd_tensor *t)
{
    return (grd_dtype)required(t, "grd_tensor_dtype")->dtype;
}

grd_device grd_tensor_device(const grd_tensor *t)
{
    return grd_device_of(required(t, "grd_tensor_device"));
}

grd_layout grd_tensor_layout(const grd_tensor *t)
{
    return (grd_layout)required(t, "grd_tensor_layout")->layout;
}

bool grd_is_contiguous(const grd_tensor *t)
{
    return grd_has(required(t, "grd_is_contiguous"), GRD_FLAG_CONTIGUOUS);
}

bool grd_is_channels_last(const grd_tensor *t)
{
    return grd_has(required(t, "grd_is_channels_last"), GRD_FLAG_CHANNELS_LAST);
}

void *grd_data(const grd_tensor *t)
{
    t = required(t, "grd_data");
    if (grd_is_batch(t))
        grd_raise_batch_data();
    return t->data;
}

int64_t grd_tensor_version(const grd_tensor *t)
{
    return grd_version_of(required(t, "grd_tensor_version"));
}

grd_tensor *grd_view_base(const grd_tensor *t)
{
    return required(t, "grd_view_base")->base;
}
