/* Conversion from one dtype (this file's T) to every other: the rows of grd_kernel_table.cast. Typed file, for float8 too.
 *
 * To integers: truncated toward zero; integers, and floats to narrow integers through int32, wrap; what int32, int64 cannot hold gives
 * their smallest value, as x86 does. To bool: not zero. Formats below float32 are reached through float32 and left through it, as in
 * PyTorch. From complex numbers: the real part. Where two conversions give the same bits as one, there are two: see `way`. */
#include "kernel/cpu/map.h"

#if GRD_IS_COMPLEX
typedef R S; /* what is converted: a real number */
#else
typedef C S;
#endif

static inline S source(T x)
{
#if GRD_IS_COMPLEX
    return x.re;
#else
    return load(x);
#endif
}

static inline S imaginary(T x)
{
#if GRD_IS_COMPLEX
    return x.im;
#else
    (void)x;
    return 0;
#endif
}

/* ---- One number ------------------------------------------------------------------------------------------------------------- */
static inline int32_t to_int32(S x)
{
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
    return ((x >= -0x1p31f) & (x < 0x1p31f)) != 0 ? (int32_t)x : INT32_MIN;
#else
    return (int32_t)x;
#endif
}

static inline int64_t to_int64(S x)
{
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
    return ((x >= -0x1p63f) & (x < 0x1p63f)) != 0 ? (int64_t)x : INT64_MIN;
#else
    return (int64_t)x;
#endif
}

/* The upper half of the range is moved to the lower one and back. */
static inline uint64_t to_uint64(S x)
{
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
    const bool upper = x >= 0x1p63f;
    return (uint64_t)to_int64(upper ? x - 0x1p63f : x) ^ (upper ? 0x8000000000000000 : 0);
#else
    return (uint64_t)x;
#endif
}

static inline bool to_bool(T x)
{
#if GRD_IS_COMPLEX
    return (x.re != 0) | (x.im != 0);
#else
    return source(x) != 0;
#endif
}

/* ---- Loops: a function per destination type; signed and unsigned integers have the same bits ------------------------------------------ */
static void convert_bool(int64_t n, char *const *data, const void *params)
{
    uint8_t *y = (uint8_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = to_bool(x[i]);
}

static void convert_8(int64_t n, char *const *data, const void *params)
{
    uint8_t *y = (uint8_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint8_t)to_int32(source(x[i]));
}

static void convert_16(int64_t n, char *const *data, const void *params)
{
    uint16_t *y = (uint16_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint16_t)to_int32(source(x[i]));
}

static void convert_int32(int64_t n, char *const *data, const void *params)
{
    int32_t *y = (int32_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = to_int32(source(x[i]));
}

static void convert_uint32(int64_t n, char *const *data, const void *params)
{
    uint32_t *y = (uint32_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint32_t)to_int64(source(x[i]));
}

static void convert_int64(int64_t n, char *const *data, const void *params)
{
    int64_t *y = (int64_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = to_int64(source(x[i]));
}

static void convert_uint64(int64_t n, char *const *data, const void *params)
{
    uint64_t *y = (uint64_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = to_uint64(source(x[i]));
}

static void convert_float16(int64_t n, char *const *data, const void *params)
{
    uint16_t *y = (uint16_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_float16((float)source(x[i]));
}

static void convert_bfloat16(int64_t n, char *const *data, const void *params)
{
    uint16_t *y = (uint16_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_bfloat16((float)source(x[i]));
}

static void convert_float8_e4m3fn(int64_t n, char *const *data, const void *params)
{
    uint8_t *y = (uint8_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_float8_e4m3fn((float)source(x[i]));
}

static void convert_float8_e5m2(int64_t n, char *const *data, const void *params)
{
    uint8_t *y = (uint8_t *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_float8_e5m2((float)source(x[i]));
}

static void convert_float32(int64_t n, char *const *data, const void *params)
{
    float *y = (float *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)source(x[i]);
}

static void convert_float64(int64_t n, char *const *data, const void *params)
{
    double *y = (double *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)source(x[i]);
}

static void convert_complex64(int64_t n, char *const *data, const void *params)
{
    float *y = (float *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        y[2 * i] = (float)source(x[i]);
        y[2 * i + 1] = (float)imaginary(x[i]);
    }
}

static void convert_complex128(int64_t n, char *const *data, const void *params)
{
    double *y = (double *)data[0];
    const T *x = (const T *)data[1];
    (void)params;
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        y[2 * i] = (double)source(x[i]);
        y[2 * i + 1] = (double)imaginary(x[i]);
    }
}

/* ---- Kernels ---------------------------------------------------------------------------------------------------------------------- */

/* The dtype between T and `to`; `to` itself where one loop converts. */
static inline __attribute__((always_inline)) grd_dtype way(grd_dtype to)
{
    const bool small = to == GRD_FLOAT16 || to == GRD_BFLOAT16 || to == GRD_FLOAT8_E4M3FN || to == GRD_FLOAT8_E5M2;
    const bool complex = to == GRD_COMPLEX64 || to == GRD_COMPLEX128;
    if (GRD_IS_COMPLEX && to != GRD_BOOL && !complex)
        return sizeof(S) == sizeof(float) ? GRD_FLOAT32 : GRD_FLOAT64;
    if (GRD_IS_HALF || GRD_IS_FLOAT8 || (small && GRD_TAG != GRD_TAG_float32))
        return GRD_FLOAT32;
    if (complex && (GRD_IS_BOOL || GRD_IS_INTEGER))
        return to == GRD_COMPLEX64 ? GRD_FLOAT32 : GRD_FLOAT64;
    return to;
}

#define CAST_ROW(dtype) GRD_PASTE3(grd_cast_row, dtype, GRD_LEVEL)
extern grd_loop_kernel *const CAST_ROW(float32)[], *const CAST_ROW(float64)[];
static grd_loop_kernel cast_float32, cast_float64;

static inline __attribute__((always_inline)) void cast(int64_t n, char *const *data, const int64_t *strides, const void *params,
                                                       grd_dtype to, int64_t size, grd_block_kernel *convert)
{
    const grd_dtype by = way(to);
    const struct grd_map_kernel kernel = {convert, GRD_MAP_SIZES(size, sizeof(T), 0, 0)};
    if (to == by)
        grd_map(n, data, strides, &(const struct grd_map){&kernel, params, GRD_DTYPE_NONE});
    else if (by == GRD_FLOAT32)
        grd_map_twice(n, data, strides, cast_float32, sizeof(float), CAST_ROW(float32)[to]);
    else
        grd_map_twice(n, data, strides, cast_float64, sizeof(double), CAST_ROW(float64)[to]);
}

static void cast_bool(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_BOOL, 1, convert_bool);
}

static void cast_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT8, 1, convert_8);
}

static void cast_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT16, 2, convert_16);
}

static void cast_uint32(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT32, 4, convert_uint32);
}

static void cast_int32(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_INT32, 4, convert_int32);
}

static void cast_uint64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT64, 8, convert_uint64);
}

static void cast_int64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_INT64, 8, convert_int64);
}

static void cast_float16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT16, 2, convert_float16);
}

static void cast_bfloat16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_BFLOAT16, 2, convert_bfloat16);
}

static void cast_float32(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT32, 4, convert_float32);
}

static void cast_float64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT64, 8, convert_float64);
}

static void cast_complex64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_COMPLEX64, 8, convert_complex64);
}

static void cast_complex128(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_COMPLEX128, 16, convert_complex128);
}

static void cast_float8_e4m3fn(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT8_E4M3FN, 1, convert_float8_e4m3fn);
}

static void cast_float8_e5m2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT8_E5M2, 1, convert_float8_e5m2);
}

/* T itself is copied. */
enum { SIZE = sizeof(T) };
#define COPY (SIZE == 1 ? grd_copy_1 : SIZE == 2 ? grd_copy_2 : SIZE == 4 ? grd_copy_4 : SIZE == 8 ? grd_copy_8 : grd_copy_16)
#define CAST_IF(dtype, function) (GRD_TAG == GRD_TAG_##dtype ? COPY : (function))

extern grd_loop_kernel *const GRD_TYPED(grd_cast_row)[GRD_DTYPE_COUNT];

grd_loop_kernel *const GRD_TYPED(grd_cast_row)[GRD_DTYPE_COUNT] = {
    [GRD_BOOL] = CAST_IF(bool, cast_bool),
    [GRD_UINT8] = CAST_IF(uint8, cast_8),
    [GRD_INT8] = CAST_IF(int8, cast_8),
    [GRD_UINT16] = CAST_IF(uint16, cast_16),
    [GRD_INT16] = CAST_IF(int16, cast_16),
    [GRD_UINT32] = CAST_IF(uint32, cast_uint32),
    [GRD_INT32] = CAST_IF(int32, cast_int32),
    [GRD_UINT64] = CAST_IF(uint64, cast_uint64),
    [GRD_INT64] = CAST_IF(int64, cast_int64),
    [GRD_FLOAT16] = CAST_IF(float16, cast_float16),
    [GRD_BFLOAT16] = CAST_IF(bfloat16, cast_bfloat16),
    [GRD_FLOAT32] = CAST_IF(float32, cast_float32),
    [GRD_FLOAT64] = CAST_IF(float64, cast_float64),
    [GRD_COMPLEX64] = CAST_IF(complex64, cast_complex64),
    [GRD_COMPLEX128] = CAST_IF(complex128, cast_complex128),
    [GRD_FLOAT8_E4M3FN] = CAST_IF(float8_e4m3fn, cast_float8_e4m3fn),
    [GRD_FLOAT8_E5M2] = CAST_IF(float8_e5m2, cast_float8_e5m2),
};
