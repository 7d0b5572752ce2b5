/* Tells the category, range and precision of dtypes, and rounds numbers to a dtype. */
#ifndef GRD_OP_DTYPES_H
#define GRD_OP_DTYPES_H

#include "core/dtype.h"
#include "core/tensor.h"

static inline enum grd_category grd_category_of(grd_dtype dtype)
{
    return (enum grd_category)grd_dtype_table[dtype].category;
}

/* Properties of a dtype that has arithmetic: the name of the C++ type in PyTorch's errors, the number of significant bits (without the sign), and the
 * largest number. */
struct grd_limits {
    const char *type;
    int digits;
    double largest;
};
extern const struct grd_limits grd_limits[GRD_DTYPE_COUNT];
/* Returns the distance from 1 to the next larger number of the dtype. */
double grd_dtype_epsilon(grd_dtype dtype);
/* Writes the least and the largest number of the dtype as int64, clipped to the range of int64. */
void grd_int64_bounds(grd_dtype dtype, int64_t *ret_low, int64_t *ret_high);
static inline bool grd_dtype_is_integral(grd_dtype dtype) /* true for bool, too */
{
    return grd_category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

static inline bool grd_dtype_is_unsigned(grd_dtype dtype) /* true for the unsigned integer dtypes, not for bool */
{
    return dtype == GRD_UINT8 || dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
}

/* Returns `s` as an integer scalar, truncated to int64. */
static inline grd_scalar grd_truncated(grd_scalar s)
{
    return grd_int(grd_scalar_int64(s));
}

/* Returns inexact dtypes unchanged, and the default float dtype for bool and integers. This is the result dtype of mean, softmax, ... */
static inline grd_dtype grd_dtype_to_float(grd_dtype dtype)
{
    return grd_dtype_is_inexact(dtype) ? dtype : grd_default_dtype();
}

/* Returns `x` rounded to a floating-point dtype. */
double grd_rounded_to(double x, grd_dtype dtype);

#endif
