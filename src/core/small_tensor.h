/* Initializes the header and the storage of a new tensor, and makes small tensors by inline code. Operators that do little work include this
 * header, because a function call would take a large part of their time. */
#ifndef GRD_CORE_SMALL_TENSOR_H
#define GRD_CORE_SMALL_TENSOR_H

#include "base/small_blocks.h"
#include "core/tensor.h"

extern const struct grd_object_type grd_tensor_type, grd_storage_type;

/* Sets all members of a tensor's header except storage, data, offset, sizes, strides and numel. `traits` is the value of grd_traits for the
 * tensor, i.e. its dtype, device, flags and number of dimensions as one number. The flags in it must fit the sizes and strides, which the caller
 * sets. */
static inline void grd_init_header(grd_tensor *t, uint64_t traits, uint32_t itemsize, grd_keyset keys)
{
    t->object.type = &grd_tensor_type;
    atomic_init(&t->object.refs, 1);
    t->keys = keys;
    t->itemsize = itemsize;
    t->traits = traits;
    t->base = NULL;
    t->autograd = NULL;
    t->binding = NULL;
}

/* Initializes the storage in `block`, with `bytes` bytes of data at `data`, and makes the tensor in `block` its first user, with offset 0.
 * `block_bytes` is the size of the whole block. */
static inline void grd_init_storage(struct grd_block *block, size_t block_bytes, void *data, int64_t bytes, grd_device device)
{
    struct grd_storage *storage = &block->storage;
    storage->object.type = &grd_storage_type;
    atomic_init(&storage->object.refs, 1);
    storage->data = data;
    storage->bytes = bytes;
    atomic_init(&storage->version, 0);
    storage->block_bytes = (uint16_t)block_bytes;
    storage->device = device.type;
    storage->device_index = device.index;
    storage->release = NULL;
    atomic_init(&storage->saved, false);
    block->tensor.storage = storage;
    block->tensor.data = data;
    block->tensor.offset = 0;
}

/* True if `bytes` is between 1 and GRD_SMALL_BYTES, so that the data fits into the memory block of its tensor. */
static inline bool grd_is_small_data(size_t bytes)
{
    return bytes - 1 < GRD_SMALL_BYTES;
}

/* Returns a contiguous CPU tensor of `numel` elements, which is owned by the innermost grd_scope and has its data in its own memory block. The caller
 * still has to write the sizes and strides, at most GRD_INLINE_DIMS of each. They must fit `traits` (dtype, device, flags and rank as one number).
 * Returns NULL, without an error, if the tensor is empty or not small, or if this thread has no free memory block or no room in its pool of
 * references. In this case the caller calls grd_new. */
GRD_INLINE grd_tensor *grd_make_small(uint64_t traits, size_t numel, size_t itemsize)
{
    const size_t bytes = numel * itemsize, block_bytes = sizeof(struct grd_block) + bytes;
    if (GRD_UNLIKELY(!grd_is_small_data(bytes) || grd_thread.pool_top == grd_thread.pool_capacity))
        return NULL;
    struct grd_block *block = grd_small_take(block_bytes);
    if (GRD_UNLIKELY(block == NULL))
        return NULL;
    grd_tensor *t = &block->tensor;
    grd_thread.pool[grd_thread.pool_top++] = t;
    grd_init_storage(block, block_bytes, block->data, (int64_t)bytes, GRD_CPU);
    grd_init_header(t, traits, (uint32_t)itemsize, 1u << GRD_KEY_CPU);
    t->sizes = t->inline_dims;
    t->strides = t->inline_dims + GRD_INLINE_DIMS;
    t->numel = (int64_t)numel;
    grd_count_alloc(grd_small_size(grd_small_class(block_bytes)));
    return t;
}

#endif
