/* Computes batch normalization and its gradient in two passes over memory. The loops are in kernel/cpu/channels.c, checks and running statistics in
 * batch_norm.c, formulas in schema/normalization.toml.
 *
 * The elements of a channel are divided into pieces of fixed length. A pass works on units: a unit is one piece of one channel or, if channels are
 * the innermost dimension, the same piece of all channels. The first pass computes two sums for each channel of a unit. Then the sums of all pieces
 * of a channel are combined. The second pass writes the result. Channels that fit into the cache go through both passes before the next channels
 * begin.
 * Invariant: the boundaries of the pieces depend on the sizes alone, so results do not depend on the number of threads, bit for bit. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/channel_norm.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/channels.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lines.h"

enum {
    PIECE = 4096,    /* maximum number of elements of a channel that one kernel call sums */
    LEAST_ROWS = 64, /* if channels are innermost in memory, a kernel call takes between LEAST_ROWS and MOST_ROWS positions */
    MOST_ROWS = 128,
    GRAIN = 1 << 15,        /* number of elements that are enough work for one task */
    CACHED_BYTES = 1 << 19, /* a channel of at most these bytes stays in the L2 cache between the two passes */
    /* limit on the bytes of the channels that are processed at a time, so that they stay in the L1 cache between the two passes */
    NEAR_BYTES = 1 << 15
};

/* The state of one call of batch normalization, or of its gradient, that both passes over memory use. */
struct channel_norm {
    struct grd_channels at;
    const struct grd_channels_row *kernels;
    int64_t itemsize, length, pieces; /* Each channel is summed in `pieces` pieces of `length` elements. */
    double eps;
    bool own; /* true if mean and variance are computed from the input, false if they are constants */
    const char *data, *grad, *weight;
    char *out, *mean, *variance, *grad_weight, *grad_bias;
    char *firsts, *seconds; /* the two sums of each piece of each channel, as arrays [pieces][channels] */
    /* scale, shift, slope: one element per channel. The forward pass computes out = (data - mean) * scale + shift, the backward pass out = grad *
     * scale - shift - (data - mean) * slope. */
    char *scale, *shift, *slope;
    /* Task functions for the three steps. `sum`: sums pieces of channels (NULL if no sums are needed). `finish`: combines the sums of the pieces
     * of each channel. `write`: writes the result. */
    grd_task *sum, *finish, *write;
};

static struct channel_norm *norm_of(const struct grd_plan *p)
{
    return (struct channel_norm *)(uintptr_t)p->state;
}

/* ---- Plans ---------------------------------------------------------------------------------------------------------------------------- */

static bool plan_layout(struct grd_plan *p, const grd_tensor *input, double eps, bool own)
{
    struct channel_norm *x = norm_of(p);
    const grd_dtype dtype = (grd_dtype)input->dtype, as = grd_lines_dtype(dtype);
    if (grd_kernels->channels[as] == NULL)
        return grd_raise_no_kernel("batch_norm", dtype);
    *x = (struct channel_norm){.kernels = grd_kernels->channels[as], .itemsize = grd_dtype_size(as), .eps = eps, .own = own};
    x->at.samples = input->sizes[0];
    x->at.channels = input->sizes[1];
    x->at.positions = grd_sizes_product(input->sizes + 2, input->ndim - 2);
    x->at.innermost = x->at.positions == 1 || grd_shape_suggests_channels_last(grd_sizes(input), input->strides);
    const int64_t rows = grd_least(MOST_ROWS, grd_greatest(LEAST_ROWS, PIECE / grd_greatest(1, x->at.channels)));
    x->length = x->at.innermost ? rows : PIECE;
    const int64_t places = x->at.samples * x->at.positions;
    x->pieces = places / x->length + (places % x->length > 0);
    grd_plan_scratch(p, (2 * (double)x->pieces + 3) * (double)x->at.channels * (double)x->itemsize);
    return true;
}

static bool plan_like_input(struct grd_plan *p, const grd_tensor *input)
{
    const bool channels_last = grd_shape_suggests_channels_last(grd_sizes(input), input->strides);
    return grd_plan_in_order(p, grd_sizes(input), channels_last, (grd_dtype)input->dtype) &&
           grd_plan_computed_in(p, grd_lines_dtype((grd_dtype)input->dtype));
}

/* Plans to read `t` as a contiguous tensor in the layout that the kernels use: with channels as the last dimension if the input has them innermost
 * in memory, otherwise unchanged. */
static bool plan_reads_channels(struct grd_plan *p, grd_tensor *t, grd_dtype dtype)
{
    int64_t dims[GRD_MAX_DIMS] = {0};
    if (!norm_of(p)->at.innermost)
        return grd_plan_reads_as(p, t, dtype);
    for (int i = 1; i < t->ndim; i++)
        dims[i] = i + 1 < t->ndim ? i + 1 : 1;
    return grd_plan_reads_as(p, grd_permute(t, grd_dims_from(dims, t->ndim)), dtype) && !grd_pending();
}

/* Indices in plan->in of the tensors that the forward pass reads. */
enum { INPUT, WEIGHT, BIAS, MEAN, VARIANCE };

bool plan_hidden_native_batch_norm(struct grd_plan *p, grd_tensor *input, grd_tensor *weight, grd_tensor *bias, grd_tensor *mean,
                                   grd_tensor *variance, double eps)
{
    if (!grd_check_batch_norm(input, mean, variance, weight, bias, mean == NULL) || !plan_layout(p, input, eps, mean == NULL))
        return false;
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    const grd_dims channels = grd_dims(input->sizes[1]);
    return plan_like_input(p, input) && grd_plan_result(p, channels, dtype) && grd_plan_result(p, channels, dtype) &&
           plan_reads_channels(p, input, dtype) && grd_plan_reads_as(p, weight, dtype) && grd_plan_reads_as(p, bias, dtype) &&
           grd_plan_reads_as(p, mean, dtype) && grd_plan_reads_as(p, variance, dtype);
}

/* Indices in plan->in of the tensors that the backward pass reads. */
enum { BACK_GRAD, BACK_INPUT, BACK_WEIGHT, BACK_MEAN, BACK_VARIANCE };

bool plan_hidden_native_batch_norm_backward(struct grd_plan *p, grd_tensor *grad, grd_tensor *input, grd_tensor *weight, grd_tensor *mean,
                                            grd_tensor *variance, bool own, double eps)
{
    if (!grd_check_batch_norm(input, NULL, NULL, weight, NULL, true) || !plan_layout(p, input, eps, own))
        return false;
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    const grd_dims channels = grd_dims(input->sizes[1]);
    if (!grd_same_sizes(grad, grd_sizes(input)) || !grd_same_sizes(mean, channels) || !grd_same_sizes(variance, channels))
        return grd_raise(GRD_ERROR_RUNTIME, "the gradient must have the input's size, and the statistics one element for each channel");
    return plan_like_input(p, input) && grd_plan_result(p, channels, dtype) && grd_plan_result(p, channels, dtype) &&
           plan_reads_channels(p, grad, dtype) && plan_reads_channels(p, input, dtype) && grd_plan_reads_as(p, weight, dtype) &&
           grd_plan_reads_as(p, mean, dtype) && grd_plan_reads_as(p, variance, dtype);
}

/* ---- Passes ----------------------------------------------------------------------------------------------------------------------------- */

static int64_t unit_count(const struct channel_norm *x)
{
    return x->pieces * (x->at.innermost ? 1 : x->at.channels);
}

static struct grd_channel_piece piece_of(const struct channel_norm *x, int64_t unit)
{
    const int64_t channel = x->at.innermost ? 0 : unit / x->pieces, first = (x->at.innermost ? unit : unit % x->pieces) * x->length;
    return (struct grd_channel_piece){first, grd_least(first + x->length, x->at.samples * x->at.positions), channel,
                                      x->at.innermost ? x->at.channels : channel + 1};
}

/* Returns the offset in bytes at which the sums of `piece` begin in x->firsts and in x->seconds. Each of the two arrays holds one sum per channel for
 * a piece, beginning with channel 0. */
static int64_t sums_at(const struct channel_norm *x, const struct grd_channel_piece *piece)
{
    return piece->first / x->length * x->at.channels * x->itemsize;
}

static void sum_moments(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    for (int64_t unit = begin; unit < end; unit++) {
        const struct grd_channel_piece piece = piece_of(x, unit);
        const int64_t at = sums_at(x, &piece);
        x->kernels->moments(&x->at, piece, x->data, x->firsts + at, x->seconds + at);
    }
}

static void finish_moments(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    if (x->own)
        x->kernels->combine(&x->at, x->length, begin, end, x->firsts, x->seconds, x->mean, x->variance);
    x->kernels->scales(begin, end, x->variance, x->eps, x->weight, x->scale);
}

static void write_normalised(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    for (int64_t unit = begin; unit < end; unit++)
        x->kernels->normalise(&x->at, piece_of(x, unit), x->data, x->mean, x->scale, x->shift, x->out);
}

static void sum_products(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    for (int64_t unit = begin; unit < end; unit++) {
        const struct grd_channel_piece piece = piece_of(x, unit);
        const int64_t at = sums_at(x, &piece);
        x->kernels->products(&x->at, piece, x->data, x->grad, x->mean, x->firsts + at, x->seconds + at);
    }
}

static void finish_products(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    const double count = x->own ? (double)(x->at.samples * x->at.positions) : 0;
    x->kernels->add(&x->at, x->length, begin, end, x->firsts, x->seconds, x->grad_bias, x->slope);
    x->kernels->scales(begin, end, x->variance, x->eps, x->weight, x->scale);
    x->kernels->slopes(begin, end, count, x->variance, x->eps, x->scale, x->grad_bias, x->slope, x->shift, x->slope, x->grad_weight);
}

static void write_gradient(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    for (int64_t unit = begin; unit < end; unit++)
        x->kernels->gradient(&x->at, piece_of(x, unit), x->data, x->grad, x->mean, x->shift, x->slope, x->scale, x->out);
}

/* Runs both passes for channels [begin, end). Both passes run over a group of channels before the next group is taken. A group has at most
 * NEAR_BYTES bytes of input, so that it stays in the L1 cache between the two passes. */
static void all_of_channels(int64_t begin, int64_t end, void *context)
{
    const struct channel_norm *x = context;
    const int64_t most = grd_greatest(1, NEAR_BYTES / grd_greatest(1, x->at.samples * x->at.positions * x->itemsize));
    for (int64_t n; begin < end; begin += n) {
        n = grd_least(most, end - begin);
        x->sum(begin * x->pieces, (begin + n) * x->pieces, context);
        x->finish(begin, begin + n, context);
        x->write(begin * x->pieces, (begin + n) * x->pieces, context);
    }
}

static void run_passes(struct channel_norm *x)
{
    const int64_t count = x->at.samples * x->at.positions;
    const int64_t of_unit = x->length * (x->at.innermost ? x->at.channels : 1);
    const int64_t grain = grd_greatest(1, GRAIN / grd_greatest(1, grd_least(of_unit, count)));
    if (x->sum != NULL && !x->at.innermost && count * x->itemsize <= CACHED_BYTES) {
        grd_parallel_for(0, x->at.channels, grd_greatest(1, GRAIN / grd_greatest(1, count)), all_of_channels, x);
        return;
    }
    if (x->sum != NULL)
        grd_parallel_for(0, unit_count(x), grain, x->sum, x);
    x->finish(0, x->at.channels, x);
    grd_parallel_for(0, unit_count(x), grain, x->write, x);
}

/* Divides the scratch memory among the arrays scale, shift, slope, firsts and seconds. */
static void share_scratch(struct channel_norm *x, char *scratch)
{
    const int64_t bytes = x->at.channels * x->itemsize;
    x->scale = scratch;
    x->shift = x->scale + bytes;
    x->slope = x->shift + bytes;
    x->firsts = x->slope + bytes;
    x->seconds = x->firsts + x->pieces * bytes;
}

static char *data_of(const grd_tensor *t)
{
    return t == NULL ? NULL : t->data;
}

void run_hidden_native_batch_norm(const struct grd_plan *p, grd_tensor *input, grd_tensor *weight, grd_tensor *bias, grd_tensor *mean,
                                  grd_tensor *variance, double eps)
{
    (void)input, (void)weight, (void)bias, (void)mean, (void)variance, (void)eps;
    struct channel_norm *x = norm_of(p);
    const size_t bytes = (size_t)(x->at.channels * x->itemsize);
    share_scratch(x, p->scratch);
    x->data = data_of(p->in[INPUT]);
    x->weight = data_of(p->in[WEIGHT]);
    x->out = p->results[0]->data;
    x->mean = p->results[1]->data;
    x->variance = p->results[2]->data;
    x->sum = x->own ? sum_moments : NULL;
    x->finish = finish_moments;
    x->write = write_normalised;
    memset(x->shift, 0, bytes);
    if (p->in[BIAS] != NULL)
        x->shift = data_of(p->in[BIAS]);
    if (!x->own) {
        memcpy(x->mean, p->in[MEAN]->data, bytes);
        memcpy(x->variance, p->in[VARIANCE]->data, bytes);
    }
    run_passes(x);
}

void run_hidden_native_batch_norm_backward(const struct grd_plan *p, grd_tensor *grad, grd_tensor *input, grd_tensor *weight,
                                           grd_tensor *mean, grd_tensor *variance, bool own, double eps)
{
    (void)grad, (void)input, (void)weight, (void)mean, (void)variance, (void)own, (void)eps;
    struct channel_norm *x = norm_of(p);
    share_scratch(x, p->scratch);
    x->grad = data_of(p->in[BACK_GRAD]);
    x->data = data_of(p->in[BACK_INPUT]);
    x->weight = data_of(p->in[BACK_WEIGHT]);
    x->mean = data_of(p->in[BACK_MEAN]);
    x->variance = data_of(p->in[BACK_VARIANCE]);
    x->out = p->results[0]->data;
    x->grad_weight = p->results[1]->data;
    x->grad_bias = p->results[2]->data;
    x->sum = sum_products;
    x->finish = finish_products;
    x->write = write_gradient;
    run_passes(x);
}
