/* nll_loss and its gradient: checks and the split into pieces, at fixed places so that sums do not depend on the number of threads.
 * The loops are in kernel/cpu/nll.c. Schema: schema/loss.toml. */
#include "kernel/nll.h"

#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "gen/hidden_ops.h"
#include "gen/op_impl.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/loss.h"

enum { PIECES = 64, LEAST_TARGETS = 4096, CHECKED_TARGETS = 16384, WRITTEN_ELEMENTS = 65536 };

/* An input of (N, C, d1, …) as N x C x D, with contiguous targets and weights. */
struct nll {
    struct grd_nll kernel;
    const struct grd_nll_row *kernels;
    int64_t targets, grain;
    const char *in; /* the input, or the gradient of the losses */
    int64_t in_step;
    double scale;
    char *out;
    struct grd_nll_sums *sums; /* of each piece */
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
    char text[1024], have[1024];
    return grd_raise(GRD_ERROR_RUNTIME, "Expected target size %s, got %s", grd_format_int64s(text, sizeof text, want, size.n - 1),
                     grd_format_int64s(have, sizeof have, target->sizes, target->ndim));
}

static void check_piece(int64_t begin, int64_t end, void *context)
{
    const struct nll *x = context;
    if (x->kernels->check(&x->kernel, begin, end) >= 0)
        atomic_store_explicit(x->stray, true, memory_order_relaxed);
}

/* True if every target is a class or ignored. */
static bool check_classes(struct nll *x)
{
    atomic_bool stray = false;
    x->stray = &stray;
    grd_parallel_for(0, x->targets, CHECKED_TARGETS, check_piece, x);
    return !stray || grd_raise(GRD_ERROR_INDEX, "Target %lld is out of bounds.",
                               (long long)x->kernel.target[x->kernels->check(&x->kernel, 0, x->targets)]);
}

/* Checks everything about an input of that size and dtype and reads the target; false with the error raised. */
static bool prepare_nll(struct nll *x, grd_dims size, grd_dtype dtype, grd_tensor *target, grd_tensor *weight, int64_t ignore_index)
{
    const struct grd_nll_row *kernels = grd_kernels->nll[dtype];
    if (kernels == NULL)
        return grd_raise_no_kernel("nll_loss_out_frame", dtype);
    if (target->dtype != GRD_INT64 && target->dtype != GRD_UINT8)
        return grd_raise(GRD_ERROR_RUNTIME, "expected target dtype to be Long or Byte, but got %s",
                         grd_dtype_type_name((grd_dtype)target->dtype));
    if (!check_target_sizes(size, target))
        return false;
    const int64_t classes = size.data[size.n == 1 ? 0 : 1];
    if (weight != NULL && (weight->ndim != 1 || weight->numel != classes)) {
        char have[1024];
        return grd_raise(GRD_ERROR_RUNTIME,
                         "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s",
                         (long long)classes, grd_format_int64s(have, sizeof have, weight->sizes, weight->ndim));
    }
    if (weight != NULL && weight->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name(dtype),
                         grd_dtype_type_name((grd_dtype)weight->dtype));
    if (grd_is_meta(target))
        return true;
    const grd_tensor *targets = grd_contiguous_as(target, GRD_INT64),
                     *weights = weight == NULL ? NULL : grd_contiguous_as(weight, GRD_DTYPE_NONE);
    if (grd_pending())
        return false;
    *x = (struct nll){.kernel = {.classes = classes,
                                 .positions = size.n > 2 ? grd_sizes_product(size.data + 2, size.n - 2) : 1,
                                 .ignore = ignore_index,
                                 .target = (const int64_t *)targets->data,
                                 .weight = weights == NULL ? NULL : weights->data},
                      .kernels = kernels,
                      .targets = target->numel};
    return check_classes(x);
}

/* The result of reduction "none": the target's sizes, but 0-d for one sample without a batch. */
static grd_dims loss_sizes(grd_dims size, const grd_tensor *target, enum grd_loss_reduction how)
{
    return how == GRD_LOSS_NONE && size.n > 1 ? grd_dims_from(target->sizes, target->ndim) : grd_dims_from(target->sizes, 0);
}

/* ---- Loops ------------------------------------------------------------------------------------------------------------------------- */

static void add_piece(int64_t begin, int64_t end, void *context)
{
    const struct nll *x = context;
    x->kernels->forward(&x->kernel, begin, end, x->in, x->out, &x->sums[begin / x->grain]);
}

/* Writes each loss where there is an `out`, and returns the sums over all targets. */
static struct grd_nll_sums add_losses(struct nll *x)
{
    struct grd_nll_sums sums[PIECES], total = {0};
    const int64_t share = (x->targets + PIECES - 1) / PIECES;
    x->grain = share > LEAST_TARGETS ? share : LEAST_TARGETS;
    x->sums = sums;
    grd_parallel_for(0, x->targets, x->grain, add_piece, x);
    for (int64_t i = 0; i * x->grain < x->targets; i++) {
        total.loss += sums[i].loss;
        total.weight += sums[i].weight;
    }
    return total;
}

static void write_piece(int64_t begin, int64_t end, void *context)
{
    const struct nll *x = context;
    x->kernels->backward(&x->kernel, begin, end, x->in, x->in_step, x->scale, x->out);
}

static int64_t at_least_one(int64_t n)
{
    return n < 1 ? 1 : n;
}

/* ---- Operators --------------------------------------------------------------------------------------------------------------------- */

/* mean = -sum(w x) / sum(w) */
void op_hidden_nll_loss_forward(grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction, int64_t ignore_index,
                                grd_tensor **ret)
{
    struct nll x;
    grd_dims size = grd_dims_from(self->sizes, self->ndim);
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    ret[0] = ret[1] = grd_failed;
    if (how == GRD_LOSS_INVALID || !grd_check_same_device(grd_tensors(self, target, weight)) ||
        !prepare_nll(&x, size, (grd_dtype)self->dtype, target, weight, ignore_index))
        return;
    grd_tensor *input = grd_contiguous_as(self, GRD_DTYPE_NONE);
    grd_tensor *output = grd_new(loss_sizes(size, target, how), (grd_dtype)self->dtype, grd_device_of(self));
    grd_tensor *total_weight = grd_new(GRD_NO_DIMS, GRD_FLOAT64, grd_device_of(self));
    if (grd_pending())
        return;
    ret[0] = output;
    ret[1] = total_weight;
    if (grd_is_meta(self))
        return;
    x.in = input->data;
    x.out = how == GRD_LOSS_NONE ? output->data : NULL;
    const struct grd_nll_sums sums = add_losses(&x);
    *(double *)total_weight->data = sums.weight;
    double loss = how == GRD_LOSS_MEAN ? sums.loss / sums.weight : sums.loss;
    if (how != GRD_LOSS_NONE)
        grd_kernels->cast[GRD_FLOAT64][self->dtype](1, (char *const[]){output->data, (char *)&loss},
                                                    (const int64_t[]){self->itemsize, sizeof loss}, NULL);
}

grd_tensor *op_hidden_nll_loss_backward(grd_tensor *grad_output, grd_dims size, grd_tensor *target, grd_tensor *weight,
                                        const char *reduction, int64_t ignore_index, grd_tensor *total_weight)
{
    struct nll x;
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID || !prepare_nll(&x, size, (grd_dtype)grad_output->dtype, target, weight, ignore_index))
        return grd_failed;
    if (!grd_same_sizes(grad_output, loss_sizes(size, target, how)))
        return grd_fail(GRD_ERROR_RUNTIME, "grad_output does not have the sizes of the loss");
    grd_tensor *grad = grd_contiguous_as(grad_output, GRD_DTYPE_NONE);
    grd_tensor *result = grd_new(size, (grd_dtype)grad_output->dtype, grd_device_of(grad_output));
    if (grd_pending() || grd_is_meta(result))
        return grd_pending() ? grd_failed : result;
    x.in = grad->data;
    x.in_step = how == GRD_LOSS_NONE;
    x.scale = how == GRD_LOSS_MEAN ? 1 / *(const double *)total_weight->data : 1;
    x.out = result->data;
    grd_parallel_for(0, x.targets, at_least_one(WRITTEN_ELEMENTS / at_least_one(x.kernel.classes)), write_piece, &x);
    return result;
}

void op_hidden_nll_loss2d_forward(grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction, int64_t ignore_index,
                                  grd_tensor **ret)
{
    const grd_hidden_nll_loss_forward_result result = grd_hidden_nll_loss_forward(self, target, weight, reduction, ignore_index);
    ret[0] = result.output;
    ret[1] = result.total_weight;
}

grd_tensor *op_nll_loss(grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction, int64_t ignore_index)
{
    if (self->ndim <= 2)
        return grd_hidden_nll_loss_forward(self, target, weight, reduction, ignore_index).output;
    return grd_hidden_nll_loss2d_forward(self, target, weight, reduction, ignore_index).output;
}
