/* Computes convolutions and their gradients; kernel/conv.h states the sums that each function computes. The build compiles this file once for float32
 * and once for float64. As in matrix products (gemm.c), a tile of sums is held in registers. A tile has several rows, and its columns fill several
 * vectors. A row is an output position of the convolution, and a column is an output channel. Unlike gemm.c, this file does not pack the elements of
 * a row. It loads each element from the input and multiplies it with all vectors of the tile. A tap is one element of the filter window. A list holds
 * the offset of the loaded element for each tap.
 *
 * Invariant: the bits of a sum depend only on its row, its column and the order of its terms. The terms are divided into blocks, and the terms of a
 * block are summed by themselves before they are added to the sum of the blocks before it. So the rounding error grows with the length of a block
 * plus the number of blocks, and not with the product of the two. */
#include "kernel/cpu/gemm_lanes.h"

#include "kernel/conv.h"

#if defined(__AVX512F__)
enum { MOST_VECTORS = 4, TILE_SUMS = 24 };
#else
enum { MOST_VECTORS = 3, TILE_SUMS = 12 };
#endif
enum { MOST_TILE_ROWS = 12 };

/* Returns the number of rows (output positions) of a tile whose columns fill `vectors` vectors. The number is limited by the registers for the
 * sums and for the addresses of the rows. */
GRD_INLINE int rows_beside(int vectors)
{
    return TILE_SUMS / vectors < MOST_TILE_ROWS ? TILE_SUMS / vectors : MOST_TILE_ROWS;
}

/* Computes the sums of the output positions [first, first + n) of block b for `vectors` vectors of output channels. A tile has `rows` rows, one
 * for each output position. If n is less than `rows`, the surplus rows repeat the last position and are not stored, so that all loops have
 * constant bounds. */
GRD_INLINE void tile(int rows, int vectors, const struct grd_conv_block *b, int64_t first, int64_t n)
{
    const lane *row[MOST_TILE_ROWS], *panel = (const lane *)b->panel;
    const int32_t *const taps = b->taps;
    vector sum[MOST_TILE_ROWS][MOST_VECTORS];
    const int64_t width = vectors * LANES;
    const bool begins = b->is_first && b->bias != NULL;
    lane *const sums = (lane *)b->sums + first * width;
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        const int64_t at = r < n ? r : n - 1;
        row[r] = (const lane *)b->seen + b->rows[first + at];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[r][v] = begins ? load_vector((const lane *)b->bias + v * LANES) : (vector){0};
    }
    for (int64_t k = 0; k < b->depth; k++, panel += width) {
        const int64_t tap = taps[k];
        vector x[MOST_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            x[v] = load_vector(panel + v * LANES);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            const lane a = row[r][tap];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[r][v] += a * x[v];
        }
    }
    if (!b->is_first)
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[r][v] += load_vector(sums + (r < n ? r : n - 1) * width + v * LANES);
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
        if (r < n)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                store_vector(sums + r * width + v * LANES, sum[r][v]);
}

/* Computes the output positions of b, beginning with `first`, in tiles of `rows` positions, while more than `least` positions are left. Returns the
 * position after the last tile. */
GRD_INLINE int64_t tiles_of(int rows, int vectors, const struct grd_conv_block *b, int64_t first, int64_t least)
{
    for (; b->nrows - first > least; first += rows)
        tile(rows, vectors, b, first, b->nrows - first < rows ? b->nrows - first : rows);
    return first;
}

/* Computes all output positions of b in tiles of as many positions as the registers allow. If at most two thirds of such a tile remain, the remaining
 * positions are computed in tiles of a third of the size. */
GRD_INLINE void tiles(int vectors, const struct grd_conv_block *b)
{
    const int rows = rows_beside(vectors), third = (rows + 2) / 3;
    const int64_t first = tiles_of(rows, vectors, b, 0, 2 * third);
    tiles_of(third, vectors, b, first, 0);
}

static void multiply(const struct grd_conv_block *b)
{
    if (b->vectors == 4)
        tiles(MOST_VECTORS, b);
    else if (b->vectors == 3)
        tiles(3, b);
    else if (b->vectors == 2)
        tiles(2, b);
    else
        tiles(1, b);
}

/* Transposes the sums of n output positions r and `columns` channels j, so that to[j * to_column + r] = sums[r][j]. Rows of `sums` are `width`
 * elements apart. The channels of a result are often memory pages apart, so the outer loop is over channels, and the inner loop writes to few
 * pages. */
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

/* Copies n contiguous elements. `rest` is the mask of the first n % LANES lanes, for the last vector. */
GRD_INLINE void copy_neighbours(int64_t n, lane_mask rest, const lane *from, lane *to)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_vector(to + i, load_vector(from + i));
    if (i < n)
        store_lanes(to + i, rest, load_lanes(from + i, rest));
}

/* Copies every `step`-th element, to[i] = from[i * step] for i < n. */
GRD_INLINE void copy_every(int64_t step, int64_t n, const lane *from, lane *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i * step];
}

/* Masks for copying the last elements of a row, which fill less than two vectors. `low` and `high` select the elements in the first and in the second
 * vector. When the row is split into elements with even and with odd indices, `even` and `odd` select the lanes that each half fills. */
struct pair_masks {
    lane_mask low, high, even, odd;
};

/* Returns the masks for copying the last n elements of a row, where n is less than two vectors. */
GRD_INLINE struct pair_masks masks_of_pair(int64_t n)
{
    return (struct pair_masks){first_lanes(n < LANES ? n : LANES), first_lanes(n < LANES ? 0 : n - LANES), first_lanes((n + 1) / 2),
                               first_lanes(n / 2)};
}

/* Copies n elements, those with even indices to `even` and those with odd indices to `odd`. `rest` holds the masks for the last n % (2 * LANES)
 * elements. */
GRD_INLINE void copy_pairs(int64_t n, struct pair_masks rest, const lane *from, lane *even, lane *odd)
{
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vector low = load_vector(from + i), high = load_vector(from + i + LANES);
        store_vector(even + i / 2, evens(low, high));
        store_vector(odd + i / 2, odds(low, high));
    }
    if (i == n)
        return;
    const vector low = load_lanes(from + i, rest.low), high = load_lanes(from + i + LANES, rest.high);
    store_lanes(even + i / 2, rest.even, evens(low, high));
    store_lanes(odd + i / 2, rest.odd, odds(low, high));
}

/* Interleaves two arrays into n elements of `to`. Elements of `to` with even indices are copied from `even`, those with odd indices from `odd`.
 * `rest` holds the masks for the last n % (2 * LANES) elements. */
GRD_INLINE void put_pairs(int64_t n, struct pair_masks rest, const lane *even, const lane *odd, lane *to)
{
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vector x = load_vector(even + i / 2), y = load_vector(odd + i / 2);
        store_vector(to + i, low_pairs(x, y));
        store_vector(to + i + LANES, high_pairs(x, y));
    }
    if (i == n)
        return;
    const vector x = load_lanes(even + i / 2, rest.even), y = load_lanes(odd + i / 2, rest.odd);
    store_lanes(to + i, rest.low, low_pairs(x, y));
    store_lanes(to + i + LANES, rest.high, high_pairs(x, y));
}

/* Copies a row of an image for a convolution whose stride is columns->split. Elements at this distance in `from` become neighbours in `to`, because
 * the convolution reads them one after the other. With p = before + i, element i goes to to[p % split * part + p / split]. Here `before`, `split` and
 * `part` are members of *columns. */
GRD_INLINE void copy_apart(const struct grd_conv_places *columns, const lane *from, lane *to)
{
    for (int64_t i = 0; i < columns->split && i < columns->n; i++) {
        const int64_t at = columns->before + i;
        copy_every(columns->split, (columns->n - i - 1) / columns->split + 1, from + i,
                   to + at % columns->split * columns->part + at / columns->split);
    }
}

/* Copies all rows of the image that `c` describes. `split` is the stride c->columns.split of the convolution along a row, passed as a constant if
 * it is 1 or 2, because these have faster loops. For other strides `split` is 0. */
GRD_INLINE void copy_rows(int split, const struct grd_conv_copy *c)
{
    const struct grd_conv_places rows = c->rows, columns = c->columns;
    const lane *from = (const lane *)c->from;
    const int64_t from_row = c->from_row, to_row = c->to_row;
    const lane_mask rest = first_lanes(columns.n % LANES);
    const struct pair_masks pair = masks_of_pair(columns.n % (2 * LANES));
    const int64_t even = columns.before % 2 * columns.part + columns.before / 2;
    const int64_t odd = (columns.before + 1) % 2 * columns.part + (columns.before + 1) / 2;
    int64_t part = rows.before % rows.split;
    lane *to = (lane *)c->to + rows.before / rows.split * to_row;
    for (int64_t row = 0; row < rows.n; row++, from += from_row) {
        lane *const place = to + part * rows.part;
        if (split == 1)
            copy_neighbours(columns.n, rest, from, place + columns.before);
        else if (split == 2)
            copy_pairs(columns.n, pair, from, place + even, place + odd);
        else
            copy_apart(&columns, from, place);
        if (++part == rows.split) {
            part = 0;
            to += to_row;
        }
    }
}

static void copy(const struct grd_conv_copy *c)
{
    if (c->columns.split == 1)
        copy_rows(1, c);
    else if (c->columns.split == 2)
        copy_rows(2, c);
    else
        copy_rows(0, c);
}

/* ---- Places in lanes ------------------------------------------------------------------------------------------------------------------ */

enum { LINE_SUMS = VECTOR_BYTES == 64 ? 24 : 10, MOST_LINE_VECTORS = 8 };
/* LINE_DEPTH: most products in a partial sum. Partial sums are added to one total, because a single long sum would have larger rounding errors.
 * LINE_CHAINS: the corresponding limit as a number of chains. A chain is up to three filter taps that share loaded vectors. */
enum { LINE_DEPTH = 64, LINE_CHAINS = 48 };

/* Returns how many vectors of a line are computed at a time for `rows` output channels, so that all sums stay in registers. A line is a row of
 * neighbouring output positions. */
GRD_INLINE int vectors_beside(int rows)
{
    return LINE_SUMS / rows < 1 ? 1 : LINE_SUMS / rows > MOST_LINE_VECTORS ? MOST_LINE_VECTORS : LINE_SUMS / rows;
}

_Static_assert((int)GRD_CONV_KEPT_BYTES >= (int)GRD_CONV_LINE_ROWS * MOST_LINE_VECTORS * VECTOR_BYTES, "room for a tile");

/* Adds the sums in registers, sum[r][v] for r < rows and v < vectors, to the partial sums at `kept`. If `added` is false, copies them to `kept`
 * instead. Then sets the sums in registers to 0. */
GRD_INLINE void keep_sums(int rows, int vectors, bool added, vector sum[GRD_CONV_LINE_ROWS][MOST_LINE_VECTORS], lane *kept)
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++, kept += LANES) {
            store_vector(kept, added ? load_vector(kept) + sum[r][v] : sum[r][v]);
            sum[r][v] = (vector){0};
        }
}

/* Adds the partial sums at `kept` to the sums in registers, sum[r][v] for r < rows and v < vectors. */
GRD_INLINE void add_kept_sums(int rows, int vectors, const lane *kept, vector sum[GRD_CONV_LINE_ROWS][MOST_LINE_VECTORS])
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++, kept += LANES)
            sum[r][v] += load_vector(kept);
}

/* Computes `vectors` vectors of neighbouring output positions for each of `rows` output channels. The vectors begin at position `first` of line
 * number `line`, where a line is a row of neighbouring output positions. If `whole` is false, `vectors` is 1, and only the first n lanes are read
 * and written. */
GRD_INLINE void line_tile(int rows, int vectors, bool whole, const struct grd_conv_line *l, int64_t line, int64_t first, int64_t n)
{
    const lane *const seen = (const lane *)l->seen + line * l->seen_line + first, *weights = (const lane *)l->weights;
    const lane *const bias = (const lane *)l->bias;
    lane *const sums = (lane *)l->sums + line * l->sums_line + first;
    const lane_mask mask = first_lanes(whole ? LANES : n);
    vector sum[GRD_CONV_LINE_ROWS][MOST_LINE_VECTORS];
    lane *const kept = (lane *)l->kept;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vector){0} + (bias != NULL ? bias[r] : 0);
    const int32_t *tap = l->taps, *const past = tap + l->depth;
    for (const int32_t *begin = tap, *end;; begin = end) {
        end = past - begin < LINE_DEPTH ? past : begin + LINE_DEPTH;
        for (; tap < end; tap++, weights += rows) {
            const lane *const from = seen + *tap;
            vector x[MOST_LINE_VECTORS];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                x[v] = whole ? load_vector(from + v * LANES) : load_lanes(from, mask);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                const lane weight = weights[r];
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    sum[r][v] += weight * x[v];
            }
        }
        if (end == past)
            break;
        keep_sums(rows, vectors, begin > l->taps, sum, kept);
    }
    if (l->depth > LINE_DEPTH)
        add_kept_sums(rows, vectors, kept, sum);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            if (whole)
                store_vector(sums + r * l->sums_row + v * LANES, sum[r][v]);
            else
                store_lanes(sums + r * l->sums_row, mask, sum[r][v]);
}

/* Computes output line number `line` (a row of neighbouring output positions), from position `first` on, for `rows` output channels. A tile of the
 * line is `vectors` vectors long. If more than half a tile remains at the end, the last tile begins earlier, so that it ends with the line, and some
 * positions are computed twice. A line shorter than a tile is not computed. Returns the first position that is not computed. */
GRD_INLINE int64_t line_tiles(int rows, int vectors, const struct grd_conv_line *l, int64_t line, int64_t first)
{
    for (; first + vectors * LANES <= l->n; first += vectors * LANES)
        line_tile(rows, vectors, true, l, line, first, LANES);
    if (l->n - first <= vectors / 2 * LANES || l->n < vectors * LANES)
        return first;
    line_tile(rows, vectors, true, l, line, l->n - vectors * LANES, LANES);
    return l->n;
}

/* Computes all lines of `rows` output channels, one line after the other. A line is a row of neighbouring output positions. If less than a full tile
 * remains at the end of a line, the rest is computed with fewer vectors at a time. */
GRD_INLINE void lines_of_rows(int rows, const struct grd_conv_line *l)
{
    const int vectors = vectors_beside(rows);
    for (int64_t line = 0; line < l->lines; line++) {
        int64_t first = line_tiles(rows, vectors, l, line, 0);
        if (vectors > 2)
            first = line_tiles(rows, (vectors + 1) / 2, l, line, first);
        if (vectors > 1)
            first = line_tiles(rows, 1, l, line, first);
        if (first < l->n)
            line_tile(rows, 1, false, l, line, first, l->n - first);
    }
}

/* Adds the products of a chain of `count` filter taps to the sums of `lines` output lines of `vectors` vectors each. In a chain, tap k reads for
 * output line i what tap 0 reads for output line i + k. So each input vector is loaded once for all taps. `last` is the offset of the last vector
 * in a line. If `vectors` is 1, only the lanes in `mask` are loaded. */
GRD_INLINE void add_chain(int count, int lines, int vectors, const struct grd_conv_line *l, const struct grd_conv_chain *chain,
                          const lane *seen, int64_t last, lane_mask mask, vector sum[MOST_LINE_VECTORS][MOST_LINE_VECTORS])
{
    vector weights[GRD_CONV_CHAIN];
#pragma GCC unroll 3
    for (int k = 0; k < count; k++)
        weights[k] = ((const lane *)l->weights)[chain->weight + k * chain->step] - (vector){0};
    seen += chain->tap;
#pragma GCC unroll 10
    for (int i = 0; i < lines + count - 1; i++, seen += l->seen_line)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const vector x = vectors == 1 ? load_lanes(seen, mask) : load_vector(seen + (v == vectors - 1 ? last : v * LANES));
#pragma GCC unroll 3
            for (int k = 0; k < count; k++)
                if (i - k >= 0 && i - k < lines)
                    sum[i - k][v] += weights[k] * x;
        }
}

/* Computes `lines` lines of one output channel, beginning with line `first`, where a line is a row of neighbouring output positions. A line is
 * `vectors` vectors long, and the last vector may overlap the one before it. `vectors` is 1 if a line is shorter than a vector. */
GRD_INLINE void short_lines_tile(int lines, int vectors, const struct grd_conv_line *l, int64_t first)
{
    const lane *const seen = (const lane *)l->seen + first * l->seen_line;
    lane *to = (lane *)l->sums + first * l->sums_line;
    const lane bias = l->bias != NULL ? *(const lane *)l->bias : 0;
    const lane_mask mask = first_lanes(vectors == 1 ? l->n : LANES);
    const int64_t last = vectors == 1 ? 0 : l->n - LANES;
    vector sum[MOST_LINE_VECTORS][MOST_LINE_VECTORS];
    lane *const kept = (lane *)l->kept;
#pragma GCC unroll 8
    for (int i = 0; i < lines; i++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (vector){0} + bias;
    const struct grd_conv_chain *chain = l->chains, *const past = chain + l->nchains;
    for (const struct grd_conv_chain *begin = chain, *end;; begin = end) {
        end = past - begin < LINE_CHAINS ? past : begin + LINE_CHAINS;
        for (; chain < end; chain++)
            if (chain->count == 3)
                add_chain(3, lines, vectors, l, chain, seen, last, mask, sum);
            else if (chain->count == 2)
                add_chain(2, lines, vectors, l, chain, seen, last, mask, sum);
            else
                add_chain(1, lines, vectors, l, chain, seen, last, mask, sum);
        if (end == past)
            break;
        keep_sums(lines, vectors, begin > l->chains, sum, kept);
    }
    if (l->nchains > LINE_CHAINS)
        add_kept_sums(lines, vectors, kept, sum);
#pragma GCC unroll 8
    for (int i = 0; i < lines; i++, to += l->sums_line)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            if (vectors == 1)
                store_lanes(to, mask, sum[i][v]);
            else
                store_vector(to + (v == vectors - 1 ? last : v * LANES), sum[i][v]);
}

/* Computes all lines (rows of neighbouring output positions) of one output channel, `lines` lines at a time. Requires that l->lines is at least
 * `lines`. Some of the last lines may be computed twice. */
GRD_INLINE void short_lines(int lines, int vectors, const struct grd_conv_line *l)
{
    for (int64_t first = 0; first < l->lines; first += lines)
        short_lines_tile(lines, vectors, l, first + lines <= l->lines ? first : l->lines - lines);
}

/* Computes all lines (rows of neighbouring output positions) of one output channel, `lines` lines at a time, or two at a time if there are fewer than
 * `lines`. */
GRD_INLINE void short_lines_of(int lines, int vectors, const struct grd_conv_line *l)
{
    if (l->lines >= lines)
        short_lines(lines, vectors, l);
    else
        short_lines(2, vectors, l);
}

/* Computes all lines (rows of neighbouring output positions) of one output channel. Lines of at most four vectors are computed several at a time, so
 * that the sums fill the registers. */
static void lines_of_one_row(const struct grd_conv_line *l)
{
    const int64_t vectors = l->lines == 1 ? 0 : vectors_of(l->n);
    if (vectors == 1 && l->lines < 8)
        short_lines_of(4, 1, l);
    else if (vectors == 1)
        short_lines(8, 1, l);
    else if (vectors == 2)
        short_lines_of(4, 2, l);
    else if (vectors == 3)
        short_lines_of(3, 3, l);
    else if (vectors == 4)
        short_lines_of(3, 4, l);
    else
        lines_of_rows(1, l);
}

static void line(const struct grd_conv_line *l)
{
    switch (l->nrows) {
    case 1:
        lines_of_one_row(l);
        break;
    case 2:
        lines_of_rows(2, l);
        break;
    case 3:
        lines_of_rows(3, l);
        break;
    case 4:
        lines_of_rows(4, l);
        break;
    case 5:
        lines_of_rows(5, l);
        break;
    case 6:
        lines_of_rows(6, l);
        break;
    case 7:
        lines_of_rows(7, l);
        break;
    default:
        lines_of_rows(8, l);
    }
}

/* Copies n elements to every second element of `to`, so that to[2 i] = from[i]. */
GRD_INLINE void put_apart(int64_t n, const lane *from, lane *to)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i < n; i += LANES) {
        const int64_t rest = n - i;
        const vector x = load_lanes(from + i, first_lanes(rest < LANES ? rest : LANES));
        store_lanes(to + 2 * i, 0x5555 & first_lanes(rest < LANES / 2 ? 2 * rest : LANES), low_pairs(x, x));
        if (rest > LANES / 2)
            store_lanes(to + 2 * i + LANES, 0x5555 & first_lanes(rest < LANES ? 2 * rest - LANES : LANES), high_pairs(x, x));
    }
#endif
    for (; i < n; i++)
        to[2 * i] = from[i];
}

/* Copies the matrix of sums that *p describes to the result. Column j of the sums is in block j % p->parts, and neighbouring columns of the result
 * are p->step elements apart. `parts` and `step` are p->parts and p->step, passed as constants, if there is a faster loop for them. Otherwise both
 * are 0. */
GRD_INLINE void put_rows(int parts, int step, const struct grd_conv_put *p)
{
    const lane *from = (const lane *)p->sums;
    lane *to = (lane *)p->to;
    const int64_t n = p->n, columns = p->columns, part = p->part, width = p->width, to_row = p->to_row;
    const lane_mask rest = first_lanes(columns % LANES);
    const struct pair_masks pair = masks_of_pair(columns % (2 * LANES));
    for (int64_t i = 0; i < n; i++, from += width, to += to_row)
        if (parts == 1 && step == 1)
            copy_neighbours(columns, rest, from, to);
        else if (parts == 2 && step == 1)
            put_pairs(columns, pair, from, from + part, to);
        else if (parts == 1 && step == 2)
            put_apart(columns, from, to);
        else
            for (int64_t k = 0; k < p->parts; k++)
                for (int64_t j = k; j < columns; j += p->parts)
                    to[j * p->step] = from[k * part + j / p->parts];
}

static void put(const struct grd_conv_put *p)
{
    if (p->parts == 1 && p->step == 1)
        put_rows(1, 1, p);
    else if (p->parts == 2 && p->step == 1)
        put_rows(2, 1, p);
    else if (p->parts == 1 && p->step == 2)
        put_rows(1, 2, p);
    else
        put_rows(0, 0, p);
}

/* ---- Sums over places ------------------------------------------------------------------------------------------------------------------ */

enum { DOT_ROWS = 4, DOT_ROWS_TAPS = VECTOR_BYTES == 64 ? 5 : 2, ONE_ROW_TAPS = 9 };

/* Adds to sums[r][k] the products of gradient and input at all output positions, for the output channels r in [row, row + rows) and the filter taps k
 * in [first, first + taps). The sum of a channel and a tap is the gradient of one weight. */
GRD_INLINE void dot_tile(int rows, int taps, const struct grd_conv_dots *d, int64_t row, int64_t first)
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

/* Calls dot_tile() for the output channels [row, row + rows) and for `taps` filter taps at a time, beginning with tap `first`, while at least `taps`
 * taps are left. Returns the first tap that is not computed. */
GRD_INLINE int64_t dot_tiles(int rows, int taps, const struct grd_conv_dots *d, int64_t row, int64_t first)
{
    for (; first + taps <= d->ntaps; first += taps)
        dot_tile(rows, taps, d, row, first);
    return first;
}

/* For each output channel in [row, row + rows) and each filter tap, adds the products of gradient and input at all output positions to the sum of
 * this channel and tap. */
GRD_INLINE void dot_rows_from(int rows, const struct grd_conv_dots *d, int64_t row)
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

/* For each i < n, writes to to[i] the sum of the lanes of vector number i of `sums`. */
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

/* ---- Complex results ---------------------------------------------------------------------------------------------------------------------- */

/* Writes the results x - y + (z - x - y) i + bias of a complex convolution, where x, y and z are the results of three real convolutions. The complex
 * results are written `step` elements apart. */
GRD_INLINE void join_every(int64_t step, const struct grd_conv_join *j)
{
    const lane *x = (const lane *)j->x, *y = x + j->part, *z = y + j->part, *bias = (const lane *)j->bias;
    const lane re = bias != NULL ? bias[0] : 0, im = bias != NULL ? bias[1] : 0;
    lane *const to = (lane *)j->to;
    for (int64_t i = 0; i < j->n; i++) {
        to[2 * i * step] = x[i] - y[i] + re;
        to[2 * i * step + 1] = z[i] - x[i] - y[i] + im;
    }
}

static void join(const struct grd_conv_join *j)
{
    if (j->step == 1)
        join_every(1, j);
    else
        join_every(j->step, j);
}

extern const struct grd_conv_row GRD_TYPED(grd_conv_row);
const struct grd_conv_row GRD_TYPED(grd_conv_row) = {.copy = copy,
                                                     .multiply = multiply,
                                                     .turn = turn,
                                                     .line = line,
                                                     .put = put,
                                                     .dots = dots,
                                                     .add_lanes = add_lanes,
                                                     .join = join,
                                                     .lanes = LANES,
                                                     .vectors = MOST_VECTORS};
