/* Tools for tests of kernels: the kernel tables of every instruction-set level that this machine has, calls of kernels with arbitrary strides, and
 * errors in ulps. */
#ifndef GRD_TEST_KERNEL_LEVELS_H
#define GRD_TEST_KERNEL_LEVELS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "gen/binary_kernels.h"
#include "gen/ternary_kernels.h"
#include "gen/unary_kernels.h"
#include "kernel/map.h"

extern const struct grd_kernel_table grd_kernel_table_portable;
#if defined(__x86_64__)
extern const struct grd_kernel_table grd_kernel_table_v2, grd_kernel_table_v3, grd_kernel_table_v4;
#endif

/* Returns the kernel table of a level, or NULL if the machine or GRADUS_ISA does not allow that level. */
static inline const struct grd_kernel_table *table_of_level(int level)
{
#if defined(__x86_64__)
    static const struct grd_kernel_table *const tables[] = {&grd_kernel_table_portable, &grd_kernel_table_v2, &grd_kernel_table_v3,
                                                            &grd_kernel_table_v4};
    return level <= (int)grd_cpu_level() ? tables[level] : NULL;
#else
    return level == 0 ? &grd_kernel_table_portable : NULL;
#endif
}

static inline uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Writes a random element of the dtype to `out`: mostly a number of moderate size, sometimes arbitrary bits. */
static inline void random_element(grd_dtype dtype, char *out)
{
    const uint64_t bits = random_bits();
    const double x = ((double)(bits >> 11) * 0x1p-53 - 0.5) * (bits % 16 == 0 ? 1000 : 8);
    const float f = (float)x, pair[2] = {f, f - 1};
    const uint16_t half_pair[2] = {grd_to_float16(f), grd_to_float16(f - 1)};
    const double wide_pair[2] = {x, x + 1};
    if (dtype == GRD_FLOAT32 && bits % 32 != 1)
        memcpy(out, &f, sizeof f);
    else if (dtype == GRD_FLOAT64 && bits % 32 != 1)
        memcpy(out, &x, sizeof x);
    else if (dtype == GRD_COMPLEX32)
        memcpy(out, half_pair, sizeof half_pair);
    else if (dtype == GRD_COMPLEX64)
        memcpy(out, pair, sizeof pair);
    else if (dtype == GRD_COMPLEX128)
        memcpy(out, wide_pair, sizeof wide_pair);
    else if (dtype == GRD_BOOL)
        *out = (char)(bits >> 20 & 1);
    else
        memcpy(out, &bits, (size_t)grd_dtype_size(dtype));
    /* All float16 and bfloat16 NaNs get the same bits. Where two NaNs meet, the compiler's operand order decides which one is returned, so results
     * with different NaNs could not be compared. */
    const uint16_t half_bits = (uint16_t)bits, quiet = dtype == GRD_FLOAT16 ? 0x7e00 : 0x7fc0;
    if ((dtype == GRD_FLOAT16 && (half_bits & 0x7fff) > 0x7c00) || (dtype == GRD_BFLOAT16 && (half_bits & 0x7fff) > 0x7f80))
        memcpy(out, &quiet, sizeof quiet);
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns |y - exact| in ulps of a format with `digits` bits of significand and smallest exponent `least`. `rounded` is `exact` in that format. If y
 * or `rounded` is NaN or infinite, returns 0 if they agree and infinity otherwise. Returns infinity if one of them is 0 and their signs differ. */
static inline double distance(double y, long double exact, double rounded, int digits, int least)
{
    if (isnan(y) || isnan(rounded))
        return isnan(y) && isnan(rounded) ? 0 : INFINITY;
    if (isinf(y) || isinf(rounded))
        return y == rounded ? 0 : INFINITY;
    if ((y == 0 || rounded == 0) && !signbit(y) != !signbit(rounded))
        return INFINITY;
    int exponent;
    frexpl(exact, &exponent);
    if (exponent < least)
        exponent = least;
    return (double)(fabsl(y - exact) * ldexpl(1, digits - exponent));
}

/* Returns the struct with which grd_map computes in the dtype `half` (float16, bfloat16 or complex32) by means of the kernel of float32 or complex64.
 * grd_map converts the operands. */
static inline struct grd_map converted_map(const struct grd_map_kernel *const *rows, grd_dtype half, int kernel, const void *params)
{
    const struct grd_map_kernel *wide = &rows[grd_computed_dtype(half)][kernel];
    return (struct grd_map){.kernel = wide, .params = wide->light ? NULL : params, .half = half};
}

/* Returns the struct with which grd_map calls a unary, binary or ternary kernel for a dtype. If float16, bfloat16 or complex32
 * has no such kernel, grd_map converts the operands and calls the kernel of float32 or complex64. Kernels marked `light` take no parameters. */
static inline struct grd_map map_of(const struct grd_map_kernel *const *rows, grd_dtype dtype, int kernel, const void *params)
{
    if (grd_is_half(dtype) && (rows[dtype] == NULL || rows[dtype][kernel].block == NULL))
        return converted_map(rows, dtype, kernel, params);
    return (struct grd_map){.kernel = &rows[dtype][kernel], .params = rows[dtype][kernel].light ? NULL : params, .half = GRD_DTYPE_NONE};
}

/* Calls an elementwise kernel on operands with strides. Kernels marked `light` ignore `params`. */
static inline void call_map(const struct grd_map_kernel *kernel, int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    grd_map(n, data, strides, &(struct grd_map){.kernel = kernel, .params = kernel->light ? NULL : params, .half = GRD_DTYPE_NONE});
}

/* Returns true if a kernel computes the same bits whether its operands are contiguous, strided or broadcast, and whether or not its result overwrites
 * an input. Some strides are negative. The number of elements takes all small and some larger values. dtypes[0] is the dtype of the result,
 * dtypes[1...] are those of the inputs. */
static inline bool same_on_every_path(grd_loop_kernel *kernel, int inputs, const grd_dtype *dtypes, const void *params)
{
    enum { COUNT = 700, WIDEST = 16 };
    static _Alignas(64) char dense[4][COUNT * WIDEST], spread[4][3 * COUNT * WIDEST], expected[COUNT * WIDEST];
    const int64_t result_size = grd_dtype_size(dtypes[0]);
    int64_t strides[4];
    char *data[4];
    for (int k = 1; k <= inputs; k++)
        for (int i = 0; i < COUNT; i++)
            random_element(dtypes[k], dense[k] + i * grd_dtype_size(dtypes[k]));
    for (int k = 0; k <= inputs; k++) {
        data[k] = dense[k];
        strides[k] = grd_dtype_size(dtypes[k]);
    }
    data[0] = expected;
    kernel(COUNT, data, strides, params);

    /* A call with a smaller n must give the first n elements of the full result. */
    data[0] = dense[0];
    for (int64_t n = 0; n < COUNT; n += n < 70 ? 1 : 89) {
        memset(dense[0], 0x5a, sizeof dense[0]);
        kernel(n, data, strides, params);
        if (memcmp(dense[0], expected, (size_t)(n * result_size)) != 0 || dense[0][n * result_size] != 0x5a)
            return false;
    }
    /* Tests every combination of strided and contiguous operands. Strided operands with an odd index have a negative stride. */
    for (int mask = 1; mask < 1 << (inputs + 1); mask++) {
        for (int k = 0; k <= inputs; k++) {
            const int64_t size = grd_dtype_size(dtypes[k]);
            const bool is_spread = mask >> k & 1, backwards = is_spread && k % 2 == 1;
            strides[k] = is_spread ? (backwards ? -3 : 3) * size : size;
            data[k] = is_spread ? spread[k] + (backwards ? 3 * (COUNT - 1) * size : 0) : dense[k];
            for (int i = 0; is_spread && k > 0 && i < COUNT; i++)
                memcpy(data[k] + i * strides[k], dense[k] + i * size, (size_t)size);
        }
        memset(data[0], 0x5a, (size_t)result_size);
        kernel(COUNT, data, strides, params);
        for (int i = 0; i < COUNT; i++)
            if (memcmp(data[0] + i * strides[0], expected + i * result_size, (size_t)result_size) != 0)
                return false;
    }
    /* Tests every combination of inputs that are broadcast from one element, with the other inputs contiguous or strided. */
    for (int mask = 1; mask < 1 << (inputs + 1); mask++) {
        static char filled[4][COUNT * WIDEST];
        int64_t single_strides[4];
        char *single_data[4];
        const bool strided = (mask & 1) != 0;
        data[0] = expected;
        single_data[0] = dense[0];
        strides[0] = single_strides[0] = result_size;
        for (int k = 1; k <= inputs; k++) {
            const int64_t size = grd_dtype_size(dtypes[k]);
            const bool single = mask >> k & 1;
            for (int i = 0; i < COUNT; i++) {
                memcpy(filled[k] + i * size, dense[k] + (single ? 0 : i * size), (size_t)size);
                memcpy(spread[k] + 2 * i * size, dense[k] + i * size, (size_t)size);
            }
            data[k] = filled[k];
            strides[k] = size;
            single_data[k] = !single && strided ? spread[k] : dense[k];
            single_strides[k] = single ? 0 : strided ? 2 * size : size;
        }
        kernel(COUNT, data, strides, params);
        for (int64_t n = 0; n < COUNT; n += n < 70 ? 1 : 89) {
            memset(dense[0], 0x5a, sizeof dense[0]);
            kernel(n, single_data, single_strides, params);
            if (memcmp(dense[0], expected, (size_t)(n * result_size)) != 0 || dense[0][n * result_size] != 0x5a)
                return false;
        }
    }
    /* Tests that the result may be written over each input of the same dtype. */
    for (int k = 1; k <= inputs; k++) {
        if (dtypes[k] != dtypes[0])
            continue;
        for (int j = 0; j <= inputs; j++) {
            data[j] = dense[j];
            strides[j] = grd_dtype_size(dtypes[j]);
        }
        data[0] = expected;
        kernel(COUNT, data, strides, params);
        memcpy(spread[k], dense[k], (size_t)(COUNT * result_size));
        data[0] = data[k] = spread[k];
        kernel(COUNT, data, strides, params);
        if (memcmp(spread[k], expected, (size_t)(COUNT * result_size)) != 0)
            return false;
    }
    return true;
}

/* Checks an elementwise kernel with same_on_every_path, once for each kind of store instruction. */
static inline bool map_is_same_on_every_path(const struct grd_map *map, int inputs, const grd_dtype *dtypes)
{
    struct grd_map other = *map;
    for (other.stores = GRD_STORES_NEAR; other.stores <= GRD_STORES_PAST; other.stores++)
        if (!same_on_every_path(grd_map, inputs, dtypes, &other))
            return false;
    return true;
}

#endif
