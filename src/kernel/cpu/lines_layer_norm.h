/* Computes layer_norm and rms_norm and their gradients; included by lines.c. A line is the n elements that are normalised together. The formulas are
 * in schema/normalization.toml; in them and below, h is (x - mean) * rstd. Weight and bias are either NULL or one line each, which applies to all
 * lines.
 *
 * Each piece of at most PIECE elements of a line is summed in NORM_LANES partial sums, and the sums of the pieces are added in double. So rounding
 * errors do not grow with the length of a line. */
#ifndef GRD_KERNEL_CPU_LINES_LAYER_NORM_H
#define GRD_KERNEL_CPU_LINES_LAYER_NORM_H

enum { NORM_LANES = 16 };

/* Returns the sum of NORM_LANES numbers. */
static inline double sum_lanes(const T *lanes)
{
    double sum = 0;
    for (int l = 0; l < NORM_LANES; l++)
        sum += (double)lanes[l];
    return sum;
}

/* Selects u, which is a term in the sums below. u is 0 (NOTHING), the incoming gradient (GRAD), or the incoming gradient multiplied by the weight
 * (GRAD_WEIGHT). */
enum u { NOTHING, GRAD, GRAD_WEIGHT };

/* Returns element i of u, the term that `which` selects. */
GRD_INLINE T u_at(int64_t i, enum u which, const T *grad, const T *weight)
{
    return which == NOTHING ? 0 : which == GRAD ? grad[i] : grad[i] * weight[i];
}

/* Writes to *ret_d the sum of d = x - center, and to *ret_u the sum of u, the term that `which` selects. The sums are over n elements that are
 * normalised together. If `squared`, sums d * d and u * d instead. Also prefetches the n elements that follow in memory. */
GRD_INLINE void add_up(int64_t n, bool squared, const T *x, T center, enum u which, const T *grad, const T *weight, double *ret_d,
                       double *ret_u)
{
    *ret_d = *ret_u = 0;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = start + grd_least(n - start, PIECE);
        T d_lanes[NORM_LANES] = {0}, u_lanes[NORM_LANES] = {0};
        int64_t i = start;
        for (; i + NORM_LANES <= end; i += NORM_LANES) {
            __builtin_prefetch(x + n + i);
            __builtin_prefetch((which == NOTHING ? x : grad) + n + i);
            LANEWISE for (int l = 0; l < NORM_LANES; l++)
            {
                const T d = x[i + l] - center, factor = squared ? d : 1;
                d_lanes[l] += d * factor;
                u_lanes[l] += u_at(i + l, which, grad, weight) * factor;
            }
        }
        for (int l = 0; i < end; i++, l++) {
            const T d = x[i] - center, factor = squared ? d : 1;
            d_lanes[l] += d * factor;
            u_lanes[l] += u_at(i, which, grad, weight) * factor;
        }
        *ret_d += sum_lanes(d_lanes);
        *ret_u += sum_lanes(u_lanes);
    }
}

/* Statistics of n elements x that are normalised together: their mean, their reciprocal standard deviation, the mean of u, and the mean of u * h.
 * enum u says what u is, and h is (x - mean) * rstd. */
struct moments {
    T mean, rstd, u_mean, uh_mean;
};

/* Returns mean, rstd = 1 / sqrt(sum((x - mean)^2) / n + eps), mean(u) and mean(u * h) of n elements that are normalised together. u is the term that
 * `which` selects, and h is (x - mean) * rstd. If `centered` is false (rms_norm), mean and mean(u) are 0. */
GRD_INLINE struct moments find_moments(int64_t n, const T *x, enum u which, const T *grad, const T *weight, double eps, bool centered)
{
    struct moments m = {0};
    double d_sum, u_sum;
    if (centered) {
        add_up(n, false, x, 0, which, grad, weight, &d_sum, &u_sum);
        m.mean = (T)(d_sum / (double)n);
        m.u_mean = (T)(u_sum / (double)n);
    }
    add_up(n, true, x, m.mean, which, grad, weight, &d_sum, &u_sum);
    m.rstd = (T)(1 / sqrt(d_sum / (double)n + eps));
    m.uh_mean = (T)(u_sum / (double)n) * m.rstd;
    return m;
}

/* Writes (x - mean) * rstd * weight + bias for n elements that are normalised together. A NULL weight counts as 1, a NULL bias as 0. */
static void write_line(int64_t n, const T *x, T mean, T rstd, const T *weight, const T *bias, T *restrict out)
{
    if (weight != NULL && bias != NULL)
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    else if (weight != NULL)
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - mean) * rstd * weight[i];
    else if (bias != NULL)
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - mean) * rstd + bias[i];
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - mean) * rstd;
}

/* Writes (x - mean) * rstd * weight + bias for b->lines lines of b->n elements x. Each line has its own rstd and, if `centered`, its own mean;
 * otherwise the mean is 0. The operands of the block are the output, the input and the weight; its scalar argument is eps. `bias` may be NULL. */
static void normalize_lines(const struct grd_lines_block *b, const T *bias, bool centered)
{
    for (int64_t line = 0; line < b->lines; line++) {
        const T *x = line_of(b, 1, line);
        const struct moments m = find_moments(b->n, x, NOTHING, NULL, NULL, b->numbers[0], centered);
        write_line(b->n, x, m.mean, m.rstd, (const T *)b->data[2], bias, line_of(b, 0, line));
    }
}

static void lines_layer_norm(const struct grd_lines_block *b)
{
    normalize_lines(b, (const T *)b->data[3], true);
}

static void lines_hidden_rms_norm(const struct grd_lines_block *b)
{
    normalize_lines(b, NULL, false);
}

/* Writes the gradient of the n input elements that are normalised together, rstd * (u - mean(u) - h * mean(u * h)), where h is (x - mean) * rstd and
 * u is grad * weight. mean(u) is omitted unless `centered`. Returns mean, rstd, mean(u) and mean(u * h). */
GRD_INLINE struct moments write_gradient(int64_t n, const T *x, enum u which, const T *grad, const T *weight, double eps, bool centered,
                                         T *restrict out)
{
    const struct moments m = find_moments(n, x, which, grad, weight, eps, centered);
    for (int64_t i = 0; i < n; i++)
        out[i] = m.rstd * (u_at(i, which, grad, weight) - m.u_mean - (x[i] - m.mean) * m.rstd * m.uh_mean);
    return m;
}

/* Adds grad * h to weight_sum for n elements that are normalised together, where h is (x - mean) * rstd. Adds grad to bias_sum unless that is
 * NULL. */
static void add_to_sums(int64_t n, const T *restrict x, T mean, T rstd, const T *restrict grad, T *restrict weight_sum,
                        T *restrict bias_sum)
{
    for (int64_t i = 0; i < n; i++)
        weight_sum[i] += grad[i] * ((x[i] - mean) * rstd);
    for (int64_t i = 0; bias_sum != NULL && i < n; i++)
        bias_sum[i] += grad[i];
}

/* Writes the gradient of the input of layer_norm or rms_norm. Also adds grad * h of all lines to weight_sum and grad of all lines to bias_sum, unless
 * these are NULL; h is (x - mean) * rstd. The operands of the block are the result, weight_sum, bias_sum, grad, input and weight. Its scalar
 * arguments are eps and `centered`. */
static void lines_hidden_layer_norm_backward(const struct grd_lines_block *b)
{
    const T *weight = (const T *)b->data[5];
    const bool centered = b->numbers[1] != 0;
    for (int64_t line = 0; line < b->lines; line++) {
        const T *grad = line_of(b, 3, line), *x = line_of(b, 4, line);
        const struct moments m = weight != NULL
                                     ? write_gradient(b->n, x, GRAD_WEIGHT, grad, weight, b->numbers[0], centered, line_of(b, 0, line))
                                     : write_gradient(b->n, x, GRAD, grad, NULL, b->numbers[0], centered, line_of(b, 0, line));
        if (b->data[1] != NULL)
            add_to_sums(b->n, x, m.mean, m.rstd, grad, (T *)b->data[1], (T *)b->data[2]);
    }
}

#endif
