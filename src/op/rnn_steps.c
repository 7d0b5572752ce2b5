/* Computes a recurrent layer over packed sequences with a kernel. Each step computes the product of the state with the recurrent weight, and then
 * applies the equations of the recurrent cell, e.g. of an LSTM. Also computes the layer's gradient by backpropagation through time. The cells are in
 * kernel/cpu/rnn.c, and the reference version is in rnn_layer.c. Schema: schema/rnn.toml.
 *
 * The sequences of a batch are independent, so a task computes some sequences over all steps, and threads synchronise only at the end. The results
 * for the final state hold the current state, which each step updates in place. A sequence that has ended keeps its state. If sequences are
 * processed in reverse, a sequence that has not begun keeps its state.
 *
 * Invariant: the division into tasks depends only on the shapes. */
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/rnn_steps.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/plan.h"
#include "op/rnn.h"
#include "op/checks.h"
#include "op/sizes.h"

enum {
    /* The number of sequences per task is a multiple of PIECE_ROWS. At every instruction set level, PIECE_ROWS is a multiple of the number of rows
     * that a kernel computes at a time. */
    PIECE_ROWS = 8,
    MOST_ROWS = 16, /* maximum number of sequences per task, unless the weight is large */
    /* A weight of more bytes than this does not fit in the caches. Each task then reads the weight from memory at each step, so there are fewer
     * tasks. */
    LARGE_WEIGHT = 1 << 20,
    LARGE_PIECES = 4,          /* maximum number of tasks if the weight is large */
    PIECE_WORK = 1 << 20,      /* minimum number of multiplications for which there is more than one task */
    COPIED_ELEMENTS = 1 << 14, /* elements of a weight that one task copies */
    ALIGNED = GRD_DATA_ALIGNMENT
};

enum { PROJECTED, HX, CX, W_HH, B_HH, W_HR };                        /* indices of the tensors that _rnn_steps reads */
enum { OUTPUT, HY, CY, SAVED };                                      /* indices of the results of _rnn_steps */
enum { G_OUTPUT, G_HY, G_CY, G_HX, G_W_HH, G_W_HR, G_OUT, G_SAVED }; /* indices of the tensors that _rnn_steps_backward reads */
enum { GRAD_PROJECTED, GRAD_INNER, GRAD_HX, GRAD_CX };               /* indices of the results of _rnn_steps_backward */

/* Describes a weight of sizes inner x columns, the right operand of products. */
struct weight {
    int64_t inner, columns; /* sizes of the weight */
    /* Data of the weight. */
    const char *given;
    int64_t row, column; /* strides of `given` in elements */
    char *panels;        /* copy of the weight as panels (blocks of columns) with contiguous rows; NULL if there is no copy */
};

/* State of a call of _rnn_steps or _rnn_steps_backward. The function plan_... fills it, and the function run_... reads it. */
struct steps {
    const struct grd_rnn_kind *kind;
    const struct grd_rnn_row *cells;
    const struct grd_product_kernels *products;
    grd_dims batch_sizes;
    /* batch: number of sequences at the first step. total: number of packed rows of all steps. hidden: columns of the cell state. state: columns of
     * the hidden state. width: columns of a product with the recurrent weight. */
    int64_t batch, total, hidden, state, width;
    int64_t cell_sizes[2]; /* sizes of the cell state, which are (batch, hidden) for an LSTM, and (0) for other cells */
    /* itemsize: bytes of an element; piece_rows: sequences per task. */
    int64_t itemsize, piece_rows;
    bool backwards; /* true if sequences are processed from the last step to the first */
    /* The recurrent weight, and the weight of an LSTM's projection. */
    struct weight recurrent, projection;
    const int64_t *offsets; /* index of the first packed row of each step */
    char *scratch, *zeros;  /* scratch: scratch memory of the tasks; zeros: used in place of a missing bias */
    /* piece_bytes: bytes of scratch memory per task. product_bytes: size of the first of the two buffers in this memory. */
    int64_t piece_bytes, product_bytes;
    /* in: data of the tensors that are read; out: data of the results; elements are NULL for absent or empty tensors */
    char *const *in, *const *out;
};

static struct steps *steps_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct steps) <= GRD_PLAN_STATE, "room in the plan");
    return (struct steps *)(uintptr_t)p->state;
}

static int64_t aligned(int64_t bytes)
{
    return grd_round_up(bytes, ALIGNED);
}

/* ---- Products ---------------------------------------------------------------------------------------------------------------------- */

/* True if the weight is first copied into panels (blocks of columns). The copy pays off only if several products read the weight, i.e. if there are
 * more than two steps. */
static bool is_copied(const struct steps *x, const struct weight *w)
{
    return x->batch_sizes.n > 2 && (x->piece_rows > 1 || w->column != 1);
}

static int64_t weight_bytes(const struct steps *x, const struct weight *w)
{
    return is_copied(x, w) ? aligned(grd_round_up(w->columns, x->products->lanes) * w->inner * x->itemsize) : 0;
}

/* Returns the number of columns of a panel, a block of columns of a weight. In a copied panel the rows are contiguous. If a task has a single
 * sequence, one panel has all columns. */
static int64_t panel_of(const struct steps *x, const struct weight *w)
{
    return x->piece_rows > 1 ? x->products->panel : w->columns;
}

/* Returns the number of columns of the panel (block of columns) that starts at `column`. *ret_row is the stride between the rows of the panel, in
 * elements. */
static int64_t columns_at(const struct steps *x, const struct weight *w, int64_t column, int64_t *ret_row)
{
    const int64_t columns = grd_least(panel_of(x, w), w->columns - column);
    *ret_row = x->piece_rows > 1 ? grd_round_up(columns, x->products->lanes) : columns;
    return columns;
}

/* Arguments of copy_panels(). */
struct copying {
    const struct steps *x;
    const struct weight *w;
};

/* Copies the panels (blocks of columns) [begin, end) of a weight to w->panels, where the rows of each panel are contiguous. */
static void copy_panels(int64_t begin, int64_t end, void *context)
{
    const struct copying *copying = context;
    const struct steps *x = copying->x;
    const struct weight *w = copying->w;
    for (int64_t panel = begin; panel < end; panel++) {
        int64_t column = panel * panel_of(x, w), row;
        const int64_t columns = columns_at(x, w, column, &row);
        x->products->pack(w->inner, columns, row, w->given + column * w->column * x->itemsize, w->row, w->column,
                          w->panels + column * w->inner * x->itemsize);
    }
}

/* Sets the data of a weight. If is_copied(), copies the weight into panels at x->scratch, and moves x->scratch past the copy. */
static void take_weight(struct steps *x, struct weight *w, const char *given)
{
    w->given = given;
    w->panels = NULL;
    if (!is_copied(x, w))
        return;
    w->panels = x->scratch;
    x->scratch += weight_bytes(x, w);
    const int64_t panel = panel_of(x, w);
    struct copying copying = {x, w};
    grd_parallel_for(0, grd_ceil_div(w->columns, panel), 1 + COPIED_ELEMENTS / (panel * w->inner), copy_panels, &copying);
}

/* Computes product = left @ weight, or adds left @ weight to `product` if `added`. */
static void multiply(const struct steps *x, const struct weight *w, int64_t rows, const char *left, char *product, bool added)
{
    struct grd_gemm g = {.m = rows,
                         .n = w->columns,
                         .k = w->inner,
                         .a = left,
                         .b = w->given,
                         .c = product,
                         .a_row = w->inner,
                         .a_col = 1,
                         .b_row = w->row,
                         .b_col = w->column,
                         .c_row = w->columns,
                         .c_col = 1,
                         .alpha = grd_int(1),
                         .beta = grd_int(added)};
    if (w->panels == NULL) {
        x->products->direct(&g);
        return;
    }
    g.b_col = 1;
    for (int64_t column = 0; column < w->columns; column += g.n) {
        g.n = columns_at(x, w, column, &g.b_row);
        g.b = w->panels + column * w->inner * x->itemsize;
        g.c = product + column * x->itemsize;
        x->products->direct(&g);
    }
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------------------- */

/* Adjacent sequences of the batch at one step. `step` is the index of the step, and `rows` is how many sequences there are. */
struct part {
    int64_t step, rows, at; /* `at` is the index of the first of these sequences among the packed rows of all steps */
};

/* Returns the sequences [first, first + piece_rows) at one step. k counts steps from 0 in the order of processing. If x->backwards, the last step is
 * processed first. The member `rows` is 0 or negative if none of these sequences has this step. */
static struct part part_of(const struct steps *x, int64_t k, int64_t first)
{
    const int64_t step = x->backwards ? x->batch_sizes.n - 1 - k : k;
    return (struct part){step, grd_least(x->piece_rows, x->batch_sizes.data[step] - first), x->offsets[step] + first};
}

/* Copies `rows` rows of the hidden state, which have x->state elements each. */
static void copy_rows(const struct steps *x, char *to, const char *from, int64_t rows)
{
    memcpy(to, from, (size_t)(rows * x->state * x->itemsize));
}

/* Returns the address of row `row` of a matrix with `width` columns; NULL if `data` is NULL. */
static char *row_at(const struct steps *x, char *data, int64_t row, int64_t width)
{
    return data == NULL ? NULL : data + row * width * x->itemsize;
}

/* Sets the sizes of the two buffers of a task. The first buffer holds a product. In the backward operator it holds the gradient of an LSTM's
 * hidden state before the projection. The second buffer holds a hidden state. */
static void set_rooms(struct steps *x)
{
    x->product_bytes = aligned(x->piece_rows * grd_greatest(x->width, x->hidden) * x->itemsize);
    x->piece_bytes = x->product_bytes + aligned(x->piece_rows * grd_greatest(x->hidden, x->state) * x->itemsize);
}

/* Computes all steps of the sequences [begin, begin + piece_rows). */
static void advance_piece(int64_t begin, int64_t end, void *context)
{
    const struct steps *x = context;
    (void)end;
    char *product = x->scratch + begin / x->piece_rows * x->piece_bytes, *made = product + x->product_bytes;
    char *h = row_at(x, x->out[HY], begin, x->state), *c = row_at(x, x->out[CY], begin, x->hidden);
    const bool projects = x->in[W_HR] != NULL;
    for (int64_t k = 0; k < x->batch_sizes.n; k++) {
        const struct part part = part_of(x, k, begin);
        if (part.rows <= 0)
            continue;
        multiply(x, &x->recurrent, part.rows, h, product, false);
        x->cells->step[x->kind->cell](&(struct grd_rnn_step){.rows = part.rows,
                                                             .hidden = x->hidden,
                                                             .projected = row_at(x, x->in[PROJECTED], part.at, x->width),
                                                             .recurrent = product,
                                                             .bias = x->in[B_HH] != NULL ? x->in[B_HH] : x->zeros,
                                                             .h = projects ? made : h,
                                                             .c = c,
                                                             .saved = row_at(x, x->out[SAVED], part.at, x->kind->saved * x->hidden)});
        if (projects)
            multiply(x, &x->projection, part.rows, made, h, false);
        copy_rows(x, row_at(x, x->out[OUTPUT], part.at, x->state), h, part.rows);
    }
}

/* Sets ret_state to the hidden states before step k of the sequences in `part`. For a sequence that has step k - 1, the hidden state is the output of
 * step k - 1, otherwise the initial state. `first` is the index of the first sequence in `part`. */
static void copy_previous(const struct steps *x, int64_t k, int64_t first, const struct part *part, char *ret_state)
{
    struct part earlier = {0};
    if (k > 0)
        earlier = part_of(x, k - 1, first);
    const int64_t n = grd_least(grd_greatest(earlier.rows, 0), part->rows);
    copy_rows(x, ret_state, row_at(x, x->in[G_OUT], earlier.at, x->state), n);
    copy_rows(x, row_at(x, ret_state, n, x->state), row_at(x, x->in[G_HX], first + n, x->state), part->rows - n);
}

/* Computes the gradients of all steps, from the last to the first, for the sequences [begin, begin + piece_rows). */
static void return_piece(int64_t begin, int64_t end, void *context)
{
    const struct steps *x = context;
    (void)end;
    char *of_made = x->scratch + begin / x->piece_rows * x->piece_bytes, *previous = of_made + x->product_bytes;
    char *grad_h = row_at(x, x->out[GRAD_HX], begin, x->state), *grad_c = row_at(x, x->out[GRAD_CX], begin, x->hidden);
    const bool gru = x->kind->cell == GRD_RNN_GRU, projects = x->in[G_W_HR] != NULL;
    for (int64_t k = x->batch_sizes.n; k-- > 0;) {
        const struct part part = part_of(x, k, begin);
        if (part.rows <= 0)
            continue;
        char *projected = row_at(x, x->out[GRAD_PROJECTED], part.at, x->width);
        char *inner = row_at(x, x->out[GRAD_INNER], part.at, gru ? x->width : x->state);
        x->cells->add(part.rows * x->state, row_at(x, x->in[G_OUTPUT], part.at, x->state), grad_h);
        if (projects) {
            copy_rows(x, inner, grad_h, part.rows);
            multiply(x, &x->projection, part.rows, grad_h, of_made, false);
        }
        if (gru)
            copy_previous(x, k, begin, &part, previous);
        x->cells->gradient[x->kind->cell](
            &(struct grd_rnn_step_gradient){.rows = part.rows,
                                            .hidden = x->hidden,
                                            .saved = row_at(x, x->in[G_SAVED], part.at, x->kind->saved * x->hidden),
                                            .h = gru ? previous : row_at(x, x->in[G_OUT], part.at, x->state),
                                            .grad_h = projects ? of_made : grad_h,
                                            .grad_c = grad_c,
                                            .projected = projected,
                                            .recurrent = gru ? inner : NULL});
        multiply(x, &x->recurrent, part.rows, gru ? inner : projected, grad_h, gru);
    }
}

/* Runs `task` for all sequences, in parallel. First sets the members of x that point to data of tensors and to scratch memory, and copies the weights
 * if that is faster. w_hr may be NULL. */
static void run_pieces(const struct grd_plan *p, struct steps *x, const char *w_hh, const char *w_hr, grd_task *task)
{
    char *in[GRD_PLAN_READS], *out[GRD_MAX_RESULTS];
    for (int i = 0; i < p->nreads; i++)
        in[i] = p->in[i] != NULL ? p->in[i]->data : NULL;
    for (int i = 0; i < p->nresults; i++)
        out[i] = p->results[i]->numel > 0 ? p->results[i]->data : NULL;
    x->in = in;
    x->out = out;
    x->scratch = (char *)aligned((int64_t)(uintptr_t)p->scratch);
    int64_t *offsets = (void *)x->scratch;
    for (int64_t step = 0, at = 0; step < x->batch_sizes.n; at += x->batch_sizes.data[step], step++)
        offsets[step] = at;
    x->offsets = offsets;
    x->zeros = (char *)(offsets + x->batch_sizes.n);
    memset(x->zeros, 0, (size_t)(x->width * x->itemsize));
    x->scratch += aligned(x->batch_sizes.n * (int64_t)sizeof *offsets + x->width * x->itemsize);
    take_weight(x, &x->recurrent, w_hh);
    if (w_hr != NULL)
        take_weight(x, &x->projection, w_hr);
    grd_parallel_for(0, x->batch, x->piece_rows, task, x);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------------------------- */

static bool check_batch_sizes(grd_dims batch_sizes, int64_t batch, int64_t total)
{
    int64_t sum = 0;
    bool descends = batch_sizes.n > 0 && batch_sizes.data[0] == batch;
    for (int64_t i = 0; i < batch_sizes.n && descends; i++) {
        descends = batch_sizes.data[i] > 0 && (i == 0 || batch_sizes.data[i] <= batch_sizes.data[i - 1]) && sum <= total;
        sum += descends ? batch_sizes.data[i] : 0;
    }
    return (descends && sum == total) ||
           grd_raise(GRD_ERROR_RUNTIME, "batch_sizes must descend from the %lld rows of hx and sum to the %lld rows of the input",
                     (long long)batch, (long long)total);
}

/* True if `t` is NULL or has the given sizes and the dtype of `like`; otherwise raises RuntimeError. `name` is the name of `t` in the error text. */
static bool check_part(const grd_tensor *t, const grd_tensor *like, grd_dims sizes, const char *name)
{
    if (t == NULL || (t->dtype == like->dtype && grd_same_sizes(t, sizes)))
        return true;
    return grd_raise(GRD_ERROR_RUNTIME, "expected %s of size %s and dtype %s, but got size %s and dtype %s", name, grd_list_text(sizes),
                     grd_dtype_type_name((grd_dtype)like->dtype), grd_list_text(grd_sizes(t)), grd_dtype_type_name((grd_dtype)t->dtype));
}

/* Returns the number of sequences per task. If there is little work, one task has all sequences. If the weight is large, there are few tasks, because
 * each task reads the weight from memory at each step. */
static int64_t piece_rows_of(const struct steps *x)
{
    if ((double)x->total * (double)x->width * (double)x->state < PIECE_WORK)
        return x->batch;
    const int64_t most = x->width * x->state * x->itemsize > LARGE_WEIGHT ? grd_greatest(MOST_ROWS, x->batch / LARGE_PIECES) : MOST_ROWS;
    return grd_least(x->batch, grd_greatest(1, grd_round_up(grd_least(x->batch / 2, most), PIECE_ROWS)));
}

/* Checks the arguments that the forward and the backward plan share. Sets the members of the plan's state that depend on these arguments, e.g. the
 * number of sequences per task. Returns false, with the error raised, on failure. */
static bool plan_steps(struct grd_plan *p, const char *mode, const grd_tensor *hx, const grd_tensor *w_hh, const grd_tensor *w_hr,
                       grd_dims batch_sizes, int64_t total, bool backwards)
{
    const grd_dtype dtype = (grd_dtype)hx->dtype;
    const struct grd_rnn_kind *kind = grd_rnn_kind_of(mode);
    if (kind == NULL)
        return false;
    if (grd_kernels->rnn[dtype] == NULL)
        return grd_raise_no_kernel(mode, dtype);
    if (hx->ndim != 2 || w_hh->ndim != 2 || hx->sizes[0] < 1 || hx->sizes[1] < 1)
        return grd_raise(GRD_ERROR_RUNTIME, "hx and w_hh must have two dimensions, and hx elements");
    struct steps *x = steps_of(p);
    *x = (struct steps){.kind = kind,
                        .cells = grd_kernels->rnn[dtype],
                        .products = grd_kernels->gemm[dtype],
                        .batch_sizes = batch_sizes,
                        .batch = hx->sizes[0],
                        .total = total,
                        .state = hx->sizes[1],
                        .width = w_hh->sizes[0],
                        .hidden = w_hh->sizes[0] / kind->gates,
                        .itemsize = hx->itemsize,
                        .backwards = backwards};
    if (w_hr != NULL && (kind->cell != GRD_RNN_LSTM))
        return grd_raise(GRD_ERROR_RUNTIME, "w_hr is a weight of an lstm");
    if (!check_batch_sizes(batch_sizes, x->batch, total) || !check_part(w_hh, hx, grd_dims(x->hidden * kind->gates, x->state), "w_hh") ||
        !check_part(w_hr, hx, grd_dims(x->state, x->hidden), "w_hr"))
        return false;
    if (x->hidden < 1 || (w_hr == NULL && x->state != x->hidden))
        return grd_raise(GRD_ERROR_RUNTIME, "hx has %lld columns for a hidden size of %lld", (long long)x->state, (long long)x->hidden);
    x->cell_sizes[0] = kind->cell == GRD_RNN_LSTM ? x->batch : 0;
    x->cell_sizes[1] = x->hidden;
    x->piece_rows = piece_rows_of(x);
    set_rooms(x);
    return true;
}

/* Stores the layouts of the two weights in the plan's state, and requests the scratch memory of all tasks. Always returns true. */
static bool plan_weights(struct grd_plan *p, struct weight recurrent, struct weight projection)
{
    struct steps *x = steps_of(p);
    x->recurrent = recurrent;
    x->projection = projection;
    const int64_t pieces = grd_ceil_div(x->batch, x->piece_rows);
    p->scratch_bytes = (size_t)(ALIGNED + aligned(x->batch_sizes.n * (int64_t)sizeof(int64_t) + x->width * x->itemsize) +
                                weight_bytes(x, &x->recurrent) + weight_bytes(x, &x->projection) + pieces * x->piece_bytes);
    return true;
}

/* Returns the sizes of the cell state: (batch, hidden) for an LSTM, and (0) for other cells. */
static grd_dims cell_sizes(const struct steps *x)
{
    return grd_dims_from(x->cell_sizes, x->kind->cell == GRD_RNN_LSTM ? 2 : 1);
}

bool plan_hidden_rnn_steps(struct grd_plan *p, grd_tensor *projected, grd_tensor *hx, grd_tensor *cx, grd_tensor *w_hh, grd_tensor *b_hh,
                           grd_tensor *w_hr, grd_dims batch_sizes, const char *mode, bool reverse, bool save)
{
    const struct steps *x = steps_of(p);
    const grd_dtype dtype = (grd_dtype)hx->dtype;
    const int64_t total = projected->ndim > 0 ? projected->sizes[0] : 0;
    if (!plan_steps(p, mode, hx, w_hh, w_hr, batch_sizes, total, reverse) ||
        !check_part(projected, hx, grd_dims(total, x->width), "projected") || !check_part(b_hh, hx, grd_dims(x->width), "b_hh") ||
        !check_part(cx, hx, cell_sizes(x), "cx"))
        return false;
    if ((cx != NULL) != (x->kind->cell == GRD_RNN_LSTM))
        return grd_raise(GRD_ERROR_RUNTIME, "cx is the state of an lstm, which has one");
    return grd_plan_reads_as(p, projected, dtype) && grd_plan_reads_as(p, hx, dtype) && grd_plan_reads_as(p, cx, dtype) &&
           grd_plan_reads_as(p, w_hh, dtype) && grd_plan_reads_as(p, b_hh, dtype) && grd_plan_reads_as(p, w_hr, dtype) &&
           grd_plan_result(p, grd_dims(total, x->state), dtype) && grd_plan_result(p, grd_sizes(hx), dtype) &&
           grd_plan_result(p, cell_sizes(x), dtype) && grd_plan_result(p, grd_dims(save ? total : 0, x->kind->saved * x->hidden), dtype) &&
           plan_weights(p, (struct weight){.inner = x->state, .columns = x->width, .row = 1, .column = x->state},
                        (struct weight){.inner = x->hidden, .columns = w_hr != NULL ? x->state : 0, .row = 1, .column = x->hidden});
}

void run_rnn_steps(const struct grd_plan *p)
{
    struct steps *x = steps_of(p);
    const grd_tensor *cx = p->in[CX], *w_hr = p->in[W_HR];
    copy_rows(x, p->results[HY]->data, p->in[HX]->data, x->batch);
    if (cx != NULL)
        memcpy(p->results[CY]->data, cx->data, (size_t)(cx->numel * x->itemsize));
    run_pieces(p, x, p->in[W_HH]->data, w_hr != NULL ? w_hr->data : NULL, advance_piece);
}

bool plan_hidden_rnn_steps_backward(struct grd_plan *p, grd_tensor *grad_output, grd_tensor *grad_hy, grd_tensor *grad_cy, grd_tensor *hx,
                                    grd_tensor *w_hh, grd_tensor *w_hr, grd_tensor *output, grd_tensor *saved, grd_dims batch_sizes,
                                    const char *mode, bool reverse)
{
    const struct steps *x = steps_of(p);
    const grd_dtype dtype = (grd_dtype)hx->dtype;
    const int64_t total = output->ndim > 0 ? output->sizes[0] : 0;
    if (!plan_steps(p, mode, hx, w_hh, w_hr, batch_sizes, total, reverse) || !check_part(output, hx, grd_dims(total, x->state), "output") ||
        !check_part(grad_output, hx, grd_dims(total, x->state), "grad_output") || !check_part(grad_hy, hx, grd_sizes(hx), "grad_hy") ||
        !check_part(grad_cy, hx, cell_sizes(x), "grad_cy") || !check_part(saved, hx, grd_dims(total, x->kind->saved * x->hidden), "saved"))
        return false;
    const int64_t inner = x->kind->cell == GRD_RNN_GRU ? x->width : w_hr != NULL ? x->state : 0;
    return grd_plan_reads_as(p, grad_output, dtype) && grd_plan_reads_as(p, grad_hy, dtype) && grd_plan_reads_as(p, grad_cy, dtype) &&
           grd_plan_reads_as(p, hx, dtype) && grd_plan_reads_as(p, w_hh, dtype) && grd_plan_reads_as(p, w_hr, dtype) &&
           grd_plan_reads_as(p, output, dtype) && grd_plan_reads_as(p, saved, dtype) &&
           grd_plan_result(p, grd_dims(total, x->width), dtype) && grd_plan_result(p, grd_dims(inner > 0 ? total : 0, inner), dtype) &&
           grd_plan_result(p, grd_sizes(hx), dtype) && grd_plan_result(p, cell_sizes(x), dtype) &&
           plan_weights(p, (struct weight){.inner = x->width, .columns = x->state, .row = x->state, .column = 1},
                        (struct weight){.inner = x->state, .columns = w_hr != NULL ? x->hidden : 0, .row = x->hidden, .column = 1});
}

void run_rnn_steps_backward(const struct grd_plan *p)
{
    struct steps *x = steps_of(p);
    const grd_tensor *grad_cy = p->in[G_CY], *w_hr = p->in[G_W_HR];
    copy_rows(x, p->results[GRAD_HX]->data, p->in[G_HY]->data, x->batch);
    if (grad_cy->numel > 0)
        memcpy(p->results[GRAD_CX]->data, grad_cy->data, (size_t)(grad_cy->numel * x->itemsize));
    run_pieces(p, x, p->in[G_W_HH]->data, w_hr != NULL ? w_hr->data : NULL, return_piece);
}
