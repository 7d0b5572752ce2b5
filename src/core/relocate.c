/* Gives new memory to a storage: larger memory, smaller memory, or memory shared with other processes.
 *
 * Every tensor over the storage holds the address of its first element, which must be updated. A storage counts its owners but has no list of
 * them. So the caller passes all the tensors, and the reference counts show whether one is missing. Invariant: if one is missing, nothing
 * changes. */
#define _GNU_SOURCE /* for MAP_ANONYMOUS */
#include "core/relocate.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "core/data.h"
#include "core/loan.h"
#include "core/given.h"
#include "core/shape.h"
#include "core/small_tensor.h"
#include "core/storage.h"
#include "core/tensor.h"
#include "core/wrapper.h"

/* The `n` tensors that the caller passed. `root` is the storage whose memory they should all use: the storage of each tensor should be `root`
 * itself or borrow the memory of `root`. */
struct owners {
    grd_tensor *const *tensors;
    int64_t n;
    struct grd_storage *root;
};

static int64_t count_of(const void *object)
{
    return atomic_load_explicit(&((const struct grd_object *)object)->refs, memory_order_acquire);
}

/* Returns how many of the tensors in the list are views of `base`. */
static int64_t views_listed(const struct owners *o, const grd_tensor *base)
{
    int64_t n = 0;
    for (int64_t i = 0; i < o->n; i++)
        n += o->tensors[i]->base == base;
    return n;
}

static bool is_listed(const struct owners *o, const grd_tensor *t)
{
    int64_t i = 0;
    while (i < o->n && o->tensors[i] != t)
        i++;
    return i < o->n;
}

/* Returns how many of the tensors in the list own a reference to `storage`. A view usually owns its base instead. It owns its storage only if the
 * base got another storage (GRD_FLAG_REPLACED). */
static int64_t tensors_listed(const struct owners *o, const struct grd_storage *storage)
{
    int64_t n = 0;
    for (int64_t i = 0; i < o->n; i++)
        n += o->tensors[i]->storage == storage && (o->tensors[i]->base == NULL || grd_has(o->tensors[i], GRD_FLAG_REPLACED));
    return n;
}

/* Returns how many storages of the tensors in the list borrow their memory from the root storage. A storage that several tensors share counts
 * once. */
static int64_t borrowers_listed(const struct owners *o)
{
    int64_t n = 0;
    for (int64_t i = 0; i < o->n; i++) {
        const struct grd_storage *storage = o->tensors[i]->storage;
        int64_t first = 0;
        while (o->tensors[first]->storage != storage)
            first++;
        n += storage != o->root && first == i;
    }
    return n;
}

/* Checks `t`, one of the tensors in the list o->tensors. True if three conditions hold. The storage of `t` is o->root or borrows the memory of
 * o->root. The list contains the base of `t` or, if `t` is no view, all views of `t`. The list contains all tensors that own the storage of `t`;
 * this is checked only if the storage of `t` is not o->root. */
static bool is_accounted_for(const struct owners *o, const grd_tensor *t)
{
    const struct grd_storage *storage = t->storage;
    if (grd_is_batch(t) || grd_wrapper_type_of(t) != NULL || grd_storage_root(t->storage) != o->root)
        return false;
    if (storage != o->root && count_of(storage) != tensors_listed(o, storage))
        return false;
    return t->base != NULL ? is_listed(o, t->base) : count_of(t) / GRD_VIEW_WEIGHT == views_listed(o, t);
}

bool grd_storage_owned_by(grd_tensor *const *tensors, int64_t n)
{
    if (!grd_given_all(tensors, n, "grd_storage_owned_by", "tensors"))
        return false;
    const struct owners o = {tensors, n, grd_storage_root(tensors[0]->storage)};
    if (count_of(o.root) != tensors_listed(&o, o.root) + borrowers_listed(&o))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!is_accounted_for(&o, tensors[i]))
            return false;
    return true;
}

bool grd_storage_replace(grd_tensor *const *tensors, int64_t n, void *data, int64_t bytes, void (*release)(void *context), void *context)
{
    if (!grd_storage_owned_by(tensors, n))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "the memory of a storage cannot be replaced while something other than its tensors uses it, such as a graph "
                         "that saved it, a buffer or a NumPy array");
    struct grd_storage *root = grd_storage_root(tensors[0]->storage);
    const int64_t kept = root->bytes < bytes ? root->bytes : bytes;
    if (kept > 0)
        memcpy(data, root->data, (size_t)kept);
    grd_storage_empty(root);
    root->data = data;
    root->bytes = bytes;
    root->release = release;
    root->context = context;
    for (int64_t i = 0; i < n; i++) {
        grd_tensor *t = tensors[i];
        t->storage->data = data;
        t->storage->bytes = bytes;
        t->data = (char *)((uintptr_t)data + (uintptr_t)t->offset * t->itemsize);
    }
    return true;
}

/* ---- Other sizes ------------------------------------------------------------------------------------------------------------------ */

/* The context that is passed to the release function of a storage if mmap allocated the memory. */
struct mapping {
    void *data;
    size_t length;
};

static void end_mapping(void *context)
{
    struct mapping *mapping = context;
    munmap(mapping->data, mapping->length);
    grd_free(mapping, sizeof *mapping);
}

/* Returns the number of bytes from the start of the storage to the end of the last element that any of the `n` tensors has. */
static int64_t reach_of(grd_tensor *const *tensors, int64_t n)
{
    int64_t reach = 0, lowest, highest;
    for (int64_t i = 0; i < n; i++) {
        const grd_tensor *t = tensors[i];
        if (t->numel > 0 && grd_shape_extent(grd_sizes(t), t->strides, &lowest, &highest)) {
            const int64_t end = (t->offset + highest + 1) * t->itemsize;
            reach = end > reach ? end : reach;
        }
    }
    return reach;
}

bool grd_storage_resizable(const grd_tensor *t)
{
    if (!grd_given(t, "grd_storage_resizable", "t"))
        return false;
    const struct grd_storage *root = grd_storage_root(t->storage);
    return root->device == GRD_DEVICE_CPU && (root->release == NULL || root->release == end_mapping);
}

/* The storage gets new memory from mmap. Some tensors may have elements beyond the new size of the storage. The new memory is large enough for these
 * elements too. Its pages are zero and occupy no physical memory until they are written. */
bool grd_storage_resize(grd_tensor *const *tensors, int64_t n, int64_t bytes)
{
    if (grd_pending() || !grd_given_all(tensors, n, "grd_storage_resize", "tensors"))
        return false;
    if (bytes < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "cannot resize a storage to %lld bytes", (long long)bytes);
    if (!grd_storage_resizable(tensors[0]))
        return grd_raise(GRD_ERROR_RUNTIME, "Trying to resize storage that is not resizable");
    const int64_t reach = reach_of(tensors, n), length = bytes > reach ? bytes : reach > 0 ? reach : 1;
    struct mapping *mapping = grd_alloc(sizeof *mapping);
    if (mapping == NULL)
        return false;
    void *data = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        grd_free(mapping, sizeof *mapping);
        return grd_raise(GRD_ERROR_MEMORY, "out of memory: %lld bytes", (long long)length);
    }
    *mapping = (struct mapping){data, (size_t)length};
    if (grd_storage_replace(tensors, n, data, bytes, end_mapping, mapping))
        return true;
    end_mapping(mapping);
    return false;
}

void grd_set_storage(grd_tensor *t, grd_tensor *source, grd_dims sizes, grd_dims strides, int64_t offset)
{
    if (!grd_given(t, "grd_set_storage", "t") || !grd_given(source, "grd_set_storage", "source") || grd_pending())
        return;
    if (t->device != source->device) {
        grd_raise(GRD_ERROR_RUNTIME,
                  "Attempted to set the storage of a tensor on device \"%s\" to a storage on different device \"%s\".  This is no longer "
                  "allowed; the devices must match.",
                  grd_device_name(grd_device_of(t)), grd_device_name(grd_device_of(source)));
        return;
    }
    grd_set_data(t, grd_from_storage(source, sizes, strides, offset, (grd_dtype)t->dtype));
    if (!grd_pending())
        grd_bump_version(t);
}
