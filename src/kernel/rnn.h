/* One step of a recurrent cell for some rows of a batch, and its gradient: everything but the products (op/rnn_steps.c).
 * p is the product of the input and its bias, q that of the state h, b the bias of q; s is the logistic function, and gates are blocks of columns in this order:
 *
 *   lstm      i = s(p0 + q0 + b0), f = s(p1 + q1 + b1), g = tanh(p2 + q2 + b2), o = s(p3 + q3 + b3);  c' = f c + i g;  h' = o tanh(c')
 *   gru       r = s(p0 + q0 + b0), z = s(p1 + q1 + b1), m = q2 + b2, n = tanh(p2 + r m);              h' = n + z (h - n)
 *   rnn_tanh  h' = tanh(p + q + b)
 *   rnn_relu  h' = max(p + q + b, 0)
 *
 * Rows of a block are contiguous and follow each other. */
#ifndef GRD_KERNEL_RNN_H
#define GRD_KERNEL_RNN_H

#include <stdint.h>

enum grd_rnn_cell { GRD_RNN_LSTM, GRD_RNN_GRU, GRD_RNN_TANH, GRD_RNN_RELU, GRD_RNN_CELLS };

/* Blocks of columns of the products, and of what is saved for the gradient: i f g o c of lstm, r z n m of gru. That of the others reads h'. */
enum { GRD_RNN_LSTM_GATES = 4, GRD_RNN_GRU_GATES = 3, GRD_RNN_LSTM_SAVED = 5, GRD_RNN_GRU_SAVED = 4 };

struct grd_rnn_step {
    int64_t rows, hidden;
    const void *projected, *recurrent, *bias; /* p, q, b: one row of b */
    void *h, *c;                              /* the state, of which h' and c' take the place; c of lstm alone */
    void *saved;                              /* for the gradient; NULL: not wanted */
};

struct grd_rnn_step_gradient {
    int64_t rows, hidden;
    const void *saved;
    const void *h;               /* gru: the state before the step; rnn_tanh, rnn_relu: that after it */
    void *grad_h;                /* of h'; gru: its place that of h takes, but for the product's part */
    void *grad_c;                /* of c', whose place that of c takes */
    void *projected, *recurrent; /* receive the gradients of p and of q + b, which differ in gru alone: NULL elsewhere */
};

struct grd_rnn_row {
    void (*step[GRD_RNN_CELLS])(const struct grd_rnn_step *x);
    void (*gradient[GRD_RNN_CELLS])(const struct grd_rnn_step_gradient *x);
    void (*add)(int64_t n, const void *added, void *sum);
};

#endif
