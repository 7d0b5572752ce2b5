/* Softmax, log-softmax and their backward passes along one dimension. Typed: float32 float64.
 *
 * Everything is shifted by the maximum, so that nothing overflows; sums are gathered in double, piece by piece, and over
 * partial results at fixed places within a piece. A line that holds NaN, or only -inf, is NaN throughout. */
#include <math.h>
#include <string.h>

#include "kernel/cpu/level.h"
#include "kernel/cpu/typed.h"
#include "kernel/cpu/reduce_exp.h"
#include "kernel/reduce.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 32, PIECE = 512, COLUMNS = GRD_SOFTMAX_COLUMNS };

INLINE int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Lines ---------------------------------------------------------------------------------------------------------------- */
/* NaN is passed over: it comes back through the sum. */
INLINE T line_max(int64_t n, const T *x)
{
    T best = -INFINITY;
    int64_t i = 0;
    if (n >= LANES) {
        T lanes[LANES];
        for (int l = 0; l < LANES; l++)
            lanes[l] = x[l];
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++)
                lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
        for (int l = 0; l < LANES; l++)
            best = lanes[l] > best ? lanes[l] : best;
    }
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

INLINE double piece_sum(int64_t n, const T *x)
{
    double sum = 0;
    int64_t i = 0;
    if (n >= LANES) {
        T lanes[LANES];
        for (int l = 0; l < LANES; l++)
            lanes[l] = x[l];
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++)
                lanes[l] += x[i + l];
        for (int width = LANES / 2; width > 0; width /= 2)
            for (int l = 0; l < width; l++)
                lanes[l] += lanes[l + width];
        sum = lanes[0];
    }
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

INLINE double piece_dot(int64_t n, const T *restrict x, const T *restrict y)
{
    T products[PIECE];
    for (int64_t i = 0; i < n; i++)
        products[i] = x[i] * y[i];
    return piece_sum(n, products);
}

INLINE void piece_exp(int64_t n, const T *restrict x, T shift, T *restrict ret)
{
    for (int64_t i = 0; i < n; i++)
        ret[i] = reduce_exp(x[i] - shift);
}

static void softmax_lines(const struct grd_softmax_block *b)
{
    T piece[PIECE]; /* out may be in: the loops are over memory of their own */
    for (int64_t line = 0; line < b->lines; line++) {
        const T *x = (const T *)b->in + line * b->n;
        T *out = (T *)b->out + line * b->n;
        T max = line_max(b->n, x);
        double sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE) {
            int64_t n = at_most(PIECE, b->n - i);
            piece_exp(n, x + i, max, piece);
            sum += piece_sum(n, piece);
            memcpy(out + i, piece, (size_t)n * sizeof *piece);
        }
        T scale = (T)(1 / sum);
        for (int64_t i = 0; i < b->n; i++)
            out[i] *= scale;
    }
}

static void log_softmax_lines(const struct grd_softmax_block *b)
{
    T piece[PIECE];
    for (int64_t line = 0; line < b->lines; line++) {
        const T *x = (const T *)b->in + line * b->n;
        T *out = (T *)b->out + line * b->n;
        T max = line_max(b->n, x);
        double sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE) {
            int64_t n = at_most(PIECE, b->n - i);
            piece_exp(n, x + i, max, piece);
            sum += piece_sum(n, piece);
        }
        T log_sum = (T)log(sum);
        for (int64_t i = 0; i < b->n; i++)
            out[i] = x[i] - max - log_sum;
    }
}

static void softmax_backward_lines(const struct grd_softmax_block *b)
{
    for (int64_t line = 0; line < b->lines; line++) {
        const T *y = (const T *)b->in + line * b->n, *grad = (const T *)b->grad + line * b->n;
        T *out = (T *)b->out + line * b->n;
        double sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE)
            sum += piece_dot(at_most(PIECE, b->n - i), grad + i, y + i);
        T s = (T)sum;
        for (int64_t i = 0; i < b->n; i++)
            out[i] = (grad[i] - s) * y[i];
    }
}

static void log_softmax_backward_lines(const struct grd_softmax_block *b)
{
    for (int64_t line = 0; line < b->lines; line++) {
        const T *y = (const T *)b->in + line * b->n, *grad = (const T *)b->grad + line * b->n;
        T *out = (T *)b->out + line * b->n;
        double sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE)
            sum += piece_sum(at_most(PIECE, b->n - i), grad + i);
        T s = (T)sum;
        for (int64_t i = 0; i < b->n; i++)
            out[i] = grad[i] - reduce_exp(y[i]) * s;
    }
}

/* ---- Columns: row i of the block is at i * inner ------------------------------------------------------------------------------ */
INLINE void column_max(const struct grd_softmax_block *b, T *restrict max)
{
    int64_t cols = b->lines;
    for (int64_t j = 0; j < cols; j++)
        max[j] = -INFINITY;
    for (int64_t i = 0; i < b->n; i++) {
        const T *restrict x = (const T *)b->in + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            max[j] = x[j] > max[j] ? x[j] : max[j];
    }
}

static void softmax_columns(const struct grd_softmax_block *b)
{
    int64_t cols = b->lines;
    T max[COLUMNS], row[COLUMNS];
    double sum[COLUMNS] = {0};
    column_max(b, max);
    for (int64_t i = 0; i < b->n; i++) {
        const T *x = (const T *)b->in + i * b->inner;
        T *out = (T *)b->out + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            row[j] = reduce_exp(x[j] - max[j]);
        for (int64_t j = 0; j < cols; j++)
            sum[j] += row[j];
        memcpy(out, row, (size_t)cols * sizeof *row);
    }
    for (int64_t j = 0; j < cols; j++)
        max[j] = (T)(1 / sum[j]);
    for (int64_t i = 0; i < b->n; i++) {
        T *out = (T *)b->out + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            out[j] *= max[j];
    }
}

static void log_softmax_columns(const struct grd_softmax_block *b)
{
    int64_t cols = b->lines;
    T max[COLUMNS], log_sum[COLUMNS];
    double sum[COLUMNS] = {0};
    column_max(b, max);
    for (int64_t i = 0; i < b->n; i++) {
        const T *x = (const T *)b->in + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            sum[j] += reduce_exp(x[j] - max[j]);
    }
    for (int64_t j = 0; j < cols; j++)
        log_sum[j] = (T)log(sum[j]);
    for (int64_t i = 0; i < b->n; i++) {
        const T *x = (const T *)b->in + i * b->inner;
        T *out = (T *)b->out + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            out[j] = x[j] - max[j] - log_sum[j];
    }
}

static void softmax_backward_columns(const struct grd_softmax_block *b)
{
    int64_t cols = b->lines;
    double sum[COLUMNS] = {0};
    for (int64_t i = 0; i < b->n; i++) {
        const T *y = (const T *)b->in + i * b->inner, *grad = (const T *)b->grad + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            sum[j] += grad[j] * y[j];
    }
    for (int64_t i = 0; i < b->n; i++) {
        const T *y = (const T *)b->in + i * b->inner, *grad = (const T *)b->grad + i * b->inner;
        T *out = (T *)b->out + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            out[j] = (grad[j] - (T)sum[j]) * y[j];
    }
}

static void log_softmax_backward_columns(const struct grd_softmax_block *b)
{
    int64_t cols = b->lines;
    double sum[COLUMNS] = {0};
    for (int64_t i = 0; i < b->n; i++) {
        const T *grad = (const T *)b->grad + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            sum[j] += grad[j];
    }
    for (int64_t i = 0; i < b->n; i++) {
        const T *y = (const T *)b->in + i * b->inner, *grad = (const T *)b->grad + i * b->inner;
        T *out = (T *)b->out + i * b->inner;
        for (int64_t j = 0; j < cols; j++)
            out[j] = grad[j] - reduce_exp(y[j]) * (T)sum[j];
    }
}

extern const struct grd_softmax_row GRD_TYPED(grd_softmax_row);
const struct grd_softmax_row GRD_TYPED(grd_softmax_row) = {
    .lines = {
        [GRD_SOFTMAX] = softmax_lines,
        [GRD_LOG_SOFTMAX] = log_softmax_lines,
        [GRD_SOFTMAX_BACKWARD] = softmax_backward_lines,
        [GRD_LOG_SOFTMAX_BACKWARD] = log_softmax_backward_lines,
    },
    .columns = {
        [GRD_SOFTMAX] = softmax_columns,
        [GRD_LOG_SOFTMAX] = log_softmax_columns,
        [GRD_SOFTMAX_BACKWARD] = softmax_backward_columns,
        [GRD_LOG_SOFTMAX_BACKWARD] = log_softmax_backward_columns,
    },
};
