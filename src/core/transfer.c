/* Copies elements between devices and the CPU, without changing dtypes or sizes.
 *
 * Invariant: addresses on a device are never dereferenced, only passed to the device's copy function. */
#include "core/transfer.h"

#include "core/device.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"

static bool same_strides(const grd_tensor *a, const grd_tensor *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

/* Copies `elements` contiguous elements. The offsets are in elements from the first element of each tensor. Returns false, with the error raised, if
 * the device's copy failed. */
static bool copy_run(grd_tensor *to, const grd_tensor *from, int64_t to_offset, int64_t from_offset, int64_t elements)
{
    const int64_t size = to->itemsize;
    return grd_device_copy(to->data + to_offset * size, grd_device_of(to), from->data + from_offset * size, grd_device_of(from),
                           elements * size);
}

/* Copies all elements, `run` elements with each call of the device's copy function. The dimensions from `outer` on are contiguous in both tensors
 * and have `run` elements together. Returns false, with the error raised, if a copy failed. */
static bool copy_runs(grd_tensor *to, const grd_tensor *from, int outer, int64_t run)
{
    int64_t index[GRD_MAX_DIMS] = {0}, to_offset = 0, from_offset = 0;
    for (;;) {
        if (!copy_run(to, from, to_offset, from_offset, run))
            return false;
        int dim = outer - 1;
        for (; dim >= 0; dim--) {
            to_offset += to->strides[dim];
            from_offset += from->strides[dim];
            if (++index[dim] < to->sizes[dim])
                break;
            to_offset -= to->sizes[dim] * to->strides[dim];
            from_offset -= to->sizes[dim] * from->strides[dim];
            index[dim] = 0;
        }
        if (dim < 0)
            return true;
    }
}

bool grd_transfer(grd_tensor *to, const grd_tensor *from)
{
    if (to->numel == 0)
        return true;
    if (same_strides(to, from) && grd_shape_is_dense(grd_sizes(to), to->strides))
        return copy_run(to, from, 0, 0, to->numel);
    int64_t run = 1;
    int outer = to->ndim;
    while (outer > 0 && (to->sizes[outer - 1] == 1 || (to->strides[outer - 1] == run && from->strides[outer - 1] == run)))
        run *= to->sizes[--outer];
    return copy_runs(to, from, outer, run);
}

grd_tensor *grd_on_cpu(const grd_tensor *t)
{
    const grd_device device = grd_device_of(t);
    if (grd_is_batch(t) && !grd_raise_batch_data())
        return grd_failed;
    if (device.type == GRD_DEVICE_CPU)
        return (grd_tensor *)(uintptr_t)t;
    if (!grd_device_at(device.type)->has_data)
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of %s tensor; no data!", grd_device_name(device));
    grd_tensor *copy = grd_new_strided(grd_sizes(t), grd_strides(t), (grd_dtype)t->dtype, GRD_CPU);
    if (grd_is_failed(copy))
        return grd_failed;
    copy->flags |= t->flags & GRD_FLAG_NUMBER;
    /* The new storage is exactly as large as the memory from the lowest to the highest byte of the elements of `t`, so one copy transfers all of
     * them. */
    const char *lowest = t->data - copy->offset * t->itemsize;
    if (t->numel > 0 && !grd_device_copy(copy->storage->data, GRD_CPU, lowest, device, copy->storage->bytes))
        return grd_failed;
    return copy;
}
