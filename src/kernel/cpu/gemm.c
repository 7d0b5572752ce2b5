/* The built-in product of one dtype at one instruction-set level: compiled with -DGRD_DTYPE and -DGRD_LEVEL.
 *
 *   for each panel of up to 3 vectors of columns       (accumulated in a tile buffer, so that half types are rounded once)
 *     for each block of K_BLOCK rows of b               (packed into PANEL unless b already lies so)
 *       for each strip of up to ROWS rows of a          micro(): strip x block, in registers
 *
 * Signed integers use the kernels of the unsigned ones: modulo 2^bits they are the same. Complex panels hold the real parts of a row
 * and then its imaginary parts, so that the lanes never mix.
 * Products and sums contract to one rounding where the level has it, unlike in other kernels: results of different levels differ in the
 * last bits.
 * Invariant: the result depends on the shapes and strides of one call alone. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

#include <string.h>

#include "kernel/cpu/typed.h"
#include "kernel/gemm.h"

/* What a vector lane holds, and what lies in memory: of complex dtypes one part. */
#if GRD_IS_COMPLEX
typedef R lane, element;
#else
typedef C lane;
typedef T element;
#endif

enum { PARTS = (GRD_IS_COMPLEX) ? 2 : 1 };

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, ROWS = (GRD_IS_COMPLEX) ? 4 : 8 };
#elif defined(__AVX__)
enum { VECTOR_BYTES = 32, ROWS = (GRD_IS_COMPLEX) ? 2 : 4 };
#else
enum { VECTOR_BYTES = 16, ROWS = (GRD_IS_COMPLEX) ? 2 : 4 };
#endif

typedef lane vector __attribute__((vector_size(VECTOR_BYTES)));
typedef lane vector_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(lane)), may_alias));

enum {
    LANES = VECTOR_BYTES / sizeof(lane),
    VECTORS = 3, /* of columns in a full panel */
    WIDTH = VECTORS * LANES,
    PANEL_BYTES = 36 << 10, /* a packed panel stays in the first-level cache */
    K_BLOCK = PANEL_BYTES / (VECTORS * VECTOR_BYTES * PARTS) & ~7,
    M_BLOCK = 192, /* rows of the tile buffer */
    SQUARE = 8,    /* of a block transposed in registers */
    DOT_ROWS = 4   /* a with this many rows or fewer, both operands contiguous along k: dot products, nothing is packed */
};

#define INLINE static inline __attribute__((always_inline))

INLINE lane widen(const element *p)
{
#if GRD_IS_COMPLEX
    return *p;
#else
    return load(*p);
#endif
}

#if !GRD_IS_COMPLEX
/* x * y + z; integers wrap. */
INLINE lane multiply_add(lane x, lane y, lane z)
{
#if GRD_IS_INTEGER
    return (lane)((U)x * y + z);
#else
    return x * y + z;
#endif
}
#endif

/* A number of the operator as (real, imaginary) lanes. */
static void scalar_parts(grd_scalar s, lane *ret_parts)
{
#if GRD_IS_INTEGER
    ret_parts[0] = (lane)(s.kind == GRD_SCALAR_FLOAT || s.kind == GRD_SCALAR_COMPLEX ? (int64_t)s.v.c.re : s.v.i);
#else
    bool real = s.kind == GRD_SCALAR_FLOAT || s.kind == GRD_SCALAR_COMPLEX;
    ret_parts[0] = real ? (lane)s.v.c.re : (lane)s.v.i;
    if (PARTS == 2)
        ret_parts[PARTS - 1] = s.kind == GRD_SCALAR_COMPLEX ? (lane)s.v.c.im : 0;
#endif
}

INLINE vector load_vector(const lane *p)
{
    return *(const vector_unaligned *)p;
}

INLINE void store_vector(lane *p, vector v)
{
    *(vector_unaligned *)p = v;
}

/* tile[r][part][column] (+)= sum over p of a[r][p] * b[p][column]: `rows` and `vectors` are constants where this is inlined. Strides of `a`
 * are in parts; a row of `b` holds its parts b_part apart. */
INLINE void micro(int rows, int vectors, int64_t k, const element *a, int64_t a_row, int64_t a_col, const lane *b, int64_t b_row,
                  int64_t b_part, lane *tile, bool accumulate)
{
    vector sum[ROWS][PARTS][VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[r][q][v] = accumulate ? load_vector(tile + (r * PARTS + q) * WIDTH + v * LANES) : (vector){0};
    for (int64_t p = 0; p < k; p++) {
        vector x[PARTS][VECTORS];
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                x[q][v] = load_vector(b + q * b_part + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            lane re = widen(a + r * a_row);
#if GRD_IS_COMPLEX
            lane im = widen(a + r * a_row + 1);
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
        a += a_col;
        b += b_row;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int q = 0; q < PARTS; q++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                store_vector(tile + (r * PARTS + q) * WIDTH + v * LANES, sum[r][q][v]);
}

/* All strips of m rows against one block of a panel. */
INLINE void strips(int vectors, int64_t m, int64_t k, const element *a, int64_t a_row, int64_t a_col, const lane *b, int64_t b_row,
                   int64_t b_part, lane *tile, bool accumulate)
{
    int64_t i = 0;
    for (; i + ROWS <= m; i += ROWS)
        micro(ROWS, vectors, k, a + i * a_row, a_row, a_col, b, b_row, b_part, tile + i * PARTS * WIDTH, accumulate);
    if (ROWS > 4 && i + 4 <= m) {
        micro(4, vectors, k, a + i * a_row, a_row, a_col, b, b_row, b_part, tile + i * PARTS * WIDTH, accumulate);
        i += 4;
    }
    if (ROWS > 2 && i + 2 <= m) {
        micro(2, vectors, k, a + i * a_row, a_row, a_col, b, b_row, b_part, tile + i * PARTS * WIDTH, accumulate);
        i += 2;
    }
    if (i < m)
        micro(1, vectors, k, a + i * a_row, a_row, a_col, b, b_row, b_part, tile + i * PARTS * WIDTH, accumulate);
}

typedef element square_row __attribute__((vector_size(SQUARE * sizeof(element))));

/* Transposes a square of elements by three perfect shuffles of its rows. */
INLINE void pack_square(const element *b, int64_t b_col, lane *panel, int64_t panel_row)
{
    square_row rows[SQUARE], shuffled[SQUARE];
    for (int i = 0; i < SQUARE; i++)
        memcpy(&rows[i], b + i * b_col, sizeof rows[i]);
#pragma GCC unroll 3
    for (int round = 0; round < 3; round++) {
#pragma GCC unroll 4
        for (int i = 0; i < SQUARE / 2; i++) {
            shuffled[2 * i] = __builtin_shufflevector(rows[i], rows[i + SQUARE / 2], 0, 8, 1, 9, 2, 10, 3, 11);
            shuffled[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + SQUARE / 2], 4, 12, 5, 13, 6, 14, 7, 15);
        }
#pragma GCC unroll 8
        for (int i = 0; i < SQUARE; i++)
            rows[i] = shuffled[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < SQUARE; i++) {
        element line[SQUARE];
        memcpy(line, &rows[i], sizeof line);
        for (int c = 0; c < SQUARE; c++)
            panel[i * panel_row + c] = widen(line + c);
    }
}

/* Copies k rows of `columns` columns into a panel, converted, zeros up to `width`. */
static void pack(int64_t k, int64_t columns, int64_t width, const element *b, int64_t b_row, int64_t b_col, lane *panel)
{
    int64_t row = width * PARTS;
    if (columns < width)
        memset(panel, 0, (size_t)(k * row) * sizeof *panel);
    if (b_row == PARTS && b_col != PARTS) { /* transposed */
        for (int64_t j = 0; j < columns; j += SQUARE) {
            int64_t end = j + SQUARE < columns ? j + SQUARE : columns, p = 0;
            if (PARTS == 1 && end == j + SQUARE)
                for (; p + SQUARE <= k; p += SQUARE)
                    pack_square(b + p + j * b_col, b_col, panel + p * row + j, row);
            for (; p < k; p++)
                for (int64_t q = 0; q < PARTS; q++)
                    for (int64_t c = j; c < end; c++)
                        panel[p * row + q * width + c] = widen(b + p * PARTS + c * b_col + q);
        }
    } else if (b_col == PARTS) {
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = 0; q < PARTS; q++)
                for (int64_t c = 0; c < columns; c++)
                    panel[p * row + q * width + c] = widen(b + p * b_row + c * PARTS + q);
    } else {
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = 0; q < PARTS; q++)
                for (int64_t c = 0; c < columns; c++)
                    panel[p * row + q * width + c] = widen(b + p * b_row + c * b_col + q);
    }
}

/* c = alpha * tile + beta * c for m x n elements. */
static void write_tile(const lane *tile, int64_t m, int64_t n, element *c, int64_t c_row, int64_t c_col, const lane *alpha,
                       const lane *beta)
{
    for (int64_t i = 0; i < m; i++, c += c_row, tile += PARTS * WIDTH) {
#if GRD_IS_COMPLEX
        bool plain = alpha[0] == 1 && alpha[1] == 0, fresh = beta[0] == 0 && beta[1] == 0;
        for (int64_t j = 0; j < n; j++) {
            lane re = tile[j], im = tile[WIDTH + j];
            if (!plain) {
                lane t = re * alpha[0] - im * alpha[1];
                im = re * alpha[1] + im * alpha[0];
                re = t;
            }
            element *to = c + j * c_col;
            if (!fresh) {
                lane t = to[0] * beta[0] - to[1] * beta[1];
                im += to[0] * beta[1] + to[1] * beta[0];
                re += t;
            }
            to[0] = re;
            to[1] = im;
        }
#else
        lane x = *alpha, y = *beta;
        if (y == 0 && c_col == 1) {
            for (int64_t j = 0; j < n; j++)
                c[j] = store(multiply_add(x, tile[j], 0));
        } else if (y == 0) {
            for (int64_t j = 0; j < n; j++)
                c[j * c_col] = store(multiply_add(x, tile[j], 0));
        } else {
            for (int64_t j = 0; j < n; j++)
                c[j * c_col] = store(multiply_add(x, tile[j], multiply_add(y, widen(c + j * c_col), 0)));
        }
#endif
    }
}

/* ---- Dot products ------------------------------------------------------------------------------------------------------------ */

/* Four running vectors over unit strides, one running value otherwise. The sum is written as PARTS lanes. */
static void dot_parts(int64_t n, const element *x, int64_t x_stride, const element *y, int64_t y_stride, lane *ret_sum)
{
#if GRD_IS_COMPLEX
    enum { RUNNING = 4 };
    lane re[RUNNING] = {0}, im[RUNNING] = {0};
    int64_t i = 0;
    for (; i + RUNNING <= n; i += RUNNING)
        for (int r = 0; r < RUNNING; r++) {
            const element *u = x + (i + r) * x_stride, *v = y + (i + r) * y_stride;
            re[r] += u[0] * v[0] - u[1] * v[1];
            im[r] += u[0] * v[1] + u[1] * v[0];
        }
    for (; i < n; i++) {
        const element *u = x + i * x_stride, *v = y + i * y_stride;
        re[0] += u[0] * v[0] - u[1] * v[1];
        im[0] += u[0] * v[1] + u[1] * v[0];
    }
    ret_sum[0] = (re[0] + re[1]) + (re[2] + re[3]);
    ret_sum[1] = (im[0] + im[1]) + (im[2] + im[3]);
#else
    enum { RUNNING = 4 };
    lane sum = 0;
    int64_t i = 0;
    if (x_stride == 1 && y_stride == 1) {
        lane parts[RUNNING * LANES] = {0};
        if (n >= RUNNING * LANES) {
#if GRD_IS_HALF
            for (; i + RUNNING * LANES <= n; i += RUNNING * LANES)
                for (int l = 0; l < RUNNING * LANES; l++)
                    parts[l] += widen(x + i + l) * widen(y + i + l);
#else
            vector running[RUNNING] = {{0}};
            for (; i + RUNNING * LANES <= n; i += RUNNING * LANES)
#pragma GCC unroll 4
                for (int r = 0; r < RUNNING; r++)
                    running[r] += load_vector(x + i + r * LANES) * load_vector(y + i + r * LANES);
            for (int r = 0; r < RUNNING; r++)
                store_vector(parts + r * LANES, running[r]);
#endif
            for (int half = RUNNING * LANES / 2; half > 0; half /= 2)
                for (int l = 0; l < half; l++)
                    parts[l] = (lane)(parts[l] + parts[l + half]);
        }
        sum = parts[0];
    }
    for (; i < n; i++)
        sum = multiply_add(widen(x + i * x_stride), widen(y + i * y_stride), sum);
    *ret_sum = sum;
#endif
}

void GRD_TYPED(grd_dot)(int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, void *ret_sum);
void GRD_TYPED(grd_dot)(int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, void *ret_sum)
{
    dot_parts(n, (const element *)x, x_stride * PARTS, (const element *)y, y_stride * PARTS, ret_sum);
}

/* ---- The product --------------------------------------------------------------------------------------------------------------- */

void GRD_TYPED(grd_gemm)(const struct grd_gemm *g);
void GRD_TYPED(grd_gemm)(const struct grd_gemm *g)
{
    int64_t m = g->m, n = g->n, k = g->k;
    const element *a = (const element *)g->a, *b = (const element *)g->b;
    element *c = (element *)g->c;
    int64_t a_row = g->a_row * PARTS, a_col = g->a_col * PARTS, b_row = g->b_row * PARTS, b_col = g->b_col * PARTS;
    int64_t c_row = g->c_row * PARTS, c_col = g->c_col * PARTS;
    if (n == 1 && m > 1) { /* c^T = b^T a^T: one row against many columns */
        const element *t = a;
        int64_t s = a_row;
        a = b, b = t;
        a_row = b_col, b_col = s;
        s = a_col, a_col = b_row, b_row = s;
        s = c_row, c_row = c_col, c_col = s;
        n = m, m = 1;
    }
    lane alpha[2], beta[2];
    scalar_parts(g->alpha, alpha);
    scalar_parts(g->beta, beta);
    if (m <= DOT_ROWS && a_col == PARTS && b_row == PARTS) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                lane parts[2], sum[PARTS * WIDTH];
                dot_parts(k, a + i * a_row, PARTS, b + j * b_col, PARTS, parts);
                for (int q = 0; q < PARTS; q++)
                    sum[q * WIDTH] = parts[q];
                write_tile(sum, 1, 1, c + i * c_row + j * c_col, c_row, c_col, alpha, beta);
            }
        return;
    }
    lane panel[PANEL_BYTES / sizeof(lane)] __attribute__((aligned(64)));
    lane tile[M_BLOCK * PARTS * WIDTH] __attribute__((aligned(64)));
    for (int64_t j = 0; j < n; j += WIDTH) {
        int64_t columns = n - j < WIDTH ? n - j : WIDTH;
        int vectors = (int)((columns + LANES - 1) / LANES);
        int64_t width = vectors * LANES;
        bool direct = !(GRD_IS_HALF) && !(GRD_IS_COMPLEX) && b_col == 1 && columns == width && m <= M_BLOCK;
        for (int64_t i = 0; i < m; i += M_BLOCK) {
            int64_t rows = m - i < M_BLOCK ? m - i : M_BLOCK;
            for (int64_t p = 0; p == 0 || p < k; p += K_BLOCK) {
                int64_t depth = k - p < K_BLOCK ? k - p : K_BLOCK;
                const lane *block = panel;
                int64_t block_row = width * PARTS;
                if (direct) {
                    block = (const lane *)(b + p * b_row + j);
                    block_row = b_row;
                } else if (i == 0 || k > K_BLOCK) {
                    pack(depth, columns, width, b + p * b_row + j * b_col, b_row, b_col, panel);
                }
                const element *left = a + i * a_row + p * a_col;
                if (vectors == 3)
                    strips(3, rows, depth, left, a_row, a_col, block, block_row, width, tile, p > 0);
                else if (vectors == 2)
                    strips(2, rows, depth, left, a_row, a_col, block, block_row, width, tile, p > 0);
                else
                    strips(1, rows, depth, left, a_row, a_col, block, block_row, width, tile, p > 0);
            }
            write_tile(tile, rows, columns, c + i * c_row + j * c_col, c_row, c_col, alpha, beta);
        }
    }
}
