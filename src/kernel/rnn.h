/* Declares kernels that compute one step of a recurrent cell for some rows of a batch, and the gradient of the step. The matrix products are made by
 * op/rnn_steps.c.
 * p is the input times its weights plus its bias. q is the state h times its weights, and b is the bias of q. s is the logistic function. The gates
 * are blocks of columns of p, q and b; p0 is the first block of p, p1 the second, and so on:
 *
 *   lstm      i = s(p0 + q0 + b0), f = s(p1 + q1 + b1), g = tanh(p2 + q2 + b2), o = s(p3 + q3 + b3);  c' = f c + i g;  h' = o tanh(c')
 *   gru       r = s(p0 + q0 + b0), z = s(p1 + q1 + b1), m = q2 + b2, n = tanh(p2 + r m);              h' = n + z (h - n)
 *   rnn_tanh  h' = tanh(p + q + b)
 *   rnn_relu  h' = max(p + q + b, 0)
 *
 * The rows of all matrices are contiguous and follow each other. */
#ifndef GRD_KERNEL_RNN_H
#define GRD_KERNEL_RNN_H

#include <stdint.h>

enum grd_rnn_cell { GRD_RNN_LSTM, GRD_RNN_GRU, GRD_RNN_TANH, GRD_RNN_RELU, GRD_RNN_CELLS };

/* The letters are those of the formulas at the top of this file. GATES is the number of gates, which are blocks of columns of p and q. SAVED is the
 * number of blocks of columns that a step saves for its gradient. An lstm step saves i, f, g, o and the old c, and a gru step saves r, z, n and m.
 * The gradients of rnn_tanh and rnn_relu need only h'. */
enum { GRD_RNN_LSTM_GATES = 4, GRD_RNN_GRU_GATES = 3, GRD_RNN_LSTM_SAVED = 5, GRD_RNN_GRU_SAVED = 4 };

/* The arguments of one step of a recurrent cell with `hidden` state elements per row. */
struct grd_rnn_step {
    int64_t rows, hidden;
    /* projected: p, the input times its weights plus its bias. recurrent: q, the state h times its weights. bias: b, the bias of q, one row. */
    const void *projected, *recurrent, *bias;
    void *h, *c; /* the state, which is overwritten with the new state h' and c'; c is NULL except for lstm */
    void *saved; /* receives what the gradient of the step needs; NULL if no gradient is wanted */
};

/* The arguments of a kernel that computes the gradient of one step. */
struct grd_rnn_step_gradient {
    int64_t rows, hidden;
    const void *saved;
    const void *h; /* gru: the state before the step; rnn_tanh and rnn_relu: the state after it; lstm: not read */
    /* On entry the gradient of the new state h'. For gru it is overwritten with the part of the gradient of h that does not pass through q. (q is h
     * times its weights.) */
    void *grad_h;
    void *grad_c; /* lstm: on entry the gradient of c', overwritten with the gradient of c */
    /* Results: `projected` is the gradient of p (input times weights plus bias), `recurrent` is the gradient of q + b (h times weights plus bias).
     * `recurrent` is NULL except for gru, because the two gradients are equal for the other cells. */
    void *projected, *recurrent;
};

/* The recurrent-cell kernels of one dtype. */
struct grd_rnn_row {
    void (*step[GRD_RNN_CELLS])(const struct grd_rnn_step *x);
    void (*gradient[GRD_RNN_CELLS])(const struct grd_rnn_step_gradient *x);
    /* Adds n elements of `added` to `sum`. */
    void (*add)(int64_t n, const void *added, void *sum);
};

#endif
