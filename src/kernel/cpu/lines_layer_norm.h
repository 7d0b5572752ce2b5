/* Normalisation of lines and its gradient; a part of lines.c. Formulas are in schema/normalization.toml: h = (x - mean) * rstd. Operands stand in the order
 * of the results and of the signature; weight and bias are one line for all lines, or NULL.
 *
 * A line is summed in pieces by piece_sum(), and the pieces in double: the error does not grow with the length of the line. */
#ifndef GRD_KERNEL_CPU_LINES_LAYER_NORM_H
#define GRD_KERNEL_CPU_LINES_LAYER_NORM_H

/* mean = sum(x) / n where the line is centered, otherwise 0; rstd = 1 / sqrt(sum((x - mean)^2) / n + eps) */
static void find_moments(int64_t n, const T *x, double eps, bool centered, T *ret_mean, T *ret_rstd)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; centered && i < n; i += PIECE)
        sum += piece_sum(at_most(PIECE, n - i), x + i, NULL, 0, 0);
    const T mean = centered ? (T)(sum / (double)n) : 0;
    for (int64_t i = 0; i < n; i += PIECE)
        squares += piece_sum(at_most(PIECE, n - i), x + i, x + i, mean, mean);
    *ret_mean = mean;
    *ret_rstd = (T)(1 / sqrt(squares / (double)n + eps));
}

/* h * weight + bias */
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

/* output; input, weight, bias; eps */
static void normalize_lines(const struct grd_lines_block *b, const T *bias, bool centered)
{
    for (int64_t line = 0; line < b->lines; line++) {
        T mean, rstd;
        find_moments(b->n, line_of(b, 1, line), b->numbers[0], centered, &mean, &rstd);
        write_line(b->n, line_of(b, 1, line), mean, rstd, (const T *)b->data[2], bias, line_of(b, 0, line));
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

/* With u = grad * weight: rstd * (u - mean(u) - h * mean(u * h)), without mean(u) where the lines are not centered; and, unless they are NULL, the sums of
 * grad * h and of grad over all lines. result, weight_sum, bias_sum; grad, input, weight; eps, centered */
static void lines_hidden_layer_norm_backward(const struct grd_lines_block *b)
{
    const T *weight = (const T *)b->data[5];
    T *restrict weight_sum = (T *)b->data[1], *restrict bias_sum = (T *)b->data[2], mean, rstd, weighted[PIECE];
    for (int64_t i = 0; weight_sum != NULL && i < b->n; i++)
        weight_sum[i] = bias_sum[i] = 0;
    for (int64_t line = 0; line < b->lines; line++) {
        const T *restrict grad = line_of(b, 3, line), *restrict x = line_of(b, 4, line);
        T *restrict out = line_of(b, 0, line);
        double u_sum = 0, uh_sum = 0;
        find_moments(b->n, x, b->numbers[0], b->numbers[1] != 0, &mean, &rstd);
        for (int64_t i = 0; i < b->n; i += PIECE) {
            const int64_t length = at_most(PIECE, b->n - i);
            for (int64_t k = 0; weight != NULL && k < length; k++)
                weighted[k] = grad[i + k] * weight[i + k];
            const T *const u = weight != NULL ? weighted : grad + i;
            u_sum += b->numbers[1] != 0 ? piece_sum(length, u, NULL, 0, 0) : 0;
            uh_sum += piece_sum(length, u, x + i, 0, mean);
        }
        const T u_mean = (T)(u_sum / (double)b->n), uh_mean = (T)(uh_sum / (double)b->n) * rstd;
        for (int64_t i = 0; weight_sum != NULL && i < b->n; i++) {
            weight_sum[i] += grad[i] * ((x[i] - mean) * rstd);
            bias_sum[i] += grad[i];
        }
        for (int64_t i = 0; i < b->n; i++)
            out[i] = rstd * ((weight != NULL ? grad[i] * weight[i] : grad[i]) - u_mean - (x[i] - mean) * rstd * uh_mean);
    }
}

#endif
