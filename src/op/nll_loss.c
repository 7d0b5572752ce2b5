/* Checks the arguments of nll_loss and of its gradient, and divides their work into tasks. Targets are divided at fixed positions, so that sums do
 * not depend on the number of threads. The loops are in kernel/cpu/nll.c. Schema: schema/loss.toml. */
#include "base/integer.h"
#include "kernel/nll.h"

#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/nll_loss.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/plan.h"
#include "op/formula.h"

/* PIECES: maximum number of partial sums of the loss. LEAST_TARGETS: minimum number of targets per partial sum. CHECKED_TARGETS: number of targets
 * that one task checks. WRITTEN_ELEMENTS: number of gradient elements that one task writes. */
enum { PIECES = 64, LEAST_TARGETS = 4096, CHECKED_TARGETS = 16384, WRITTEN_ELEMENTS = 65536 };

/* Indices in p->in of the tensors that the plan reads. In the plan of the backward operator, INPUT is grad_output. */
enum { INPUT, TARGET, WEIGHT, TOTAL_WEIGHT };

/* The data that the plan of nll_loss or its gradient passes to its run. An input of sizes (N, C, d1, d2, ...) is treated as N x C x D, where D is the
 * product of d1, d2, .... */
struct nll {
    struct grd_nll kernel;
    const struct grd_nll_row *kernels;
    enum grd_loss_reduction how;
    /* targets: number of targets; grain: number of targets per partial sum. */
    int64_t targets, grain;
    const char *in; /* data of the input; in the backward operator, data of the gradient of the losses */
    /* Number of elements from the gradient of one loss to the gradient of the next loss; 0 if all losses share one gradient. */
    int64_t in_step;
    /* Factor of the gradient: 1 / sum of weights for reduction "mean", else 1. */
    double scale;
    /* Data of the result; NULL if the losses are only summed. */
    char *out;
    struct grd_nll_sums *sums; /* partial sums, one per task */
    /* Set to true by a task of check_classes() that finds a target that is neither a class index nor ignore_index. */
    atomic_bool *stray;
};

/* ---- Checks ------------------------------------------------------------------------------------------------------------------------ */

static bool check_target_sizes(grd_dims size, const grd_tensor *target)
{
    if (size.n == 0)
        return grd_raise(GRD_ERROR_VALUE, "Expected 1 or more dimensions (got 0)");
    if (size.n == 1) {
        if (target->ndim > 1)
            return grd_raise(GRD_ERROR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
        return target->numel == 1 ||
               grd_raise(GRD_ERROR_VALUE, "For 1D input, 1D target must have size 1, but got target size: %lld", (long long)target->numel);
    }
    int64_t batch = target->ndim > 0 ? target->sizes[0] : 1;
    if (batch != size.data[0])
        return grd_raise(GRD_ERROR_VALUE, "Expected input batch_size (%lld) to match target batch_size (%lld).", (long long)size.data[0],
                         (long long)batch);
    if (size.n == 2 && target->ndim != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
    int64_t want[GRD_MAX_DIMS] = {size.data[0]};
    memcpy(want + 1, size.data + 2, (size_t)(size.n - 2) * sizeof *want);
    if (grd_same_sizes(target, grd_dims_from(want, size.n - 1)))
        return true;
    return grd_raise(GRD_ERROR_RUNTIME, "Expected target size %s, got %s", grd_list_text(grd_dims_from(want, size.n - 1)),
                     grd_list_text(grd_sizes(target)));
}

static struct nll *nll_of(const struct grd_plan *p)
{
    return (struct nll *)(uintptr_t)p->state;
}

/* Plans the loss or its gradient. `size` has the sizes of the input, and `t` is the input or the gradient of the losses. */
static bool plan_nll(struct grd_plan *p, grd_dims size, grd_tensor *t, grd_tensor *target, grd_tensor *weight, const char *reduction,
                     int64_t ignore_index)
{
    const grd_dtype dtype = (grd_dtype)t->dtype;
    const struct grd_nll_row *kernels = grd_kernels->nll[dtype];
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return false;
    if (kernels == NULL)
        return grd_raise_no_kernel("nll_loss_out_frame", dtype);
    if (!check_target_sizes(size, target))
        return false;
    if (target->dtype != GRD_INT64 && target->dtype != GRD_UINT8)
        return grd_raise(GRD_ERROR_RUNTIME, "expected target dtype to be Long or Byte, but got %s",
                         grd_dtype_type_name((grd_dtype)target->dtype));
    const int64_t classes = size.data[size.n == 1 ? 0 : 1];
    if (!grd_loss_check_weight(weight, classes))
        return false;
    if (weight != NULL && weight->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name(dtype),
                         grd_dtype_type_name((grd_dtype)weight->dtype));
    struct nll *x = nll_of(p);
    x->kernel.classes = classes;
    x->kernel.positions = size.n > 2 ? grd_sizes_product(size.data + 2, size.n - 2) : 1;
    x->kernel.ignore = ignore_index;
    x->kernels = kernels;
    x->how = how;
    x->targets = target->numel;
    return grd_plan_reads_as(p, t, dtype) && grd_plan_reads_as(p, target, GRD_INT64) && grd_plan_reads_as(p, weight, dtype);
}

/* Returns the sizes of the result. They are the target's sizes for reduction "none" and a batched input. Otherwise the result is zero-dimensional. */
static grd_dims loss_sizes(const struct grd_plan *p, grd_dims size, const grd_tensor *target)
{
    return nll_of(p)->how == GRD_LOSS_NONE && size.n > 1 ? grd_sizes(target) : GRD_NO_DIMS;
}

static void check_piece(int64_t begin, int64_t end, void *context)
{
    const struct nll *x = context;
    if (x->kernels->check(&x->kernel, begin, end) >= 0)
        atomic_store_explicit(x->stray, true, memory_order_relaxed);
}

/* Raises IndexError if a target is neither a class index nor ignore_index. */
bool check_classes(struct grd_plan *p)
{
    struct nll *x = nll_of(p);
    atomic_bool stray = false;
    x->kernel.target = (const int64_t *)p->in[TARGET]->data;
    x->kernel.weight = p->in[WEIGHT] != NULL ? p->in[WEIGHT]->data : NULL;
    x->stray = &stray;
    grd_parallel_for(0, x->targets, CHECKED_TARGETS, check_piece, x);
    return !stray || grd_raise(GRD_ERROR_INDEX, "Target %lld is out of bounds.",
                               (long long)x->kernel.target[x->kernels->check(&x->kernel, 0, x->targets)]);
}

/* ---- Loops ------------------------------------------------------------------------------------------------------------------------- */

/* Computes the losses of the targets [begin, end) and their partial sum. */
static void add_piece(int64_t begin, int64_t end, void *context)
{
    const struct nll *x = context;
    x->kernels->forward(&x->kernel, begin, end, x->in, x->out, &x->sums[begin / x->grain]);
}

/* Computes all losses, writes them to `out` unless it is NULL, and returns their sum and the sum of the weights. */
static struct grd_nll_sums add_losses(struct nll *x)
{
    struct grd_nll_sums sums[PIECES], total = {0};
    x->grain = grd_greatest(LEAST_TARGETS, grd_ceil_div(x->targets, PIECES));
    x->sums = sums;
    grd_parallel_for(0, x->targets, x->grain, add_piece, x);
    for (int64_t i = 0; i * x->grain < x->targets; i++) {
        total.loss += sums[i].loss;
        total.weight += sums[i].weight;
    }
    return total;
}

/* Writes the gradient for the targets [begin, end). */
static void write_piece(int64_t begin, int64_t end, void *context)
{
    const struct nll *x = context;
    x->kernels->backward(&x->kernel, begin, end, x->in, x->in_step, x->scale, x->out);
}

/* ---- Operators --------------------------------------------------------------------------------------------------------------------- */

bool plan_nll_loss_forward(struct grd_plan *p, grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction,
                           int64_t ignore_index)
{
    return plan_nll(p, grd_sizes(self), self, target, weight, reduction, ignore_index) &&
           grd_plan_result(p, loss_sizes(p, grd_sizes(self), target), (grd_dtype)self->dtype) &&
           grd_plan_result(p, GRD_NO_DIMS, GRD_FLOAT64);
}

/* Writes the first result: the losses, their sum or their weighted mean, depending on the argument `reduction`. The second result is the sum of the
 * weights of all targets, which backward needs. */
void run_nll_loss(const struct grd_plan *p)
{
    struct nll *x = nll_of(p);
    x->in = p->in[INPUT]->data;
    x->out = x->how == GRD_LOSS_NONE ? p->results[0]->data : NULL;
    const struct grd_nll_sums sums = add_losses(x);
    *(double *)p->results[1]->data = sums.weight;
    double loss = x->how == GRD_LOSS_MEAN ? sums.loss / sums.weight : sums.loss;
    if (x->how != GRD_LOSS_NONE)
        grd_kernels->cast[GRD_FLOAT64][p->results[0]->dtype](1, (char *const[]){p->results[0]->data, (char *)&loss},
                                                             (const int64_t[]){p->results[0]->itemsize, sizeof loss}, NULL);
}

bool plan_hidden_nll_loss_backward(struct grd_plan *p, grd_tensor *grad_output, grd_dims size, grd_tensor *target, grd_tensor *weight,
                                   const char *reduction, int64_t ignore_index, grd_tensor *total_weight)
{
    if (!plan_nll(p, size, grad_output, target, weight, reduction, ignore_index))
        return false;
    if (!grd_same_sizes(grad_output, loss_sizes(p, size, target)))
        return grd_raise(GRD_ERROR_RUNTIME, "grad_output does not have the sizes of the loss");
    if (total_weight->numel != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "total_weight must be one number, not %lld", (long long)total_weight->numel);
    return grd_plan_reads_as(p, total_weight, GRD_FLOAT64) && grd_plan_result(p, size, (grd_dtype)grad_output->dtype);
}

void run_nll_loss_backward(const struct grd_plan *p)
{
    struct nll *x = nll_of(p);
    x->in = p->in[INPUT]->data;
    x->in_step = x->how == GRD_LOSS_NONE;
    x->scale = x->how == GRD_LOSS_MEAN ? 1 / *(const double *)p->in[TOTAL_WEIGHT]->data : 1;
    x->out = p->results[0]->data;
    grd_parallel_for(0, x->targets, grd_greatest(1, WRITTEN_ELEMENTS / grd_greatest(1, x->kernel.classes)), write_piece, x);
}
