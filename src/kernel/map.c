/* Buffers between operands with strides and loops over contiguous ones (see map.h), and the copies that fill and empty them.
 * Elements are bytes here: no dtypes, and one instruction set, since moving single elements gains nothing from another. */
#include "kernel/map.h"

#include <stdbool.h>
#include <string.h>

enum { WIDEST = 16 };

#define INLINE static inline __attribute__((always_inline))

/* ---- Copies ---------------------------------------------------------------------------------------------------------------- */

/* Strides and size are constants where this is inlined, as far as the caller knows them. */
INLINE void move(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, (size_t)size);
}

INLINE void copy(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t size)
{
    char element[WIDEST];
    if (to_stride != size) {
        move(n, to, to_stride, from, from_stride, size);
    } else if (from_stride == size) {
        memmove(to, from, (size_t)(n * size));
    } else if (from_stride == 0 && n > 0) { /* nothing that is written changes a local */
        memcpy(element, from, (size_t)size);
        move(n, to, size, element, 0, size);
    } else {
        move(n, to, size, from, from_stride, size);
    }
}

void grd_copy_1(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data[0], strides[0], data[1], strides[1], 1);
}

void grd_copy_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data[0], strides[0], data[1], strides[1], 2);
}

void grd_copy_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data[0], strides[0], data[1], strides[1], 4);
}

void grd_copy_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data[0], strides[0], data[1], strides[1], 8);
}

void grd_copy_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data[0], strides[0], data[1], strides[1], 16);
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------------------- */

enum { PIECE = 512 }; /* elements: what a call fills of its buffers stays in the first-level cache */

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* To a buffer or from one: one of the strides is the size. */
static void copy_of_size(int64_t size, int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    if (size == 4)
        copy(n, to, to_stride, from, from_stride, 4);
    else if (size == 8)
        copy(n, to, to_stride, from, from_stride, 8);
    else if (size == 1)
        copy(n, to, to_stride, from, from_stride, 1);
    else if (size == 2)
        copy(n, to, to_stride, from, from_stride, 2);
    else
        copy(n, to, to_stride, from, from_stride, 16);
}

static __attribute__((noinline)) void through_buffers(int64_t n, char *const *data, const int64_t *strides, const void *params,
                                                      grd_block_kernel *block, uint32_t sizes)
{
    _Alignas(64) char buffers[GRD_MAP_OPERANDS][PIECE * WIDEST];
    char *at[GRD_MAP_OPERANDS];
    const int64_t result_size = sizes & 0xff;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t m = at_most(n - start, PIECE);
        uint32_t rest = sizes;
        for (int k = 0; rest != 0; k++, rest >>= 8) {
            const int64_t size = rest & 0xff, stride = strides[k];
            char *here = data[k] + start * stride;
            at[k] = stride == size ? here : buffers[k];
            /* The first piece is the longest: what fills it once does for all. */
            if (k > 0 && stride != size && (stride != 0 || start == 0))
                copy_of_size(size, m, buffers[k], size, here, stride);
        }
        block(m, at, params);
        if (strides[0] != result_size)
            copy_of_size(result_size, m, data[0] + start * strides[0], strides[0], buffers[0], result_size);
    }
}

/* There is always an input. */
static inline bool all_contiguous(const int64_t *strides, uint32_t sizes)
{
    if (strides[0] != (sizes & 0xff) || strides[1] != (sizes >> 8 & 0xff))
        return false;
    if (sizes >> 16 == 0)
        return true;
    return strides[2] == (sizes >> 16 & 0xff) && (sizes >> 24 == 0 || strides[3] == sizes >> 24);
}

void grd_map(int64_t n, char *const *data, const int64_t *strides, const void *params, grd_block_kernel *block, uint32_t sizes)
{
    if (strides == NULL || all_contiguous(strides, sizes) || n == 1)
        block(n, data, params);
    else
        through_buffers(n, data, strides, params, block, sizes);
}

void grd_map_twice(int64_t n, char *const *data, const int64_t *strides, grd_loop_kernel *first, int64_t size, grd_loop_kernel *second)
{
    _Alignas(64) char buffer[PIECE * WIDEST];
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t m = at_most(n - start, PIECE);
        first(m, (char *const[]){buffer, data[1] + start * strides[1]}, (const int64_t[]){size, strides[1]}, NULL);
        second(m, (char *const[]){data[0] + start * strides[0], buffer}, (const int64_t[]){strides[0], size}, NULL);
    }
}
