/* Eigenvalues of Hermitian matrices and singular values by plane rotations; see kernel/spectral.h. Typed: float32 float64 complex64 complex128.
 * Eigenvalues: Jacobi's two-sided rotations of A to a diagonal. Singular values: Hestenes' one-sided rotations, after which the columns of A V are orthogonal,
 * and have the singular values as their lengths. Matrices of small sides are computed many at once,
 * otherwise, in eigh_lanes.h and svd_lanes.h; those of complex numbers by the kernels of their parts' dtype. */
#include "kernel/spectral.h"

#include <float.h>
#include <string.h>

#include "kernel/cpu/matrix.h"

enum { SWEEPS = 40 }; /* over all pairs of columns; about 10 are needed */

#if GRD_TAG == GRD_TAG_float32 || GRD_TAG == GRD_TAG_complex64
static const R epsilon = FLT_EPSILON, least_scale = FLT_MIN;
#else
static const R epsilon = DBL_EPSILON, least_scale = DBL_MIN;
#endif
/* Matrices are scaled so that their largest element lies between 1 and 2. Then off-diagonal elements up to `negligible` are not rotated, and columns
 * whose squared length is at most `no_square` count as 0. */
#define negligible (epsilon / 4)
#define no_square (epsilon * epsilon * epsilon * epsilon)
/* Off-diagonal elements up to this count as 0 whatever the diagonal holds. */
#define negligible_beside (epsilon * epsilon)

/* ---- Rotations --------------------------------------------------------------------------------------------------------------------------- */

/* The tangent of the angle of a rotation x' = c x - s y, y' = s x + c y, of which the products (x, x) = a, (y, y) = b and (x, y) = both become
 * (x', x') = a - t both, (y', y') = b + t both and (x', y') = 0. The smaller of two angles. */
GRD_INLINE R rotation(R a, R b, R both)
{
    const R gap = b - a, twice = 2 * both, size = fabs(gap) + hypot(gap, twice); /* the squares of products of short columns are 0 */
    return size > 0 ? (gap < 0 ? -twice : twice) / size : 0;
}

/* Rotates columns whose product is `both`, of that size. The phase of the product goes to what is exchanged, so that columns hardly change where the angle is small. */
static void rotate(int64_t n, C both, R size, R t, T *restrict x, T *restrict y)
{
    const R c = 1 / sqrt(1 + t * t);
    const C forth = scaled(both, t * c / size), back = conjugate(forth);
    for (int64_t i = 0; i < n; i++) {
        const C u = x[i], v = y[i];
        x[i] = difference(scaled(u, c), product(v, back));
        y[i] = sum(product(u, forth), scaled(v, c));
    }
}

/* Subtracts what x has in common with orthonormal columns, twice, since rounding leaves some of it. */
static void subtract_projections(int64_t m, int64_t n, const T *columns, T *x)
{
    for (int64_t j = 0; j < 2 * n; j++) {
        const T *column = columns + j % n * m;
        subtract_multiple(m, inner_product(m, column, x), column, x);
    }
}

static void set_identity(int64_t n, T *a)
{
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; i++)
        a[i + i * n] = constant(1);
}

/* ---- Sizes and orders ------------------------------------------------------------------------------------------------------------------ */

/* The largest part of an element; NaN if an element is. */
static R largest_of(int64_t m, int64_t n, bool lower, const T *a)
{
    R largest = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = lower ? j : 0; i < m; i++) {
            const R size = fmax(fabs(real_part(a[i + j * m])), fabs(imaginary_part(a[i + j * m])));
            const R both = real_part(a[i + j * m]) + imaginary_part(a[i + j * m]);
            largest = isnan(both) ? both : size > largest ? size : largest;
        }
    return largest;
}

static bool is_finite(int64_t m, int64_t n, bool lower, const void *a)
{
    return isfinite(largest_of(m, n, lower, a));
}

/* A power of two about as large, by which a matrix is divided so that squares neither overflow nor vanish. */
static R scale_of(R largest)
{
    int exponent;
    frexp(largest > least_scale ? largest : least_scale, &exponent);
    return ldexp((R)1, exponent - 1);
}

/* The place of number i in their order; of equal numbers the first comes first. */
static int64_t place_of(int64_t i, int64_t n, const R *numbers, bool descending)
{
    int64_t place = 0;
    for (int64_t j = 0; j < n; j++) {
        const R ahead = descending ? numbers[j] - numbers[i] : numbers[i] - numbers[j];
        place += ahead > 0 || (ahead == 0 && j < i);
    }
    return place;
}

static void fill(int64_t n, R value, R *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

/* ---- Hermitian matrices ---------------------------------------------------------------------------------------------------------------- */

/* Rotates all pairs of a Hermitian matrix, both triangles of which are kept, and of the columns of V unless that is NULL. False: nothing was left to rotate. */
static bool sweep_hermitian(int64_t n, T *a, T *v)
{
    bool rotated = false;
    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p + 1; q < n; q++) {
            T *x = a + p * n, *y = a + q * n;
            const C both = y[p];
            const R size = hypot(real_part(both), imaginary_part(both)), xx = real_part(x[p]), yy = real_part(y[q]);
            if (!(size > negligible))
                continue;
            const R t = rotation(xx, yy, size);
            rotate(n, both, size, t, x, y);
            x[p] = number(xx - t * size, 0);
            y[q] = number(yy + t * size, 0);
            x[q] = y[p] = constant(0);
            for (int64_t i = 0; i < n; i++) {
                a[p + i * n] = conjugate(x[i]);
                a[q + i * n] = conjugate(y[i]);
            }
            if (v != NULL)
                rotate(n, both, size, t, v + p * n, v + q * n);
            rotated = true;
        }
    return rotated;
}

/* Writes eigenvalues, and the columns of V, in their order. */
static void write_eigen(int64_t n, const R *values, const T *v, R *ret_w, T *ret_v)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = place_of(i, n, values, false);
        ret_w[place] = values[i];
        if (ret_v != NULL)
            memcpy(ret_v + place * n, v + i * n, (size_t)n * sizeof *v);
    }
}

/* Writes NaN for all results, which is what a matrix with a non-finite element has. */
static void write_no_eigen(int64_t n, int64_t parts, R *ret_w, void *ret_v, int32_t *ret_info)
{
    fill(n, (R)NAN, ret_w);
    if (ret_v != NULL)
        fill(n * n * parts, (R)NAN, ret_v);
    *ret_info = (int32_t)n - 1;
}

static void eigh(const struct grd_eigh *e, int64_t count, void *work)
{
    const int64_t n = e->n;
    for (int64_t index = 0; index < count; index++) {
        const T *from = (const T *)e->a + index * n * n;
        T *a = work, *v = e->ret_v != NULL ? a + n * n : NULL, *ret_v = e->ret_v != NULL ? (T *)e->ret_v + index * n * n : NULL;
        R *ret_w = (R *)e->ret_w + index * n;
        const R largest = largest_of(n, n, true, from), scale = scale_of(largest);
        e->ret_info[index] = 0;
        if (!isfinite(largest)) {
            write_no_eigen(n, e->parts, ret_w, ret_v, e->ret_info + index);
            continue;
        }
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = j; i < n; i++) {
                a[i + j * n] = i > j ? scaled(from[i + j * n], 1 / scale) : number(real_part(from[i + j * n]) / scale, 0);
                a[j + i * n] = conjugate(a[i + j * n]);
            }
        if (v != NULL)
            set_identity(n, v);
        for (int sweep = 0; sweep < SWEEPS && sweep_hermitian(n, a, v); sweep++) {
        }
        R *values = (R *)a; /* value i is written where no value after it is read */
        for (int64_t i = 0; i < n; i++)
            values[i] = real_part(a[i + i * n]) * scale;
        write_eigen(n, values, v, ret_w, ret_v);
    }
}

/* ---- Singular values --------------------------------------------------------------------------------------------------------------------- */

/* What a matrix is worked on as: itself, or its conjugate transpose if that has more rows than columns. Each part has a column after the other. */
struct parts {
    int64_t m, k;
    T *a;       /* m x k: A, and at the end A V */
    T *v;       /* k x k; NULL: the values alone */
    R *values;  /* k */
    R *weights; /* m */
    T *whole;   /* m x m */
};

static struct parts parts_of(const struct grd_svd *s, T *work)
{
    const int64_t m = s->m > s->n ? s->m : s->n, k = s->m > s->n ? s->n : s->m;
    T *v = work + m * k, *values = v + k * k, *weights = values + k;
    return (struct parts){m, k, work, s->ret_u != NULL ? v : NULL, (R *)values, (R *)weights, weights + m};
}

/* Rotates all pairs of columns of A and V. False: they were orthogonal already. */
static bool sweep_columns(const struct parts *x)
{
    const int64_t m = x->m, k = x->k;
    const R tolerance = epsilon * sqrt((R)1 + (R)m / 8);
    bool rotated = false;
    for (int64_t j = 0; j < k; j++)
        x->values[j] = real_part(inner_product(m, x->a + j * m, x->a + j * m));
    for (int64_t p = 0; p < k; p++)
        for (int64_t q = p + 1; q < k; q++) {
            R *xx = x->values + p, *yy = x->values + q;
            if (!(*xx > no_square && *yy > no_square))
                continue;
            const C both = inner_product(m, x->a + p * m, x->a + q * m);
            const R size = hypot(real_part(both), imaginary_part(both));
            if (!(size > tolerance * sqrt(*xx) * sqrt(*yy)))
                continue;
            const R t = rotation(*xx, *yy, size);
            rotate(m, both, size, t, x->a + p * m, x->a + q * m);
            if (x->v != NULL)
                rotate(k, both, size, t, x->v + p * k, x->v + q * k);
            *xx -= t * size;
            *yy += t * size;
            rotated = true;
        }
    return rotated;
}

/* Makes columns [from, to) of m elements that are orthonormal, and orthogonal to those before them: each from the unit vector farthest from what is there. */
static void complete(int64_t m, int64_t from, int64_t to, T *q, R *weights)
{
    fill(m, 0, weights);
    for (int64_t j = 0; j < to; j++) {
        T *x = q + j * m;
        if (j >= from) {
            int64_t least = 0;
            for (int64_t i = 1; i < m; i++)
                least = weights[i] < weights[least] ? i : least;
            memset(x, 0, (size_t)m * sizeof *x);
            x[least] = constant(1);
            subtract_projections(m, j, q, x);
            const R size = norm_of(m, x);
            for (int64_t i = 0; i < m; i++)
                x[i] = scaled(x[i], 1 / size);
        }
        for (int64_t i = 0; i < m; i++)
            weights[i] += real_part(product(conjugate(x[i]), x[i]));
    }
}

/* Writes rows that are the conjugates of columns. */
static void write_rows(int64_t rows, int64_t n, const T *columns, T *ret_rows)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < rows; i++)
            ret_rows[i + j * rows] = conjugate(columns[j + i * n]);
}

/* Writes values and vectors of matrix `index` in their order, from A V, whose columns are orthogonal. */
static void write_singular(const struct grd_svd *s, int64_t index, const struct parts *x, R scale)
{
    const int64_t m = x->m, k = x->k;
    const bool turned = s->m < s->n;
    T *u = x->v != NULL ? (T *)s->ret_u + index * s->m * s->columns : NULL,
      *vh = x->v != NULL ? (T *)s->ret_vh + index * s->rows * s->n : NULL, *whole = turned ? x->whole : u;
    R *ret_s = (R *)s->ret_s + index * k;
    int64_t found = 0;
    for (int64_t j = 0; j < k; j++)
        x->values[j] = norm_of(m, x->a + j * m);
    for (int64_t j = 0; j < k; j++) {
        const int64_t place = place_of(j, k, x->values, true);
        ret_s[place] = x->values[j] * scale;
        if (x->v == NULL)
            continue;
        for (int64_t i = 0; i < k; i++) {
            const C element = x->v[i + j * k];
            if (turned)
                u[i + place * k] = element;
            else
                vh[place + i * k] = conjugate(element);
        }
        if (x->values[j] * x->values[j] > no_square) {
            for (int64_t i = 0; i < m; i++)
                whole[i + place * m] = scaled(x->a[i + j * m], 1 / x->values[j]);
            found++;
        }
    }
    if (x->v == NULL)
        return;
    if (found < (turned ? s->rows : s->columns))
        complete(m, found, turned ? s->rows : s->columns, whole, x->weights);
    if (turned)
        write_rows(s->rows, s->n, whole, vh);
}

/* False, with the result of an element that is not finite. */
static bool begin_svd(const struct grd_svd *s, int64_t index, R largest)
{
    const int64_t k = s->m < s->n ? s->m : s->n;
    s->ret_info[index] = isfinite(largest) ? 0 : -4;
    if (!isfinite(largest))
        fill(k, (R)NAN, (R *)s->ret_s + index * k);
    return isfinite(largest);
}

static void svd(const struct grd_svd *s, int64_t count, void *work)
{
    const struct parts x = parts_of(s, work);
    for (int64_t index = 0; index < count; index++) {
        const T *from = (const T *)s->a + index * s->m * s->n;
        const R largest = largest_of(s->m, s->n, false, from), scale = scale_of(largest);
        if (!begin_svd(s, index, largest))
            continue;
        for (int64_t j = 0; j < s->n; j++)
            for (int64_t i = 0; i < s->m; i++) {
                const C element = scaled(from[i + j * s->m], 1 / scale);
                if (s->m < s->n)
                    x.a[j + i * x.m] = conjugate(element);
                else
                    x.a[i + j * x.m] = element;
            }
        if (x.v != NULL)
            set_identity(x.k, x.v);
        for (int sweep = 0; sweep < SWEEPS && sweep_columns(&x); sweep++) {
        }
        write_singular(s, index, &x, scale);
    }
}

#if !GRD_IS_COMPLEX
#include "kernel/cpu/eigh_lanes.h"
#include "kernel/cpu/svd_lanes.h"
#endif

const struct grd_spectral_row GRD_TYPED(grd_spectral_row) = {
    .eigh = eigh,
    .svd = svd,
    .is_finite = is_finite,
#if !GRD_IS_COMPLEX
    .lanes = MATRICES,
    .eigh_lanes = eigh_lanes,
    .svd_lanes = svd_lanes,
#endif
};
