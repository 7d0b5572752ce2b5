/* Implements ctc_loss: checks its arguments, plans it, and loops over the samples of a batch. The recursions over alignment paths are in
 * kernel/cpu/ctc.c. Schema: schema/loss.toml.
 * Invariant: each sample is computed by one thread. */
#include "kernel/ctc.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/ctc_loss.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/plan.h"
#include "op/copy.h"

enum { LOG_PROBS, TARGETS, LOSS, ALPHA, GRAD }; /* indices in plan->in; only the gradient reads LOSS, ALPHA and GRAD */

/* Data that plan_ctc hands to the functions that compute ctc_loss or its gradient. */
struct ctc {
    const struct grd_ctc_row *kernels;
    grd_dims input_lengths, target_lengths;
    /* `steps`, `batch` and `classes` are the sizes of log_probs. `states` is 2 * n + 1, where n is the length of the longest target. `blank` is the
     * class that means that there is no label. */
    int64_t steps, batch, classes, states, blank;
    int64_t target_row; /* row length of padded targets, in which each row is one sample; -1 if targets are concatenated */
    bool zero_infinity;
};

static struct ctc *ctc_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct ctc) <= GRD_PLAN_STATE, "room in the plan");
    return (struct ctc *)(uintptr_t)p->state;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------------------------ */

#define CHECKING "(while checking arguments for ctc_loss_allocate_outputs)" /* The end of PyTorch's error texts. */

static bool check_lengths(grd_dims lengths, int64_t batch, int64_t most, const char *name)
{
    if (lengths.n != batch)
        return grd_raise(GRD_ERROR_RUNTIME, "%s must be of size batch_size", name);
    for (int64_t i = 0; i < batch; i++) {
        const bool low = lengths.data[i] < 0;
        if (low || lengths.data[i] > most)
            return grd_raise(GRD_ERROR_RUNTIME, "Expected %s to have value at %s %lld, but got value %lld " CHECKING, name,
                             low ? "least" : "most", low ? 0LL : (long long)most, (long long)lengths.data[i]);
    }
    return true;
}

/* Writes the sum and the largest of `lengths` to *ret_sum and *ret_most. Returns false if the sum overflows int64. */
static bool add_lengths(grd_dims lengths, int64_t *ret_sum, int64_t *ret_most)
{
    *ret_sum = *ret_most = 0;
    for (int64_t i = 0; i < lengths.n; i++) {
        if (__builtin_add_overflow(*ret_sum, lengths.data[i], ret_sum))
            return false;
        *ret_most = grd_greatest(*ret_most, lengths.data[i]);
    }
    return true;
}

static bool raise_target_size(const char *relation, int64_t wanted, int dim, int64_t given)
{
    return grd_raise(GRD_ERROR_RUNTIME,
                     "Expected tensor to have size %s%lld at dimension %d, but got size %lld for argument #2 'targets' " CHECKING, relation,
                     (long long)wanted, dim, (long long)given);
}

static bool check_target_sizes(const grd_tensor *targets, int64_t batch, int64_t sum, int64_t most)
{
    if (targets->ndim < 1 || targets->ndim > 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected 1 to 2 dimensions, but got %d-dimensional tensor for argument #2 'targets' " CHECKING,
                         targets->ndim);
    if (targets->ndim == 1)
        return targets->sizes[0] == sum || raise_target_size("", sum, 0, targets->sizes[0]);
    if (targets->sizes[0] != batch)
        return raise_target_size("", batch, 0, targets->sizes[0]);
    return targets->sizes[1] >= most || raise_target_size("at least ", most, 1, targets->sizes[1]);
}

/* Checks the arguments that ctc_loss and its gradient have in common, fills the plan's struct ctc, and plans to read log_probs and targets.
 * Returns false if it raised an error. */
static bool plan_ctc(struct grd_plan *p, grd_tensor *log_probs, grd_tensor *targets, grd_dims input_lengths, grd_dims target_lengths,
                     int64_t blank, bool zero_infinity)
{
    struct ctc *x = ctc_of(p);
    int64_t sum, most;
    const grd_dtype dtype = (grd_dtype)log_probs->dtype;
    if (log_probs->numel == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "log_probs tensor must not be empty");
    if (grd_kernels->ctc[dtype] == NULL)
        return grd_raise_no_kernel("ctc_loss", dtype);
    if (log_probs->ndim != 3)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected 3-dimensional tensor, but got %d-dimensional tensor for argument #1 'log_probs' " CHECKING,
                         log_probs->ndim);
    *x = (struct ctc){.kernels = grd_kernels->ctc[dtype],
                      .input_lengths = input_lengths,
                      .target_lengths = target_lengths,
                      .steps = log_probs->sizes[0],
                      .batch = log_probs->sizes[1],
                      .classes = log_probs->sizes[2],
                      .blank = blank,
                      .target_row = targets->ndim == 2 ? targets->sizes[1] : -1,
                      .zero_infinity = zero_infinity};
    if (blank < 0 || blank >= x->classes)
        return grd_raise(GRD_ERROR_RUNTIME, "blank must be in label range");
    if (!check_lengths(input_lengths, x->batch, x->steps, "input_lengths") ||
        !check_lengths(target_lengths, x->batch, INT64_MAX, "target_lengths"))
        return false;
    if (!add_lengths(target_lengths, &sum, &most))
        return grd_raise(GRD_ERROR_RUNTIME, "target_lengths sum to more than there can be targets");
    if (!check_target_sizes(targets, x->batch, sum, most))
        return false;
    x->states = 2 * most + 1;
    return grd_plan_reads_as(p, log_probs, dtype) && grd_plan_reads_as(p, targets, GRD_INT64);
}

/* Returns the address of the labels of a sample. They are row `sample` of padded targets, or begin at offset `at` of concatenated targets. */
static const int64_t *labels_of(const struct ctc *x, const grd_tensor *targets, int64_t sample, int64_t at)
{
    return (const int64_t *)(const void *)targets->data + (x->target_row >= 0 ? sample * x->target_row : at);
}

/* Raises IndexError if a label in the targets is not the index of a class. */
bool check_ctc_labels(struct grd_plan *p)
{
    const struct ctc *x = ctc_of(p);
    for (int64_t sample = 0, at = 0; sample < x->batch; at += x->target_lengths.data[sample], sample++) {
        const int64_t *labels = labels_of(x, p->in[TARGETS], sample, at);
        for (int64_t i = 0; i < x->target_lengths.data[sample]; i++)
            if (labels[i] < 0 || labels[i] >= x->classes)
                return grd_raise(GRD_ERROR_INDEX, "Target %lld is out of bounds.", (long long)labels[i]);
    }
    return true;
}

/* ---- Samples ------------------------------------------------------------------------------------------------------------------------- */

/* The context that grd_parallel_for passes to the tasks below. */
struct samples {
    const struct ctc *x;
    const struct grd_plan *p;
    const int64_t *offsets; /* offset of each sample's labels in concatenated targets */
    int64_t itemsize;
    char *loss, *alpha, *beta;
};

static struct grd_ctc sample_of(const struct samples *s, int64_t i)
{
    const struct ctc *x = s->x;
    return (struct grd_ctc){.steps = x->input_lengths.data[i],
                            .labels = x->target_lengths.data[i],
                            .classes = x->classes,
                            .blank = x->blank,
                            .target = labels_of(x, s->p->in[TARGETS], i, s->offsets[i]),
                            .log_probs = s->p->in[LOG_PROBS]->data + i * x->classes * s->itemsize,
                            .step = x->batch * x->classes,
                            .alpha = s->alpha + i * x->steps * x->states * s->itemsize,
                            .alpha_row = x->states};
}

static void forward_samples(int64_t begin, int64_t end, void *context)
{
    const struct samples *s = context;
    for (int64_t i = begin; i < end; i++) {
        const struct grd_ctc sample = sample_of(s, i);
        s->x->kernels->forward(&sample, s->loss + i * s->itemsize);
    }
}

static void backward_samples(int64_t begin, int64_t end, void *context)
{
    const struct samples *s = context;
    for (int64_t i = begin; i < end; i++) {
        const struct grd_ctc sample = sample_of(s, i);
        s->x->kernels->backward(&sample, s->loss + i * s->itemsize, s->p->in[GRAD]->data + i * s->itemsize, s->x->zero_infinity,
                                s->beta + i * 2 * s->x->states * s->itemsize, s->p->results[0]->data + i * s->x->classes * s->itemsize);
    }
}

/* Writes the offset of each sample's labels to the plan's scratch memory, then runs `task` over the samples. In the scratch memory, the workspace of
 * the gradient follows the offsets. */
static void run_samples(const struct grd_plan *p, char *loss, char *alpha, grd_task *task)
{
    const struct ctc *x = ctc_of(p);
    int64_t *offsets = (void *)p->scratch;
    for (int64_t i = 0, at = 0; i < x->batch; at += x->target_lengths.data[i], i++)
        offsets[i] = at;
    struct samples s = {x, p, offsets, p->in[LOG_PROBS]->itemsize, loss, alpha, (char *)(offsets + x->batch)};
    grd_parallel_for(0, x->batch, 1, task, &s);
}

bool plan_ctc_loss_forward(struct grd_plan *p, grd_tensor *log_probs, grd_tensor *targets, grd_dims input_lengths, grd_dims target_lengths,
                           int64_t blank, bool zero_infinity)
{
    const struct ctc *x = ctc_of(p);
    if (!plan_ctc(p, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity))
        return false;
    grd_plan_scratch(p, (double)x->batch * sizeof(int64_t));
    return grd_plan_result(p, grd_dims(x->batch), (grd_dtype)log_probs->dtype) &&
           grd_plan_result(p, grd_dims(x->batch, x->steps, x->states), (grd_dtype)log_probs->dtype);
}

void run_ctc_loss(const struct grd_plan *p)
{
    run_samples(p, p->results[0]->data, p->results[1]->data, forward_samples);
}

bool plan_ctc_loss_backward(struct grd_plan *p, grd_tensor *grad, grd_tensor *log_probs, grd_tensor *targets, grd_dims input_lengths,
                            grd_dims target_lengths, grd_tensor *neg_log_likelihood, grd_tensor *log_alpha, int64_t blank,
                            bool zero_infinity)
{
    const struct ctc *x = ctc_of(p);
    const grd_dtype dtype = (grd_dtype)log_probs->dtype;
    if (!plan_ctc(p, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity))
        return false;
    if (!grd_same_sizes(grad, grd_dims(x->batch)) || !grd_same_sizes(neg_log_likelihood, grd_dims(x->batch)) ||
        !grd_same_sizes(log_alpha, grd_dims(x->batch, x->steps, x->states)))
        return grd_raise(GRD_ERROR_RUNTIME, "grad, neg_log_likelihood or log_alpha do not have the sizes of the loss");
    if (2 * x->states > INT64_MAX / 8 / x->batch)
        return grd_raise(GRD_ERROR_RUNTIME, "there are too many targets");
    grd_plan_scratch(p, (double)x->batch * (sizeof(int64_t) + 2 * (double)x->states * (double)grd_dtype_size(dtype)));
    return grd_plan_reads_as(p, neg_log_likelihood, dtype) && grd_plan_reads_as(p, log_alpha, dtype) && grd_plan_reads_as(p, grad, dtype) &&
           grd_plan_result(p, grd_sizes(log_probs), dtype);
}

void run_ctc_loss_backward(const struct grd_plan *p)
{
    memset(p->results[0]->data, 0,
           (size_t)(p->results[0]->numel * p->results[0]->itemsize)); /* zeros for the time steps after a sample's input_length */
    run_samples(p, p->in[LOSS]->data, p->in[ALPHA]->data, backward_samples);
}

/* ---- The loss -------------------------------------------------------------------------------------------------------------------------- */

/* Returns `lengths` as a tensor of the dtype and device of `loss`. Lengths of 0 are replaced by 1, because the loss is divided by the lengths. */
static grd_tensor *lengths_like(grd_dims lengths, const grd_tensor *loss)
{
    grd_tensor *t = grd_new(grd_dims(lengths.n), GRD_INT64, GRD_CPU);
    int64_t *values = grd_pending() ? NULL : (void *)t->data;
    for (int64_t i = 0; values != NULL && i < lengths.n; i++)
        values[i] = grd_greatest(1, lengths.data[i]);
    return grd_to(t, .dtype = loss->dtype, .device = grd_device_of(loss));
}

grd_tensor *op_ctc_loss(grd_tensor *log_probs, grd_tensor *targets, grd_dims input_lengths, grd_dims target_lengths, int64_t blank,
                        const char *reduction, bool zero_infinity)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    const bool batched = log_probs->ndim != 2;
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    grd_tensor *loss = grd_ctc_loss_forward(batched ? log_probs : grd_unsqueeze(log_probs, 1), targets, input_lengths, target_lengths,
                                            blank, zero_infinity)
                           .neg_log_likelihood;
    if (zero_infinity)
        loss = grd_masked_fill(loss, grd_isinf(loss), grd_float(0));
    if (grd_pending())
        return grd_failed;
    if (how == GRD_LOSS_MEAN)
        return grd_mean(grd_div(loss, lengths_like(target_lengths, loss)));
    return how == GRD_LOSS_SUM ? grd_sum(loss) : batched ? loss : grd_squeeze(loss, .dim = grd_dims(0));
}

/* Returns the elements of `lengths`, a tensor of any integer dtype. Raises RuntimeError if the dtype is not an integer. */
static grd_dims lengths_of(grd_tensor *lengths, const char *name)
{
    const enum grd_category category = grd_category_of((grd_dtype)lengths->dtype);
    if (category != GRD_CATEGORY_INTEGER)
        grd_raise(GRD_ERROR_RUNTIME, "%s must be integral", name);
    else if (grd_check_has_data(lengths))
        lengths = grd_contiguous_as(grd_on_cpu(lengths), GRD_INT64);
    return grd_pending() ? GRD_NO_DIMS : grd_dims_from((const int64_t *)(const void *)lengths->data, lengths->numel);
}

grd_tensor *op_ctc_loss_tensor(grd_tensor *log_probs, grd_tensor *targets, grd_tensor *input_lengths, grd_tensor *target_lengths,
                               int64_t blank, const char *reduction, bool zero_infinity)
{
    const grd_dims steps = lengths_of(input_lengths, "input_lengths");
    const grd_dims labels = grd_pending() ? GRD_NO_DIMS : lengths_of(target_lengths, "target_lengths");
    return grd_pending()
               ? grd_failed
               : grd_ctc_loss(log_probs, targets, steps, labels, .blank = blank, .reduction = reduction, .zero_infinity = zero_infinity);
}
