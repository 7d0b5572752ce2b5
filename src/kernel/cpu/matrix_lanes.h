/* Small real matrices that are computed many at once: element i of all of them is one vector, a lane for each. Gathers, scatters and solves them. Typed: float32 float64.
 * Invariant: a lane is moved as it is, and never mixed with another. */
#ifndef GRD_KERNEL_CPU_MATRIX_LANES_H
#define GRD_KERNEL_CPU_MATRIX_LANES_H

#include <string.h>

#include "kernel/cpu/shuffle.h"
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

/* Where the elements of a matrix are among the lanes: element i is at place[i], at i for place NULL. */
GRD_INLINE int64_t place_at(const int32_t *place, int64_t i)
{
    return place == NULL ? i : place[i];
}

/* Elements [i, i + some), at most LANES, of the matrices of all lanes, of which there are `width`: a square of elements is transposed for each vector. */
GRD_INLINE void gather_square(int width, const T *const *from, int64_t i, int64_t some, const int32_t *place, T *to)
{
    const lane_mask mask = first_lanes(some);
    for (int l = 0; l < width; l += LANES) {
        vector v[LANES];
        UNROLLED for (int r = 0; r < LANES; r++) v[r] = some == LANES ? load_vector(from[l + r] + i) : load_lanes(from[l + r] + i, mask);
        transpose_lanes(v);
        UNROLLED for (int r = 0; r < LANES; r++) if (r < some) store_vector(to + place_at(place, i + r) * width + l, v[r]);
    }
}

GRD_INLINE void scatter_square(int width, int lanes_used, T *const *to, int64_t i, int64_t some, const int32_t *place, const T *from)
{
    const lane_mask mask = first_lanes(some);
    for (int l = 0; l < lanes_used; l += LANES) {
        vector v[LANES];
        UNROLLED for (int r = 0; r < LANES; r++) v[r] = load_vector(from + place_at(place, i + (r < some ? r : 0)) * width + l);
        transpose_lanes(v);
        UNROLLED for (int r = 0; r < LANES; r++)
        {
            if (l + r >= lanes_used)
                break;
            if (some == LANES)
                store_vector(to[l + r] + i, v[r]);
            else
                store_lanes(to[l + r] + i, mask, v[r]);
        }
    }
}

/* Reads `size` elements, one after the other, of a matrix for each lane. Where they do not fill squares the last square overlaps the one before. */
GRD_INLINE void gather_wide(int width, int64_t size, const T *const *from, const int32_t *place, T *to)
{
    for (int64_t i = 0; i + LANES <= size; i += LANES)
        gather_square(width, from, i, LANES, place, to);
    if (size % LANES != 0)
        gather_square(width, from, size > LANES ? size - LANES : 0, at_most(size, LANES), place, to);
}

/* Writes the elements of the first lanes to their matrices. */
GRD_INLINE void scatter_wide(int width, int64_t size, int lanes_used, T *const *to, const int32_t *place, const T *from)
{
    for (int64_t i = 0; i + LANES <= size; i += LANES)
        scatter_square(width, lanes_used, to, i, LANES, place, from);
    if (size % LANES != 0)
        scatter_square(width, lanes_used, to, size > LANES ? size - LANES : 0, at_most(size, LANES), place, from);
}

GRD_INLINE void gather(int64_t size, const T *const *from, const int32_t *place, lanes *to)
{
    gather_wide(GRD_MATRIX_LANES, size, from, place, to->x);
}

GRD_INLINE void scatter(int64_t size, int lanes_used, T *const *to, const int32_t *place, const lanes *from)
{
    scatter_wide(GRD_MATRIX_LANES, size, lanes_used, to, place, from->x);
}

/* The addresses of matrices that follow one another, of the last one for lanes without a matrix. */
GRD_INLINE void lanes_from_wide(int width, const T *first, int64_t size, int64_t count, const T **ret_from)
{
    for (int l = 0; l < width; l++)
        ret_from[l] = first + (l < count ? l : count - 1) * size;
}

GRD_INLINE void lanes_from(const T *first, int64_t size, int64_t count, const T **ret_from)
{
    lanes_from_wide(GRD_MATRIX_LANES, first, size, count, ret_from);
}

GRD_INLINE void lanes_to_wide(int width, T *first, int64_t size, T **ret_to)
{
    for (int l = 0; l < width; l++)
        ret_to[l] = first + l * size;
}

GRD_INLINE void lanes_to(T *first, int64_t size, T **ret_to)
{
    lanes_to_wide(GRD_MATRIX_LANES, first, size, ret_to);
}

/* The places of the elements of m x n matrices, read row by row, among those that lie column by column. */
GRD_INLINE void places_by_columns(int64_t m, int64_t n, int32_t *ret_place)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            ret_place[i * n + j] = (int32_t)(i + j * m);
}

GRD_INLINE void subtract_in_lanes(const T *restrict factor, const T *restrict x, T *restrict a)
{
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) a[l] -= factor[l] * x[l];
}

/* Solves n x n triangles for k right sides. */
GRD_INLINE void solve_triangle_in_lanes(int64_t n, int64_t k, bool upper, bool unit, const lanes *a, lanes *x)
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
