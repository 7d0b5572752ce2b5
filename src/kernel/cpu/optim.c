/* Optimizer steps. Typed file: float32 float64.
 *
 * The order of operations and roundings is that of PyTorch's loops over single tensors, multiplications that are added included: those are
 * rounded once where the processor can (x86-64-v3 and above), so lower levels may differ in the last bit.
 * A step runs over a short piece at a time, so that what is computed on the way stays in the first cache. */
#include "kernel/optim.h"

#include <tgmath.h>

#include "kernel/cpu/typed.h"

enum { PIECE = 512 };

/* x * y + z */
static inline T added(T x, T y, T z)
{
#ifdef __FP_FAST_FMAF
    return fma(x, y, z);
#else
    return x * y + z;
#endif
}

/* The direction to go: the gradient, or its opposite, plus weight_decay * param. */
static void directed(int64_t n, T *restrict g, const T *restrict grad, const T *restrict param, bool maximize, T weight_decay)
{
    const T sign = maximize ? -1 : 1;
    for (int64_t i = 0; i < n; i++)
        g[i] = sign * grad[i];
    for (int64_t i = 0; weight_decay != 0 && i < n; i++)
        g[i] = added(param[i], weight_decay, g[i]);
}

/* buffer = momentum * buffer + (1 - dampening) * g;  g = buffer, or g + momentum * buffer for Nesterov. */
static void gather_momentum(int64_t n, T *restrict g, T *restrict buffer, const struct grd_sgd_numbers *x)
{
    const T momentum = (T)x->momentum, part = (T)(1 - x->dampening);
    if (x->first) {
        for (int64_t i = 0; i < n; i++)
            buffer[i] = g[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            buffer[i] = added(g[i], part, buffer[i] * momentum);
    }
    if (x->nesterov) {
        for (int64_t i = 0; i < n; i++)
            g[i] = added(buffer[i], momentum, g[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            g[i] = buffer[i];
    }
}

/* param = param - lr * g */
static void sgd(const struct grd_optim_block *block, const struct grd_sgd_numbers *x)
{
    T g[PIECE];
    const T back = (T)-x->lr;
    for (int64_t start = 0; start < block->n; start += PIECE) {
        const int64_t n = at_most(block->n - start, PIECE);
        T *restrict param = (T *)block->param + start;
        directed(n, g, (const T *)block->grad + start, param, x->maximize, (T)x->weight_decay);
        if (block->state[0] != NULL)
            gather_momentum(n, g, (T *)block->state[0] + start, x);
        for (int64_t i = 0; i < n; i++)
            param[i] = added(g[i], back, param[i]);
    }
}

/* mean = mean + (1 - beta1) (g - mean), from the nearer end */
static void gather_mean(int64_t n, T *restrict mean, const T *restrict g, double beta1)
{
    const T weight = (T)(1 - beta1);
    if (fabs(weight) < (T)0.5) {
        for (int64_t i = 0; i < n; i++)
            mean[i] = added(weight, g[i] - mean[i], mean[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            mean[i] = added(weight - 1, g[i] - mean[i], g[i]);
    }
}

/* squares = beta2 * squares + (1 - beta2) * g * g */
static void gather_squares(int64_t n, T *restrict squares, const T *restrict g, double beta2)
{
    const T kept = (T)beta2, part = (T)(1 - beta2);
    for (int64_t i = 0; i < n; i++)
        squares[i] = added(part * g[i], g[i], squares[i] * kept);
}

/* NaN wins. */
static void gather_largest(int64_t n, T *restrict largest, const T *restrict squares)
{
    for (int64_t i = 0; i < n; i++)
        largest[i] = ((largest[i] > squares[i]) | (largest[i] != largest[i])) != 0 ? largest[i] : squares[i];
}

/* param = param - step_size * mean / (sqrt(squares) / correction + eps) */
static void adam(const struct grd_optim_block *block, const struct grd_adam_numbers *x)
{
    T g[PIECE];
    const T shrink = (T)x->shrink, back = (T)-x->step_size, correction = (T)x->correction, eps = (T)x->eps;
    for (int64_t start = 0; start < block->n; start += PIECE) {
        const int64_t n = at_most(block->n - start, PIECE);
        T *restrict param = (T *)block->param + start, *restrict mean = (T *)block->state[0] + start;
        T *squares = (T *)block->state[1] + start;
        for (int64_t i = 0; shrink != 1 && i < n; i++)
            param[i] *= shrink;
        directed(n, g, (const T *)block->grad + start, param, x->maximize, (T)x->weight_decay);
        gather_mean(n, mean, g, x->beta1);
        gather_squares(n, squares, g, x->beta2);
        if (block->state[2] != NULL) {
            gather_largest(n, (T *)block->state[2] + start, squares);
            squares = (T *)block->state[2] + start;
        }
        const T *restrict spread = squares;
        for (int64_t i = 0; i < n; i++)
            param[i] += back * mean[i] / (sqrt(spread[i]) / correction + eps);
    }
}

const struct grd_optim_row GRD_TYPED(grd_optim_row) = {.sgd = sgd, .adam = adam};
