/* Buffers between operands with strides and loops over contiguous ones (see map.h), and the copies that fill and empty them.
 * Elements are bytes here: no dtypes, and one instruction set, since moving single elements gains nothing from another. */
#include "kernel/map.h"

#include <stdbool.h>
#include <string.h>

enum { WIDEST = 16 };

/* ---- Copies ---------------------------------------------------------------------------------------------------------------- */

/* Strides and size are constants where this is inlined, as far as the caller knows them. */
static inline __attribute__((always_inline)) void move(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                                       int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, (size_t)size);
}

static inline __attribute__((always_inline)) void copy(int64_t n, char *const *data, const int64_t *strides, int64_t size)
{
    char element[WIDEST];
    if (strides[0] != size) {
        move(n, data[0], strides[0], data[1], strides[1], size);
    } else if (strides[1] == size) {
        memmove(data[0], data[1], (size_t)(n * size));
    } else if (strides[1] == 0 && n > 0) {
        memcpy(element, data[1], (size_t)size);
        move(n, data[0], size, element, 0, size);
    } else {
        move(n, data[0], size, data[1], strides[1], size);
    }
}

void grd_copy_1(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data, strides, 1);
}

void grd_copy_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data, strides, 2);
}

void grd_copy_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data, strides, 4);
}

void grd_copy_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data, strides, 8);
}

void grd_copy_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    copy(n, data, strides, 16);
}

static void copy_of_size(int64_t size, int64_t n, char *to, int64_t to_stride, char *from, int64_t from_stride)
{
    static grd_loop_kernel *const copies[] = {grd_copy_1, grd_copy_2, grd_copy_4, grd_copy_8, grd_copy_16};
    copies[__builtin_ctzll((unsigned long long)size)](n, (char *const[]){to, from}, (const int64_t[]){to_stride, from_stride}, NULL);
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------------------- */

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void through_buffers(int64_t n, char *const *data, const int64_t *strides, const void *params, grd_block_kernel *block,
                            uint32_t sizes)
{
    _Alignas(64) char buffers[GRD_MAP_OPERANDS][GRD_MAP_BLOCK * WIDEST];
    char *at[GRD_MAP_OPERANDS];
    const int64_t result_size = sizes & 0xff;
    for (int64_t start = 0; start < n; start += GRD_MAP_BLOCK) {
        const int64_t m = at_most(n - start, GRD_MAP_BLOCK);
        int k = 0;
        for (uint32_t rest = sizes; rest != 0; rest >>= 8, k++) {
            const int64_t size = rest & 0xff;
            char *here = data[k] + start * strides[k];
            at[k] = strides[k] == size ? here : buffers[k];
            /* The first block is the longest: what fills it once does for all. */
            if (k > 0 && strides[k] != size && (strides[k] != 0 || start == 0))
                copy_of_size(size, m, buffers[k], size, here, strides[k]);
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
    _Alignas(64) char buffer[GRD_MAP_BLOCK * WIDEST];
    for (int64_t start = 0; start < n; start += GRD_MAP_BLOCK) {
        const int64_t m = at_most(n - start, GRD_MAP_BLOCK);
        first(m, (char *const[]){buffer, data[1] + start * strides[1]}, (const int64_t[]){size, strides[1]}, NULL);
        second(m, (char *const[]){data[0] + start * strides[0], buffer}, (const int64_t[]){strides[0], size}, NULL);
    }
}
