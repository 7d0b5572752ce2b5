/* Storage: the bytes tensors share, where they came from, and how they go back.
 *
 * Invariant: a storage lies in a struct grd_block and frees that block when its last owner goes; data that lies
 * elsewhere goes back to its device, or to whoever lent it. */
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

/* Whoever lent the data may own anything. */
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
    /* Other tensors would keep the old address; or the data is not ours. */
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
