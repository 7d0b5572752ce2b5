/* Distances between rows; see kernel/distance.h. Typed: float32 float64.
 * Invariant: sums run in lanes by the place in a row, so that they depend on neither the level nor the block. */
#include "kernel/distance.h"

#include <string.h>
#include <tgmath.h>

#include "gen/binary_kernels.h"
#include "kernel/cpu/typed.h"
#include "kernel/map.h"
#include "kernel/table.h"

enum { LANES = 8, PIECE = 512 };

/* One more element of a difference, of size x. */
typedef double step_function(double sum, T x);

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

/* The bits of a size as an integer, which has the order of the sizes, with NaN above all. */
GRD_INLINE ORDERED bits_of(T size)
{
    ORDERED bits;
    memcpy(&bits, &size, sizeof bits);
    return bits;
}

/* Returns the sum of step(|a[i] - b[i]|), or of step(|a[i]|) if b is NULL. */
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

static void all_largest(const struct grd_distance_block *x)
{
    const T *a = x->x1;
    T *out = x->out;
    for (int64_t i = 0; i < x->rows; i++, a += x->width)
        for (int64_t j = 0; j < x->others; j++)
            *out++ = largest_of(x->width, a, (const T *)x->x2 + j * x->width);
}

extern const struct grd_map_kernel GRD_TYPED(grd_binary_row)[];

/* x^p, in place, by the kernel of pow, which vectorises. */
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

/* The sums of powers of `pairs` differences of n elements; b's rows are `width` apart. */
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

static void all_by_powers(const struct grd_distance_block *x)
{
    const int64_t width = x->width, length = at_most(width, PIECE), most = length > 0 ? PIECE / length : PIECE;
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
