/* Destroys tensors: frees a tensor and drops what it owns when its last reference is dropped. */
#include "core/geometry.h"
#include "base/small_blocks.h"
#include "core/lifetimes.h"
#include "core/tensor.h"

/* Frees a tensor without autograd state. The tensor can be a view, a tensor of vmap (struct grd_batch), a tensor with many dimensions, or a tensor
 * whose data is allocated separately. */
static __attribute__((noinline)) void destroy_any(grd_tensor *t)
{
    grd_tensor *base = t->base;
    struct grd_storage *storage = t->storage;
    /* If `t` was allocated in one block with a storage, this is the address of that storage, which owns the block. */
    struct grd_storage *own = &((struct grd_block *)t)->storage;
    const bool moved = grd_has(t, GRD_FLAG_MOVED), apart = storage != own && !moved, is_batch = grd_is_batch(t);
    grd_free_dims(t, t->sizes, t->ndim);
    const bool owns_storage = base == NULL || grd_owns_storage_as_view(t);
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

/* Frees a view with at most GRD_INLINE_DIMS dimensions and without autograd state. */
static __attribute__((noinline)) void destroy_view(grd_tensor *t)
{
    if (grd_owns_storage_as_view(t))
        grd_object_drop(t->storage);
    grd_object_drop_as(t->base, GRD_VIEW_WEIGHT);
    grd_small_free(t, sizeof *t);
}

static void tensor_destroy(struct grd_object *object);

/* Frees a tensor with autograd state. The state is dropped first; the rest is freed like any other tensor. */
static __attribute__((noinline)) void destroy_recorded(grd_tensor *t)
{
    grd_object_drop_as(t->autograd, 1);
    t->autograd = NULL;
    tensor_destroy(&t->object);
}

/* Frees a tensor. The fast path is a tensor that was allocated in one block with its storage and data and is the only user of that block. */
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
