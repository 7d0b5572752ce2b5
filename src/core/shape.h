/* Declares functions of sizes and strides that need no tensor: sizes of broadcasts and views, contiguous and other strides, and the order of
 * dimensions. */
#ifndef GRD_CORE_SHAPE_H
#define GRD_CORE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gradus/tensor.h"

/* True if both lists have the same length and the same elements. */
static inline bool grd_dims_equal(grd_dims a, grd_dims b)
{
    if (a.n != b.n)
        return false;
    for (int64_t i = 0; i < a.n; i++)
        if (a.data[i] != b.data[i])
            return false;
    return true;
}

/* Returns a * b modulo 2^64. A product of strides and sizes can only overflow if no element uses it, i.e. in an empty tensor or for a dimension
 * of size 1. */
static inline int64_t grd_wrapping_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Returns the product of the `n` sizes modulo 2^64. For the sizes of a valid tensor this is the exact product. An intermediate
 * product can overflow only if another size is 0, and then the result is 0 nevertheless. */
static inline int64_t grd_sizes_product(const int64_t *sizes, int64_t n)
{
    int64_t product = 1;
    for (int64_t i = 0; i < n; i++)
        product = grd_wrapping_product(product, sizes[i]);
    return product;
}

/* Writes the product of the sizes to *ret_numel. Returns false, with a RuntimeError that names the sizes, if a size is negative or the product
 * overflows. */
bool grd_shape_numel(grd_dims sizes, int64_t *ret_numel);
/* Writes the strides of a contiguous (row-major) tensor with these sizes. */
void grd_shape_contiguous_strides(grd_dims sizes, int64_t *ret_strides);
bool grd_shape_is_contiguous(grd_dims sizes, const int64_t *strides);
bool grd_shape_is_channels_last(grd_dims sizes, const int64_t *strides);
/* Writes the strides of a tensor with these sizes in channels-last layout. `sizes` has 4 or 5 dimensions. */
void grd_shape_channels_last_strides(grd_dims sizes, int64_t *ret_strides);
/* True if the dimensions are in channels-last order, with or without gaps, as PyTorch's suggest_memory_format decides. Returns false if dimensions of
 * size 1 make the order ambiguous. */
bool grd_shape_suggests_channels_last(grd_dims sizes, const int64_t *strides);
/* True if a tensor with these sizes and strides is non-overlapping and dense, i.e. contiguous after some permutation of its dimensions. Empty
 * tensors count as dense. */
bool grd_shape_is_dense(grd_dims sizes, const int64_t *strides);
/* True if two different elements may have the same address, because of a stride of 0 or of interleaved strides. The test is conservative: it may
 * return true for a tensor without overlap, but never returns false for one with overlap. */
bool grd_shape_may_overlap(grd_dims sizes, const int64_t *strides);
/* Raises IndexError "Dimension out of range (expected to be in range of [-2, 1], but got 2)" for dimension `dim` of a tensor with `ndim`
 * dimensions. */
void grd_shape_refuse_dim(int64_t dim, int64_t ndim);
/* Writes `dim` to *ret_dim. A negative `dim` counts from the end, so `ndim` is added to it. Returns false, with IndexError, if `dim` is out of range.
 * An `ndim` of 0 counts as 1. */
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
/* Writes a bit set of the dimension numbers in `dims`, which may be negative. An absent or empty list stands for all dimensions. Returns false, with
 * IndexError if a number is out of range, or with RuntimeError "dim 0 appears multiple times in the list of dims". */
bool grd_shape_dim_mask(grd_dims dims, int64_t ndim, uint64_t *ret_mask);
/* Writes the sizes that the shapes `a` and `b` broadcast to. ret_sizes has room for GRD_MAX_DIMS numbers. Returns false, with RuntimeError "The size
 * of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1", if the shapes do not broadcast. */
bool grd_shape_broadcast(grd_dims a, grd_dims b, int64_t *ret_sizes, int64_t *ret_ndim);
/* Writes the lowest and the highest position of any element relative to the first element, in elements. Both are 0 for an empty tensor. Returns
 * false, without an error, if a position overflows. */
bool grd_shape_extent(grd_dims sizes, const int64_t *strides, int64_t *ret_lowest, int64_t *ret_highest);
/* Writes the order of the dimensions, innermost first, in which the strides of the `n` operands increase. If two operands demand different orders,
 * the earlier operand decides. strides[i] holds the strides of operand i, where 0 marks a broadcast dimension. */
void grd_shape_order(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int *ret_order);
/* Writes the strides of a dense tensor whose dimensions have the order that grd_shape_order finds for the `n` operands. */
void grd_shape_ordered_strides(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int64_t *ret_strides);
/* Writes the strides of a dense tensor whose dimensions are ordered by `strides`: the dimension with the smallest stride is innermost. This is
 * what empty_like does for a tensor that is not dense. */
void grd_shape_dense_strides(grd_dims sizes, const int64_t *strides, int64_t *ret_strides);
/* Computes the strides of t.view(new_sizes) for a tensor t with `sizes` and `strides`. Returns false, without an error, if no strides give this
 * view; the caller must then copy the elements. `new_sizes` contains no -1. */
bool grd_shape_view_strides(grd_dims sizes, const int64_t *strides, grd_dims new_sizes, int64_t *ret_strides);
/* Copies `sizes` to ret_sizes and replaces a size of -1 by the size that makes the product equal to `numel`. Returns false, with RuntimeError "shape
 * '[2, -1]' is invalid for input of size 3", if no such size exists. */
bool grd_shape_infer(grd_dims sizes, int64_t numel, int64_t *ret_sizes);

#endif
