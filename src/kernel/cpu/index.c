/* Gather, scatter, scattered addition, masks and transposition for every element size; see kernel/index.h.
 *
 * One body serves all sizes: it takes the function that moves (or adds) one element as an argument that is a constant where the body is
 * inlined. Where the index does not change along the loop, the loop is a plain copy or addition of rows and vectorises. */
#include "kernel/index.h"

#include <string.h>

#include "base/half.h"
#include "kernel/cpu/level.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef void move_function(char *restrict to, const char *restrict from);

static ALWAYS_INLINE void move_1(char *restrict to, const char *restrict from)
{
    memcpy(to, from, 1);
}

static ALWAYS_INLINE void move_2(char *restrict to, const char *restrict from)
{
    memcpy(to, from, 2);
}

static ALWAYS_INLINE void move_4(char *restrict to, const char *restrict from)
{
    memcpy(to, from, 4);
}

static ALWAYS_INLINE void move_8(char *restrict to, const char *restrict from)
{
    memcpy(to, from, 8);
}

static ALWAYS_INLINE void move_16(char *restrict to, const char *restrict from)
{
    memcpy(to, from, 16);
}

/* ---- Checks ------------------------------------------------------------------------------------------------------------ */

static int64_t check(int64_t n, const int64_t *index, int64_t low, int64_t high)
{
    enum { BLOCK = 1024 };
    uint64_t range = (uint64_t)high - (uint64_t)low;
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t end = n - first < BLOCK ? n : first + BLOCK;
        bool bad = false;
        for (int64_t i = first; i < end; i++)
            bad |= (uint64_t)index[i] - (uint64_t)low >= range;
        for (int64_t i = first; bad && i < end; i++)
            if ((uint64_t)index[i] - (uint64_t)low >= range)
                return i;
    }
    return -1;
}

/* ---- Gather and scatter --------------------------------------------------------------------------------------------------- */

/* One row: no index changes. */
static ALWAYS_INLINE void move_row(int64_t n, char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride,
                                   move_function *move, int64_t size)
{
    if (to_stride == size && from_stride == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        move(to + i * to_stride, from + i * from_stride);
}

static ALWAYS_INLINE void gather(int64_t n, char *const *data, const int64_t *strides, const void *params, move_function *move,
                                 int64_t size)
{
    int64_t stride = *(const int64_t *)params;
    char *to = data[0];
    const char *from = data[1], *index = data[2];
    if (strides[2] == 0) {
        move_row(n, to, strides[0], from + *(const int64_t *)index * stride, strides[1], move, size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        move(to + i * strides[0], from + i * strides[1] + *(const int64_t *)(index + i * strides[2]) * stride);
}

static void gather_1(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    gather(n, data, strides, params, move_1, 1);
}

static void gather_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    gather(n, data, strides, params, move_2, 2);
}

static void gather_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    gather(n, data, strides, params, move_4, 4);
}

static void gather_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    gather(n, data, strides, params, move_8, 8);
}

static void gather_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    gather(n, data, strides, params, move_16, 16);
}

static ALWAYS_INLINE void scatter(int64_t n, char *const *data, const int64_t *strides, const void *params, move_function *move,
                                  int64_t size)
{
    int64_t stride = *(const int64_t *)params;
    char *to = data[0];
    const char *from = data[1], *index = data[2];
    if (strides[2] == 0) {
        move_row(n, to + *(const int64_t *)index * stride, strides[0], from, strides[1], move, size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        move(to + i * strides[0] + *(const int64_t *)(index + i * strides[2]) * stride, from + i * strides[1]);
}

static void scatter_1(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    scatter(n, data, strides, params, move_1, 1);
}

static void scatter_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    scatter(n, data, strides, params, move_2, 2);
}

static void scatter_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    scatter(n, data, strides, params, move_4, 4);
}

static void scatter_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    scatter(n, data, strides, params, move_8, 8);
}

static void scatter_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    scatter(n, data, strides, params, move_16, 16);
}

/* ---- Scattered addition ------------------------------------------------------------------------------------------------------ */

static ALWAYS_INLINE void add_bool(char *restrict to, const char *restrict from)
{
    *(uint8_t *)to = (*(uint8_t *)to | *(const uint8_t *)from) != 0;
}

static ALWAYS_INLINE void add_int8(char *restrict to, const char *restrict from)
{
    *(uint8_t *)to = (uint8_t)(*(uint8_t *)to + *(const uint8_t *)from);
}

static ALWAYS_INLINE void add_int16(char *restrict to, const char *restrict from)
{
    *(uint16_t *)to = (uint16_t)(*(uint16_t *)to + *(const uint16_t *)from);
}

static ALWAYS_INLINE void add_int32(char *restrict to, const char *restrict from)
{
    *(uint32_t *)to += *(const uint32_t *)from;
}

static ALWAYS_INLINE void add_int64(char *restrict to, const char *restrict from)
{
    *(uint64_t *)to += *(const uint64_t *)from;
}

static ALWAYS_INLINE void add_float16(char *restrict to, const char *restrict from)
{
    *(uint16_t *)to = grd_to_float16(grd_from_float16(*(uint16_t *)to) + grd_from_float16(*(const uint16_t *)from));
}

static ALWAYS_INLINE void add_bfloat16(char *restrict to, const char *restrict from)
{
    *(uint16_t *)to = grd_to_bfloat16(grd_from_bfloat16(*(uint16_t *)to) + grd_from_bfloat16(*(const uint16_t *)from));
}

static ALWAYS_INLINE void add_float32(char *restrict to, const char *restrict from)
{
    *(float *)to += *(const float *)from;
}

static ALWAYS_INLINE void add_float64(char *restrict to, const char *restrict from)
{
    *(double *)to += *(const double *)from;
}

static ALWAYS_INLINE void add_complex64(char *restrict to, const char *restrict from)
{
    ((float *)to)[0] += ((const float *)from)[0];
    ((float *)to)[1] += ((const float *)from)[1];
}

static ALWAYS_INLINE void add_complex128(char *restrict to, const char *restrict from)
{
    ((double *)to)[0] += ((const double *)from)[0];
    ((double *)to)[1] += ((const double *)from)[1];
}

static ALWAYS_INLINE void add_row(int64_t n, char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride,
                                  move_function *add)
{
    for (int64_t i = 0; i < n; i++)
        add(to + i * to_stride, from + i * from_stride);
}

static ALWAYS_INLINE void add(int64_t n, char *const *data, const int64_t *strides, const void *params, move_function *add_one,
                              int64_t size)
{
    int64_t stride = *(const int64_t *)params;
    char *to = data[0];
    const char *from = data[1], *index = data[2];
    if (strides[2] == 0) {
        to += *(const int64_t *)index * stride;
        if (strides[0] == size && strides[1] == size)
            add_row(n, to, size, from, size, add_one);
        else
            add_row(n, to, strides[0], from, strides[1], add_one);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        add_one(to + i * strides[0] + *(const int64_t *)(index + i * strides[2]) * stride, from + i * strides[1]);
}

static void add_bool_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_bool, 1);
}

static void add_int8_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_int8, 1);
}

static void add_int16_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_int16, 2);
}

static void add_int32_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_int32, 4);
}

static void add_int64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_int64, 8);
}

static void add_float16_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_float16, 2);
}

static void add_bfloat16_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_bfloat16, 2);
}

static void add_float32_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_float32, 4);
}

static void add_float64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_float64, 8);
}

static void add_complex64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_complex64, 8);
}

static void add_complex128_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    add(n, data, strides, params, add_complex128, 16);
}

/* ---- Masks ---------------------------------------------------------------------------------------------------------------------- */

static ALWAYS_INLINE void fill_run(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride, const uint8_t *mask,
                                   int64_t mask_stride, const char *value, move_function *move)
{
    for (int64_t i = 0; i < n; i++) {
        char chosen[16];
        move(chosen, mask[i * mask_stride] ? value : from + i * from_stride);
        move(to + i * to_stride, chosen);
    }
}

static ALWAYS_INLINE void masked_fill(int64_t n, char *const *data, const int64_t *strides, const void *params, move_function *move,
                                      int64_t size)
{
    char value[16];
    move(value, params);
    if (strides[0] == size && strides[1] == size && strides[2] == 1)
        fill_run(n, data[0], size, data[1], size, (const uint8_t *)data[2], 1, value, move);
    else
        fill_run(n, data[0], strides[0], data[1], strides[1], (const uint8_t *)data[2], strides[2], value, move);
}

static void masked_fill_1(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    masked_fill(n, data, strides, params, move_1, 1);
}

static void masked_fill_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    masked_fill(n, data, strides, params, move_2, 2);
}

static void masked_fill_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    masked_fill(n, data, strides, params, move_4, 4);
}

static void masked_fill_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    masked_fill(n, data, strides, params, move_8, 8);
}

static void masked_fill_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    masked_fill(n, data, strides, params, move_16, 16);
}

static int64_t count(int64_t n, const uint8_t *mask)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += mask[i] != 0;
    return total;
}

static ALWAYS_INLINE int64_t compress(int64_t n, const uint8_t *mask, char *to, const char *from, move_function *move, int64_t size)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (mask[i])
            move(to + kept++ * size, from + i * size);
    return kept;
}

static int64_t compress_1(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return compress(n, mask, to, from, move_1, 1);
}

static int64_t compress_2(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return compress(n, mask, to, from, move_2, 2);
}

static int64_t compress_4(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return compress(n, mask, to, from, move_4, 4);
}

static int64_t compress_8(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return compress(n, mask, to, from, move_8, 8);
}

static int64_t compress_16(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return compress(n, mask, to, from, move_16, 16);
}

static ALWAYS_INLINE int64_t expand(int64_t n, const uint8_t *mask, char *to, const char *from, move_function *move, int64_t size)
{
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++)
        if (mask[i])
            move(to + i * size, from + used++ * size);
    return used;
}

static int64_t expand_1(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return expand(n, mask, to, from, move_1, 1);
}

static int64_t expand_2(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return expand(n, mask, to, from, move_2, 2);
}

static int64_t expand_4(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return expand(n, mask, to, from, move_4, 4);
}

static int64_t expand_8(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return expand(n, mask, to, from, move_8, 8);
}

static int64_t expand_16(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    return expand(n, mask, to, from, move_16, 16);
}

/* ---- Transposition --------------------------------------------------------------------------------------------------------------- */

/* Tiles of TILE by TILE elements: what is read of a cache line is used before the line is lost. */
static ALWAYS_INLINE void transpose(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                    move_function *move, int64_t size)
{
    enum { TILE = 16 };
    for (int64_t c = 0; c < columns; c += TILE) {
        int64_t width = columns - c < TILE ? columns - c : TILE;
        for (int64_t r = 0; r < rows; r += TILE) {
            int64_t height = rows - r < TILE ? rows - r : TILE;
            if (width == TILE && height == TILE) {
                for (int64_t i = 0; i < TILE; i++)
                    for (int64_t j = 0; j < TILE; j++)
                        move(to + (r + i) * to_stride + (c + j) * size, from + (c + j) * from_stride + (r + i) * size);
                continue;
            }
            for (int64_t i = 0; i < height; i++)
                for (int64_t j = 0; j < width; j++)
                    move(to + (r + i) * to_stride + (c + j) * size, from + (c + j) * from_stride + (r + i) * size);
        }
    }
}

static void transpose_1(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    transpose(rows, columns, to, to_stride, from, from_stride, move_1, 1);
}

static void transpose_2(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    transpose(rows, columns, to, to_stride, from, from_stride, move_2, 2);
}

static void transpose_4(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    transpose(rows, columns, to, to_stride, from, from_stride, move_4, 4);
}

static void transpose_8(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    transpose(rows, columns, to, to_stride, from, from_stride, move_8, 8);
}

static void transpose_16(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    transpose(rows, columns, to, to_stride, from, from_stride, move_16, 16);
}

extern const struct grd_index_kernels GRD_AT_LEVEL(grd_index_kernels);

const struct grd_index_kernels GRD_AT_LEVEL(grd_index_kernels) = {
    .check = check,
    .gather = {gather_1, gather_2, gather_4, gather_8, gather_16},
    .scatter = {scatter_1, scatter_2, scatter_4, scatter_8, scatter_16},
    .add = {[GRD_BOOL] = add_bool_loop,
            [GRD_UINT8] = add_int8_loop,
            [GRD_INT8] = add_int8_loop,
            [GRD_UINT16] = add_int16_loop,
            [GRD_INT16] = add_int16_loop,
            [GRD_UINT32] = add_int32_loop,
            [GRD_INT32] = add_int32_loop,
            [GRD_UINT64] = add_int64_loop,
            [GRD_INT64] = add_int64_loop,
            [GRD_FLOAT16] = add_float16_loop,
            [GRD_BFLOAT16] = add_bfloat16_loop,
            [GRD_FLOAT32] = add_float32_loop,
            [GRD_FLOAT64] = add_float64_loop,
            [GRD_COMPLEX64] = add_complex64_loop,
            [GRD_COMPLEX128] = add_complex128_loop},
    .masked_fill = {masked_fill_1, masked_fill_2, masked_fill_4, masked_fill_8, masked_fill_16},
    .count = count,
    .compress = {compress_1, compress_2, compress_4, compress_8, compress_16},
    .expand = {expand_1, expand_2, expand_4, expand_8, expand_16},
    .transpose = {transpose_1, transpose_2, transpose_4, transpose_8, transpose_16},
};
