/* Computes Cholesky and QR decompositions, and solves systems of equations with triangular matrices; see kernel/decomposition.h. The build compiles
 * this file once for each of float32, float64, complex64 and complex128. The algorithms are taken from G. Golub and C. Van Loan, Matrix Computations,
 * in the variants that work column by column. */
#include "kernel/decomposition.h"

#include <string.h>

#include "kernel/cpu/matrix.h"
#if !GRD_IS_COMPLEX
#include "kernel/cpu/matrix_groups.h"
#endif

/* ---- Cholesky ------------------------------------------------------------------------------------------------------------------------- */

static void finish_factor(int64_t n, bool upper, void *l)
{
    T *a = l;
    for (int64_t j = 0; j < n; j++) {
        T *column = a + j * n;
        if (!upper) {
            memset(column, 0, (size_t)j * sizeof *a);
            continue;
        }
        for (int64_t i = j + 1; i < n; i++)
            a[j + i * n] = conjugate(column[i]);
        memset(column + j + 1, 0, (size_t)(n - 1 - j) * sizeof *a);
    }
}

/* Overwrites the lower triangle of the n x n matrix `a` with its Cholesky factor L. Returns 0, or the order of the first leading minor that is not
 * positive. */
static int32_t factor(int64_t n, T *a)
{
    for (int64_t j = 0; j < n; j++) {
        T *column = a + j * n;
        const R pivot = real_part(column[j]);
        if (!(pivot > 0))
            return (int32_t)(j + 1);
        const R root = sqrt(pivot);
        column[j] = number(root, 0);
        for (int64_t i = j + 1; i < n; i++)
            column[i] = scaled(column[i], 1 / root);
        for (int64_t k = j + 1; k < n; k++)
            subtract_multiple(n - k, conjugate(column[k]), column + k, a + k + k * n);
    }
    return 0;
}

static void cholesky(int64_t n, bool upper, void *a, int32_t *ret_info)
{
    *ret_info = factor(n, a);
    finish_factor(n, upper, a);
}

#if !GRD_IS_COMPLEX
/* Updates the elements [row, row + abreast) of column j of the matrix in each lane. Subtracts from them, for each k < j, the product of a[j][k] with
 * the elements of column k in the same rows. A lane whose column k is not finished, because its pivot was not positive, skips that column. */
GRD_INLINE void subtract_columns(int abreast, int64_t n, int64_t j, int64_t row, const lane_bits *is_finished, vector *a)
{
    vector rest[ABREAST];
    UNROLLED for (int c = 0; c < abreast; c++) rest[c] = a[row + c + j * n];
    BY_ONE for (int64_t k = 0; k < j; k++)
    {
        const vector factor = (vector)((lane_bits)a[j + k * n] & is_finished[k]);
        UNROLLED for (int c = 0; c < abreast; c++) rest[c] -= factor * a[row + c + k * n];
    }
    UNROLLED for (int c = 0; c < abreast; c++) a[row + c + j * n] = rest[c];
}

/* Overwrites the n x n matrix in each lane with its Cholesky factor. The factor has the same bits as the result of factor(). Returns for each lane 0,
 * or the order of the first leading minor that is not positive. In the second case, the last column of this minor and all later columns are not
 * finished. */
static vector factor_lanes(int64_t n, vector *a)
{
    vector info = everywhere(0);
    lane_bits is_finished[GRD_SMALL_MATRIX_SIDE];
    for (int64_t j = 0; j < n; j++) {
        vector *column = a + j * n;
        int64_t i = j;
        for (; i + ABREAST <= n; i += ABREAST)
            subtract_columns(ABREAST, n, j, i, is_finished, a);
        for (; i < n; i++)
            subtract_columns(1, n, j, i, is_finished, a);
        const lane_bits goes_on = (lane_bits)(info == 0) & (lane_bits)(column[j] > 0);
        info = chosen(~goes_on & (lane_bits)(info == 0), everywhere((T)(j + 1)), info);
        column[j] = chosen(goes_on, square_roots(column[j]), column[j]);
        const vector inverse = chosen(goes_on, 1 / column[j], everywhere(1));
        BY_ONE for (i = j + 1; i < n; i++) column[i] *= inverse;
        is_finished[j] = goes_on;
    }
    return info;
}

static void cholesky_many(int64_t count, int64_t n, bool by_rows, bool upper, const void *matrices, void *ret_l, int32_t *ret_info)
{
    const int64_t size = n * n;
    vector group[GRD_SMALL_MATRIX_SIZE];
    int32_t turned[GRD_SMALL_MATRIX_SIZE];
    places_by_columns(n, n, turned);
    for (int64_t first = 0; first < count; first += LANES) {
        const int64_t some = grd_least(count - first, LANES);
        read_lanes(size, some, by_rows != upper ? turned : NULL, (const T *)matrices + first * size, group);
        const vector info = factor_lanes(n, group);
        for (int64_t j = 1; j < n; j++)
            memset(group + j * n, 0, (size_t)j * sizeof *group);
        write_group(size, some, upper ? turned : NULL, (T *)ret_l + first * size, group);
        for (int64_t l = 0; l < some; l++)
            ret_info[first + l] = (int32_t)info[l];
    }
}

/* Loads row-major n x n matrices into lanes. `to` receives one matrix in each lane, in column-major order. */
static NOT_INLINE void gather_rows(int64_t n, const T *const *from, lanes *to)
{
    int32_t turned[GRD_SMALL_MATRIX_SIZE];
    places_by_columns(n, n, turned);
    gather(n * n, from, turned, to);
}

static void solve_many(const struct grd_triangle *t, bool by_rows, int64_t count, int64_t k, const void *const *matrices, void *x)
{
    const int64_t n = t->n;
    lanes triangles[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE], columns[GRD_SMALL_MATRIX_SIDE * GRD_SMALL_MATRIX_SIDE];
    const T *from[GRD_MATRIX_LANES];
    T *to[GRD_MATRIX_LANES];
    for (int64_t l = 0; l < GRD_MATRIX_LANES; l++)
        from[l] = matrices[grd_least(l, count - 1)];
    if (by_rows)
        gather_rows(n, from, triangles);
    else
        gather(n * n, from, NULL, triangles);
    for (int64_t first = 0; first < k; first += GRD_SMALL_MATRIX_SIDE) {
        const int64_t some = grd_least(k - first, GRD_SMALL_MATRIX_SIDE);
        lanes_from((const T *)x + first * n, k * n, count, from);
        lanes_to((T *)x + first * n, k * n, to);
        gather(n * some, from, NULL, columns);
        solve_triangle_in_lanes(n, some, t->upper, t->unit, triangles, columns);
        scatter(n * some, (int)count, to, NULL, columns);
    }
}
#endif

/* ---- QR ----------------------------------------------------------------------------------------------------------------------------------- */

/* Finds the Householder reflection that maps x to a real multiple beta of the first unit vector; beta has the sign that avoids cancellation.
 * Overwrites x[0] with beta and x[1], x[2], ... with the elements of the reflection's vector v, whose first element is 1. Returns tau, which is 0
 * if x is a real multiple of the first unit vector already. */
static C reflect_column(int64_t n, T *x)
{
    const R tail = norm_of(n - 1, x + 1), re = real_part(x[0]), im = imaginary_part(x[0]);
    if (tail == 0 && im == 0)
        return constant(0);
    const R size = hypot(hypot(re, im), tail), beta = re >= 0 ? -size : size;
    const C scale = quotient(constant(1), difference(x[0], number(beta, 0)));
    for (int64_t i = 1; i < n; i++)
        x[i] = product(x[i], scale);
    x[0] = number(beta, 0);
    return number((beta - re) / beta, -im / beta);
}

#if GRD_TAG == GRD_TAG_complex64
/* Returns tau * v^H x, where v[0] is taken as 1. Sums are in double, in which products of floats are exact. This makes the error of a product of six
 * reflections a third smaller. `along` sums the products of two real or two imaginary parts, `across` sums the products of a real and an imaginary
 * part. */
GRD_INLINE C reflection_factor(int64_t n, C tau, const T *v, const T *x)
{
    enum { PARTS = 8 };
    const float *restrict v_parts = (const float *)(v + 1), *restrict x_parts = (const float *)(x + 1);
    const int64_t parts = 2 * (n - 1);
    double along[PARTS] = {0}, across[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= parts; i += PARTS)
        LANEWISE for (int l = 0; l < PARTS; l++)
        {
            along[l] += (double)v_parts[i + l] * (double)x_parts[i + l];
            across[l] += (double)v_parts[i + l] * (double)x_parts[i + (l ^ 1)];
        }
    for (int l = 0; i + l < parts; l++) {
        along[l] += (double)v_parts[i + l] * (double)x_parts[i + l];
        across[l] += (double)v_parts[i + l] * (double)x_parts[i + (l ^ 1)];
    }
    double re = x[0].re, im = x[0].im;
    for (int l = 0; l < PARTS; l += 2) {
        re += along[l] + along[l + 1];
        im += across[l] - across[l + 1];
    }
    const double minus = -im; /* the formula adds `minus` instead of subtracting, because GCC 12 would make a fused multiply-add */
    return number((float)(tau.re * re + tau.im * minus), (float)(tau.re * im + tau.im * re));
}
#else
/* Returns tau * v^H x, where v[0] is taken as 1. */
GRD_INLINE C reflection_factor(int64_t n, C tau, const T *v, const T *x)
{
    return product(tau, sum(x[0], inner_product(n - 1, v + 1, x + 1)));
}
#endif

/* Subtracts tau * v * (v^H x) from x, where v[0] is taken as 1. */
GRD_INLINE void apply_reflection(int64_t n, C tau, const T *v, T *x)
{
    const C factor = reflection_factor(n, tau, v, x);
    x[0] = difference(x[0], factor);
    subtract_multiple(n - 1, factor, v + 1, x + 1);
}

/* Overwrites an m x n matrix with its decomposition by Householder reflections. R is on and above the diagonal, and the vectors of the reflections
 * are below it. ret_tau receives the factor tau of each reflection. */
static void reflect(int64_t m, int64_t n, void *matrix, void *ret_tau)
{
    T *a = matrix, *tau = ret_tau;
    for (int64_t j = 0; j < grd_least(m, n); j++) {
        T *column = a + j + j * m;
        tau[j] = reflect_column(m - j, column);
        for (int64_t k = 1; k < n - j; k++)
            apply_reflection(m - j, conjugate(tau[j]), column, column + k * m);
    }
}

static void take_upper(int64_t m, int64_t n, int64_t rows, const void *matrix, void *ret_r)
{
    const T *a = matrix;
    T *r = ret_r;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < rows; i++)
            r[i + j * rows] = i <= j ? a[i + j * m] : constant(0);
}

/* Writes the first `columns` columns of the m x m matrix Q, which is the product of the k reflections that reflect() has left in `matrix` and
 * `reflections`. It applies the reflections to columns of the identity matrix, the last reflection first. */
static void orthogonal(int64_t m, int64_t columns, int64_t k, const void *matrix, const void *reflections, void *ret_q)
{
    const T *a = matrix, *tau = reflections;
    T *q = ret_q;
    memset(q, 0, (size_t)(m * columns) * sizeof *q);
    for (int64_t j = 0; j < grd_least(m, columns); j++)
        q[j + j * m] = constant(1);
    for (int64_t j = k - 1; j >= 0; j--)
        for (int64_t column = j; column < columns; column++)
            apply_reflection(m - j, tau[j], a + j + j * m, q + j + column * m);
}

static void apply_reflections(int64_t m, int64_t k, int64_t columns, bool adjoint, const void *matrix, const void *reflections, void *given)
{
    const T *a = matrix, *tau = reflections;
    T *x = given;
    for (int64_t step = 0; step < k; step++) {
        const int64_t j = adjoint ? step : k - 1 - step;
        for (int64_t column = 0; column < columns; column++)
            apply_reflection(m - j, adjoint ? conjugate(tau[j]) : tau[j], a + j + j * m, x + j + column * m);
    }
}

#if !GRD_IS_COMPLEX
/* Writes for each lane the power of two whose product with the number in `largest` is nearly 1. Squares of numbers multiplied by this scale
 * neither overflow nor underflow. If the number in `largest` is 0 or subnormal, writes the largest scale. */
GRD_INLINE void scales_of(const lanes *largest, lanes *restrict ret_scales)
{
    enum {
        DIGITS = sizeof(T) == 4 ? 23 : 52,
        MOST = sizeof(T) == 4 ? 252 : 2044
    }; /* DIGITS: stored bits of a significand. MOST: the largest biased exponent for which the scale is normal. */

    /* A number with the biased exponent e gets a scale with the biased exponent MOST + 1 - e. An e above MOST is replaced by MOST. */
    const B exponents = ((B)(MOST + 3)) << DIGITS, most = (B)MOST << DIGITS;
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
    {
        const B exponent = largest->bits[l] & exponents;
        ret_scales->bits[l] = most + ((B)1 << DIGITS) - (exponent < most ? exponent : most);
    }
}

/* Finds, for each lane, the Householder reflection that maps the column x to beta times the first unit vector. Overwrites x[0] with beta, and x[i]
 * for i > 0 with v[i]. v is the vector of the reflection, and v[0] is 1. Writes the factor tau of the reflection to *ret_tau. */
GRD_INLINE void reflect_column_in_lanes(int64_t n, lanes *x, lanes *restrict ret_tau)
{
    lanes largest, scales, tail = {0}, factor;
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) largest.x[l] = fabs(x[0].x[l]);
    for (int64_t i = 1; i < n; i++)
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) largest.x[l] = fabs(x[i].x[l]) > largest.x[l] ? fabs(x[i].x[l]) : largest.x[l];
    scales_of(&largest, &scales);
    for (int64_t i = 1; i < n; i++)
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
        {
            const T scaled_element = x[i].x[l] * scales.x[l];
            tail.x[l] += scaled_element * scaled_element;
        }
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
    {
        const T first = x[0].x[l] * scales.x[l], size = sqrt(first * first + tail.x[l]), beta = first >= 0 ? -size : size;
        const T gap = first - beta;
        const bool is_multiple = tail.x[l] == 0;
        ret_tau->x[l] = is_multiple ? 0 : -gap / (beta == 0 ? 1 : beta);
        factor.x[l] = is_multiple ? 0 : scales.x[l] / (gap == 0 ? 1 : gap);
        x[0].x[l] = is_multiple ? x[0].x[l] : beta / scales.x[l];
    }
    for (int64_t i = 1; i < n; i++)
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) x[i].x[l] *= factor.x[l];
}

/* Subtracts tau * v * (v^T x) from the column x in each lane, where v[0] is taken as 1. */
GRD_INLINE void apply_reflection_in_lanes(int64_t n, const lanes *restrict tau, const lanes *restrict v, lanes *restrict x)
{
    lanes factor = x[0];
    for (int64_t i = 1; i < n; i++)
        LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) factor.x[l] += v[i].x[l] * x[i].x[l];
    LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++)
    {
        factor.x[l] *= tau->x[l];
        x[0].x[l] -= factor.x[l];
    }
    for (int64_t i = 1; i < n; i++)
        subtract_in_lanes(factor.x, v[i].x, x[i].x);
}

static void qr_many(const struct grd_small_qr *s)
{
    const int64_t m = s->m, n = s->n, k = grd_least(m, n);
    lanes a[GRD_SMALL_QR_SIZE], q[GRD_SMALL_QR_SIZE], r[GRD_SMALL_QR_SIZE], tau[GRD_SMALL_MATRIX_SIDE];
    int32_t turned[GRD_SMALL_QR_SIZE];
    places_by_columns(m, n, turned);
    for (int64_t first = 0; first < s->count; first += GRD_MATRIX_LANES) {
        const int64_t some = grd_least(s->count - first, GRD_MATRIX_LANES);
        const T *from[GRD_MATRIX_LANES];
        T *to[GRD_MATRIX_LANES];
        lanes_from((const T *)s->a + first * m * n, m * n, some, from);
        gather(m * n, from, s->by_rows ? turned : NULL, a);
        for (int64_t j = 0; j < k; j++) {
            reflect_column_in_lanes(m - j, a + j + j * m, &tau[j]);
            for (int64_t column = j + 1; column < n; column++)
                apply_reflection_in_lanes(m - j, &tau[j], a + j + j * m, a + j + column * m);
        }
        memset(r, 0, (size_t)(s->rows * n) * sizeof *r);
        for (int64_t j = 0; j < n; j++)
            memcpy(r + j * s->rows, a + j * m, (size_t)grd_least(j + 1, k) * sizeof *r);
        lanes_to((T *)s->ret_r + first * s->rows * n, s->rows * n, to);
        scatter(s->rows * n, (int)some, to, NULL, r);
        if (s->columns == 0)
            continue;
        memset(q, 0, (size_t)(m * s->columns) * sizeof *q);
        for (int64_t j = 0; j < s->columns; j++)
            LANEWISE for (int l = 0; l < GRD_MATRIX_LANES; l++) q[j + j * m].x[l] = 1;
        for (int64_t j = k - 1; j >= 0; j--)
            for (int64_t column = j; column < s->columns; column++)
                apply_reflection_in_lanes(m - j, &tau[j], a + j + j * m, q + j + column * m);
        lanes_to((T *)s->ret_q + first * m * s->columns, m * s->columns, to);
        scatter(m * s->columns, (int)some, to, NULL, q);
    }
}
#endif

/* ---- Triangles ---------------------------------------------------------------------------------------------------------------------------- */

/* Overwrites each of the k columns of x with the solution y of a * y = x, where `a` is the triangle t->a. As soon as y[j] is known, y[j] times column
 * j of `a` is subtracted from the column of x. Columns of x are `leading` elements apart. */
static void solve_left(const struct grd_triangle *t, int64_t k, int64_t leading, T *x)
{
    const int64_t n = t->n;
    for (const T *end = x + k * leading; x < end; x += leading)
        for (int64_t step = 0; step < n; step++) {
            const int64_t j = t->upper ? n - 1 - step : step, first = t->upper ? 0 : j + 1;
            const T *column = (const T *)t->a + j * t->stride;
            x[j] = t->unit ? x[j] : quotient(x[j], column[j]);
            subtract_multiple(n - 1 - step, x[j], column + first, x + first);
        }
}

/* Overwrites x, which has k rows, with the solution y of y * a = x, where `a` is the triangle t->a. Columns of x are `leading` elements apart. From
 * each column of x the function subtracts multiples of the columns of y that it has found before. Columns are solved from first to last if `a` is an
 * upper triangle, otherwise from last to first. */
static void solve_right(const struct grd_triangle *t, int64_t k, int64_t leading, T *x)
{
    const int64_t n = t->n;
    for (int64_t step = 0; step < n; step++) {
        const int64_t j = t->upper ? step : n - 1 - step, first = t->upper ? 0 : j + 1;
        const T *column = (const T *)t->a + j * t->stride;
        T *solved = x + j * leading;
        for (int64_t i = first; i < first + step; i++)
            subtract_multiple(k, column[i], x + i * leading, solved);
        for (int64_t i = 0; i < k && !t->unit; i++)
            solved[i] = quotient(solved[i], column[j]);
    }
}

static void solve(const struct grd_triangle *t, int64_t k, int64_t leading, void *x)
{
    (t->left ? solve_left : solve_right)(t, k, leading, x);
}

const struct grd_decomposition_row GRD_TYPED(grd_decomposition_row) = {
    .cholesky = cholesky,
    .finish_factor = finish_factor,
#if !GRD_IS_COMPLEX
    .cholesky_many = cholesky_many,
    .solve_many = solve_many,
#endif
    .reflect = reflect,
#if !GRD_IS_COMPLEX
    .qr_many = qr_many,
#endif
    .take_upper = take_upper,
    .orthogonal = orthogonal,
    .apply_reflections = apply_reflections,
    .solve = solve,
};
