/* What operator files of all families share: where results go, checks with PyTorch's wording, plain copies and conversions.
 *
 * Nothing here records gradients or dispatches: these helpers work on the memory of strided tensors, below the operators.
 * They return pooled tensors. Every `bool` check raises and returns false when it does not hold. */
#ifndef GRD_OP_COMMON_H
#define GRD_OP_COMMON_H

#include "core/iter.h"
#include "core/tensor.h"

/* ---- Where the result goes --------------------------------------------------------------------------------------------- */

/* Returns what an operator returns: `result`, or `out` resized to its shape and filled from it, after the checks of grd_out_check. */
grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result);
/* RuntimeError when `out` is given and could not take the result: dtype not castable, another device, elements that share memory. `out` NULL: true. */
bool grd_out_check(const grd_tensor *out, grd_dtype dtype, grd_device device);
/* Checks `out`, and gives it the sizes and strides of the result where the sizes differ. */
bool grd_out_resize(grd_tensor *out, const grd_tensor *result);
/* RuntimeError when one of the inputs of an elementwise operator, broadcast, overlaps `out` otherwise than element by element. `out` NULL: true. */
bool grd_out_check_inputs(const grd_tensor *out, grd_tensors inputs);

/* ---- Checks ------------------------------------------------------------------------------------------------------------- */
/* "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!" NULL entries are skipped. */
bool grd_check_same_device(grd_tensors tensors);
/* NotImplementedError "not available on the meta device": for operators that must read data. */
bool grd_check_has_data(const grd_tensor *t);
/* NotImplementedError "\"tanh_cpu\" not implemented for 'Int'". Always false. */
bool grd_raise_no_kernel(const char *name, grd_dtype dtype);
static inline grd_tensor *grd_fail_no_kernel(const char *name, grd_dtype dtype)
{
    grd_raise_no_kernel(name, dtype);
    return grd_failed;
}
/* "[2, 3]", for the text of an error; it lives as long as the innermost scope. */
const char *grd_list_text(grd_dims list);
/* A list as it is returned; without elements when an error is pending. */
static inline grd_tensors grd_list_made(grd_tensor **list, int64_t n)
{
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(list, n);
}
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
/* RuntimeError: more dimensions than a tensor may have. */
static inline bool grd_check_ndim(int64_t n)
{
    return n <= GRD_MAX_DIMS || grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)n, GRD_MAX_DIMS);
}
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

/* ---- Copies --------------------------------------------------------------------------------------------------------------- */
/* Writes the elements of `from`, broadcast and converted, to `to`. The shapes must broadcast and both be strided cpu tensors
 * (checked by the caller); memory may overlap. Does nothing on meta. False only when a temporary could not be had or there is no
 * conversion between the dtypes. */
bool grd_copy_elements(grd_tensor *to, const grd_tensor *from);
/* `t` itself when it is contiguous and of that dtype (NONE: any), otherwise a contiguous converted copy. */
grd_tensor *grd_contiguous_as(grd_tensor *t, grd_dtype dtype);
/* A new contiguous tensor with the same elements. */
grd_tensor *grd_clone_contiguous(const grd_tensor *t, grd_dtype dtype);

/* `t` broadcast to the sizes of `to`, to be read here and now: no reference, no flags; its strides, for GRD_MAX_DIMS, are the caller's. */
grd_tensor grd_spread(const grd_tensor *t, const grd_tensor *to, int64_t *strides);
/* True for two views of the very same elements. */
bool grd_is_same_view(const grd_tensor *a, const grd_tensor *b);

/* ---- Dtypes --------------------------------------------------------------------------------------------------------------- */
static inline enum grd_category grd_category_of(grd_dtype dtype)
{
    return (enum grd_category)grd_dtype_table[dtype].category;
}

/* The contents of a dtype: the C++ type that PyTorch's errors name, significant bits (of integers those beside the sign), and the largest number. Of dtypes
 * that have arithmetic. */
struct grd_limits {
    const char *type;
    int digits;
    double largest;
};
extern const struct grd_limits grd_limits[GRD_DTYPE_COUNT];
/* The distance from 1 to the next number. */
double grd_dtype_epsilon(grd_dtype dtype);
/* The integers that an integral dtype holds, or that a floating one reaches, as far as int64 does. */
void grd_int64_bounds(grd_dtype dtype, int64_t *ret_low, int64_t *ret_high);
static inline bool grd_dtype_is_integral(grd_dtype dtype) /* or bool */
{
    return grd_category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

static inline bool grd_dtype_is_unsigned(grd_dtype dtype) /* of integers */
{
    return dtype == GRD_UINT8 || dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
}

static inline grd_scalar grd_truncated(grd_scalar s)
{
    return grd_int(grd_scalar_int64(s));
}

/* Floating and complex dtypes stay, bool and integers become the default float: the result of mean, softmax of integers, … */
static inline grd_dtype grd_dtype_to_float(grd_dtype dtype)
{
    enum grd_category category = grd_category_of(dtype);
    return category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX ? dtype : grd_default_dtype();
}

#endif
