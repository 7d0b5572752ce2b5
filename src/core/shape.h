/* Shape algebra: pure functions of sizes and strides, which know no tensor. */
#ifndef GRD_CORE_SHAPE_H
#define GRD_CORE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gradus/tensor.h"

static inline bool grd_dims_equal(grd_dims a, grd_dims b)
{
    if (a.n != b.n)
        return false;
    for (int64_t i = 0; i < a.n; i++)
        if (a.data[i] != b.data[i])
            return false;
    return true;
}

/* Returns a * b modulo 2^64. Only strides that no element uses may overflow: those of an empty tensor
 * or of a dimension with one element. */
static inline int64_t grd_wrapping_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Returns the product of the sizes modulo 2^64. A part of the sizes of an empty tensor may overflow. */
static inline int64_t grd_sizes_product(const int64_t *sizes, int64_t n)
{
    int64_t product = 1;
    for (int64_t i = 0; i < n; i++)
        product = grd_wrapping_product(product, sizes[i]);
    return product;
}

/* Writes the product of the sizes. False, with RuntimeError that names the sizes, if one is negative or the product overflows. */
bool grd_shape_numel(grd_dims sizes, int64_t *ret_numel);
void grd_shape_contiguous_strides(grd_dims sizes, int64_t *ret_strides);
bool grd_shape_is_contiguous(grd_dims sizes, const int64_t *strides);
bool grd_shape_is_channels_last(grd_dims sizes, const int64_t *strides);
/* Writes the strides of channels last. `sizes` has 4 or 5 dimensions. */
void grd_shape_channels_last_strides(grd_dims sizes, int64_t *ret_strides);
/* True if the dimensions lie in the order of channels last, with or without gaps: what PyTorch's suggest_memory_format asks. Where sizes of 1 leave
 * that open, False. */
bool grd_shape_suggests_channels_last(grd_dims sizes, const int64_t *strides);
/* True if the strides are those of a contiguous tensor in some order of the dimensions (non-overlapping and dense). Empty shapes are dense. */
bool grd_shape_is_dense(grd_dims sizes, const int64_t *strides);
/* True if two indices may share an address: stride 0 with size > 1, or strides that interleave. False is certain, true is not. */
bool grd_shape_may_overlap(grd_dims sizes, const int64_t *strides);
/* Raises IndexError "Dimension out of range (expected to be in range of [-2, 1], but got 2)". */
void grd_shape_refuse_dim(int64_t dim, int64_t ndim);
/* Writes `dim`, with ndim added if it is negative. False, with IndexError, if it is out of range. An ndim of 0 counts as 1. */
static inline bool grd_shape_wrap_dim(int64_t dim, int64_t ndim, int64_t *ret_dim)
{
    const int64_t n = ndim > 1 ? ndim : 1, wrapped = dim < 0 ? dim + n : dim;
    if (GRD_UNLIKELY((uint64_t)wrapped >= (uint64_t)n)) {
        grd_shape_refuse_dim(dim, ndim);
        return false;
    }
    *ret_dim = wrapped;
    return true;
}
/* Writes the bit set of the dims of a list, negative ones wrapped; an absent or empty list stands for all dims. False with IndexError for a dim out
 * of range, or RuntimeError "dim 0 appears multiple times in the list of dims". */
bool grd_shape_dim_mask(grd_dims dims, int64_t ndim, uint64_t *ret_mask);
/* Writes the sizes that two shapes broadcast to into ret_sizes[GRD_MAX_DIMS]. False, with RuntimeError
 * "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1", when they do not broadcast. */
bool grd_shape_broadcast(grd_dims a, grd_dims b, int64_t *ret_sizes, int64_t *ret_ndim);
/* Lowest and highest offset, relative to the first element, that an index reaches (both 0 when empty); false, with no error,
 * when they overflow. */
bool grd_shape_extent(grd_dims sizes, const int64_t *strides, int64_t *ret_lowest, int64_t *ret_highest);
/* Writes the order of dimensions, innermost first, that the strides of n operands imply. A stride of 0 marks a broadcast dimension. */
void grd_shape_order(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int *ret_order);
/* Writes the strides of a dense tensor whose dimensions lie in the order of grd_shape_order. */
void grd_shape_ordered_strides(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int64_t *ret_strides);
/* Writes dense strides in the order of the given ones, as empty_like does for a tensor that is not dense. */
void grd_shape_dense_strides(grd_dims sizes, const int64_t *strides, int64_t *ret_strides);
/* Strides of a view with new sizes over the old geometry; false (no error) when only a copy can do. Sizes have no -1. */
bool grd_shape_view_strides(grd_dims sizes, const int64_t *strides, grd_dims new_sizes, int64_t *ret_strides);
/* Writes the sizes, with the one size of -1, if there is one, replaced by what `numel` leaves. False, with RuntimeError
 * "shape '[2, -1]' is invalid for input of size 3", if they do not fit. */
bool grd_shape_infer(grd_dims sizes, int64_t numel, int64_t *ret_sizes);

#endif
