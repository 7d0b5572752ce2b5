/* Makes tensors and views. Each function returns a pooled tensor, or grd_failed with the error raised. */
#ifndef GRD_CORE_NEW_H
#define GRD_CORE_NEW_H

#include "core/tensor.h"

/* Uninitialised and contiguous. Sizes are checked: negative is RuntimeError, overflow too. */
grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device);
/* With given strides over a fresh storage big enough for them. */
grd_tensor *grd_new_strided(grd_dims sizes, grd_dims strides, grd_dtype dtype, grd_device device);
/* A tensor to be made. */
struct grd_planned {
    grd_dtype dtype, as; /* of the result, and what the run writes: converted once, at the end */
    uint8_t ndim;
    bool strided; /* with the strides planned; otherwise contiguous, and they are not set */
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};
/* Uninitialised, of the same sizes, and of the same strides where `like` is dense and non-overlapping (otherwise contiguous
 * in the order of its strides), as empty_like. dtype NONE: that of `like`. */
grd_tensor *grd_new_like(const grd_tensor *like, grd_dtype dtype);
/* A view of `base`'s storage with strides of any sign; `offset` is in elements of the storage. Records the root base for
 * autograd. Bounds are checked against the storage: RuntimeError. */
grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* The same with the memory read as elements of another dtype, in which strides and offset are counted. */
grd_tensor *grd_new_view_as(grd_tensor *base, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);
/* The same where the result is known to lie within what `base` reaches, sizes and strides being its own, rearranged or reduced. */
grd_tensor *grd_new_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* A batch tensor over `physical`, whose dimension 0 is the batch. */
grd_tensor *grd_new_batch(grd_tensor *physical, uint64_t level);
/* A view that shares data but has no history and no base. */
grd_tensor *grd_new_detached(grd_tensor *t);
/* Returns a view with any geometry that lies in the storage, and the memory read as elements of another dtype. */
grd_tensor *grd_new_detached_as(grd_tensor *t, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);

static inline grd_tensor *grd_new_planned(const struct grd_planned *planned, grd_dtype dtype, grd_device device)
{
    const grd_dims sizes = grd_dims_from(planned->sizes, planned->ndim);
    return planned->strided ? grd_new_strided(sizes, grd_dims_from(planned->strides, planned->ndim), dtype, device)
                            : grd_new(sizes, dtype, device);
}

#endif
