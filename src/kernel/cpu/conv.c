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

/* Channel by channel, since those of a result are often pages apart. */
static void turn(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_column)
{
    const lane *from = (const lane *)sums;
    lane *const out = (lane *)to;
    const int64_t whole = n / SQUARE * SQUARE;
    int64_t j = 0;
    for (; j + SQUARE <= columns; j += SQUARE)
        for (int64_t r = 0; r < whole; r += SQUARE)
            pack_square(from + r * width + j, width, out + j * to_column + r, to_column);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = c < j ? whole : 0; r < n; r++)
            out[c * to_column + r] = from[r * width + c];
}

/* ---- Copies --------------------------------------------------------------------------------------------------------------------------- */

INLINE void copy_neighbours(int64_t n, const lane *from, lane *to)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_vector(to + i, load_vector(from + i));
    if (i < n)
        store_lanes(to + i, first_lanes(n - i), load_lanes(from + i, first_lanes(n - i)));
}

INLINE void copy_every(int64_t step, int64_t n, const lane *from, lane *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i * step];
}

static void copy(const struct grd_conv_copy *c)
{
    const lane *from = (const lane *)c->from;
    lane *to = (lane *)c->to;
    for (int64_t row = 0; row < c->nrows; row++, from += c->from_row, to += c->to_row) {
        if (c->split == 1) {
            copy_neighbours(c->n, from, to + c->before);
            continue;
        }
        for (int64_t i = 0; i < c->split && i < c->n; i++) {
            const int64_t n = (c->n - i - 1) / c->split + 1, at = c->before + i;
            lane *const part = to + at % c->split * c->part + at / c->split;
            if (c->split == 2)
                copy_every(2, n, from + i, part);
            else
                copy_every(c->split, n, from + i, part);
        }
    }
}

/* ---- Places in lanes ------------------------------------------------------------------------------------------------------------------ */

enum { LINE_SUMS = VECTOR_BYTES == 64 ? 24 : 10, MOST_LINE_VECTORS = 8 };

INLINE int vectors_beside(int rows)
{
    return LINE_SUMS / rows < 1 ? 1 : LINE_SUMS / rows > MOST_LINE_VECTORS ? MOST_LINE_VECTORS : LINE_SUMS / rows;
}

/* The elements that a vector of places sees at an offset. */
INLINE vector see(const lane *seen, lane_mask mask, bool whole)
{
    return whole ? load_vector(seen) : load_lanes(seen, mask);
}

/* `vectors` vectors from `first` on; those that are missing are the last one again. */
INLINE void line_tile(int rows, int vectors, bool whole, const struct grd_conv_lines *l, int64_t first)
{
    const lane *seen[MOST_LINE_VECTORS], *weights = (const lane *)l->weights;
    lane_mask mask[MOST_LINE_VECTORS];
    vector sum[GRD_CONV_LINE_ROWS][MOST_LINE_VECTORS];
    lane *at[MOST_LINE_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        const int64_t which = first + v < l->nvectors ? first + v : l->nvectors - 1;
        seen[v] = (const lane *)l->seen + l->vectors[which].start;
        mask[v] = first_lanes(l->vectors[which].count);
        at[v] = (lane *)l->sums + which * LANES;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r][v] = load_vector(at[v] + r * l->nvectors * LANES);
    }
    for (int64_t k = 0; k < l->depth; k++, weights += rows) {
        const int64_t tap = l->taps[k];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const vector x = see(seen[v] + tap, mask[v], whole);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                sum[r][v] += weights[r] * x;
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            store_vector(at[v] + r * l->nvectors * LANES, sum[r][v]);
}

static bool are_whole(const struct grd_conv_vector *vectors, int64_t first, int64_t n)
{
    int64_t least = LANES;
    for (int64_t v = first; v < n; v++)
        least = vectors[v].count < least ? vectors[v].count : least;
    return least == LANES;
}

INLINE void line_tiles(int rows, const struct grd_conv_lines *l)
{
    const int vectors = vectors_beside(rows);
    const bool whole = are_whole(l->vectors, 0, l->nvectors);
    for (int64_t first = 0; first < l->nvectors; first += vectors)
        if (whole)
            line_tile(rows, vectors, true, l, first);
        else
            line_tile(rows, vectors, false, l, first);
}

static void lines(const struct grd_conv_lines *l)
{
    switch (l->nrows) {
    case 1:
        line_tiles(1, l);
        break;
    case 2:
        line_tiles(2, l);
        break;
    case 3:
        line_tiles(3, l);
        break;
    case 4:
        line_tiles(4, l);
        break;
    case 5:
        line_tiles(5, l);
        break;
    case 6:
        line_tiles(6, l);
        break;
    case 7:
        line_tiles(7, l);
        break;
    default:
        line_tiles(8, l);
    }
}

static void put(int64_t n, const struct grd_conv_vector *vectors, const char *sums, char *to, int64_t to_place, int64_t step)
{
    const lane *from = (const lane *)sums;
    for (int64_t v = 0; v < n; v++, from += LANES) {
        lane *const at = (lane *)to + vectors[v].place * to_place;
        if (step == 1)
            store_lanes(at, first_lanes(vectors[v].count), load_vector(from));
        else
            for (int64_t l = 0; l < vectors[v].count; l++)
                at[l * step] = from[l];
    }
}

/* ---- Sums over places ------------------------------------------------------------------------------------------------------------------ */

/* `taps` taps from `first` on, of the rows from `row` on. */
INLINE void dot_tile(int rows, int taps, const struct grd_conv_dots *d, int64_t row, int64_t first)
{
    enum { MOST = 8 };
    vector sum[MOST][MOST];
    lane *const sums = (lane *)d->sums + (row * d->ntaps + first) * LANES;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++)
            sum[r][k] = load_vector(sums + (r * d->ntaps + k) * LANES);
    for (int64_t v = 0; v < d->nvectors; v++) {
        const struct grd_conv_vector at = d->vectors[v];
        const lane *seen = (const lane *)d->seen + at.start, *gradient = (const lane *)d->gradient + row * d->gradient_row + at.place;
        const lane_mask mask = first_lanes(at.count);
        vector g[MOST];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            g[r] = load_lanes(gradient + r * d->gradient_row, mask);
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++) {
            const vector x = load_lanes(seen + d->taps[first + k], mask);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                sum[r][k] += g[r] * x;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++)
            store_vector(sums + (r * d->ntaps + k) * LANES, sum[r][k]);
}

INLINE void dot_rows_from(int rows, const struct grd_conv_dots *d, int64_t row)
{
    enum { TAPS = VECTOR_BYTES == 64 ? 5 : 2, ONE_ROW_TAPS = 8 };
    const int taps = rows == 1 ? ONE_ROW_TAPS : TAPS;
    int64_t k = 0;
    for (; k + taps <= d->ntaps; k += taps)
        dot_tile(rows, taps, d, row, k);
    for (; k < d->ntaps; k++)
        dot_tile(rows, 1, d, row, k);
}

static void dots(const struct grd_conv_dots *d)
{
    int64_t row = 0;
    for (; row + 4 <= d->nrows; row += 4)
        dot_rows_from(4, d, row);
    for (; row < d->nrows; row++)
        dot_rows_from(1, d, row);
}

static void add_lanes(int64_t n, const char *sums, char *to)
{
    const lane *from = (const lane *)sums;
    for (int64_t i = 0; i < n; i++, from += LANES) {
        lane parts[LANES];
        memcpy(parts, from, sizeof parts);
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                parts[l] += parts[l + half];
        ((lane *)to)[i] = parts[0];
    }
}

extern const struct grd_conv_row GRD_TYPED(grd_conv_row);
const struct grd_conv_row GRD_TYPED(grd_conv_row) = {
    .copy = copy, .multiply = multiply, .turn = turn, .lines = lines, .put = put, .dots = dots, .add_lanes = add_lanes, .lanes = LANES};
