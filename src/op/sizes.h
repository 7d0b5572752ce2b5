/* Sizes and dims: those of a tensor, and lists that operators and formulas derive from them. Lists that are returned lie in pooled memory. */
#ifndef GRD_OP_SIZES_H
#define GRD_OP_SIZES_H

#include "core/shape.h"
#include "core/tensor.h"

/* "[2, 3]", for the text of an error; it lives as long as the innermost scope. */
const char *grd_list_text(grd_dims list);
/* A dim of `t`, wrapped; IndexError when out of range. */
static inline bool grd_wrap_dim(const grd_tensor *t, int64_t dim, int64_t *ret_dim)
{
    return grd_shape_wrap_dim(dim, t->ndim, ret_dim);
}
/* The dim counted from 0; 0 when an error is pending: out of range. */
static inline int64_t grd_wrapped_dim(const grd_tensor *t, int64_t dim)
{
    return grd_wrap_dim(t, dim, &dim) ? dim : 0;
}
bool grd_same_sizes(const grd_tensor *t, grd_dims sizes);
/* The size along a dim that is wrapped; of a tensor without dimensions 1. */
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

/* As many last dims as a shape has, -n to -1, and all dims of sizes but one: in pooled memory. */
grd_dims grd_last_dims(grd_dims shape);
grd_dims grd_dims_but(grd_dims sizes, int64_t dim);
bool grd_is_empty(grd_dims sizes);
/* The sizes of a reduction along `dim`, none: all, whose reduced dims are kept as 1. */
grd_dims grd_kept_sizes(grd_dims sizes, grd_dims dim);
/* Sizes [before, n, after] of the same elements, n those along `dim`; all in one line for none. */
grd_dims grd_line_sizes(grd_dims sizes, grd_scalar dim);
/* The product of sizes that a tensor has, and the least of at least one. */
int64_t grd_numel_of(grd_dims sizes);
int64_t grd_least_of(grd_dims sizes);
/* The last number of a list, 0 of an empty one; and those before it. */
int64_t grd_last_of(grd_dims list);
grd_dims grd_but_last_of(grd_dims list);

#endif
