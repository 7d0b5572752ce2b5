/* Computes eigenvalues and eigenvectors of general complex matrices; see kernel/eigen.h. The build compiles this file once for complex64 and once for
 * complex128. A matrix is reduced to Hessenberg form by Householder reflections, and then to a triangle by QR steps with Wilkinson's shifts. The
 * eigenvectors of the triangle are found by substitution. See G. Golub and C. Van Loan, Matrix Computations, chapter 7. */
#include "kernel/eigen.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "kernel/cpu/typed.h"

enum { STEPS = 60 /* most QR steps per eigenvalue */, STEPS_STUCK = 10 /* every tenth step uses another shift, to end a cycle */ };

#if GRD_TAG == GRD_TAG_complex64
static const R epsilon = FLT_EPSILON, least = FLT_MIN;
#else
static const R epsilon = DBL_EPSILON, least = DBL_MIN;
#endif

GRD_INLINE R size_of(E x)
{
    return hypot(creal(x), cimag(x));
}

/* Returns the Euclidean norm of x, which has n elements. */
static R length_of(int64_t n, const E *x)
{
    R length = 0;
    for (int64_t i = 0; i < n; i++)
        length = hypot(length, size_of(x[i]));
    return length;
}

/* ---- Hessenberg form ---------------------------------------------------------------------------------------------------------------------- */

/* Multiplies the n x n matrix `a` from the left by I - 2 v v^H, which changes rows [first, n). v[i] belongs to row i. */
static void reflect_rows(int64_t n, int64_t first, const E *v, E *a)
{
    for (int64_t j = 0; j < n; j++) {
        E total = 0;
        for (int64_t i = first; i < n; i++)
            total += conj(v[i]) * a[i + j * n];
        for (int64_t i = first; i < n; i++)
            a[i + j * n] -= 2 * total * v[i];
    }
}

/* Multiplies the n x n matrix `a` from the right by I - 2 v v^H, which changes columns [first, n). v[j] belongs to column j. */
static void reflect_columns(int64_t n, int64_t first, const E *v, E *a)
{
    for (int64_t i = 0; i < n; i++) {
        E total = 0;
        for (int64_t j = first; j < n; j++)
            total += a[i + j * n] * v[j];
        for (int64_t j = first; j < n; j++)
            a[i + j * n] -= 2 * total * conj(v[j]);
    }
}

/* Reduces the n x n matrix `a` to Hessenberg form by Householder reflections, and multiplies `z` from the right by all these reflections. `v` is
 * scratch memory for one column. */
static void reduce(int64_t n, E *a, E *z, E *v)
{
    for (int64_t k = 0; k + 2 < n; k++) {
        memcpy(v + k + 1, a + k + 1 + k * n, (size_t)(n - k - 1) * sizeof *v);
        const R length = length_of(n - k - 1, v + k + 1), head = size_of(v[k + 1]);
        if (length_of(n - k - 2, v + k + 2) == 0)
            continue;
        v[k + 1] += head > 0 ? v[k + 1] / head * length : length;
        const R scale = length_of(n - k - 1, v + k + 1);
        for (int64_t i = k + 1; i < n; i++)
            v[i] /= scale;
        reflect_rows(n, k + 1, v, a);
        reflect_columns(n, k + 1, v, a);
        reflect_columns(n, k + 1, v, z);
    }
}

/* ---- QR steps ----------------------------------------------------------------------------------------------------------------------------- */

/* Returns Wilkinson's shift, which is an eigenvalue of the 2 x 2 block of `a` in rows and columns `last` - 1 and `last`. Of the two eigenvalues it is
 * the one nearer to a[last][last]. */
static E shift_of(int64_t n, int64_t last, const E *a)
{
    const E p = a[last - 1 + (last - 1) * n], s = a[last + last * n], product = a[last + (last - 1) * n] * a[last - 1 + last * n];
    const E half = (p - s) / 2, root = sqrt(half * half + product);
    const E plus = half + root, minus = half - root, larger = size_of(plus) > size_of(minus) ? plus : minus;
    return size_of(larger) > 0 ? s - product / larger : s;
}

/* Rotates two rows, or two columns, x and y of a matrix. Each has n elements, which are `step` apart. x becomes c x + s y, and y becomes
 * c y - conj(s) x. */
static void rotate(int64_t n, int64_t step, R c, E s, E *x, E *y)
{
    for (int64_t i = 0; i < n * step; i += step) {
        const E u = x[i], v = y[i];
        x[i] = c * u + s * v;
        y[i] = c * v - conj(s) * u;
    }
}

/* Carries out a QR step on rows and columns [first, last] of the Hessenberg matrix A in `a`. The step decomposes A - shift * I into Q * R and sets A
 * to R * Q + shift * I. It multiplies `z` by Q from the right. */
static void step(int64_t n, int64_t first, int64_t last, E shift, E *a, E *z)
{
    E x = a[first + first * n] - shift;
    for (int64_t k = first; k < last; k++) {
        E y = a[k + 1 + k * n];
        if (k > first) {
            x = a[k + (k - 1) * n];
            y = a[k + 1 + (k - 1) * n];
        }
        const R size = size_of(x), length = hypot(size, size_of(y));
        if (length == 0)
            continue;
        const R c = size / length;
        const E s = size > 0 ? x / size * conj(y) / length : 1;
        const int64_t left = k > first ? k - 1 : k, rows = k + 2 < last ? k + 3 : last + 1;
        rotate(n - left, n, c, s, a + k + left * n, a + k + 1 + left * n);
        if (k > first)
            a[k + 1 + (k - 1) * n] = 0;
        rotate(rows, 1, c, conj(s), a + k * n, a + (k + 1) * n);
        rotate(n, 1, c, conj(s), z + k * n, z + (k + 1) * n);
    }
}

/* Reduces the Hessenberg matrix `a` to a triangle by QR steps, and multiplies `z` from the right by the Q of each step. Returns 0, or the number of
 * eigenvalues that were not found. */
static int64_t triangulate(int64_t n, E *a, E *z)
{
    int64_t last = n - 1, steps = 0;
    while (last > 0) {
        int64_t first = last;
        for (; first > 0; first--) {
            E *below = a + first + (first - 1) * n;
            if (size_of(*below) <= epsilon * (size_of(a[first + first * n]) + size_of(a[first - 1 + (first - 1) * n])) + least) {
                *below = 0;
                break;
            }
        }
        if (first == last) {
            last--;
            steps = 0;
        } else if (++steps > STEPS) {
            return last + 1;
        } else {
            const E exceptional = a[last + last * n] + size_of(a[last + (last - 1) * n]);
            step(n, first, last, steps % STEPS_STUCK == 0 ? exceptional : shift_of(n, last, a), a, z);
        }
    }
    return 0;
}

/* ---- Vectors ------------------------------------------------------------------------------------------------------------------------------- */

/* Scales v to length 1 and makes its largest element real. */
static void normalize(int64_t n, E *v)
{
    int64_t largest = 0;
    const R length = length_of(n, v);
    for (int64_t i = 1; i < n; i++)
        largest = size_of(v[i]) > size_of(v[largest]) ? i : largest;
    const R size = size_of(v[largest]);
    const E factor = size > 0 && length > 0 ? conj(v[largest]) / size / length : 1;
    for (int64_t i = 0; i < n; i++)
        v[i] *= factor;
    v[largest] = creal(v[largest]);
}

/* Finds the eigenvectors y of the triangular matrix t, and writes the products z y, scaled to length 1, to the columns of ret_v. `y` is scratch
 * memory for one column. */
static void substitute(int64_t n, const E *t, const E *z, E *y, E *ret_v)
{
    R norm = least;
    for (int64_t i = 0; i < n * n; i++)
        norm = fmax(norm, size_of(t[i]));
    for (int64_t k = 0; k < n; k++) {
        y[k] = 1;
        for (int64_t i = k - 1; i >= 0; i--) {
            E total = 0, gap = t[i + i * n] - t[k + k * n];
            for (int64_t j = i + 1; j <= k; j++)
                total += t[i + j * n] * y[j];
            if (size_of(gap) < epsilon * norm)
                gap = epsilon * norm;
            y[i] = -total / gap;
            if (size_of(y[i]) > 1 / epsilon) { /* An eigenvector may have any length, so y is scaled down before it overflows. */
                const R scale = size_of(y[i]);
                for (int64_t j = i; j <= k; j++)
                    y[j] /= scale;
            }
        }
        E *v = ret_v + k * n;
        memset(v, 0, (size_t)n * sizeof *v);
        for (int64_t j = 0; j <= k; j++)
            for (int64_t i = 0; i < n; i++)
                v[i] += z[i + j * n] * y[j];
        normalize(n, v);
    }
}

static void eig(int64_t n, const void *from, void *ret_w, void *ret_v, int32_t *ret_info, void *work)
{
    E *a = work, *z = a + n * n, *column = z + n * n, *w = ret_w;
    memcpy(a, from, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n * n; i++)
        z[i] = i % (n + 1) == 0;
    reduce(n, a, z, column);
    *ret_info = (int32_t)triangulate(n, a, z);
    for (int64_t i = 0; i < n; i++)
        w[i] = a[i + i * n];
    if (ret_v != NULL)
        substitute(n, a, z, column, ret_v);
}

const struct grd_eigen_row GRD_TYPED(grd_eigen_row) = {.eig = eig};
