/* Loads and stores many small real matrices at once, and solves triangular systems of equations with them. Element i of all matrices is one vector,
 * with one lane per matrix. This header is for files that are compiled for float32 or float64.
 * Invariant: loads and stores copy elements bit for bit, and no operation combines the lanes of different matrices. */
#ifndef GRD_KERNEL_CPU_MATRIX_LANES_H
#define GRD_KERNEL_CPU_MATRIX_LANES_H

#include <string.h>

#include "kernel/cpu/shuffle.h"
#include "kernel/cpu/typed.h"
#include "kernel/decomposition.h"

/* An unsigned integer as wide as T. */
#if GRD_TAG == GRD_TAG_float32
typedef uint32_t B;
#else
typedef uint64_t B;
#endif

/* Holds one element of each of GRD_MATRIX_LANES matrices, as numbers and as their bits. Choices between lanes are made with masks on the bits,
 * because the compiler would turn a choice between floating-point numbers into conditional stores. */
typedef union {
    T x[GRD_MATRIX_LANES];
    B bits[GRD_MATRIX_LANES];
} lanes;

/* Returns the index of the vector that holds element i of all matrices, which is place[i], or i if `place` is NULL. */
GRD_INLINE int64_t place_at(const int32_t *place, int64_t i)
{
    return place == NULL ? i : place[i];
}

/* Loads the elements [i, i + some) of `width` matrices, one matrix into each lane. from[l] is the address of the matrix for lane l. `some` is at most
 * LANES. Element i goes to vector number place_at(place, i) of `to`. A square of LANES elements of LANES matrices is transposed at a time. */
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

/* Copies the elements [i, i + some) of matrices from the lanes of vectors to memory. The matrix in lane l < lanes_used goes to the address to[l]. Its
 * element i is read from vector number place_at(place, i) of `from`. A square of LANES elements of LANES matrices is transposed at a time. */
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

/* Loads `size` contiguous elements of each of `width` matrices into lanes. from[l] is the address of the matrix for lane l. Element i goes to vector
 * number place[i] of `to`, or i if `place` is NULL. If `size` is not a multiple of LANES, the last square of elements that is transposed overlaps the
 * square before it. */
GRD_INLINE void gather_wide(int width, int64_t size, const T *const *from, const int32_t *place, T *to)
{
    for (int64_t i = 0; i + LANES <= size; i += LANES)
        gather_square(width, from, i, LANES, place, to);
    if (size % LANES != 0)
        gather_square(width, from, size > LANES ? size - LANES : 0, grd_least(size, LANES), place, to);
}

/* Copies matrices of `size` elements from the lanes of vectors to memory. The matrix in lane l < lanes_used goes to the address to[l]. Its element i
 * is read from vector number place_at(place, i) of `from`. */
GRD_INLINE void scatter_wide(int width, int64_t size, int lanes_used, T *const *to, const int32_t *place, const T *from)
{
    for (int64_t i = 0; i + LANES <= size; i += LANES)
        scatter_square(width, lanes_used, to, i, LANES, place, from);
    if (size % LANES != 0)
        scatter_square(width, lanes_used, to, size > LANES ? size - LANES : 0, grd_least(size, LANES), place, from);
}

/* Loads `size` elements of each of GRD_MATRIX_LANES matrices into lanes. from[l] is the address of the matrix for lane l. Element i goes to the
 * vector to[place[i]], or to[i] if `place` is NULL. */
GRD_INLINE void gather(int64_t size, const T *const *from, const int32_t *place, lanes *to)
{
    gather_wide(GRD_MATRIX_LANES, size, from, place, to->x);
}

/* Copies matrices of `size` elements from the lanes of vectors to memory. The matrix in lane l < lanes_used goes to the address to[l]. Its element i
 * is in the vector from[place[i]], or from[i] if `place` is NULL. */
GRD_INLINE void scatter(int64_t size, int lanes_used, T *const *to, const int32_t *place, const lanes *from)
{
    scatter_wide(GRD_MATRIX_LANES, size, lanes_used, to, place, from->x);
}

/* Writes for each of `width` lanes the address of its matrix. The `count` matrices have `size` elements and follow each other from `first` on. Lanes
 * without a matrix get the address of the last one. */
GRD_INLINE void lanes_from_wide(int width, const T *first, int64_t size, int64_t count, const T **ret_from)
{
    for (int l = 0; l < width; l++)
        ret_from[l] = first + (l < count ? l : count - 1) * size;
}

/* Writes for each of GRD_MATRIX_LANES lanes the address of its matrix. The `count` matrices have `size` elements and follow each other from `first`
 * on. Lanes without a matrix get the address of the last one. */
GRD_INLINE void lanes_from(const T *first, int64_t size, int64_t count, const T **ret_from)
{
    lanes_from_wide(GRD_MATRIX_LANES, first, size, count, ret_from);
}

/* Writes for each of `width` lanes the address to which its matrix is stored. The matrices have `size` elements and follow each other from `first`
 * on. */
GRD_INLINE void lanes_to_wide(int width, T *first, int64_t size, T **ret_to)
{
    for (int l = 0; l < width; l++)
        ret_to[l] = first + l * size;
}

/* Writes for each of GRD_MATRIX_LANES lanes the address to which its matrix is stored. The matrices have `size` elements and follow each other from
 * `first` on. */
GRD_INLINE void lanes_to(T *first, int64_t size, T **ret_to)
{
    lanes_to_wide(GRD_MATRIX_LANES, first, size, ret_to);
}

/* Writes for each element of an m x n matrix, in row-major order, its index in column-major order. */
GRD_INLINE void places_by_columns(int64_t m, int64_t n, int32_t *ret_place)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            ret_place[i * n + j] = (int32_t)(i + j * m);
}

/* Subtracts factor[l] * x[l] from a[l] in each lane l. */
GRD_INLINE void subtract_in_lanes(const T *restrict factor, const T *restrict x, T *restrict a)
{
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) a[l] -= factor[l] * x[l];
}

/* Solves in each lane a system of n equations with the triangular matrix `a` for k right sides in x, which are overwritten with the solutions. The
 * diagonal of `a` counts as 1 if `unit`. */
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
