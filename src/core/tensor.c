/* Tensors: made, viewed, resized, destroyed. Their elements and geometry are read in read.c.
 *
 * What an operator computes is not here. Invariants are those of tensor.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/lifetimes.h"
#include "core/small.h"

enum { LIST_CHARS = 512 };
_Static_assert(sizeof(struct grd_block) + GRD_SMALL_BYTES <= GRD_SMALL_MAX, "small tensors are small blocks");

/* A view of a tensor that may get another storage. */
static inline bool owns_storage_as_view(const grd_tensor *t)
{
    return GRD_UNLIKELY(grd_has(t, GRD_FLAG_REPLACED));
}

static void free_dims(const grd_tensor *t, int64_t *dims, int64_t ndim)
{
    if (dims != t->inline_dims)
        grd_free(dims, 2 * (size_t)ndim * sizeof *dims);
}

static __attribute__((noinline)) void destroy_any(grd_tensor *t)
{
    grd_tensor *base = t->base;
    struct grd_storage *storage = t->storage;
    /* The tensor a storage was made for lies in its block and goes with it. */
    struct grd_storage *own = &((struct grd_block *)t)->storage;
    const bool moved = grd_has(t, GRD_FLAG_MOVED), apart = storage != own && !moved, is_batch = grd_is_batch(t);
    free_dims(t, t->sizes, t->ndim);
    const bool owns_storage = base == NULL || owns_storage_as_view(t);
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_lifetimes_died(t);
    if (owns_storage)
        grd_object_drop(storage);
    if (is_batch)
        grd_object_drop(grd_physical(t));
    if (base != NULL)
        grd_object_drop_as(base, GRD_VIEW_WEIGHT);
    if (moved)
        grd_object_drop(own);
    if (apart)
        grd_small_free(t, is_batch ? sizeof(struct grd_batch) : sizeof *t);
}

static __attribute__((noinline)) void destroy_view(grd_tensor *t)
{
    if (owns_storage_as_view(t))
        grd_object_drop(t->storage);
    grd_object_drop_as(t->base, GRD_VIEW_WEIGHT);
    grd_small_free(t, sizeof *t);
}

static void tensor_destroy(struct grd_object *object);

/* Its history goes first; then it is like any other. */
static __attribute__((noinline)) void destroy_recorded(grd_tensor *t)
{
    grd_object_drop_as(t->autograd, 1);
    t->autograd = NULL;
    tensor_destroy(&t->object);
}

static void tensor_destroy(struct grd_object *object)
{
    grd_tensor *t = (grd_tensor *)object;
    struct grd_block *block = (struct grd_block *)t;
    const bool simple = GRD_LIKELY(t->autograd == NULL && t->ndim <= GRD_INLINE_DIMS);
    if (GRD_LIKELY(simple && t->storage == &block->storage && block->storage.data == block->data && grd_object_unique(&block->storage))) {
        const size_t block_bytes = block->storage.block_bytes;
        GRD_ASSUME(block_bytes >= sizeof *block);
        grd_small_free(block, block_bytes);
    } else if (simple && t->base != NULL) {
        destroy_view(t);
    } else if (t->autograd != NULL) {
        destroy_recorded(t);
    } else {
        destroy_any(t);
    }
}

const struct grd_object_type grd_tensor_type = {.name = "tensor", .destroy = tensor_destroy};

/* ---- The failed tensor ------------------------------------------------------------------------------------------------ */

static const struct grd_object_type failed_type = {.name = "failed tensor", .destroy = grd_object_stay};

/* Note [Failed tensor]
 * What a failed operator returns. It has a storage and an element, NaN, so that code that looks at it
 * before looking at the error reads valid memory; immortal counts keep it alive. */
static float failed_element = NAN;
struct grd_block grd_failed_block = {
    .tensor = {.object = {&failed_type, GRD_IMMORTAL},
               .keys = 1u << GRD_KEY_CPU,
               .dtype = GRD_FLOAT32,
               .layout = GRD_STRIDED,
               .device = GRD_DEVICE_CPU,
               .device_index = -1,
               .flags = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL,
               .itemsize = sizeof failed_element,
               .storage = &grd_failed_block.storage,
               .data = (char *)&failed_element,
               .numel = 1,
               .sizes = grd_failed_block.tensor.inline_dims,
               .strides = grd_failed_block.tensor.inline_dims},
    .storage = {.object = {&failed_type, GRD_IMMORTAL}, .data = &failed_element, .bytes = sizeof failed_element, .device = GRD_DEVICE_CPU},
};

grd_tensor *grd_failed_tensor(void)
{
    return &grd_failed_block.tensor;
}

grd_tensor *grd_fail(grd_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    grd_raise_list(code, format, arguments);
    va_end(arguments);
    return grd_failed;
}

bool grd_refuse_tensor(const grd_tensor *t, const char *function, const char *argument)
{
    return t != NULL ? grd_lifetimes_refuse(t, function, argument)
                     : grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must be a tensor, not NULL", function, argument);
}

/* ---- Shorter ways -------------------------------------------------------------------------------------------------------- */

bool grd_shortcuts = true;
bool grd_accelerations = true;

void grd_shortcuts_init(void)
{
    const char *wanted = getenv("GRADUS_SHORTCUTS");
    grd_shortcuts = wanted == NULL || strcmp(wanted, "off") != 0;
}

/* ---- Geometry ------------------------------------------------------------------------------------------------------------ */

/* Room for ndim sizes and strides: the inline array, or a block; NULL with the error raised. */
static int64_t *reserve_dims(grd_tensor *t, int64_t ndim)
{
    return ndim <= GRD_INLINE_DIMS ? t->inline_dims : grd_alloc(2 * (size_t)ndim * sizeof(int64_t));
}

static inline void set_room(grd_tensor *t, int64_t *room, int64_t ndim)
{
    t->sizes = room;
    t->strides = room + (ndim <= GRD_INLINE_DIMS ? GRD_INLINE_DIMS : ndim);
}

/* The flags that CONTIGUOUS leaves open. */
static inline unsigned channels_last_flag(grd_dims sizes, const int64_t *strides)
{
    return (sizes.n == 4 || sizes.n == 5) && grd_shape_is_channels_last(sizes, strides) ? GRD_FLAG_CHANNELS_LAST : 0;
}

static inline unsigned contiguous_flags(grd_dims sizes, const int64_t *strides)
{
    return GRD_FLAG_CONTIGUOUS | (sizes.n <= GRD_INLINE_DIMS ? GRD_FLAG_CANONICAL : 0) | channels_last_flag(sizes, strides);
}

/* Writes the dimensions and returns the flags they give. Of the products only those are used that do not overflow. */
static inline unsigned set_contiguous(grd_tensor *t, grd_dims sizes)
{
    uint64_t stride = 1;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        int64_t size = sizes.data[i];
        t->sizes[i] = size;
        t->strides[i] = (int64_t)stride;
        stride *= size > 1 ? (uint64_t)size : 1;
    }
    return contiguous_flags(sizes, t->strides);
}

/* Note [Unused strides]
 * No element uses the stride of a one-element dimension, or any of an empty tensor, so these may be any numbers. One that does not fit into
 * bytes becomes 0: whoever multiplies a stride by the size of an element need not ask whether it is used. */
static inline int64_t usable_stride(int64_t stride)
{
    int64_t bytes;
    return GRD_UNLIKELY(__builtin_mul_overflow(stride, 16, &bytes)) ? 0 : stride;
}

/* The same for strides of any kind; sets numel, too. */
static inline unsigned set_strided(grd_tensor *t, grd_dims sizes, const int64_t *strides)
{
    uint64_t numel = 1;
    bool contiguous = true, canonical = true;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        int64_t size = sizes.data[i], stride = strides[i];
        t->sizes[i] = size;
        t->strides[i] = usable_stride(stride);
        canonical &= stride == (int64_t)numel;
        contiguous &= size == 1 || stride == (int64_t)numel;
        numel *= (uint64_t)size;
    }
    t->numel = (int64_t)numel;
    if (GRD_LIKELY(canonical && numel > 0))
        return contiguous_flags(sizes, t->strides);
    return (contiguous || numel == 0 ? GRD_FLAG_CONTIGUOUS : 0) | channels_last_flag(sizes, t->strides);
}

static inline grd_tensor *pooled(grd_tensor *t)
{
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_lifetimes_born(t);
    return GRD_LIKELY(grd_pool_push(t)) ? t : grd_failed;
}

/* ---- Making ---------------------------------------------------------------------------------------------------------------- */

/* A tensor with a new storage of `bytes`, contiguous when `strides` is NULL; pooled. grd_failed with the error raised. */
static grd_tensor *make(grd_dims sizes, const int64_t *strides, int64_t numel, int64_t bytes, grd_dtype dtype, grd_device device)
{
    const struct grd_device_entry *type = grd_device_at(device.type);
    bool in_block = device.type == GRD_DEVICE_CPU && bytes <= GRD_SMALL_BYTES;
    size_t block_bytes = sizeof(struct grd_block) + (in_block && bytes > 0 ? (size_t)bytes : 1);
    struct grd_block *block = grd_alloc(block_bytes);
    if (GRD_UNLIKELY(block == NULL))
        return grd_failed;
    int64_t *dims = reserve_dims(&block->tensor, sizes.n);
    void *data = in_block ? block->data : type->has_data && dims != NULL ? grd_device_allocate(device, bytes) : NULL;
    if (GRD_UNLIKELY(dims == NULL || (data == NULL && type->has_data))) {
        free_dims(&block->tensor, dims, sizes.n);
        grd_free(block, block_bytes);
        return grd_failed;
    }
    grd_init_storage(block, block_bytes, data, bytes, device);
    grd_tensor *t = &block->tensor;
    set_room(t, dims, sizes.n);
    t->numel = numel;
    unsigned flags = strides != NULL ? set_strided(t, sizes, strides) : set_contiguous(t, sizes);
    grd_init_header(t, grd_traits(dtype, GRD_STRIDED, device, flags, sizes.n), grd_dtype_table[dtype].size, 1u << type->key);
    return pooled(t);
}

/* The number of elements, when neither it nor a size is beyond 1023; otherwise more than that. */
static inline size_t few_elements(grd_dims sizes)
{
    size_t numel = 1, bits = 0;
    for (int64_t i = 0; i < sizes.n; i++) {
        numel *= (size_t)sizes.data[i];
        bits |= (size_t)sizes.data[i];
    }
    return bits < 1024 ? numel : bits;
}

bool grd_check_dtype(grd_dtype dtype)
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

/* grd_new for a dtype that is one, whatever the size. */
static __attribute__((noinline)) grd_tensor *new_any(grd_dims sizes, grd_dtype dtype, grd_device device)
{
    int64_t numel, bytes;
    if (GRD_UNLIKELY(!grd_device_resolve(device, &device) || !grd_shape_numel(sizes, &numel)))
        return grd_failed;
    if (GRD_UNLIKELY(__builtin_mul_overflow(numel, grd_dtype_table[dtype].size, &bytes))) {
        size_overflow(sizes, NULL);
        return grd_failed;
    }
    return make(sizes, NULL, numel, bytes, dtype, device);
}

grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device)
{
    if (GRD_UNLIKELY(!grd_check_dtype(dtype)))
        return grd_failed;
    /* Up to three dimensions CHANNELS_LAST is not a question. */
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
                stride *= size; /* never 0: what is empty is not small */
            }
            return t;
        }
    }
    return new_any(sizes, dtype, device);
}

/* Lowest and highest element that strided sizes reach and the bytes between, ends included; errors are raised. */
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
        return size_overflow(sizes, strides.data);
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
        size_overflow(sizes, NULL);
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

/* Makes `view` a tensor over the storage of `t`, in dimensions whose room is set; geometry has been checked. */
static inline __attribute__((always_inline)) void share(grd_tensor *view, const grd_tensor *t, grd_dims sizes, const int64_t *strides,
                                                        int64_t offset, unsigned flags)
{
    view->storage = t->storage;
    view->offset = offset;
    /* An empty view may start anywhere, also past the end. */
    view->data = t->storage->data == NULL ? NULL : (char *)((uintptr_t)t->storage->data + (uintptr_t)offset * t->itemsize);
    flags |= set_strided(view, sizes, strides);
    const uint64_t kept = GRD_TRAITS_DTYPE | GRD_TRAITS_LAYOUT | GRD_TRAITS_DEVICE;
    const uint64_t traits = (t->traits & kept) | grd_traits(0, 0, (grd_device){0, 0}, flags, sizes.n);
    grd_init_header(view, traits, t->itemsize, grd_keys_read(t) & ~(1u << GRD_KEY_AUTOGRAD));
}

/* A tensor, the first member of a block of `size` bytes, with room for ndim dimensions and nothing else; NULL with the error raised. */
static grd_tensor *new_header(int64_t ndim, size_t size)
{
    grd_tensor *view = grd_small_alloc(size);
    if (view == NULL)
        return NULL;
    int64_t *dims = reserve_dims(view, ndim);
    if (dims == NULL) {
        grd_free(view, size);
        return NULL;
    }
    set_room(view, dims, ndim);
    return view;
}

static bool check_bounds(const grd_tensor *base, uint32_t itemsize, grd_dims sizes, grd_dims strides, int64_t offset)
{
    int64_t numel;
    char size_list[LIST_CHARS], stride_list[LIST_CHARS];
    if (strides.n != sizes.n)
        return grd_raise(GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
    if (!grd_shape_numel(sizes, &numel))
        return false;
    if (offset < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor: invalid storage offset %lld", (long long)offset);
    if (numel == 0)
        return true;
    int64_t lowest, highest, end;
    if (!grd_shape_extent(sizes, strides.data, &lowest, &highest) || __builtin_add_overflow(highest, offset, &highest) ||
        __builtin_add_overflow(highest, 1, &end) || __builtin_mul_overflow(end, itemsize, &end))
        return size_overflow(sizes, strides.data);
    if (GRD_LIKELY(lowest + offset >= 0 && end <= base->storage->bytes))
        return true;
    grd_format_int64s(size_list, sizeof size_list, sizes.data, sizes.n);
    grd_format_int64s(stride_list, sizeof stride_list, strides.data, strides.n);
    if (lowest + offset < 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %u reach %llu elements before the storage",
                         size_list, stride_list, (long long)offset, itemsize, -(unsigned long long)(lowest + offset));
    return grd_raise(GRD_ERROR_RUNTIME,
                     "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %u requiring a storage size of %lld are out of "
                     "bounds for storage of size %lld",
                     size_list, stride_list, (long long)offset, itemsize, (long long)end, (long long)base->storage->bytes);
}

static inline grd_tensor *base_of(grd_tensor *t)
{
    return t->base != NULL ? t->base : t;
}

static inline unsigned part_flags(const grd_tensor *t)
{
    return grd_thread.grad_off != 0 ? GRD_FLAG_NO_GRAD_VIEW : t->flags & (GRD_FLAG_NO_GRAD_VIEW | GRD_FLAG_MULTI_VIEW);
}

/* A view of a batch tensor: one part, at the same place of each element. */
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

/* grd_new_part where it is more than a look at this thread's lists. */
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
    if (owns_storage_as_view(view))
        grd_object_keep(view->storage);
    return pooled(view);
}

grd_tensor *grd_new_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    /* Up to three dimensions CHANNELS_LAST is not a question. */
    if (GRD_UNLIKELY((uint64_t)sizes.n > 3 || grd_is_failed(base) || (base->flags & (GRD_FLAG_REPLACED | GRD_FLAG_BATCHED)) != 0 ||
                     grd_thread.pool_top == grd_thread.pool_capacity))
        return new_any_part(base, sizes, strides, offset);
    grd_tensor *view = grd_small_take(sizeof *view);
    if (GRD_UNLIKELY(view == NULL))
        return new_any_part(base, sizes, strides, offset);
    grd_thread.pool[grd_thread.pool_top++] = view;
    set_room(view, view->inline_dims, 0);
    share(view, base, sizes, strides.data, offset, part_flags(base));
    view->base = grd_object_keep_as(base_of(base), GRD_VIEW_WEIGHT);
    view->view_version = grd_version_of(base);
    grd_count_alloc(grd_small_size(grd_small_class(sizeof *view)));
    return view;
}

grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    return !grd_is_failed(base) && check_bounds(base, base->itemsize, sizes, strides, offset) ? grd_new_part(base, sizes, strides, offset)
                                                                                              : grd_failed;
}

/* A new view whose memory is read as elements of another dtype, in which its offset is counted. */
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
    if (grd_is_failed(base) || !check_bounds(base, (uint32_t)grd_dtype_size(dtype), sizes, strides, offset))
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

bool grd_raise_batch_data(void)
{
    return grd_raise(GRD_ERROR_RUNTIME, "Cannot access data pointer of Tensor that doesn't have storage");
}

void grd_mark_batch(grd_tensor *t)
{
    const grd_tensor *physical = grd_physical(t);
    const bool marked = grd_marked_requires_grad(physical) || (physical->base != NULL && grd_marked_requires_grad(physical->base));
    t->keys = 1u << GRD_KEY_BATCH | (marked ? 1u << GRD_KEY_AUTOGRAD : 0);
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

void grd_tell_reshaped(grd_tensor *t)
{
    struct grd_object *history = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
    if (history != NULL && history->type->reshaped != NULL)
        history->type->reshaped(history);
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
    if (dims == NULL || (numel > 0 && needed > t->storage->bytes && !grd_storage_grow(t, needed))) {
        free_dims(t, dims, sizes.n);
        return false;
    }
    free_dims(t, t->sizes, t->ndim);
    set_room(t, dims, sizes.n);
    unsigned flags = (t->flags & ~(unsigned)GRD_FLAG_CHANNELS_LAST) | set_contiguous(t, sizes);
    t->traits = grd_traits(t->dtype, t->layout, grd_device_of(t), flags, sizes.n);
    t->numel = numel;
    t->data = t->storage->data == NULL ? NULL : (char *)t->storage->data + t->offset * t->itemsize;
    grd_tell_reshaped(t);
    return true;
}

bool grd_set_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset)
{
    int64_t *dims = check_bounds(t, t->itemsize, sizes, strides, offset) ? reserve_dims(t, sizes.n) : NULL;
    if (dims == NULL)
        return false;
    int64_t *const before = t->sizes, ndim = t->ndim;
    set_room(t, dims, sizes.n);
    const unsigned flags = (t->flags & ~(unsigned)GRD_FLAGS_GEOMETRY) | set_strided(t, sizes, strides.data);
    if (before != dims)
        free_dims(t, before, ndim);
    t->traits = grd_traits(t->dtype, t->layout, grd_device_of(t), flags, sizes.n);
    t->offset = offset;
    t->data = t->storage->data == NULL ? NULL : (char *)t->storage->data + offset * t->itemsize;
    grd_tell_reshaped(t);
    return true;
}

bool grd_warn_resized(const grd_tensor *out, grd_dims sizes)
{
    char have[256], need[256], text[1024];
    if (out->numel == 0 || grd_dims_equal(sizes, grd_dims_from(out->sizes, out->ndim)))
        return true;
    snprintf(text, sizeof text,
             "An output with one or more elements was resized since it had shape %s, which does not match the required output shape %s. "
             "This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero elements. "
             "You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
             grd_format_int64s(have, sizeof have, out->sizes, out->ndim), grd_format_int64s(need, sizeof need, sizes.data, sizes.n));
    return grd_warn(text);
}

/* True if elements with these strides fill memory without gaps. */
static bool is_dense(grd_dims sizes, const int64_t *strides)
{
    int64_t last = 0;
    for (int64_t i = 0; i < sizes.n; i++)
        last += (sizes.data[i] - 1) * strides[i];
    return last == grd_sizes_product(sizes.data, sizes.n) - 1;
}

bool grd_resize_like(grd_tensor *out, grd_dims sizes, const int64_t *strides)
{
    if (!grd_resize(out, sizes))
        return false;
    return strides == NULL || out->numel == 0 || !is_dense(sizes, strides) ||
           grd_set_geometry(out, sizes, grd_dims_from(strides, sizes.n), out->offset);
}

bool grd_resize_out(grd_tensor *out, grd_dims sizes, const int64_t *strides)
{
    return grd_warn_resized(out, sizes) && grd_resize_like(out, sizes, strides);
}

void grd_mark_requires_grad(grd_tensor *t, bool requires_grad)
{
    const grd_keyset bit = 1u << GRD_KEY_AUTOGRAD;
    /* A view whose base says so already is only read. */
    if (requires_grad && !grd_marked_requires_grad(t) && (t->base == NULL || !grd_marked_requires_grad(t->base)))
        __atomic_fetch_or(&t->keys, bit, __ATOMIC_RELAXED);
    else if (!requires_grad)
        __atomic_fetch_and(&t->keys, ~bit, __ATOMIC_RELAXED);
}

grd_tensor *grd_from_storage(grd_tensor *owner, grd_dims sizes, grd_dims strides, int64_t offset, grd_dtype dtype)
{
    if (grd_pending() || !grd_check_dtype(dtype) || !grd_given(owner, "grd_from_storage", "owner"))
        return grd_failed;
    if (grd_is_batch(owner) && !grd_raise_batch_data())
        return grd_failed;
    if (grd_wrapper_type_of(owner) != NULL)
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "a wrapper has no storage that another tensor could lie over");
    /* Complex numbers are pairs. */
    if ((uintptr_t)owner->storage->data % grd_dtype_table[grd_dtype_to_real(dtype)].size != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "the storage is not aligned to elements of %s", grd_dtype_table[dtype].name);
    if ((sizes.data == NULL && sizes.n > 0) || (strides.data == NULL && strides.n > 0))
        return grd_fail(GRD_ERROR_TYPE, "grd_from_storage: arguments 'sizes' and 'strides' must be arrays of %lld numbers",
                        (long long)sizes.n);
    if (!check_bounds(owner, grd_dtype_table[dtype].size, sizes, strides, offset))
        return grd_failed;
    grd_tensor *t = grd_new_detached_as(owner, dtype, sizes, strides, offset);
    if (!grd_is_failed(t)) /* the memory as it is, also where the owner reads it conjugated */
        t->keys &= ~(grd_keyset)(1u << GRD_KEY_CONJUGATE);
    return t;
}

/* ---- Lifetime --------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_keep(grd_tensor *t)
{
    if (t != NULL && (!grd_debugging(GRD_DEBUG_LIFETIMES) || grd_lifetimes_kept(t, "grd_keep")))
        grd_object_keep(t);
    return t;
}

void grd_drop(grd_tensor *t)
{
    if (t != NULL && (!grd_debugging(GRD_DEBUG_LIFETIMES) || grd_lifetimes_dropped(t, "grd_drop")))
        grd_object_drop_as(t, 1);
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

/* Checks that an element at `offset` plus what strides reach lies behind the start of the memory; adds what lies before the lowest to the bytes. */
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
    /* Only now, so that a failure above leaves the memory with the caller. */
    static char no_data;
    struct grd_storage *storage = t->storage;
    storage->data = data != NULL ? data : &no_data; /* not in the block: there is something to release */
    storage->bytes = bytes;
    storage->release = release != NULL ? release : keep_borrowed;
    storage->context = context;
    t->offset = offset;
    t->data = (char *)storage->data + offset * itemsize;
    return t;
}

grd_tensor *grd_number(grd_scalar value)
{
    /* Stored at full precision, whatever the default dtype: in promotion only the kind of a number counts. */
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
