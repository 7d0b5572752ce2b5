/* Tensors: made, viewed, resized, destroyed; their geometry and their elements as the public API gives them.
 *
 * What an operator computes is not here. Invariants are those of tensor.h. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/tensor.h"

enum { LIST_CHARS = 512 };

static void tensor_destroy(struct grd_object *object)
{
    grd_tensor *t = (grd_tensor *)object;
    if (t->sizes != t->inline_dims)
        grd_free(t->sizes, 2 * (size_t)t->ndim * sizeof *t->sizes);
    if (t->base != NULL)
        grd_object_drop(t->base);
    if (t->autograd != NULL)
        grd_object_drop(t->autograd);
    struct grd_storage *storage = t->storage;
    /* The tensor a storage was made for lies in the storage's block and goes with it. */
    bool is_view = (char *)storage != (char *)t + offsetof(struct grd_block, storage);
    grd_object_drop(storage);
    if (is_view)
        grd_free(t, sizeof *t);
}

static const struct grd_object_type tensor_type = {"tensor", tensor_destroy};

/* ---- The failed tensor ------------------------------------------------------------------------------------------------ */

enum { IMMORTAL = 1 << 30 };

static void failed_destroy(struct grd_object *object)
{
    atomic_store_explicit(&object->refs, IMMORTAL, memory_order_relaxed);
}

static const struct grd_object_type failed_type = {"failed tensor", failed_destroy};

/* Note [Failed tensor]
 * What a failed operator returns. It has a storage and an element, so that code that looks at it
 * before looking at the error reads valid memory; counts too high to reach zero keep it alive. */
static float failed_element;
struct grd_block grd_failed_block = {
    .tensor = {.object = {&failed_type, IMMORTAL},
               .keys = 1u << GRD_KEY_CPU,
               .dtype = GRD_FLOAT32,
               .layout = GRD_STRIDED,
               .device = GRD_DEVICE_CPU,
               .device_index = -1,
               .flags = GRD_FLAG_CONTIGUOUS,
               .itemsize = sizeof failed_element,
               .storage = &grd_failed_block.storage,
               .data = (char *)&failed_element,
               .numel = 1,
               .sizes = grd_failed_block.tensor.inline_dims,
               .strides = grd_failed_block.tensor.inline_dims},
    .storage = {.object = {&failed_type, IMMORTAL},
                .data = &failed_element,
                .bytes = sizeof failed_element,
                .device = GRD_DEVICE_CPU,
                .device_index = -1},
};

grd_tensor *grd_failed_tensor(void)
{
    return &grd_failed_block.tensor;
}

/* For the public functions, where NULL would be a crash: raises and gives the failed tensor. */
static const grd_tensor *required(const grd_tensor *t, const char *function)
{
    if (GRD_LIKELY(t != NULL))
        return t;
    grd_raise(GRD_ERROR_TYPE, "%s: argument 't' must be a tensor, not NULL", function);
    return grd_failed;
}

/* ---- Geometry ------------------------------------------------------------------------------------------------------------ */

static void update_layout_flags(grd_tensor *t)
{
    grd_dims sizes = grd_dims_from(t->sizes, t->ndim);
    t->flags &= (uint16_t) ~(GRD_FLAG_CONTIGUOUS | GRD_FLAG_CHANNELS_LAST);
    if (grd_shape_is_contiguous(sizes, t->strides))
        t->flags |= GRD_FLAG_CONTIGUOUS;
    if (grd_shape_is_channels_last(sizes, t->strides))
        t->flags |= GRD_FLAG_CHANNELS_LAST;
}

/* Room for ndim sizes and strides: the inline array, or a block; NULL with the error raised. */
static int64_t *reserve_dims(grd_tensor *t, int64_t ndim)
{
    return ndim <= GRD_INLINE_DIMS ? t->inline_dims : grd_alloc(2 * (size_t)ndim * sizeof(int64_t));
}

static void set_dims(grd_tensor *t, int64_t *room, int64_t ndim)
{
    t->ndim = (uint16_t)ndim;
    t->sizes = room;
    t->strides = room + (ndim <= GRD_INLINE_DIMS ? GRD_INLINE_DIMS : ndim);
}

static void set_contiguous(grd_tensor *t, grd_dims sizes)
{
    int64_t stride = 1;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        int64_t size = sizes.data[i];
        t->sizes[i] = size;
        t->strides[i] = stride;
        if (i > 0 && size > 1)
            stride *= size;
    }
    t->flags |= GRD_FLAG_CONTIGUOUS;
    if ((sizes.n == 4 || sizes.n == 5) && grd_shape_is_channels_last(sizes, t->strides))
        t->flags |= GRD_FLAG_CHANNELS_LAST;
}

/* Note [Unused strides]
 * No element uses the stride of a one-element dimension, or any of an empty tensor, so these may be any numbers. One that does not fit into
 * bytes becomes 0: whoever multiplies a stride by the size of an element need not ask whether it is used. */
static int64_t usable_stride(int64_t stride)
{
    int64_t bytes;
    return GRD_UNLIKELY(__builtin_mul_overflow(stride, 16, &bytes)) ? 0 : stride;
}

static void copy_dims(grd_tensor *t, grd_dims sizes, const int64_t *strides)
{
    for (int64_t i = 0; i < sizes.n; i++) {
        t->sizes[i] = sizes.data[i];
        t->strides[i] = usable_stride(strides[i]);
    }
}

static void set_strided(grd_tensor *t, grd_dims sizes, const int64_t *strides)
{
    copy_dims(t, sizes, strides);
    update_layout_flags(t);
}

/* Everything but storage, data and dimensions. */
static void init_header(grd_tensor *t, grd_dtype dtype, grd_device device, grd_keyset keys, int64_t numel)
{
    t->object.type = &tensor_type;
    atomic_init(&t->object.refs, 1);
    t->keys = keys;
    t->dtype = (uint8_t)dtype;
    t->layout = GRD_STRIDED;
    t->device = device.type;
    t->device_index = device.index;
    t->flags = 0;
    t->itemsize = grd_dtype_table[dtype].size;
    t->offset = 0;
    t->numel = numel;
    t->base = NULL;
    t->autograd = NULL;
}

static grd_tensor *pooled(grd_tensor *t)
{
    return GRD_LIKELY(grd_pool_push(t)) ? t : grd_failed;
}

/* ---- Making ---------------------------------------------------------------------------------------------------------------- */

/* A tensor with a new storage of `bytes`, dimensions reserved but not set; not pooled. NULL with the error raised. */
static grd_tensor *make(int64_t ndim, int64_t numel, int64_t bytes, grd_dtype dtype, grd_device device)
{
    const struct grd_device_type *type = grd_device_type_at(device.type);
    bool in_block = device.type == GRD_DEVICE_CPU && bytes <= GRD_SMALL_BYTES;
    size_t block_bytes = sizeof(struct grd_block) + (in_block ? (size_t)bytes : 0);
    struct grd_block *block = grd_alloc(block_bytes);
    if (GRD_UNLIKELY(block == NULL))
        return NULL;
    int64_t *dims = reserve_dims(&block->tensor, ndim);
    void *data = in_block ? block->data : type->has_data && dims != NULL ? type->allocate(bytes) : NULL;
    if (GRD_UNLIKELY(dims == NULL || (data == NULL && type->has_data))) {
        if (dims != block->tensor.inline_dims && dims != NULL)
            grd_free(dims, 2 * (size_t)ndim * sizeof *dims);
        grd_free(block, block_bytes);
        return NULL;
    }
    grd_storage_init(block, (uint16_t)block_bytes, data, bytes, device);
    grd_tensor *t = &block->tensor;
    init_header(t, dtype, device, 1u << type->key, numel);
    t->storage = &block->storage;
    t->data = data;
    set_dims(t, dims, ndim);
    return t;
}

static bool check_dtype(grd_dtype dtype)
{
    if (GRD_LIKELY(dtype > GRD_DTYPE_NONE && dtype < GRD_DTYPE_COUNT))
        return true;
    return grd_raise(GRD_ERROR_TYPE, "%d is not a dtype", (int)dtype);
}

static bool size_overflow(grd_dims sizes, const int64_t *strides)
{
    char list[LIST_CHARS], stride_list[LIST_CHARS];
    grd_format_int64s(list, sizeof list, sizes.data, sizes.n);
    if (strides == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Storage size calculation overflowed with sizes=%s", list);
    return grd_raise(GRD_ERROR_RUNTIME, "Storage size calculation overflowed with sizes=%s and strides=%s", list,
                     grd_format_int64s(stride_list, sizeof stride_list, strides, sizes.n));
}

grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device)
{
    int64_t numel, bytes;
    if (GRD_UNLIKELY(!check_dtype(dtype) || !grd_device_resolve(device, &device) || !grd_shape_numel(sizes, &numel)))
        return grd_failed;
    if (GRD_UNLIKELY(__builtin_mul_overflow(numel, grd_dtype_table[dtype].size, &bytes))) {
        size_overflow(sizes, NULL);
        return grd_failed;
    }
    grd_tensor *t = make(sizes.n, numel, bytes, dtype, device);
    if (GRD_UNLIKELY(t == NULL))
        return grd_failed;
    set_contiguous(t, sizes);
    return pooled(t);
}

/* Lowest and highest element that strided sizes reach and the bytes between, ends included; errors are raised. */
static bool measure(grd_dims sizes, grd_dims strides, int64_t itemsize, int64_t *ret_lowest, int64_t *ret_bytes)
{
    int64_t numel, lowest, highest, elements;
    if (strides.n != sizes.n)
        return grd_raise(GRD_ERROR_RUNTIME, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                         (long long)sizes.n, (long long)strides.n);
    if (!grd_shape_numel(sizes, &numel))
        return false;
    if (!grd_shape_extent(sizes, strides.data, &lowest, &highest) || __builtin_sub_overflow(highest, lowest, &elements) ||
        __builtin_add_overflow(elements, numel > 0, &elements) || __builtin_mul_overflow(elements, itemsize, ret_bytes))
        return size_overflow(sizes, strides.data);
    *ret_lowest = lowest;
    return true;
}

grd_tensor *grd_new_strided(grd_dims sizes, grd_dims strides, grd_dtype dtype, grd_device device)
{
    int64_t lowest, bytes, numel;
    if (!check_dtype(dtype) || !grd_device_resolve(device, &device) ||
        !measure(sizes, strides, grd_dtype_table[dtype].size, &lowest, &bytes) || !grd_shape_numel(sizes, &numel))
        return grd_failed;
    grd_tensor *t = make(sizes.n, numel, bytes, dtype, device);
    if (t == NULL)
        return grd_failed;
    set_strided(t, sizes, strides.data);
    t->offset = -lowest;
    if (t->data != NULL)
        t->data += t->offset * t->itemsize;
    return pooled(t);
}

grd_tensor *grd_new_like(const grd_tensor *like, grd_dtype dtype)
{
    grd_dims sizes = grd_dims_from(like->sizes, like->ndim);
    int64_t bytes;
    if (dtype == GRD_DTYPE_NONE)
        dtype = (grd_dtype)like->dtype;
    if (GRD_UNLIKELY(!check_dtype(dtype)))
        return grd_failed;
    if (GRD_UNLIKELY(__builtin_mul_overflow(like->numel, grd_dtype_table[dtype].size, &bytes))) {
        size_overflow(sizes, NULL);
        return grd_failed;
    }
    grd_tensor *t = make(sizes.n, like->numel, bytes, dtype, grd_device_of(like));
    if (GRD_UNLIKELY(t == NULL))
        return grd_failed;
    int64_t strides[GRD_MAX_DIMS];
    if (GRD_LIKELY(like->flags & GRD_FLAG_CONTIGUOUS) || grd_shape_is_dense(sizes, like->strides)) {
        copy_dims(t, sizes, like->strides);
        t->flags |= like->flags & (GRD_FLAG_CONTIGUOUS | GRD_FLAG_CHANNELS_LAST);
    } else {
        grd_shape_dense_strides(sizes, like->strides, strides);
        set_strided(t, sizes, strides);
    }
    return pooled(t);
}

/* ---- Views ------------------------------------------------------------------------------------------------------------------ */

/* An owned, unpooled tensor over the storage of `t`; geometry has been checked. NULL with the error raised. */
static grd_tensor *share(const grd_tensor *t, grd_dims sizes, const int64_t *strides, int64_t numel, int64_t offset)
{
    grd_tensor *view = grd_alloc(sizeof *view);
    if (view == NULL)
        return NULL;
    int64_t *dims = reserve_dims(view, sizes.n);
    if (dims == NULL) {
        grd_free(view, sizeof *view);
        return NULL;
    }
    init_header(view, (grd_dtype)t->dtype, grd_device_of(t), t->keys & ~(1u << GRD_KEY_AUTOGRAD), numel);
    view->storage = grd_object_keep(t->storage);
    view->offset = offset;
    /* An empty view may start anywhere, also past the end. */
    view->data = t->storage->data == NULL ? NULL : (char *)((uintptr_t)t->storage->data + (uintptr_t)offset * t->itemsize);
    set_dims(view, dims, sizes.n);
    set_strided(view, sizes, strides);
    return view;
}

static bool check_bounds(const grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset, int64_t *ret_numel)
{
    char size_list[LIST_CHARS], stride_list[LIST_CHARS];
    if (strides.n != sizes.n)
        return grd_raise(GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
    if (!grd_shape_numel(sizes, ret_numel))
        return false;
    if (offset < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor: invalid storage offset %lld", (long long)offset);
    if (*ret_numel == 0)
        return true;
    int64_t lowest, highest, end;
    if (!grd_shape_extent(sizes, strides.data, &lowest, &highest) || __builtin_add_overflow(highest, offset, &highest) ||
        __builtin_add_overflow(highest, 1, &end) || __builtin_mul_overflow(end, base->itemsize, &end))
        return size_overflow(sizes, strides.data);
    if (GRD_LIKELY(lowest + offset >= 0 && end <= base->storage->bytes))
        return true;
    grd_format_int64s(size_list, sizeof size_list, sizes.data, sizes.n);
    grd_format_int64s(stride_list, sizeof stride_list, strides.data, strides.n);
    if (lowest + offset < 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %u reach %llu elements before the storage",
                         size_list, stride_list, (long long)offset, base->itemsize, -(unsigned long long)(lowest + offset));
    return grd_raise(GRD_ERROR_RUNTIME,
                     "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %u requiring a storage size of %lld are out of "
                     "bounds for storage of size %lld",
                     size_list, stride_list, (long long)offset, base->itemsize, (long long)end, (long long)base->storage->bytes);
}

grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    int64_t numel;
    if (grd_is_failed(base) || !check_bounds(base, sizes, strides, offset, &numel))
        return grd_failed;
    grd_tensor *view = share(base, sizes, strides.data, numel, offset);
    if (view == NULL)
        return grd_failed;
    view->base = grd_object_keep(base->base != NULL ? base->base : base);
    if (GRD_UNLIKELY(grd_thread.grad_off != 0))
        view->flags |= GRD_FLAG_NO_GRAD_VIEW;
    return pooled(view);
}

grd_tensor *grd_new_detached(grd_tensor *t)
{
    if (grd_is_failed(t))
        return grd_failed;
    grd_tensor *view = share(t, grd_dims_from(t->sizes, t->ndim), t->strides, t->numel, t->offset);
    if (view == NULL)
        return grd_failed;
    view->flags |= GRD_FLAG_DETACHED;
    return pooled(view);
}

bool grd_resize(grd_tensor *t, grd_dims sizes)
{
    int64_t numel, needed;
    if (grd_dims_equal(sizes, grd_dims_from(t->sizes, t->ndim)))
        return true;
    if (grd_is_failed(t) || !grd_shape_numel(sizes, &numel))
        return false;
    if (__builtin_add_overflow(numel, t->offset, &needed) || __builtin_mul_overflow(needed, t->itemsize, &needed))
        return size_overflow(sizes, NULL);
    int64_t *dims = reserve_dims(t, sizes.n);
    if (dims == NULL)
        return false;
    if (numel > 0 && needed > t->storage->bytes && !grd_storage_grow(t->storage, needed)) {
        if (dims != t->inline_dims)
            grd_free(dims, 2 * (size_t)sizes.n * sizeof *dims);
        return false;
    }
    if (t->sizes != t->inline_dims)
        grd_free(t->sizes, 2 * (size_t)t->ndim * sizeof *t->sizes);
    set_dims(t, dims, sizes.n);
    t->flags &= (uint16_t)~GRD_FLAG_CHANNELS_LAST;
    set_contiguous(t, sizes);
    t->numel = numel;
    t->data = t->storage->data == NULL ? NULL : (char *)t->storage->data + t->offset * t->itemsize;
    return true;
}

void grd_mark_requires_grad(grd_tensor *t, bool requires_grad)
{
    if (requires_grad) {
        t->flags |= GRD_FLAG_REQUIRES_GRAD;
        t->keys |= 1u << GRD_KEY_AUTOGRAD;
    } else {
        t->flags &= (uint16_t)~GRD_FLAG_REQUIRES_GRAD;
        t->keys &= ~(1u << GRD_KEY_AUTOGRAD);
    }
}

grd_tensor *grd_mark_number(grd_tensor *t)
{
    if (!grd_is_failed(t))
        t->flags |= GRD_FLAG_NUMBER;
    return t;
}

/* ---- Lifetime --------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_keep(grd_tensor *t)
{
    if (t != NULL && !grd_is_failed(t))
        grd_object_keep(t);
    return t;
}

void grd_drop(grd_tensor *t)
{
    if (t != NULL && !grd_is_failed(t))
        grd_object_drop(t);
}

/* ---- From and to memory -------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_from_data(const void *data, grd_dims sizes, grd_dtype dtype)
{
    if (grd_pending())
        return grd_failed;
    grd_tensor *t = grd_new(sizes, dtype, GRD_CPU);
    if (grd_is_failed(t) || t->numel == 0)
        return t;
    if (data == NULL) {
        grd_raise(GRD_ERROR_TYPE, "grd_from_data: argument 'data' must not be NULL");
        return grd_failed;
    }
    /* Kernels rely on bools being 0 or 1. */
    if (dtype == GRD_BOOL)
        for (int64_t i = 0; i < t->numel; i++)
            t->data[i] = ((const char *)data)[i] != 0;
    else
        memcpy(t->data, data, (size_t)(t->numel * t->itemsize));
    return t;
}

static void keep_borrowed(void *context)
{
    (void)context;
}

grd_tensor *grd_from_memory(void *data, grd_dims sizes, grd_dims strides, grd_dtype dtype, void (*release)(void *context), void *context)
{
    int64_t contiguous[GRD_MAX_DIMS], numel, lowest, bytes;
    if (grd_pending() || !check_dtype(dtype) || !grd_shape_numel(sizes, &numel))
        return grd_failed;
    if (strides.data == NULL) {
        grd_shape_contiguous_strides(sizes, contiguous);
        strides = grd_dims_from(contiguous, sizes.n);
    }
    if (!measure(sizes, strides, grd_dtype_table[dtype].size, &lowest, &bytes))
        return grd_failed;
    if (lowest < 0 || (data == NULL && numel > 0)) {
        if (data == NULL)
            grd_raise(GRD_ERROR_TYPE, "grd_from_memory: argument 'data' must not be NULL");
        else
            grd_raise(GRD_ERROR_RUNTIME, "grd_from_memory: negative strides reach %lld elements before the data", (long long)-lowest);
        return grd_failed;
    }
    grd_tensor *t = make(sizes.n, numel, 0, dtype, GRD_CPU);
    if (t == NULL)
        return grd_failed;
    set_strided(t, sizes, strides.data);
    if (pooled(t) != t)
        return grd_failed;
    /* Only now, so that a failure above leaves the memory with the caller. */
    struct grd_storage *storage = t->storage;
    if (data != NULL) {
        storage->data = data;
        t->data = data;
    }
    storage->bytes = bytes;
    storage->release = release != NULL ? release : keep_borrowed;
    storage->context = context;
    return t;
}

grd_tensor *grd_number(grd_scalar value)
{
    /* Stored at full precision, whatever the default dtype: in promotion only the kind of a number counts. */
    grd_dtype dtype = value.kind == GRD_SCALAR_FLOAT     ? GRD_FLOAT64
                      : value.kind == GRD_SCALAR_COMPLEX ? GRD_COMPLEX128
                                                         : grd_scalar_dtype(value);
    if (grd_pending())
        return grd_failed;
    if (dtype == GRD_DTYPE_NONE) {
        grd_raise(GRD_ERROR_TYPE, "grd_number: a number is required");
        return grd_failed;
    }
    grd_tensor *t = grd_new(GRD_NO_DIMS, dtype, GRD_CPU);
    if (grd_is_failed(t) || !grd_scalar_write(value, dtype, t->data))
        return grd_failed;
    return grd_mark_number(t);
}

/* Copies the one element to ret_element as `dtype` (NONE: unchanged). False on failure. */
static bool read_item(const grd_tensor *t, const char *function, void *ret_element, grd_dtype dtype)
{
    t = required(t, function);
    if (grd_pending() || grd_is_failed(t))
        return false;
    if (t->numel != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "a Tensor with %lld elements cannot be converted to Scalar", (long long)t->numel);
    if (grd_is_meta(t))
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor.item() cannot be called on meta tensors");
    void *copy;
    const char *bytes = grd_storage_read(t->storage, &copy);
    if (bytes == NULL)
        return false;
    grd_element_convert(bytes + t->offset * t->itemsize, (grd_dtype)t->dtype, ret_element,
                        dtype == GRD_DTYPE_NONE ? (grd_dtype)t->dtype : dtype);
    grd_free(copy, (size_t)t->storage->bytes);
    return true;
}

grd_scalar grd_item(grd_tensor *t)
{
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

/* Row-major order; `index` counts up like the digits of a number. */
static void convert_all(const grd_tensor *t, const char *first, char *to, grd_dtype dtype)
{
    int64_t index[GRD_MAX_DIMS] = {0}, itemsize = t->itemsize, step = grd_dtype_table[dtype].size;
    const char *from = first;
    for (int64_t done = 0; done < t->numel; done++, to += step) {
        grd_element_convert(from, (grd_dtype)t->dtype, to, dtype);
        for (int dim = t->ndim - 1; dim >= 0; dim--) {
            if (++index[dim] < t->sizes[dim]) {
                from += t->strides[dim] * itemsize;
                break;
            }
            from -= (t->sizes[dim] - 1) * t->strides[dim] * itemsize;
            index[dim] = 0;
        }
    }
}

void grd_to_memory(grd_tensor *tensor, void *ret_data, grd_dtype dtype)
{
    const grd_tensor *t = required(tensor, "grd_to_memory");
    if (grd_pending() || grd_is_failed(t) || !check_dtype(dtype) || t->numel == 0)
        return;
    if (ret_data == NULL) {
        grd_raise(GRD_ERROR_TYPE, "grd_to_memory: argument 'ret_data' must not be NULL");
        return;
    }
    void *copy;
    const char *bytes = grd_storage_read(t->storage, &copy);
    if (bytes == NULL)
        return;
    const char *first = bytes + t->offset * t->itemsize;
    if (t->dtype == dtype && (t->flags & GRD_FLAG_CONTIGUOUS))
        memcpy(ret_data, first, (size_t)(t->numel * t->itemsize));
    else
        convert_all(t, first, ret_data, dtype);
    grd_free(copy, (size_t)t->storage->bytes);
}

/* ---- Geometry, as the public API gives it -------------------------------------------------------------------------------------- */

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

static int64_t entry_at(const grd_tensor *t, const int64_t *entries, int64_t dim)
{
    if (t->ndim == 0) {
        grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
        return 0;
    }
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
    return required(t, "grd_data")->data;
}

int64_t grd_tensor_version(const grd_tensor *t)
{
    return grd_version_of(required(t, "grd_tensor_version"));
}

grd_tensor *grd_view_base(const grd_tensor *t)
{
    return required(t, "grd_view_base")->base;
}
