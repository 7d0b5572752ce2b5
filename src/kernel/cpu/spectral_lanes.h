/* Defines functions that eigh_lanes.h and svd_lanes.h share, for masks, plane rotations, Householder reflections, sorting of results, and copies
 * between matrices and lanes. Included by jacobi.c only.
 *
 * Many small matrices are decomposed at once, one in each lane of a vector. Element (i, j) of all matrices is one vector, or two vectors for complex
 * matrices: the imaginary part is stored `im` vectors after the real part. `im` is 0 for real matrices.
 * Invariant: lanes do not mix, and a lane with nothing to do keeps its numbers except for the sign of zeros, which is removed when results are
 * written. So the bits of a result do not depend on the matrices in other lanes. */
#ifndef GRD_KERNEL_CPU_SPECTRAL_LANES_H
#define GRD_KERNEL_CPU_SPECTRAL_LANES_H

#include "kernel/cpu/matrix_groups.h"

/* GROUPS: number of groups of LANES matrices that are rotated alternately, so that one group computes while the other waits for a division or a
 * square root. MATRICES: number of matrices in all groups. */
enum { GROUPS = 2, MATRICES = GROUPS * LANES, ROWS = 4 /* rows rotated at a time */ };

/* A sum of two squares below this number counts as 0, because its square root would have too few digits for a rotation. The matrices are scaled so
 * that their largest element is about 1. */
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

/* Returns the lanes of x where the mask m is set, and the lanes of y elsewhere. */
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

/* Returns the lanes of x where the mask m is set, and 0 elsewhere. */
GRD_INLINE vector choose_or_zero(mask m, vector x)
{
    return choose(m, x, (vector){0});
}

/* Returns a vector of integers in which only the sign bit of each lane is set. */
GRD_INLINE bits sign_bit(void)
{
    return (bits){0} + ((B)1 << (8 * sizeof(T) - 1));
}

/* Returns |x| with the sign of y. */
GRD_INLINE vector with_sign(vector x, vector y)
{
    return (vector)(((bits)x & ~sign_bit()) | ((bits)y & sign_bit()));
}

/* ---- Elements ----------------------------------------------------------------------------------------------------------------------------- */

/* One element of each matrix of a group, with one matrix in each lane. */
struct element {
    vector re, im; /* im is not used for real matrices */
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

/* Returns x y + z in each lane. If `im` is 0, as for real matrices, computes only the real part. */
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

/* A rotation in each lane that turns a pair (f, g) into (size, 0), that is c f + s g = size and c g - s f = 0. c is not negative, and size has the
 * sign of f. If f and g are negligible, c is 1 and s is 0. */
struct turn {
    vector c, s, size;
};

/* Consecutive rotations. Rotation i rotates columns i and i + 1 and is given by s and t = s / (1 + c). Lanes in which s and t are 0 are not
 * rotated. */
struct turns {
    vector s[GRD_LANES_SIDE], t[GRD_LANES_SIDE];
};

#if defined(__AVX512F__)
/* Returns 1 / sqrt(x) with an error of one unit in the last place, by Newton steps from an estimate. A square root followed by a division
 * would take longer. */
GRD_INLINE vector reciprocal_roots(vector x)
{
    const vector half = everywhere((T)0.5);
    vector y = nearly_reciprocal_roots(x);
    for (int digits = 14; digits < (sizeof(T) == 4 ? FLT_MANT_DIG : DBL_MANT_DIG); digits *= 2)
        y = multiply_add(y, multiply_add(-half * x * y, y, half), y);
    return y;
}
#endif

/* Returns the rotation that turns (f, g) into (size, 0), in each lane. */
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

/* Stores "no rotation" as rotation number i, in all lanes. */
GRD_INLINE void keep_none(int64_t i, struct turns *ret_turns)
{
    ret_turns->s[i] = ret_turns->t[i] = (vector){0};
}

/* Stores `turn` as rotation number i in the lanes of `within`, and "no rotation" in the other lanes. */
GRD_INLINE void keep_turn(mask within, struct turn turn, int64_t i, struct turns *ret_turns)
{
    ret_turns->s[i] = choose_or_zero(within, turn.s);
    ret_turns->t[i] = choose_or_zero(within, turn.s / (1 + turn.c));
}

/* Applies `count` rotations to `rows` rows of consecutive columns of n elements each. A rotation of two columns x and y computes x' = c x + s y and
 * y' = c y - s x in three steps: x += t y, y -= s x, x += t y. The new y is the x of the next rotation and stays in registers. The next rotation is
 * one column to the right if `forth` is 1, and one to the left if it is -1. */
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

/* Applies rotations [first, end) to columns of n elements, in ascending order, or in descending order if `back`. Rotation i rotates columns i and
 * i + 1: they are x and y in the formulas of turn_rows(), or y and x if `back`. */
static NOT_INLINE void turn_columns(int64_t n, int64_t first, int64_t end, bool back, const struct turns *turns, vector *columns)
{
    const int64_t at = back ? end - 1 : first, forth = back ? -1 : 1;
    columns += (back ? end : first) * n;
    for (int64_t i = 0; i < n && first < end; i += ROWS)
        UNROLLED for (int rows = 1; rows <= ROWS; rows++) if (rows == grd_least(n - i, ROWS))
            turn_rows(rows, n, end - first, forth, turns->s + at, turns->t + at, columns + i);
}

/* ---- Reflections -------------------------------------------------------------------------------------------------------------------------- */

/* A Householder reflection H = 1 - tau v v^H with v[0] = 1. `head` is the first element of the reflected vector, which is real. */
struct reflection {
    struct element tau;
    vector head;
};

/* Returns the reflection H = 1 - tau v v^H whose adjoint maps x to `head` times the first unit vector. x has n elements, which are `step` vectors
 * apart. Overwrites all elements of x but the first with those of v. `im` is the number of vectors from a real part to its imaginary part, 0 for real
 * matrices. */
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

/* Multiplies column x, which has n elements, by the reflection 1 - tau v v^H. If `begins`, the first element of x counts as 0. */
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

/* Writes the first `columns` columns of the product of `count` reflections to ret_q. The vector of reflection k starts at v + k * (leading + 1), and
 * element (k, k) of the result has the same offset in ret_q. ret_q may be v or v + leading, because no reflection is overwritten before it has been
 * used. */
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

/* Does the same as multiply_elements(). multiply_real() and multiply_complex() are copies of that function that are not inlined. In the copy for
 * real matrices `im` is the constant 0. */
GRD_INLINE void multiply_reflections(int64_t rows, int64_t columns, int64_t count, int64_t leading, int64_t im, const struct element *tau,
                                     const vector *v, vector *ret_q)
{
    (im == 0 ? multiply_real : multiply_complex)(rows, columns, count, leading, tau, v, ret_q);
}

/* ---- Between matrices and lanes ---------------------------------------------------------------------------------------------------------- */

/* Returns 1 or -1, the factor by which an eigenvector x must be multiplied so that its sign does not depend on rounding. The factor makes the
 * polynomial with the coefficients x positive at 0.7. The value there is hardly ever close to 0, so rounding hardly ever changes its sign. */
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

/* Writes to ret_place[i] the index of the vector that holds real number i of an m x n matrix in memory. In memory the matrix is column-major, or
 * row-major if `by_rows`, with `parts` real numbers per element. The vectors are column-major and hold the real parts of a column before its
 * imaginary parts. Returns ret_place, or NULL if the indices are 0, 1, 2, ... */
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

/* Copies one column from each of `count` lanes to memory. The column of lane l goes to the address to[l]. A column has n elements of `parts` real
 * numbers each. Adding 0 turns negative zeros into positive ones. */
static void scatter_column(int64_t n, int64_t parts, int64_t count, const vector *from, T *const *to)
{
    vector column[GRD_LANES_SIDE];
    int32_t place[GRD_LANES_SIDE];
    for (int64_t i = 0; i < n * parts; i++)
        column[i] = from[i] + 0;
    write_lanes(n * parts, count, find_parts(n, 1, parts, false, place), to, column);
}

/* The results of scale_lanes() for the matrix in each lane. `scale` is a power of two about as large as the largest element of the matrix. `finite`
 * is the mask of the lanes whose matrix has only finite elements. */
struct scales {
    vector scale;
    mask finite;
};

/* Divides the m x n matrix in each lane by a power of two, its scale, so that squares of its elements neither overflow nor vanish. Returns the
 * scales. A matrix with an element that is not finite becomes 0. If `lower`, only the lower triangles are used. `parts` is the number of real numbers
 * per element, 1 or 2. */
static struct scales scale_lanes(int64_t m, int64_t n, int64_t parts, bool lower, vector *a)
{
    vector largest = everywhere(least_scale), differences = {0};
    for (int64_t j = 0; j < n * parts; j++)
        for (int64_t i = lower ? j / parts : 0; i < m; i++) {
            const vector x = magnitudes(a[i + j * m]);
            largest = choose(is_less(largest, x), x, largest);
            differences += x - x; /* x - x is NaN if x is not finite */
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

/* Writes to ret_places[j][l] the position that the number in lane l of numbers[j] has in the sorted sequence of the n numbers of that lane. Equal
 * numbers keep their order. */
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
