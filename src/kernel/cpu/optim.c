/* Computes one step of each optimizer; see kernel/optim.h. The build compiles this file once for float32 and once for float64.
 *
 * Operations and roundings have the order of the loops that PyTorch runs for one tensor at a time. PyTorch fuses a multiplication with the addition
 * after it. Here they are fused, too, if the processor can do that (x86-64-v3 and above). At lower instruction-set levels, results may differ from
 * those of PyTorch in the last bit.
 * A step processes PIECE elements at a time, so that intermediate values stay in the first-level cache. */
#include "kernel/optim.h"

#include <tgmath.h>

#include "kernel/cpu/typed.h"

enum { PIECE = 512 };

/* A function that makes one step of an optimizer. It updates n elements of the parameter p and of its states s[0], s[1] and s[2]. g is the gradient
 * after begin() has applied `maximize` and weight decay; the function may overwrite g. `numbers` is the struct grd_<name>_numbers of the
 * optimizer. */
typedef void update(int64_t n, T *restrict p, T *restrict g, T *const *s, const void *numbers);

/* Returns x * y + z, with one rounding if the processor has a fused multiply-add. */
static inline T added(T x, T y, T z)
{
#ifdef __FP_FAST_FMAF
    return fma(x, y, z);
#else
    return x * y + z;
#endif
}

/* ---- What several updates share --------------------------------------------------------------------------------------------- */

/* Sets mean[i] = mean[i] + weight * (g[i] - mean[i]) for i < n. If the weight is 0.5 or more, this is computed as g[i] + (weight - 1) * (g[i] -
 * mean[i]), as in torch.lerp. */
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

/* Sets squares[i] = beta * squares[i] + (1 - beta) * g[i] * g[i] for i < n. */
static void lerp_squares(int64_t n, T *restrict squares, const T *restrict g, double beta)
{
    const T kept = (T)beta, part = (T)(1 - beta);
    for (int64_t i = 0; i < n; i++)
        squares[i] = added(part * g[i], g[i], squares[i] * kept);
}

/* Returns the larger of x and y, or NaN if either is NaN. */
static inline T larger_or_nan(T x, T y)
{
    return ((x > y) | (x != x)) != 0 ? x : y;
}

/* ---- Updates ------------------------------------------------------------------------------------------------------------------ */

/* Updates n elements of the momentum buffer: buffer = momentum * buffer + (1 - dampening) * g, or buffer = g in the first step of the optimizer. */
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

/* Makes a step of SGD, p = p - lr * direction. The direction is g if there is no momentum. With momentum it is the momentum buffer s[0], or g +
 * momentum * buffer with Nesterov momentum. */
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

/* Makes a step of Adam, p = p - lr * mean / (sqrt(squares) / correction + eps). `mean` (s[0]) and `squares` (s[1]) are the moving averages of g and of
 * its square. With amsgrad, `squares` is replaced by `largest` (s[2]), the largest value that it has had so far. Without amsgrad, s[2] is NULL. */
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

/* Makes a step of Adadelta, p = p - lr * delta, where delta = sqrt(deltas + eps) / sqrt(squares + eps) * g. `squares` (s[0]) and `deltas` (s[1]) are
 * the moving averages of g * g and delta * delta. */
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

/* Makes a step of Adagrad: adds g * g to `total` (s[0]), and then sets p = p - lr * g / (sqrt(total) + eps). */
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

/* Makes a step of Adamax: largest = max(beta2 * largest, |g| + eps), and then p = p - lr * mean / largest. `mean` (s[0]) is the moving average of g,
 * and `largest` is s[1]. */
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

/* Makes a step of averaged SGD: p = kept * p - lr * g, and then mean = mean + mu * (p - mean). `mean` (s[0]) is the average of the parameter over the
 * steps. `kept` and `mu` are members of struct grd_asgd_numbers. */
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

/* Makes a step of NAdam, p = p + grad_factor * g / denominator + mean_factor * mean / denominator, where the denominator is sqrt(squares /
 * correction) + eps. `mean` (s[0]) and `squares` (s[1]) are the moving averages of g and g * g. */
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

/* Makes a step of RAdam, p = p - lr * mean / correction. If x->adaptive, the change of p is also multiplied by rectified * root / (sqrt(squares) +
 * eps). `mean` (s[0]) and `squares` (s[1]) are the moving averages of g and g * g. */
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

/* Makes a step of RMSprop, where the denominator is sqrt(squares - mean * mean) + eps. With momentum, the step is buffer = momentum * buffer + g /
 * denominator and p = p - lr * buffer. Without momentum it is p = p - lr * g / denominator. `squares` and `mean` are the moving averages of g * g and
 * g. Unless the optimizer is centered, `mean` is NULL and is left out of the formula. */
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

/* Makes a step of Rprop, p = p - sign(g) * size. Each element has a step size of its own, which grows while the sign of the gradient stays the same.
 * If the sign changes, the step size shrinks and p stays as it is. */
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

/* Sets g = grad + weight_decay * p, or g = -grad + weight_decay * p if x->maximize, for n elements. Then multiplies p by x->shrink. */
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
        const int64_t n = grd_least(block->n - start, PIECE);
        T *state[GRD_OPTIM_STATES];
        for (int k = 0; k < GRD_OPTIM_STATES; k++)
            state[k] = block->state[k] != NULL ? (T *)block->state[k] + start : NULL;
        T *param = (T *)block->param + start;
        begin(n, g, (const T *)block->grad + start, param, block->numbers);
        updates[block->kind](n, param, g, state, block->numbers);
    }
}

const struct grd_optim_row GRD_TYPED(grd_optim_row) = {.step = step};
