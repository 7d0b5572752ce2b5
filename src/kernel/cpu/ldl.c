/* Decomposes symmetric matrices as L D L^T and Hermitian matrices as L D L^H, and solves equations with the factors; see kernel/ldl.h. The build
 * compiles this file once for each of float32, float64, complex64 and complex128. The algorithm is from J. Bunch and L. Kaufman, Some stable methods
 * for calculating inertia and solving symmetric linear systems, Mathematics of Computation 31 (1977), and works column by column. */
#include "kernel/ldl.h"

#include "kernel/cpu/pivots.h"

/* (1 + sqrt(17)) / 8. With this value, pivots of one row and of two rows have equal bounds on element growth. */
#define ALPHA ((R)0.64038820320220756873)

/* Returns element (j, i) of the matrix, given that element (i, j) is x. It is the conjugate of x if `hermitian`, otherwise x itself. */
GRD_INLINE C mirrored(bool hermitian, C x)
{
    return hermitian ? conjugate(x) : x;
}

/* ---- Decomposition ------------------------------------------------------------------------------------------------------------------------ */

/* The choice of the pivot in step k, which eliminates column k. `rows` is the number of rows of the next block of D: 1 or 2, or 0 if
 * column k is zero or its diagonal element is NaN. `row` is the row that is exchanged with the last row of the block. */
struct pivot {
    int64_t row, rows;
};

/* Returns the pivot of step k, which eliminates column k, by the rule of Bunch and Kaufman. */
static struct pivot choose_pivot(int64_t n, int64_t k, const T *a)
{
    const T *column = a + k * n;
    const R own = size_of(column[k]);
    const int64_t row = k + 1 < n ? k + 1 + largest_of(n - k - 1, column + k + 1) : k;
    const R largest = row > k ? size_of(column[row]) : 0;
    if (isnan(own) || (own == 0 && largest == 0))
        return (struct pivot){k, 0};
    if (own >= ALPHA * largest)
        return (struct pivot){k, 1};
    R beside = 0;
    for (int64_t j = k; j < row; j++)
        beside = fmax(beside, size_of(a[row + j * n]));
    for (int64_t i = row + 1; i < n; i++)
        beside = fmax(beside, size_of(a[i + row * n]));
    if (own >= ALPHA * largest * (largest / beside))
        return (struct pivot){k, 1};
    return (struct pivot){row, size_of(a[row + row * n]) >= ALPHA * beside ? 1 : 2};
}

/* Exchanges row and column `from` with row and column `to` of a matrix whose lower triangle is stored. Requires to > from. Columns before `from` are
 * not changed. */
static void exchange_both(int64_t n, int64_t from, int64_t to, bool hermitian, T *a)
{
    T *first = a + from * n, *second = a + to * n;
    exchange(n - to - 1, 1, first + to + 1, second + to + 1);
    for (int64_t j = from + 1; j < to; j++) {
        const T kept = first[j];
        first[j] = mirrored(hermitian, a[to + j * n]);
        a[to + j * n] = mirrored(hermitian, kept);
    }
    first[to] = mirrored(hermitian, first[to]);
    exchange(1, 1, first + from, second + to);
}

/* Sets the imaginary part of a diagonal element to 0 if the matrix is Hermitian. */
static void make_real(bool hermitian, T *x)
{
    if (hermitian)
        *x = number(real_part(*x), 0);
}

/* Eliminates column k with the pivot d on its diagonal. Replaces the rest of the column, a21, by l = a21 / d, and subtracts l d l^H (l d l^T if not
 * `hermitian`) from the columns after column k. */
static void eliminate_one(int64_t n, int64_t k, bool hermitian, T *a)
{
    T *column = a + k * n;
    for (int64_t j = k + 1; j < n; j++) {
        const C factor = quotient(column[j], column[k]);
        subtract_multiple(n - j, mirrored(hermitian, factor), column + j, a + j + j * n);
        make_real(hermitian, a + j + j * n);
    }
    for (int64_t i = k + 1; i < n; i++)
        column[i] = quotient(column[i], column[k]);
}

/* A 2 x 2 diagonal block [[d, c'], [c, e]] of D, where c' (`above`) is c or its conjugate. Its inverse [[e, -c'], [-c, d]] / (d e - c c') is computed
 * from p = e / c and q = d / c', because d e might overflow. */
struct block {
    C c, above, p, q, rest; /* rest is p q - 1 */
};

/* Returns the block of D whose upper left element is at `corner`. */
GRD_INLINE struct block block_at(int64_t n, bool hermitian, const T *corner)
{
    struct block d = {.c = corner[1], .above = mirrored(hermitian, corner[1])};
    d.p = quotient(corner[n + 1], d.c);
    d.q = quotient(corner[0], d.above);
    d.rest = difference(product(d.p, d.q), constant(1));
    return d;
}

/* Eliminates columns k and k + 1 with the pivot D, a 2 x 2 block. Replaces the rest of both columns, A21, by L = A21 D^-1, and subtracts
 * L D L^H (L D L^T if not `hermitian`) from the columns after these two. In the code, (x, y) is a row of L. */
static void eliminate_two(int64_t n, int64_t k, bool hermitian, T *a)
{
    T *first = a + k * n, *second = first + n;
    const struct block d = block_at(n, hermitian, first + k);
    for (int64_t j = k + 2; j < n; j++) {
        const C x = quotient(difference(product(d.p, first[j]), second[j]), product(d.above, d.rest));
        const C y = quotient(difference(product(d.q, second[j]), first[j]), product(d.c, d.rest));
        subtract_multiple(n - j, mirrored(hermitian, x), first + j, a + j + j * n);
        subtract_multiple(n - j, mirrored(hermitian, y), second + j, a + j + j * n);
        make_real(hermitian, a + j + j * n);
        first[j] = x;
        second[j] = y;
    }
}

static void clear_upper(int64_t n, void *matrix)
{
    T *a = matrix;
    for (int64_t j = 1; j < n; j++)
        for (int64_t i = 0; i < j; i++)
            a[i + j * n] = constant(0);
}

static void factor(int64_t n, bool hermitian, void *matrix, int32_t *ret_pivots, int32_t *ret_info)
{
    T *a = matrix;
    *ret_info = 0;
    for (int64_t j = 0; j < n; j++)
        make_real(hermitian, a + j + j * n);
    for (int64_t k = 0; k < n;) {
        const struct pivot pivot = choose_pivot(n, k, a);
        const int64_t rows = pivot.rows == 2 ? 2 : 1, last = k + rows - 1;
        if (pivot.row != last) {
            exchange_both(n, last, pivot.row, hermitian, a);
            if (rows == 2)
                exchange(1, 1, a + last + k * n, a + pivot.row + k * n);
        }
        if (pivot.rows == 0)
            *ret_info = *ret_info == 0 ? (int32_t)(k + 1) : *ret_info;
        else
            (rows == 2 ? eliminate_two : eliminate_one)(n, k, hermitian, a);
        for (int64_t i = k; i <= last; i++)
            ret_pivots[i] = (int32_t)(rows == 2 ? -(pivot.row + 1) : pivot.row + 1);
        k += rows;
    }
    clear_upper(n, matrix);
}

/* ---- Solution ----------------------------------------------------------------------------------------------------------------------------- */

static enum grd_ldl_pivots check_pivots(int64_t n, const int32_t *pivots)
{
    for (int64_t k = 0; k < n; k += pivots[k] < 0 ? 2 : 1) {
        if (pivots[k] == 0)
            return GRD_LDL_PIVOTS_ZERO;
        if (pivots[k] > n || (pivots[k] < 0 && (k + 1 == n || pivots[k + 1] != pivots[k] || -(int64_t)pivots[k] > n)))
            return GRD_LDL_PIVOTS_OUTSIDE;
    }
    return GRD_LDL_PIVOTS_FIT;
}

/* Exchanges x[i] with x[|pivot| - 1]. A pivot is a position, counted from 1; it is negative if it belongs to a block of two rows. */
GRD_INLINE void exchange_elements(T *x, int64_t i, int32_t pivot)
{
    exchange(1, 1, x + i, x + (pivot < 0 ? -(int64_t)pivot : pivot) - 1);
}

/* Returns the sum of a[i]' x[i] over i < n, where a[i]' is the conjugate of a[i] if `hermitian`, otherwise a[i] itself. */
GRD_INLINE C mirrored_product(int64_t n, bool hermitian, const T *a, const T *x)
{
    if (hermitian)
        return inner_product(n, a, x);
    C total = constant(0);
    for (int64_t i = 0; i < n; i++)
        total = sum(total, product(a[i], x[i]));
    return total;
}

/* Overwrites the right side x with D^-1 L^-1 x. The row exchange of each pivot is applied to x before the columns of L that belong to the pivot are
 * used. */
static void solve_forward(int64_t n, bool hermitian, const T *a, const int32_t *pivots, T *x)
{
    for (int64_t k = 0; k < n;) {
        const T *first = a + k * n, *second = first + n;
        if (pivots[k] > 0) {
            exchange_elements(x, k, pivots[k]);
            subtract_multiple(n - k - 1, x[k], first + k + 1, x + k + 1);
            x[k] = quotient(x[k], hermitian ? number(real_part(first[k]), 0) : first[k]);
            k++;
            continue;
        }
        exchange_elements(x, k + 1, pivots[k]);
        subtract_multiple(n - k - 2, x[k], first + k + 2, x + k + 2);
        subtract_multiple(n - k - 2, x[k + 1], second + k + 2, x + k + 2);
        const struct block d = block_at(n, hermitian, first + k);
        const C u = quotient(x[k], d.above), v = quotient(x[k + 1], d.c);
        x[k] = quotient(difference(product(d.p, u), v), d.rest);
        x[k + 1] = quotient(difference(product(d.q, v), u), d.rest);
        k += 2;
    }
}

/* Overwrites x with L^-H x, or L^-T x if the matrix is not Hermitian. The row exchange of each pivot is undone in x after the columns of L that
 * belong to the pivot have been used. */
static void solve_backward(int64_t n, bool hermitian, const T *a, const int32_t *pivots, T *x)
{
    for (int64_t k = n - 1; k >= 0; k -= pivots[k] > 0 ? 1 : 2) {
        const int64_t below = k + 1, first = pivots[k] > 0 ? k : k - 1;
        for (int64_t j = first; j <= k; j++)
            x[j] = difference(x[j], mirrored_product(n - below, hermitian, a + below + j * n, x + below));
        exchange_elements(x, k, pivots[k]);
    }
}

static void solve(int64_t n, int64_t k, bool hermitian, const void *ld, const int32_t *pivots, void *right)
{
    T *x = right;
    for (int64_t column = 0; column < k; column++) {
        solve_forward(n, hermitian, ld, pivots, x + column * n);
        solve_backward(n, hermitian, ld, pivots, x + column * n);
    }
}

const struct grd_ldl_row GRD_TYPED(grd_ldl_row) = {
    .factor = factor,
    .clear_upper = clear_upper,
    .check_pivots = check_pivots,
    .solve = solve,
};
