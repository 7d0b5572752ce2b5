/* Distances between rows; see kernel/distance.h. Typed: float32 float64.
 * Invariant: sums run in lanes by the place in a row, so that they depend on neither the level nor the block. */
#include "kernel/distance.h"

#include <math.h>
#include <tgmath.h>

#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"
#include "kernel/cpu/typed.h"
#include "kernel/cpu/vecmath.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 8 };

/* One more element of a difference, of size x. */
typedef double step_function(double sum, T x, T p);

INLINE double count_step(double sum, T x, T p)
{
    (void)p;
    return sum + (double)(x > 0 ? 1 : x);
}

INLINE double sum_step(double sum, T x, T p)
{
    (void)p;
    return sum + (double)x;
}

INLINE double square_step(double sum, T x, T p)
{
    (void)p;
    return sum + (double)x * (double)x;
}

INLINE double power_step(double sum, T x, T p)
{
    return sum + (double)vm_pow(x, p);
}

INLINE double largest_step(double sum, T x, T p)
{
    (void)p;
    return ((double)x > sum) | (x != x) ? (double)x : sum;
}

INLINE double distance(int64_t n, const T *a, const T *b, T p, step_function *step, bool largest)
{
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        LANEWISE for (int l = 0; l < LANES; l++) lanes[l] = step(lanes[l], fabs(a[i + l] - b[i + l]), p);
    for (int l = 0; i < n; i++, l++)
        lanes[l] = step(lanes[l], fabs(a[i] - b[i]), p);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] = largest ? (lanes[l + half] > lanes[l]) | (lanes[l + half] != lanes[l + half]) ? lanes[l + half] : lanes[l]
                               : lanes[l] + lanes[l + half];
    return lanes[0];
}

INLINE void all_pairs(const struct grd_distance_block *x, step_function *step, bool largest, bool root)
{
    const T *a = x->x1, p = (T)x->p;
    T *out = x->out;
    for (int64_t i = 0; i < x->rows; i++, a += x->width) {
        const T *b = x->x2;
        for (int64_t j = 0; j < x->others; j++, b += x->width, out++) {
            const double sum = distance(x->width, a, b, p, step, largest);
            *out = (T)(root ? x->p == 2 ? sqrt(sum) : pow(sum, 1 / x->p) : sum);
        }
    }
}

extern grd_distance_kernel GRD_TYPED(grd_distance);
void GRD_TYPED(grd_distance)(const struct grd_distance_block *block)
{
    if (block->p == 0)
        all_pairs(block, count_step, false, false);
    else if (block->p == 1)
        all_pairs(block, sum_step, false, false);
    else if (block->p == 2)
        all_pairs(block, square_step, false, true);
    else if (block->p == (double)INFINITY)
        all_pairs(block, largest_step, true, false);
    else
        all_pairs(block, power_step, false, true);
}
