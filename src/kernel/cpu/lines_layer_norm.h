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

enum u { DIFFERENCE, GRAD, GRAD_WEIGHT }; /* x - center, grad, grad * weight */

INLINE T u_at(int64_t i, enum u which, const T *x, T center, const T *grad, const T *weight)
{
    return which == DIFFERENCE ? x[i] - center : which == GRAD ? grad[i] : grad[i] * weight[i];
}

/* The sums over a line of u and of u * (x - center). Meanwhile the line at `soon`, which is read next, is fetched. */
INLINE void add_up(int64_t n, enum u which, const T *x, T center, const T *grad, const T *weight, const T *soon, double *ret_sum,
                   double *ret_product)
{
    double sum = 0, product = 0;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t end = start + at_most(n - start, PIECE);
        T sums[NORM_LANES] = {0}, products[NORM_LANES] = {0};
        int64_t i = start;
        for (; i + NORM_LANES <= end; i += NORM_LANES) {
            __builtin_prefetch(soon + i);
            LANEWISE for (int l = 0; l < NORM_LANES; l++)
            {
                const T u = u_at(i + l, which, x, center, grad, weight);
                sums[l] += u;
                products[l] += u * (x[i + l] - center);
            }
        }
        for (int l = 0; i < end; i++, l++) {
            const T u = u_at(i, which, x, center, grad, weight);
            sums[l] += u;
            products[l] += u * (x[i] - center);
        }
        sum += sum_lanes(sums);
        product += sum_lanes(products);
    }
    *ret_sum = sum;
    *ret_product = product;
}

/* mean = sum(x) / n where the line is centered, otherwise 0; rstd = 1 / sqrt(sum((x - mean)^2) / n + eps) */
INLINE void find_moments(int64_t n, const T *x, const T *soon, double eps, bool centered, T *ret_mean, T *ret_rstd)
{
    double sum = 0, squares;
    if (centered)
        add_up(n, DIFFERENCE, x, 0, NULL, NULL, soon, &sum, &squares);
    *ret_mean = centered ? (T)(sum / (double)n) : 0;
    add_up(n, DIFFERENCE, x, *ret_mean, NULL, NULL, soon, &sum, &squares);
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
        find_moments(b->n, line_of(b, 1, line), line_of(b, 1, line + 1), b->numbers[0], centered, &mean, &rstd);
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

/* With u = grad * weight: rstd * (u - mean(u) - h * mean(u * h)), without mean(u) where the lines are not centered. */
INLINE void write_gradient(int64_t n, enum u which, const T *x, T mean, T rstd, const T *grad, const T *weight, bool centered,
                           T *restrict out)
{
    double u_sum, product;
    add_up(n, which, x, mean, grad, weight, x + n, &u_sum, &product);
    const T u_mean = centered ? (T)(u_sum / (double)n) : 0, uh_mean = (T)(product / (double)n) * rstd;
    for (int64_t i = 0; i < n; i++)
        out[i] = rstd * (u_at(i, which, x, mean, grad, weight) - u_mean - (x[i] - mean) * rstd * uh_mean);
}

static void add_to_sums(int64_t n, const T *restrict x, T mean, T rstd, const T *restrict grad, T *restrict weight_sum,
                        T *restrict bias_sum)
{
    for (int64_t i = 0; i < n; i++)
        weight_sum[i] += grad[i] * ((x[i] - mean) * rstd);
    for (int64_t i = 0; i < n; i++)
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
        T mean, rstd;
        find_moments(b->n, x, grad, b->numbers[0], centered, &mean, &rstd);
        if (weight != NULL)
            write_gradient(b->n, GRAD_WEIGHT, x, mean, rstd, grad, weight, centered, line_of(b, 0, line));
        else
            write_gradient(b->n, GRAD, x, mean, rstd, grad, NULL, centered, line_of(b, 0, line));
        if (b->data[1] != NULL)
            add_to_sums(b->n, x, mean, rstd, grad, (T *)b->data[1], (T *)b->data[2]);
    }
}

#endif
