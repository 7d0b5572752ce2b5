/* Computes steps of recurrent cells and their gradients; kernel/rnn.h has the formulas. The build compiles this file once for float32 and once for
 * float64.
 * Invariant: the rows of a batch are computed independently of each other, so a batch may be divided between threads anywhere. */
#include "kernel/rnn.h"

#include <stddef.h>

#include "kernel/cpu/typed.h"
#include "kernel/cpu/vecmath.h"

/* ---- Steps ------------------------------------------------------------------------------------------------------------------------- */

/* Computes one row of an lstm step with n hidden elements by the formulas of kernel/rnn.h. p is a row of the product of the input and its weights,
 * including the bias. q is a row of the product of the state h and its weights, and b is the bias of q. The states h and c are overwritten. If
 * `saved` is not NULL, it receives what the gradient needs: the four gates and the old c. Where this is inlined with a constant NULL for `saved`, the
 * stores are removed. */
GRD_INLINE void lstm_row(int64_t n, const T *restrict p, const T *restrict q, const T *restrict b, T *restrict h, T *restrict c,
                         T *restrict saved)
{
    IN_PLACE
    for (int64_t j = 0; j < n; j++) {
        const T in = vm_sigmoid(p[j] + (q[j] + b[j])), forget = vm_sigmoid(p[n + j] + (q[n + j] + b[n + j]));
        const T new = vm_tanh(p[2 * n + j] + (q[2 * n + j] + b[2 * n + j]));
        const T out = vm_sigmoid(p[3 * n + j] + (q[3 * n + j] + b[3 * n + j]));
        if (saved != NULL) {
            saved[j] = in;
            saved[n + j] = forget;
            saved[2 * n + j] = new;
            saved[3 * n + j] = out;
            saved[4 * n + j] = c[j];
        }
        const T cell = forget * c[j] + in * new;
        c[j] = cell;
        h[j] = out * vm_tanh(cell);
    }
}

static void step_lstm(const struct grd_rnn_step *x)
{
    const int64_t n = x->hidden, width = GRD_RNN_LSTM_GATES * n;
    for (int64_t r = 0; r < x->rows; r++) {
        const T *p = (const T *)x->projected + r * width, *q = (const T *)x->recurrent + r * width;
        T *h = (T *)x->h + r * n, *c = (T *)x->c + r * n;
        if (x->saved != NULL)
            lstm_row(n, p, q, x->bias, h, c, (T *)x->saved + r * GRD_RNN_LSTM_SAVED * n);
        else
            lstm_row(n, p, q, x->bias, h, c, NULL);
    }
}

/* Computes one row of a gru step with n hidden elements by the formulas of kernel/rnn.h. p is a row of the product of the input and its weights,
 * including the bias. q is a row of the product of the state h and its weights, and b is the bias of q. The state h is overwritten. If `saved` is not
 * NULL, it receives what the gradient needs: the two gates, the new content and the third block of q + b. */
GRD_INLINE void gru_row(int64_t n, const T *restrict p, const T *restrict q, const T *restrict b, T *restrict h, T *restrict saved)
{
    IN_PLACE
    for (int64_t j = 0; j < n; j++) {
        const T reset = vm_sigmoid(p[j] + (q[j] + b[j])), update = vm_sigmoid(p[n + j] + (q[n + j] + b[n + j]));
        const T memory = q[2 * n + j] + b[2 * n + j], new = vm_tanh(p[2 * n + j] + reset * memory);
        if (saved != NULL) {
            saved[j] = reset;
            saved[n + j] = update;
            saved[2 * n + j] = new;
            saved[3 * n + j] = memory;
        }
        h[j] = new + update *(h[j] - new);
    }
}

static void step_gru(const struct grd_rnn_step *x)
{
    const int64_t n = x->hidden, width = GRD_RNN_GRU_GATES * n;
    for (int64_t r = 0; r < x->rows; r++) {
        const T *p = (const T *)x->projected + r * width, *q = (const T *)x->recurrent + r * width;
        if (x->saved != NULL)
            gru_row(n, p, q, x->bias, (T *)x->h + r * n, (T *)x->saved + r * GRD_RNN_GRU_SAVED * n);
        else
            gru_row(n, p, q, x->bias, (T *)x->h + r * n, NULL);
    }
}

GRD_INLINE T rnn_tanh(T x)
{
    return vm_tanh(x);
}

/* Returns max(x, 0), or NaN if x is NaN. */
GRD_INLINE T rnn_relu(T x)
{
    return x < 0 ? 0 : x;
}

GRD_INLINE void rnn_rows(const struct grd_rnn_step *x, T (*activation)(T))
{
    const int64_t n = x->hidden;
    const T *restrict b = x->bias;
    for (int64_t r = 0; r < x->rows; r++) {
        const T *restrict p = (const T *)x->projected + r * n, *restrict q = (const T *)x->recurrent + r * n;
        T *restrict h = (T *)x->h + r * n;
        IN_PLACE
        for (int64_t j = 0; j < n; j++)
            h[j] = activation(p[j] + (q[j] + b[j]));
    }
}

static void step_rnn_tanh(const struct grd_rnn_step *x)
{
    rnn_rows(x, rnn_tanh);
}

static void step_rnn_relu(const struct grd_rnn_step *x)
{
    rnn_rows(x, rnn_relu);
}

/* ---- Gradients ---------------------------------------------------------------------------------------------------------------------- */

static void gradient_lstm(const struct grd_rnn_step_gradient *x)
{
    const int64_t n = x->hidden;
    for (int64_t r = 0; r < x->rows; r++) {
        const T *restrict gates = (const T *)x->saved + r * GRD_RNN_LSTM_SAVED * n, *restrict grad_h = (const T *)x->grad_h + r * n;
        T *restrict grad_c = (T *)x->grad_c + r * n, *restrict grad = (T *)x->projected + r * GRD_RNN_LSTM_GATES * n;
        IN_PLACE
        for (int64_t j = 0; j < n; j++) {
            const T in = gates[j], forget = gates[n + j], new = gates[2 * n + j], out = gates[3 * n + j], cell = gates[4 * n + j];
            const T high = vm_tanh(forget * cell + in * new);
            const T of_cell = grad_c[j] + grad_h[j] * out * (1 - high * high);
            grad[j] = of_cell * new *in *(1 - in);
            grad[n + j] = of_cell * cell * forget * (1 - forget);
            grad[2 * n + j] = of_cell * in * (1 - new *new);
            grad[3 * n + j] = grad_h[j] * high * out * (1 - out);
            grad_c[j] = of_cell * forget;
        }
    }
}

static void gradient_gru(const struct grd_rnn_step_gradient *x)
{
    const int64_t n = x->hidden, width = GRD_RNN_GRU_GATES * n;
    for (int64_t r = 0; r < x->rows; r++) {
        const T *restrict gates = (const T *)x->saved + r * GRD_RNN_GRU_SAVED * n, *restrict h = (const T *)x->h + r * n;
        T *restrict grad_h = (T *)x->grad_h + r * n;
        T *restrict projected = (T *)x->projected + r * width, *restrict recurrent = (T *)x->recurrent + r * width;
        IN_PLACE
        for (int64_t j = 0; j < n; j++) {
            const T reset = gates[j], update = gates[n + j], new = gates[2 * n + j], memory = gates[3 * n + j];
            const T of_new = grad_h[j] * (1 - update) * (1 - new *new);
            const T of_reset = of_new * memory * reset * (1 - reset), of_update = grad_h[j] * (h[j] - new) * update * (1 - update);
            projected[j] = recurrent[j] = of_reset;
            projected[n + j] = recurrent[n + j] = of_update;
            projected[2 * n + j] = of_new;
            recurrent[2 * n + j] = of_new * reset;
            grad_h[j] *= update;
        }
    }
}

static void gradient_rnn_tanh(const struct grd_rnn_step_gradient *x)
{
    const T *restrict h = x->h, *restrict grad_h = x->grad_h;
    T *restrict grad = x->projected;
    for (int64_t i = 0; i < x->rows * x->hidden; i++)
        grad[i] = grad_h[i] * (1 - h[i] * h[i]);
}

static void gradient_rnn_relu(const struct grd_rnn_step_gradient *x)
{
    const T *restrict h = x->h, *restrict grad_h = x->grad_h;
    T *restrict grad = x->projected;
    for (int64_t i = 0; i < x->rows * x->hidden; i++)
        grad[i] = h[i] <= 0 ? 0 : grad_h[i];
}

static void add(int64_t n, const void *added, void *sum)
{
    const T *restrict x = added;
    T *restrict y = sum;
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

const struct grd_rnn_row GRD_TYPED(grd_rnn_row) = {.step = {step_lstm, step_gru, step_rnn_tanh, step_rnn_relu},
                                                   .gradient = {gradient_lstm, gradient_gru, gradient_rnn_tanh, gradient_rnn_relu},
                                                   .add = add};
