/* Computes softmax, log-softmax and their gradients; included by lines.c. A line is the elements along the dimension of the operator.
 *
 *   softmax               exp(x - max) / sum(exp(x - max))
 *   log_softmax           x - max - log(sum(exp(x - max)))
 *   softmax_backward      (grad - sum(grad * y)) * y, y being softmax's result
 *   log_softmax_backward  grad - exp(y) * sum(grad), y being log_softmax's result
 *
 * The maximum of a line is subtracted before exp(), so that nothing overflows. Each piece of at most PIECE elements of a line is summed in a fixed
 * number of partial sums, and the sums of the pieces are added in double. If a line contains NaN, or only -inf, all its results are NaN. */
#ifndef GRD_KERNEL_CPU_LINES_SOFTMAX_H
#define GRD_KERNEL_CPU_LINES_SOFTMAX_H

enum { LANES = 32, SHORT = 16, PIECE = 2048, COLUMNS = GRD_LINES_COLUMNS };

/* ---- Lines ---------------------------------------------------------------------------------------------------------------- */
/* Returns the sum of SHORT numbers, which are overwritten. The loops have constant lengths, so that each loop is compiled to a few instructions. */
GRD_INLINE T sum_short(T *lanes)
{
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] += lanes[l + 8];
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] += lanes[l + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/* Returns the larger of a and b, or a if either is NaN. */
GRD_INLINE T higher(T a, T b)
{
    return b > a ? b : a;
}

/* Returns the largest of n contiguous elements, ignoring NaN. A NaN will make the sum of the exponentials NaN. The last block of LANES elements may
 * overlap the block before it, since a maximum does not change if an element is taken twice. */
GRD_INLINE T line_max(int64_t n, const T *x)
{
    T best = -INFINITY, lanes[LANES];
    if (n < SHORT) {
        for (int64_t i = 0; i < n; i++)
            best = higher(best, x[i]);
        return best;
    }
    if (n < LANES) {
        LANEWISE for (int l = 0; l < SHORT; l++) lanes[l] = higher(higher(best, x[l]), x[n - SHORT + l]);
    } else {
        for (int l = 0; l < LANES; l++)
            lanes[l] = higher(best, x[l]);
        for (int64_t i = LANES; i < n; i += LANES) {
            const T *block = x + grd_least(i, n - LANES);
            for (int l = 0; l < LANES; l++)
                lanes[l] = higher(lanes[l], block[l]);
        }
        LANEWISE for (int l = 0; l < SHORT; l++) lanes[l] = higher(lanes[l], lanes[l + SHORT]);
    }
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] = higher(lanes[l], lanes[l + 8]);
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] = higher(lanes[l], lanes[l + 4]);
    return higher(higher(lanes[0], lanes[2]), higher(lanes[1], lanes[3]));
}

/* Returns the sum of x * y, or of x if y is NULL, over n elements. The last n % SHORT elements are read together with the elements before them as a
 * block of SHORT elements. In this block, elements that are already in the sum count as 0. */
GRD_INLINE double piece_sum(int64_t n, const T *x, const T *y)
{
    int64_t i = 0;
    if (n < SHORT) {
        double sum = 0;
        for (; i < n; i++)
            sum += y != NULL ? x[i] * y[i] : x[i];
        return sum;
    }
    T lanes[LANES];
    if (n < LANES) {
        LANEWISE for (int l = 0; l < SHORT; l++) lanes[l] = 0 + (y != NULL ? x[l] * y[l] : x[l]);
        i = SHORT;
    } else {
        for (int l = 0; l < LANES; l++)
            lanes[l] = 0 + (y != NULL ? x[l] * y[l] : x[l]);
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++)
                lanes[l] += y != NULL ? x[i + l] * y[i + l] : x[i + l];
        LANEWISE for (int l = 0; l < SHORT; l++) lanes[l] += lanes[l + SHORT];
    }
    for (; i + SHORT <= n; i += SHORT)
        LANEWISE for (int l = 0; l < SHORT; l++) lanes[l] += y != NULL ? x[i + l] * y[i + l] : x[i + l];
    if (i < n) {
        int64_t last = n - SHORT;
        int done = (int)(i - last);
        LANEWISE for (int l = 0; l < SHORT; l++)
        {
            T value = y != NULL ? x[last + l] * y[last + l] : x[last + l];
            lanes[l] += l < done ? 0 : value;
        }
    }
    return sum_short(lanes);
}

/* Writes exp(x - shift) of n elements to `ret` and returns their sum. If n is less than SHORT, SHORT elements of `ret` are written. Arrays are often
 * too short for the hardware prefetcher, so the function prefetches the n elements at next_in, which will be read, and at next_out, which will be
 * written. */
GRD_INLINE double piece_exp(int64_t n, const T *restrict x, T shift, T *restrict ret, const T *next_in, const T *next_out)
{
    T lanes[SHORT], rest[SHORT];
    int64_t i = 0;
    LANEWISE for (int l = 0; l < SHORT; l++) lanes[l] = 0;
    for (; i + SHORT <= n; i += SHORT) {
        __builtin_prefetch(next_in + i);
        __builtin_prefetch(next_out + i, 1);
        LANEWISE for (int l = 0; l < SHORT; l++)
        {
            T e = reduce_exp_low(x[i + l] - shift);
            ret[i + l] = e;
            lanes[l] += e;
        }
    }
    if (n < SHORT) {
        for (int l = 0; l < SHORT; l++)
            rest[l] = -INFINITY;
        for (int l = 0; l < n; l++)
            rest[l] = x[l];
        LANEWISE for (int l = 0; l < SHORT; l++)
        {
            T e = reduce_exp_low(rest[l] - shift);
            e = l < n ? e : 0;
            ret[l] = e;
            lanes[l] += e;
        }
    } else if (i < n) {
        int64_t last = n - SHORT;
        int done = (int)(i - last);
        LANEWISE for (int l = 0; l < SHORT; l++)
        {
            T e = reduce_exp_low(x[last + l] - shift);
            ret[last + l] = e;
            lanes[l] += l < done ? 0 : e;
        }
    }
    return sum_short(lanes);
}

/* Writes in[i] * scale to out[i] for i < n. `out` does not overlap `in`. */
GRD_INLINE void scaled(int64_t n, const T *restrict in, T scale, T *restrict out)
{
    int64_t i = 0;
    for (; i + SHORT <= n; i += SHORT)
        LANEWISE for (int l = 0; l < SHORT; l++) out[i + l] = in[i + l] * scale;
    if (n < SHORT)
        for (; i < n; i++)
            out[i] = in[i] * scale;
    else
        LANEWISE for (int l = 0; l < SHORT; l++) out[n - SHORT + l] = in[n - SHORT + l] * scale;
}

static void softmax_lines(const struct grd_lines_block *b)
{
    T piece[PIECE]; /* a buffer, since the result may be the input, and the loops below need arrays that do not overlap */
    for (int64_t line = 0; line < b->lines; line++) {
        const T *x = line_of(b, 1, line);
        T *out = line_of(b, 0, line);
        T max = line_max(b->n, x);
        if (b->n <= PIECE) {
            double sum = piece_exp(b->n, x, max, piece, x + b->step[1], out + b->step[0]);
            scaled(b->n, piece, (T)(1 / sum), out);
            continue;
        }
        double sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE) {
            int64_t n = grd_least(PIECE, b->n - i);
            sum += piece_exp(n, x + i, max, piece, x + i + PIECE, out + i + PIECE);
            memcpy(out + i, piece, (size_t)n * sizeof *piece);
        }
        T scale = (T)(1 / sum);
        for (int64_t i = 0; i < b->n; i++)
            out[i] *= scale;
    }
}

/* Computes log_softmax of b->lines lines, which are the elements along the dimension of the operator. Several short lines are processed together, so
 * that the logarithms of their sums are computed in one vectorised loop. */
static void log_softmax_lines(const struct grd_lines_block *b)
{
    enum { TOGETHER = 16 };
    T piece[PIECE], max[TOGETHER];
    double sum[TOGETHER];
    int64_t together = b->n <= 256 ? TOGETHER : 1;
    for (int64_t line = 0; line < b->lines; line += together) {
        int64_t lines = grd_least(together, b->lines - line);
        const T *x = line_of(b, 1, line);
        T *out = line_of(b, 0, line);
        const int64_t step = b->step[1], out_step = b->step[0];
        for (int64_t k = 0; k < lines; k++) {
            max[k] = line_max(b->n, x + k * step);
            sum[k] = 0;
            for (int64_t i = 0; i < b->n; i += PIECE)
                sum[k] +=
                    piece_exp(grd_least(PIECE, b->n - i), x + k * step + i, max[k], piece, x + (k + 1) * step + i, out + k * out_step + i);
        }
        for (int64_t k = 0; k < lines; k++)
            sum[k] = vm_log_double(sum[k]);
        for (int64_t k = 0; k < lines; k++) {
            T log_sum = (T)sum[k];
            IN_PLACE for (int64_t i = 0; i < b->n; i++) out[k * out_step + i] = x[k * step + i] - max[k] - log_sum;
        }
    }
}

/* Returns one element of the gradient of log_softmax if `logarithm`, otherwise of softmax. `grad` is the incoming gradient and y the result of the
 * operator at this element. `sum` is sum(grad) along the dimension of the operator for log_softmax, and sum(grad * y) for softmax. */
GRD_INLINE T backward_step(T grad, T y, T sum, bool logarithm)
{
    return logarithm ? grad - reduce_exp(y) * sum : (grad - sum) * y;
}

/* Computes the gradient of log_softmax if `logarithm`, otherwise of softmax, for b->lines lines of b->n elements. A line is the elements along the
 * dimension of the operator, which are contiguous here. */
GRD_INLINE void backward_lines(const struct grd_lines_block *b, bool logarithm)
{
    for (int64_t line = 0; line < b->lines; line++) {
        const T *grad = line_of(b, 1, line), *y = line_of(b, 2, line);
        T *out = line_of(b, 0, line);
        double sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE)
            sum += piece_sum(grd_least(PIECE, b->n - i), grad + i, logarithm ? NULL : y + i);
        T s = (T)sum;
        IN_PLACE for (int64_t i = 0; i < b->n; i++) out[i] = backward_step(grad[i], y[i], s, logarithm);
    }
}

/* ---- Columns: element i of all lines is a row --------------------------------------------------------------------------------- */
/* Writes to max[j] the largest of the b->n elements of line j, ignoring NaN. A line is the elements along the dimension of the operator. Here
 * neighbours in memory are elements of different lines. */
GRD_INLINE void column_max(const struct grd_lines_block *b, T *restrict max)
{
    int64_t cols = b->lines;
    for (int64_t j = 0; j < cols; j++)
        max[j] = -INFINITY;
    for (int64_t i = 0; i < b->n; i++) {
        const T *restrict x = line_of(b, 1, i);
        for (int64_t j = 0; j < cols; j++)
            max[j] = x[j] > max[j] ? x[j] : max[j];
    }
}

static void softmax_columns(const struct grd_lines_block *b)
{
    int64_t cols = b->lines;
    T max[COLUMNS], row[COLUMNS];
    double sum[COLUMNS] = {0};
    column_max(b, max);
    for (int64_t i = 0; i < b->n; i++) {
        const T *x = line_of(b, 1, i);
        T *out = line_of(b, 0, i);
        for (int64_t j = 0; j < cols; j++)
            row[j] = reduce_exp_low(x[j] - max[j]);
        for (int64_t j = 0; j < cols; j++)
            sum[j] += row[j];
        memcpy(out, row, (size_t)cols * sizeof *row);
    }
    for (int64_t j = 0; j < cols; j++)
        max[j] = (T)(1 / sum[j]);
    for (int64_t i = 0; i < b->n; i++) {
        T *out = line_of(b, 0, i);
        for (int64_t j = 0; j < cols; j++)
            out[j] *= max[j];
    }
}

static void log_softmax_columns(const struct grd_lines_block *b)
{
    int64_t cols = b->lines;
    T max[COLUMNS], log_sum[COLUMNS];
    double sum[COLUMNS] = {0};
    column_max(b, max);
    for (int64_t i = 0; i < b->n; i++) {
        const T *x = line_of(b, 1, i);
        for (int64_t j = 0; j < cols; j++)
            sum[j] += reduce_exp_low(x[j] - max[j]);
    }
    for (int64_t j = 0; j < cols; j++)
        log_sum[j] = (T)log(sum[j]);
    for (int64_t i = 0; i < b->n; i++) {
        const T *x = line_of(b, 1, i);
        T *out = line_of(b, 0, i);
        for (int64_t j = 0; j < cols; j++)
            out[j] = x[j] - max[j] - log_sum[j];
    }
}

/* Computes the gradient of log_softmax if `logarithm`, otherwise of softmax, for b->lines lines of b->n elements. A line is the elements along the
 * dimension of the operator. Here neighbours in memory are elements of different lines. */
GRD_INLINE void backward_columns(const struct grd_lines_block *b, bool logarithm)
{
    int64_t cols = b->lines;
    double sum[COLUMNS] = {0};
    for (int64_t i = 0; i < b->n; i++) {
        const T *grad = line_of(b, 1, i), *y = line_of(b, 2, i);
        for (int64_t j = 0; j < cols; j++)
            sum[j] += logarithm ? grad[j] : grad[j] * y[j];
    }
    for (int64_t i = 0; i < b->n; i++) {
        const T *grad = line_of(b, 1, i), *y = line_of(b, 2, i);
        T *out = line_of(b, 0, i);
        for (int64_t j = 0; j < cols; j++)
            out[j] = backward_step(grad[j], y[j], (T)sum[j], logarithm);
    }
}

static void lines_softmax(const struct grd_lines_block *b)
{
    if (b->columns)
        softmax_columns(b);
    else
        softmax_lines(b);
}

static void lines_log_softmax(const struct grd_lines_block *b)
{
    if (b->columns)
        log_softmax_columns(b);
    else
        log_softmax_lines(b);
}

static void lines_hidden_softmax_backward(const struct grd_lines_block *b)
{
    if (b->columns)
        backward_columns(b, false);
    else
        backward_lines(b, false);
}

static void lines_hidden_log_softmax_backward(const struct grd_lines_block *b)
{
    if (b->columns)
        backward_columns(b, true);
    else
        backward_lines(b, true);
}

#endif
