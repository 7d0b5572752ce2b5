/* Computes the distances between the rows of two matrices, for cdist; see kernel/distance.h. The build compiles this file once for float32 and once
 * for float64.
 * Invariant: the order in which the terms of a sum are added depends only on the length of a row, so results depend neither on the instruction-set
 * level nor on the division of the rows into blocks. */
#include "kernel/distance.h"

#include <string.h>
#include <tgmath.h>

#include "gen/binary_kernels.h"
#include "kernel/cpu/typed.h"
#include "kernel/map.h"
#include "kernel/table.h"

enum { LANES = 8, PIECE = 512 };

/* A function that returns `sum` plus the term of one element of the difference of two rows. x is the absolute value of that element. */
typedef double step_function(double sum, T x);

/* Returns sum + 1 if x is not 0, otherwise `sum`. For p = 0 it counts the elements in which two rows differ. If x is NaN, the result is NaN. */
GRD_INLINE double count_step(double sum, T x)
{
    return sum + (double)(x > 0 ? 1 : x);
}

GRD_INLINE double sum_step(double sum, T x)
{
    return sum + (double)x;
}

GRD_INLINE double square_step(double sum, T x)
{
    return sum + (double)x * (double)x;
}

#if GRD_TAG == GRD_TAG_float32
typedef int32_t ORDERED;
#else
typedef int64_t ORDERED;
#endif

/* Returns the bits of `size`, which must not be negative, as an integer. These integers are ordered like the numbers, with NaN above all others,
 * so a maximum over the integers propagates NaN. */
GRD_INLINE ORDERED bits_of(T size)
{
    ORDERED bits;
    memcpy(&bits, &size, sizeof bits);
    return bits;
}

/* Returns the sum over i < n of the terms that `step` computes from |a[i] - b[i]|. If b is NULL, `step` computes them from a[i], which must not be
 * negative. */
GRD_INLINE double sum_of(int64_t n, const T *a, const T *b, step_function *step)
{
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        LANEWISE for (int l = 0; l < LANES; l++) lanes[l] = step(lanes[l], b != NULL ? fabs(a[i + l] - b[i + l]) : a[i + l]);
    for (int l = 0; i < n; i++, l++)
        lanes[l] = step(lanes[l], b != NULL ? fabs(a[i] - b[i]) : a[i]);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* Writes for each pair of a row of x1 and a row of x2 the sum of the terms that `step` adds, or the square root of this sum if `root`. */
GRD_INLINE void all_sums(const struct grd_distance_block *x, step_function *step, bool root)
{
    const T *a = x->x1;
    T *out = x->out;
    for (int64_t i = 0; i < x->rows; i++, a += x->width) {
        const T *b = x->x2;
        for (int64_t j = 0; j < x->others; j++, b += x->width) {
            const double sum = sum_of(x->width, a, b, step);
            *out++ = (T)(root ? sqrt(sum) : sum);
        }
    }
}

/* Returns the largest |a[i] - b[i]| over i < n, or NaN if one of these differences is NaN. */
static T largest_of(int64_t n, const T *a, const T *b)
{
    ORDERED lanes[LANES] = {0}, bits = 0;
    T largest;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        LANEWISE for (int l = 0; l < LANES; l++)
        {
            const ORDERED x = bits_of(fabs(a[i + l] - b[i + l]));
            lanes[l] = x > lanes[l] ? x : lanes[l];
        }
    for (int l = 0; i < n; i++, l++)
        lanes[l] = bits_of(fabs(a[i] - b[i])) > lanes[l] ? bits_of(fabs(a[i] - b[i])) : lanes[l];
    for (int l = 0; l < LANES; l++)
        bits = lanes[l] > bits ? lanes[l] : bits;
    memcpy(&largest, &bits, sizeof bits);
    return largest;
}

/* Writes the distances of all pairs of rows for p = infinity. The distance of two rows is the largest absolute value in their difference. */
static void all_largest(const struct grd_distance_block *x)
{
    const T *a = x->x1;
    T *out = x->out;
    for (int64_t i = 0; i < x->rows; i++, a += x->width)
        for (int64_t j = 0; j < x->others; j++)
            *out++ = largest_of(x->width, a, (const T *)x->x2 + j * x->width);
}

extern const struct grd_map_kernel GRD_TYPED(grd_binary_row)[];

/* Raises n numbers to the power p, in place. It uses the elementwise kernel of pow, which is vectorised, or sqrt() if p is 0.5. */
static void to_powers(int64_t n, T *x, T p)
{
    static const int64_t strides[] = {sizeof(T), sizeof(T), 0};
    if (p == (T)0.5)
        for (int64_t i = 0; i < n; i++)
            x[i] = sqrt(x[i]);
    else
        grd_map(n, (char *const[]){(char *)x, (char *)x, (char *)&p}, strides,
                &(struct grd_map){.kernel = &GRD_TYPED(grd_binary_row)[GRD_BINARY_HIDDEN_POW]});
}

/* Adds to sums[j] the sum of |a[k] - b[j * width + k]|^p over k < n, for each j < pairs. pairs * n is at most PIECE, the length of the buffer for the
 * differences. */
static void add_powers(int64_t pairs, int64_t n, int64_t width, const T *a, const T *b, T p, double *sums)
{
    T piece[PIECE];
    for (int64_t j = 0; j < pairs; j++)
        for (int64_t k = 0; k < n; k++)
            piece[j * n + k] = fabs(a[k] - b[j * width + k]);
    to_powers(pairs * n, piece, p);
    for (int64_t j = 0; j < pairs; j++)
        sums[j] += sum_of(n, piece + j * n, NULL, sum_step);
}

/* Writes for each pair of a row of x1 and a row of x2 the p-norm of their difference, for a p other than 0, 1, 2 and infinity. Rows longer than PIECE
 * are summed in pieces of PIECE elements. */
static void all_by_powers(const struct grd_distance_block *x)
{
    const int64_t width = x->width, length = grd_least(width, PIECE), most = length > 0 ? PIECE / length : PIECE;
    const T *a = x->x1;
    T *out = x->out;
    for (int64_t i = 0; i < x->rows; i++, a += width, out += x->others) {
        for (int64_t j = 0; j < x->others; j += most) {
            const int64_t pairs = x->others - j < most ? x->others - j : most;
            double sums[PIECE] = {0};
            for (int64_t k = 0; k < width; k += length)
                add_powers(pairs, width - k < length ? width - k : length, width, a + k, (const T *)x->x2 + j * width + k, (T)x->p, sums);
            for (int64_t l = 0; l < pairs; l++)
                out[j + l] = (T)sums[l];
        }
        to_powers(x->others, out, (T)(1 / x->p));
    }
}

extern grd_distance_kernel GRD_TYPED(grd_distance);
void GRD_TYPED(grd_distance)(const struct grd_distance_block *block)
{
    if (block->p == 0)
        all_sums(block, count_step, false);
    else if (block->p == 1)
        all_sums(block, sum_step, false);
    else if (block->p == 2)
        all_sums(block, square_step, true);
    else if (block->p == (double)INFINITY)
        all_largest(block);
    else
        all_by_powers(block);
}
