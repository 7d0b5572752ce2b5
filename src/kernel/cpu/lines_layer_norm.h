/* Normalisation of lines and its gradient; a part of lines.c. Formulas are in schema/normalization.toml: h = (x - mean) * rstd. Operands stand in the order
 * of the results and of the signature; weight and bias are one line for all lines, or NULL.
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

enum u { NOTHING, GRAD, GRAD_WEIGHT }; /* 0, grad, grad * weight */

GRD_INLINE T u_at(int64_t i, enum u which, const T *grad, const T *weight)
{
    return which == NOTHING ? 0 : which == GRAD ? grad[i] : grad[i] * weight[i];
}

/* The sums over a line of d = x - center and u, or, `squared`, of d * d and u * d. Meanwhile the next lines are fetched. */
GRD_INLINE void add_up(int64_t n, bool squared, const T *x, T center, enum u which, const T *grad, const T *weight, double *ret_d,
                       double *ret_u)
{
    *ret_d = *ret_u = 0;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = start + at_most(n - start, PIECE);
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

struct moments {
    T mean, rstd, u_mean, uh_mean;
};

/* mean = sum(x) / n where the line is centered, otherwise 0; rstd = 1 / sqrt(sum((x - mean)^2) / n + eps); and the means of u, 0 where the line is not
 * centered, and of u * h. */
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

/* With u = grad * weight: rstd * (u - mean(u) - h * mean(u * h)), without mean(u) where the lines are not centered. */
GRD_INLINE struct moments write_gradient(int64_t n, const T *x, enum u which, const T *grad, const T *weight, double eps, bool centered,
                                         T *restrict out)
{
    const struct moments m = find_moments(n, x, which, grad, weight, eps, centered);
    for (int64_t i = 0; i < n; i++)
        out[i] = m.rstd * (u_at(i, which, grad, weight) - m.u_mean - (x[i] - m.mean) * m.rstd * m.uh_mean);
    return m;
}

static void add_to_sums(int64_t n, const T *restrict x, T mean, T rstd, const T *restrict grad, T *restrict weight_sum,
                        T *restrict bias_sum)
{
    for (int64_t i = 0; i < n; i++)
        weight_sum[i] += grad[i] * ((x[i] - mean) * rstd);
    for (int64_t i = 0; bias_sum != NULL && i < n; i++)
        bias_sum[i] += grad[i];
}

/* The gradient of the input, and, unless they are NULL, the sums of grad * h and of grad over the lines added to others.
 * result, weight_sum, bias_sum; grad, input, weight; eps, centered */
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
