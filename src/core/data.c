/* Tensors over the storage of other tensors, without their history: aliases with a version of their own, tensors made from a storage, and tensors that
 * exchange their memory for that of another.
 *
 * Note [Lent data]
 * The storage of an alias borrows the data of another storage and keeps that one. A tensor that takes the memory of another gets such a
 * storage. Where it lies in a block, it goes on to own the storage there, since that holds the tensor itself: GRD_FLAG_MOVED says so.
 * A view owns its base and not its storage. So the storage that a tensor had when it moved for the first time is kept by those it moves to, while
 * there are views; views that are made afterwards own their storage (GRD_FLAG_REPLACED), and storages that nobody uses any more go. */
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
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "a wrapper has no storage that another tensor could lie over");
    /* Complex numbers are pairs. */
    if ((uintptr_t)owner->storage->data % grd_dtype_table[grd_dtype_to_real(dtype)].size != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "the storage is not aligned to elements of %s", grd_dtype_table[dtype].name);
    if ((sizes.data == NULL && sizes.n > 0) || (strides.data == NULL && strides.n > 0))
        return grd_fail(GRD_ERROR_TYPE, "grd_from_storage: arguments 'sizes' and 'strides' must be arrays of %lld numbers",
                        (long long)sizes.n);
    if (!grd_check_within_storage(owner, grd_dtype_table[dtype].size, sizes, strides, offset))
        return grd_failed;
    grd_tensor *t = grd_new_detached_as(owner, dtype, sizes, strides, offset);
    if (!grd_is_failed(t)) /* the memory as it is, also where the owner reads it conjugated */
        t->keys &= ~(grd_keyset)(1u << GRD_KEY_CONJUGATE);
    return t;
}

static bool check_data(const grd_tensor *t, const grd_tensor *source)
{
    const grd_dtype dtype = (grd_dtype)source->dtype;
    if (grd_is_failed(t) || grd_is_failed(source))
        return false;
    if (t->device != source->device || grd_wrapper_type_of(t) != NULL || grd_wrapper_type_of(source) != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
                                            "tensor type.");
    if (grd_marked_requires_grad(t) && !grd_dtype_is_floating(dtype) && !grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "data set to a tensor that requires gradients must be floating point or complex dtype");
    return true;
}

/* Exchanges sizes and strides, which lie in the tensor or in a block of their own. */
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

/* Makes `t` the owner of a reference to its storage, to be handed over; the tensor itself keeps what it lies in. */
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

/* Keeps for the views of `t` what its storage is, or has kept for them so far. The storage it moves to is `next`. */
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
    /* From here the alias stands for what `t` was, and goes with the scope. */
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
