/* Implements dtypes.h: the ranges and precision of dtypes, and rounding to a dtype. */
#include "op/dtypes.h"

#include <float.h>
#include <math.h>

#include "kernel/table.h"

const struct grd_limits grd_limits[GRD_DTYPE_COUNT] = {
    [GRD_BOOL] = {"bool", 1, 1},
    [GRD_UINT8] = {"unsigned char", 8, UINT8_MAX},
    [GRD_INT8] = {"signed char", 7, INT8_MAX},
    [GRD_UINT16] = {"unsigned short", 16, UINT16_MAX},
    [GRD_INT16] = {"short", 15, INT16_MAX},
    [GRD_UINT32] = {"unsigned int", 32, UINT32_MAX},
    [GRD_INT32] = {"int", 31, INT32_MAX},
    [GRD_UINT64] = {"unsigned long", 64, (double)UINT64_MAX},
    [GRD_INT64] = {"long", 63, (double)INT64_MAX},
    [GRD_FLOAT16] = {"c10::Half", 11, 65504},
    [GRD_BFLOAT16] = {"c10::BFloat16", 8, 0x1.fep127},
    [GRD_FLOAT32] = {"float", FLT_MANT_DIG, FLT_MAX},
    [GRD_FLOAT64] = {"double", DBL_MANT_DIG, DBL_MAX},
    [GRD_COMPLEX32] = {"c10::complex<c10::Half>", 11, 65504},
    [GRD_COMPLEX64] = {"c10::complex<float>", FLT_MANT_DIG, FLT_MAX},
    [GRD_COMPLEX128] = {"c10::complex<double>", DBL_MANT_DIG, DBL_MAX},
};

double grd_dtype_epsilon(grd_dtype dtype)
{
    return ldexp(1, 1 - grd_limits[dtype].digits);
}

void grd_int64_bounds(grd_dtype dtype, int64_t *ret_low, int64_t *ret_high)
{
    const struct grd_limits *limits = &grd_limits[dtype];
    *ret_high = limits->largest >= 0x1p63 ? INT64_MAX : (int64_t)limits->largest;
    const bool has_sign = dtype != GRD_BOOL && !grd_dtype_is_unsigned(dtype);
    *ret_low = !has_sign ? 0 : limits->largest >= 0x1p63 ? INT64_MIN : -*ret_high - grd_dtype_is_integral(dtype);
}

double grd_rounded_to(double x, grd_dtype dtype)
{
    _Alignas(16) char rounded[16];
    if (grd_pending()) /* with an error pending the dtype may be invalid */
        return x;
    grd_kernels->cast[GRD_FLOAT64][dtype](1, (char *const[]){rounded, (char *)&x}, (const int64_t[]){0, 0}, NULL);
    grd_kernels->cast[dtype][GRD_FLOAT64](1, (char *const[]){(char *)&x, rounded}, (const int64_t[]){0, 0}, NULL);
    return x;
}
