/* Computes the CTC loss (connectionist temporal classification) and its gradient; see kernel/ctc.h. The build compiles this file once for float32 and
 * once for float64. The gradient is a difference of large logarithms, so float32 loses digits. In order to have the same rounding errors as PyTorch,
 * this file uses the C library's exp and log and PyTorch's order of operations. */
#include "kernel/ctc.h"

#include <stddef.h>
#include <tgmath.h>

#include "kernel/cpu/typed.h"

static inline T larger(T a, T b)
{
    return a > b ? a : b;
}

/* Returns exp(x - most). Usually x is equal to `most` or is -inf, and then exp() is not called. */
static inline T share(T x, T most)
{
    return x == most ? 1 : x == (T)-INFINITY ? 0 : exp(x - most);
}

/* Returns log(exp(a) + exp(b) + exp(c)), or -inf if a, b and c are all -inf. */
static inline T log_sum(T a, T b, T c)
{
    const T most = larger(a, larger(b, c));
    if (most == (T)-INFINITY)
        return most;
    const T sum = share(a, most) + share(b, most) + share(c, most);
    return sum == 1 ? most : log(sum) + most;
}

/* Returns the label that a path emits in `state`. The states are the labels of the target, with a blank before, between and after them. So even
 * states emit the blank, and odd states a label of the target. */
static inline int64_t label_of(const struct grd_ctc *x, int64_t state)
{
    return state % 2 == 0 ? x->blank : x->target[state / 2];
}

/* True if a path may go from `state` - 2 directly to `state`, skipping the blank between two labels of the target. The two labels must differ,
 * because without a blank two equal labels would be read as one. */
static inline bool may_pass(const struct grd_ctc *x, int64_t state)
{
    return state % 2 == 1 && state > 1 && x->target[state / 2] != x->target[state / 2 - 1];
}

/* Computes x->alpha from the first time step to the last, and writes the loss, which follows from the last row of x->alpha, to ret_loss.
 * alpha[t][s] is the logarithm of the summed probability of all partial paths that are in state s at time step t. */
static void forward(const struct grd_ctc *x, void *ret_loss)
{
    const int64_t states = 2 * x->labels + 1;
    T *loss = ret_loss, *alpha = x->alpha;
    if (x->steps == 0) {
        *loss = x->labels == 0 ? -(T)0 : (T)INFINITY; /* -log(1) is -0, as in PyTorch */
        return;
    }
    const T *log_probs = x->log_probs;
    for (int64_t s = 0; s < states; s++)
        alpha[s] = s < 2 ? log_probs[label_of(x, s)] : (T)-INFINITY;
    for (int64_t t = 1; t < x->steps; t++) {
        const T *restrict before = alpha;
        log_probs += x->step;
        alpha += x->alpha_row;
        for (int64_t s = 0; s < states; s++) {
            const T last = s > 0 ? before[s - 1] : (T)-INFINITY, passed = may_pass(x, s) ? before[s - 2] : (T)-INFINITY;
            alpha[s] = log_sum(before[s], last, passed) + log_probs[label_of(x, s)];
        }
    }
    *loss = -log_sum(alpha[states - 1], states > 1 ? alpha[states - 2] : (T)-INFINITY, (T)-INFINITY);
}

/* Computes `beta` for one time step. beta[s] is the logarithm of the total probability of all paths that start in state s at this time step and reach
 * the end. `after` is beta of the next time step, or NULL at the last time step. log_probs holds the log-probabilities of the classes at this time
 * step. */
static void step_back(const struct grd_ctc *x, const T *log_probs, const T *restrict after, T *restrict beta)
{
    const int64_t states = 2 * x->labels + 1;
    for (int64_t s = 0; s < states; s++) {
        const T emitted = log_probs[label_of(x, s)];
        if (after == NULL) {
            beta[s] = s >= states - 2 ? emitted : (T)-INFINITY;
            continue;
        }
        const T next = s + 1 < states ? after[s + 1] : (T)-INFINITY;
        const T passed = s + 2 < states && may_pass(x, s + 2) ? after[s + 2] : (T)-INFINITY;
        beta[s] = log_sum(after[s], next, passed) + emitted;
    }
}

/* Writes to ret_gradient the gradient of the log-probabilities of each time step, from the last to the first. The gradient is 0 if the loss is
 * infinite and zero_infinity is true. `beta` is scratch memory for two rows, for the current time step and the one after it; see step_back(). */
static void backward(const struct grd_ctc *x, const void *loss, const void *grad, bool zero_infinity, void *beta, void *ret_gradient)
{
    const int64_t states = 2 * x->labels + 1;
    const T nll = *(const T *)loss, scale = *(const T *)grad;
    const bool nothing = zero_infinity && nll == (T)INFINITY;
    T *now = beta, *after = NULL;
    for (int64_t t = x->steps; t-- > 0;) {
        const T *log_probs = (const T *)x->log_probs + t * x->step, *alpha = (const T *)x->alpha + t * x->alpha_row;
        T *out = (T *)ret_gradient + t * x->step;
        for (int64_t c = 0; c < x->classes; c++)
            out[c] = nothing ? 0 : (T)-INFINITY;
        if (nothing)
            continue;
        step_back(x, log_probs, after, now);
        /* out[c] becomes the logarithm of the sum of exp(alpha[s] + now[s]) over all states s that emit class c. */
        for (int64_t s = states; s-- > 0;) {
            T *paths = &out[label_of(x, s)];
            *paths = log_sum(*paths, alpha[s] + now[s], (T)-INFINITY);
        }
        for (int64_t c = 0; c < x->classes; c++)
            out[c] = (exp(log_probs[c]) - (out[c] == (T)-INFINITY && nll != (T)INFINITY ? 0 : exp(out[c] + nll - log_probs[c]))) * scale;
        T *const used = after != NULL ? after : (T *)beta + x->alpha_row;
        after = now;
        now = used;
    }
}

const struct grd_ctc_row GRD_TYPED(grd_ctc_row) = {.forward = forward, .backward = backward};
