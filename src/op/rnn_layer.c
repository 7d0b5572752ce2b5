/* Computes one layer of a recurrent network in one direction over packed sequences by calls of public operators. The layer therefore supports second
 * derivatives, vmap and forward mode, and is the reference for the fast version in rnn_steps.c. rnn.c stacks layers. Schema: schema/rnn.toml. */
#include <string.h>

#include "gen/uses/op/rnn_layer.h"
#include "core/new.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/rnn.h"

const struct grd_rnn_kind *grd_rnn_kind_of(const char *name)
{
    static const struct grd_rnn_kind kinds[] = {{"lstm", GRD_RNN_LSTM, GRD_RNN_LSTM_GATES, GRD_RNN_LSTM_SAVED},
                                                {"gru", GRD_RNN_GRU, GRD_RNN_GRU_GATES, GRD_RNN_GRU_SAVED},
                                                {"rnn_tanh", GRD_RNN_TANH, 1, 0},
                                                {"rnn_relu", GRD_RNN_RELU, 1, 0}};
    for (int i = 0; i < GRD_LENGTH(kinds); i++)
        if (name != NULL && strcmp(name, kinds[i].name) == 0)
            return &kinds[i];
    grd_raise(GRD_ERROR_RUNTIME, "'%s' is no recurrent cell: \"lstm\", \"gru\", \"rnn_tanh\" or \"rnn_relu\"", name != NULL ? name : "");
    return NULL;
}

/* State of a layer. h is the hidden state. c is the cell state of an LSTM, and NULL for other cells. */
struct state {
    grd_tensor *h, *c;
};

/* Returns the columns of gate i of `product`. The last dimension of `product` consists of `gates` blocks of equal size, one per gate. */
static grd_tensor *gate(grd_tensor *product, int64_t i, int64_t gates)
{
    if (grd_pending())
        return grd_failed;
    const int64_t hidden = grd_size_along(product, product->ndim - 1) / gates;
    return grd_narrow(product, -1, i * hidden, hidden);
}

/* Returns the next state of an LSTM. `sum` is the sum of the products of input and state with their weights. */
static struct state advance_lstm(grd_tensor *sum, struct state state)
{
    enum { IN, FORGET, NEW, OUT, GATES };
    grd_tensor *kept = grd_mul(grd_sigmoid(gate(sum, FORGET, GATES)), state.c);
    grd_tensor *added = grd_mul(grd_sigmoid(gate(sum, IN, GATES)), grd_tanh(gate(sum, NEW, GATES)));
    grd_tensor *c = grd_add(kept, added);
    return (struct state){grd_mul(grd_sigmoid(gate(sum, OUT, GATES)), grd_tanh(c)), c};
}

/* Returns the next state of a GRU, given the products of input and state with their weights. */
static struct state advance_gru(grd_tensor *projected, grd_tensor *recurrent, struct state state)
{
    enum { RESET, UPDATE, NEW, GATES };
    grd_tensor *reset = grd_sigmoid(grd_add(gate(projected, RESET, GATES), gate(recurrent, RESET, GATES)));
    grd_tensor *update = grd_sigmoid(grd_add(gate(projected, UPDATE, GATES), gate(recurrent, UPDATE, GATES)));
    grd_tensor *new = grd_tanh(grd_add(gate(projected, NEW, GATES), grd_mul(reset, gate(recurrent, NEW, GATES))));
    return (struct state){grd_add(grd_mul(grd_sub(state.h, new), update), new), NULL};
}

/* Returns the next state of a cell. `projected` is the product of the input with its weight, `recurrent` the product of the hidden state with its
 * weight. Both include their biases. */
static struct state advance(const struct grd_rnn_kind *kind, grd_tensor *projected, grd_tensor *recurrent, struct state state)
{
    switch (kind->cell) {
    case GRD_RNN_LSTM:
        return advance_lstm(grd_add(projected, recurrent), state);
    case GRD_RNN_GRU:
        return advance_gru(projected, recurrent, state);
    case GRD_RNN_TANH:
        return (struct state){grd_tanh(grd_add(projected, recurrent)), NULL};
    default:
        return (struct state){grd_relu(grd_add(projected, recurrent)), NULL};
    }
}

/* Returns the first n rows of the state `t`, or `t` itself if it is NULL or has at most n rows. */
static grd_tensor *first_rows(grd_tensor *t, int64_t n)
{
    return t == NULL || grd_pending() || grd_size_along(t, 0) <= n ? t : grd_narrow(t, 0, 0, n);
}

/* Returns `t` with its first rows replaced by all rows of `rows`; NULL if `t` is NULL. */
static grd_tensor *with_first(grd_tensor *t, grd_tensor *rows)
{
    if (t == NULL || grd_pending())
        return t;
    const int64_t n = grd_size_along(rows, 0), rest = grd_size_along(t, 0) - n;
    return rest <= 0 ? rows : grd_cat(grd_tensors(rows, grd_narrow(t, 0, n, rest)), .dim = 0);
}

void op_hidden_rnn_layer(grd_tensor *input, grd_tensor *hx, grd_tensor *cx, grd_tensor *w_ih, grd_tensor *w_hh, grd_tensor *b_ih,
                         grd_tensor *b_hh, grd_tensor *w_hr, grd_dims batch_sizes, const char *mode, bool reverse, grd_tensor **ret)
{
    const struct grd_rnn_kind *kind = grd_rnn_kind_of(mode);
    grd_tensor **outputs = grd_pool_array(batch_sizes.n, sizeof *outputs);
    grd_tensor *projected = kind == NULL ? grd_failed : grd_linear(input, w_ih, .bias = b_ih);
    struct state state = {hx, cx};
    int64_t at = reverse ? grd_size_along(input, 0) : 0;
    for (int64_t k = 0; k < batch_sizes.n && !grd_pending(); k++) {
        const int64_t step = reverse ? batch_sizes.n - 1 - k : k, n = batch_sizes.data[step];
        at -= reverse ? n : 0;
        const struct state before = {first_rows(state.h, n), first_rows(state.c, n)};
        struct state after = advance(kind, grd_narrow(projected, 0, at, n), grd_linear(before.h, w_hh, .bias = b_hh), before);
        after.h = w_hr != NULL ? grd_linear(after.h, w_hr) : after.h;
        state = (struct state){with_first(state.h, after.h), with_first(state.c, after.c)};
        outputs[step] = after.h;
        at += reverse ? 0 : n;
    }
    const bool failed = grd_pending();
    ret[0] = failed ? grd_failed : grd_cat(grd_tensors_from(outputs, batch_sizes.n), .dim = 0);
    ret[1] = failed ? grd_failed : state.h;
    ret[2] = failed ? grd_failed : cx != NULL ? state.c : grd_zeros(grd_dims(0), .dtype = hx->dtype, .device = grd_device_of(hx));
}

/* Returns an int64 index tensor that selects, for each step of each sequence, the hidden state before the step. The indices are row numbers
 * in the concatenation of hx and the outputs. */
static grd_tensor *rows_before(int64_t batch, grd_dims batch_sizes, int64_t total, bool reverse)
{
    grd_tensor *index = grd_new(grd_dims(total), GRD_INT64, GRD_CPU);
    if (grd_pending())
        return index;
    int64_t *const rows = (int64_t *)(void *)index->data;
    for (int64_t k = 0, at = 0, earlier = 0; k < batch_sizes.n; k++) {
        /* `at` is the index of the first row of step k, `later` that of step k + 1, and `earlier` that of step k - 1. */
        const int64_t n = batch_sizes.data[k], later = at + n;
        const int64_t common = !reverse ? (k > 0 ? n : 0) : k + 1 < batch_sizes.n ? batch_sizes.data[k + 1] : 0;
        for (int64_t r = 0; r < n; r++)
            rows[at + r] = r >= common ? r : batch + (reverse ? later : earlier) + r;
        earlier = at;
        at = later;
    }
    return index;
}

/* True if every step has at least one row and at most as many rows as the step before, and the sum of batch_sizes is the number of rows of the
 * output. Otherwise raises RuntimeError. */
static bool check_steps(const grd_tensor *output, const grd_tensor *hx, grd_dims batch_sizes)
{
    int64_t rest = output->ndim > 0 && hx->ndim > 0 ? output->sizes[0] : -1, most = rest < 0 ? 0 : hx->sizes[0];
    for (int64_t k = 0; k < batch_sizes.n && rest >= 0; k++) {
        const int64_t n = batch_sizes.data[k];
        rest = n > 0 && n <= most ? rest - n : -1;
        most = n;
    }
    return (rest == 0 && batch_sizes.n > 0) ||
           grd_raise(GRD_ERROR_RUNTIME, "batch_sizes %s do not fit to the rows of the output and of the states",
                     grd_list_text(batch_sizes));
}

grd_tensor *op_hidden_rnn_states_before(grd_tensor *output, grd_tensor *hx, grd_dims batch_sizes, bool reverse)
{
    if (!check_steps(output, hx, batch_sizes))
        return grd_failed;
    const int64_t batch = hx->sizes[0], total = output->sizes[0];
    if (batch_sizes.n == 1)
        return hx;
    if (batch_sizes.data[batch_sizes.n - 1] < batch)
        return grd_index_select(grd_cat(grd_tensors(hx, output), .dim = 0), 0,
                                grd_to(rows_before(batch, batch_sizes, total, reverse), .device = grd_device_of(output)));
    return reverse ? grd_narrow(grd_cat(grd_tensors(output, hx), .dim = 0), 0, batch, total)
                   : grd_narrow(grd_cat(grd_tensors(hx, output), .dim = 0), 0, 0, total);
}

grd_tensor *op_hidden_lstm_states(grd_tensor *saved)
{
    enum { IN, FORGET, NEW, OUT, CELL, BLOCKS };
    grd_tensor *kept = grd_mul(gate(saved, FORGET, BLOCKS), gate(saved, CELL, BLOCKS));
    grd_tensor *c = grd_add(kept, grd_mul(gate(saved, IN, BLOCKS), gate(saved, NEW, BLOCKS)));
    return grd_mul(gate(saved, OUT, BLOCKS), grd_tanh(c));
}
