/* Updates of optimizers. Typed file: float32 float64.
 *
 * The order of operations and roundings is that of PyTorch's loops over single tensors, multiplications that are added included: those are
 * rounded once where the processor can (x86-64-v3 and above), so lower levels may differ in the last bit.
 * A step runs over a short piece at a time, so that intermediate values stay in the first cache. */
#include "kernel/optim.h"

#include <tgmath.h>

#include "kernel/cpu/typed.h"

enum { PIECE = 512 };

/* Changes n elements of a parameter `p` and of its state `s`. `g` is the gradient with its sign and the weight decay; the update may overwrite it. */
typedef void update(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers);

/* x * y + z */
static inline T added(T x, T y, T z)
{
#ifdef __FP_FAST_FMAF
    return fma(x, y, z);
#else
    return x * y + z;
#endif
}

/* ---- What several updates share --------------------------------------------------------------------------------------------- */

/* mean = mean + weight (g - mean), computed from the nearer end */
static void lerp(int64_t n, T *restrict mean, const T *restrict g, double weight)
{
    const T w = (T)weight;
    if (fabs(w) < (T)0.5) {
        for (int64_t i = 0; i < n; i++)
            mean[i] = added(w, g[i] - mean[i], mean[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            mean[i] = added(w - 1, g[i] - mean[i], g[i]);
    }
}

/* squares = beta * squares + (1 - beta) * g * g */
static void lerp_squares(int64_t n, T *restrict squares, const T *restrict g, double beta)
{
    const T kept = (T)beta, part = (T)(1 - beta);
    for (int64_t i = 0; i < n; i++)
        squares[i] = added(part * g[i], g[i], squares[i] * kept);
}

/* Returns the larger number, or NaN if x is NaN. */
static inline T larger_or_nan(T x, T y)
{
    return ((x > y) | (x != x)) != 0 ? x : y;
}

/* ---- Updates ------------------------------------------------------------------------------------------------------------------ */

/* buffer = momentum * buffer + (1 - dampening) * g */
static void add_momentum(int64_t n, const T *restrict g, T *restrict buffer, const struct grd_sgd_numbers *x)
{
    const T momentum = (T)x->momentum, part = (T)(1 - x->dampening);
    if (x->first) {
        for (int64_t i = 0; i < n; i++)
            buffer[i] = g[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            buffer[i] = added(g[i], part, buffer[i] * momentum);
    }
}

/* p = p - lr * direction, which is g, the buffer, or, for Nesterov, g + momentum * buffer */
static void sgd(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_sgd_numbers *x = numbers;
    const T back = (T)-x->common.lr, momentum = (T)x->momentum;
    const T *restrict buffer = s[0];
    if (buffer != NULL)
        add_momentum(n, g, s[0], x);
    if (buffer != NULL && x->nesterov) {
        for (int64_t i = 0; i < n; i++)
            p[i] = added(added(buffer[i], momentum, g[i]), back, p[i]);
    } else {
        const T *restrict direction = buffer != NULL ? buffer : g;
        for (int64_t i = 0; i < n; i++)
            p[i] = added(direction[i], back, p[i]);
    }
}

/* p = p - lr * mean / (sqrt(squares) / correction + eps) */
static void adam(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_adam_numbers *x = numbers;
    const T back = (T)-x->common.lr, correction = (T)x->correction, eps = (T)x->eps;
    T *restrict mean = s[0], *restrict squares = s[1], *restrict largest = s[2];
    lerp(n, mean, g, 1 - x->beta1);
    lerp_squares(n, squares, g, x->beta2);
    for (int64_t i = 0; largest != NULL && i < n; i++)
        largest[i] = larger_or_nan(largest[i], squares[i]);
    const T *restrict spread = largest != NULL ? largest : squares;
    for (int64_t i = 0; i < n; i++)
        p[i] += back * mean[i] / (sqrt(spread[i]) / correction + eps);
}

/* delta = sqrt(deltas + eps) / sqrt(squares + eps) * g;  p = p - lr * delta */
static void adadelta(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_adadelta_numbers *x = numbers;
    const T back = (T)-x->common.lr, kept = (T)x->rho, part = (T)(1 - x->rho), eps = (T)x->eps;
    T *restrict squares = s[0], *restrict deltas = s[1];
    for (int64_t i = 0; i < n; i++) {
        squares[i] = added(part * g[i], g[i], squares[i] * kept);
        const T delta = sqrt(deltas[i] + eps) / sqrt(squares[i] + eps) * g[i];
        deltas[i] = added(part * delta, delta, deltas[i] * kept);
        p[i] = added(delta, back, p[i]);
    }
}

/* total = total + g * g;  p = p - lr * g / (sqrt(total) + eps) */
static void adagrad(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_adagrad_numbers *x = numbers;
    const T back = (T)-x->common.lr, eps = (T)x->eps;
    T *restrict total = s[0];
    for (int64_t i = 0; i < n; i++) {
        total[i] = added(g[i], g[i], total[i]);
        p[i] += back * g[i] / (sqrt(total[i]) + eps);
    }
}

/* largest = max(beta2 * largest, |g| + eps);  p = p - lr * mean / largest */
static void adamax(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_adamax_numbers *x = numbers;
    const T back = (T)-x->common.lr, kept = (T)x->beta2, eps = (T)x->eps;
    T *restrict mean = s[0], *restrict largest = s[1];
    lerp(n, mean, g, 1 - x->beta1);
    for (int64_t i = 0; i < n; i++) {
        largest[i] = larger_or_nan(largest[i] * kept, fabs(g[i]) + eps);
        p[i] += back * mean[i] / largest[i];
    }
}

/* p = kept * p - eta * g;  mean = mean + mu (p - mean) */
static void asgd(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_asgd_numbers *x = numbers;
    const T back = (T)-x->common.lr, kept = (T)x->kept, mu = (T)x->mu;
    T *restrict mean = s[0];
    for (int64_t i = 0; i < n; i++)
        p[i] = added(g[i], back, p[i] * kept);
    for (int64_t i = 0; i < n; i++)
        mean[i] = mu != 1 ? mean[i] + (p[i] - mean[i]) * mu : p[i];
}

/* denominator = sqrt(squares / correction) + eps;  p = p + grad_factor * g / denominator + mean_factor * mean / denominator */
static void nadam(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_nadam_numbers *x = numbers;
    const T correction = (T)x->correction, eps = (T)x->eps, of_grad = (T)x->grad_factor, of_mean = (T)x->mean_factor;
    T *restrict mean = s[0], *restrict squares = s[1];
    lerp(n, mean, g, 1 - x->beta1);
    lerp_squares(n, squares, g, x->beta2);
    for (int64_t i = 0; i < n; i++) {
        const T denominator = sqrt(squares[i] / correction) + eps;
        p[i] = p[i] + of_grad * g[i] / denominator + of_mean * mean[i] / denominator;
    }
}

/* p = p - lr * mean / correction, times rectified * root / (sqrt(squares) + eps) once that is adaptive */
static void radam(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_radam_numbers *x = numbers;
    const T lr = (T)x->common.lr, correction = (T)x->correction, eps = (T)x->eps, root = (T)x->root, rectified = (T)x->rectified;
    T *restrict mean = s[0], *restrict squares = s[1];
    lerp(n, mean, g, 1 - x->beta1);
    lerp_squares(n, squares, g, x->beta2);
    if (x->adaptive) {
        for (int64_t i = 0; i < n; i++)
            p[i] -= mean[i] / correction * lr * (root / (sqrt(squares[i]) + eps)) * rectified;
    } else {
        for (int64_t i = 0; i < n; i++)
            p[i] -= mean[i] / correction * lr;
    }
}

/* denominator = sqrt(squares - mean * mean) + eps, without a mean if there is none;  p = p - lr * buffer, where
 * buffer = momentum * buffer + g / denominator */
static void rmsprop(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_rmsprop_numbers *x = numbers;
    const T back = (T)-x->common.lr, eps = (T)x->eps, momentum = (T)x->momentum;
    T *restrict squares = s[0], *restrict buffer = s[1], *restrict mean = s[2];
    T denominator[PIECE];
    lerp_squares(n, squares, g, x->alpha);
    if (mean != NULL)
        lerp(n, mean, g, 1 - x->alpha);
    for (int64_t i = 0; i < n; i++)
        denominator[i] = sqrt(mean != NULL ? added(-mean[i], mean[i], squares[i]) : squares[i]) + eps;
    if (buffer == NULL) {
        for (int64_t i = 0; i < n; i++)
            p[i] += back * g[i] / denominator[i];
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        buffer[i] = buffer[i] * momentum + g[i] / denominator[i];
        p[i] = added(buffer[i], back, p[i]);
    }
}

/* The size of an element's step grows while its gradient keeps the sign, and shrinks, without a step, where the sign changes:
 * p = p - sign(g) * size. */
static void rprop(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers)
{
    const struct grd_rprop_numbers *x = numbers;
    const T shrinks = (T)x->shrinks, grows = (T)x->grows, least = (T)x->least, greatest = (T)x->greatest;
    T *restrict previous = s[0], *restrict size = s[1];
    for (int64_t i = 0; i < n; i++) {
        const T agreement = g[i] * previous[i];
        const T scaled = size[i] * (agreement > 0 ? grows : agreement < 0 ? shrinks : 1);
        size[i] = scaled < least ? least : scaled > greatest ? greatest : scaled;
        const T kept = agreement < 0 ? 0 : g[i];
        p[i] = kept > 0 ? p[i] - size[i] : kept < 0 ? p[i] + size[i] : p[i];
        previous[i] = kept;
    }
}

/* ---- A step ------------------------------------------------------------------------------------------------------------------ */

/* g = grad, or its opposite, plus weight_decay * p; p is shrunk. */
static void begin(int64_t n, T *restrict g, const T *restrict grad, T *restrict p, const struct grd_optim_numbers *x)
{
    const T sign = x->maximize ? -1 : 1, weight_decay = (T)x->weight_decay, shrink = (T)x->shrink;
    if (weight_decay != 0) {
        for (int64_t i = 0; i < n; i++)
            g[i] = added(p[i], weight_decay, sign * grad[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            g[i] = sign * grad[i];
    }
    for (int64_t i = 0; shrink != 1 && i < n; i++)
        p[i] *= shrink;
}

static void step(const struct grd_optim_block *block)
{
#define UPDATE_OF(name) [GRD_OPTIMIZER_##name] = name,
    static update *const updates[GRD_OPTIMIZER_KINDS] = {GRD_OPTIMIZERS(UPDATE_OF)};
#undef UPDATE_OF
    T g[PIECE];
    for (int64_t start = 0; start < block->n; start += PIECE) {
        const int64_t n = at_most(block->n - start, PIECE);
        T *state[GRD_OPTIM_STATES];
        for (int k = 0; k < GRD_OPTIM_STATES; k++)
            state[k] = block->state[k] != NULL ? (T *)block->state[k] + start : NULL;
        T *param = (T *)block->param + start;
        begin(n, g, (const T *)block->grad + start, param, block->numbers);
        updates[block->kind](n, param, g, state, block->numbers);
    }
}

const struct grd_optim_row GRD_TYPED(grd_optim_row) = {.step = step};
