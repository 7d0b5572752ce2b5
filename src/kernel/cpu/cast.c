/* Converts arrays from the dtype T to each other dtype. The build compiles this file once per dtype T, float8 included; each time it defines one row
 * of grd_kernel_table.cast.
 *
 * A conversion to an integer truncates toward zero. A float that int32 or int64 cannot hold becomes the smallest int32 or int64, as on x86.
 * Conversions between integers wrap. A float becomes an integer of 1 or 2 bytes in two steps, by way of int32. A conversion to bool returns x != 0. A
 * conversion of a complex number to a real dtype takes the real part. float16, bfloat16 and float8 are converted by way of float32, as in PyTorch,
 * and complex32 by way of complex64. Many other conversions have no loop of their own either, because two conversions one after the other give the
 * same bits; see way(). */
#include "kernel/cpu/elementwise.h"

#include "kernel/cpu/half_lanes.h"

struct pair_complex32 {
    uint16_t re, im;
};

struct pair_complex64 {
    float re, im;
};

struct pair_complex128 {
    double re, im;
};

#if GRD_IS_COMPLEX
typedef R S; /* S: type of the number that is converted to a real dtype. For a complex T it is the type of the real part. */
#else
typedef C S;
#endif

/* Returns x, or the real part of a complex x, widened by load() to the type in which this file computes. */
static inline S source(T x)
{
#if GRD_IS_COMPLEX
    return load(x).re;
#else
    return load(x);
#endif
}

static inline S imaginary(T x)
{
#if GRD_IS_COMPLEX
    return load(x).im;
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

/* Converts x to uint64. A float of at least 2^63 does not fit int64, so 2^63 is subtracted before the conversion to int64 and added to the result. */
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
    return (source(x) != 0) | (imaginary(x) != 0);
#else
    return source(x) != 0;
#endif
}

/* ---- Kernels ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the dtype in between if the conversion from T to the dtype `to` takes two steps. Returns `to` if one loop converts directly. */
GRD_INLINE grd_dtype way(grd_dtype to)
{
    const bool small = to == GRD_FLOAT16 || to == GRD_BFLOAT16 || to == GRD_FLOAT8_E4M3FN || to == GRD_FLOAT8_E5M2;
    const bool pair = to == GRD_COMPLEX64 || to == GRD_COMPLEX128;
    if (GRD_TAG == GRD_TAG_complex32 || (to == GRD_COMPLEX32 && !GRD_IS_HALF && !GRD_IS_FLOAT8))
        return GRD_TAG == GRD_TAG_complex64 ? to : GRD_COMPLEX64;
    if (GRD_IS_COMPLEX && to != GRD_BOOL && !pair)
        return sizeof(S) == sizeof(float) ? GRD_FLOAT32 : GRD_FLOAT64;
    if (GRD_IS_HALF || GRD_IS_FLOAT8 || (small && GRD_TAG != GRD_TAG_float32))
        return GRD_FLOAT32;
    if (pair && (GRD_IS_BOOL || GRD_IS_INTEGER))
        return to == GRD_COMPLEX64 ? GRD_FLOAT32 : GRD_FLOAT64;
    return to;
}

#define CAST_ROW(dtype) GRD_PASTE3(grd_cast_row, dtype, GRD_LEVEL)
extern grd_loop_kernel *const CAST_ROW(float32)[], *const CAST_ROW(float64)[];
static grd_loop_kernel to_float32_loop, to_float64_loop, to_complex64_loop;

/* Converts n contiguous elements at data[1] and writes them to data[0]. If T is complex32, converts them to complex64, otherwise from complex64 to
 * complex32. The real and imaginary parts are converted as 2 n numbers from float16 to float32 or back. */
static __attribute__((unused)) void convert_parts(int64_t n, char *const *data, const void *params)
{
    const bool widens = GRD_TAG == GRD_TAG_complex32;
    const int64_t strides[] = {widens ? sizeof(float) : sizeof(uint16_t), widens ? sizeof(uint16_t) : sizeof(float)};
    (widens ? grd_kernels->cast[GRD_FLOAT16][GRD_FLOAT32] : grd_kernels->cast[GRD_FLOAT32][GRD_FLOAT16])(2 * n, data, strides, params);
}

/* Converts n elements of T at data[1] to the dtype `to`, whose elements have `size` bytes, and writes them to data[0]. `convert` is the loop over
 * contiguous elements that is used if the conversion takes only one step. */
GRD_INLINE void cast(int64_t n, char *const *data, const int64_t *strides, const void *params, grd_dtype to, int64_t size,
                     grd_block_kernel *convert)
{
    const grd_dtype by = way(to);
    const bool by_parts = GRD_TAG == GRD_TAG_complex32 || to == GRD_COMPLEX32;
    const struct grd_map_kernel kernel = {by_parts ? convert_parts : machine_kernel(to, convert), GRD_MAP_SIZES(size, sizeof(T), 0, 0),
                                          false};
    if (to == by)
        grd_map(n, data, strides, &(const struct grd_map){.kernel = &kernel, .params = params, .half = GRD_DTYPE_NONE});
    else if (by == GRD_FLOAT32)
        grd_map_twice(n, data, strides, to_float32_loop, sizeof(float), CAST_ROW(float32)[to]);
    else if (by == GRD_COMPLEX64)
        grd_map_twice(n, data, strides, to_complex64_loop, sizeof(struct pair_complex64), grd_kernels->cast[GRD_COMPLEX64][to]);
    else
        grd_map_twice(n, data, strides, to_float64_loop, sizeof(double), CAST_ROW(float64)[to]);
}

/* CAST_IF(dtype, function): expands to COPY, which copies elements unchanged, if `dtype` is T itself, and otherwise to `function`. */
enum { SIZE = sizeof(T) };
#define COPY (SIZE == 1 ? grd_copy_1 : SIZE == 2 ? grd_copy_2 : SIZE == 4 ? grd_copy_4 : SIZE == 8 ? grd_copy_8 : grd_copy_16)
#define CAST_IF(dtype, function) (GRD_TAG == GRD_TAG_##dtype ? COPY : (function))

#include "gen/cast_rows.h"
