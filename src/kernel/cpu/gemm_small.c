/* Computes small matrix products of one real dtype at one instruction-set level. These products have kernels of their own, because the work that
 * gemm.c does once per product would take as long as their multiplications. The loops are:
 *
 *   for each panel, a group of columns of b whose rows fill a few vectors
 *     for each strip of rows of a
 *       tile(): strip x panel in registers, then written to c
 *
 * If the rows of b are contiguous, b is read without copying; otherwise each panel is copied first. If `a` has few rows and b has contiguous columns,
 * the product is computed by dot products. If c is a single column, the transpose of the product is computed.
 * Invariant: an element of c depends only on its row of `a`, its column of b, and the shapes and strides of the call. */
#include "kernel/cpu/gemm_lanes.h"

#include "kernel/cpu/gemm_dots.h"
#include "kernel/gemm.h"

/* A panel is the columns of b that are multiplied at a time. Its rows fill at most MOST_VECTORS vectors, or ROW_VECTORS if `a` has a single row.
 * A tile, the part of c whose sums are held in registers, has at most ROWS_v rows if it is v vectors wide. */
#if defined(__AVX512F__)
enum { MOST_VECTORS = 4, ROWS_1 = 16, ROWS_2 = 12, ROWS_3 = 8, ROWS_4 = 6 };
#else
enum { MOST_VECTORS = 3, ROWS_1 = 8, ROWS_2 = 6, ROWS_3 = 4 };
#endif
enum { ROW_VECTORS = 8, MOST_ROWS = 16 };

/* Returns `address` but hides from the compiler how it was computed. Otherwise the compiler would hold one address per row in registers instead of a
 * few. */
GRD_INLINE const char *opaque(const char *address)
{
    __asm__("" : "+r"(address));
    return address;
}

/* Multiplies `rows` rows of `a` with as many columns of b as fill `vectors` vectors, and adds the results to `sum`. If `full` is false, only the
 * lanes `last` of the last vector are loaded. A masked load occupies an execution unit that multiplications need, so full vectors are loaded without
 * a mask. The loop over k is not unrolled, because decoding longer code would cost more than it saves. */
GRD_INLINE void add_products(int rows, int vectors, bool full, const struct grd_small_gemm *g, lane_mask last,
                             vector sum[MOST_ROWS][ROW_VECTORS])
{
    const int64_t a_row = g->a_row * (int64_t)sizeof(lane), a_col = g->a_col * (int64_t)sizeof(lane);
    const char *a[MOST_ROWS / 4]; /* a[q] is the address of the current element of row 4 q */
#pragma GCC unroll 4
    for (int q = 0; q < (rows + 3) / 4; q++)
        a[q] = g->a + 4 * q * a_row;
    const lane *b = (const lane *)g->b;
    for (int64_t p = g->k; p > 0; p--, b += g->b_row) {
        vector x[ROW_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            x[v] = full || v < vectors - 1 ? load_vector(b + v * LANES) : load_lanes(b + v * LANES, last);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            const lane y = *(const lane *)(a[r / 4] + r % 4 * a_row);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] += y * x[v];
        }
#pragma GCC unroll 4
        for (int q = 0; q < (rows + 3) / 4; q++)
            a[q] = opaque(a[q] + a_col);
    }
}

/* Computes the whole product g, which has `rows` rows and is at most `vectors` vectors wide. `rows` and `vectors` are constants where this is
 * inlined. */
GRD_INLINE void tile(int rows, int vectors, const struct grd_small_gemm *g)
{
    vector sum[MOST_ROWS][ROW_VECTORS];
    const int64_t columns = g->n - (vectors - 1) * LANES; /* columns in the last vector */
    const lane_mask last = first_lanes(columns);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vector){0};
    if (columns == LANES || !MASKED)
        add_products(rows, vectors, true, g, last, sum);
    else
        add_products(rows, vectors, false, g, last, sum);
    if (g->added != NULL) {
        const lane *added = (const lane *)g->added;
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++, added += g->added_row)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] += v < vectors - 1 ? load_vector(added + v * LANES) : load_lanes(added + v * LANES, last);
    }
    const int64_t c_row = g->c_row;
    lane *c = (lane *)g->c;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += c_row)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            if (v < vectors - 1)
                store_vector(c + v * LANES, sum[r][v]);
            else
                store_lanes(c + v * LANES, last, sum[r][v]);
}

/* Computes the product g, which has between 1 and `most` rows and is `vectors` vectors wide. Calls tile() with this number of rows as a constant.
 * `most` and `vectors` are constants where this is inlined. */
GRD_INLINE void rows_of(int most, int vectors, const struct grd_small_gemm *g)
{
#define OF_ROWS(rows)                                                                                                                      \
    case rows:                                                                                                                             \
        tile(most >= (rows) ? (rows) : 0, vectors, g);                                                                                     \
        break
    switch (g->m) {
        /* clang-format off */
        OF_ROWS(1); OF_ROWS(2); OF_ROWS(3); OF_ROWS(4); OF_ROWS(5); OF_ROWS(6); OF_ROWS(7); OF_ROWS(8);
        OF_ROWS(9); OF_ROWS(10); OF_ROWS(11); OF_ROWS(12); OF_ROWS(13); OF_ROWS(14); OF_ROWS(15); OF_ROWS(16);
        /* clang-format on */
    default:
        break;
    }
}

/* Computes a product with at most ROWS_1 rows and a width of one vector. This function and the three after it are not inlined. Otherwise the caller
 * would save and restore the registers of the largest of them for every product. */
static __attribute__((noinline)) void strip_1(const struct grd_small_gemm *g)
{
    rows_of(ROWS_1, 1, g);
}

/* Computes a product with at most ROWS_2 rows and a width of two vectors. */
static __attribute__((noinline)) void strip_2(const struct grd_small_gemm *g)
{
    rows_of(ROWS_2, 2, g);
}

/* Computes a product with at most ROWS_3 rows and a width of three vectors. */
static __attribute__((noinline)) void strip_3(const struct grd_small_gemm *g)
{
    rows_of(ROWS_3, 3, g);
}

#if defined(__AVX512F__)
/* Computes a product with at most ROWS_4 rows and a width of four vectors. */
static __attribute__((noinline)) void strip_4(const struct grd_small_gemm *g)
{
    rows_of(ROWS_4, 4, g);
}
#endif

/* Multiplies all m rows of `a` with one panel of b, i.e. with as many columns as fill a few vector registers. Each call of strip_of() takes `most`
 * rows. If more than `most` but fewer than 2 * `most` rows are left, the last two calls take half of them each. */
GRD_INLINE void strips(int64_t most, void (*strip_of)(const struct grd_small_gemm *), struct grd_small_gemm *g, int64_t m)
{
    for (int64_t left = m; left > 0; left -= g->m) {
        g->m = left >= 2 * most ? most : left > most ? (left + 1) / 2 : left;
        strip_of(g);
        g->a += g->m * g->a_row * (int64_t)sizeof(lane);
        g->c += g->m * g->c_row * (int64_t)sizeof(lane);
        if (g->added != NULL)
            g->added += g->m * g->added_row * (int64_t)sizeof(lane);
    }
}

/* Returns the width of the next panel of b in vectors, where `left` is the width of all remaining columns in vectors. Never leaves just one vector
 * for the next call. A panel of one vector has so few independent sums that the computation would wait for its loads. */
GRD_INLINE int64_t next_vectors(int64_t left)
{
    if (left <= 3)
        return left;
    return MOST_VECTORS == 4 ? (left % 3 == 0 || left == 5 ? 3 : 4) : (left == 4 ? 2 : 3);
}

/* Computes the product g panel by panel. A panel is a group of neighbouring columns of b. A row of a panel fills a few vectors. If `copied`, copies
 * each panel to the memory at `panel` first. */
GRD_INLINE void panels(bool copied, const struct grd_small_gemm *g, lane *panel)
{
    for (int64_t j = 0, columns; j < g->n; j += columns) {
        struct grd_small_gemm part = *g;
        const int64_t left = g->n - j, vectors = next_vectors(vectors_of(left)), width = vectors * LANES;
        columns = grd_least(left, width);
        part.n = columns;
        part.b += j * g->b_col * (int64_t)sizeof(lane);
        part.c += j * (int64_t)sizeof(lane);
        if (g->added != NULL)
            part.added += j * (int64_t)sizeof(lane);
        if (copied) {
            pack_lanes(g->k, columns, width, (const lane *)part.b, g->b_row, g->b_col, panel);
            part.b = (const char *)panel;
            part.b_row = width;
        }
        if (vectors == 1)
            strips(ROWS_1, strip_1, &part, g->m);
        else if (vectors == 2)
            strips(ROWS_2, strip_2, &part, g->m);
        else if (vectors == 3)
            strips(ROWS_3, strip_3, &part, g->m);
#if defined(__AVX512F__)
        else
            strips(ROWS_4, strip_4, &part, g->m);
#endif
    }
}

/* Computes a product g in which the rows of b are contiguous. If all sums of the product fit in registers at once, computes it in one step. Otherwise
 * computes it panel by panel. A panel is a group of neighbouring columns of b. A row of a panel fills a few vectors. */
static void panels_in_place(const struct grd_small_gemm *g)
{
    const int64_t vectors = vectors_of(g->n);
    if (vectors == 1 && g->m <= ROWS_1)
        strip_1(g);
    else if (vectors == 2 && g->m <= ROWS_2)
        strip_2(g);
    else
        panels(false, g, NULL);
}

/* Computes a product in which `a` has a single row. Takes as many columns of b at a time as fill ROW_VECTORS vectors, so that there are many
 * independent sums and no addition waits for another. */
static __attribute__((noinline)) void row_panels(const struct grd_small_gemm *g)
{
    struct grd_small_gemm part = *g;
    for (int64_t left = g->n; left > 0; left -= ROW_VECTORS * LANES) {
        part.n = left < ROW_VECTORS * LANES ? left : ROW_VECTORS * LANES;
#define OF_VECTORS(vectors)                                                                                                                \
    case vectors:                                                                                                                          \
        tile(1, vectors, &part);                                                                                                           \
        break
        switch (vectors_of(part.n)) {
            /* clang-format off */
            OF_VECTORS(1); OF_VECTORS(2); OF_VECTORS(3); OF_VECTORS(4); OF_VECTORS(5); OF_VECTORS(6); OF_VECTORS(7);
            /* clang-format on */
        default:
            tile(1, ROW_VECTORS, &part);
            break;
        }
        part.b += ROW_VECTORS * VECTOR_BYTES;
        part.c += ROW_VECTORS * VECTOR_BYTES;
        if (part.added != NULL)
            part.added += ROW_VECTORS * VECTOR_BYTES;
    }
}

/* Computes a product in which the rows of b are not contiguous. Copies one group of columns of b at a time to `panel` and multiplies it. The rows of
 * `panel` fill a few vectors. */
static __attribute__((noinline)) void copied_panels(const struct grd_small_gemm *g)
{
    lane panel[GRD_SMALL_GEMM_SIDE * MOST_VECTORS * LANES] __attribute__((aligned(64)));
    panels(true, g, panel);
}

/* Sets c[d] to added[d] plus the sum over p < k of x[p] * y[d][p], for each d < `count`, which is a constant. A NULL `added` counts as 0. */
GRD_INLINE void write_dots(int count, int64_t k, const lane *x, const lane *y, int64_t y_row, const lane *added, lane *c)
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

/* Sets c[d] to added[d] plus the dot product of x and row d of y, for each d < n. A NULL `added` counts as 0. */
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
        panels_in_place(g);
    else if (g->m <= DOT_ROWS && g->a_col == 1 && g->b_row == 1)
        row_dots(g);
    else
        copied_panels(g);
}

/* Computes a product in which c is a single column, as c^T = b^T a^T. Requires that c and `added` are contiguous. */
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
