/* Frees and grows storages, which are the memory that tensors share.
 *
 * Invariant: a storage is part of a struct grd_block and frees this block when the storage's last owner drops it. Data outside the block is freed
 * by its device or by the storage's `release` function. */
#include "core/storage.h"

#include <string.h>

#include "base/memory.h"
#include "core/device.h"
#include "core/given.h"
#include "core/loan.h"
#include "core/small_tensor.h"
#include "core/tensor.h"

static struct grd_block *block_of(const struct grd_storage *storage)
{
    return (struct grd_block *)((char *)storage - offsetof(struct grd_block, storage));
}

static grd_device device_of(const struct grd_storage *storage)
{
    return (grd_device){storage->device, storage->device_index};
}

/* Frees the data of a storage, unless it is part of the storage's block. */
static void release_data(struct grd_storage *storage)
{
    if (storage->release != NULL)
        storage->release(storage->context);
    else if (storage->data != NULL && storage->data != block_of(storage)->data)
        grd_device_release(device_of(storage), storage->data, storage->bytes);
}

void grd_storage_empty(struct grd_storage *storage)
{
    release_data(storage);
    storage->data = NULL;
    storage->bytes = 0;
    storage->release = NULL;
}

static void storage_finish(struct grd_object *object)
{
    struct grd_storage *storage = (struct grd_storage *)object;
    release_data(storage);
    grd_free(block_of(storage), storage->block_bytes);
}

/* Frees a storage. The release function of borrowed data may drop other objects and thereby free more storages. A storage with a release function is
 * therefore freed through grd_object_end, which limits the recursion. */
static void storage_destroy(struct grd_object *object)
{
    if (((struct grd_storage *)object)->release != NULL)
        grd_object_end(object, storage_finish);
    else
        storage_finish(object);
}

const struct grd_object_type grd_storage_type = {.name = "storage", .destroy = storage_destroy, .finish = storage_finish};

bool grd_storage_grow(grd_tensor *t, int64_t bytes)
{
    struct grd_storage *storage = t->storage;
    /* Growing is refused here because other tensors would keep the old address, and because borrowed data must not be freed. */
    if (t->base != NULL || grd_has_views(t) || !grd_object_unique(storage) || storage->release != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Trying to resize storage that is not resizable");
    const grd_device device = device_of(storage);
    if (grd_device_at(device.type)->has_data) {
        void *data = grd_device_allocate(device, bytes);
        if (data == NULL)
            return false;
        if (!grd_device_copy(data, device, storage->data, device, storage->bytes)) {
            grd_device_release(device, data, bytes);
            return false;
        }
        release_data(storage);
        storage->data = data;
    }
    storage->bytes = bytes;
    return true;
}

int64_t grd_storage_bytes(const grd_tensor *t)
{
    return t != NULL && grd_given(t, "grd_storage_bytes", "t") ? t->storage->bytes : 0;
}

const void *grd_storage_identity(const grd_tensor *t)
{
    return t != NULL && grd_given(t, "grd_storage_identity", "t") ? grd_storage_root(t->storage) : NULL;
}

bool grd_same_storage(const grd_tensor *a, const grd_tensor *b)
{
    static const char name[] = "grd_same_storage";
    return a != NULL && b != NULL && grd_given(a, name, "a") && grd_given(b, name, "b") &&
           grd_storage_root(a->storage) == grd_storage_root(b->storage);
}
