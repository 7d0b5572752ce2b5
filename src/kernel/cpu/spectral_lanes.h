/* What eigh_lanes.h and svd_lanes.h share: element (i, j) of many small matrices is one vector, with a lane for each matrix, or two: a column of complex numbers
 * is its real parts and then, `im` vectors on, its imaginary ones, and im is 0 for real matrices. Masks, plane rotations, Householder reflections, the orders of
 * results, and the way between matrices and lanes. For jacobi.c alone.
 * Invariant: lanes do not mix, and a lane that has nothing to do keeps its numbers, but for the sign of zeros, which is lost when they are written: so the bits
 * of a matrix do not depend on those beside it. */
#ifndef GRD_KERNEL_CPU_SPECTRAL_LANES_H
#define GRD_KERNEL_CPU_SPECTRAL_LANES_H

#include "kernel/cpu/matrix_groups.h"

/* Vectors that are rotated in turn, so that one goes on while the other waits for a division or a root. */
enum { GROUPS = 2, MATRICES = GROUPS * LANES, ROWS = 4 /* that are turned at a time */ };

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

GRD_INLINE mask is_less(vector x, vector y)
{
    return sizeof(T) == 4 ? _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_LT_OQ) : _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_LT_OQ);
}

GRD_INLINE mask is_equal(vector x, vector y)
{
    return sizeof(T) == 4 ? _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_EQ_OQ) : _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_EQ_OQ);
}

/* x where the mask is set, y elsewhere. */
GRD_INLINE vector choose(mask m, vector x, vector y)
{
    return sizeof(T) == 4 ? (vector)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x)
                          : (vector)_mm512_mask_blend_pd((__mmask8)m, (__m512d)y, (__m512d)x);
}

GRD_INLINE bool is_any(mask m)
{
    return m != 0;
}
#else
typedef lane_bits mask;

GRD_INLINE mask is_less(vector x, vector y)
{
    return (mask)(x < y);
}

GRD_INLINE mask is_equal(vector x, vector y)
{
    return (mask)(x == y);
}

GRD_INLINE vector choose(mask m, vector x, vector y)
{
    return (vector)((m & (mask)x) | (~m & (mask)y));
}

GRD_INLINE bool is_any(mask m)
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
GRD_INLINE vector choose_or_zero(mask m, vector x)
{
    return choose(m, x, (vector){0});
}

/* The bit of the sign. */
GRD_INLINE bits sign_bit(void)
{
    return (bits){0} + ((B)1 << (8 * sizeof(T) - 1));
}

/* The size of x with the sign of y. */
GRD_INLINE vector with_sign(vector x, vector y)
{
    return (vector)(((bits)x & ~sign_bit()) | ((bits)y & sign_bit()));
}

/* ---- Elements ----------------------------------------------------------------------------------------------------------------------------- */

struct element {
    vector re, im; /* im: of complex matrices alone */
};

GRD_INLINE struct element element_at(int64_t im, const vector *x)
{
    return (struct element){x[0], im != 0 ? x[im] : (vector){0}};
}

GRD_INLINE void put_element(int64_t im, struct element e, vector *x)
{
    x[0] = e.re;
    if (im != 0)
        x[im] = e.im;
}

GRD_INLINE struct element conjugated(int64_t im, struct element x)
{
    return (struct element){x.re, im != 0 ? -x.im : x.im};
}

GRD_INLINE struct element element_times(int64_t im, vector factor, struct element x)
{
    return (struct element){factor * x.re, im != 0 ? factor * x.im : x.im};
}

/* x y + z. */
GRD_INLINE struct element add_product(int64_t im, struct element x, struct element y, struct element z)
{
    if (im == 0)
        return (struct element){multiply_add(x.re, y.re, z.re), z.im};
    return (struct element){multiply_add(-x.im, y.im, multiply_add(x.re, y.re, z.re)),
                            multiply_add(x.im, y.re, multiply_add(x.re, y.im, z.im))};
}

GRD_INLINE struct element element_product(int64_t im, struct element x, struct element y)
{
    if (im == 0)
        return (struct element){x.re * y.re, x.im};
    return (struct element){multiply_add(-x.im, y.im, x.re * y.re), multiply_add(x.im, y.re, x.re * y.im)};
}

/* ---- Rotations ---------------------------------------------------------------------------------------------------------------------------- */

/* c f + s g = size, c g - s f = 0, with c >= 0 and a size of the sign of f. Where both are negligible c is 1. */
struct turn {
    vector c, s, size;
};

/* Turns that follow one another, turn i of columns i and i + 1: s, and t = s / (1 + c). Where there is nothing to turn both are 0. */
struct turns {
    vector s[GRD_LANES_SIDE], t[GRD_LANES_SIDE];
};

#if defined(__AVX512F__)
/* 1 / sqrt(x), to a unit in the last place, of an estimate with Newton's steps: a root and a division, one after the other, take longer. */
GRD_INLINE vector reciprocal_roots(vector x)
{
    const vector half = everywhere((T)0.5);
    vector y = nearly_reciprocal_roots(x);
    for (int digits = 14; digits < (sizeof(T) == 4 ? FLT_MANT_DIG : DBL_MANT_DIG); digits *= 2)
        y = multiply_add(y, multiply_add(-half * x * y, y, half), y);
    return y;
}
#endif

GRD_INLINE struct turn turn_of(vector f, vector g)
{
    const vector squares = multiply_add(f, f, g * g);
#if defined(__AVX512F__)
    const vector root = with_sign(reciprocal_roots(squares), f), size = squares * root, c = f * root, s = g * root;
#else
    const vector size = with_sign(square_roots(squares), f), c = f / size, s = g / size;
#endif
    const mask known = is_less(everywhere(least_square), squares);
    return (struct turn){choose(known, c, everywhere(1)), choose_or_zero(known, s), choose(known, size, f)};
}

GRD_INLINE void keep_none(int64_t i, struct turns *ret_turns)
{
    ret_turns->s[i] = ret_turns->t[i] = (vector){0};
}

GRD_INLINE void keep_turn(mask within, struct turn turn, int64_t i, struct turns *ret_turns)
{
    ret_turns->s[i] = choose_or_zero(within, turn.s);
    ret_turns->t[i] = choose_or_zero(within, turn.s / (1 + turn.c));
}

/* Turns some rows of columns: x' = c x + s y, y' = c y - s x, as x += t y, y -= s x, x += t y. The next x is y, which stays in registers. */
GRD_INLINE void turn_rows(int rows, int64_t n, int64_t count, int64_t forth, const vector *s, const vector *t, vector *columns)
{
    vector x[ROWS];
    UNROLLED for (int r = 0; r < rows; r++) x[r] = columns[r];
    for (int64_t k = 0; k < count; k++, columns += forth * n) {
        const vector sine = s[k * forth], tangent = t[k * forth];
        UNROLLED for (int r = 0; r < rows; r++)
        {
            const vector y = columns[forth * n + r], turned = multiply_add(tangent, y, x[r]), next = multiply_add(-sine, turned, y);
            columns[r] = multiply_add(tangent, next, turned);
            x[r] = next;
        }
    }
    UNROLLED for (int r = 0; r < rows; r++) columns[r] = x[r];
}

/* Takes turns [first, end) of columns of n elements: forth from the first one, or back from the last one, whose y is the column before x. */
static NOT_INLINE void turn_columns(int64_t n, int64_t first, int64_t end, bool back, const struct turns *turns, vector *columns)
{
    const int64_t at = back ? end - 1 : first, forth = back ? -1 : 1;
    columns += (back ? end : first) * n;
    for (int64_t i = 0; i < n && first < end; i += ROWS)
        UNROLLED for (int rows = 1; rows <= ROWS; rows++) if (rows == at_most(n - i, ROWS))
            turn_rows(rows, n, end - first, forth, turns->s + at, turns->t + at, columns + i);
}

/* ---- Reflections -------------------------------------------------------------------------------------------------------------------------- */

/* H = 1 - tau v v^H with v[0] = 1. */
struct reflection {
    struct element tau;
    vector head;
};

/* Makes the H whose adjoint leaves only the first of n elements, `step` apart, as `head`, which is real; v is written over the others. */
GRD_INLINE struct reflection reflection_of(int64_t n, int64_t step, int64_t im, vector *x)
{
    const struct element first = element_at(im, x);
    vector tail = im != 0 ? first.im * first.im : (vector){0};
    for (int64_t i = 1; i < n; i++) {
        tail = multiply_add(x[i * step], x[i * step], tail);
        tail = im != 0 ? multiply_add(x[i * step + im], x[i * step + im], tail) : tail;
    }
    const vector squares = multiply_add(first.re, first.re, tail), head = -with_sign(square_roots(squares), first.re),
                 least = first.re - head;
    const mask needed = is_less((vector){0}, tail) & is_less(everywhere(least_square), squares);
    struct element factor = {choose_or_zero(needed, 1 / least), first.im};
    if (im != 0) {
        const vector inverse = choose_or_zero(needed, 1 / multiply_add(least, least, first.im * first.im));
        factor = (struct element){least * inverse, -first.im * inverse};
    }
    for (int64_t i = 1; i < n; i++)
        put_element(im, element_product(im, factor, element_at(im, x + i * step)), x + i * step);
    const vector re = choose_or_zero(needed, -least / head);
    return (struct reflection){{re, im != 0 ? choose_or_zero(needed, -first.im / head) : re}, choose(needed, head, first.re)};
}

/* Multiplies a column by 1 - tau v v^H. Its first element is 0 if `begins`. */
GRD_INLINE void reflect_column(int64_t n, int64_t im, bool begins, struct element tau, const vector *v, vector *x)
{
    struct element total = begins ? (struct element){{0}, {0}} : element_at(im, x);
    for (int64_t i = 1; i < n; i++)
        total = add_product(im, conjugated(im, element_at(im, v + i)), element_at(im, x + i), total);
    total = element_times(im, everywhere(-1), element_product(im, tau, total));
    put_element(im, begins ? total : (struct element){x[0] + total.re, im != 0 ? x[im] + total.im : total.im}, x);
    for (int64_t i = 1; i < n; i++)
        put_element(im, add_product(im, total, element_at(im, v + i), element_at(im, x + i)), x + i);
}

/* Writes the first columns, `leading` apart, of the product of `count` reflections, which lie one below and beside the other from v on, as they will in
 * the result. Column j of the result may lie where reflection j is, or before it. */
GRD_INLINE void multiply_elements(int64_t rows, int64_t columns, int64_t count, int64_t leading, int64_t im, const struct element *tau,
                                  const vector *v, vector *ret_q)
{
    for (int64_t j = count; j < columns; j++)
        for (int64_t i = count; i < rows; i++)
            put_element(im, (struct element){everywhere(i == j), {0}}, ret_q + i + j * leading);
    for (int64_t k = count - 1; k >= 0; k--) {
        const vector *from = v + k * (leading + 1);
        const struct element factor = element_times(im, everywhere(-1), tau[k]);
        vector *q = ret_q + k * (leading + 1);
        for (int64_t j = k + 1; j < columns; j++)
            reflect_column(rows - k, im, true, tau[k], from, q + (j - k) * leading);
        put_element(im, (struct element){1 + factor.re, factor.im}, q);
        for (int64_t i = 1; i < rows - k; i++)
            put_element(im, element_product(im, factor, element_at(im, from + i)), q + i);
    }
}

static NOT_INLINE void multiply_real(int64_t rows, int64_t columns, int64_t count, int64_t leading, const struct element *tau,
                                     const vector *v, vector *ret_q)
{
    multiply_elements(rows, columns, count, leading, 0, tau, v, ret_q);
}

static NOT_INLINE void multiply_complex(int64_t rows, int64_t columns, int64_t count, int64_t leading, const struct element *tau,
                                        const vector *v, vector *ret_q)
{
    multiply_elements(rows, columns, count, leading, leading / 2, tau, v, ret_q);
}

/* multiply_elements, compiled once for real and once for complex elements: it is called in several places. */
GRD_INLINE void multiply_reflections(int64_t rows, int64_t columns, int64_t count, int64_t leading, int64_t im, const struct element *tau,
                                     const vector *v, vector *ret_q)
{
    (im == 0 ? multiply_real : multiply_complex)(rows, columns, count, leading, tau, v, ret_q);
}

/* ---- Between matrices and lanes ---------------------------------------------------------------------------------------------------------- */

/* 1, or -1 where a vector, which is found up to its sign, is to be turned round, so that the sign does not hang on rounding: the value of the polynomial with the
 * coefficients x at 0.7, which for hardly any vector is close to 0, is to be positive. */
GRD_INLINE vector sign_of(int64_t n, const vector *x)
{
    vector value = {0};
    for (int64_t i = n - 1; i >= 0; i--)
        value = multiply_add(value, everywhere((T)0.7), x[i]);
    return choose(is_less(value, (vector){0}), everywhere(-1), everywhere(1));
}

GRD_INLINE void multiply_column(int64_t n, vector factor, vector *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* Returns where the parts of elements of m x n matrices, which lie column by column, or row by row if `by_rows`, are among the lanes, written to
 * `ret_place`; or NULL if they are in the same order. */
static const int32_t *find_parts(int64_t m, int64_t n, int64_t parts, bool by_rows, int32_t *ret_place)
{
    if (parts == 1 && !by_rows)
        return NULL;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t part = 0; part < parts; part++)
                ret_place[(by_rows ? j + i * n : i + j * m) * parts + part] = (int32_t)(i + (j * parts + part) * m);
    return ret_place;
}

/* Writes the n elements of a column, lane l to to[l], with no zero that is negative. */
static void scatter_column(int64_t n, int64_t parts, int64_t count, const vector *from, T *const *to)
{
    vector column[GRD_LANES_SIDE];
    int32_t place[GRD_LANES_SIDE];
    for (int64_t i = 0; i < n * parts; i++)
        column[i] = from[i] + 0;
    write_lanes(n * parts, count, find_parts(n, 1, parts, false, place), to, column);
}

/* Powers of two about as large as the largest elements; and where all elements are finite. */
struct scales {
    vector scale;
    mask finite;
};

/* Divides by them, so that squares neither overflow nor vanish. Elements that are not finite make a matrix 0. Of squares the lower triangle is taken if `lower`. */
static struct scales scale_lanes(int64_t m, int64_t n, int64_t parts, bool lower, vector *a)
{
    vector largest = everywhere(least_scale), differences = {0};
    for (int64_t j = 0; j < n * parts; j++)
        for (int64_t i = lower ? j / parts : 0; i < m; i++) {
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
    for (int64_t j = 0; j < n * parts; j++)
        for (int64_t i = lower ? j / parts : 0; i < m; i++)
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
