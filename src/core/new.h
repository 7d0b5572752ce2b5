/* Makes tensors and views. Each function returns a pooled tensor, or grd_failed with the error raised. */
#ifndef GRD_CORE_NEW_H
#define GRD_CORE_NEW_H

#include "core/tensor.h"

/* Returns an uninitialised, contiguous tensor. RuntimeError: a size is negative, or the number of bytes overflows. */
grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device);
/* Returns an uninitialised tensor with the given strides, over a new storage that is just large enough for them. */
grd_tensor *grd_new_strided(grd_dims sizes, grd_dims strides, grd_dtype dtype, grd_device device);
/* Describes a tensor that is to be made. */
struct grd_planned {
    grd_dtype dtype, as; /* the result's dtype, and the dtype that the run writes, which is converted at the end */
    uint8_t ndim;
    bool strided; /* false: the tensor will be contiguous, and `strides` is not set */
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};
/* Returns an uninitialised tensor with the sizes of `like`, as empty_like does. Its strides are those of `like` if that is dense and non-overlapping;
 * otherwise they are dense, with the dimensions in the same order. dtype NONE stands for the dtype of `like`. */
grd_tensor *grd_new_like(const grd_tensor *like, grd_dtype dtype);
/* Returns a view of `base`'s storage with strides of any sign; `offset` is counted in elements from the start of the storage. The view owns the
 * tensor that `base` is a view of, or `base` itself. RuntimeError: the view does not lie in the storage. */
grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* Does the work of grd_new_view for another dtype: strides and offset are counted in elements of that dtype. RuntimeError for a batch tensor. */
grd_tensor *grd_new_view_as(grd_tensor *base, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);
/* Does the work of grd_new_view without the check of bounds. The caller knows that the view addresses only elements of `base`. */
grd_tensor *grd_new_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* Returns a batch tensor over `physical`, which it owns and whose dimension 0 is the batch. */
grd_tensor *grd_new_batch(grd_tensor *physical, uint64_t level);
/* Returns a tensor that shares the storage of `t`, and owns it, but has no history and no base. */
grd_tensor *grd_new_detached(grd_tensor *t);
/* Does the work of grd_new_detached for other sizes, strides and offset, counted in elements of `dtype`. The caller has checked that they lie in the
 * storage. RuntimeError for a batch tensor. */
grd_tensor *grd_new_detached_as(grd_tensor *t, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);

static inline grd_tensor *grd_new_planned(const struct grd_planned *planned, grd_dtype dtype, grd_device device)
{
    const grd_dims sizes = grd_dims_from(planned->sizes, planned->ndim);
    return planned->strided ? grd_new_strided(sizes, grd_dims_from(planned->strides, planned->ndim), dtype, device)
                            : grd_new(sizes, dtype, device);
}

#endif
