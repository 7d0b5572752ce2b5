/* Computes eigenvalues and eigenvectors of general real matrices; see kernel/eigen.h. The build compiles this file once for float32 and once for
 * float64.
 *
 * The steps are those of LAPACK's geev, so that eigenvalues come in the same order. The matrix is balanced and reduced to Hessenberg form by
 * reflections. Double QR steps then reduce it to quasi-triangular form, which has 2 x 2 blocks for conjugate pairs of eigenvalues. The eigenvectors
 * are found by substitution. See G. Golub and C. Van Loan, Matrix Computations, chapter 7. */
#include "kernel/eigen.h"

#include <float.h>
#include <string.h>
#include <tgmath.h>

#include "kernel/cpu/exchange.h"

enum { STEPS = 30 /* most QR steps per row */, STEPS_STUCK = 10 /* QR steps from one exceptional shift to the next */, RADIX = 2 };

#if GRD_TAG == GRD_TAG_float32
enum { MOST = FLT_MAX_EXP - 4 }; /* the largest exponent of a scale 2^n, chosen so that 2^-n is not subnormal */
static const T epsilon = FLT_EPSILON, least = FLT_MIN;
#else
enum { MOST = DBL_MAX_EXP - 4 };
static const T epsilon = DBL_EPSILON, least = DBL_MIN;
#endif

/* The state of the computation for one matrix A. `h` holds A, then its Hessenberg form, then the quasi-triangular form. After permute(), h is
 * triangular except in rows and columns low to high. `z` holds the product of the reflections and rotations, which turns eigenvectors of the
 * quasi-triangular form into eigenvectors of A. */
struct schur {
    int64_t n, low, high;
    T unit;     /* factor that converts elements of `h` to those of LAPACK's matrix, which is scaled differently */
    T *h, *z;   /* z is NULL if only eigenvalues are wanted */
    T *scales;  /* for each of the rows [low, high] its scale; for each other row the number of the row with which it was exchanged */
    T *wr, *wi; /* real and imaginary parts of the eigenvalues */
    T *re, *im; /* scratch memory of n elements each; at the end the real and imaginary parts of an eigenvector */
};

/* Returns the largest absolute value of n elements. */
static T largest_of(int64_t n, const T *x)
{
    T largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    return largest;
}

/* ---- Balance ------------------------------------------------------------------------------------------------------------------------------ */

/* Exchanges rows i and `with` of h, and columns i and `with`, and records the exchange in s->scales. */
static void exchange_both(struct schur *s, int64_t i, int64_t with)
{
    s->scales[with] = (T)i;
    if (i == with)
        return;
    exchange(s->n, 1, s->h + i * s->n, s->h + with * s->n);
    exchange(s->n, s->n, s->h + i, s->h + with);
}

/* True if row i of h has only zeros in columns low to high, except for its diagonal element. `line` points to the first element of the row, whose
 * elements are `step` apart. If `line` and `step` are those of column i, tests the column in rows low to high. */
static bool is_alone(const struct schur *s, int64_t i, int64_t step, const T *line)
{
    for (int64_t j = s->low; j <= s->high; j++)
        if (j != i && line[j * step] != 0)
            return false;
    return true;
}

/* Finds rows that are 0 except for the diagonal element, and moves them to the end. Finds columns that are 0 except for the diagonal element, and
 * moves them to the beginning. Excludes both from the range [low, high]. Their diagonal elements are eigenvalues. */
static void permute(struct schur *s)
{
    const int64_t n = s->n;
    for (bool found = true; found;) {
        found = false;
        for (int64_t i = s->high; i >= 0 && s->high > 0; i--)
            if (is_alone(s, i, n, s->h + i)) {
                exchange_both(s, i, s->high--);
                found = true;
            }
    }
    for (bool found = true; found;) {
        found = false;
        for (int64_t j = s->low; j <= s->high && s->low < s->high; j++)
            if (is_alone(s, j, 1, s->h + j * n)) {
                exchange_both(s, j, s->low++);
                found = true;
            }
    }
}

static T norm_of(int64_t n, int64_t step, const T *x)
{
    T squares = 0;
    for (int64_t i = 0; i < n * step; i += step)
        squares += x[i] * x[i];
    return sqrt(squares);
}

/* Scales rows and columns by powers of 2 until the norms of row i and column i are of similar size for all i. */
static void balance(struct schur *s)
{
    const int64_t n = s->n, inner = s->high - s->low + 1;
    for (int64_t i = s->low; i <= s->high; i++)
        s->scales[i] = 1;
    for (bool scaled = inner > 1; scaled;) {
        scaled = false;
        for (int64_t i = s->low; i <= s->high; i++) {
            T column = norm_of(inner, 1, s->h + s->low + i * n), row = norm_of(inner, n, s->h + i + s->low * n), factor = 1;
            const T sum = column + row;
            if (!(column > 0 && row > 0))
                continue;
            for (; column < row / RADIX && factor < 1 / epsilon; factor *= RADIX, column *= RADIX, row /= RADIX) {
            }
            for (; column / RADIX >= row && factor > epsilon; factor /= RADIX, column /= RADIX, row *= RADIX) {
            }
            const T scale = s->scales[i] * factor;
            if (column + row >= (T)0.95 * sum || !(scale > least / epsilon && scale < epsilon / least))
                continue;
            s->scales[i] = scale;
            scaled = true;
            for (int64_t j = s->low; j < n; j++)
                s->h[i + j * n] /= factor;
            for (int64_t j = 0; j <= s->high; j++)
                s->h[j + i * n] *= factor;
        }
    }
}

/* ---- Hessenberg form ---------------------------------------------------------------------------------------------------------------------- */

/* Finds the reflection H = 1 - tau v v^T, with v[0] = 1, that maps x, a vector of n elements, to a multiple of the first unit vector. Overwrites x[0]
 * with this multiple and the other elements of x with those of v. Returns tau. If x is already a multiple of the first unit vector, or so short that
 * it counts as 0, returns 0 and leaves x unchanged. */
GRD_INLINE T reflect(int64_t n, T *x)
{
    T tail = 0;
    for (int64_t i = 1; i < n; i++)
        tail += x[i] * x[i];
    const T first = x[0], squares = first * first + tail;
    if (tail == 0 || squares < least / epsilon) /* so short a vector counts as 0, because the largest element of the matrix is about 1 */
        return 0;
    const T head = -copysign(sqrt(squares), first), factor = 1 / (first - head);
    for (int64_t i = 1; i < n; i++)
        x[i] *= factor;
    x[0] = head;
    return (head - first) / head;
}

/* Multiplies `columns` columns from the left by the reflection 1 - tau v v^T, where v[0] is taken as 1. A column has n elements, and columns are
 * `leading` elements apart. */
static void reflect_columns(int64_t n, int64_t columns, int64_t leading, T tau, const T *v, T *a)
{
    for (T *x = a; x < a + columns * leading; x += leading) {
        T total = x[0];
        for (int64_t i = 1; i < n; i++)
            total += v[i] * x[i];
        total *= tau;
        x[0] -= total;
        for (int64_t i = 1; i < n; i++)
            x[i] -= total * v[i];
    }
}

/* Multiplies `rows` rows of n elements from the right by the reflection 1 - tau v v^T, where v[0] is taken as 1. Columns are `leading` elements
 * apart. `totals` is scratch memory with one element per row. */
static void reflect_rows(int64_t rows, int64_t n, int64_t leading, T tau, const T *v, T *a, T *totals)
{
    memcpy(totals, a, (size_t)rows * sizeof *a);
    for (int64_t j = 1; j < n; j++)
        for (int64_t i = 0; i < rows; i++)
            totals[i] += a[i + j * leading] * v[j];
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < rows; i++)
            a[i + j * leading] -= totals[i] * tau * (j == 0 ? 1 : v[j]);
}

/* Reduces h to Hessenberg form by reflections. Unless z is NULL, sets z to the product of these reflections. */
static void reduce(struct schur *s)
{
    const int64_t n = s->n;
    T *tau = s->im;
    for (int64_t k = s->low; k < s->high - 1; k++) {
        const int64_t rest = s->high - k;
        T *v = s->h + k + 1 + k * n;
        tau[k] = reflect(rest, v);
        reflect_rows(s->high + 1, rest, n, tau[k], v, s->h + (k + 1) * n, s->re);
        reflect_columns(rest, n - k - 1, n, tau[k], v, v + n);
    }
    if (s->z != NULL) {
        memset(s->z, 0, (size_t)(n * n) * sizeof *s->z);
        for (int64_t i = 0; i < n; i++)
            s->z[i * (n + 1)] = 1;
        for (int64_t k = s->high - 2; k >= s->low; k--)
            reflect_columns(s->high - k, s->high - k, n, tau[k], s->h + k + 1 + k * n, s->z + (k + 1) * (n + 1));
    }
    for (int64_t j = s->low; j < s->high; j++)
        for (int64_t i = j + 2; i <= s->high; i++)
            s->h[i + j * n] = 0;
}

/* ---- QR steps ----------------------------------------------------------------------------------------------------------------------------- */

/* Returns the first row of the unreduced diagonal block of h that ends with row `last`. The block begins where the subdiagonal element before it is
 * negligible; that element is set to 0. */
static int64_t block_of(struct schur *s, int64_t last)
{
    const int64_t n = s->n;
    const T *h = s->h, smallest = sqrt(least / epsilon);
    int64_t k = last;
    for (; k > s->low; k--) {
        const T below = fabs(h[k + (k - 1) * n]), above = fabs(h[k - 1 + k * n]), here = fabs(h[k * (n + 1)]),
                gap = fabs(h[(k - 1) * (n + 1)] - h[k * (n + 1)]);
        T diagonal = fabs(h[(k - 1) * (n + 1)]) + here;
        if (below <= smallest)
            break;
        if (diagonal == 0)
            diagonal = (k - 2 >= s->low ? fabs(h[k - 1 + (k - 2) * n]) : 0) + (k < s->high ? fabs(h[k + 1 + k * n]) : 0);
        if (below <= epsilon * diagonal) { /* the deflation criterion of M. Ahues and F. Tisseur, as in LAPACK */
            const T more = fmax(below, above), less = fmin(below, above), large = fmax(here, gap), small = fmin(here, gap),
                    sum = large + more;
            if (less * (more / sum) <= fmax(smallest, epsilon * (small * (large / sum))))
                break;
        }
    }
    if (k > s->low)
        s->h[k + (k - 1) * n] = 0;
    return k;
}

/* The two shifts of a double QR step. They are a conjugate pair, first +- i * imaginary, or two real numbers, `first` and `second`, with an
 * `imaginary` of 0. */
struct shifts {
    T first, second, imaginary;
};

/* Returns the shifts for a QR step on rows [first, last]. They are the eigenvalues of the last 2 x 2 block of these rows. If the eigenvalues are
 * real, both shifts are equal to the eigenvalue that is nearer to the last element of the block. `steps` is the number of the step; every STEPS_STUCK
 * steps the shifts are exceptional, because otherwise the steps may cycle. */
static struct shifts shifts_of(const struct schur *s, int64_t first, int64_t last, int64_t steps)
{
    const int64_t n = s->n;
    const T *h = s->h, *corner = h + (last - 1) * (n + 1);
    T a = corner[0], b = corner[n], c = corner[1], d = corner[n + 1];
    if (steps % STEPS_STUCK == 0) {
        const T *at = steps % (2 * STEPS_STUCK) == 0 ? corner - n : h + first * (n + 1) + 1;
        c = fabs(at[0]) + fabs(at[n + 1]);
        a = d = (T)0.75 * c + (steps % (2 * STEPS_STUCK) == 0 ? d : h[first * (n + 1)]);
        b = (T)-0.4375 * c;
    }
    const T scale = fabs(a) + fabs(b) + fabs(c) + fabs(d);
    if (scale == 0)
        return (struct shifts){0};
    const T middle = (a / scale + d / scale) / 2, determinant = (a / scale - middle) * (d / scale - middle) - b / scale * (c / scale),
            root = sqrt(fabs(determinant));
    if (determinant >= 0)
        return (struct shifts){middle * scale, middle * scale, root * scale};
    const T near = fabs(middle + root - d / scale) <= fabs(middle - root - d / scale) ? (middle + root) * scale : (middle - root) * scale;
    return (struct shifts){near, near, 0};
}

/* Returns the row m of [first, last] in which a QR step can start because the subdiagonal elements before it are small. Writes to ret_v the three
 * nonzero elements of the first column of (H - x)(H - y), scaled, where H is the part of h from row m on, and x and y are the shifts. */
static int64_t begin_step(const struct schur *s, int64_t first, int64_t last, struct shifts shifts, T *ret_v)
{
    const int64_t n = s->n;
    int64_t m = last - 2;
    for (;; m--) {
        const T *h = s->h + m * (n + 1), here = h[0], next = h[n + 1];
        const T size = fabs(here - shifts.second) + fabs(shifts.imaginary) + fabs(h[1]), below = h[1] / size;
        ret_v[0] = below * h[n] + (here - shifts.first) * ((here - shifts.second) / size) + shifts.imaginary * (shifts.imaginary / size);
        ret_v[1] = below * (here + next - shifts.first - shifts.second);
        ret_v[2] = below * h[n + 2];
        const T sum = fabs(ret_v[0]) + fabs(ret_v[1]) + fabs(ret_v[2]);
        for (int i = 0; i < 3; i++)
            ret_v[i] /= sum;
        if (m == first ||
            fabs(h[-n]) * (fabs(ret_v[1]) + fabs(ret_v[2])) <= epsilon * fabs(ret_v[0]) * (fabs(h[-n - 1]) + fabs(here) + fabs(next)))
            return m;
    }
}

/* Carries out a double QR step on rows and columns [first, last] of h. `steps` is the number of the step, counted from 1 since the last eigenvalue
 * was found. */
static void step(struct schur *s, int64_t first, int64_t last, int64_t steps)
{
    const int64_t n = s->n, top = s->z != NULL ? 0 : first, end = s->z != NULL ? n : last + 1;
    T v[3];
    const int64_t m = begin_step(s, first, last, shifts_of(s, first, last, steps), v);
    for (int64_t k = m; k < last; k++) {
        const int64_t size = k + 2 < last + 1 ? 3 : 2, rows = (k + 3 < last ? k + 3 : last) + 1 - top;
        T *below = s->h + k + (k > 0 ? k - 1 : 0) * n;
        if (k > m)
            memcpy(v, below, (size_t)size * sizeof *v);
        const T tau = reflect(size, v);
        if (k > m) {
            memset(below, 0, (size_t)size * sizeof *v);
            below[0] = v[0];
        } else if (m > first) {
            below[0] *= 1 - tau;
        }
        if (size == 3) {
            reflect_columns(3, end - k, n, tau, v, s->h + k * (n + 1));
            reflect_rows(rows, 3, n, tau, v, s->h + top + k * n, s->re);
        } else {
            reflect_columns(2, end - k, n, tau, v, s->h + k * (n + 1));
            reflect_rows(rows, 2, n, tau, v, s->h + top + k * n, s->re);
        }
        if (s->z != NULL)
            reflect_rows(n, size, n, tau, v, s->z + k * n, s->re);
    }
}

/* Replaces each of `count` pairs (x, y) by (c x + s y, c y - s x). A pair is an element of the array x and an element of the array y. In both arrays
 * the elements are `stride` apart. */
static void rotate(int64_t count, int64_t stride, T c, T s, T *x, T *y)
{
    for (int64_t i = 0; i < count * stride; i += stride) {
        const T u = x[i], v = y[i];
        x[i] = c * u + s * v;
        y[i] = c * v - s * u;
    }
}

/* Rotates the matrix [a, b; c, d] so that it becomes upper triangular or, for a conjugate pair of eigenvalues, so that a = d. Writes the rotation to
 * *ret_c and *ret_s. `unit` converts the discriminant to the scale of LAPACK's matrix, because it is compared with LAPACK's absolute bound. */
static void standardize(T unit, T *a, T *b, T *c, T *d, T *ret_c, T *ret_s)
{
    const T gap = *a - *d, half = gap / 2, more = fmax(fabs(*b), fabs(*c)),
            less = copysign(fmin(fabs(*b), fabs(*c)), *b) * copysign((T)1, *c);
    const T scale = fmax(fabs(half), more), discriminant = scale > 0 ? half / scale * half + more / scale * less : 0;
    *ret_c = 1;
    *ret_s = 0;
    if (*c == 0 || (gap == 0 && *b != 0 && signbit(*b) != signbit(*c)))
        return;
    if (*b == 0) {
        const T kept = *a;
        *a = *d, *d = kept, *b = -*c, *c = 0, *ret_c = 0, *ret_s = 1;
        return;
    }
    if (discriminant * unit >= 4 * epsilon) {
        const T root = half + copysign(sqrt(scale) * sqrt(discriminant), half), size = hypot(*c, root);
        *a = *d + root;
        *d -= more / root * less;
        *ret_c = root / size;
        *ret_s = *c / size;
        *b -= *c;
        *c = 0;
        return;
    }
    const T sum = *b + *c, size = hypot(sum, gap), cosine = sqrt((1 + fabs(sum) / size) / 2),
            sine = -half / (size * cosine) * copysign((T)1, sum);
    const T aa = *a * cosine + *b * sine, bb = *b * cosine - *a * sine, cc = *c * cosine + *d * sine, dd = *d * cosine - *c * sine;
    *b = bb * cosine + dd * sine;
    *c = cc * cosine - aa * sine;
    const T middle = (aa * cosine + cc * sine + (dd * cosine - bb * sine)) / 2;
    *a = *d = middle;
    *ret_c = cosine;
    *ret_s = sine;
    if (*c != 0 && *b == 0) {
        *b = -*c, *c = 0, *ret_c = -sine, *ret_s = cosine;
    } else if (*c != 0 && signbit(*b) == signbit(*c)) {
        const T x = sqrt(fabs(*b)), y = sqrt(fabs(*c)), root = copysign(x * y, *c), inverse = 1 / sqrt(fabs(*b + *c));
        *a = middle + root, *d = middle - root, *b -= *c, *c = 0;
        *ret_c = cosine * x * inverse - sine * y * inverse;
        *ret_s = cosine * y * inverse + sine * x * inverse;
    }
}

/* Writes the two eigenvalues of the 2 x 2 block of h that begins at row `first`. Rotates this block so that it becomes upper triangular or, for a
 * conjugate pair, so that its diagonal elements become equal. Unless z is NULL, applies the rotation to the rest of h and to z. */
static void finish_pair(struct schur *s, int64_t first)
{
    const int64_t n = s->n, last = first + 1;
    T *h = s->h + first * (n + 1), cosine, sine;
    standardize(s->unit, &h[0], &h[n], &h[1], &h[n + 1], &cosine, &sine);
    s->wr[first] = h[0];
    s->wr[last] = h[n + 1];
    s->wi[first] = sqrt(fabs(h[n])) * sqrt(fabs(h[1]));
    s->wi[last] = -s->wi[first];
    if (s->z == NULL)
        return;
    rotate(n - last - 1, n, cosine, sine, h + 2 * n, h + 2 * n + 1);
    rotate(first, 1, cosine, sine, s->h + first * n, s->h + last * n);
    rotate(n, 1, cosine, sine, s->z + first * n, s->z + last * n);
}

/* Reduces h from Hessenberg to quasi-triangular form and writes the eigenvalues. Returns 0, or the number of eigenvalues that were not found. */
static int64_t triangulate(struct schur *s)
{
    const int64_t n = s->n, inner = s->high - s->low + 1, most = STEPS * (inner > 10 ? inner : 10);
    for (int64_t i = 0; i < n; i++) {
        s->wr[i] = s->h[i * (n + 1)];
        s->wi[i] = 0;
    }
    for (int64_t last = s->high, steps = 0; last >= s->low;) {
        const int64_t first = block_of(s, last);
        if (first < last - 1) {
            if (++steps > most)
                return last + 1;
            step(s, first, last, steps);
            continue;
        }
        if (first == last)
            s->wr[last] = s->h[last * (n + 1)];
        else
            finish_pair(s, first);
        last = first - 1;
        steps = 0;
    }
    return 0;
}

/* ---- Vectors ------------------------------------------------------------------------------------------------------------------------------ */

/* Divides the complex number *re + i *im by x + i y, in place. If x + i y is smaller than `smallest`, divides by `smallest` instead. */
GRD_INLINE void divide(T x, T y, T smallest, T *re, T *im)
{
    if (fabs(x) + fabs(y) < smallest)
        x = smallest, y = 0;
    const T ratio = fabs(x) > fabs(y) ? y / x : x / y, size = fabs(x) > fabs(y) ? x + y * ratio : x * ratio + y, u = *re, v = *im;
    *re = fabs(x) > fabs(y) ? (u + v * ratio) / size : (u * ratio + v) / size;
    *im = fabs(x) > fabs(y) ? (v - u * ratio) / size : (v * ratio - u) / size;
}

/* Let v be the complex vector with the real parts s->re and the imaginary parts s->im. Subtracts v[j] times column j of h from elements 0 to end - 1
 * of v. */
GRD_INLINE void eliminate(const struct schur *s, int64_t j, int64_t end)
{
    const T *column = s->h + j * s->n, re = s->re[j], im = s->im[j];
    for (int64_t i = 0; i < end; i++) {
        s->re[i] -= column[i] * re;
        s->im[i] -= column[i] * im;
    }
}

/* Solves rows `first` and first + 1 of the system (h - wr - i wi) x = b, where h has a 2 x 2 block. s->re and s->im hold b and receive x. If the
 * determinant of the block is too small, a larger number replaces it (see divide()). */
static void solve_pair(const struct schur *s, int64_t first, T wr, T wi, T smallest)
{
    const T *h = s->h + first * (s->n + 1), a = h[0] - wr, b = h[s->n], c = h[1], d = h[s->n + 1] - wr;
    const T determinant = a * d - b * c - wi * wi, beside = -wi * (a + d), largest = fmax(fabs(b), fabs(c));
    const T x = s->re[first], xi = s->im[first], y = s->re[first + 1], yi = s->im[first + 1];
    s->re[first] = d * x + wi * xi - b * y;
    s->im[first] = d * xi - wi * x - b * yi;
    s->re[first + 1] = a * y + wi * yi - c * x;
    s->im[first + 1] = a * yi - wi * y - c * xi;
    divide(determinant, beside, smallest * largest, s->re + first, s->im + first);
    divide(determinant, beside, smallest * largest, s->re + first + 1, s->im + first + 1);
}

/* Computes the eigenvector of the quasi-triangular h for eigenvalue k, and writes it to s->re and s->im. If eigenvalues k and k + 1 are a conjugate
 * pair, this is the eigenvector of the first one. */
static void substitute(const struct schur *s, int64_t k)
{
    const int64_t n = s->n;
    const T *h = s->h, wr = s->wr[k], wi = s->wi[k], smallest = fmax(epsilon * (fabs(wr) + fabs(wi)), least / epsilon / epsilon);
    const bool pair = wi != 0;
    memset(s->re, 0, (size_t)n * sizeof *s->re);
    memset(s->im, 0, (size_t)n * sizeof *s->im);
    s->re[k] = 1;
    if (pair) {
        const T above = h[k + (k + 1) * n], below = h[k + 1 + k * n];
        if (fabs(above) >= fabs(below)) {
            s->im[k + 1] = wi / above;
        } else {
            s->re[k] = -wi / below;
            s->im[k + 1] = 1;
        }
        eliminate(s, k + 1, k);
    }
    eliminate(s, k, k);
    for (int64_t j = k - 1; j >= 0; j--) {
        const int64_t first = j > 0 && s->wi[j] != 0 ? j - 1 : j;
        if (first < j)
            solve_pair(s, first, wr, wi, smallest);
        else
            divide(h[j * (n + 1)] - wr, -wi, smallest, s->re + j, s->im + j);
        const T size = fmax(largest_of(j + 1 - first, s->re + first), largest_of(j + 1 - first, s->im + first));
        if (size > 1 / epsilon) /* scaling keeps the remaining elements from overflowing; an eigenvector may have any length */
            for (int64_t i = 0; i < n; i++) {
                s->re[i] /= size;
                s->im[i] /= size;
            }
        eliminate(s, j, first);
        if (first < j)
            eliminate(s, first, first);
        j = first;
    }
}

/* Transforms the eigenvector in s->re and s->im, which belongs to eigenvalue k, to an eigenvector of A and writes it to ret_v with norm 1. If the
 * eigenvalue belongs to a conjugate pair, the largest element of the eigenvector is made real. */
static void write_vector(const struct schur *s, int64_t k, T *ret_v)
{
    const int64_t n = s->n;
    T size = 0, largest = 0, length = 0, c = 1, d = 0;
    memset(ret_v, 0, 2 * (size_t)n * sizeof *ret_v);
    for (int64_t j = 0; j <= (s->wi[k] != 0 ? k + 1 : k); j++)
        for (int64_t i = 0; i < n; i++) {
            ret_v[2 * i] += s->z[i + j * n] * s->re[j];
            ret_v[2 * i + 1] += s->z[i + j * n] * s->im[j];
        }
    for (int64_t i = s->low; i <= s->high; i++) {
        ret_v[2 * i] *= s->scales[i];
        ret_v[2 * i + 1] *= s->scales[i];
    }
    for (int64_t i = s->low - 1; i >= 0; i--)
        exchange(2, 1, ret_v + 2 * i, ret_v + 2 * (int64_t)s->scales[i]);
    for (int64_t i = s->high + 1; i < n; i++)
        exchange(2, 1, ret_v + 2 * i, ret_v + 2 * (int64_t)s->scales[i]);
    size = largest_of(2 * n, ret_v);
    for (int64_t i = 0; i < n; i++) {
        T *x = ret_v + 2 * i;
        x[0] /= size;
        x[1] /= size;
        const T square = x[0] * x[0] + x[1] * x[1];
        length += square;
        if (square > largest) {
            largest = square;
            c = x[0];
            d = x[1];
        }
    }
    const T turn = s->wi[k] != 0 ? copysign(1 / sqrt(largest), c) : 1, factor = 1 / sqrt(length);
    for (int64_t i = 0; i < n; i++) {
        T *x = ret_v + 2 * i, re = x[0], im = x[1];
        if (s->wi[k] != 0) {
            const bool is_largest = re == c && im == d;
            x[0] = (re * c + im * d) * turn * factor;
            x[1] = is_largest ? 0 : (im * c - re * d) * turn * factor;
        } else {
            x[0] = re * factor;
        }
    }
}

/* ---- All of it ---------------------------------------------------------------------------------------------------------------------------- */

/* Computes the complex eigenvalues of the n x n matrix `a` and, unless ret_v is NULL, its eigenvectors, which have the norm 1. ret_info receives 0,
 * or the number of eigenvalues that were not found. `work` is scratch memory of n (2 n + 5) elements. */
static void eig(int64_t n, const void *a, void *ret_w, void *ret_v, int32_t *ret_info, void *work)
{
    const int64_t size = n * n;
    T *columns = (T *)work + 2 * size, *w = ret_w;
    struct schur s = {.n = n,
                      .high = n - 1,
                      .h = work,
                      .z = ret_v != NULL ? (T *)work + size : NULL,
                      .scales = columns,
                      .wr = columns + n,
                      .wi = columns + 2 * n,
                      .re = columns + 3 * n,
                      .im = columns + 4 * n};
    memcpy(s.h, a, (size_t)size * sizeof *s.h);
    const T largest = largest_of(size, s.h), low = sqrt(least) / epsilon;
    int exponent;
    frexp(largest, &exponent);
    exponent = exponent < -MOST  ? -MOST
               : exponent > MOST ? MOST
                                 : exponent / 2 * 2; /* an even exponent, so that the square root of the scale is a power of 2, too */
    const T scale = ldexp((T)1, -exponent);
    for (int64_t i = 0; i < size; i++)
        s.h[i] *= scale;
    s.unit = largest > 0 ? (largest < low       ? low
                            : largest > 1 / low ? 1 / low
                                                : largest) /
                               (largest * scale)
                         : 1; /* LAPACK scales a matrix only if its largest element is outside of [low, 1 / low] */
    permute(&s);
    balance(&s);
    reduce(&s);
    *ret_info = (int32_t)triangulate(&s);
    for (int64_t i = 0; i < n; i++) {
        w[2 * i] = s.wr[i] / scale;
        w[2 * i + 1] = s.wi[i] / scale;
    }
    for (int64_t k = 0; s.z != NULL && k < n; k++) {
        T *v = (T *)ret_v + 2 * k * n;
        substitute(&s, k);
        write_vector(&s, k, v);
        if (s.wi[k] == 0)
            continue;
        k++;
        for (int64_t i = 0; i < n; i++) { /* the eigenvector of the pair's second eigenvalue is the conjugate of the first eigenvector */
            v[2 * (n + i)] = v[2 * i];
            v[2 * (n + i) + 1] = -v[2 * i + 1];
        }
    }
}

static void join(int64_t n, const void *w_real, const void *w_imaginary, const void *columns, void *ret_w, void *ret_v)
{
    const T *re = w_real, *im = w_imaginary, *from = columns;
    T *w = ret_w, *v = ret_v;
    for (int64_t j = 0; j < n; j++) {
        w[2 * j] = re[j];
        w[2 * j + 1] = im[j];
        const int64_t pair = im[j] < 0 ? j - 1 : j; /* LAPACK lists the eigenvalue with a positive imaginary part first */
        for (int64_t i = 0; v != NULL && i < n; i++) {
            v[2 * (i + j * n)] = from[i + pair * n];
            v[2 * (i + j * n) + 1] = im[j] == 0 ? 0 : im[j] > 0 ? from[i + (pair + 1) * n] : -from[i + (pair + 1) * n];
        }
    }
}

const struct grd_eigen_row GRD_TYPED(grd_eigen_row) = {.eig = eig, .join = join};
