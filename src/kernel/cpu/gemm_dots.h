/* Several dot products with one vector at a time. Real dtypes only. */
#ifndef GRD_KERNEL_GEMM_DOTS_H
#define GRD_KERNEL_GEMM_DOTS_H

#include "kernel/cpu/gemm_lanes.h"

enum {
    DOTS = 8,    /* dot products at a time */
    DOT_ROWS = 4 /* a with this many rows or fewer, both operands contiguous along k: dot products, nothing is packed */
};

#if !GRD_IS_COMPLEX

/* Sums of neighbours: of x in the first half, of y in the second. */
GRD_INLINE vector add_neighbours(vector x, vector y)
{
    return evens(x, y) + odds(x, y);
}

/* The sums over p of x[p] * y[d][p] for `count` y, all contiguous along p: they are the first `count` lanes of ret_sums. `count` is a
 * constant where this is inlined: 1, or at least 4. */
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
        const int left = count / step; /* vectors with sums */
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
