/* Equations with a small triangle, for one real dtype at one instruction-set level: right sides lie in the lanes of vectors.
 *
 *   for each group of up to two vectors of right sides, copied to where those of an equation are neighbours
 *     for each block of ROWS equations, in the order in which they can be solved
 *       solve_block(): subtracts the unknowns of the blocks before it, and then its own one after the other
 *
 * Divisions are by multiplying with the reciprocal.
 * Invariant: a solution depends on the triangle and on its right side alone. */
#include "kernel/cpu/gemm_lanes.h"
#include "kernel/gemm.h"

enum { SIDE = GRD_SMALL_TRIANGLE_SIDE, GROUP_VECTORS = 2, GROUP = GROUP_VECTORS * LANES };

/* The coefficients of each block, in the order in which blocks are solved: ROWS for each unknown of the blocks before it, and then for each of its own. */
struct coefficients {
    lane of_blocks[SIDE * (SIDE + ROWS) / 2];
    lane reciprocals[SIDE]; /* of the diagonal */
};

/* Equations [first, first + rows), before which the unknowns [known, known + count) are solved. */
struct block {
    int64_t first, rows, known, count;
};

INLINE struct block block_of(bool rises, int64_t n, int64_t step)
{
    const int64_t first = rises ? step * ROWS : ((n - 1) / ROWS - step) * ROWS, rows = n - first < ROWS ? n - first : ROWS;
    return (struct block){first, rows, rises ? 0 : first + rows, rises ? first : n - first - rows};
}

/* Equations after the last one have the unknowns 0. */
static void pack_triangle(const struct grd_small_triangle *t, struct coefficients *to)
{
    lane *next = to->of_blocks;
    for (int64_t step = 0; step * ROWS < t->n; step++) {
        const struct block b = block_of(t->rises, t->n, step);
        const lane *a = (const lane *)t->a + b.first * t->equation;
        pack_lanes(b.count, b.rows, ROWS, a + b.known * t->unknown, t->unknown, t->equation, next);
        next += b.count * ROWS;
        pack_lanes(b.rows, b.rows, ROWS, a + b.first * t->unknown, t->unknown, t->equation, next);
        memset(next + b.rows * ROWS, 0, (size_t)((ROWS - b.rows) * ROWS) * sizeof *next);
        for (int64_t i = 0; i < ROWS; i++)
            to->reciprocals[b.first + i] = t->unit || i >= b.rows ? 1 : 1 / next[i * ROWS + i];
        next += ROWS * ROWS;
    }
}

/* `rises`, `unit` and `vectors` are constants where this is inlined. */
INLINE void solve_block(bool rises, bool unit, int vectors, int64_t known, const lane *coefficients, const lane *reciprocals,
                        const lane *solved, lane *x)
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
    for (int step = 0; step < ROWS; step++) {
        const int r = rises ? step : ROWS - 1 - step;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            if (!unit)
                rest[r][v] *= reciprocals[r];
            store_vector(x + r * GROUP + v * LANES, rest[r][v]);
        }
#pragma GCC unroll 8
        for (int later = step + 1; later < ROWS; later++) {
            const int q = rises ? later : ROWS - 1 - later;
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                rest[q][v] -= coefficients[r * ROWS + q] * rest[r][v];
        }
    }
}

/* All equations of a group; x has an equation in each row. */
INLINE void solve_group(bool rises, bool unit, int vectors, int64_t n, const struct coefficients *c, lane *x)
{
    const lane *next = c->of_blocks;
    for (int64_t step = 0; step * ROWS < n; step++) {
        const struct block b = block_of(rises, n, step);
        solve_block(rises, unit, vectors, b.count, next, c->reciprocals + b.first, x + b.known * GROUP, x + b.first * GROUP);
        next += (b.count + ROWS) * ROWS;
    }
}

static __attribute__((noinline)) void solve_rising(bool unit, int64_t columns, int64_t n, const struct coefficients *c, lane *x)
{
    if (unit && columns > LANES)
        solve_group(true, true, 2, n, c, x);
    else if (unit)
        solve_group(true, true, 1, n, c, x);
    else if (columns > LANES)
        solve_group(true, false, 2, n, c, x);
    else
        solve_group(true, false, 1, n, c, x);
}

static __attribute__((noinline)) void solve_falling(bool unit, int64_t columns, int64_t n, const struct coefficients *c, lane *x)
{
    if (unit && columns > LANES)
        solve_group(false, true, 2, n, c, x);
    else if (unit)
        solve_group(false, true, 1, n, c, x);
    else if (columns > LANES)
        solve_group(false, false, 2, n, c, x);
    else
        solve_group(false, false, 1, n, c, x);
}

extern grd_small_triangle_kernel GRD_TYPED(grd_small_triangle);
void GRD_TYPED(grd_small_triangle)(const struct grd_small_triangle *t)
{
    const int64_t n = t->n, padded = (n + ROWS - 1) / ROWS * ROWS;
    struct coefficients c;
    lane group[SIDE * GROUP] __attribute__((aligned(64)));
    pack_triangle(t, &c);
    memset(group + n * GROUP, 0, (size_t)((padded - n) * GROUP) * sizeof *group);
    for (int64_t first = 0; first < t->count; first += GROUP) {
        const int64_t columns = t->count - first < GROUP ? t->count - first : GROUP;
        lane *x = (lane *)t->x + first * t->x_col;
        pack_lanes(n, columns, GROUP, x, t->x_row, t->x_col, group);
        (t->rises ? solve_rising : solve_falling)(t->unit, columns, n, &c, group);
        if (t->x_col == 1)
            copy_lanes(n, columns, GROUP, group, GROUP, 1, x, t->x_row);
        else
            copy_lanes(columns, n, n, group, 1, GROUP, x, t->x_col);
    }
}
