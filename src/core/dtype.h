/* Declares the dtype table, the structs of the complex dtypes, and the names of dtypes in error messages. */
#ifndef GRD_CORE_DTYPE_H
#define GRD_CORE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gradus/tensor.h"

enum grd_category { GRD_CATEGORY_BOOL, GRD_CATEGORY_INTEGER, GRD_CATEGORY_FLOAT, GRD_CATEGORY_COMPLEX, GRD_CATEGORY_QUANTIZED };

struct grd_dtype_info {
    const char *name;
    uint8_t size, category;
};
extern const struct grd_dtype_info grd_dtype_table[GRD_DTYPE_COUNT];

typedef struct grd_complex32 {
    uint16_t re, im; /* bit patterns of two float16 numbers */
} grd_complex32;
typedef struct grd_complex64 {
    float re, im;
} grd_complex64;
typedef struct grd_complex128 {
    double re, im;
} grd_complex128;

/* Returns the name of a dtype in PyTorch's error messages, e.g. "Float", "Long" or "ComplexDouble". */
const char *grd_dtype_type_name(grd_dtype dtype);
/* Returns the C++ type name of a dtype, e.g. "c10::Half", which some of PyTorch's error messages use. */
const char *grd_dtype_c_name(grd_dtype dtype);
/* True if `dtype` is the number of an existing dtype; otherwise raises TypeError. */
static inline bool grd_check_dtype(grd_dtype dtype)
{
    if (GRD_LIKELY(dtype > GRD_DTYPE_NONE && dtype < GRD_DTYPE_COUNT))
        return true;
    return grd_raise(GRD_ERROR_TYPE, "%d is not a dtype", (int)dtype);
}

/* True for floating-point and complex dtypes. Only tensors of these dtypes can have gradients. */
static inline bool grd_dtype_is_inexact(grd_dtype dtype)
{
    const uint8_t category = grd_dtype_table[dtype].category;
    return category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX;
}

#endif
