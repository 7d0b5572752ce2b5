/* Computes several dot products of one vector with other vectors at once. This header is for real dtypes only. */
#ifndef GRD_KERNEL_GEMM_DOTS_H
#define GRD_KERNEL_GEMM_DOTS_H

#include "kernel/cpu/gemm_lanes.h"

enum {
    DOTS = 8,    /* dot products computed at a time */
    DOT_ROWS = 4 /* a product is computed by dot products if `a` has at most this many rows and both operands are contiguous along k */
};

#if !GRD_IS_COMPLEX

/* Returns the sums of the pairs of neighbouring lanes. The first half of the result holds the sums for x, the second half those for y. */
GRD_INLINE vector add_neighbours(vector x, vector y)
{
    return evens(x, y) + odds(x, y);
}

/* Computes the sum over p < k of x[p] * y[d][p] for each d < `count`. x and each row of y are contiguous, and the rows of y are y_row elements apart.
 * The sums are the first `count` lanes of ret_sums. `count` is a constant where this is inlined, either 1 or at least 4. */
GRD_INLINE void dot_rows(int count, int64_t k, const lane *x, const lane *y, int64_t y_row, vector *ret_sums)
{
    vector sum[DOTS];
#pragma GCC unroll 8
    for (int d = 0; d < count; d++)
        sum[d] = (vector){0};
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        const vector u = load_vector(x + p);
#pragma GCC unroll 8
        for (int d = 0; d < count; d++)
            sum[d] += u * load_vector(y + d * y_row + p);
    }
    if (p < k) {
        const lane_mask rest = first_lanes(k - p);
        const vector u = load_lanes(x + p, rest);
#pragma GCC unroll 8
        for (int d = 0; d < count; d++)
            sum[d] += u * load_lanes(y + d * y_row + p, rest);
    }
#pragma GCC unroll 4
    for (int step = 1; step < LANES; step *= 2) {
        const int left = count / step; /* number of vectors that still hold partial sums */
        if (left > 1) {
#pragma GCC unroll 4
            for (int d = 0; d < left / 2; d++)
                sum[d] = add_neighbours(sum[2 * d], sum[2 * d + 1]);
        } else {
            sum[0] = add_neighbours(sum[0], sum[0]);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v * LANES < count; v++)
        ret_sums[v] = sum[v];
}
#endif

#endif
