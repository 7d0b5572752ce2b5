/* Copies and fills the memory of tensors. Contiguous blocks and transpositions have fast paths.
 * These functions call no operators: they do not dispatch, record or bump versions. Meta tensors are left alone. The operators are in conversion.c
 * and creation.c. */
#ifndef GRD_OP_COPY_H
#define GRD_OP_COPY_H

#include "core/shape.h"
#include "core/tensor.h"

enum { GRD_COPY_GRAIN = 256 * 1024 }; /* bytes that one task copies */

/* Copies `bytes` bytes between blocks that do not overlap. Uses several threads if `bytes` is above GRD_COPY_GRAIN. */
void grd_copy_block(char *to, const char *from, int64_t bytes);
/* Writes the elements of `from`, converted, to `to`. The two tensors have the same sizes, and they either are the same view or share no memory. Does
 * nothing while an error is pending, so the arguments may be results of functions that failed. */
void grd_copy_strided(grd_tensor *to, const grd_tensor *from);
/* Returns a tensor struct for the part of t's memory at `data`, with the caller's arrays as sizes and strides. The struct owns nothing and must not
 * outlive `t` and these arrays. */
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

/* True if two tensors of the same sizes have the same strides, ignoring dimensions of size 1. */
bool grd_have_same_strides(const grd_tensor *a, const grd_tensor *b);
/* True if `a` and `b` may share bytes, so that a copy could overwrite elements before it reads them. This is possible if both use the same storage,
 * or if both storages borrow their memory from outside of the library. */
bool grd_may_share_bytes(const grd_tensor *a, const grd_tensor *b);
/* Sets every element of `t` to the number at the address `element`, which has t's dtype. */
void grd_fill_elements(grd_tensor *t, const void *element);
/* Writes `value` to every element of `t` and returns `t`. Returns grd_failed, with the error raised, if t's dtype cannot hold `value`. */
grd_tensor *grd_filled(grd_tensor *t, grd_scalar value);
void grd_zero_elements(grd_tensor *t);
/* Returns a new contiguous tensor of zeros, which the current pool owns. Returns grd_failed, with the error raised, on failure. */
grd_tensor *grd_new_zeros(grd_dims sizes, grd_dtype dtype, grd_device device);
/* Raises NotImplementedError and returns false if elements of dtype `from` cannot be converted to dtype `to`. */
bool grd_check_convertible(grd_dtype from, grd_dtype to);

/* Writes the elements of `from`, broadcast and converted, to `to`; the two may overlap. The caller checks that the shapes broadcast and that both are
 * strided CPU tensors. Does nothing on the meta device. Returns false, with the error raised, if memory for a temporary copy runs out or there is no
 * conversion between the dtypes. */
bool grd_copy_elements(grd_tensor *to, const grd_tensor *from);
/* Returns `t` itself if it is contiguous and has the given dtype (GRD_DTYPE_NONE allows any), otherwise a contiguous converted copy. */
grd_tensor *grd_contiguous_as(grd_tensor *t, grd_dtype dtype);
/* Returns a new contiguous tensor with the elements of `t`, converted to `dtype` unless this is GRD_DTYPE_NONE. */
grd_tensor *grd_clone_contiguous(const grd_tensor *t, grd_dtype dtype);
/* Returns a tensor struct that describes `t` broadcast to the sizes of `to`. The struct owns nothing and must not outlive `t`. Its strides are
 * written to `strides`, an array of GRD_MAX_DIMS elements. */
grd_tensor grd_spread(const grd_tensor *t, const grd_tensor *to, int64_t *strides);
/* True if `a` and `b` have the same data pointer, dtype, sizes and strides. */
bool grd_is_same_view(const grd_tensor *a, const grd_tensor *b);

#endif
