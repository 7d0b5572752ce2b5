/* Copying and filling memory of tensors, with the fast ways: blocks, runs of bytes, blocked transposition.
 * Below the operators: nothing dispatches, records or bumps a version, and meta tensors are left alone.
 * The operators around these are in copy.c and join.c. */
#ifndef GRD_OP_COPY_H
#define GRD_OP_COPY_H

#include "core/tensor.h"

enum { GRD_COPY_GRAIN = 256 * 1024 }; /* bytes of a block that one thread copies */

/* Copies bytes, on several threads where it pays. The blocks do not overlap. */
void grd_copy_block(char *to, const char *from, int64_t bytes);
/* Writes `from`, converted, to `to`. Same sizes; no memory in common, or the very same elements. Nothing while an
 * error is pending, so that either may come straight from a function that makes tensors. */
void grd_copy_strided(grd_tensor *to, const grd_tensor *from);
/* `t` with other elements of the memory it lies in, to be read or written here and now: no reference, no flags, and sizes and strides where the
 * caller has them. */
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

/* True if the two may have bytes in common that a copy would read after it has written them: devices from outside are read first. */
bool grd_may_share_bytes(const grd_tensor *a, const grd_tensor *b);
/* Writes one element, of t's dtype, everywhere. */
void grd_fill_elements(grd_tensor *t, const void *element);
/* `t`, with a number everywhere; grd_failed where its dtype cannot hold that. */
grd_tensor *grd_filled(grd_tensor *t, grd_scalar value);
void grd_zero_elements(grd_tensor *t);
/* Zeros, contiguous and pooled; grd_failed, with the error raised, on failure. */
grd_tensor *grd_new_zeros(grd_dims sizes, grd_dtype dtype, grd_device device);
/* NotImplementedError unless there is a conversion between the dtypes. */
bool grd_check_convertible(grd_dtype from, grd_dtype to);

#endif
