/* Conversion from one dtype (this file's T) to every other: the rows of grd_kernel_table.cast. Typed file, for float8 too.
 *
 * To integers: truncated toward zero; integers, and floats to narrow integers through int32, wrap; what int32, int64 cannot hold gives
 * their smallest value, as x86 does. To bool: not zero. Formats below float32 are reached through float32 and left through it, as in
 * PyTorch. From complex numbers: the real part. No conversion of a whole block looks at another element, so operands may be strided. */
#include <string.h>

#include "kernel/cpu/typed.h"
#include "kernel/table.h"

enum { CAST_BLOCK = 256 };

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

#if GRD_IS_FLOAT || GRD_IS_COMPLEX
/* The upper half of the range is moved to the lower one and back. */
static inline uint64_t to_uint64(S x)
{
    const bool upper = x >= 0x1p63f;
    return (uint64_t)to_int64(upper ? x - 0x1p63f : x) ^ (upper ? 0x8000000000000000 : 0);
}
#endif

static inline bool to_bool(T x)
{
#if GRD_IS_COMPLEX
    return (x.re != 0) | (x.im != 0);
#else
    return source(x) != 0;
#endif
}

/* ---- Contiguous blocks: a function per destination type; signed and unsigned integers have the same bits ----------------------------- */
static void convert_bool(int64_t n, void *result, const T *x)
{
    uint8_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = to_bool(x[i]);
}

static void convert_8(int64_t n, void *result, const T *x)
{
    uint8_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint8_t)to_int32(source(x[i]));
}

static void convert_16(int64_t n, void *result, const T *x)
{
    uint16_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint16_t)to_int32(source(x[i]));
}

static void convert_int32(int64_t n, void *result, const T *x)
{
    int32_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = to_int32(source(x[i]));
}

#if GRD_IS_FLOAT || GRD_IS_COMPLEX
static void convert_uint32(int64_t n, void *result, const T *x)
{
    uint32_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint32_t)to_int64(source(x[i]));
}
#else
#define convert_uint32 convert_int32
#endif

static void convert_int64(int64_t n, void *result, const T *x)
{
    int64_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = to_int64(source(x[i]));
}

#if GRD_IS_FLOAT || GRD_IS_COMPLEX
static void convert_uint64(int64_t n, void *result, const T *x)
{
    uint64_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = to_uint64(source(x[i]));
}
#else
#define convert_uint64 convert_int64
#endif

static void convert_float32(int64_t n, void *result, const T *x)
{
    float *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)source(x[i]);
}

static void convert_float64(int64_t n, void *result, const T *x)
{
    double *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)source(x[i]);
}

static void convert_complex64(int64_t n, void *result, const T *x)
{
    float *y = result;
    for (int64_t i = 0; i < n; i++) {
        y[2 * i] = (float)source(x[i]);
#if GRD_IS_COMPLEX
        y[2 * i + 1] = (float)x[i].im;
#else
        y[2 * i + 1] = 0;
#endif
    }
}

static void convert_complex128(int64_t n, void *result, const T *x)
{
    double *y = result;
    for (int64_t i = 0; i < n; i++) {
        y[2 * i] = (double)source(x[i]);
#if GRD_IS_COMPLEX
        y[2 * i + 1] = (double)x[i].im;
#else
        y[2 * i + 1] = 0;
#endif
    }
}

/* From float32 the small formats are written; other dtypes go there first. */
static void narrow_float16(int64_t n, void *result, const float *x)
{
    uint16_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_float16(x[i]);
}

static void narrow_bfloat16(int64_t n, void *result, const float *x)
{
    uint16_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_bfloat16(x[i]);
}

static void narrow_float8_e4m3fn(int64_t n, void *result, const float *x)
{
    uint8_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_float8_e4m3fn(x[i]);
}

static void narrow_float8_e5m2(int64_t n, void *result, const float *x)
{
    uint8_t *y = result;
    for (int64_t i = 0; i < n; i++)
        y[i] = grd_to_float8_e5m2(x[i]);
}

typedef void narrow_function(int64_t n, void *result, const float *x);

static void through_float32(int64_t n, void *result, int64_t size, const T *x, narrow_function *narrow)
{
#if GRD_TAG == GRD_TAG_float32
    (void)size;
    narrow(n, result, x);
#else
    float block[CAST_BLOCK];
    for (int64_t start = 0; start < n; start += CAST_BLOCK) {
        const int64_t m = n - start < CAST_BLOCK ? n - start : CAST_BLOCK;
        convert_float32(m, block, x + start);
        narrow(m, (char *)result + start * size, block);
    }
#endif
}

static void convert_float16(int64_t n, void *result, const T *x)
{
    through_float32(n, result, sizeof(uint16_t), x, narrow_float16);
}

static void convert_bfloat16(int64_t n, void *result, const T *x)
{
    through_float32(n, result, sizeof(uint16_t), x, narrow_bfloat16);
}

static void convert_float8_e4m3fn(int64_t n, void *result, const T *x)
{
    through_float32(n, result, sizeof(uint8_t), x, narrow_float8_e4m3fn);
}

static void convert_float8_e5m2(int64_t n, void *result, const T *x)
{
    through_float32(n, result, sizeof(uint8_t), x, narrow_float8_e5m2);
}

/* ---- Any strides ---------------------------------------------------------------------------------------------------------------------- */
static void gather(T *block, const char *data, int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        block[i] = *(const T *)(data + i * stride);
}

static void scatter(char *data, int64_t stride, const char *block, int64_t size, int64_t n)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            data[i * stride] = block[i];
        return;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(data + i * stride, block + 2 * i, 2);
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(data + i * stride, block + 4 * i, 4);
        return;
    case 8:
        for (int64_t i = 0; i < n; i++)
            memcpy(data + i * stride, block + 8 * i, 8);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(data + i * stride, block + 16 * i, 16);
    }
}

typedef void convert_function(int64_t n, void *result, const T *x);

static void cast(int64_t n, char *const *data, const int64_t *strides, int64_t size, convert_function *convert)
{
    const bool dense_result = strides[0] == size, dense_source = strides[1] == (int64_t)sizeof(T);
    if (dense_result && dense_source) {
        convert(n, data[0], (const T *)data[1]);
        return;
    }
    T in[CAST_BLOCK];
    _Alignas(16) char out[16 * CAST_BLOCK];
    for (int64_t start = 0; start < n; start += CAST_BLOCK) {
        const int64_t m = n - start < CAST_BLOCK ? n - start : CAST_BLOCK;
        const char *source_data = data[1] + start * strides[1];
        char *result = data[0] + start * strides[0];
        if (!dense_source)
            gather(in, source_data, strides[1], m);
        convert(m, dense_result ? result : out, dense_source ? (const T *)source_data : in);
        if (!dense_result)
            scatter(result, strides[0], out, size, m);
    }
}

static void cast_same(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    if (strides[1] == (int64_t)sizeof(T) && strides[0] == (int64_t)sizeof(T)) {
        memmove(data[0], data[1], (size_t)n * sizeof(T));
        return;
    }
    if (strides[0] == (int64_t)sizeof(T)) {
        gather((T *)data[0], data[1], strides[1], n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *(T *)(data[0] + i * strides[0]) = *(const T *)(data[1] + i * strides[1]);
}

static void cast_bool(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 1, convert_bool);
}

static void cast_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 1, convert_8);
}

static void cast_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 2, convert_16);
}

static void cast_uint32(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 4, convert_uint32);
}

static void cast_int32(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 4, convert_int32);
}

static void cast_uint64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 8, convert_uint64);
}

static void cast_int64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 8, convert_int64);
}

static void cast_float16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 2, convert_float16);
}

static void cast_bfloat16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 2, convert_bfloat16);
}

static void cast_float32(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 4, convert_float32);
}

static void cast_float64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 8, convert_float64);
}

static void cast_complex64(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 8, convert_complex64);
}

static void cast_complex128(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 16, convert_complex128);
}

static void cast_float8_e4m3fn(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 1, convert_float8_e4m3fn);
}

static void cast_float8_e5m2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    cast(n, data, strides, 1, convert_float8_e5m2);
}

/* T itself is copied. */
#define CAST_IF(dtype, function) (GRD_TAG == GRD_TAG_##dtype ? cast_same : (function))

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
