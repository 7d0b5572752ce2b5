/* Gathers elements at indices, scatters or adds elements to the places that indices select, and fills, compresses and expands elements under a
 * mask; see kernel/index.h. Transposition is in transpose.c.
 *
 * One loop serves all element sizes, and gathering as well as scattering. It has two parameters that are constants where it is inlined: the
 * function that moves or adds one element, and the operand to which the index applies. index_sized.h instantiates the loops for one element size.
 * If the index does not change along a loop, the loop is an ordinary copy or addition of a row, which vectorises. */
#include "kernel/index.h"

#include <complex.h>
#include <stdatomic.h>
#include <string.h>

#include "kernel/bytes.h"
#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"

enum side { RESULT, SOURCE }; /* the operand whose elements the index selects, data[0] or data[1] */

/* A function that moves one element from `from` to `to`, or combines it with the element at `to`. */
typedef void act_function(char *restrict to, const char *restrict from);
/* A function that applies `act` to n pairs of elements of `size` bytes. The elements of a pair are in `to` and in `from`, where elements are
 * to_stride and from_stride bytes apart. */
typedef void row_function(int64_t n, char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride,
                          act_function *act, int64_t size);

/* ---- Checks ------------------------------------------------------------------------------------------------------------ */

/* Returns the position of the first of n indices that is outside of [low, high), or -1 if there is none. Each block of BLOCK indices is first tested
 * as a whole, by a loop that vectorises. */
static int64_t check(int64_t n, const int64_t *index, int64_t low, int64_t high)
{
    enum { BLOCK = 1024 };
    uint64_t range = (uint64_t)high - (uint64_t)low;
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t end = n - first < BLOCK ? n : first + BLOCK;
        uint64_t signs = 0; /* negative as int64 if an index is out of range, because its distance from one of the ends is then negative */
        for (int64_t i = first; i < end; i++)
            signs |= ((uint64_t)index[i] - (uint64_t)low) | ((uint64_t)high - 1 - (uint64_t)index[i]);
        for (int64_t i = first; (int64_t)signs < 0 && i < end; i++)
            if ((uint64_t)index[i] - (uint64_t)low >= range)
                return i;
    }
    return -1;
}

static void range(int64_t n, const int64_t *values, int64_t *low, int64_t *high)
{
    int64_t least = *low, most = *high;
    for (int64_t i = 0; i < n; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    *low = least;
    *high = most;
}

static void add_offsets(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct grd_indexed_dim *dim = params;
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = *(const int64_t *)(data[1] + i * strides[1]);
        *(int64_t *)(data[0] + i * strides[0]) += (index < 0 ? index + dim->size : index) * dim->stride;
    }
}

static void prefetch(int64_t bytes, const char *data)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(data + at);
}

/* For each r < runs and each i in [starts[r], starts[r + 1]), sets inverse[places[i]] = r. */
static void number_runs(int64_t runs, const int64_t *starts, const int64_t *places, int64_t *inverse)
{
    for (int64_t run = 0; run < runs; run++)
        for (int64_t i = starts[run]; i < starts[run + 1]; i++)
            inverse[places[i]] = run;
}

/* ---- Elements at indices --------------------------------------------------------------------------------------------------- */

/* Applies `act` to n pairs of an element of `to` and an element of `from`. The elements are to_stride and from_stride bytes apart. */
GRD_INLINE void act_row(int64_t n, char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride, act_function *act)
{
    for (int64_t i = 0; i < n; i++)
        act(to + i * to_stride, from + i * from_stride);
}

/* Moves n elements of `size` bytes, which are from_stride bytes apart in `from` and to_stride bytes apart in `to`, by calling `move`. Contiguous
 * elements are copied as one block of bytes. */
GRD_INLINE void move_row(int64_t n, char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride,
                         act_function *move, int64_t size)
{
    if (to_stride == size && from_stride == size)
        grd_copy_line(to, from, n * size);
    else
        act_row(n, to, to_stride, from, from_stride, move);
}

/* Calls `add` for n pairs of an element of `to` and an element of `from`. `add` adds the second to the first, or combines them in another way. The
 * elements have `size` bytes and are to_stride and from_stride bytes apart. Contiguous elements have a loop of their own, which vectorises. */
GRD_INLINE void add_row(int64_t n, char *restrict to, int64_t to_stride, const char *restrict from, int64_t from_stride, act_function *add,
                        int64_t size)
{
    if (to_stride == size && from_stride == size)
        act_row(n, to, size, from, size, add);
    else
        act_row(n, to, to_stride, from, from_stride, add);
}

/* Applies `act` to n pairs of elements. In pair i, the first element is at to + i * to_stride + index[i] * to_step, and the second is at
 * from + i * from_stride + index[i] * from_step. The step is 0 for the operand to which the index does not apply. Strides and steps are in bytes. */
GRD_INLINE void at_each(int64_t n, char *to, int64_t to_stride, int64_t to_step, const char *from, int64_t from_stride, int64_t from_step,
                        const char *index, int64_t index_stride, act_function *act)
{
    BY_FOUR
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = *(const int64_t *)(index + i * index_stride);
        act(to + i * to_stride + at * to_step, from + i * from_stride + at * from_step);
    }
}

/* Applies `act` for each i < n to element index[i] of the result (`to`) and element i of `from`. The indices and the result are contiguous. Loads
 * several indices before it stores their elements, because a load waits until the addresses of all earlier stores are known. */
GRD_INLINE void at_listed(int64_t n, char *to, const char *from, int64_t from_stride, const int64_t *index, act_function *act, int64_t size)
{
    enum { SOME = 8 };
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        int64_t at[SOME];
        UNROLLED for (int k = 0; k < SOME; k++) at[k] = index[i + k];
        UNROLLED for (int k = 0; k < SOME; k++) act(to + at[k] * size, from + (i + k) * from_stride);
    }
    for (; i < n; i++)
        act(to + index[i] * size, from + i * from_stride);
}

/* Applies `act` to n pairs of an element of the result (data[0]) and an element of the source (data[1]). The indices (data[2]) select elements of
 * one operand, `indexed`. *params is the stride of this operand along the indexed dimension, in bytes. If all pairs have the same index, one call
 * of `row` handles them. */
GRD_INLINE void at_indices(int64_t n, char *const *data, const int64_t *strides, const void *params, enum side indexed, row_function *row,
                           act_function *act, int64_t size)
{
    int64_t step = *(const int64_t *)params, to_step = indexed == RESULT ? step : 0, from_step = indexed == SOURCE ? step : 0;
    char *to = data[0];
    const char *from = data[1], *index = data[2];
    if (strides[2] == 0) {
        int64_t at = *(const int64_t *)index;
        row(n, to + at * to_step, strides[0], from + at * from_step, strides[1], act, size);
        return;
    }
    /* Local variables hold the strides, because the compiler has to assume that stores change `strides`. The two `listed` branches are the most
     * frequent case. In these a contiguous list of indices selects elements of the result, and the source is contiguous or a single element. */
    const int64_t to_stride = strides[0], from_stride = strides[1],
                  index_stride = strides[2], *const list = (const int64_t *)(const void *)index;
    const bool listed = indexed == RESULT && index_stride == sizeof *list && to_stride == 0 && step == size;
    if (listed && from_stride == size)
        at_listed(n, to, from, size, list, act, size);
    else if (listed && from_stride == 0)
        at_listed(n, to, from, 0, list, act, size);
    else
        at_each(n, to, to_stride, to_step, from, from_stride, from_step, index, index_stride, act);
}

/* ---- Repetition ------------------------------------------------------------------------------------------------------------------- */

/* Returns the sum of n counts, -1 if one of them is negative, or -2 if the sum overflows. */
static int64_t total(int64_t n, const int64_t *counts)
{
    int64_t sum = 0;
    bool negative = false, beyond = false;
    for (int64_t i = 0; i < n; i++) {
        negative |= counts[i] < 0;
        beyond |= __builtin_add_overflow(sum, counts[i], &sum);
    }
    return negative ? -1 : beyond ? -2 : sum;
}

static void repeat(int64_t n, const int64_t *counts, int64_t *to)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < counts[i]; k++)
            *to++ = i;
}

/* ---- Masks ---------------------------------------------------------------------------------------------------------------------- */

static int64_t count(int64_t n, const uint8_t *mask)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += mask[i] != 0;
    return total;
}

/* Returns 1 + the index of the last set element of the mask, or 0 if none is set. The loops of number_set() and compress() end there. They write to
 * the end of a list for every element, set or not, because a branch would often be mispredicted. After the last set element the list may fill its
 * memory, so one more write might be beyond the end. */
GRD_INLINE int64_t set_end(int64_t n, const uint8_t *mask)
{
    while (n > 0 && !mask[n - 1])
        n--;
    return n;
}

GRD_INLINE bool are_eight_unset(const uint8_t *mask)
{
    uint64_t eight;
    memcpy(&eight, mask, sizeof eight);
    return eight == 0;
}

/* Writes to `to` the numbers first + i for all i < n at which the mask is set, and returns how many numbers were written. */
static int64_t number_set(int64_t n, const uint8_t *mask, int64_t first, int64_t *to)
{
    int64_t found = 0, i = 0;
    n = set_end(n, mask);
    for (; i + 8 <= n; i += 8) {
        if (are_eight_unset(mask + i))
            continue;
        UNROLLED for (int k = 0; k < 8; k++)
        {
            to[found] = first + i + k;
            found += mask[i + k] != 0;
        }
    }
    for (; i < n; i++) {
        to[found] = first + i;
        found += mask[i] != 0;
    }
    return found;
}

/* Writes the coordinates of the nonzero elements in the part of a mask that b describes. Coordinate d of the r-th nonzero element goes to
 * b->to[d * b->column + r]. The loop takes one row along the last dimension at a time, because all other coordinates are constant in a row. */
static void coordinates(const struct grd_coordinates_block *b)
{
    const int64_t last = b->ndim - 1;
    int64_t at[GRD_MAX_DIMS], *to = b->to;
    for (int64_t d = last, rest = b->first; d >= 0; d--) {
        at[d] = rest % b->sizes[d];
        rest /= b->sizes[d];
    }
    for (int64_t i = 0, length; i < b->n && last >= 0; i += length) {
        length = grd_least(b->sizes[last] - at[last], b->n - i);
        const int64_t found = number_set(length, b->mask + i, at[last], to + last * b->column);
        for (int64_t d = 0; d < last; d++)
            for (int64_t k = 0; k < found; k++)
                to[d * b->column + k] = at[d];
        to += found;
        at[last] += length;
        for (int64_t d = last; d > 0 && at[d] == b->sizes[d]; d--)
            at[d] = 0, at[d - 1]++;
    }
}

/* Writes to `to` all combinations of r numbers from 0 to n - 1, one in each of `rows` rows. If `repeated`, a number may occur in a combination
 * several times. Each row is made from the row before it by incrementing the last number that can be incremented, and giving all numbers after it the
 * smallest values that are allowed. */
static void combinations(int64_t n, int64_t r, bool repeated, int64_t rows, int64_t *to)
{
    const int64_t step = !repeated;
    for (int64_t i = 0; i < r; i++)
        to[i] = i * step;
    for (int64_t row = 1; row < rows; row++, to += r) {
        int64_t last = r - 1;
        while (to[last] == n - 1 - (r - 1 - last) * step)
            last--;
        for (int64_t i = 0; i < r; i++)
            to[r + i] = i < last ? to[i] : to[last] + 1 + (i - last) * step;
    }
}

/* Writes the indices of the elements of the triangle that `t` describes, row by row: the row indices to `rows` and the column indices to
 * `columns`. */
static void triangle(const struct grd_triangle_indices *t, int64_t *rows, int64_t *columns)
{
    for (int64_t row = t->first; row < t->end; row++) {
        const int64_t diagonal = row + t->offset, first = t->upper && diagonal > 0 ? diagonal : 0;
        const int64_t end = t->upper || diagonal >= t->columns ? t->columns : diagonal + 1;
        for (int64_t column = first; column < end; column++) {
            *rows++ = row;
            *columns++ = column;
        }
    }
}

/* ---- Every size ------------------------------------------------------------------------------------------------------------------- */

#define SIZE 1
#define WORD uint8_t
#include "kernel/cpu/index_sized.h"
#define SIZE 2
#define WORD uint16_t
#include "kernel/cpu/index_sized.h"
#define SIZE 4
#define WORD uint32_t
#include "kernel/cpu/index_sized.h"
#define SIZE 8
#define WORD uint64_t
#include "kernel/cpu/index_sized.h"
#define SIZE 16
#define WORD unsigned __int128
#include "kernel/cpu/index_sized.h"

/* ---- Scattered arithmetic; integers are added by their size, half dtypes as float32 or complex64 ------------------------------------ */

GRD_INLINE void add_bool(char *restrict to, const char *restrict from)
{
    *(uint8_t *)to = (*(uint8_t *)to | *(const uint8_t *)from) != 0;
}

static void add_bool_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    at_indices(n, data, strides, params, RESULT, add_row, add_bool, 1);
}

#define ADDS 1
#define MULTIPLIES 2
#define COMPARES 4
#define HAS_NAN 8
#define DOES (ADDS | COMPARES | HAS_NAN)
#define TYPE float
#define NAME float32
#include "kernel/cpu/index_fold.h"
#define DOES (ADDS | MULTIPLIES | COMPARES | HAS_NAN)
#define TYPE double
#define NAME float64
#include "kernel/cpu/index_fold.h"
#define DOES ADDS
#define TYPE float _Complex
#define NAME complex64
#include "kernel/cpu/index_fold.h"
#define DOES (ADDS | MULTIPLIES)
#define TYPE double _Complex
#define NAME complex128
#include "kernel/cpu/index_fold.h"
#define DOES MULTIPLIES
#define TYPE uint64_t
#define NAME uint64
#include "kernel/cpu/index_fold.h"
#define DOES COMPARES
#define TYPE int64_t
#define NAME int64
#include "kernel/cpu/index_fold.h"

const struct grd_index_kernels GRD_AT_LEVEL(grd_index_kernels) = {
    .check = check,
    .range = range,
    .add_offsets = add_offsets,
    .prefetch = prefetch,
    .number_runs = number_runs,
    .coordinates = coordinates,
    .total = total,
    .repeat = repeat,
    .combinations = combinations,
    .triangle = triangle,
    .gather = {gather_1, gather_2, gather_4, gather_8, gather_16},
    .scatter = {scatter_1, scatter_2, scatter_4, scatter_8, scatter_16},
    .add = {[GRD_BOOL] = add_bool_loop,
            [GRD_UINT8] = add_1,
            [GRD_INT8] = add_1,
            [GRD_UINT16] = add_2,
            [GRD_INT16] = add_2,
            [GRD_UINT32] = add_4,
            [GRD_INT32] = add_4,
            [GRD_UINT64] = add_8,
            [GRD_INT64] = add_8,
            [GRD_FLOAT32] = add_loop_float32,
            [GRD_FLOAT64] = add_loop_float64,
            [GRD_COMPLEX64] = add_loop_complex64,
            [GRD_COMPLEX128] = add_loop_complex128},
    .fold = {{[GRD_INT64] = prod_loop_uint64, [GRD_FLOAT64] = prod_loop_float64, [GRD_COMPLEX128] = prod_loop_complex128},
             {[GRD_INT64] = amax_loop_int64, [GRD_FLOAT32] = amax_loop_float32, [GRD_FLOAT64] = amax_loop_float64},
             {[GRD_INT64] = amin_loop_int64, [GRD_FLOAT32] = amin_loop_float32, [GRD_FLOAT64] = amin_loop_float64}},
    .find_zero = {find_zero_1, find_zero_2, find_zero_4, find_zero_8},
    .masked_fill = {masked_fill_1, masked_fill_2, masked_fill_4, masked_fill_8, masked_fill_16},
    .count = count,
    .compress = {compress_1, compress_2, compress_4, compress_8, compress_16},
    .expand = {expand_1, expand_2, expand_4, expand_8, expand_16},
};
