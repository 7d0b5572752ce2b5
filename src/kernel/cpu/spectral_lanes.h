/* What eigh_lanes.h and svd_lanes.h share: element (i, j) of many small real matrices is one vector, with a lane for each matrix. Masks, plane rotations,
 * Householder reflections, the orders of results, and the way between matrices and lanes. For jacobi.c alone.
 * Invariant: lanes do not mix, and a lane that has nothing to do keeps its numbers, but for the sign of zeros, which is lost when they are written: so the bits
 * of a matrix do not depend on those beside it. */
#ifndef GRD_KERNEL_CPU_SPECTRAL_LANES_H
#define GRD_KERNEL_CPU_SPECTRAL_LANES_H

#include "kernel/cpu/matrix_groups.h"

/* Vectors that are rotated in turn, so that one goes on while the other waits for a division or a root. */
enum { GROUPS = 2, MATRICES = GROUPS * LANES };

/* Sums of two squares of elements below 1, beside a largest one of 1, that count as 0: the root of a smaller one has too few digits for a rotation. */
#if GRD_TAG == GRD_TAG_float32
static const T least_square = FLT_MIN / FLT_EPSILON;
#else
static const T least_square = DBL_MIN / DBL_EPSILON;
#endif

typedef B bits __attribute__((vector_size(VECTOR_BYTES)));

/* ---- Masks ------------------------------------------------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
typedef __mmask16 mask;

INLINE mask is_less(vector x, vector y)
{
    return sizeof(T) == 4 ? _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_LT_OQ) : _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_LT_OQ);
}

INLINE mask is_equal(vector x, vector y)
{
    return sizeof(T) == 4 ? _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_EQ_OQ) : _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_EQ_OQ);
}

/* x where the mask is set, y elsewhere. */
INLINE vector choose(mask m, vector x, vector y)
{
    return sizeof(T) == 4 ? (vector)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x)
                          : (vector)_mm512_mask_blend_pd((__mmask8)m, (__m512d)y, (__m512d)x);
}

INLINE bool is_any(mask m)
{
    return m != 0;
}
#else
typedef lane_bits mask;

INLINE mask is_less(vector x, vector y)
{
    return (mask)(x < y);
}

INLINE mask is_equal(vector x, vector y)
{
    return (mask)(x == y);
}

INLINE vector choose(mask m, vector x, vector y)
{
    return (vector)((m & (mask)x) | (~m & (mask)y));
}

INLINE bool is_any(mask m)
{
#if defined(__AVX__)
    return _mm256_movemask_pd((__m256d)m) != 0 || (sizeof(T) == 4 && _mm256_movemask_ps((__m256)m) != 0);
#else
    bool any = false;
    for (int l = 0; l < LANES; l++)
        any |= m[l] != 0;
    return any;
#endif
}
#endif

/* x where the mask is set, 0 elsewhere. */
INLINE vector choose_or_zero(mask m, vector x)
{
    return choose(m, x, (vector){0});
}

/* The bit of the sign. */
INLINE bits sign_bit(void)
{
    return (bits){0} + ((B)1 << (8 * sizeof(T) - 1));
}

/* The size of x with the sign of y. */
INLINE vector with_sign(vector x, vector y)
{
    return (vector)(((bits)x & ~sign_bit()) | ((bits)y & sign_bit()));
}

/* ---- Rotations ---------------------------------------------------------------------------------------------------------------------------- */

/* c f + s g = size, c g - s f = 0, with c f >= 0. Where both are negligible c is 1. */
struct turn {
    vector c, s, size;
};

INLINE struct turn turn_of(vector f, vector g)
{
    const vector squares = multiply_add(f, f, g * g), size = square_roots(squares);
    const mask known = is_less(everywhere(least_square), squares);
    return (struct turn){choose(known, f / size, everywhere(1)), choose_or_zero(known, g / size), choose(known, size, f)};
}

/* Turns pairs of elements: x' = c x + s y, y' = c y - s x. */
INLINE void turn_columns(int64_t n, vector c, vector s, vector *x, vector *y)
{
    BY_FOUR for (int64_t i = 0; i < n; i++)
    {
        const vector u = x[i], v = y[i];
        x[i] = multiply_add(c, u, s * v);
        y[i] = multiply_subtract(c, v, s * u);
    }
}

/* ---- Reflections -------------------------------------------------------------------------------------------------------------------------- */

/* H = 1 - tau v v^T with v[0] = 1. */
struct reflection {
    vector tau, head;
};

/* Makes the reflection after which only the first of n elements, `step` apart, is left, as `head`; v is written over the others. */
static struct reflection reflection_of(int64_t n, int64_t step, vector *x)
{
    vector tail = {0};
    for (int64_t i = 1; i < n; i++)
        tail = multiply_add(x[i * step], x[i * step], tail);
    const vector first = x[0], squares = multiply_add(first, first, tail), head = -with_sign(square_roots(squares), first);
    const mask needed = is_less((vector){0}, tail) & is_less(everywhere(least_square), squares);
    const vector factor = choose_or_zero(needed, 1 / (first - head));
    for (int64_t i = 1; i < n; i++)
        x[i * step] *= factor;
    return (struct reflection){choose_or_zero(needed, (head - first) / head), choose(needed, head, first)};
}

/* Reflects a column, of which the first element is 0 if `begins`. */
INLINE void reflect_column(int64_t n, bool begins, vector tau, const vector *v, vector *x)
{
    vector total = begins ? (vector){0} : x[0];
    for (int64_t i = 1; i < n; i++)
        total = multiply_add(v[i], x[i], total);
    total *= tau;
    x[0] = begins ? -total : x[0] - total;
    for (int64_t i = 1; i < n; i++)
        x[i] = multiply_add(-total, v[i], x[i]);
}

/* Writes the first columns of the product of `count` reflections, which lie one below and beside the other from v on, as they will in the result. Column
 * j of the result may lie where reflection j is, or before it. */
static void multiply_reflections(int64_t rows, int64_t columns, int64_t count, int64_t leading, const vector *tau, const vector *v,
                                 vector *ret_q)
{
    for (int64_t j = count; j < columns; j++)
        for (int64_t i = count; i < rows; i++)
            ret_q[i + j * leading] = everywhere(i == j);
    for (int64_t k = count - 1; k >= 0; k--) {
        const vector *from = v + k * (leading + 1);
        vector *q = ret_q + k * (leading + 1);
        for (int64_t j = k + 1; j < columns; j++)
            reflect_column(rows - k, true, tau[k], from, q + (j - k) * leading);
        q[0] = 1 - tau[k];
        for (int64_t i = 1; i < rows - k; i++)
            q[i] = -tau[k] * from[i];
    }
}

/* ---- Between matrices and lanes ---------------------------------------------------------------------------------------------------------- */

/* 1, or -1 where a vector, which is found up to its sign, is to be turned round, so that the sign does not hang on rounding: the value of the polynomial with the
 * coefficients x at 0.7, which for hardly any vector is close to 0, is to be positive. */
INLINE vector sign_of(int64_t n, const vector *x)
{
    vector value = {0};
    for (int64_t i = n - 1; i >= 0; i--)
        value = multiply_add(value, everywhere((T)0.7), x[i]);
    return choose(is_less(value, (vector){0}), everywhere(-1), everywhere(1));
}

INLINE void multiply_column(int64_t n, vector factor, vector *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* Writes the n elements of a column, lane l to to[l], with no zero that is negative. */
static void scatter_column(int64_t n, int64_t count, const vector *from, T *const *to)
{
    vector column[GRD_LANES_SIDE];
    for (int64_t i = 0; i < n; i++)
        column[i] = from[i] + 0;
    write_lanes(n, count, NULL, to, column);
}

/* Powers of two about as large as the largest elements; and where all elements are finite. */
struct scales {
    vector scale;
    mask finite;
};

/* Divides by them, so that squares neither overflow nor vanish. Elements that are not finite make a matrix 0. Of squares the lower triangle is taken if `lower`. */
static struct scales scale_lanes(int64_t m, int64_t n, bool lower, vector *a)
{
    vector largest = everywhere(least_scale), differences = {0};
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = lower ? j : 0; i < m; i++) {
            const vector x = magnitudes(a[i + j * m]);
            largest = choose(is_less(largest, x), x, largest);
            differences += x - x; /* NaN where x is not finite */
        }
    struct scales result = {.finite = is_equal(differences, (vector){0})};
    T sizes[LANES];
    memcpy(sizes, &largest, sizeof sizes);
    for (int l = 0; l < LANES; l++)
        sizes[l] = isfinite(sizes[l]) ? scale_of(sizes[l]) : 1;
    memcpy(&result.scale, sizes, sizeof sizes);
    const vector factor = 1 / result.scale;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = lower ? j : 0; i < m; i++)
            a[i + j * m] = choose_or_zero(result.finite, a[i + j * m] * factor);
    return result;
}

/* The places of n numbers of each lane in their order. Of equal ones the first comes first. */
static void find_places(int64_t n, bool descending, const vector *numbers, T (*ret_places)[LANES])
{
    vector places[GRD_LANES_SIDE];
    for (int64_t j = 0; j < n; j++) {
        vector ahead = {0};
        for (int64_t i = 0; i < j; i++) {
            const mask later = descending ? is_less(numbers[i], numbers[j]) : is_less(numbers[j], numbers[i]);
            places[i] += choose_or_zero(later, everywhere(1));
            ahead += choose(later, (vector){0}, everywhere(1));
        }
        places[j] = ahead;
    }
    memcpy(ret_places, places, (size_t)n * sizeof *places);
}

#endif
