/* Computes fast Fourier transforms; see kernel/fft.h. The build compiles this file once for float32 and once for float64. A line is a series of
 * numbers that is transformed. As many lines as a vector has lanes are transformed together, one line in each lane, by passes in Stockham's order,
 * which need no permutation. Other functions load lines into lanes and store them again.
 *
 * Invariant: the arithmetic on an element depends neither on its lane, nor on the other lines, nor on whether a line is transformed in one lane or as
 * a matrix whose columns are in the lanes. Therefore every product that is added to another number is written as multiply_add() or
 * multiply_subtract(). A compiler that contracts x * y + z would do so in some places and not in others. */
#include "kernel/fft.h"

#include <string.h>

#include "kernel/cpu/shuffle.h"

/* A vector of complex numbers, one in each lane. */
typedef struct {
    vector re, im;
} pair;

GRD_INLINE pair load_pair(const lane *p)
{
    return (pair){*(const vector *)p, *(const vector *)(p + LANES)};
}

GRD_INLINE void store_pair(lane *p, pair x)
{
    *(vector *)p = x.re;
    *(vector *)(p + LANES) = x.im;
}

GRD_INLINE pair plus(pair x, pair y)
{
    return (pair){x.re + y.re, x.im + y.im};
}

GRD_INLINE pair minus(pair x, pair y)
{
    return (pair){x.re - y.re, x.im - y.im};
}

/* Returns -i x. */
GRD_INLINE pair turned_back(pair x)
{
    return (pair){x.im, -x.re};
}

GRD_INLINE pair conjugate(pair x)
{
    return (pair){x.re, -x.im};
}

GRD_INLINE pair product(pair x, pair y)
{
    return (pair){multiply_subtract(x.re, y.re, x.im * y.im), multiply_add(x.re, y.im, x.im * y.re)};
}

GRD_INLINE vector in_all_lanes(lane x)
{
    return x - (vector){0}; /* not 0 + x, which would lose the sign of -0 */
}

/* Returns the complex number w[0] + i w[distance] in all lanes. */
GRD_INLINE pair root_at(const lane *w, int64_t distance)
{
    return (pair){in_all_lanes(w[0]), in_all_lanes(w[distance])};
}

/* ---- Lines to lanes and back --------------------------------------------------------------------------------------------------------- */

/* Returns how many lines, beginning with line `first`, follow each other at a distance of `step` real numbers. A line is the elements along the
 * transformed dimension; lines->offsets says where each line begins. */
GRD_INLINE int64_t neighbours_from(const struct grd_fft_lines *lines, int64_t first, int64_t step)
{
    int64_t count = 1;
    while (first + count < lines->count && lines->offsets[first + count] == lines->offsets[first] + count * step)
        count++;
    return count;
}

/* True if the elements of the lines are complex and the two parts of each element are neighbours in memory. *ret_is_exchanged is true if the
 * imaginary part comes first, and *ret_data is the address of the part that comes first. */
GRD_INLINE bool are_interleaved(const struct grd_fft_lines *lines, bool *ret_is_exchanged, lane **ret_data)
{
    lane *const re = (lane *)lines->re, *const im = (lane *)lines->im;
    *ret_is_exchanged = im + 1 == re;
    *ret_data = *ret_is_exchanged ? im : re;
    return im != NULL && (re + 1 == im || im + 1 == re);
}

/* Loads LANES lines into lanes, one line into each lane. A line is the elements along the transformed dimension, here n contiguous real numbers.
 * Number k of each line goes to the vector at to + k * step. In a complex line, real and imaginary parts alternate. If `is_exchanged`, imaginary
 * parts come first in memory, but real parts come first in the vectors. */
static void take_turned(const struct grd_fft_lines *from, const lane *data, int64_t n, int64_t step, bool is_exchanged, lane *to)
{
    const int64_t swap = is_exchanged ? step : 0;
    if (n < LANES) {
        for (int64_t k = 0; k < n; k++)
            for (int l = 0; l < LANES; l++)
                to[k * step + (k % 2 ? -swap : swap) + l] = data[from->offsets[l] + k];
        return;
    }
    for (int64_t k = 0; k < n; k += LANES) {
        /* the last block of LANES numbers ends at n, so it may overlap the block before it */
        const int64_t first = grd_least(k, n - LANES);
        lane *row = to + first * step;
        vector v[LANES];
        UNROLLED for (int l = 0; l < LANES; l++) v[l] = load_vector(data + from->offsets[l] + first);
        transpose_lanes(v);
        UNROLLED for (int i = 0; i < LANES; i++, row += step) * (vector *)(row + (i % 2 ? -swap : swap)) = v[i];
    }
}

/* Loads n complex elements of each of `count` <= LANES lines into lanes. A line is the elements along the transformed dimension. Elements with the
 * same index in neighbouring lines are neighbours in memory, and so are the real and the imaginary part of an element. `element` is the number of
 * real numbers from one index to the next. If `is_exchanged`, the imaginary part comes first in memory. */
GRD_INLINE void take_interleaved(int64_t n, const lane *data, int64_t element, int64_t count, bool is_exchanged, lane *to)
{
    const lane_mask all = first_lanes(count), low = first_lanes(grd_least(2 * count, LANES)),
                    high = first_lanes(2 * count - grd_least(2 * count, LANES));
    for (int64_t k = 0; k < n; k++, data += element, to += 2 * LANES) {
        const bool is_full = count == LANES;
        const vector x = is_full ? load_vector(data) : load_lanes(data, low),
                     y = is_full ? load_vector(data + LANES) : load_lanes(data + LANES, high);
        const vector even = evens(x, y), odd = odds(x, y);
        if (is_full) {
            store_pair(to, is_exchanged ? (pair){odd, even} : (pair){even, odd});
        } else {
            store_lanes(to, all, is_exchanged ? odd : even);
            store_lanes(to + LANES, all, is_exchanged ? even : odd);
        }
    }
}

/* Loads n elements of `count` lines into lanes, from separate arrays of real and imaginary parts. A line is the elements along the transformed
 * dimension. `im` is NULL if the elements are real. Elements with the same index in neighbouring lines are neighbours in memory. `element` is the
 * distance from one index to the next. */
static void take_parts(int64_t n, const lane *re, const lane *im, int64_t element, int64_t count, lane *to)
{
    const lane_mask all = first_lanes(count);
    for (int64_t k = 0; k < n; k++, to += 2 * LANES) {
        store_lanes(to, all, load_lanes(re + k * element, all));
        if (im != NULL)
            store_lanes(to + LANES, all, load_lanes(im + k * element, all));
    }
}

/* Loads the first n elements of up to LANES lines into the lanes at `data`, one line into each lane. A line is the elements along the transformed
 * dimension. How lines lie in memory decides which loop is used. Lanes without a line are 0 or hold a copy of another line. */
static void take(const struct grd_fft_lines *from, int64_t n, char *data)
{
    lane *const to = (lane *)data, *const re = (lane *)from->re, *const im = (lane *)from->im, *parts;
    bool is_exchanged;
    const bool is_interleaved = are_interleaved(from, &is_exchanged, &parts);
    if (is_interleaved && from->element == 2) {
        take_turned(from, parts, 2 * n, LANES, is_exchanged, to);
        return;
    }
    if (im == NULL && from->element == 1) {
        take_turned(from, re, n, 2 * LANES, false, to);
        for (int64_t k = 0; k < n; k++)
            *(vector *)(to + 2 * LANES * k + LANES) = (vector){0};
        return;
    }
    if (from->count < LANES || im == NULL)
        memset(to, 0, (size_t)(n * 2 * LANES) * sizeof *to);
    for (int64_t l = 0, count; l < from->count; l += count) {
        const int64_t at = from->offsets[l];
        count = neighbours_from(from, l, is_interleaved ? 2 : 1);
        if (!is_interleaved)
            take_parts(n, re + at, im != NULL ? im + at : NULL, from->element, count, to + l);
        else if (count == LANES) /* passes LANES as a constant, for which the compiler makes a loop without masks */
            take_interleaved(n, parts + at, from->element, LANES, is_exchanged, to);
        else
            take_interleaved(n, parts + at, from->element, count, is_exchanged, to + l);
    }
}

/* Multiplies the n numbers in each lane by `scale` and stores them contiguously to one line per lane. A line is the elements along the transformed
 * dimension. Number k of each line is in the vector at from + k * step. In a complex line, real and imaginary parts alternate. If `is_exchanged`,
 * imaginary parts come first in memory, but real parts come first in the vectors. */
static void put_turned(const lane *from, int64_t n, int64_t step, bool is_exchanged, lane scale, lane *data, const struct grd_fft_lines *to)
{
    const int64_t swap = is_exchanged ? step : 0;
    if (n < LANES) {
        for (int64_t k = 0; k < n; k++)
            for (int l = 0; l < to->count; l++)
                data[to->offsets[l] + k] = from[k * step + (k % 2 ? -swap : swap) + l] * scale;
        return;
    }
    for (int64_t k = 0; k < n; k += LANES) {
        const int64_t first = grd_least(k, n - LANES);
        const lane *row = from + first * step;
        vector v[LANES];
        UNROLLED for (int i = 0; i < LANES; i++, row += step) v[i] = *(const vector *)(row + (i % 2 ? -swap : swap)) * scale;
        transpose_lanes(v);
        UNROLLED for (int l = 0; l < LANES; l++) if (l < to->count) store_vector(data + to->offsets[l] + first, v[l]);
    }
}

/* Multiplies n complex elements in each of `count` lanes by `scale` and stores them interleaved. Elements with the same index in neighbouring
 * lanes become neighbours in memory. The real part comes first, or the imaginary part if `is_exchanged`. `element` is the number of real numbers
 * from one index to the next. */
GRD_INLINE void put_interleaved(const lane *from, int64_t n, lane scale, int64_t element, int64_t count, bool is_exchanged, lane *data)
{
    const lane_mask low = first_lanes(grd_least(2 * count, LANES)), high = first_lanes(2 * count - grd_least(2 * count, LANES));
    for (int64_t k = 0; k < n; k++, from += 2 * LANES, data += element) {
        const vector re = load_vector(from) * scale, im = load_vector(from + LANES) * scale;
        const vector first = is_exchanged ? im : re, second = is_exchanged ? re : im;
        const vector x = low_pairs(first, second), y = high_pairs(first, second);
        if (count == LANES) {
            store_vector(data, x);
            store_vector(data + LANES, y);
        } else {
            store_lanes(data, low, x);
            store_lanes(data + LANES, high, y);
        }
    }
}

/* Multiplies n elements in each of `count` lanes by `scale` and stores the real parts to `re` and, unless `im` is NULL, the imaginary parts to
 * `im`. Elements with the same index in neighbouring lanes become neighbours in memory. `element` is the distance from one index to the next. */
static void put_parts(const lane *from, int64_t n, lane scale, int64_t element, int64_t count, lane *re, lane *im)
{
    const lane_mask all = first_lanes(count);
    for (int64_t k = 0; k < n; k++, from += 2 * LANES) {
        store_lanes(re + k * element, all, load_vector(from) * scale);
        if (im != NULL)
            store_lanes(im + k * element, all, load_vector(from + LANES) * scale);
    }
}

/* Multiplies n elements of each lane by `factor` and stores them to one line per lane; *to says where the lines are in memory. A line is the
 * elements along the transformed dimension. This is the inverse of take(). */
static void put(const char *data, int64_t n, double factor, const struct grd_fft_lines *to)
{
    const lane *const from = (const lane *)data, scale = (lane)factor;
    lane *const re = (lane *)to->re, *const im = (lane *)to->im, *parts;
    bool is_exchanged;
    const bool is_interleaved = are_interleaved(to, &is_exchanged, &parts);
    if (is_interleaved && to->element == 2) {
        put_turned(from, 2 * n, LANES, is_exchanged, scale, parts, to);
        return;
    }
    if (im == NULL && to->element == 1) {
        put_turned(from, n, 2 * LANES, false, scale, re, to);
        return;
    }
    for (int64_t l = 0, count; l < to->count; l += count) {
        const int64_t at = to->offsets[l];
        count = neighbours_from(to, l, is_interleaved ? 2 : 1);
        if (!is_interleaved)
            put_parts(from + l, n, scale, to->element, count, re + at, im != NULL ? im + at : NULL);
        else if (count == LANES) /* passes LANES as a constant, for which the compiler makes a loop without masks */
            put_interleaved(from, n, scale, to->element, LANES, is_exchanged, parts + at);
        else
            put_interleaved(from + l, n, scale, to->element, count, is_exchanged, parts + at);
    }
}

/* ---- Passes ---------------------------------------------------------------------------------------------------------------------------- */

/* Replaces x[0] and x[1] by their Fourier transform. */
GRD_INLINE void transform_2(pair *x)
{
    const pair y = x[0];
    x[0] = plus(y, x[1]);
    x[1] = minus(y, x[1]);
}

/* Replaces x[0] to x[3] by their Fourier transform. */
GRD_INLINE void transform_4(pair *x)
{
    const pair a = plus(x[0], x[2]), b = minus(x[0], x[2]), c = plus(x[1], x[3]), d = turned_back(minus(x[1], x[3]));
    x[0] = plus(a, c);
    x[1] = plus(b, d);
    x[2] = minus(a, c);
    x[3] = minus(b, d);
}

/* Replaces x[0] to x[7] by their Fourier transform, from the transforms of the elements with even and with odd indices. */
GRD_INLINE void transform_8(pair *x)
{
    const vector half = in_all_lanes((lane)0.70710678118654752440L);
    pair even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    transform_4(even);
    transform_4(odd);
    const pair a = {odd[1].re + odd[1].im, odd[1].im - odd[1].re}, b = {odd[3].im - odd[3].re, odd[3].re + odd[3].im};
    odd[2] = turned_back(odd[2]);
    UNROLLED for (int k = 0; k < 4; k += 2)
    {
        x[k] = plus(even[k], odd[k]);
        x[k + 4] = minus(even[k], odd[k]);
    }
    x[1] = (pair){multiply_add(a.re, half, even[1].re), multiply_add(a.im, half, even[1].im)};
    x[5] = (pair){multiply_add(a.re, -half, even[1].re), multiply_add(a.im, -half, even[1].im)};
    x[3] = (pair){multiply_add(b.re, half, even[3].re), multiply_add(b.im, -half, even[3].im)};
    x[7] = (pair){multiply_add(b.re, -half, even[3].re), multiply_add(b.im, half, even[3].im)};
}

/* Replaces x[0] to x[radix - 1] by their Fourier transform, for an odd `radix`. `roots` holds all roots of unity of the order `radix`. The roots that
 * belong to x[k] and x[radix - k] are conjugate, so the sum of these two elements is multiplied with cosines and their difference with sines. */
GRD_INLINE void transform_odd(const int radix, const lane *roots, pair *x)
{
    const int half = radix / 2;
    const pair first = x[0];
    pair sums[GRD_FFT_MOST_RADIX / 2], differences[GRD_FFT_MOST_RADIX / 2];
    for (int k = 1; k <= half; k++) {
        sums[k - 1] = plus(x[k], x[radix - k]);
        differences[k - 1] = minus(x[k], x[radix - k]);
        x[0] = plus(x[0], sums[k - 1]);
    }
    for (int k = 1; k <= half; k++) {
        pair even = first, odd = {{0}, {0}};
        int e = 0;
        for (int j = 0; j < half; j++) {
            e = e + k < radix ? e + k : e + k - radix;
            const pair root = root_at(roots + 2 * e, 1);
            even.re = multiply_add(sums[j].re, root.re, even.re);
            even.im = multiply_add(sums[j].im, root.re, even.im);
            odd.re = multiply_add(differences[j].re, root.im, odd.re);
            odd.im = multiply_add(differences[j].im, root.im, odd.im);
        }
        x[k] = (pair){even.re - odd.im, even.im + odd.re};
        x[radix - k] = (pair){even.re + odd.im, even.im - odd.re};
    }
}

/* clang-format off */
static const lane roots_3[] = {1, 0, -0.5L, -0.86602540378443864676L, -0.5L, 0.86602540378443864676L};
static const lane roots_5[] = {1, 0, 0.30901699437494742410L, -0.95105651629515357212L, -0.80901699437494742410L, -0.58778525229247312917L,
                               -0.80901699437494742410L, 0.58778525229247312917L, 0.30901699437494742410L, 0.95105651629515357212L};
static const lane roots_7[] = {1, 0, 0.62348980185873353053L, -0.78183148246802980871L, -0.22252093395631440429L, -0.97492791218182360702L,
                               -0.90096886790241912624L, -0.43388373911755812048L, -0.90096886790241912624L, 0.43388373911755812048L,
                               -0.22252093395631440429L, 0.97492791218182360702L, 0.62348980185873353053L, 0.78183148246802980871L};
/* clang-format on */

GRD_INLINE void transform_3(pair *x)
{
    transform_odd(3, roots_3, x);
}

GRD_INLINE void transform_5(pair *x)
{
    transform_odd(5, roots_5, x);
}

GRD_INLINE void transform_7(pair *x)
{
    transform_odd(7, roots_7, x);
}

/* Computes the transform (p, q), one of the m * s transforms of length `radix` that make up a pass of the FFT. p is less than m, and q is less than
 * s. Multiplies all results but the first by the twiddle factors `w`, unless `w` is NULL. */
GRD_INLINE void butterfly(const int radix, void (*transform)(pair *), const struct grd_fft_pass *pass, int64_t p, int64_t q, const lane *w,
                          const lane *from, lane *to)
{
    const int64_t m = pass->m, s = pass->s;
    pair x[8];
    UNROLLED for (int k = 0; k < radix; k++) x[k] = load_pair(from + 2 * LANES * (q + s * (p + m * k)));
    transform(x);
    store_pair(to + 2 * LANES * (q + s * radix * p), x[0]);
    UNROLLED for (int k = 1; k < radix; k++)
        store_pair(to + 2 * LANES * (q + s * (radix * p + k)), w == NULL ? x[k] : product(x[k], root_at(w + 2 * (k - 1), 1)));
}

/* Returns the address of the factors by which the results of the transforms with number p are multiplied. They are in the table pass->factors, which
 * has one column for each p. The table consists of blocks of LANES columns, with one column in each lane, which is the layout that turn() reads. */
GRD_INLINE const lane *factors_of(const struct grd_fft_pass *pass, int64_t p)
{
    const int64_t rows = (pass->radix * pass->s + LANES - 1) / LANES * LANES;
    return (const lane *)pass->factors + p / LANES * rows * 2 * LANES + p % LANES;
}

/* Computes one pass of a Fourier transform, which consists of m * s transforms of length `radix`. All results are multiplied by factors from the
 * table pass->factors. */
GRD_INLINE void pass_with_factors(const int radix, void (*transform)(pair *), const struct grd_fft_pass *pass, const lane *from, lane *to)
{
    const int64_t m = pass->m, s = pass->s;
    for (int64_t p = 0; p < m; p++) {
        const lane *const w = factors_of(pass, p);
        for (int64_t q = 0; q < s; q++) {
            pair x[8];
            UNROLLED for (int k = 0; k < radix; k++) x[k] = load_pair(from + 2 * LANES * (q + s * (p + m * k)));
            transform(x);
            UNROLLED for (int k = 0; k < radix; k++)
                store_pair(to + 2 * LANES * (q + s * (radix * p + k)), product(x[k], root_at(w + 2 * LANES * (q + s * k), LANES)));
        }
    }
}

/* Computes one pass of a Fourier transform, which consists of m * s transforms of length `radix`. A transform has two numbers, p < m and q < s.
 * `transform` computes one transform. If p is less than pass->repeats, all its twiddle factors are 1, so the results are not multiplied. */
GRD_INLINE void pass_of(const int radix, void (*transform)(pair *), const struct grd_fft_pass *pass, const char *from, char *to)
{
    const int64_t alike = pass->repeats;
    const lane *w = (const lane *)pass->twiddles;
    if (pass->factors != NULL) {
        pass_with_factors(radix, transform, pass, (const lane *)from, (lane *)to);
        return;
    }
    for (int64_t p = 0; p < alike; p++)
        for (int64_t q = 0; q < pass->s; q++)
            butterfly(radix, transform, pass, p, q, NULL, (const lane *)from, (lane *)to);
    for (int64_t first = alike; first < pass->m; first += alike) {
        w += 2 * (radix - 1);
        for (int64_t p = first; p < first + alike; p++)
            for (int64_t q = 0; q < pass->s; q++)
                butterfly(radix, transform, pass, p, q, w, (const lane *)from, (lane *)to);
    }
}

static void pass_2(const struct grd_fft_pass *pass, const char *from, char *to)
{
    pass_of(2, transform_2, pass, from, to);
}

static void pass_3(const struct grd_fft_pass *pass, const char *from, char *to)
{
    pass_of(3, transform_3, pass, from, to);
}

static void pass_4(const struct grd_fft_pass *pass, const char *from, char *to)
{
    pass_of(4, transform_4, pass, from, to);
}

static void pass_5(const struct grd_fft_pass *pass, const char *from, char *to)
{
    pass_of(5, transform_5, pass, from, to);
}

static void pass_7(const struct grd_fft_pass *pass, const char *from, char *to)
{
    pass_of(7, transform_7, pass, from, to);
}

static void pass_8(const struct grd_fft_pass *pass, const char *from, char *to)
{
    pass_of(8, transform_8, pass, from, to);
}

/* Computes one pass of a Fourier transform, which consists of m * s transforms of length `radix`, for an odd radix that has no transform_<radix>()
 * function. */
static void pass_odd(const struct grd_fft_pass *pass, const char *from, char *to)
{
    const int64_t radix = pass->radix, m = pass->m, s = pass->s;
    for (int64_t p = 0; p < m; p++) {
        const lane *const twiddles = (const lane *)pass->twiddles + p / pass->repeats * (radix - 1) * 2;
        const lane *const factors = pass->factors != NULL ? factors_of(pass, p) : NULL;
        for (int64_t q = 0; q < s; q++) {
            pair x[GRD_FFT_MOST_RADIX] = {load_pair((const lane *)from + 2 * LANES * (q + s * p))};
            for (int64_t k = 1; k < radix; k++)
                x[k] = load_pair((const lane *)from + 2 * LANES * (q + s * (p + m * k)));
            transform_odd((int)radix, (const lane *)pass->roots, x);
            for (int64_t k = 0; k < radix; k++) {
                if (factors != NULL)
                    x[k] = product(x[k], root_at(factors + 2 * LANES * (q + s * k), LANES));
                else if (k > 0 && p >= pass->repeats)
                    x[k] = product(x[k], root_at(twiddles + 2 * (k - 1), 1));
                store_pair((lane *)to + 2 * LANES * (q + s * (radix * p + k)), x[k]);
            }
        }
    }
}

static void pass(const struct grd_fft_pass *pass, const char *from, char *to)
{
    static void (*const written[])(const struct grd_fft_pass *, const char *,
                                   char *) = {[2] = pass_2, [3] = pass_3, [4] = pass_4, [5] = pass_5, [7] = pass_7, [8] = pass_8};
    (pass->radix <= 8 ? written[pass->radix] : pass_odd)(pass, from, to);
}

/* ---- Elements in lanes -------------------------------------------------------------------------------------------------------------- */

/* Multiplies n elements of each of LANES columns of a matrix by their factors and transposes the products. In `from`, each lane holds one column.
 * In `to`, each vector holds LANES neighbouring elements of one column. The next LANES elements of the columns go to_block bytes further on. */
static void turn(int64_t n, const char *from, const char *factors, char *to, int64_t to_block)
{
    for (int64_t first = 0; first < n; first += LANES) {
        vector re[LANES], im[LANES];
        UNROLLED for (int l = 0; l < LANES; l++)
        {
            const int64_t at = 2 * LANES * (first + l);
            const pair x = product(load_pair((const lane *)from + at), load_pair((const lane *)factors + at));
            re[l] = x.re;
            im[l] = x.im;
        }
        transpose_lanes(re);
        transpose_lanes(im);
        UNROLLED for (int l = 0; l < LANES; l++) store_pair((lane *)(to + first / LANES * to_block) + 2 * LANES * l, (pair){re[l], im[l]});
    }
}

static void multiply(int64_t n, const char *from, const char *factors, bool is_conjugate, char *to)
{
    for (int64_t k = 0; k < n; k++) {
        const pair x = load_pair((const lane *)from + 2 * LANES * k);
        store_pair((lane *)to + 2 * LANES * k, product(is_conjugate ? conjugate(x) : x, root_at((const lane *)factors + 2 * k, 1)));
    }
}

GRD_INLINE pair scaled(pair x, lane factor)
{
    return (pair){x.re * factor, x.im * factor};
}

/* Let Z be the transform of h complex numbers. The real and imaginary parts of these numbers, in the order re, im, re, im, ..., are 2 h real numbers.
 * Let X be the transform of the 2 h real numbers. Replaces Z[k] in *z by X[k], and Z[h - k] in *back by X[h - k]. w is the root
 * exp(-2 pi i k / (2 h)). Let E be the transform of the h real parts, and O the transform of the h imaginary parts. The formulas are:
 *
 *     Z[k] = E[k] + i O[k]
 *     X[k] = E[k] + w O[k]
 *     conj(X[h - k]) = E[k] - w O[k] */
GRD_INLINE void unfold_two(pair *z, pair *back, pair w)
{
    const pair opposite = conjugate(*back), even = plus(*z, opposite), odd = product(turned_back(minus(*z, opposite)), w);
    *z = scaled(plus(even, odd), (lane)0.5);
    *back = scaled(conjugate(minus(even, odd)), (lane)0.5);
}

/* Let X be the transform of 2 h real numbers. Let w be the root exp(-2 pi i k / (2 h)), and let
 *
 *     Z[k] = (X[k] + conj(X[h - k])) + i (X[k] - conj(X[h - k])) / w
 *
 * Replaces X[k] in *x by Z[k], and X[h - k] in *back by Z[h - k]. In both, exchanges the real and the imaginary part, because a forward transform is
 * the inverse transform if the parts are exchanged in its input and in its output. */
GRD_INLINE void fold_two(pair *x, pair *back, pair w)
{
    const pair opposite = conjugate(*back), even = plus(*x, opposite), odd = turned_back(product(conjugate(minus(*x, opposite)), w));
    const pair z = plus(even, conjugate(odd)), y = minus(conjugate(even), odd);
    *x = (pair){z.im, z.re};
    *back = (pair){y.im, y.re};
}

/* Writes elements 0 to h of the transform of 2 h real numbers to `to`. roots[k] is exp(-2 pi i k / (2 h)). `from` holds the transform of h complex
 * numbers, whose real parts are the real numbers with even indices and whose imaginary parts are those with odd indices. */
static void unfold(int64_t h, const char *from, const char *roots, char *to)
{
    for (int64_t k = 0; k <= h / 2; k++) {
        pair z = load_pair((const lane *)from + 2 * LANES * k), back = load_pair((const lane *)from + 2 * LANES * (k == 0 ? 0 : h - k));
        unfold_two(&z, &back, root_at((const lane *)roots + 2 * k, 1));
        store_pair((lane *)to + 2 * LANES * (h - k), back);
        store_pair((lane *)to + 2 * LANES * k, z);
    }
}

/* Inverts unfold(). `from` holds elements 0 to h of the transform of 2 h real numbers. Let z be h complex numbers, whose real parts are the real
 * numbers with even indices, and whose imaginary parts are those with odd indices. Writes 2 times the transform of z, with the real and the imaginary
 * part of each element exchanged. A forward transform of these elements gives z times 2 h, again with exchanged parts. */
static void fold(int64_t h, const char *from, const char *roots, char *to)
{
    for (int64_t k = 0; k <= h / 2; k++) {
        pair x = load_pair((const lane *)from + 2 * LANES * k), back = load_pair((const lane *)from + 2 * LANES * (h - k));
        if (k == 0)
            x.im = back.im = (vector){0};
        fold_two(&x, &back, root_at((const lane *)roots + 2 * k, 1));
        store_pair((lane *)to + 2 * LANES * (h - k), back);
        store_pair((lane *)to + 2 * LANES * k, x);
    }
}

/* Writes the conjugates of all n elements of the transform of n real numbers to `data`, which holds elements 0 to n / 2 on entry. Element n - k of
 * the transform is the conjugate of element k. Element 0 is real, so its imaginary part is set to 0. */
static void mirror(int64_t n, char *data)
{
    lane *const x = (lane *)data;
    *(vector *)(x + LANES) = (vector){0};
    for (int64_t k = 1; k <= n / 2; k++) {
        const pair z = load_pair(x + 2 * LANES * k);
        store_pair(x + 2 * LANES * (n - k), z);
        store_pair(x + 2 * LANES * k, conjugate(z));
    }
}

/* ---- Elements of one line ------------------------------------------------------------------------------------------------------------- */

GRD_INLINE bool is_interleaved(const struct grd_fft_line *line)
{
    return line->element == 2 && (const lane *)line->im == (const lane *)line->re + 1;
}

/* Loads `count` elements of one line (the elements along the transformed dimension), at most LANES, into the lanes of a vector. Their indices are
 * first, first + step, first + 2 step and so on, where `step` is 1 or -1. Where the index is `wrap`, element 0 is loaded. */
GRD_INLINE pair gather(const struct grd_fft_line *line, int64_t first, int64_t step, int64_t count, int64_t wrap)
{
    const lane *const re = (const lane *)line->re, *const im = (const lane *)line->im;
    pair x = {{0}, {0}};
    if (count == LANES && is_interleaved(line) && first != wrap) {
        const lane *const p = re + 2 * (step > 0 ? first : first - (LANES - 1));
        const vector a = load_vector(p), b = load_vector(p + LANES);
        x = (pair){evens(a, b), odds(a, b)};
        return step > 0 ? x : (pair){reversed(x.re), reversed(x.im)};
    }
    for (int64_t l = 0; l < count; l++) {
        const int64_t k = first + l * step, at = (k == wrap ? 0 : k) * line->element;
        x.re[l] = re[at];
        x.im[l] = im != NULL ? im[at] : 0;
    }
    return x;
}

/* Stores the first `count` lanes of x to elements of one line (the elements along the transformed dimension). Their indices are first, first + step,
 * first + 2 step and so on, where `step` is 1 or -1. */
GRD_INLINE void scatter(pair x, const struct grd_fft_line *line, int64_t first, int64_t step, int64_t count)
{
    lane *const re = (lane *)line->re, *const im = (lane *)line->im;
    if (count == LANES && is_interleaved(line)) {
        lane *const p = re + 2 * (step > 0 ? first : first - (LANES - 1));
        x = step > 0 ? x : (pair){reversed(x.re), reversed(x.im)};
        store_vector(p, low_pairs(x.re, x.im));
        store_vector(p + LANES, high_pairs(x.re, x.im));
        return;
    }
    for (int64_t l = 0; l < count; l++) {
        re[(first + l * step) * line->element] = x.re[l];
        if (im != NULL)
            im[(first + l * step) * line->element] = x.im[l];
    }
}

/* Returns a struct grd_fft_line for the contiguous complex numbers that begin at `data`. gather() and scatter() take such a struct. */
GRD_INLINE struct grd_fft_line line_at(const char *data)
{
    return (struct grd_fft_line){(char *)(uintptr_t)data, (char *)(uintptr_t)(data + sizeof(lane)), 2};
}

static void multiply_line(int64_t n, const struct grd_fft_line *from, const char *factors, bool is_conjugate, double scale,
                          const struct grd_fft_line *to)
{
    const struct grd_fft_line by = line_at(factors);
    for (int64_t k = 0; k < n; k += LANES) {
        const int64_t count = grd_least(LANES, n - k);
        const pair x = gather(from, k, 1, count, -1), y = gather(&by, k, 1, count, -1);
        scatter(scaled(product(is_conjugate ? conjugate(x) : x, y), (lane)scale), to, k, 1, count);
    }
}

static void unfold_line(int64_t h, const char *roots, double scale, const struct grd_fft_line *line)
{
    const struct grd_fft_line by = line_at(roots);
    for (int64_t k = 0; k <= h / 2; k += LANES) {
        const int64_t count = grd_least(LANES, h / 2 + 1 - k);
        pair z = gather(line, k, 1, count, -1), back = gather(line, h - k, -1, count, h);
        unfold_two(&z, &back, gather(&by, k, 1, count, -1));
        scatter(scaled(back, (lane)scale), line, h - k, -1, count);
        scatter(scaled(z, (lane)scale), line, k, 1, count);
    }
}

static void fold_line(int64_t h, const struct grd_fft_line *from, const char *roots, char *data)
{
    const struct grd_fft_line by = line_at(roots), to = line_at(data);
    for (int64_t k = 0; k <= h / 2; k += LANES) {
        const int64_t count = grd_least(LANES, h / 2 + 1 - k);
        pair x = gather(from, k, 1, count, -1), back = gather(from, h - k, -1, count, -1);
        if (k == 0)
            x.im[0] = back.im[0] = 0;
        fold_two(&x, &back, gather(&by, k, 1, count, -1));
        scatter(back, &to, h - k, -1, count);
        scatter(x, &to, k, 1, count);
    }
}

static void mirror_line(int64_t n, const struct grd_fft_line *from, char *data)
{
    const struct grd_fft_line to = line_at(data);
    for (int64_t k = 0; k <= n / 2; k += LANES) {
        const int64_t count = grd_least(LANES, n / 2 + 1 - k);
        pair x = gather(from, k, 1, count, -1);
        if (k == 0)
            x.im[0] = 0;
        scatter(x, &to, n - k, -1, count);
        scatter(conjugate(x), &to, k, 1, count);
    }
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------------------ */

/* A single complex number. */
typedef struct {
    lane re, im;
} one;

/* Returns exp(-2 pi i e / n), the root of unity of order n with the exponent e, as the product of two numbers from the tables of `roots`. */
GRD_INLINE one root_of(const struct grd_fft_roots *roots, int64_t e)
{
    const long double *const low = roots->low + 2 * (e % roots->step), *const high = roots->high + 2 * (e / roots->step);
    return (one){(lane)(low[0] * high[0] - low[1] * high[1]), (lane)(low[0] * high[1] + low[1] * high[0])};
}

static void fill_roots(const struct grd_fft_roots *roots, int64_t step, int64_t count, char *to)
{
    for (int64_t k = 0; k < count; k++)
        ((one *)to)[k] = root_of(roots, k * step);
}

static void fill_twiddles(const struct grd_fft_roots *roots, int64_t radix, int64_t m, char *to)
{
    const int64_t step = roots->n / (radix * m);
    for (int64_t p = 0; p < m; p++)
        for (int64_t k = 1; k < radix; k++)
            ((one *)to)[p * (radix - 1) + k - 1] = root_of(roots, p * k * step);
}

static void fill_factors(const struct grd_fft_roots *roots, int64_t a, int64_t b, char *data)
{
    lane *to = (lane *)data;
    const int64_t rows = (a + LANES - 1) / LANES * LANES;
    for (int64_t first = 0; first < b; first += LANES)
        for (int64_t k = 0; k < rows; k++, to += 2 * LANES)
            for (int64_t l = 0; l < LANES; l++) {
                const one w = k < a && first + l < b ? root_of(roots, k * (first + l)) : (one){0, 0};
                to[l] = w.re;
                to[LANES + l] = w.im;
            }
}

static void fill_chirp(const struct grd_fft_roots *roots, int64_t n, char *to, int64_t m, char *ret_filter)
{
    one *const filter = (one *)ret_filter;
    memset(ret_filter, 0, (size_t)m * sizeof *filter);
    for (int64_t k = 0, e = 0; k < n; e = (e + 2 * k + 1) % (2 * n), k++) {
        const one w = root_of(roots, e);
        ((one *)to)[k] = w;
        filter[k] = filter[k == 0 ? 0 : m - k] = (one){w.re, -w.im};
    }
}

static void finish_filter(int64_t m, char *data)
{
    one *const x = (one *)data;
    for (int64_t k = 0; k < m; k++)
        x[k] = (one){x[k].re / (lane)m, -x[k].im / (lane)m};
}

const struct grd_fft_row GRD_TYPED(grd_fft_row) = {
    .lanes = LANES,
    .take = take,
    .put = put,
    .pass = pass,
    .turn = turn,
    .multiply = multiply,
    .unfold = unfold,
    .fold = fold,
    .mirror = mirror,
    .multiply_line = multiply_line,
    .unfold_line = unfold_line,
    .fold_line = fold_line,
    .mirror_line = mirror_line,
    .fill_roots = fill_roots,
    .fill_twiddles = fill_twiddles,
    .fill_factors = fill_factors,
    .fill_chirp = fill_chirp,
    .finish_filter = finish_filter,
};
