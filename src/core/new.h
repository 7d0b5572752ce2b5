/* Declares functions that make tensors and views. Each function returns a tensor, or grd_failed with the error raised. The innermost grd_scope owns
 * the tensor and drops it when the scope closes. */
#ifndef GRD_CORE_NEW_H
#define GRD_CORE_NEW_H

#include "core/tensor.h"

/* Returns an uninitialized, contiguous tensor. Raises RuntimeError if a size is negative or the number of bytes overflows. */
grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device);
/* Returns an uninitialized tensor with the given strides, over a new storage that is just large enough for the elements. */
grd_tensor *grd_new_strided(grd_dims sizes, grd_dims strides, grd_dtype dtype, grd_device device);
/* The dtype, sizes and strides of a tensor that will be allocated. */
struct grd_planned {
    /* `dtype` is the dtype of the result. `as` is the dtype in which the operator writes the result. If the two differ, the result is converted
     * at the end. */
    grd_dtype dtype, as;
    uint8_t ndim;
    bool strided; /* if false, the tensor will be contiguous, and `strides` is not set */
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};
/* Returns an uninitialized tensor with the sizes of `like`, as empty_like does. If `like` is dense and non-overlapping, the new tensor has the
 * strides of `like`. Otherwise it is dense, with its dimensions nested in the same order as those of `like`. A dtype of GRD_DTYPE_NONE stands for
 * the dtype of `like`. */
grd_tensor *grd_new_like(const grd_tensor *like, grd_dtype dtype);
/* Returns a view over the storage of `base`. Strides may have any sign, and `offset` is in elements from the start of the storage. The view owns
 * the tensor that `base` is a view of, or `base` itself if it is no view. Raises RuntimeError if an element would be outside the storage. */
grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* Returns a view over the storage of `base`, as grd_new_view does, but with another dtype. Strides and offset are in elements of `dtype`. Raises
 * RuntimeError for a batch tensor, i.e. inside vmap. */
grd_tensor *grd_new_view_as(grd_tensor *base, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);
/* Returns a view over the storage of `base` without checking bounds. The caller guarantees that each element of the view is an element of `base`. */
grd_tensor *grd_new_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* Returns a batch tensor, i.e. a tensor that operators called by vmap see as one element of a batch. `physical` holds the whole batch along its
 * dimension 0; the batch tensor owns a reference to it. `level` is the number of the vmap call. */
grd_tensor *grd_new_batch(grd_tensor *physical, uint64_t level);
/* Returns a tensor that shares the storage of `t` and owns a reference to it, but has no history and no base. */
grd_tensor *grd_new_detached(grd_tensor *t);
/* Returns a tensor of dtype `dtype` without history and base that shares the storage of `t`. `sizes`, `strides` and `offset` are in elements of
 * `dtype`. The caller has checked that all elements are inside the storage. Raises RuntimeError for a batch tensor, i.e. inside vmap. */
grd_tensor *grd_new_detached_as(grd_tensor *t, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);

/* Returns an uninitialized tensor of dtype `dtype` with the planned sizes and strides. */
static inline grd_tensor *grd_new_planned(const struct grd_planned *planned, grd_dtype dtype, grd_device device)
{
    const grd_dims sizes = grd_dims_from(planned->sizes, planned->ndim);
    return planned->strided ? grd_new_strided(sizes, grd_dims_from(planned->strides, planned->ndim), dtype, device)
                            : grd_new(sizes, dtype, device);
}

#endif
