/* Small real matrices that are computed many at once: element i of all of them is one vector, a lane for each. Gathers, scatters and solves them. Typed: float32 float64.
 * Invariant: a lane is moved as it is, and never mixed with another. */
#ifndef GRD_KERNEL_CPU_MATRIX_LANES_H
#define GRD_KERNEL_CPU_MATRIX_LANES_H

#include <string.h>

#include "kernel/cpu/typed.h"
#include "kernel/decomposition.h"

/* Elements of GRD_MATRIX_LANES matrices. Masks choose among their bits: a choice between floating numbers would become stores under conditions. */
#if GRD_TAG == GRD_TAG_float32
typedef uint32_t B;
#else
typedef uint64_t B;
#endif

typedef union {
    T x[GRD_MATRIX_LANES];
    B bits[GRD_MATRIX_LANES];
} lanes;

/* A square of elements, a row of it from each of as many matrices, is transposed in vectors of 16 bytes. */
enum { SQUARE = 16 / sizeof(T) };
typedef T square_row __attribute__((vector_size(16)));

INLINE void transpose_square(square_row *rows)
{
#if GRD_TAG == GRD_TAG_float32
    const square_row a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5), b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7),
                     c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5), d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#else
    const square_row a = rows[0], b = rows[1];
    rows[0] = __builtin_shufflevector(a, b, 0, 2);
    rows[1] = __builtin_shufflevector(a, b, 1, 3);
#endif
}

/* Where the elements of a matrix are among the lanes: element i is at place[i], at i for place NULL. */
INLINE int64_t place_at(const int32_t *place, int64_t i)
{
    return place == NULL ? i : place[i];
}

/* Elements [i, i + SQUARE) of all lanes, of which there are `width`. */
INLINE void gather_square(int width, const T *const *from, int64_t i, const int32_t *place, T *to)
{
    UNROLLED for (int l = 0; l < width; l += SQUARE)
    {
        square_row rows[SQUARE];
        UNROLLED for (int r = 0; r < SQUARE; r++) memcpy(&rows[r], from[l + r] + i, sizeof *rows);
        transpose_square(rows);
        UNROLLED for (int r = 0; r < SQUARE; r++) memcpy(to + place_at(place, i + r) * width + l, &rows[r], sizeof *rows);
    }
}

INLINE void scatter_square(int width, int lanes_used, T *const *to, int64_t i, const int32_t *place, const T *from)
{
    for (int l = 0; l < lanes_used; l += SQUARE) {
        square_row rows[SQUARE];
        UNROLLED for (int r = 0; r < SQUARE; r++) memcpy(&rows[r], from + place_at(place, i + r) * width + l, sizeof *rows);
        transpose_square(rows);
        for (int r = 0; r < SQUARE && l + r < lanes_used; r++)
            memcpy(to[l + r] + i, &rows[r], sizeof *rows);
    }
}

/* Reads `size` elements, one after the other, of a matrix for each lane. Where they do not fill squares the last square overlaps the one before. */
INLINE void gather_wide(int width, int64_t size, const T *const *from, const int32_t *place, T *to)
{
    for (int64_t i = 0; i + SQUARE <= size; i += SQUARE)
        gather_square(width, from, i, place, to);
    if (size >= SQUARE && size % SQUARE != 0)
        gather_square(width, from, size - SQUARE, place, to);
    for (int64_t i = 0; i < size && size < SQUARE; i++)
        for (int l = 0; l < width; l++)
            to[place_at(place, i) * width + l] = from[l][i];
}

/* Writes the elements of the first lanes to their matrices. */
INLINE void scatter_wide(int width, int64_t size, int lanes_used, T *const *to, const int32_t *place, const T *from)
{
    for (int64_t i = 0; i + SQUARE <= size; i += SQUARE)
        scatter_square(width, lanes_used, to, i, place, from);
    if (size >= SQUARE && size % SQUARE != 0)
        scatter_square(width, lanes_used, to, size - SQUARE, place, from);
    for (int64_t i = 0; i < size && size < SQUARE; i++)
        for (int l = 0; l < lanes_used; l++)
            to[l][i] = from[place_at(place, i) * width + l];
}

INLINE void gather(int64_t size, const T *const *from, const int32_t *place, lanes *to)
{
    gather_wide(GRD_MATRIX_LANES, size, from, place, to->x);
}

INLINE void scatter(int64_t size, int lanes_used, T *const *to, const int32_t *place, const lanes *from)
{
    scatter_wide(GRD_MATRIX_LANES, size, lanes_used, to, place, from->x);
}

/* The addresses of matrices that follow one another, of the last one for lanes without a matrix. */
INLINE void lanes_from_wide(int width, const T *first, int64_t size, int64_t count, const T **ret_from)
{
    for (int l = 0; l < width; l++)
        ret_from[l] = first + (l < count ? l : count - 1) * size;
}

INLINE void lanes_from(const T *first, int64_t size, int64_t count, const T **ret_from)
{
    lanes_from_wide(GRD_MATRIX_LANES, first, size, count, ret_from);
}

INLINE void lanes_to_wide(int width, T *first, int64_t size, T **ret_to)
{
    for (int l = 0; l < width; l++)
        ret_to[l] = first + l * size;
}

INLINE void lanes_to(T *first, int64_t size, T **ret_to)
{
    lanes_to_wide(GRD_MATRIX_LANES, first, size, ret_to);
}

/* The places of the elements of m x n matrices, read row by row, among those that lie column by column. */
INLINE void places_by_columns(int64_t m, int64_t n, int32_t *ret_place)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            ret_place[i * n + j] = (int32_t)(i + j * m);
}

INLINE void subtract_in_lanes(const T *restrict factor, const T *restrict x, T *restrict a)
{
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) a[l] -= factor[l] * x[l];
}

/* Solves n x n triangles for k right sides. */
INLINE void solve_triangle_in_lanes(int64_t n, int64_t k, bool upper, bool unit, const lanes *a, lanes *x)
{
    for (const lanes *end = x + k * n; x < end; x += n)
        for (int64_t step = 0; step < n; step++) {
            const int64_t j = upper ? n - 1 - step : step;
            if (!unit)
                LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) x[j].x[l] /= a[j + j * n].x[l];
            for (int64_t i = upper ? 0 : j + 1; i < (upper ? j : n); i++)
                subtract_in_lanes(x[j].x, a[i + j * n].x, x[i].x);
        }
}

#endif
