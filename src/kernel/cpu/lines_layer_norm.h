/* Normalisation of lines, and its derivatives; a part of lines.c. Formulas are in schema/normalization.toml. Operands, after the results, in the order of the
 * signature; mean and rstd have a value for each line, weight and bias are one line for all, or NULL.
 *
 * Sums run in lanes over short pieces and from piece to piece in double, so that their error does not grow with the length of a line. */
#ifndef GRD_KERNEL_CPU_LINES_LAYER_NORM_H
#define GRD_KERNEL_CPU_LINES_LAYER_NORM_H

enum { NORM_LANES = 16 };

static inline double sum_lanes(const T *lanes)
{
    double sum = 0;
    for (int l = 0; l < NORM_LANES; l++)
        sum += (double)lanes[l];
    return sum;
}

typedef T term_function(T x, T center);

INLINE T itself(T x, T center)
{
    (void)center;
    return x;
}

INLINE T squared_distance(T x, T center)
{
    return (x - center) * (x - center);
}

INLINE double sum_of(int64_t n, const T *x, T center, term_function *term)
{
    double sum = 0;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = start + at_most(n - start, PIECE);
        T lanes[NORM_LANES] = {0};
        int64_t i = start;
        for (; i + NORM_LANES <= end; i += NORM_LANES)
            LANEWISE for (int l = 0; l < NORM_LANES; l++) lanes[l] += term(x[i + l], center);
        for (int l = 0; i < end; i++, l++)
            lanes[l] += term(x[i], center);
        sum += sum_lanes(lanes);
    }
    return sum;
}

/* (x - mean) * rstd * weight + bias */
static void write_row(int64_t n, const T *x, T mean, T rstd, const T *weight, const T *bias, T *restrict out)
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

/* output, mean, rstd; input, weight, bias; eps, centered */
static void lines_hidden_layer_norm(const struct grd_lines_block *b)
{
    for (int64_t line = 0; line < b->lines; line++) {
        const T *x = line_of(b, 3, line);
        const T mean = b->numbers[1] != 0 ? (T)(sum_of(b->n, x, 0, itself) / (double)b->n) : 0;
        const T rstd = (T)(1 / sqrt(sum_of(b->n, x, mean, squared_distance) / (double)b->n + b->numbers[0]));
        *line_of(b, 1, line) = mean;
        *line_of(b, 2, line) = rstd;
        write_row(b->n, x, mean, rstd, (const T *)b->data[4], (const T *)b->data[5], line_of(b, 0, line));
    }
}

/* The sums of u and of u * h over one row. */
INLINE void sums_of(int64_t n, const T *x, T mean, T rstd, const T *grad, const T *weight, bool weighted, double *ret_u, double *ret_uh)
{
    double u_sum = 0, uh_sum = 0;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = start + at_most(n - start, PIECE);
        T u_lanes[NORM_LANES] = {0}, uh_lanes[NORM_LANES] = {0};
        int64_t i = start;
        for (; i + NORM_LANES <= end; i += NORM_LANES)
            LANEWISE for (int l = 0; l < NORM_LANES; l++)
            {
                const T u = weighted ? grad[i + l] * weight[i + l] : grad[i + l];
                u_lanes[l] += u;
                uh_lanes[l] += u * ((x[i + l] - mean) * rstd);
            }
        for (int l = 0; i < end; i++, l++) {
            const T u = weighted ? grad[i] * weight[i] : grad[i];
            u_lanes[l] += u;
            uh_lanes[l] += u * ((x[i] - mean) * rstd);
        }
        u_sum += sum_lanes(u_lanes);
        uh_sum += sum_lanes(uh_lanes);
    }
    *ret_u = u_sum;
    *ret_uh = uh_sum;
}

/* rstd * (u - mean(u) - h * mean(u * h)) */
INLINE void input_backward_row(int64_t n, const T *x, T mean, T rstd, const T *grad, const T *weight, bool weighted, bool centered,
                               T *restrict out)
{
    double u_sum, uh_sum;
    sums_of(n, x, mean, rstd, grad, weight, weighted, &u_sum, &uh_sum);
    const T u_mean = centered ? (T)(u_sum / (double)n) : 0, uh_mean = (T)(uh_sum / (double)n);
    for (int64_t i = 0; i < n; i++) {
        const T u = weighted ? grad[i] * weight[i] : grad[i];
        out[i] = rstd * (u - u_mean - (x[i] - mean) * rstd * uh_mean);
    }
}

/* result; grad_output, input, mean, rstd, weight; eps, centered */
static void lines_hidden_layer_norm_input_backward(const struct grd_lines_block *b)
{
    const T *weight = (const T *)b->data[5];
    const bool centered = b->numbers[1] != 0;
    for (int64_t line = 0; line < b->lines; line++) {
        const T *grad = line_of(b, 1, line), *x = line_of(b, 2, line);
        const T mean = *line_of(b, 3, line), rstd = *line_of(b, 4, line);
        if (weight != NULL)
            input_backward_row(b->n, x, mean, rstd, grad, weight, true, centered, line_of(b, 0, line));
        else
            input_backward_row(b->n, x, mean, rstd, grad, NULL, false, centered, line_of(b, 0, line));
    }
}

/* One line, the sum of grad * h over all; grad_output, input, mean, rstd */
static void lines_hidden_layer_norm_weight_sums(const struct grd_lines_block *b)
{
    T *restrict sum = (T *)b->data[0];
    memset(sum, 0, (size_t)b->n * sizeof *sum);
    for (int64_t line = 0; line < b->lines; line++) {
        const T *restrict grad = line_of(b, 1, line), *restrict x = line_of(b, 2, line);
        const T mean = *line_of(b, 3, line), rstd = *line_of(b, 4, line);
        for (int64_t i = 0; i < b->n; i++)
            sum[i] += grad[i] * ((x[i] - mean) * rstd);
    }
}

#endif
