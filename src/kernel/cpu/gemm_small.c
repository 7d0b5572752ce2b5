/* Small products of one real dtype at one instruction-set level: what is done once for a product counts as much as its multiplications.
 *
 *   for each panel of a few vectors of columns of b
 *     for each strip of rows of a, all of about the same height
 *       tile(): strip x panel in registers, then written to c
 *
 * b is read as it lies where its rows are contiguous, otherwise each panel is copied first. Few rows against columns contiguous along k
 * are dot products. A single column is multiplied as a row.
 * Invariant: an element depends on its row, its column, and the shapes and strides of the call. */
#include "kernel/cpu/gemm_lanes.h"

#include "kernel/cpu/gemm_dots.h"
#include "kernel/gemm.h"

/* Panels are at most MOST_VECTORS wide, of a single row ROW_VECTORS; a tile of 1, 2, … vectors has as many rows as there are registers for,
 * of vectors and of addresses. */
#if defined(__AVX512F__)
enum { MOST_VECTORS = 4, ROWS_1 = 8, ROWS_2 = 8, ROWS_3 = 8, ROWS_4 = 6 };
#else
enum { MOST_VECTORS = 3, ROWS_1 = 8, ROWS_2 = 6, ROWS_3 = 4 };
#endif
enum { ROW_VECTORS = 8, MOST_ROWS = 8 };

/* A panel of b: contiguous columns, the first one being column `at` of c. */
struct panel {
    const lane *b;
    int64_t row, at, columns;
};

/* Rows of c from row i: the sums over p of a[i][p] * b[p], plus `added`. `rows` and `vectors` are constants where this is inlined. */
INLINE void tile(int rows, int vectors, const struct grd_small_gemm *g, struct panel s, int64_t i)
{
    vector sum[MOST_ROWS][ROW_VECTORS];
    const lane_mask last = first_lanes(s.columns - (vectors - 1) * LANES); /* of the last vector of columns */
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vector){0};
    const int64_t a_row = g->a_row, a_col = g->a_col;
    const lane *a = (const lane *)g->a + i * a_row, *b = s.b;
    for (int64_t p = g->k; p > 0; p--, a += a_col, b += s.row) {
        vector x[ROW_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            x[v] = v < vectors - 1 || !MASKED ? load_vector(b + v * LANES) : load_lanes(b + v * LANES, last);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] += a[r * a_row] * x[v];
    }
    if (g->added != NULL) {
        const lane *added = (const lane *)g->added + i * g->added_row + s.at;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++, added += g->added_row)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] += v < vectors - 1 ? load_vector(added + v * LANES) : load_lanes(added + v * LANES, last);
    }
    const int64_t c_row = g->c_row;
    lane *c = (lane *)g->c + i * c_row + s.at;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++, c += c_row)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            if (v < vectors - 1)
                store_vector(c + v * LANES, sum[r][v]);
            else
                store_lanes(c + v * LANES, last, sum[r][v]);
}

/* A strip of 1 … `most` rows, a constant, against one panel. */
INLINE void strip(int most, int vectors, const struct grd_small_gemm *g, struct panel s, int64_t i, int64_t rows)
{
    switch (rows) {
    case 1:
        tile(1, vectors, g, s, i);
        break;
    case 2:
        tile(2, vectors, g, s, i);
        break;
    case 3:
        tile(3, vectors, g, s, i);
        break;
    case 4:
        tile(4, vectors, g, s, i);
        break;
    case 5:
        tile(most >= 5 ? 5 : 0, vectors, g, s, i);
        break;
    case 6:
        tile(most >= 6 ? 6 : 0, vectors, g, s, i);
        break;
    case 7:
        tile(most >= 7 ? 7 : 0, vectors, g, s, i);
        break;
    case 8:
        tile(most >= 8 ? 8 : 0, vectors, g, s, i);
        break;
    default:
        break;
    }
}

/* Functions of their own: what one needs from memory and registers does not burden the others. */
static __attribute__((noinline)) void strip_1(const struct grd_small_gemm *g, struct panel s, int64_t i, int64_t rows)
{
    strip(ROWS_1, 1, g, s, i, rows);
}

static __attribute__((noinline)) void strip_2(const struct grd_small_gemm *g, struct panel s, int64_t i, int64_t rows)
{
    strip(ROWS_2, 2, g, s, i, rows);
}

static __attribute__((noinline)) void strip_3(const struct grd_small_gemm *g, struct panel s, int64_t i, int64_t rows)
{
    strip(ROWS_3, 3, g, s, i, rows);
}

#if defined(__AVX512F__)
static __attribute__((noinline)) void strip_4(const struct grd_small_gemm *g, struct panel s, int64_t i, int64_t rows)
{
    strip(ROWS_4, 4, g, s, i, rows);
}
#endif

/* All rows of a against one panel, in strips of about the same number of rows, at most `most`. */
INLINE void strips(unsigned most, void (*strip_of)(const struct grd_small_gemm *, struct panel, int64_t, int64_t),
                   const struct grd_small_gemm *g, struct panel s)
{
    const unsigned m = (unsigned)g->m;
    if (m <= most) {
        strip_of(g, s, 0, m);
        return;
    }
    const unsigned count = (m + most - 1) / most, rows = (m + count - 1) / count;
    for (unsigned i = 0; i < m; i += rows)
        strip_of(g, s, i, m - i < rows ? m - i : rows);
}

/* How wide the next panel is: never one vector, which would wait for its loads, where there are more. */
INLINE int64_t next_vectors(int64_t left)
{
    if (left <= 3)
        return left;
    return MOST_VECTORS == 4 ? (left % 3 == 0 || left == 5 ? 3 : 4) : (left == 4 ? 2 : 3);
}

/* `copied`: panels are copied first. */
INLINE void panels(bool copied, const struct grd_small_gemm *g, lane *panel)
{
    const lane *b = (const lane *)g->b;
    for (int64_t j = 0, columns; j < g->n; j += columns) {
        const int64_t left = g->n - j, vectors = next_vectors(vectors_of(left)), width = vectors * LANES;
        columns = left < width ? left : width;
        struct panel s = {.b = b + j, .row = g->b_row, .at = j, .columns = columns};
        if (copied) {
            s.b = panel;
            s.row = width;
            pack_lanes(g->k, columns, width, b + j * g->b_col, g->b_row, g->b_col, panel);
        }
        if (vectors == 1)
            strips(ROWS_1, strip_1, g, s);
        else if (vectors == 2)
            strips(ROWS_2, strip_2, g, s);
        else if (vectors == 3)
            strips(ROWS_3, strip_3, g, s);
#if defined(__AVX512F__)
        else
            strips(ROWS_4, strip_4, g, s);
#endif
    }
}

/* A single row of a: wide panels, so that sums do not wait for each other. */
static __attribute__((noinline)) void row_panels(const struct grd_small_gemm *g)
{
    for (int64_t j = 0; j < g->n; j += ROW_VECTORS * LANES) {
        const int64_t left = g->n - j, most = ROW_VECTORS * LANES;
        const struct panel s = {(const lane *)g->b + j, g->b_row, j, left < most ? left : most};
        switch (vectors_of(s.columns)) {
        case 1:
            tile(1, 1, g, s, 0);
            break;
        case 2:
            tile(1, 2, g, s, 0);
            break;
        case 3:
            tile(1, 3, g, s, 0);
            break;
        case 4:
            tile(1, 4, g, s, 0);
            break;
        case 5:
            tile(1, 5, g, s, 0);
            break;
        case 6:
            tile(1, 6, g, s, 0);
            break;
        case 7:
            tile(1, 7, g, s, 0);
            break;
        default:
            tile(1, 8, g, s, 0);
            break;
        }
    }
}

static __attribute__((noinline)) void copied_panels(const struct grd_small_gemm *g)
{
    lane panel[GRD_SMALL_GEMM_SIDE * MOST_VECTORS * LANES] __attribute__((aligned(64)));
    panels(true, g, panel);
}

/* c[d] = sum over p of x[p] * y[d][p], plus added[d], for `count` d, a constant. */
INLINE void write_dots(int count, int64_t k, const lane *x, const lane *y, int64_t y_row, const lane *added, lane *c)
{
    vector sums[DOTS];
    dot_rows(count, k, x, y, y_row, sums);
    const lane_mask some = first_lanes(count < LANES ? count : LANES);
#pragma GCC unroll 4
    for (int v = 0; v * LANES < count; v++) {
        if (added != NULL)
            sums[v] += load_lanes(added + v * LANES, some);
        store_lanes(c + v * LANES, some, sums[v]);
    }
}

/* n dot products. */
static void dots(int64_t n, int64_t k, const lane *x, const lane *y, int64_t y_row, const lane *added, lane *c)
{
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        write_dots(8, k, x, y + j * y_row, y_row, added != NULL ? added + j : NULL, c + j);
    if (j + 4 <= n) {
        write_dots(4, k, x, y + j * y_row, y_row, added != NULL ? added + j : NULL, c + j);
        j += 4;
    }
    for (; j < n; j++)
        write_dots(1, k, x, y + j * y_row, y_row, added != NULL ? added + j : NULL, c + j);
}

static __attribute__((noinline)) void row_dots(const struct grd_small_gemm *g)
{
    const lane *a = (const lane *)g->a, *added = (const lane *)g->added;
    for (int64_t i = 0; i < g->m; i++)
        dots(g->n, g->k, a + i * g->a_row, (const lane *)g->b, g->b_col, added != NULL ? added + i * g->added_row : NULL,
             (lane *)g->c + i * g->c_row);
}

static void multiply(const struct grd_small_gemm *g)
{
    const bool in_place = g->b_col == 1 && (MASKED || g->n % LANES == 0);
    if (in_place && g->m == 1)
        row_panels(g);
    else if (in_place)
        panels(false, g, NULL);
    else if (g->m <= DOT_ROWS && g->a_col == 1 && g->b_row == 1)
        row_dots(g);
    else
        copied_panels(g);
}

/* c^T = b^T a^T, where c and `added` are contiguous. */
static __attribute__((noinline)) void multiply_column(const struct grd_small_gemm *g)
{
    multiply(&(struct grd_small_gemm){.m = 1,
                                      .n = g->m,
                                      .k = g->k,
                                      .a = g->b,
                                      .b = g->a,
                                      .added = g->added,
                                      .c = g->c,
                                      .a_row = g->b_col,
                                      .a_col = g->b_row,
                                      .b_row = g->a_col,
                                      .b_col = g->a_row});
}

extern grd_small_gemm_kernel GRD_TYPED(grd_small_gemm);
void GRD_TYPED(grd_small_gemm)(const struct grd_small_gemm *g)
{
    if (g->n == 1 && g->m > 1 && g->c_row == 1 && (g->added == NULL || g->added_row == 1))
        multiply_column(g);
    else
        multiply(g);
}
