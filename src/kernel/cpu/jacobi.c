/* Computes eigenvalues of Hermitian matrices and singular values of all matrices by plane rotations; see kernel/spectral.h. The build compiles this
 * file once for each of float32, float64, complex64 and complex128. Eigenvalues are found by Jacobi's two-sided rotations, which make A diagonal.
 * Singular values are found by Hestenes' one-sided rotations, after which the columns of A V are orthogonal and their lengths are the singular
 * values. For small matrices, many of which are computed at once, eigh_lanes.h and svd_lanes.h have other algorithms. Their float32 and float64
 * versions also serve complex matrices. */
#include "kernel/spectral.h"

#include <float.h>
#include <string.h>

#include "kernel/cpu/matrix.h"

enum { SWEEPS = 40 }; /* maximum number of sweeps over all pairs of columns; about 10 are needed */

#if GRD_TAG == GRD_TAG_float32 || GRD_TAG == GRD_TAG_complex64
static const R epsilon = FLT_EPSILON, least_scale = FLT_MIN;
#else
static const R epsilon = DBL_EPSILON, least_scale = DBL_MIN;
#endif
/* Matrices are scaled so that their largest element lies between 1 and 2. Off-diagonal elements up to `negligible` then count as 0 and are not
 * rotated away, and columns whose squared length is at most `no_square` count as 0. */
#define negligible (epsilon / 4)
#define no_square (epsilon * epsilon * epsilon * epsilon)
/* In eigh_lanes.h and svd_lanes.h, an off-diagonal element counts as 0 up to a bound. This bound is proportional to the neighbouring diagonal
 * elements. The number below is added to it, because the diagonal elements may be 0. */
#define negligible_beside (epsilon * epsilon)

/* ---- Rotations --------------------------------------------------------------------------------------------------------------------------- */

/* Returns the tangent t of the angle of the rotation x' = c x - s y, y' = s x + c y that makes two vectors orthogonal. The inner products
 * of x and y are (x, x) = a, (y, y) = b and (x, y) = `both`. Those of x' and y' are (x', x') = a - t * both, (y', y') = b + t * both and
 * (x', y') = 0. Of the two possible angles, the smaller one is taken. */
GRD_INLINE R rotation(R a, R b, R both)
{
    const R gap = b - a, twice = 2 * both, size = fabs(gap) + hypot(gap, twice); /* hypot(), since the square of a small number may be 0 */
    return size > 0 ? (gap < 0 ? -twice : twice) / size : 0;
}

/* Rotates the columns x and y of n elements by the angle with the tangent t. `both` is the inner product of x and y, and `size` is its absolute
 * value. The phase of `both` multiplies only the part of a column that is added to the other column, so that a small angle hardly changes the
 * columns. */
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

/* Subtracts from x its projections on n orthonormal columns, which makes x orthogonal to them. It does so twice, because rounding errors leave
 * small projections after the first time. */
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

/* Returns the largest absolute value of a real or imaginary part in the matrix, or in its lower triangle if `lower`. Returns NaN if an element is
 * NaN. */
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

/* Returns a power of two that is about as large as `largest`, the largest element of a matrix. The caller divides the matrix by this power, so
 * that squares of its elements neither overflow nor underflow. */
static R scale_of(R largest)
{
    int exponent;
    frexp(largest > least_scale ? largest : least_scale, &exponent);
    return ldexp((R)1, exponent - 1);
}

/* Returns the position of numbers[i] in the sorted sequence of all n numbers. Among equal numbers, the one with the lower index comes first. */
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

/* Goes once through all pairs of rows and columns of a Hermitian matrix and rotates the pairs whose off-diagonal element is not negligible. Rotates
 * the same columns of v unless v is NULL. Updates both triangles of the matrix. Returns false if there was nothing to rotate. */
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

/* Writes the eigenvalues in ascending order. Unless ret_v is NULL, writes their eigenvectors, which are the columns of v, in the same order. */
static void write_eigen(int64_t n, const R *values, const T *v, R *ret_w, T *ret_v)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = place_of(i, n, values, false);
        ret_w[place] = values[i];
        if (ret_v != NULL)
            memcpy(ret_v + place * n, v + i * n, (size_t)n * sizeof *v);
    }
}

/* Writes the results for the n x n matrix `a`, which has an element that is not finite. If n is 1, the eigenvalue is the element, and the eigenvector
 * is 1. Otherwise all results are NaN. If n is larger than 2, *ret_info tells the failure to converge. As in LAPACK, 2 x 2 matrices need no iterations
 * and cannot fail. `parts` is the number of real numbers per element. */
static void write_nonfinite_eigen(int64_t n, int64_t parts, const R *a, R *ret_w, R *ret_v, int32_t *ret_info)
{
    fill(n, n == 1 ? *a : (R)NAN, ret_w);
    if (ret_v != NULL)
        fill(n * n * parts, n == 1 ? 0 : (R)NAN, ret_v);
    if (ret_v != NULL && n == 1)
        *ret_v = 1;
    *ret_info = n == 2 ? 0 : (int32_t)n - 1;
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
            write_nonfinite_eigen(n, e->parts, (const R *)from, ret_w, (R *)ret_v, e->ret_info + index);
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
        R *values = (R *)a; /* overwrites `a`, but value i never overwrites a diagonal element that is still to be read */
        for (int64_t i = 0; i < n; i++)
            values[i] = real_part(a[i + i * n]) * scale;
        write_eigen(n, values, v, ret_w, ret_v);
    }
}

/* ---- Singular values --------------------------------------------------------------------------------------------------------------------- */

/* The arrays of one singular value decomposition; matrices are column-major. A is the given matrix, or its conjugate transpose if the given matrix
 * has fewer rows than columns. So A has m rows and k <= m columns. */
struct parts {
    int64_t m, k;
    T *a;       /* m x k, A, which the rotations turn into A V */
    T *v;       /* k x k, V; NULL if only singular values are computed */
    R *values;  /* k numbers, the squared lengths of the columns of A V; at the end, the lengths */
    R *weights; /* m numbers, scratch memory of complete() */
    T *whole;   /* m x m, the left singular vectors of A; only used if A is a conjugate transpose */
};

static struct parts parts_of(const struct grd_svd *s, T *work)
{
    const int64_t m = s->m > s->n ? s->m : s->n, k = s->m > s->n ? s->n : s->m;
    T *v = work + m * k, *values = v + k * k, *weights = values + k;
    return (struct parts){m, k, work, s->ret_u != NULL ? v : NULL, (R *)values, (R *)weights, weights + m};
}

/* Goes once through all pairs of columns of A and rotates the pairs that are not orthogonal, together with the same columns of V. Returns false if
 * all pairs were orthogonal already. */
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

/* Extends the orthonormal columns [0, from) of q, which have m elements, to orthonormal columns [0, to). Each new column is made from the unit vector
 * that is farthest from the space of the columns before it. `weights` is scratch memory for m numbers. */
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

/* Writes to ret_rows the conjugate transpose of the n x `rows` matrix at `from`. Both matrices are stored column by column. */
static void write_rows(int64_t rows, int64_t n, const T *from, T *ret_rows)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < rows; i++)
            ret_rows[i + j * rows] = conjugate(from[j + i * n]);
}

/* Writes the singular values of matrix `index` in descending order, and the singular vectors in the same order if x->v is not NULL. All are computed
 * from V and from A V, whose columns are orthogonal. */
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

/* Returns true if `largest`, the largest element of matrix `index`, is finite. Then all elements are finite, and 0 is written to s->ret_info[index].
 * Otherwise returns false, writes NaN for the singular values of the matrix, and writes -4 to s->ret_info[index], which marks the failure. */
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
