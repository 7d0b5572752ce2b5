/* Solves systems of equations with a small triangular matrix, for one real dtype at one instruction-set level. Each lane of a vector holds a
 * different right side. The loops are:
 *
 *   for each group of up to two vectors of right sides, copied so that the numbers that belong to one equation are contiguous
 *     for each block of ROWS equations, in the order in which they can be solved
 *       solve_block(): subtracts the unknowns of earlier blocks, and then finds those of this block one after the other
 *
 * A division by a diagonal element is computed as a multiplication with its reciprocal.
 * Invariant: a solution depends only on the triangle and on its own right side. */
#include "kernel/cpu/gemm_lanes.h"
#include "kernel/gemm.h"

enum { SIDE = GRD_SMALL_TRIANGLE_SIDE, GROUP_VECTORS = 2, GROUP = GROUP_VECTORS * LANES };

/* The coefficients of all blocks of ROWS equations, in the order in which the blocks are solved. For each block, the unknowns of the earlier blocks
 * come first and its own unknowns last. Each unknown has ROWS coefficients, one per equation of the block. */
struct coefficients {
    lane of_blocks[SIDE * (SIDE + ROWS) / 2];
    lane reciprocals[SIDE]; /* reciprocals of the diagonal elements of the triangular matrix */
};

/* Calls copy_lanes() but is not inlined, because inlined copies of copy_lanes() would be most of this file's code. */
static __attribute__((noinline)) void copy(int64_t rows, int64_t columns, const lane *from, int64_t row, int64_t column, lane *to,
                                           int64_t to_row)
{
    copy_lanes(rows, columns, columns, from, row, column, to, to_row);
}

/* Packs the coefficients of the triangular matrix t->a into *to, as a lower triangle: packed equation i has the unknowns 0 to i. If t->a is an upper
 * triangle (t->rises is false), takes its equations and its unknowns in reverse order. Fills up the last block of ROWS equations with equations whose
 * coefficients are 0. */
static void pack_triangle(const struct grd_small_triangle *t, struct coefficients *to)
{
    const int64_t equation = t->rises ? t->equation : -t->equation, unknown = t->rises ? t->unknown : -t->unknown;
    const lane *const a = (const lane *)t->a + (t->rises ? 0 : (t->n - 1) * (t->equation + t->unknown));
    lane *next = to->of_blocks;
    for (int64_t first = 0; first < t->n; first += ROWS) {
        const int64_t rows = t->n - first < ROWS ? t->n - first : ROWS;
        const lane *block = a + first * equation;
        if (rows < ROWS)
            memset(next, 0, (size_t)((first + ROWS) * ROWS) * sizeof *next);
        copy(first + rows, rows, block, unknown, equation, next, ROWS);
        next += first * ROWS;
        for (int64_t i = 0; i < ROWS; i++)
            to->reciprocals[first + i] = t->unit || i >= rows ? 1 : 1 / next[i * ROWS + i];
        next += ROWS * ROWS;
    }
}

/* Solves a block of ROWS equations. On entry x holds the right sides, on return the unknowns of the block. `solved` holds the unknowns of earlier
 * blocks, and `known` is their number. Their products with the coefficients are subtracted from the right sides first. `vectors` is a constant where
 * this is inlined. */
GRD_INLINE void solve_block(int vectors, int64_t known, const lane *coefficients, const lane *reciprocals, const lane *solved, lane *x)
{
    vector rest[ROWS][GROUP_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            rest[r][v] = load_vector(x + r * GROUP + v * LANES);
    for (int64_t j = 0; j < known; j++, coefficients += ROWS, solved += GROUP) {
        vector y[GROUP_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            y[v] = load_vector(solved + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                rest[r][v] -= coefficients[r] * y[v];
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            rest[r][v] *= reciprocals[r];
            store_vector(x + r * GROUP + v * LANES, rest[r][v]);
        }
#pragma GCC unroll 8
        for (int q = r + 1; q < ROWS; q++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                rest[q][v] -= coefficients[r * ROWS + q] * rest[r][v];
    }
}

/* Solves all n equations for `vectors` vectors of right sides, one right side in each lane. Row i of x holds the right sides of equation i and is
 * overwritten with unknown i. */
GRD_INLINE void solve_group(int vectors, int64_t n, const struct coefficients *c, lane *x)
{
    const lane *next = c->of_blocks;
    for (int64_t first = 0; first < n; next += (first + ROWS) * ROWS, first += ROWS)
        solve_block(vectors, first, next, c->reciprocals + first, x, x + first * GROUP);
}

extern grd_small_triangle_kernel GRD_TYPED(grd_small_triangle);
void GRD_TYPED(grd_small_triangle)(const struct grd_small_triangle *t)
{
    const int64_t n = t->n, row = t->rises ? GROUP : -GROUP;
    struct coefficients c;
    lane group[SIDE * GROUP] __attribute__((aligned(64)));
    lane *const first_row = group + (t->rises ? 0 : (n - 1) * GROUP);
    pack_triangle(t, &c);
    for (int64_t first = 0; first < t->count; first += GROUP) {
        const int64_t columns = t->count - first < GROUP ? t->count - first : GROUP;
        lane *x = (lane *)t->x + first * t->x_col;
        if (first == 0 || columns < GROUP)
            memset(group, 0, sizeof group);
        copy(n, columns, x, t->x_row, t->x_col, first_row, row);
        if (columns > LANES)
            solve_group(2, n, &c, group);
        else
            solve_group(1, n, &c, group);
        if (t->x_col == 1)
            copy(n, columns, first_row, row, 1, x, t->x_row);
        else
            copy(columns, n, first_row, 1, row, x, t->x_col);
    }
}
