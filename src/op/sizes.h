/* Declares functions on the sizes and dims of tensors, which operators and formulas call. The innermost open grd_scope owns the returned lists and
 * frees them. */
#ifndef GRD_OP_SIZES_H
#define GRD_OP_SIZES_H

#include "base/integer.h"
#include "core/shape.h"
#include "core/tensor.h"

/* Returns the list as text, e.g. "[2, 3]", for an error message. The text is freed when the innermost grd_scope is closed. */
const char *grd_list_text(grd_dims list);
/* Writes `dim` to *ret_dim, with a negative `dim` counted from the end. Returns false, with IndexError, if `dim` is out of range for `t`. */
static inline bool grd_wrap_dim(const grd_tensor *t, int64_t dim, int64_t *ret_dim)
{
    return grd_shape_wrap_dim(dim, t->ndim, ret_dim);
}
/* Returns `dim`, or `dim` plus the number of dimensions if it is negative. If `dim` is out of range, raises IndexError and returns 0. */
static inline int64_t grd_wrapped_dim(const grd_tensor *t, int64_t dim)
{
    return grd_wrap_dim(t, dim, &dim) ? dim : 0;
}
/* True if t has exactly the given sizes. */
bool grd_same_sizes(const grd_tensor *t, grd_dims sizes);
/* Returns the size of `t` along `dim`, which must not be negative; 1 for a zero-dimensional tensor. */
static inline int64_t grd_size_along(const grd_tensor *t, int64_t dim)
{
    return t->ndim > 0 ? t->sizes[dim] : 1;
}

/* Returns the dims -n to -1, where n is the length of `shape`. */
grd_dims grd_last_dims(grd_dims shape);
/* Returns all dims except `dim`, for a tensor with the given sizes. */
grd_dims grd_dims_but(grd_dims sizes, int64_t dim);
/* True if a size is 0. */
bool grd_is_empty(grd_dims sizes);
/* Returns the sizes after a reduction along `dim` with keepdim, in which reduced dims have size 1. An empty `dim` means all dims. */
grd_dims grd_kept_sizes(grd_dims sizes, grd_dims dim);
/* Returns three sizes: the product of the sizes before `dim`, the size along `dim`, and the product of the sizes after it. If `dim` is None, the
 * three sizes are 1, the number of all elements, and 1. */
grd_dims grd_line_sizes(grd_dims sizes, grd_scalar dim);
/* Returns the product of the sizes. If it overflows, raises an error and returns 0. */
int64_t grd_numel_of(grd_dims sizes);
/* Returns the smallest size; INT64_MAX if there are none. */
int64_t grd_least_of(grd_dims sizes);
/* Returns the last number of a list; 0 if it is empty. */
int64_t grd_last_of(grd_dims list);
/* Returns the list without its last number. */
grd_dims grd_but_last_of(grd_dims list);

#endif
