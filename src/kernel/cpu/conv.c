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

/* Elements of even number to one place, of odd number to another. */
INLINE void copy_pairs(int64_t n, const lane *from, lane *even, lane *odd)
{
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vector low = load_vector(from + i), high = load_vector(from + i + LANES);
        store_vector(even + i / 2, evens(low, high));
        store_vector(odd + i / 2, odds(low, high));
    }
    copy_every(2, (n - i + 1) / 2, from + i, even + i / 2);
    copy_every(2, (n - i) / 2, from + i + 1, odd + i / 2);
}

static void copy(const struct grd_conv_copy *c)
{
    const lane *from = (const lane *)c->from;
    lane *to = (lane *)c->to;
    for (int64_t row = 0; row < c->nrows; row++, from += c->from_row, to += c->to_row)
        if (c->split == 1)
            copy_neighbours(c->n, from, to + c->before);
        else if (c->split == 2)
            copy_pairs(c->n, from, to + c->before % 2 * c->part + c->before / 2, to + (c->before + 1) % 2 * c->part + (c->before + 1) / 2);
        else
            for (int64_t i = 0; i < c->split && i < c->n; i++) {
                const int64_t at = c->before + i;
                copy_every(c->split, (c->n - i - 1) / c->split + 1, from + i, to + at % c->split * c->part + at / c->split);
            }
}

/* ---- Places in lanes ------------------------------------------------------------------------------------------------------------------ */

enum { LINE_SUMS = VECTOR_BYTES == 64 ? 24 : 10, MOST_LINE_VECTORS = 8 };

INLINE int vectors_beside(int rows)
{
    return LINE_SUMS / rows < 1 ? 1 : LINE_SUMS / rows > MOST_LINE_VECTORS ? MOST_LINE_VECTORS : LINE_SUMS / rows;
}

/* `vectors` vectors of places from `first` on; of the only one that is not whole, the first `n` lanes. */
INLINE void line_tile(int rows, int vectors, bool whole, const struct grd_conv_line *l, int64_t first, int64_t n)
{
    const lane *const seen = (const lane *)l->seen + first, *weights = (const lane *)l->weights, *const bias = (const lane *)l->bias;
    lane *const sums = (lane *)l->sums + first;
    const lane_mask mask = first_lanes(whole ? LANES : n);
    vector sum[GRD_CONV_LINE_ROWS][MOST_LINE_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vector){0} + (bias != NULL ? bias[r] : 0);
    for (int64_t k = 0; k < l->depth; k++, weights += rows) {
        const lane *const from = seen + l->taps[k];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const vector x = whole ? load_vector(from + v * LANES) : load_lanes(from, mask);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                sum[r][v] += weights[r] * x;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            store_vector(sums + r * GRD_CONV_LINE + v * LANES, sum[r][v]);
}

/* Tiles of so many vectors, as long as there are places for them. */
INLINE int64_t line_tiles(int rows, int vectors, const struct grd_conv_line *l, int64_t first)
{
    for (; first + vectors * LANES <= l->n; first += vectors * LANES)
        line_tile(rows, vectors, true, l, first, LANES);
    return first;
}

INLINE void line_of(int rows, const struct grd_conv_line *l)
{
    const int vectors = vectors_beside(rows);
    int64_t first = line_tiles(rows, vectors, l, 0);
    if (vectors > 2)
        first = line_tiles(rows, (vectors + 1) / 2, l, first);
    first = line_tiles(rows, 1, l, first);
    if (first < l->n)
        line_tile(rows, 1, false, l, first, l->n - first);
}

static void line(const struct grd_conv_line *l)
{
    switch (l->nrows) {
    case 1:
        line_of(1, l);
        break;
    case 2:
        line_of(2, l);
        break;
    case 3:
        line_of(3, l);
        break;
    case 4:
        line_of(4, l);
        break;
    case 5:
        line_of(5, l);
        break;
    case 6:
        line_of(6, l);
        break;
    case 7:
        line_of(7, l);
        break;
    default:
        line_of(8, l);
    }
}

static void put(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_row, int64_t step)
{
    const lane *from = (const lane *)sums;
    lane *out = (lane *)to;
    for (int64_t i = 0; i < n; i++, from += width, out += to_row)
        if (step == 1)
            copy_neighbours(columns, from, out);
        else
            for (int64_t j = 0; j < columns; j++)
                out[j * step] = from[j];
}

/* ---- Sums over places ------------------------------------------------------------------------------------------------------------------ */

enum { DOT_ROWS = 4, DOT_ROWS_TAPS = VECTOR_BYTES == 64 ? 5 : 2, ONE_ROW_TAPS = 9 };

/* `taps` taps from `first` on, of the rows from `row` on. */
INLINE void dot_tile(int rows, int taps, const struct grd_conv_dots *d, int64_t row, int64_t first)
{
    const lane *seen[ONE_ROW_TAPS], *gradient[DOT_ROWS];
    vector sum[DOT_ROWS][ONE_ROW_TAPS];
    lane *const sums = (lane *)d->sums + (row * d->ntaps + first) * LANES;
#pragma GCC unroll 9
    for (int k = 0; k < taps; k++)
        seen[k] = (const lane *)d->seen + d->taps[first + k];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        gradient[r] = (const lane *)d->gradient + (row + r) * d->gradient_channel;
#pragma GCC unroll 9
        for (int k = 0; k < taps; k++)
            sum[r][k] = load_vector(sums + (r * d->ntaps + k) * LANES);
    }
    const lane_mask mask = first_lanes(d->n % LANES);
    const int64_t whole = d->n / LANES * LANES;
    for (int64_t i = 0; i < d->lines; i++) {
        const int64_t at = i * d->seen_row, from = i * d->n;
        for (int64_t j = 0; j < whole; j += LANES)
#pragma GCC unroll 9
            for (int k = 0; k < taps; k++)
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    sum[r][k] += load_vector(gradient[r] + from + j) * load_vector(seen[k] + at + j);
        if (whole < d->n)
#pragma GCC unroll 9
            for (int k = 0; k < taps; k++)
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    sum[r][k] += load_lanes(gradient[r] + from + whole, mask) * load_lanes(seen[k] + at + whole, mask);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 9
        for (int k = 0; k < taps; k++)
            store_vector(sums + (r * d->ntaps + k) * LANES, sum[r][k]);
}

/* Tiles of so many taps, as long as there are so many. */
INLINE int64_t dot_tiles(int rows, int taps, const struct grd_conv_dots *d, int64_t row, int64_t first)
{
    for (; first + taps <= d->ntaps; first += taps)
        dot_tile(rows, taps, d, row, first);
    return first;
}

INLINE void dot_rows_from(int rows, const struct grd_conv_dots *d, int64_t row)
{
    int64_t first = dot_tiles(rows, rows == 1 ? ONE_ROW_TAPS : DOT_ROWS_TAPS, d, row, 0);
    first = dot_tiles(rows, rows == 1 ? 4 : 2, d, row, first);
    dot_tiles(rows, 1, d, row, first);
}

static void dots(const struct grd_conv_dots *d)
{
    int64_t row = 0;
    for (; row + DOT_ROWS <= d->nrows; row += DOT_ROWS)
        dot_rows_from(DOT_ROWS, d, row);
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
    .copy = copy, .multiply = multiply, .turn = turn, .line = line, .put = put, .dots = dots, .add_lanes = add_lanes, .lanes = LANES};
