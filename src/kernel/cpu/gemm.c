/* Computes matrix products c = alpha * a b + beta * c. The build compiles this file once for each pair of a dtype and an instruction-set level. The
 * loops are:
 *
 *   for each panel, a group of columns of b whose rows fill up to 3 vectors
 *     for each strip of up to ROWS rows of a
 *       micro(): strip x panel in registers, then added to c
 *
 * packed() takes operands that the caller has packed. direct() reads `a` unpacked, and b as well if the rows of b are contiguous. Otherwise direct()
 * packs panels of b itself. Signed integers use the kernels of unsigned ones, since their products are the same modulo 2^bits. A packed row of a
 * complex operand holds the real parts and then the imaginary parts, so that no operation mixes lanes.
 * Invariant: an element of c that packed() computes depends only on its row of `a`, its column of b, alpha, beta and its old value, not on its
 * position in the product. An element of c that direct() computes may also depend on the shapes and strides of the call. */
#include "kernel/cpu/gemm_lanes.h"

#include "kernel/cpu/gemm_dots.h"
#include "kernel/gemm.h"

enum {
    /* Size in bytes of a panel, the few columns of b that direct() packs at a time. A panel fits the second-level cache. With smaller panels, c
     * would be read and written more often. */
    PANEL_BYTES = 72 << 10,
    DEPTH = PANEL_BYTES / (VECTORS * VECTOR_BYTES * PARTS), /* rows of b in a panel that direct() packs */
    /* Rows of b in a panel for packed(). With vectors of 512 bits the panel is read from the second-level cache. With shorter vectors the kernel
     * loads more often per multiplication, so the panel has half as many rows, which fit the first-level cache. */
    PACKED_DEPTH = (VECTOR_BYTES == 64 ? 512 : 256) / PARTS,
    /* Largest side of square matrices for which direct() takes less time than packing the operands and calling packed(). It is larger for vectors of
     * 512 bits, with which less is loaded from the second-level cache. */
    DIRECT_SIDE = PARTS == 2 ? 80 : (VECTOR_BYTES == 64 ? 256 : 128),
    ROW_VECTORS = 8, /* if `a` has one row: maximum width, in vectors, of the part of c that is computed at a time */
    RUN =
        8 /* maximum number of complex products in a partial sum, which is added to the total; one sum would lose digits as terms cancel */
};

/* ---- Where a product goes ---------------------------------------------------------------------------------------------------------- */

/* Describes the result c of a product, which becomes alpha * a b + beta * c. `row` and `column` are the strides of c in lanes. `overwrites` is true
 * if beta is 0. `takes_vectors` is true if rows of c are contiguous, alpha is 1 and beta is 0 or 1, so that vectors of sums can be stored or added
 * without a multiplication. */
struct target {
    int64_t row, column;
    lane alpha[2], beta[2];
    bool overwrites, takes_vectors;
};

/* Writes the real and the imaginary part of a scalar argument to ret_parts[0] and ret_parts[1]. */
static void scalar_parts(grd_scalar s, lane *ret_parts)
{
    bool real = s.kind == GRD_SCALAR_FLOAT || s.kind == GRD_SCALAR_COMPLEX;
    ret_parts[0] = real ? (lane)s.v.c.re : s.kind == GRD_SCALAR_UINT ? (lane)(uint64_t)s.v.i : (lane)s.v.i;
    ret_parts[1] = s.kind == GRD_SCALAR_COMPLEX ? (lane)s.v.c.im : 0;
}

/* Returns a copy of `to` with the right value of takes_vectors, which is true if vectors of sums can be stored or added to c without a
 * multiplication. */
static struct target with_takes_vectors(struct target to)
{
    to.takes_vectors = PARTS == 1 && to.column == 1 && to.alpha[0] == 1 && (to.overwrites || to.beta[0] == 1);
    return to;
}

/* Returns a struct target, which says how the sums of the product g are written to g->c. */
static struct target target_of(const struct grd_gemm *g)
{
    struct target to = {.row = g->c_row * PARTS, .column = g->c_col * PARTS};
    scalar_parts(g->alpha, to.alpha);
    scalar_parts(g->beta, to.beta);
    to.overwrites = to.beta[0] == 0 && to.beta[1] == 0;
    return with_takes_vectors(to);
}

/* Returns a copy of `to` with a beta of 1. direct() divides the rows of b into blocks, computes the product for one block after the other, and adds
 * the sums of all blocks but the first to c. */
static struct target adding_to(struct target to)
{
    to.beta[0] = 1;
    to.beta[1] = 0;
    to.overwrites = false;
    return with_takes_vectors(to);
}

/* Returns alpha * sum + beta * *c; *c is not read if beta is 0. */
GRD_INLINE lane combine(lane sum, const lane *c, const struct target *to)
{
    return to->overwrites ? to->alpha[0] * sum : to->alpha[0] * sum + to->beta[0] * *c;
}

#if !GRD_IS_COMPLEX
/* Replaces n elements of a row of c by alpha * sum + beta * c, with the sums from `sums` and alpha and beta from `to`. */
static __attribute__((noinline)) void write_row(const lane *sums, int64_t n, lane *c, const struct target *to)
{
    if (to->takes_vectors && to->overwrites)
        memcpy(c, sums, (size_t)n * sizeof *c);
    else
        for (int64_t j = 0; j < n; j++)
            c[j * to->column] = combine(sums[j], c + j * to->column, to);
}
#endif

/* Replaces m x n elements of c, one after the other, by alpha * sum + beta * c, with the sums from `tile` and alpha and beta from `to`. It is called
 * if the sums cannot be stored as vectors. A row of the tile has PARTS * WIDTH lanes. */
static __attribute__((noinline)) void write_tile(const lane *tile, int64_t m, int64_t n, lane *c, const struct target *to)
{
#if GRD_IS_COMPLEX
    const lane *alpha = to->alpha, *beta = to->beta;
    for (int64_t i = 0; i < m; i++, c += to->row, tile += PARTS * WIDTH)
        for (int64_t j = 0; j < n; j++) {
            lane re = tile[j] * alpha[0] - tile[WIDTH + j] * alpha[1], im = tile[j] * alpha[1] + tile[WIDTH + j] * alpha[0];
            if (alpha[1] == 0) { /* alpha is real; its imaginary part, 0, times infinity would be NaN */
                re = tile[j] * alpha[0];
                im = tile[WIDTH + j] * alpha[0];
            }
            lane *at = c + j * to->column;
            if (!to->overwrites) {
                lane x = at[0], y = at[1];
                re += beta[1] == 0 ? x * beta[0] : x * beta[0] - y * beta[1];
                im += beta[1] == 0 ? y * beta[0] : x * beta[1] + y * beta[0];
            }
            at[0] = re;
            at[1] = im;
        }
#else
    for (int64_t i = 0; i < m; i++)
        write_row(tile + i * WIDTH, n, c + i * to->row, to);
#endif
}

/* ---- One tile in registers ---------------------------------------------------------------------------------------------------------- */

/* Strides of the left operand `a` in lanes: `row` between two rows, `column` between two columns, and `part` from the real to the imaginary part
 * of an element. */
struct left {
    int64_t row, part, column;
};

/* A panel, which is a few columns of b; `columns` is their number. `row` is the distance in lanes between two rows of the panel, and `part` the
 * distance from the real to the imaginary part of an element. */
struct right {
    int64_t row, part, columns;
    lane_mask last;   /* the lanes of the last vector of a row that hold columns of b */
    bool full;        /* true if all lanes of the last vector may be read, so that no mask is needed */
    const char *soon; /* if b is packed: address in the next panel to prefetch from; it advances by soon_step bytes per row of b */
    int64_t soon_step;
};

/* Adds the sums in `tile`, which move_to_tile() has stored there, to the sums in registers. */
GRD_INLINE void add_tile(int rows, int vectors, const lane *tile, vector sum[ROWS][PARTS][VECTORS])
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[r][q][v] += load_vector(tile + (r * PARTS + q) * WIDTH + v * LANES);
}

/* Stores the sums in registers to `tile` and sets them to 0. */
GRD_INLINE void move_to_tile(int rows, int vectors, vector sum[ROWS][PARTS][VECTORS], lane *tile)
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) {
                store_vector(tile + (r * PARTS + q) * WIDTH + v * LANES, sum[r][q][v]);
                sum[r][q][v] = (vector){0};
            }
}

/* Computes one tile of c, which has `rows` rows and is `vectors` vectors wide. An element is the sum over p < k of a[r][p] * b[p][column]. Only the
 * first `valid` rows are written. `is_packed`, `rows` and `vectors` are constants where this is inlined. */
GRD_INLINE void micro(bool is_packed, int rows, int vectors, int64_t k, const lane *a, struct left left, const lane *b, struct right right,
                      int64_t valid, lane *c, const struct target *to)
{
    vector sum[ROWS][PARTS][VECTORS];
    lane tile[ROWS * PARTS * WIDTH];
    const bool direct_to_c = to->takes_vectors && valid == rows;
    lane *const out = direct_to_c ? c : tile;
    const int64_t out_row = direct_to_c ? to->row : WIDTH;
    const char *soon = right.soon;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[r][q][v] = (vector){0};
    /* The loop over k is divided into parts. Each part prefetches one row of c; prefetching all rows at once would delay the loads of a and b. For
     * complex dtypes a part is at most RUN products, which are summed by themselves before they are added to the total. */
    const int64_t parts = PARTS == 2 ? k / RUN + 1 : is_packed ? ROWS : 1;
    for (int64_t part = 0, p = 0; part < parts; part++) {
        if (is_packed && direct_to_c)
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(c + part * to->row + v * LANES, 1);
        for (const int64_t end = k * (part + 1) / parts; p < end; p++) {
            vector x[PARTS][VECTORS];
#pragma GCC unroll 2
            for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++) {
                    const lane *at = b + q * right.part + v * LANES;
                    if (is_packed && VECTOR_BYTES == 64) /* with narrower vectors, one prefetch per vector would delay the decoders */
                        __builtin_prefetch(at + AHEAD * right.row);
                    x[q][v] = right.full || v < vectors - 1 ? load_vector(at) : load_lanes(at, right.last);
                }
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                lane re = a[r * left.row];
#if GRD_IS_COMPLEX
                lane im = a[r * left.row + left.part];
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++) {
                    sum[r][0][v] += re * x[0][v];
                    sum[r][1][v] += re * x[1][v];
                    sum[r][0][v] -= im * x[1][v];
                    sum[r][1][v] += im * x[0][v];
                }
#else
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                    sum[r][0][v] += re * x[0][v];
#endif
            }
            if (is_packed) {
                __builtin_prefetch(soon, 0, 2);
                soon += right.soon_step;
            }
            a += left.column;
            b += right.row;
        }
        if (PARTS == 2 && part > 0)
            add_tile(rows, vectors, tile, sum);
        if (PARTS == 2 && part < parts - 1)
            move_to_tile(rows, vectors, sum, tile);
    }
    if (direct_to_c && !to->overwrites)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) {
                const lane *at = c + r * to->row + v * LANES;
                sum[r][0][v] += v < vectors - 1 ? load_vector(at) : load_lanes(at, right.last);
            }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) {
                lane *at = out + (r * PARTS + q) * out_row + v * LANES;
                if (PARTS == 2 || v < vectors - 1)
                    store_vector(at, sum[r][q][v]);
                else
                    store_lanes(at, right.last, sum[r][q][v]);
            }
    if (!direct_to_c)
        write_tile(tile, valid, right.columns, c, to);
}

/* Returns how many columns of b are multiplied next if `left` columns remain. */
GRD_INLINE int64_t columns_of_panel(int64_t left)
{
    return left < WIDTH ? left : WIDTH;
}

/* Returns a struct right for a panel of `columns` columns of b. In memory, rows of the panel are `row` lanes apart, and the imaginary part of an
 * element is `part` lanes after its real part. `full` is true if all lanes of the last vector of a row may be read. */
GRD_INLINE struct right right_of(int64_t columns, int64_t row, int64_t part, bool full)
{
    const lane_mask last = first_lanes(columns - (vectors_of(columns) - 1) * LANES);
    return (struct right){.row = row, .part = part, .columns = columns, .last = last, .full = full};
}

/* ---- Packing -------------------------------------------------------------------------------------------------------------------------- */

static void pack(int64_t k, int64_t columns, int64_t width, const char *from, int64_t row, int64_t column, char *panel)
{
    pack_lanes(k, columns, width, (const lane *)from, row * PARTS, column * PARTS, (lane *)panel);
}

/* ---- Both operands packed ----------------------------------------------------------------------------------------------------------- */

/* Multiplies all m rows of `a` with one panel of b, which is a few columns, and writes the products to c as *to says. `a` and b have been copied so
 * that each strip of ROWS rows and each panel is contiguous. While strips are multiplied, equal shares of the panel at `next` are prefetched. */
GRD_INLINE void packed_panel(int vectors, int64_t m, int64_t columns, int64_t k, const lane *a, const lane *b, const lane *next, lane *c,
                             const struct target *to)
{
    const struct left left = {1, ROWS, ROWS * PARTS};
    const int64_t width = vectors * LANES, row_bytes = vectors * VECTOR_BYTES * PARTS;
    struct right right = right_of(columns, width * PARTS, width, true);
    right.soon_step = m > ROWS ? row_bytes * ROWS / m : row_bytes;
    right.soon = (const char *)next;
    for (int64_t i = 0; i < m; i += ROWS) {
        micro(true, ROWS, vectors, k, a + i * k * PARTS, left, b, right, m - i < ROWS ? m - i : ROWS, c + i * to->row, to);
        right.soon += k * right.soon_step;
    }
}

static void packed(const struct grd_gemm *g)
{
    const struct target to = target_of(g);
    const lane *a = (const lane *)g->a, *b = (const lane *)g->b;
    for (int64_t j = 0; j < g->n; j += WIDTH) {
        const int64_t columns = columns_of_panel(g->n - j), vectors = vectors_of(columns);
        lane *c = (lane *)g->c + j * to.column;
        const lane *panel = b + j * g->k * PARTS;
        /* the panel to prefetch; after the last panel this is the first one, for the next call */
        const lane *next = j + WIDTH < g->n ? panel + WIDTH * g->k * PARTS : b;
        if (vectors == 3)
            packed_panel(3, g->m, columns, g->k, a, panel, next, c, &to);
        else if (vectors == 2)
            packed_panel(2, g->m, columns, g->k, a, panel, next, c, &to);
        else
            packed_panel(1, g->m, columns, g->k, a, panel, next, c, &to);
    }
}

/* ---- Dot products ------------------------------------------------------------------------------------------------------------------- */

/* Returns the sum of the n partial sums in `running`, which are overwritten. n is a power of two. */
GRD_INLINE lane sum_of_running(int n, lane *running)
{
    for (int half = n / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            running[l] += running[l + half];
    return running[0];
}

/* Writes the dot product of x and y to ret_sum, for a complex dtype as a real and an imaginary part. Several partial sums are computed side by side,
 * because the rounding error of a single sum would grow in proportion to n. */
static void dot_parts(int64_t n, const lane *x, int64_t x_stride, const lane *y, int64_t y_stride, lane *ret_sum)
{
    enum { RUNNING = 4, STRIDED = 16 };
#if GRD_IS_COMPLEX
    lane re[RUNNING] = {0}, im[RUNNING] = {0};
    int64_t i = 0;
    for (; i + RUNNING <= n; i += RUNNING)
        for (int r = 0; r < RUNNING; r++) {
            const lane *u = x + (i + r) * x_stride, *v = y + (i + r) * y_stride;
            re[r] += u[0] * v[0] - u[1] * v[1];
            im[r] += u[0] * v[1] + u[1] * v[0];
        }
    for (; i < n; i++) {
        const lane *u = x + i * x_stride, *v = y + i * y_stride;
        re[0] += u[0] * v[0] - u[1] * v[1];
        im[0] += u[0] * v[1] + u[1] * v[0];
    }
    ret_sum[0] = (re[0] + re[1]) + (re[2] + re[3]);
    ret_sum[1] = (im[0] + im[1]) + (im[2] + im[3]);
#else
    lane sum = 0;
    int64_t i = 0;
    if (x_stride == 1 && y_stride == 1 && n >= RUNNING * LANES) {
        lane parts[RUNNING * LANES];
        vector running[RUNNING] = {{0}};
        for (; i + RUNNING * LANES <= n; i += RUNNING * LANES)
#pragma GCC unroll 4
            for (int r = 0; r < RUNNING; r++)
                running[r] += load_vector(x + i + r * LANES) * load_vector(y + i + r * LANES);
        for (int r = 0; r < RUNNING; r++)
            store_vector(parts + r * LANES, running[r]);
        sum = sum_of_running(RUNNING * LANES, parts);
    } else if (n >= STRIDED) {
        lane parts[STRIDED] = {0};
        for (; i + STRIDED <= n; i += STRIDED)
            for (int r = 0; r < STRIDED; r++)
                parts[r] += x[(i + r) * x_stride] * y[(i + r) * y_stride];
        sum = sum_of_running(STRIDED, parts);
    }
    for (; i < n; i++)
        sum += x[i * x_stride] * y[i * y_stride];
    *ret_sum = sum;
#endif
}

static void dot(int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, void *ret_sum)
{
    dot_parts(n, (const lane *)x, x_stride * PARTS, (const lane *)y, y_stride * PARTS, ret_sum);
}

/* ---- Operands as they lie ----------------------------------------------------------------------------------------------------------- */

/* The product c = a b, where `a` is m x k, b is k x n and c is m x n. The strides between rows and between columns are counted in lanes, where a
 * complex element is two lanes. */
struct operands {
    int64_t m, n, k;
    const lane *a, *b;
    lane *c;
    int64_t a_row, a_col, b_row, b_col;
};

/* Replaces the product that *o and *to describe by its transpose, c^T = b^T a^T. */
static void transpose(struct operands *o, struct target *to)
{
    *o = (struct operands){o->n, o->m, o->k, o->b, o->a, o->c, o->b_col, o->b_row, o->a_col, o->a_row};
    const int64_t row = to->row;
    to->row = to->column;
    to->column = row;
    *to = with_takes_vectors(*to);
}

/* Computes all elements of c as dot products. Both operands are contiguous along k. */
static void dots(const struct operands *o, const struct target *to)
{
    int64_t j = 0;
#if !GRD_IS_COMPLEX
    for (; j + DOTS <= o->n; j += DOTS)
        for (int64_t i = 0; i < o->m; i++) {
            vector sums[DOTS]; /* dot_rows() writes DOTS sums to the first DOTS lanes */
            dot_rows(DOTS, o->k, o->a + i * o->a_row, o->b + j * o->b_col, o->b_col, sums);
            write_row((const lane *)sums, DOTS, o->c + i * to->row + j * to->column, to);
        }
#endif
    for (; j < o->n; j++)
        for (int64_t i = 0; i < o->m; i++) {
            lane parts[2], sum[PARTS * WIDTH];
            dot_parts(o->k, o->a + i * o->a_row, PARTS, o->b + j * o->b_col, PARTS, parts);
            for (int q = 0; q < PARTS; q++)
                sum[q * WIDTH] = parts[q];
            write_tile(sum, 1, 1, o->c + i * to->row + j * to->column, to);
        }
}

#if !GRD_IS_COMPLEX
/* Computes `vectors` vectors of the single row of c, beginning with column j. Each element is the sum over p of a[p] * b[p][j]. If `full` is
 * false, `vectors` is 1 and only the lanes in `last` are loaded. */
GRD_INLINE void row_panel(int vectors, const struct operands *o, int64_t j, lane_mask last, bool full, const struct target *to)
{
    vector sum[ROW_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        sum[v] = (vector){0};
    const lane *a = o->a, *b = o->b + j;
    for (int64_t p = 0; p < o->k; p++, a += o->a_col, b += o->b_row)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[v] += *a * (full ? load_vector(b + v * LANES) : load_lanes(b + v * LANES, last));
    lane sums[ROW_VECTORS * LANES];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        store_vector(sums + v * LANES, sum[v]);
    write_row(sums, vectors * LANES < o->n - j ? vectors * LANES : o->n - j, o->c + j * to->column, to);
}

/* Computes a product in which `a` has one row and the rows of b are contiguous. */
static void row_product(const struct operands *o, const struct target *to)
{
    const lane_mask all = first_lanes(LANES);
    int64_t j = 0;
    for (; j + 8 * LANES <= o->n; j += 8 * LANES)
        row_panel(8, o, j, all, true, to);
    if (j + 4 * LANES <= o->n) {
        row_panel(4, o, j, all, true, to);
        j += 4 * LANES;
    }
    if (j + 2 * LANES <= o->n) {
        row_panel(2, o, j, all, true, to);
        j += 2 * LANES;
    }
    for (; j < o->n; j += LANES)
        row_panel(1, o, j, first_lanes(o->n - j < LANES ? o->n - j : LANES), false, to);
}
#endif

/* Multiplies all m rows of `a` with one panel of b, which is a few columns, and writes the products to c as *to says. Takes strips of ROWS rows, and
 * smaller strips for the remaining rows. */
GRD_INLINE void strips(int vectors, int64_t m, int64_t k, const lane *a, struct left left, const lane *b, struct right right, lane *c,
                       const struct target *to)
{
    int64_t i = 0;
    for (; i + ROWS <= m; i += ROWS)
        micro(false, ROWS, vectors, k, a + i * left.row, left, b, right, ROWS, c + i * to->row, to);
    if (ROWS > 4 && i + 4 <= m) {
        micro(false, 4, vectors, k, a + i * left.row, left, b, right, 4, c + i * to->row, to);
        i += 4;
    }
    if (ROWS > 2 && i + 2 <= m) {
        micro(false, 2, vectors, k, a + i * left.row, left, b, right, 2, c + i * to->row, to);
        i += 2;
    }
    if (i < m)
        micro(false, 1, vectors, k, a + i * left.row, left, b, right, 1, c + i * to->row, to);
}

/* Returns how many columns of b are multiplied next if `left` columns remain. If rows of the remaining columns fill four vectors, takes two vectors
 * now and two next time, not three and one. With one vector there are too few independent sums, so the computation would wait for its loads. */
GRD_INLINE int64_t next_columns(int64_t left)
{
    return vectors_of(left) == 4 ? 2 * LANES : columns_of_panel(left);
}

static void direct(const struct grd_gemm *g)
{
    struct target to = target_of(g);
    struct operands o = {g->m,
                         g->n,
                         g->k,
                         (const lane *)g->a,
                         (const lane *)g->b,
                         (lane *)g->c,
                         g->a_row * PARTS,
                         g->a_col * PARTS,
                         g->b_row * PARTS,
                         g->b_col * PARTS};
    lane panel[PANEL_BYTES / sizeof(lane)] __attribute__((aligned(64)));
    /* A product with few rows of `a` is computed by dot products. This requires that b is contiguous along k, and that `a` is contiguous along k
     * or small enough to be copied. A product with few columns of b is first replaced by its transpose. */
    const bool copied = PARTS == 1 && o.k >= LANES && o.k <= PANEL_BYTES / (DOT_ROWS * (int64_t)sizeof(lane));
    if (o.n < o.m && (o.n == 1 || (o.n <= DOT_ROWS && o.a_col == PARTS && (o.b_row == PARTS || copied))))
        transpose(&o, &to);
    if (o.m <= DOT_ROWS && o.b_row == PARTS && (o.a_col == PARTS || copied)) {
        if (o.a_col != PARTS) {
            pack_lanes(o.m, o.k, o.k, o.a, o.a_row, o.a_col, panel);
            o.a = panel;
            o.a_row = o.k;
            o.a_col = 1;
        }
        dots(&o, &to);
        return;
    }
    /* Transposing exchanges the operands, and only the right one is packed. The product is transposed if `a` needs no packing or is smaller than
     * b. */
    if (PARTS == 1 && o.m > 1 && o.b_col != 1 && (o.a_row == 1 || o.m < o.n))
        transpose(&o, &to);
#if !GRD_IS_COMPLEX
    if (o.m == 1 && (o.b_col == 1 || o.n == 1)) {
        row_product(&o, &to);
        return;
    }
#endif
    const struct left left = {o.a_row, 1, o.a_col};
    for (int64_t j = 0, columns; j < o.n; j += columns) {
        struct target into = to;
        columns = next_columns(o.n - j);
        const int64_t vectors = vectors_of(columns), width = vectors * LANES;
        const bool in_place = PARTS == 1 && o.b_col == 1 && (MASKED || columns == width);
        const struct right right = right_of(columns, in_place ? o.b_row : width * PARTS, width, !MASKED);
        for (int64_t p = 0; p == 0 || p < o.k; p += DEPTH) {
            const int64_t depth = o.k - p < DEPTH ? o.k - p : DEPTH;
            const lane *b = o.b + p * o.b_row + j * o.b_col, *a = o.a + p * o.a_col;
            lane *c = o.c + j * to.column;
            if (p > 0)
                into = adding_to(to);
            if (!in_place) {
                pack_lanes(depth, columns, width, b, o.b_row, o.b_col, panel);
                b = panel;
            }
            if (vectors == 3)
                strips(3, o.m, depth, a, left, b, right, c, &into);
            else if (vectors == 2)
                strips(2, o.m, depth, a, left, b, right, c, &into);
            else
                strips(1, o.m, depth, a, left, b, right, c, &into);
        }
    }
}

/* ---- Sums of rows --------------------------------------------------------------------------------------------------------------------- */

static void add_rows(int64_t rows, int64_t n, char *to, int64_t to_row, int64_t step, const char *from, int64_t from_row)
{
    for (int64_t row = 0; row < rows; row++) {
        lane *x = (lane *)to + row * to_row * PARTS;
        const lane *y = (const lane *)from + row * from_row * PARTS;
        if (step == 1) {
            for (int64_t i = 0; i < n * PARTS; i++)
                x[i] += y[i];
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            for (int part = 0; part < PARTS; part++)
                x[i * step * PARTS + part] += y[i * PARTS + part];
    }
}

#if GRD_IS_FLOAT
extern grd_small_gemm_kernel GRD_TYPED(grd_small_gemm);
extern grd_small_triangle_kernel GRD_TYPED(grd_small_triangle);
#endif

const struct grd_product_kernels GRD_TYPED(grd_product_kernels) = {.direct = direct,
                                                                   .packed = packed,
                                                                   .pack = pack,
                                                                   .dot = dot,
                                                                   .add_rows = add_rows,
                                                                   .direct_work = DIRECT_SIDE * DIRECT_SIDE * DIRECT_SIDE,
#if GRD_IS_FLOAT
                                                                   .small = GRD_TYPED(grd_small_gemm),
                                                                   .small_work = MASKED ? 64 * 64 * 64 : 16 * 16 * 16,
                                                                   .triangle = GRD_TYPED(grd_small_triangle),
#endif
                                                                   .strip = ROWS,
                                                                   .panel = WIDTH,
                                                                   .lanes = LANES,
                                                                   .depth = PACKED_DEPTH};
