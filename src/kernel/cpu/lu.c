/* Elimination with exchanged rows; see kernel/lu.h. Typed: float32 float64 complex64 complex128. Columns, which are contiguous, are updated one after the other. */
#include "kernel/lu.h"

#include <string.h>

#include "kernel/cpu/pivots.h"

/* ---- One matrix ------------------------------------------------------------------------------------------------------------------------- */

static void factor(int64_t m, int64_t n, void *matrix, int32_t *ret_pivots, int32_t *ret_info)
{
    T *a = matrix;
    *ret_info = 0;
    for (int64_t j = 0; j < at_most(m, n); j++) {
        T *column = a + j * m;
        const int64_t pivot = j + largest_of(m - j, column + j);
        ret_pivots[j] = (int32_t)(pivot + 1);
        if (pivot != j)
            exchange(n, m, a + j, a + pivot);
        if (equal(column[j], constant(0))) {
            *ret_info = *ret_info == 0 ? (int32_t)(j + 1) : *ret_info;
            continue;
        }
        for (int64_t i = j + 1; i < m; i++)
            column[i] = quotient(column[i], column[j]);
        for (int64_t k = j + 1; k < n; k++)
            subtract_multiple(m - j - 1, a[j + k * m], column + j + 1, a + j + 1 + k * m);
    }
}

static void exchange_rows(int64_t m, int64_t n, int64_t n_pivots, const int32_t *pivots, bool back, void *matrix)
{
    T *a = matrix;
    for (int64_t step = 0; step < n_pivots; step++) {
        const int64_t j = back ? n_pivots - 1 - step : step;
        if (pivots[j] != j + 1)
            exchange(n, m, a + j, a + pivots[j] - 1);
    }
}

/* ---- Determinants ----------------------------------------------------------------------------------------------------------------------- */

static bool is_odd(int64_t n, const int32_t *pivots)
{
    bool odd = false;
    for (int64_t j = 0; j < n; j++)
        odd ^= pivots[j] != j + 1;
    return odd;
}

static void determinant(int64_t n, const void *lu, const int32_t *pivots, void *ret)
{
    const T *a = lu;
    C result = constant(is_odd(n, pivots) ? -1 : 1);
    for (int64_t j = 0; j < n; j++)
        result = product(result, a[j + j * n]);
    *(T *)ret = result;
}

INLINE R absolute_of(C x)
{
    return GRD_IS_COMPLEX ? hypot(real_part(x), imaginary_part(x)) : fabs(real_part(x));
}

static void log_determinant(int64_t n, const void *lu, const int32_t *pivots, void *ret_sign, void *ret_log)
{
    const T *a = lu;
    C sign = constant(is_odd(n, pivots) ? -1 : 1);
    R logarithm = 0;
    for (int64_t j = 0; j < n; j++) {
        const C x = a[j + j * n];
        const R size = absolute_of(x);
        logarithm += log(size);
        sign = size == 0 ? constant(0) : product(sign, number(real_part(x) / size, imaginary_part(x) / size));
    }
    *(T *)ret_sign = sign;
    *(R *)ret_log = logarithm;
}

/* ---- Many small matrices ------------------------------------------------------------------------------------------------------------------ */

#if !GRD_IS_COMPLEX
/* An element of GRD_MATRIX_LANES matrices, whose bits are chosen among by masks: a choice between floating numbers would become stores under conditions. */
#if GRD_TAG == GRD_TAG_float32
typedef uint32_t B;
#else
typedef uint64_t B;
#endif

typedef union {
    T x[GRD_MATRIX_LANES];
    B bits[GRD_MATRIX_LANES];
} lanes;

/* The pivots of column j, from 0. */
INLINE void choose_pivots(int64_t n, int64_t j, const lanes *column, lanes *restrict pivots)
{
    lanes largest;
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
    {
        largest.x[l] = fabs(column[j].x[l]);
        pivots->bits[l] = (B)j;
    }
    for (int64_t i = j + 1; i < n; i++)
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
        {
            const T size = fabs(column[i].x[l]);
            const B is_larger = -(B)(size > largest.x[l]);
            pivots->bits[l] ^= (pivots->bits[l] ^ (B)i) & is_larger;
            largest.x[l] = size > largest.x[l] ? size : largest.x[l];
        }
}

/* Exchanges row j of n x n matrices with those of the pivots. */
INLINE void exchange_in_lanes(int64_t n, int64_t j, const lanes *restrict pivots, lanes *a)
{
    for (int64_t i = j + 1; i < n; i++) {
        B mask[GRD_MATRIX_LANES], any = 0;
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
        {
            mask[l] = -(B)(pivots->bits[l] == (B)i);
            any |= mask[l];
        }
        for (int64_t k = 0; any != 0 && k < n; k++) {
            B *restrict x = a[j + k * n].bits, *restrict y = a[i + k * n].bits;
            LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
            {
                const B difference = (x[l] ^ y[l]) & mask[l];
                x[l] ^= difference;
                y[l] ^= difference;
            }
        }
    }
}

INLINE void subtract_in_lanes(const T *restrict factor, const T *restrict x, T *restrict a)
{
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) a[l] -= factor[l] * x[l];
}

/* A column in which all that remains is zero is left as it is. */
static void factor_in_lanes(int64_t n, lanes *a, lanes *ret_pivots, lanes *restrict ret_info)
{
    memset(ret_info, 0, sizeof *ret_info);
    for (int64_t j = 0; j < n; j++) {
        lanes *column = a + j * n, divisor;
        choose_pivots(n, j, column, &ret_pivots[j]);
        exchange_in_lanes(n, j, &ret_pivots[j], a);
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
        {
            const T pivot = column[j].x[l];
            ret_info->bits[l] |= (B)(j + 1) & -(B)(pivot == 0) & -(B)(ret_info->bits[l] == 0);
            divisor.x[l] = pivot == 0 ? 1 : pivot;
        }
        for (int64_t i = j + 1; i < n; i++)
            LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) column[i].x[l] /= divisor.x[l];
        for (int64_t k = j + 1; k < n; k++)
            for (int64_t i = j + 1; i < n; i++)
                subtract_in_lanes(a[j + k * n].x, column[i].x, a[i + k * n].x);
    }
}

/* Lanes without a matrix factor the last one again. */
static void factor_many(int64_t count, int64_t n, void *matrices, int32_t *ret_pivots, int32_t *ret_info)
{
    T *a = matrices;
    const int64_t size = n * n;
    lanes gathered[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE], pivots[GRD_SMALL_MATRIX_SIDE], info;
    for (int64_t first = 0; first < count; first += GRD_MATRIX_LANES) {
        const int64_t some = at_most(count - first, GRD_MATRIX_LANES);
        for (int64_t l = 0; l < GRD_MATRIX_LANES; l++)
            for (int64_t i = 0; i < size; i++)
                gathered[i].x[l] = a[(first + at_most(l, some - 1)) * size + i];
        factor_in_lanes(n, gathered, pivots, &info);
        for (int64_t l = 0; l < some; l++) {
            for (int64_t i = 0; i < size; i++)
                a[(first + l) * size + i] = gathered[i].x[l];
            for (int64_t j = 0; j < n; j++)
                ret_pivots[(first + l) * n + j] = (int32_t)pivots[j].bits[l] + 1;
            ret_info[first + l] = (int32_t)info.bits[l];
        }
    }
}

/* The row of A that is row i of L U. */
INLINE void read_order(int64_t n, const int32_t *pivots, int *ret_order)
{
    for (int i = 0; i < n; i++)
        ret_order[i] = i;
    for (int64_t j = 0; j < n; j++) {
        const int kept = ret_order[j];
        ret_order[j] = ret_order[pivots[j] - 1];
        ret_order[pivots[j] - 1] = kept;
    }
}

/* Solves with the lower triangle, then with the upper one; of one of them the diagonal is 1. */
static void solve_in_lanes(int64_t n, int64_t k, bool is_lower_unit, const lanes *a, lanes *x)
{
    for (const lanes *end = x + k * n; x < end; x += n)
        for (int64_t step = 0; step < 2 * n; step++) {
            const bool lower = step < n;
            const int64_t j = lower ? step : 2 * n - 1 - step;
            if (lower != is_lower_unit)
                LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) x[j].x[l] /= a[j + j * n].x[l];
            for (int64_t i = lower ? j + 1 : 0; i < (lower ? n : j); i++)
                subtract_in_lanes(x[j].x, a[i + j * n].x, x[i].x);
        }
}

/* Lanes without a system solve the last one again. */
static void solve_many(const struct grd_small_systems *s)
{
    const int64_t n = s->n, size = n * n;
    lanes matrices[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE], x[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE];
    int order[GRD_MATRIX_LANES][GRD_SMALL_MATRIX_SIDE];
    for (int64_t l = 0; l < GRD_MATRIX_LANES; l++) {
        const int64_t which = at_most(l, s->count - 1);
        read_order(n, s->exchanges[which], order[l]);
        for (int64_t i = 0; i < size; i++)
            matrices[i].x[l] = ((const T *)s->matrices[which])[i];
    }
    for (int64_t first = 0; first < s->k; first += GRD_SMALL_MATRIX_SIDE) {
        const int64_t columns = at_most(s->k - first, GRD_SMALL_MATRIX_SIDE);
        for (int64_t l = 0; l < GRD_MATRIX_LANES; l++) {
            const T *from = (const T *)s->x + (at_most(l, s->count - 1) * s->k + first) * n;
            for (int64_t k = 0; k < columns; k++)
                for (int64_t i = 0; i < n; i++)
                    x[i + k * n].x[l] = from[k * n + (s->transposed ? i : order[l][i])];
        }
        solve_in_lanes(n, columns, !s->transposed, matrices, x);
        for (int64_t l = 0; l < s->count; l++) {
            T *to = (T *)s->x + (l * s->k + first) * n;
            for (int64_t k = 0; k < columns; k++)
                for (int64_t i = 0; i < n; i++)
                    to[k * n + (s->transposed ? order[l][i] : i)] = x[i + k * n].x[l];
        }
    }
}
#endif

const struct grd_lu_row GRD_TYPED(grd_lu_row) = {
    .factor = factor,
#if !GRD_IS_COMPLEX
    .factor_many = factor_many,
    .solve_many = solve_many,
#endif
    .exchange_rows = exchange_rows,
    .determinant = determinant,
    .log_determinant = log_determinant,
};
