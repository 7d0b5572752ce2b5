/* Makes tensors: uninitialized ones, views of other tensors, tensors over the caller's memory, and numbers. The invariants of a tensor are in
 * tensor.h. */
#include "core/new.h"

#include <string.h>

#include "base/memory.h"
#include "core/lifetimes.h"
#include "core/small_tensor.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"

_Static_assert(sizeof(struct grd_block) + GRD_SMALL_BYTES <= GRD_SMALL_MAX, "small tensors are small blocks");

/* Returns the new tensor `t` after making this thread's innermost grd_scope its owner; the tensor is freed when that scope closes. Returns
 * grd_failed, with the error raised, if there is no memory for the reference. */
static inline grd_tensor *pooled(grd_tensor *t)
{
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_lifetimes_born(t);
    return GRD_LIKELY(grd_pool_push(t)) ? t : grd_failed;
}

/* ---- Making ---------------------------------------------------------------------------------------------------------------- */

/* Returns a new tensor with a new storage of `bytes` bytes, owned by the innermost grd_scope. The tensor is contiguous if `strides` is NULL.
 * Returns grd_failed, with the error raised, on failure. */
static grd_tensor *make(grd_dims sizes, const int64_t *strides, int64_t numel, int64_t bytes, grd_dtype dtype, grd_device device)
{
    const struct grd_device_entry *type = grd_device_at(device.type);
    bool in_block = device.type == GRD_DEVICE_CPU && bytes <= GRD_SMALL_BYTES;
    size_t block_bytes = sizeof(struct grd_block) + (in_block && bytes > 0 ? (size_t)bytes : 1);
    struct grd_block *block = grd_alloc(block_bytes);
    if (GRD_UNLIKELY(block == NULL))
        return grd_failed;
    int64_t *dims = grd_reserve_dims(&block->tensor, sizes.n);
    void *data = in_block ? block->data : type->has_data && dims != NULL ? grd_device_allocate(device, bytes) : NULL;
    if (GRD_UNLIKELY(dims == NULL || (data == NULL && type->has_data))) {
        grd_free_dims(&block->tensor, dims, sizes.n);
        grd_free(block, block_bytes);
        return grd_failed;
    }
    grd_init_storage(block, block_bytes, data, bytes, device);
    grd_tensor *t = &block->tensor;
    grd_set_room(t, dims, sizes.n);
    t->numel = numel;
    unsigned flags = strides != NULL ? grd_set_strided(t, sizes, strides) : grd_set_contiguous(t, sizes);
    grd_init_header(t, grd_traits(dtype, GRD_STRIDED, device, flags, sizes.n), grd_dtype_table[dtype].size, 1u << type->key);
    return pooled(t);
}

/* Returns the number of elements if every size is less than 1024, otherwise some number that is at least 1024. There are at most 3 dimensions, so
 * a product of sizes below 1024 does not overflow. */
static inline size_t few_elements(grd_dims sizes)
{
    size_t numel = 1, bits = 0;
    for (int64_t i = 0; i < sizes.n; i++) {
        numel *= (size_t)sizes.data[i];
        bits |= (size_t)sizes.data[i];
    }
    return bits < 1024 ? numel : bits;
}

/* The slow path of grd_new, e.g. for large tensors and for devices other than the CPU. `dtype` is valid. Returns grd_failed, with the error
 * raised, on failure. */
static __attribute__((noinline)) grd_tensor *new_any(grd_dims sizes, grd_dtype dtype, grd_device device)
{
    int64_t numel, bytes;
    if (GRD_UNLIKELY(!grd_device_resolve(device, &device) || !grd_shape_numel(sizes, &numel)))
        return grd_failed;
    if (GRD_UNLIKELY(__builtin_mul_overflow(numel, grd_dtype_table[dtype].size, &bytes))) {
        grd_raise_size_overflow(sizes, NULL);
        return grd_failed;
    }
    return make(sizes, NULL, numel, bytes, dtype, device);
}

grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device)
{
    if (GRD_UNLIKELY(!grd_check_dtype(dtype)))
        return grd_failed;
    /* With at most 3 dimensions there is no channels-last layout, so the flags are constant. */
    if (GRD_LIKELY(device.type == GRD_DEVICE_CPU && (uint64_t)sizes.n <= 3)) {
        const uint64_t traits = grd_traits(dtype, GRD_STRIDED, GRD_CPU, GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL, sizes.n);
        const size_t numel = few_elements(sizes);
        grd_tensor *t = numel < 1024 ? grd_make_small(traits, numel, grd_dtype_table[dtype].size) : NULL;
        if (GRD_LIKELY(t != NULL)) {
            int64_t stride = 1;
            for (int64_t i = sizes.n - 1; i >= 0; i--) {
                const int64_t size = sizes.data[i];
                t->inline_dims[i] = size;
                t->inline_dims[i + GRD_INLINE_DIMS] = stride;
                stride *= size; /* not 0, because a small tensor is not empty */
            }
            return t;
        }
    }
    return new_any(sizes, dtype, device);
}

/* Measures a tensor with these sizes and strides. *ret_lowest is the position of its lowest element in memory relative to its first one, in elements.
 * *ret_bytes is the number of bytes from the start of the lowest to the end of the highest element. Returns false, with RuntimeError, if the sizes
 * and strides are invalid or overflow. */
static bool measure(grd_dims sizes, grd_dims strides, int64_t itemsize, int64_t *ret_numel, int64_t *ret_lowest, int64_t *ret_bytes)
{
    int64_t lowest, highest, elements;
    if (strides.n != sizes.n)
        return grd_raise(GRD_ERROR_RUNTIME, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                         (long long)sizes.n, (long long)strides.n);
    if (!grd_shape_numel(sizes, ret_numel))
        return false;
    if (!grd_shape_extent(sizes, strides.data, &lowest, &highest) || __builtin_sub_overflow(highest, lowest, &elements) ||
        __builtin_add_overflow(elements, *ret_numel > 0, &elements) || __builtin_mul_overflow(elements, itemsize, ret_bytes))
        return grd_raise_size_overflow(sizes, strides.data);
    *ret_lowest = lowest;
    return true;
}

grd_tensor *grd_new_strided(grd_dims sizes, grd_dims strides, grd_dtype dtype, grd_device device)
{
    int64_t lowest, bytes, numel;
    if (!grd_check_dtype(dtype) || !grd_device_resolve(device, &device) ||
        !measure(sizes, strides, grd_dtype_table[dtype].size, &numel, &lowest, &bytes))
        return grd_failed;
    grd_tensor *t = make(sizes, strides.data, numel, bytes, dtype, device);
    if (grd_is_failed(t))
        return grd_failed;
    t->offset = -lowest;
    if (t->data != NULL)
        t->data += t->offset * t->itemsize;
    return t;
}

grd_tensor *grd_new_like(const grd_tensor *like, grd_dtype dtype)
{
    grd_dims sizes = grd_dims_from(like->sizes, like->ndim);
    int64_t bytes;
    if (dtype == GRD_DTYPE_NONE)
        dtype = (grd_dtype)like->dtype;
    if (GRD_UNLIKELY(!grd_check_dtype(dtype)))
        return grd_failed;
    if (GRD_UNLIKELY(__builtin_mul_overflow(like->numel, grd_dtype_table[dtype].size, &bytes))) {
        grd_raise_size_overflow(sizes, NULL);
        return grd_failed;
    }
    int64_t dense[GRD_MAX_DIMS];
    const int64_t *strides = like->strides;
    if (!grd_has(like, GRD_FLAG_CONTIGUOUS) && !grd_shape_is_dense(sizes, strides)) {
        grd_shape_dense_strides(sizes, strides, dense);
        strides = dense;
    }
    return make(sizes, strides, like->numel, bytes, dtype, grd_device_of(like));
}

/* ---- Views ------------------------------------------------------------------------------------------------------------------ */

/* Makes `view` a tensor over the storage of `t` with these sizes, strides, offset and flags. The caller has checked the sizes, strides and offset.
 * `view` already has room for its sizes and strides. */
GRD_INLINE void share(grd_tensor *view, const grd_tensor *t, grd_dims sizes, const int64_t *strides, int64_t offset, unsigned flags)
{
    view->storage = t->storage;
    view->offset = offset;
    /* The address is computed with integers, because the offset of an empty view may be beyond the end of the storage. */
    view->data = t->storage->data == NULL ? NULL : (char *)((uintptr_t)t->storage->data + (uintptr_t)offset * t->itemsize);
    flags |= grd_set_strided(view, sizes, strides);
    const uint64_t kept = GRD_TRAITS_DTYPE | GRD_TRAITS_LAYOUT | GRD_TRAITS_DEVICE;
    const uint64_t traits = (t->traits & kept) | grd_traits(0, 0, (grd_device){0, 0}, flags, sizes.n);
    grd_init_header(view, traits, t->itemsize, grd_keys_read(t) & ~(1u << GRD_KEY_AUTOGRAD));
}

/* Returns a tensor with room for `ndim` sizes and strides, and nothing else initialized. The returned tensor is the first member of a newly
 * allocated struct of `size` bytes. Returns NULL, with the error raised, on failure. */
static grd_tensor *new_header(int64_t ndim, size_t size)
{
    grd_tensor *view = grd_small_alloc(size);
    if (view == NULL)
        return NULL;
    int64_t *dims = grd_reserve_dims(view, ndim);
    if (dims == NULL) {
        grd_free(view, size);
        return NULL;
    }
    grd_set_room(view, dims, ndim);
    return view;
}

/* Returns the tensor that a view of `t` keeps alive as its base: the base of `t` if `t` is itself a view, otherwise `t`. */
static inline grd_tensor *base_of(grd_tensor *t)
{
    return t->base != NULL ? t->base : t;
}

/* Returns the autograd flags of a new view of `t`. While grad mode is off, this is GRD_FLAG_NO_GRAD_VIEW. Otherwise the view inherits
 * GRD_FLAG_NO_GRAD_VIEW and GRD_FLAG_MULTI_VIEW from `t`. */
static inline unsigned part_flags(const grd_tensor *t)
{
    return grd_thread.grad_off != 0 ? GRD_FLAG_NO_GRAD_VIEW : t->flags & (GRD_FLAG_NO_GRAD_VIEW | GRD_FLAG_MULTI_VIEW);
}

/* Returns a view of a batch tensor, i.e. of a tensor that operators called by vmap see as one element of a batch. `sizes`, `strides` and `offset`
 * describe the view of one element. Returns grd_failed, with the error raised, on failure. */
static grd_tensor *part_of_batch(struct grd_batch *batch, grd_dims sizes, grd_dims strides, int64_t offset)
{
    grd_tensor *physical = batch->physical;
    int64_t all_sizes[GRD_MAX_DIMS + 1] = {physical->sizes[0]}, all_strides[GRD_MAX_DIMS + 1] = {physical->strides[0]};
    for (int64_t i = 0; i < sizes.n; i++) {
        all_sizes[i + 1] = sizes.data[i];
        all_strides[i + 1] = strides.data[i];
    }
    return grd_new_batch(grd_new_part(physical, grd_dims_from(all_sizes, sizes.n + 1), grd_dims_from(all_strides, sizes.n + 1), offset),
                         batch->level);
}

/* The slow path of grd_new_part, e.g. for more than 3 dimensions or if this thread's free list is empty. Returns a view of `base`, or grd_failed,
 * with the error raised, on failure. */
static __attribute__((noinline)) grd_tensor *new_any_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    if (grd_is_batch(base))
        return part_of_batch((struct grd_batch *)base, sizes, strides, offset);
    grd_tensor *view = grd_is_failed(base) ? NULL : new_header(sizes.n, sizeof *view);
    if (view == NULL)
        return grd_failed;
    share(view, base, sizes, strides.data, offset, part_flags(base) | (base->flags & GRD_FLAG_REPLACED));
    view->base = grd_object_keep_as(base_of(base), GRD_VIEW_WEIGHT);
    view->view_version = grd_version_of(base);
    if (grd_owns_storage_as_view(view))
        grd_object_keep(view->storage);
    return pooled(view);
}

grd_tensor *grd_new_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    /* The fast path is for at most 3 dimensions. In this case there is no channels-last layout, and the sizes fit into the tensor itself. */
    if (GRD_UNLIKELY((uint64_t)sizes.n > 3 || grd_is_failed(base) || (base->flags & (GRD_FLAG_REPLACED | GRD_FLAG_BATCHED)) != 0 ||
                     grd_thread.pool_top == grd_thread.pool_capacity))
        return new_any_part(base, sizes, strides, offset);
    grd_tensor *view = grd_small_take(sizeof *view);
    if (GRD_UNLIKELY(view == NULL))
        return new_any_part(base, sizes, strides, offset);
    grd_thread.pool[grd_thread.pool_top++] = view;
    grd_set_room(view, view->inline_dims, 0);
    share(view, base, sizes, strides.data, offset, part_flags(base));
    view->base = grd_object_keep_as(base_of(base), GRD_VIEW_WEIGHT);
    view->view_version = grd_version_of(base);
    grd_count_alloc(grd_small_size(grd_small_class(sizeof *view)));
    return view;
}

grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    return !grd_is_failed(base) && grd_check_within_storage(base, base->itemsize, sizes, strides, offset)
               ? grd_new_part(base, sizes, strides, offset)
               : grd_failed;
}

/* Changes the dtype of a new view to `dtype`. The offset of the view is already in elements of `dtype`. Returns `view`. */
static grd_tensor *read_as(grd_tensor *view, grd_dtype dtype)
{
    if (grd_is_failed(view))
        return grd_failed;
    view->dtype = (uint8_t)dtype;
    view->itemsize = (uint32_t)grd_dtype_size(dtype);
    view->data = view->storage->data == NULL ? NULL : (char *)((uintptr_t)view->storage->data + (uintptr_t)view->offset * view->itemsize);
    return view;
}

grd_tensor *grd_new_view_as(grd_tensor *base, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset)
{
    if (grd_is_batch(base) && !grd_raise_batch_data())
        return grd_failed;
    if (grd_is_failed(base) || !grd_check_within_storage(base, (uint32_t)grd_dtype_size(dtype), sizes, strides, offset))
        return grd_failed;
    return read_as(new_any_part(base, sizes, strides, offset), dtype);
}

grd_tensor *grd_new_detached_as(grd_tensor *t, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset)
{
    if (grd_is_batch(t) && !grd_raise_batch_data())
        return grd_failed;
    grd_tensor *view = grd_is_failed(t) ? NULL : new_header(sizes.n, sizeof *view);
    if (view == NULL)
        return grd_failed;
    share(view, t, sizes, strides.data, offset, GRD_FLAG_DETACHED);
    grd_object_keep(view->storage);
    return read_as(pooled(view), dtype);
}

grd_tensor *grd_new_batch(grd_tensor *physical, uint64_t level)
{
    const int64_t n = physical->ndim - 1;
    struct grd_batch *batch = grd_is_failed(physical) ? NULL : (struct grd_batch *)new_header(n, sizeof *batch);
    if (batch == NULL)
        return grd_failed;
    grd_tensor *t = &batch->tensor;
    share(t, physical, grd_dims_from(physical->sizes + 1, n), physical->strides + 1, physical->offset, GRD_FLAG_BATCHED);
    t->data = NULL;
    grd_object_keep(t->storage);
    batch->physical = grd_object_keep(physical);
    grd_mark_batch(t);
    batch->level = level;
    return pooled(t);
}

grd_tensor *grd_new_detached(grd_tensor *t)
{
    return grd_new_detached_as(t, (grd_dtype)t->dtype, grd_sizes(t), grd_dims_from(t->strides, t->ndim), t->offset);
}

/* ---- From and to memory -------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_from_data(const void *data, grd_dims sizes, grd_dtype dtype)
{
    if (grd_pending())
        return grd_failed;
    grd_tensor *t = grd_new(sizes, dtype, GRD_CPU);
    if (grd_is_failed(t) || t->numel == 0)
        return t;
    if (!grd_given_pointer(data, "grd_from_data", "data"))
        return grd_failed;
    /* A bool from the caller may be any nonzero byte, but kernels require 0 or 1. */
    if (dtype == GRD_BOOL)
        for (int64_t i = 0; i < t->numel; i++)
            t->data[i] = ((const char *)data)[i] != 0;
    else
        memcpy(t->data, data, (size_t)(t->numel * t->itemsize));
    return t;
}

/* The release function for memory that the caller of grd_from_memory frees himself. It does nothing. */
static void keep_borrowed(void *context)
{
    (void)context;
}

/* True if no element lies before the start of the caller's memory; otherwise raises RuntimeError. The first element is `offset` elements after the
 * start, and the lowest element in memory is at `lowest` elements relative to the first one. On success adds the number of bytes before the lowest
 * element to *bytes. */
static bool reaches_from(int64_t offset, int64_t lowest, int64_t itemsize, int64_t *bytes)
{
    int64_t first, before;
    if (__builtin_add_overflow(offset, lowest, &first))
        return grd_raise(GRD_ERROR_RUNTIME, "grd_from_memory: offset %lld is out of range", (long long)offset);
    if (first < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "grd_from_memory: offset and strides reach %llu elements before the data",
                         0 - (unsigned long long)first);
    return (!__builtin_mul_overflow(first, itemsize, &before) && !__builtin_add_overflow(before, *bytes, bytes)) ||
           grd_raise(GRD_ERROR_RUNTIME, "grd_from_memory: offset %lld is out of range", (long long)offset);
}

grd_tensor *grd_from_memory(void *data, grd_dims sizes, grd_dims strides, int64_t offset, grd_dtype dtype, void (*release)(void *context),
                            void *context)
{
    int64_t contiguous[GRD_MAX_DIMS], numel, lowest, bytes;
    if (grd_pending() || !grd_check_dtype(dtype) || !grd_shape_numel(sizes, &numel))
        return grd_failed;
    if (strides.data == NULL) {
        grd_shape_contiguous_strides(sizes, contiguous);
        strides = grd_dims_from(contiguous, sizes.n);
    }
    const int64_t itemsize = grd_dtype_table[dtype].size;
    if (!measure(sizes, strides, itemsize, &numel, &lowest, &bytes))
        return grd_failed;
    if (((numel > 0 || offset != 0) && !grd_given_pointer(data, "grd_from_memory", "data")) ||
        !reaches_from(offset, lowest, itemsize, &bytes))
        return grd_failed;
    grd_tensor *t = make(sizes, strides.data, numel, 0, dtype, GRD_CPU);
    if (grd_is_failed(t))
        return grd_failed;
    /* Nothing can fail from here on. `release` is set only now, because a call that fails must not release the caller's memory. */
    static char no_data;
    struct grd_storage *storage = t->storage;
    /* `t` and its storage are in a struct grd_block, which also has an array `data`. storage->data must not be the address of this array, because
     * then tensor_destroy would free the block without calling `release`. */
    storage->data = data != NULL ? data : &no_data;
    storage->bytes = bytes;
    storage->release = release != NULL ? release : keep_borrowed;
    storage->context = context;
    t->offset = offset;
    t->data = (char *)storage->data + offset * itemsize;
    return t;
}

grd_tensor *grd_number(grd_scalar value)
{
    /* A number is stored in the largest dtype of its kind, whatever the default dtype is. Type promotion sees only whether it is bool, integer,
     * floating-point or complex. */
    grd_dtype dtype = value.kind == GRD_SCALAR_FLOAT     ? GRD_FLOAT64
                      : value.kind == GRD_SCALAR_COMPLEX ? GRD_COMPLEX128
                      : value.kind == GRD_SCALAR_UINT    ? GRD_UINT64
                                                         : grd_scalar_dtype(value);
    if (grd_pending())
        return grd_failed;
    if (dtype == GRD_DTYPE_NONE)
        return grd_fail(GRD_ERROR_TYPE, "grd_number: a number is required");
    const uint64_t traits = grd_traits(dtype, GRD_STRIDED, GRD_CPU, GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL, 0);
    grd_tensor *t = grd_make_small(traits, 1, grd_dtype_table[dtype].size);
    if (GRD_UNLIKELY(t == NULL) && grd_is_failed(t = new_any(GRD_NO_DIMS, dtype, GRD_CPU)))
        return grd_failed;
    if (dtype == GRD_BOOL)
        *t->data = (char)(value.v.i != 0);
    else if (dtype == GRD_COMPLEX128)
        memcpy(t->data, &value.v.c, sizeof value.v.c);
    else
        memcpy(t->data, &value.v, sizeof value.v.i);
    t->flags |= GRD_FLAG_NUMBER;
    return t;
}
