/* Decomposes matrices into L and U with row exchanges, and computes determinants, inverses and solutions of equations from L and U; see kernel/lu.h.
 * The build compiles this file once for each of float32, float64, complex64 and complex128. Columns are contiguous, so the matrix is updated column
 * by column. */
#include "kernel/lu.h"

#include <float.h>
#include <string.h>

#include "kernel/cpu/pivots.h"

/* Note [Reciprocals of pivots]
 * A column is not divided by a real pivot but multiplied by the pivot's reciprocal, which takes less time. The reciprocal of a subnormal pivot
 * would overflow. Therefore such a pivot and its column are both multiplied by RAISE first. This is exact, because no element of the column is
 * larger than the pivot. */
#define RAISE ((R)0x1p64)
static const R least_normal = sizeof(R) == sizeof(float) ? (R)FLT_MIN : (R)DBL_MIN;

/* ---- Logarithms of determinants ----------------------------------------------------------------------------------------------------------- */

/* Returns the absolute value of x. */
GRD_INLINE R absolute_of(C x)
{
    return GRD_IS_COMPLEX ? hypot(real_part(x), imaginary_part(x)) : fabs(real_part(x));
}

/* Returns x divided by a power of two, so that the product of two results of this function neither overflows nor underflows. Adds the exponent of the
 * power to *exponent. x is not negative. */
GRD_INLINE double brought_near(double x, int64_t *exponent)
{
    int power = 0;
    if (x > 0x1p-500 && x < 0x1p500)
        return x;
    x = frexp(x, &power);
    *exponent += power;
    return x;
}

/* Writes the sign of the product of n numbers, negated if `odd`, and the logarithm of the product's absolute value. The numbers are `step` elements
 * apart. One logarithm of the product takes less time than a logarithm of each number. */
static void sign_and_logarithm(int64_t n, const T *numbers, int64_t step, bool odd, T *ret_sign, R *ret_log)
{
    const double ln2 = 0.69314718055994530942;
    C sign = constant(odd ? -1 : 1);
    double size = 1;
    int64_t exponent = 0;
    for (int64_t j = 0; j < n; j++) {
        const C x = numbers[j * step];
        const R absolute = absolute_of(x);
        size = brought_near(size * brought_near(absolute, &exponent), &exponent);
        sign = absolute == 0 ? constant(0) : product(sign, number(real_part(x) / absolute, imaginary_part(x) / absolute));
    }
    if (exponent != 0) {
        int power = 0;
        size = frexp(size, &power);
        exponent += power;
        if (size < 0.75) { /* keeps `size` at 0.75 or more; otherwise the two terms of *ret_log could cancel if the product is near 1 */
            size *= 2;
            exponent--;
        }
    }
    *ret_sign = sign;
    *ret_log = (R)(log(size) + (double)exponent * ln2);
}

#if !GRD_IS_COMPLEX
#include "kernel/cpu/matrix_lanes.h"
#include "kernel/cpu/lu_lanes.h"
#endif

/* ---- One matrix ------------------------------------------------------------------------------------------------------------------------- */

/* Divides n elements x, which are not larger than the pivot, by the pivot. If they are real, multiplies them by the reciprocal of the pivot instead,
 * which takes less time (see Note [Reciprocals of pivots]). */
GRD_INLINE void divide_by_pivot(int64_t n, C pivot, T *x)
{
#if GRD_IS_COMPLEX
    for (int64_t i = 0; i < n; i++)
        x[i] = quotient(x[i], pivot);
#else
    const R raise = fabs(pivot) < least_normal ? RAISE : 1, reciprocal = 1 / (pivot * raise);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] * raise * reciprocal;
#endif
}

static void factor(int64_t m, int64_t n, void *matrix, int32_t *ret_pivots, int32_t *ret_info)
{
    T *a = matrix;
    *ret_info = 0;
    for (int64_t j = 0; j < grd_least(m, n); j++) {
        T *column = a + j * m;
        const int64_t pivot = j + largest_of(m - j, column + j);
        ret_pivots[j] = (int32_t)(pivot + 1);
        if (pivot != j)
            exchange(n, m, a + j, a + pivot);
        if (equal(column[j], constant(0))) {
            *ret_info = *ret_info == 0 ? (int32_t)(j + 1) : *ret_info;
            continue;
        }
        divide_by_pivot(m - j - 1, column[j], column + j + 1);
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

/* ---- Inverses --------------------------------------------------------------------------------------------------------------------------- */

/* Writes to ret_places[i] the index of the row of A that the row exchanges in `pivots` have moved to row i of L U. */
static void find_places(int64_t n, const int32_t *pivots, int64_t *ret_places)
{
    for (int64_t i = 0; i < n; i++)
        ret_places[i] = i;
    for (int64_t i = 0; i < n; i++) {
        const int64_t other = pivots[i] - 1, place = ret_places[i];
        ret_places[i] = ret_places[other];
        ret_places[other] = place;
    }
}

static void fill_diagonal(int64_t n, int64_t m, void *x)
{
    for (int64_t i = 0; i < n; i++)
        ((T *)x)[i * (m + 1)] = constant(1);
}

static void place_columns(int64_t m, int64_t n, const int64_t *places, const void *x, void *ret)
{
    for (int64_t i = 0; i < n; i++)
        memcpy((T *)ret + places[i] * m, (const T *)x + i * m, (size_t)m * sizeof(T));
}

/* ---- Determinants ----------------------------------------------------------------------------------------------------------------------- */

/* True if the pivots describe an odd number of row exchanges, which change the sign of the determinant. */
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

static void log_determinant(int64_t n, const void *lu, const int32_t *pivots, void *ret_sign, void *ret_log)
{
    sign_and_logarithm(n, lu, n + 1, is_odd(n, pivots), ret_sign, ret_log);
}

/* ---- Many small matrices ------------------------------------------------------------------------------------------------------------------ */

#if !GRD_IS_COMPLEX
/* Writes to ret_order[i] the index of the row of A that the row exchanges in `pivots` have moved to row i. */
GRD_INLINE void read_order(int64_t n, const int32_t *pivots, int *ret_order)
{
    for (int i = 0; i < n; i++)
        ret_order[i] = i;
    for (int64_t j = 0; j < n; j++) {
        const int kept = ret_order[j];
        ret_order[j] = ret_order[pivots[j] - 1];
        ret_order[pivots[j] - 1] = kept;
    }
}

/* Solves n equations for k right sides in each lane, first with the lower and then with the upper triangle of `a`. x holds the right sides and is
 * overwritten with the solutions. If `is_lower_unit`, the diagonal of the lower triangle counts as 1, otherwise that of the upper triangle. */
GRD_INLINE void solve_in_lanes(int64_t n, int64_t k, bool is_lower_unit, const lanes *a, lanes *x)
{
    solve_triangle_in_lanes(n, k, false, is_lower_unit, a, x);
    solve_triangle_in_lanes(n, k, true, !is_lower_unit, a, x);
}

/* Solves up to GRD_MATRIX_LANES small systems of equations, whose matrices are decomposed already, one in each lane. Lanes without a system solve the
 * last one again. */
static void solve_many(const struct grd_small_systems *s)
{
    const int64_t n = s->n;
    lanes matrices[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE], x[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE];
    int order[GRD_MATRIX_LANES][GRD_SMALL_MATRIX_SIDE];
    const T *factors[GRD_MATRIX_LANES];
    for (int64_t l = 0; l < GRD_MATRIX_LANES; l++) {
        const int64_t which = grd_least(l, s->count - 1);
        read_order(n, s->exchanges[which], order[l]);
        factors[l] = s->matrices[which];
    }
    gather(n * n, factors, NULL, matrices);
    for (int64_t first = 0; first < s->k; first += GRD_SMALL_MATRIX_SIDE) {
        const int64_t columns = grd_least(s->k - first, GRD_SMALL_MATRIX_SIDE);
        for (int64_t l = 0; l < GRD_MATRIX_LANES; l++) {
            const T *from = (const T *)s->x + (grd_least(l, s->count - 1) * s->k + first) * n;
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
    .invert_many = invert_many,
    .determine_many = determine_many,
    .solve_equations_many = solve_equations_many,
#endif
    .exchange_rows = exchange_rows,
    .find_places = find_places,
    .fill_diagonal = fill_diagonal,
    .place_columns = place_columns,
    .determinant = determinant,
    .log_determinant = log_determinant,
};
