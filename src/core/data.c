/* Makes tensors that share the memory of other tensors but not their history: aliases with their own version counter (grd_alias), tensors over
 * the storage of a given tensor (grd_from_storage), and tensors that take over the memory of another tensor (grd_set_data).
 *
 * Note [Lent data]
 * The storage of an alias borrows the data of another storage, the lender, and owns a reference to the lender. A tensor that takes over the
 * memory of another tensor (grd_set_data) gets such a borrowing storage.
 * A tensor that was allocated in one block of memory with its first storage must keep that storage alive as long as it lives itself, because the
 * storage owns the block. GRD_FLAG_MOVED says that such a tensor has another storage now.
 * A view uses the storage that its base had when the view was made. Usually the view owns only its base, and the base owns this storage. When
 * grd_set_data first gives a base another storage, the earlier views still use the first storage. So the new storage owns the first storage (struct
 * grd_loan) as long as the base has views. Views that are made later own their storage themselves (GRD_FLAG_REPLACED), so that a storage which no
 * tensor uses any more is freed. */
#include "core/data.h"

#include <string.h>

#include "base/memory.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/given.h"
#include "core/loan.h"
#include "core/new.h"
#include "core/races.h"
#include "core/resize.h"
#include "core/small_tensor.h"
#include "core/storage.h"
#include "core/tensor.h"
#include "core/wrapper.h"

grd_tensor *grd_alias(grd_tensor *t)
{
    if (!grd_given(t, "grd_alias", "t") || grd_pending())
        return grd_failed;
    grd_tensor *alias = grd_new_detached(t);
    if (grd_is_failed(alias) || grd_wrapper_type_of(t) != NULL)
        return alias;
    struct grd_storage *storage = grd_storage_lend(t->storage);
    if (storage == NULL)
        return grd_failed;
    grd_object_drop(alias->storage);
    alias->storage = storage;
    return alias;
}

/* ---- Moving ------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *grd_from_storage(grd_tensor *owner, grd_dims sizes, grd_dims strides, int64_t offset, grd_dtype dtype)
{
    if (grd_pending() || !grd_check_dtype(dtype) || !grd_given(owner, "grd_from_storage", "owner"))
        return grd_failed;
    if (grd_is_batch(owner) && !grd_raise_batch_data())
        return grd_failed;
    if (grd_wrapper_type_of(owner) != NULL)
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "a wrapper has no storage that another tensor could share");
    /* The address must be a multiple of the element size. For a complex dtype a multiple of the size of the real part is enough, because a complex
     * number is stored as a pair of reals. */
    if ((uintptr_t)owner->storage->data % grd_dtype_table[grd_dtype_to_real(dtype)].size != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "the storage is not aligned to elements of %s", grd_dtype_table[dtype].name);
    if ((sizes.data == NULL && sizes.n > 0) || (strides.data == NULL && strides.n > 0))
        return grd_fail(GRD_ERROR_TYPE, "grd_from_storage: arguments 'sizes' and 'strides' must be arrays of %lld numbers",
                        (long long)sizes.n);
    if (!grd_check_within_storage(owner, grd_dtype_table[dtype].size, sizes, strides, offset))
        return grd_failed;
    grd_tensor *t = grd_new_detached_as(owner, dtype, sizes, strides, offset);
    /* Removing the key CONJUGATE makes the new tensor read the memory unchanged, even if `owner` reads its elements as conjugates. */
    if (!grd_is_failed(t))
        t->keys &= ~(grd_keyset)(1u << GRD_KEY_CONJUGATE);
    return t;
}

/* True if grd_set_data may give `t` the memory of `source`. Otherwise returns false, with RuntimeError. If `t` or `source` is grd_failed, the result
 * of a failed call, returns false without a new error. */
static bool check_data(const grd_tensor *t, const grd_tensor *source)
{
    const grd_dtype dtype = (grd_dtype)source->dtype;
    if (grd_is_failed(t) || grd_is_failed(source))
        return false;
    if (t->device != source->device || grd_wrapper_type_of(t) != NULL || grd_wrapper_type_of(source) != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
                                            "tensor type.");
    if (grd_marked_requires_grad(t) && !grd_dtype_is_inexact(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "data set to a tensor that requires gradients must be floating point or complex dtype");
    return true;
}

/* Exchanges the sizes, strides, numel and ndim of two tensors. Sizes and strides are stored either inside the tensor (inline_dims) or in a
 * separately allocated array. */
static void swap_dims(grd_tensor *a, grd_tensor *b)
{
    int64_t *const sizes[] = {a->sizes, b->sizes}, *const strides[] = {a->strides, b->strides};
    const bool inside[] = {sizes[0] == a->inline_dims, sizes[1] == b->inline_dims};
    int64_t kept[2 * GRD_INLINE_DIMS];
    memcpy(kept, a->inline_dims, sizeof kept);
    memcpy(a->inline_dims, b->inline_dims, sizeof kept);
    memcpy(b->inline_dims, kept, sizeof kept);
    a->sizes = inside[1] ? a->inline_dims : sizes[1];
    a->strides = inside[1] ? a->inline_dims + GRD_INLINE_DIMS : strides[1];
    b->sizes = inside[0] ? b->inline_dims : sizes[0];
    b->strides = inside[0] ? b->inline_dims + GRD_INLINE_DIMS : strides[0];
    const int64_t numel = a->numel;
    a->numel = b->numel;
    b->numel = numel;
    const uint16_t ndim = a->ndim;
    a->ndim = b->ndim;
    b->ndim = ndim;
}

void grd_batch_swap(grd_tensor *a, grd_tensor *b)
{
    struct grd_batch *const one = (struct grd_batch *)a, *const other = (struct grd_batch *)b;
    grd_tensor *const physical = one->physical;
    struct grd_storage *const storage = a->storage;
    const int64_t offset = a->offset;
    const uint16_t flags = a->flags;
    one->physical = other->physical;
    other->physical = physical;
    a->storage = b->storage;
    b->storage = storage;
    a->offset = b->offset;
    b->offset = offset;
    a->flags = b->flags;
    b->flags = flags;
    swap_dims(a, b);
    grd_mark_batch(a);
    grd_mark_batch(b);
}

/* Makes `t` own a reference to its storage, so that set_data can give this reference away. A view gives up its base. A tensor that was allocated
 * together with its storage sets GRD_FLAG_MOVED and keeps a second reference to the storage, whose memory contains the tensor. */
static void own_storage(grd_tensor *t)
{
    if (t->base != NULL) {
        if (!grd_has(t, GRD_FLAG_REPLACED))
            grd_object_keep(t->storage);
        grd_object_drop_as(t->base, GRD_VIEW_WEIGHT);
        t->base = NULL;
    } else if (t->storage == &((struct grd_block *)t)->storage) {
        if (grd_object_unique(t->storage) && !grd_has_views(t))
            grd_storage_empty(t->storage);
        grd_object_keep(t->storage);
        t->flags |= GRD_FLAG_MOVED;
    }
}

/* Called before `t` gets the storage `next`. Views that were made before the first grd_set_data of `t` use the first storage of `t`, usually without
 * owning it. If `t` has views, makes `next` own this first storage, so that it is not freed. Sets GRD_FLAG_REPLACED of `t`. */
static void retire_storage(grd_tensor *t, struct grd_storage *next)
{
    struct grd_loan *loan = grd_loan_of(next);
    if (!grd_has(t, GRD_FLAG_REPLACED)) {
        loan->retired = grd_has_views(t) ? grd_object_keep(t->storage) : NULL;
    } else {
        const struct grd_loan *last = grd_loan_of(t->storage);
        loan->retired = last != NULL && grd_has_views(t) && last->retired != NULL ? grd_object_keep(last->retired) : NULL;
    }
    t->flags |= GRD_FLAG_REPLACED;
}

/* Makes `t` use the memory, sizes, strides and dtype of `source`, but keeps the history of `t`. The caller has called the race detector
 * (core/races.h); all other checks are made here. Raises an error if a check fails. */
static void set_data(grd_tensor *t, grd_tensor *source)
{
    if (t == source || !check_data(t, source))
        return;
    if (grd_is_batch(t) && !grd_raise_batch_data())
        return;
    grd_tensor *alias = grd_alias(source);
    if (grd_pending())
        return;
    atomic_store_explicit(&alias->storage->version, grd_version_of(t), memory_order_relaxed);
    if (grd_was_saved(t))
        grd_mark_saved(alias);
    own_storage(t);
    retire_storage(t, alias->storage);
    /* Exchange the memory of `t` and `alias`. The old memory then belongs to `alias`, a temporary that is freed later. */
    struct grd_storage *storage = t->storage;
    t->storage = alias->storage;
    alias->storage = storage;
    swap_dims(t, alias);
    t->dtype = alias->dtype;
    t->itemsize = alias->itemsize;
    t->data = alias->data;
    t->offset = alias->offset;
    t->device_index = alias->device_index;
    const grd_keyset conjugated = 1u << GRD_KEY_CONJUGATE;
    t->keys = (t->keys & ~conjugated) | (grd_keys_read(alias) & conjugated);
    t->flags = (uint16_t)((t->flags & ~GRD_FLAGS_GEOMETRY) | (alias->flags & GRD_FLAGS_GEOMETRY));
    grd_tell_reshaped(t);
}

void grd_set_data(grd_tensor *t, grd_tensor *source)
{
    static const char name[] = "grd_set_data";
    if (!grd_given(t, name, "t") || !grd_given(source, name, "source") || grd_pending())
        return;
    struct grd_race race = {.name = name, .args = &(grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = t}, .nargs = 1, .alone = true};
    const bool watched = grd_debugging(GRD_DEBUG_RACES);
    if (watched && !grd_race_begin(&race))
        return;
    set_data(t, source);
    if (watched)
        grd_race_end(&race);
}
