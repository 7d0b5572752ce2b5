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

/* a * b modulo 2^64: for strides and sizes that may not fit, because they belong to a dimension with at most one element or to an empty
 * tensor, where no step is ever taken. */
static inline int64_t grd_wrapping_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* The product of sizes modulo 2^64: beside a 0, in the whole tensor, it may not fit. */
static inline int64_t grd_sizes_product(const int64_t *sizes, int64_t n)
{
    int64_t product = 1;
    for (int64_t i = 0; i < n; i++)
        product = grd_wrapping_product(product, sizes[i]);
    return product;
}

/* Product of sizes; false, with RuntimeError naming the sizes, when negative or when it overflows. */
bool grd_shape_numel(grd_dims sizes, int64_t *ret_numel);
void grd_shape_contiguous_strides(grd_dims sizes, int64_t *ret_strides);
bool grd_shape_is_contiguous(grd_dims sizes, const int64_t *strides);
bool grd_shape_is_channels_last(grd_dims sizes, const int64_t *strides);
/* For 4 or 5 dimensions. */
void grd_shape_channels_last_strides(grd_dims sizes, int64_t *ret_strides);
/* True if the dimensions lie in the order of channels last, with or without gaps: what PyTorch's suggest_memory_format asks. Where sizes of 1 leave
 * that open, False. */
bool grd_shape_suggests_channels_last(grd_dims sizes, const int64_t *strides);
/* Every element at its own address, no gaps, in some order of dimensions; strides positive. Empty shapes are dense. */
bool grd_shape_is_dense(grd_dims sizes, const int64_t *strides);
/* True if two indices may share an address: stride 0 with size > 1, or strides that interleave. False is certain, true is not. */
bool grd_shape_may_overlap(grd_dims sizes, const int64_t *strides);
/* Wraps a negative dim; false, with IndexError "Dimension out of range (expected to be in range of [-2, 1], but got 2)".
 * ndim 0 counts as 1. */
void grd_shape_refuse_dim(int64_t dim, int64_t ndim);
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
/* Wraps a list and refuses duplicates ("dim 0 appears multiple times in the list of dims"); absent or empty gives all dims.
 * Bit set of dims. */
bool grd_shape_dim_mask(grd_dims dims, int64_t ndim, uint64_t *ret_mask);
/* Writes the sizes that two shapes broadcast to into ret_sizes[GRD_MAX_DIMS]. False, with RuntimeError
 * "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1", when they do not broadcast. */
bool grd_shape_broadcast(grd_dims a, grd_dims b, int64_t *ret_sizes, int64_t *ret_ndim);
/* Lowest and highest offset, relative to the first element, that an index reaches (both 0 when empty); false, with no error,
 * when they overflow. */
bool grd_shape_extent(grd_dims sizes, const int64_t *strides, int64_t *ret_lowest, int64_t *ret_highest);
/* The order of dimensions, innermost first, that the strides of n operands of these sizes tell. A stride of 0 is of a dimension that is broadcast. */
void grd_shape_order(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int *ret_order);
/* Strides without gaps in that order. */
void grd_shape_ordered_strides(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int64_t *ret_strides);
/* Strides without gaps that keep the order of the given ones: what empty_like gives a tensor that is not dense. */
void grd_shape_dense_strides(grd_dims sizes, const int64_t *strides, int64_t *ret_strides);
/* Strides of a view with new sizes over the old geometry; false (no error) when only a copy can do. Sizes have no -1. */
bool grd_shape_view_strides(grd_dims sizes, const int64_t *strides, grd_dims new_sizes, int64_t *ret_strides);
/* Replaces one -1; false, with RuntimeError "shape '[2, -1]' is invalid for input of size 3". */
bool grd_shape_infer(grd_dims sizes, int64_t numel, int64_t *ret_sizes);

#endif
