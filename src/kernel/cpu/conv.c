/* Convolution of one dtype at one instruction-set level: see kernel/conv.h. As in products (gemm.c) a tile of ROWS rows and up to 3 vectors of columns is held in
 * registers; its rows are not packed but gathered, one element at a time, each of which is multiplied with all vectors.
 *
 * Invariant: a sum depends on its row, its column and the order of k alone. */
#include "kernel/cpu/gemm_lanes.h"

#include "kernel/conv.h"

/* Rows [first, first + n) of the block, n at most ROWS: those that are missing are the last one again, and are not stored. */
INLINE void tile(int vectors, const struct grd_conv_block *b, int64_t first, int64_t n)
{
    const lane *row[ROWS], *panel = (const lane *)b->panel;
    const int32_t *const taps = b->taps;
    vector sum[ROWS][VECTORS];
    const int64_t width = vectors * LANES;
    lane *const sums = (lane *)b->sums + first * width;
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
        const int64_t at = r < n ? r : n - 1;
        row[r] = (const lane *)b->seen + b->rows[first + at];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            sum[r][v] = load_vector(sums + at * width + v * LANES);
    }
    for (int64_t k = 0; k < b->depth; k++, panel += width) {
        const int64_t tap = taps[k];
        vector x[VECTORS];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            if (VECTOR_BYTES == 64)
                __builtin_prefetch(panel + AHEAD * width + v * LANES);
            x[v] = load_vector(panel + v * LANES);
        }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            const lane a = row[r][tap];
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[r][v] += a * x[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
        if (r < n)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                store_vector(sums + r * width + v * LANES, sum[r][v]);
}

INLINE void tiles(int vectors, const struct grd_conv_block *b)
{
    for (int64_t first = 0; first < b->nrows; first += ROWS)
        tile(vectors, b, first, b->nrows - first < ROWS ? b->nrows - first : ROWS);
}

static void multiply(const struct grd_conv_block *b)
{
    if (b->vectors == 3)
        tiles(3, b);
    else if (b->vectors == 2)
        tiles(2, b);
    else
        tiles(1, b);
}

static void turn(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_column)
{
    const lane *from = (const lane *)sums;
    lane *const out = (lane *)to;
    int64_t r = 0;
    for (; r + SQUARE <= n; r += SQUARE) {
        int64_t j = 0;
        for (; j + SQUARE <= columns; j += SQUARE)
            pack_square(from + r * width + j, width, out + j * to_column + r, to_column);
        for (; j < columns; j++)
            for (int64_t i = r; i < r + SQUARE; i++)
                out[j * to_column + i] = from[i * width + j];
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = r; i < n; i++)
            out[j * to_column + i] = from[i * width + j];
}

extern const struct grd_conv_row GRD_TYPED(grd_conv_row);
const struct grd_conv_row GRD_TYPED(grd_conv_row) = {.multiply = multiply, .turn = turn, .lanes = LANES};
