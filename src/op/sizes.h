/* Sizes and dims: those of a tensor, and lists that operators and formulas derive from them. Returned lists are in pooled memory. */
#ifndef GRD_OP_SIZES_H
#define GRD_OP_SIZES_H

#include "core/shape.h"
#include "core/tensor.h"

/* Returns the list as "[2, 3]", for the text of an error; it lives as long as the innermost scope. */
const char *grd_list_text(grd_dims list);
/* Wraps a dim of `t`. IndexError: it is out of range. */
static inline bool grd_wrap_dim(const grd_tensor *t, int64_t dim, int64_t *ret_dim)
{
    return grd_shape_wrap_dim(dim, t->ndim, ret_dim);
}
/* Returns the dim counted from 0; 0 and an error if it is out of range. */
static inline int64_t grd_wrapped_dim(const grd_tensor *t, int64_t dim)
{
    return grd_wrap_dim(t, dim, &dim) ? dim : 0;
}
bool grd_same_sizes(const grd_tensor *t, grd_dims sizes);
/* Returns the size along a dim that is wrapped; 1 for a zero-dimensional tensor. */
static inline int64_t grd_size_along(const grd_tensor *t, int64_t dim)
{
    return t->ndim > 0 ? t->sizes[dim] : 1;
}

static inline int64_t grd_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t grd_greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the last dims, as many as a shape has: -n to -1; and all dims of sizes but one. */
grd_dims grd_last_dims(grd_dims shape);
grd_dims grd_dims_but(grd_dims sizes, int64_t dim);
bool grd_is_empty(grd_dims sizes);
/* Returns the sizes of a reduction along `dim` (none: all) with keepdim: reduced dims have size 1. */
grd_dims grd_kept_sizes(grd_dims sizes, grd_dims dim);
/* Returns sizes [before, n, after] with as many elements, where n is the size along `dim`; [1, all, 1] without a dim. */
grd_dims grd_line_sizes(grd_dims sizes, grd_scalar dim);
/* Returns the product of a tensor's sizes; and the least of at least one size. */
int64_t grd_numel_of(grd_dims sizes);
int64_t grd_least_of(grd_dims sizes);
/* Returns the last number of a list, 0 if it is empty; and the numbers before it. */
int64_t grd_last_of(grd_dims list);
grd_dims grd_but_last_of(grd_dims list);

#endif
