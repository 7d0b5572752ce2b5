/* Runs recurrent networks with several layers, one or two directions, and dropout between layers, over batches and packed sequences. Also runs single
 * cells. All are composed of the layer operators of rnn_layer.c and rnn_steps.c. Schema: schema/rnn.toml. */
#include "op/rnn.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "core/shortcuts.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "dispatch/op.h"
#include "gen/uses/op/rnn.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/copy.h"

/* ---- One layer in one direction -------------------------------------------------------------------------------------------------------- */

/* Indices of a layer's tensors: the states before the first step, then weights and biases. CX, the biases and W_HR may be NULL. */
enum { HX, CX, W_IH, W_HH, B_IH, B_HH, W_HR, LAYER_TENSORS };

/* The tensors of one layer in one direction. */
struct layer {
    grd_tensor *t[LAYER_TENSORS];
};

/* True if no transform other than autograd applies to `t`: it is not a batch tensor of vmap, has no tangent, and autocast is off. Autocast would cast
 * the inputs of each product, which the fused operator does not do. */
static bool has_only_gradient_key(const grd_tensor *t)
{
    return (grd_active_keys(grd_keys_of(t)) & ~(1u << GRD_KEY_LIFETIMES)) >> (GRD_KEY_AUTOGRAD + 1) == 0;
}

/* True if the fused operator can compute the layer: no transform other than autograd applies, and all tensors have one device and one dtype that has
 * kernels. */
static bool can_fuse(grd_tensor *input, const struct layer *layer)
{
    if (!grd_accelerations || grd_kernels->rnn[input->dtype] == NULL)
        return false;
    bool fuses = has_only_gradient_key(input);
    for (int i = 0; i < LAYER_TENSORS && fuses; i++) {
        const grd_tensor *t = layer->t[i];
        fuses = t == NULL || (has_only_gradient_key(t) && t->dtype == input->dtype && t->device == input->device);
    }
    return fuses;
}

/* True if t is NULL or has the sizes (rows, columns), or (rows) if `columns` is negative. */
static bool has_sizes(const grd_tensor *t, int64_t rows, int64_t columns)
{
    return t == NULL || (columns < 0 ? grd_same_sizes(t, grd_dims(rows)) : grd_same_sizes(t, grd_dims(rows, columns)));
}

/* True if batch_sizes starts with `batch`, never increases, and has the sum `total`. */
static bool are_descending(grd_dims batch_sizes, int64_t batch, int64_t total)
{
    bool descends = batch_sizes.n > 0 && batch_sizes.data[0] == batch;
    for (int64_t i = 0; i < batch_sizes.n && descends; i++) {
        descends = batch_sizes.data[i] > 0 && batch_sizes.data[i] <= grd_least(total, i > 0 ? batch_sizes.data[i - 1] : batch);
        total -= batch_sizes.data[i];
    }
    return descends && total == 0;
}

/* True if the sizes of all tensors of the layer fit together. Otherwise the operators of the unfused layer are used, which broadcast or raise
 * PyTorch's errors. */
static bool sizes_agree(const grd_tensor *input, const struct layer *layer, grd_dims batch_sizes, const struct grd_rnn_kind *kind)
{
    grd_tensor *const *t = layer->t;
    if (input->ndim != 2 || t[HX]->ndim != 2 || t[W_IH]->ndim != 2 || t[HX]->numel == 0 || t[W_IH]->sizes[0] % kind->gates != 0)
        return false;
    const int64_t width = t[W_IH]->sizes[0], hidden = width / kind->gates, state = t[HX]->sizes[1], batch = t[HX]->sizes[0];
    return hidden > 0 && (t[W_HR] != NULL || state == hidden) && has_sizes(t[CX], batch, hidden) &&
           has_sizes(t[W_IH], width, input->sizes[1]) && has_sizes(t[W_HH], width, state) && has_sizes(t[B_IH], width, -1) &&
           has_sizes(t[B_HH], width, -1) && has_sizes(t[W_HR], state, hidden) && are_descending(batch_sizes, batch, input->sizes[0]);
}

/* True if autograd would record an operator that reads the input and the tensors of the layer. */
static bool is_recorded(const grd_tensor *input, const struct layer *layer)
{
    bool recorded = grd_composite_is_recorded(input);
    for (int i = 0; i < LAYER_TENSORS && !recorded; i++)
        recorded = layer->t[i] != NULL && grd_composite_is_recorded(layer->t[i]);
    return recorded;
}

/* Runs one layer. Returns the outputs of all steps and the final states. */
static grd_hidden_rnn_layer_result run_layer(grd_tensor *input, const struct layer *layer, grd_dims batch_sizes,
                                             const struct grd_rnn_kind *kind, bool reverse)
{
    grd_tensor *const *t = layer->t;
    const enum grd_category category = grd_category_of((grd_dtype)input->dtype);
    if (!grd_pending() && kind->gates > 1 && category != GRD_CATEGORY_FLOAT && category != GRD_CATEGORY_COMPLEX)
        grd_raise(GRD_ERROR_RUNTIME, "result type Float can't be cast to the desired output type %s",
                  grd_dtype_type_name((grd_dtype)input->dtype));
    if (grd_pending())
        return (grd_hidden_rnn_layer_result){grd_failed, grd_failed, grd_failed};
    if (!can_fuse(input, layer) || !sizes_agree(input, layer, batch_sizes, kind))
        return grd_hidden_rnn_layer(input, t[HX], t[CX], t[W_IH], t[W_HH], t[B_IH], t[B_HH], t[W_HR], batch_sizes, kind->name, reverse);
    const grd_hidden_rnn_layer_fused_result made = grd_hidden_rnn_layer_fused(
        input, t[HX], t[CX], t[W_IH], t[W_HH], t[B_IH], t[B_HH], t[W_HR], batch_sizes, kind->name, reverse, is_recorded(input, layer));
    return (grd_hidden_rnn_layer_result){made.output, made.hy, made.cy};
}

/* ---- Layers ------------------------------------------------------------------------------------------------------------------------------ */

/* Arguments of a recurrent network. */
struct network {
    const struct grd_rnn_kind *kind;
    grd_tensor *hx, *cx; /* initial states of all layers and directions, stacked along dimension 0 */
    grd_tensors params;
    bool has_biases, has_projections, train, bidirectional;
    int64_t num_layers;
    double dropout;
    /* Number of sequences at each step. */
    grd_dims batch_sizes;
};

/* Returns the number of tensors in `params` per layer and direction. */
static int64_t params_of_layer(const struct network *x)
{
    return (x->has_biases ? 4 : 2) + x->has_projections;
}

static bool check_network(const struct network *x)
{
    const int64_t layers = x->params.n / params_of_layer(x), directions = x->bidirectional ? 2 : 1;
    if (x->params.n % params_of_layer(x) != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "got an incorrect number of RNN parameters");
    if (x->hx->ndim != 3 || (x->cx != NULL && x->cx->ndim != 3))
        return grd_raise(GRD_ERROR_RUNTIME, "hidden states must have three dimensions, not %d",
                         x->hx->ndim != 3 ? x->hx->ndim : x->cx->ndim);
    if (layers % directions != 0 || x->hx->sizes[0] % directions != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Odd number of params or hiddens given to a bidirectional RNN");
    if (x->num_layers < 1)
        return grd_raise(GRD_ERROR_RUNTIME, "num_layers must be greater than zero, not %lld", (long long)x->num_layers);
    if (x->hx->sizes[0] / directions != x->num_layers || (x->cx != NULL && x->cx->sizes[0] != x->hx->sizes[0]))
        return grd_raise(GRD_ERROR_RUNTIME, "Expected more hidden states in stacked_rnn");
    return layers / directions == x->num_layers || grd_raise(GRD_ERROR_RUNTIME, "Expected more weights in stacked_rnn");
}

/* Returns the tensors of one layer and direction. `i` is layer * directions + direction, where `directions` is 1 or 2. */
static struct layer layer_of(const struct network *x, int64_t i)
{
    grd_tensor *const *params = x->params.data + i * params_of_layer(x);
    struct layer layer = {.t = {[HX] = grd_select(x->hx, 0, i), [W_IH] = params[0], [W_HH] = params[1]}};
    layer.t[CX] = x->cx != NULL ? grd_select(x->cx, 0, i) : NULL;
    layer.t[B_IH] = x->has_biases ? params[2] : NULL;
    layer.t[B_HH] = x->has_biases ? params[3] : NULL;
    layer.t[W_HR] = x->has_projections ? params[params_of_layer(x) - 1] : NULL;
    return layer;
}

/* Runs all layers on packed `data`. Returns the outputs of the last layer and the final states of all layers. */
static grd_hidden_rnn_layer_result run_network(const struct network *x, grd_tensor *data)
{
    const int directions = x->bidirectional ? 2 : 1;
    grd_hidden_rnn_layer_result made[2] = {{grd_failed, grd_failed, grd_failed}, {grd_failed, grd_failed, grd_failed}};
    grd_tensor **states = grd_pool_array(2 * directions * x->num_layers, sizeof *states), **cells = states + directions * x->num_layers;
    for (int64_t i = 0; i < x->num_layers && !grd_pending(); i++) {
        if (i > 0 && x->train && x->dropout != 0)
            data = grd_dropout(data, .p = x->dropout, .training = true);
        for (int d = 0; d < directions && !grd_pending(); d++) {
            const struct layer layer = layer_of(x, i * directions + d);
            made[d] = run_layer(data, &layer, x->batch_sizes, x->kind, d == 1);
            states[i * directions + d] = made[d].hy;
            cells[i * directions + d] = made[d].cy;
        }
        data = directions == 1 || grd_pending() ? made[0].output : grd_cat(grd_tensors(made[0].output, made[1].output), .dim = -1);
    }
    if (grd_pending())
        return made[0];
    const int64_t n = directions * x->num_layers;
    return (grd_hidden_rnn_layer_result){data, grd_stack(grd_tensors_from(states, n)),
                                         x->cx != NULL ? grd_stack(grd_tensors_from(cells, n)) : grd_failed};
}

/* Runs the network over a batch of sizes (steps, rows, features), or (rows, steps, features) if `batch_first`. */
static grd_hidden_rnn_layer_result run_batch(struct network *x, grd_tensor *input, bool batch_first)
{
    const grd_hidden_rnn_layer_result failed = {grd_failed, grd_failed, grd_failed};
    int64_t last;
    if (!check_network(x) || (input->ndim < 3 && !grd_wrap_dim(input, 2, &last)))
        return failed;
    if (input->ndim > 3)
        grd_raise(GRD_ERROR_RUNTIME, "input must have three dimensions, not %d", input->ndim);
    input = batch_first ? grd_transpose(input, 0, 1) : input;
    if (grd_pending())
        return failed;
    const int64_t steps = input->sizes[0], rows = input->sizes[1];
    if (steps == 0)
        grd_raise(GRD_ERROR_RUNTIME, "Expected sequence length to be larger than 0 in RNN");
    int64_t *batch_sizes = grd_pending() ? NULL : grd_pool_array(steps, sizeof *batch_sizes);
    if (batch_sizes == NULL)
        return failed;
    for (int64_t i = 0; i < steps; i++)
        batch_sizes[i] = rows;
    x->batch_sizes = grd_dims_from(batch_sizes, steps);
    grd_hidden_rnn_layer_result made = run_network(x, grd_reshape(input, grd_dims(grd_wrapping_product(steps, rows), input->sizes[2])));
    if (grd_pending())
        return failed;
    made.output = grd_view(made.output, grd_dims(steps, rows, grd_size_along(made.output, made.output->ndim - 1)));
    made.output = batch_first ? grd_transpose(made.output, 0, 1) : made.output;
    return made;
}

/* Runs the network over packed sequences. `batch_sizes` must be a vector of int64. */
static grd_hidden_rnn_layer_result run_packed(struct network *x, grd_tensor *data, const grd_tensor *batch_sizes)
{
    const grd_hidden_rnn_layer_result failed = {grd_failed, grd_failed, grd_failed};
    if (!check_network(x) || !grd_check_has_data(batch_sizes))
        return failed;
    if (batch_sizes->dtype != GRD_INT64)
        grd_raise(GRD_ERROR_RUNTIME, "expected scalar type Long but found %s", grd_dtype_type_name((grd_dtype)batch_sizes->dtype));
    else if (batch_sizes->ndim != 1 || batch_sizes->numel == 0)
        grd_raise(GRD_ERROR_RUNTIME, "batch_sizes must be a vector with elements, not of size %s", grd_list_text(grd_sizes(batch_sizes)));
    if (grd_pending())
        return failed;
    const grd_tensor *sizes = grd_contiguous_as(grd_on_cpu((grd_tensor *)(uintptr_t)batch_sizes), GRD_DTYPE_NONE);
    if (grd_pending())
        return failed;
    x->batch_sizes = grd_dims_from((const int64_t *)(const void *)sizes->data, sizes->numel);
    return run_network(x, data);
}

/* ---- Networks ---------------------------------------------------------------------------------------------------------------------------- */

static struct network network_of(const char *kind, grd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                                 bool bidirectional)
{
    return (struct network){.kind = grd_rnn_kind_of(kind),
                            .params = params,
                            .has_biases = has_biases,
                            .num_layers = num_layers,
                            .dropout = dropout,
                            .train = train,
                            .bidirectional = bidirectional};
}

/* Sets the initial hidden state and the initial cell state of an LSTM. Returns false, with RuntimeError, if `hx` does not hold two states. */
static bool take_states(struct network *x, grd_tensors hx)
{
    if (hx.n != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "lstm expects two hidden states");
    x->hx = hx.data[0];
    x->cx = hx.data[1];
    x->has_projections = x->hx->ndim == 3 && x->cx->ndim == 3 && x->hx->sizes[2] != x->cx->sizes[2];
    return true;
}

/* Runs the network over a batch or, if `batch_sizes` is not NULL, over packed sequences. */
static grd_hidden_rnn_layer_result run_input(struct network *x, grd_tensor *input, const grd_tensor *batch_sizes, bool batch_first)
{
    return batch_sizes != NULL ? run_packed(x, input, batch_sizes) : run_batch(x, input, batch_first);
}

static void run_lstm(struct network x, grd_tensors hx, grd_tensor *input, const grd_tensor *batch_sizes, bool batch_first, grd_tensor **ret)
{
    grd_hidden_rnn_layer_result made = {grd_failed, grd_failed, grd_failed};
    if (take_states(&x, hx))
        made = run_input(&x, input, batch_sizes, batch_first);
    ret[0] = made.output;
    ret[1] = made.hy;
    ret[2] = made.cy;
}

static void run_rnn(struct network x, grd_tensor *hx, grd_tensor *input, const grd_tensor *batch_sizes, bool batch_first, grd_tensor **ret)
{
    grd_hidden_rnn_layer_result made = {grd_failed, grd_failed, grd_failed};
    x.hx = hx;
    if (x.kind != NULL)
        made = run_input(&x, input, batch_sizes, batch_first);
    ret[0] = made.output;
    ret[1] = made.hy;
}

void op_lstm(grd_tensor *input, grd_tensors hx, grd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
             bool bidirectional, bool batch_first, grd_tensor **ret)
{
    run_lstm(network_of("lstm", params, has_biases, num_layers, dropout, train, bidirectional), hx, input, NULL, batch_first, ret);
}

void op_lstm_packed(grd_tensor *data, grd_tensor *batch_sizes, grd_tensors hx, grd_tensors params, bool has_biases, int64_t num_layers,
                    double dropout, bool train, bool bidirectional, grd_tensor **ret)
{
    run_lstm(network_of("lstm", params, has_biases, num_layers, dropout, train, bidirectional), hx, data, batch_sizes, false, ret);
}

void op_hidden_rnn(grd_tensor *input, grd_tensor *hx, grd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                   bool bidirectional, bool batch_first, const char *mode, grd_tensor **ret)
{
    run_rnn(network_of(mode, params, has_biases, num_layers, dropout, train, bidirectional), hx, input, NULL, batch_first, ret);
}

void op_hidden_rnn_packed(grd_tensor *data, grd_tensor *batch_sizes, grd_tensor *hx, grd_tensors params, bool has_biases,
                          int64_t num_layers, double dropout, bool train, bool bidirectional, const char *mode, grd_tensor **ret)
{
    run_rnn(network_of(mode, params, has_biases, num_layers, dropout, train, bidirectional), hx, data, batch_sizes, false, ret);
}

/* ---- Cells --------------------------------------------------------------------------------------------------------------------------------- */

/* True if a hidden state fits the input and the hidden size; otherwise raises an error. `which` is the number of the state in the error text. */
static bool check_cell_state(const grd_tensor *input, const grd_tensor *state, int64_t hidden, int which)
{
    int64_t dim;
    if (!grd_wrap_dim(state, 0, &dim))
        return false;
    if (input->sizes[0] != grd_size_along(state, 0))
        return grd_raise(GRD_ERROR_RUNTIME, "Input batch size %lld doesn't match hidden%d batch size %lld", (long long)input->sizes[0],
                         which, (long long)grd_size_along(state, 0));
    if (!grd_wrap_dim(state, 1, &dim))
        return false;
    return state->sizes[1] == hidden || grd_raise(GRD_ERROR_RUNTIME, "hidden%d has inconsistent hidden_size: got %lld, expected %lld",
                                                  which, (long long)state->sizes[1], (long long)hidden);
}

static bool check_cell(const grd_tensor *input, const struct layer *layer, const struct grd_rnn_kind *kind)
{
    grd_tensor *const *t = layer->t;
    int64_t dim;
    if (!grd_wrap_dim(input, 1, &dim) || !grd_wrap_dim(t[W_IH], 1, &dim) || !grd_wrap_dim(t[W_HH], 1, &dim))
        return false;
    if (input->sizes[1] != t[W_IH]->sizes[1])
        return grd_raise(GRD_ERROR_RUNTIME, "input has inconsistent input_size: got %lld expected %lld", (long long)input->sizes[1],
                         (long long)t[W_IH]->sizes[1]);
    const int64_t hidden = t[W_HH]->sizes[1];
    if (!check_cell_state(input, t[HX], hidden, 0) || (t[CX] != NULL && !check_cell_state(input, t[CX], hidden, 1)))
        return false;
    return t[W_IH]->sizes[0] == hidden * kind->gates ||
           grd_raise(GRD_ERROR_RUNTIME, "weight_ih first dim must be %d * hidden_size = %lld, but got %lld", kind->gates,
                     (long long)hidden * kind->gates, (long long)t[W_IH]->sizes[0]);
}

/* Runs one step, as a layer over sequences of length 1. */
static grd_hidden_rnn_layer_result run_cell(grd_tensor *input, const struct layer *layer, const char *mode)
{
    const struct grd_rnn_kind *kind = grd_rnn_kind_of(mode);
    if (kind == NULL || !check_cell(input, layer, kind))
        return (grd_hidden_rnn_layer_result){grd_failed, grd_failed, grd_failed};
    return run_layer(input, layer, grd_dims(input->sizes[0]), kind, false);
}

void op_lstm_cell(grd_tensor *input, grd_tensors hx, grd_tensor *w_ih, grd_tensor *w_hh, grd_tensor *b_ih, grd_tensor *b_hh,
                  grd_tensor **ret)
{
    grd_hidden_rnn_layer_result made = {grd_failed, grd_failed, grd_failed};
    if (hx.n != 2)
        grd_raise(GRD_ERROR_RUNTIME, "lstm_cell expects two hidden states");
    else
        made = run_cell(input, &(struct layer){{hx.data[0], hx.data[1], w_ih, w_hh, b_ih, b_hh, NULL}}, "lstm");
    ret[0] = made.hy;
    ret[1] = made.cy;
}

grd_tensor *op_hidden_rnn_cell(grd_tensor *input, grd_tensor *hx, grd_tensor *w_ih, grd_tensor *w_hh, grd_tensor *b_ih, grd_tensor *b_hh,
                               const char *mode)
{
    return run_cell(input, &(struct layer){{hx, NULL, w_ih, w_hh, b_ih, b_hh, NULL}}, mode).hy;
}
