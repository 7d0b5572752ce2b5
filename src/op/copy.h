/* Copying and filling memory of tensors, with the fast ways: blocks, runs of bytes, blocked transposition.
 * Below the operators: nothing dispatches, records or bumps a version, and meta tensors are left alone.
 * The operators are in conversion.c and creation.c. */
#ifndef GRD_OP_COPY_H
#define GRD_OP_COPY_H

#include "core/shape.h"
#include "core/tensor.h"

enum { GRD_COPY_GRAIN = 256 * 1024 }; /* bytes of a block that one thread copies */

/* Copies bytes, on several threads where it pays. The blocks do not overlap. */
void grd_copy_block(char *to, const char *from, int64_t bytes);
/* Writes `from`, converted, to `to`, which has the same sizes and shares no memory with it, or is the same view. Does nothing while an error is
 * pending, so that either may be the result of a function that makes tensors. */
void grd_copy_strided(grd_tensor *to, const grd_tensor *from);
/* Returns a tensor that stands for a part of t's memory. It is borrowed: without a reference or flags, its sizes and strides in the caller's
 * arrays. */
static inline grd_tensor grd_part_of(const grd_tensor *t, char *data, int64_t *sizes, int64_t *strides)
{
    grd_tensor part = *t;
    part.flags = 0;
    part.data = data;
    part.sizes = sizes;
    part.strides = strides;
    part.numel = grd_sizes_product(sizes, t->ndim);
    return part;
}

/* True if the elements of `t` fill one block of memory, in any order of the dimensions. */
bool grd_is_dense(const grd_tensor *t);
/* True if two tensors of the same sizes have the same strides, of dimensions of size 1 any. */
bool grd_have_same_strides(const grd_tensor *a, const grd_tensor *b);
/* True if the two may share bytes, so that a copy could read what it has already written. Memory of devices from outside counts, too, if it is
 * borrowed. */
bool grd_may_share_bytes(const grd_tensor *a, const grd_tensor *b);
/* Writes one element, of t's dtype, everywhere. */
void grd_fill_elements(grd_tensor *t, const void *element);
/* Returns `t` with the number in every element; grd_failed if its dtype cannot hold the number. */
grd_tensor *grd_filled(grd_tensor *t, grd_scalar value);
void grd_zero_elements(grd_tensor *t);
/* Returns zeros, contiguous and pooled; grd_failed, with the error raised, on failure. */
grd_tensor *grd_new_zeros(grd_dims sizes, grd_dtype dtype, grd_device device);
/* NotImplementedError unless there is a conversion between the dtypes. */
bool grd_check_convertible(grd_dtype from, grd_dtype to);

/* Writes the elements of `from`, broadcast and converted, to `to`. The shapes must broadcast and both be strided cpu tensors
 * (checked by the caller); memory may overlap. Does nothing on meta. False only when a temporary could not be had or there is no
 * conversion between the dtypes. */
bool grd_copy_elements(grd_tensor *to, const grd_tensor *from);
/* Returns `t` itself if it is contiguous and has that dtype (NONE: any), otherwise a contiguous converted copy. */
grd_tensor *grd_contiguous_as(grd_tensor *t, grd_dtype dtype);
/* A new contiguous tensor with the same elements. */
grd_tensor *grd_clone_contiguous(const grd_tensor *t, grd_dtype dtype);
/* Returns `t` broadcast to the sizes of `to`. It is borrowed: without a reference or flags, its strides in the caller's array of GRD_MAX_DIMS. */
grd_tensor grd_spread(const grd_tensor *t, const grd_tensor *to, int64_t *strides);
/* True if the two have the same data pointer, dtype, sizes and strides. */
bool grd_is_same_view(const grd_tensor *a, const grd_tensor *b);

#endif
