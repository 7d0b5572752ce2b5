/* The dtype table, and the names of dtypes in texts of errors. */
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
    uint16_t re, im; /* float16 */
} grd_complex32;
typedef struct grd_complex64 {
    float re, im;
} grd_complex64;
typedef struct grd_complex128 {
    double re, im;
} grd_complex128;

/* As PyTorch's errors call it: "Float", "Long", "ComplexDouble". */
const char *grd_dtype_type_name(grd_dtype dtype);
const char *grd_dtype_c_name(grd_dtype dtype); /* "c10::Half": the name in C++, which some texts of PyTorch have */
/* TypeError unless it is the number of a dtype. */
static inline bool grd_check_dtype(grd_dtype dtype)
{
    if (GRD_LIKELY(dtype > GRD_DTYPE_NONE && dtype < GRD_DTYPE_COUNT))
        return true;
    return grd_raise(GRD_ERROR_TYPE, "%d is not a dtype", (int)dtype);
}

/* True if tensors of this dtype can have gradients: floating point and complex. */
static inline bool grd_dtype_carries(uint8_t dtype)
{
    const uint8_t category = grd_dtype_table[dtype].category;
    return category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX;
}

#endif
