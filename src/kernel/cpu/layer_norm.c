/* Normalisation of rows, and its derivatives. Typed file: float32 float64.
 *
 * Sums run in lanes over short blocks and from block to block in double, so that their error does not grow with the length of a row. */
#include "kernel/layer_norm.h"

#include <math.h>
#include <string.h>

#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"
#include "kernel/cpu/typed.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16, BLOCK = 1024 };

static inline int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

static inline double sum_lanes(const T *lanes)
{
    double sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += (double)lanes[l];
    return sum;
}

static double sum_of(int64_t n, const T *x)
{
    double sum = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t end = start + at_most(n - start, BLOCK);
        T lanes[LANES] = {0};
        int64_t i = start;
        for (; i + LANES <= end; i += LANES)
            LANEWISE for (int l = 0; l < LANES; l++) lanes[l] += x[i + l];
        for (int l = 0; i < end; i++, l++)
            lanes[l] += x[i];
        sum += sum_lanes(lanes);
    }
    return sum;
}

/* The sum of (x - center)^2. */
static double squares_of(int64_t n, const T *x, T center)
{
    double sum = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t end = start + at_most(n - start, BLOCK);
        T lanes[LANES] = {0};
        int64_t i = start;
        for (; i + LANES <= end; i += LANES)
            LANEWISE for (int l = 0; l < LANES; l++) lanes[l] += (x[i + l] - center) * (x[i + l] - center);
        for (int l = 0; i < end; i++, l++)
            lanes[l] += (x[i] - center) * (x[i] - center);
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

static void forward(const struct grd_layer_norm_block *b)
{
    for (int64_t row = 0; row < b->rows; row++) {
        const T *x = (const T *)b->in + row * b->n;
        const T mean = b->centered ? (T)(sum_of(b->n, x) / (double)b->n) : 0;
        const T rstd = (T)(1 / sqrt(squares_of(b->n, x, mean) / (double)b->n + b->eps));
        ((T *)b->mean)[row] = mean;
        ((T *)b->rstd)[row] = rstd;
        write_row(b->n, x, mean, rstd, b->weight, b->bias, (T *)b->out + row * b->n);
    }
}

/* The sums of u and of u * h over one row. */
INLINE void sums_of(int64_t n, const T *x, T mean, T rstd, const T *grad, const T *weight, bool weighted, double *ret_u, double *ret_uh)
{
    double u_sum = 0, uh_sum = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t end = start + at_most(n - start, BLOCK);
        T u_lanes[LANES] = {0}, uh_lanes[LANES] = {0};
        int64_t i = start;
        for (; i + LANES <= end; i += LANES)
            LANEWISE for (int l = 0; l < LANES; l++)
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

static void input_backward(const struct grd_layer_norm_block *b)
{
    for (int64_t row = 0; row < b->rows; row++) {
        const int64_t at = row * b->n;
        const T *x = (const T *)b->in + at, *grad = (const T *)b->grad + at, *weight = b->weight;
        const T mean = ((const T *)b->mean)[row], rstd = ((const T *)b->rstd)[row];
        if (weight != NULL)
            input_backward_row(b->n, x, mean, rstd, grad, weight, true, b->centered, (T *)b->out + at);
        else
            input_backward_row(b->n, x, mean, rstd, grad, NULL, false, b->centered, (T *)b->out + at);
    }
}

/* The sum of grad * h */
static void weight_backward(const struct grd_layer_norm_block *b)
{
    T *restrict sum = b->out;
    memset(sum, 0, (size_t)b->n * sizeof *sum);
    for (int64_t row = 0; row < b->rows; row++) {
        const T *restrict x = (const T *)b->in + row * b->n, *restrict grad = (const T *)b->grad + row * b->n;
        const T mean = ((const T *)b->mean)[row], rstd = ((const T *)b->rstd)[row];
        for (int64_t i = 0; i < b->n; i++)
            sum[i] += grad[i] * ((x[i] - mean) * rstd);
    }
}

extern const struct grd_layer_norm_row GRD_TYPED(grd_layer_norm_row);
const struct grd_layer_norm_row GRD_TYPED(grd_layer_norm_row) = {
    .forward = forward, .input_backward = input_backward, .weight_backward = weight_backward};
