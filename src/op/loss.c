/* Losses: composites over elementwise operators. nll_loss is in nll_loss.c.
 * Invariant: a composite never divides by or takes the logarithm of something whose gradient would be lost to infinity. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "gen/uses/op/loss.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/loss.h"

/* ---- Reduction ------------------------------------------------------------------------------------------------------------------ */

enum grd_loss_reduction grd_loss_reduction_of(const char *name)
{
    if (name == NULL || strcmp(name, "mean") == 0)
        return GRD_LOSS_MEAN;
    if (strcmp(name, "sum") == 0)
        return GRD_LOSS_SUM;
    if (strcmp(name, "none") == 0)
        return GRD_LOSS_NONE;
    grd_raise(GRD_ERROR_VALUE, "%s is not a valid value for reduction: " GRD_WORDS_REDUCTION, name);
    return GRD_LOSS_INVALID;
}

grd_tensor *grd_loss_reduce(grd_tensor *loss, enum grd_loss_reduction reduction)
{
    return reduction == GRD_LOSS_MEAN ? grd_mean(loss) : reduction == GRD_LOSS_SUM ? grd_sum(loss) : loss;
}

static grd_tensor *weighted(grd_tensor *loss, grd_tensor *weight, enum grd_loss_reduction reduction)
{
    return grd_loss_reduce(weight == NULL ? loss : grd_mul(loss, weight), reduction);
}

static bool is_floating(const grd_tensor *t)
{
    return grd_category_of((grd_dtype)t->dtype) == GRD_CATEGORY_FLOAT;
}

/* A dtype that neither input can lift into the floating ones. */
static bool check_floating(const char *name, const grd_tensor *a, const grd_tensor *b)
{
    grd_dtype dtype = grd_promote((grd_dtype)a->dtype, (grd_dtype)b->dtype);
    return grd_category_of(dtype) == GRD_CATEGORY_FLOAT || grd_raise_no_kernel(name, dtype);
}

/* ---- Differences ------------------------------------------------------------------------------------------------------------------ */

/* Gives both the sizes that they broadcast to, as PyTorch's functions do before they call their operators. */
static bool broadcast_both(grd_tensor **self, grd_tensor **target)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    const grd_dims own = grd_sizes(*self), its = grd_sizes(*target);
    if (grd_dims_equal(own, its))
        return true;
    if (!grd_shape_broadcast(own, its, sizes, &n))
        return false;
    *self = grd_expand(*self, grd_dims_from(sizes, n));
    *target = grd_expand(*target, grd_dims_from(sizes, n));
    return !grd_pending();
}

/* `loss` reduced; without a reduction, with the strides of an elementwise result. */
static grd_tensor *reduced(grd_tensor *loss, grd_tensor *self, grd_tensor *target, enum grd_loss_reduction reduction)
{
    if (reduction != GRD_LOSS_NONE)
        return grd_loss_reduce(loss, reduction);
    return grd_composite_elementwise(loss, grd_tensors(self, target));
}

grd_tensor *op_mse_loss(grd_tensor *self, grd_tensor *target, const char *reduction)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID || !check_floating("mse", self, target) || !broadcast_both(&self, &target))
        return grd_failed;
    return reduced(grd_square(grd_sub(self, target)), self, target, how);
}

grd_tensor *op_l1_loss(grd_tensor *self, grd_tensor *target, const char *reduction)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID || !broadcast_both(&self, &target))
        return grd_failed;
    return grd_loss_reduce(grd_abs(grd_sub(self, target)), how);
}

grd_tensor *op_smooth_l1_loss(grd_tensor *self, grd_tensor *target, const char *reduction, double beta)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (!(beta >= 0))
        grd_raise(GRD_ERROR_RUNTIME, "smooth_l1_loss does not support negative values for beta.");
    if (how == GRD_LOSS_INVALID || grd_pending())
        return grd_failed;
    return beta == 0 ? grd_l1_loss(self, target, .reduction = reduction) : grd_hidden_smooth_l1_loss(self, target, reduction, beta);
}

grd_tensor *op_hidden_smooth_l1_loss(grd_tensor *self, grd_tensor *target, const char *reduction, double beta)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID || !check_floating("smooth_l1", self, target) || !broadcast_both(&self, &target))
        return grd_failed;
    return reduced(grd_hidden_smooth_l1(grd_sub(self, target), beta), self, target, how);
}

grd_tensor *op_huber_loss(grd_tensor *self, grd_tensor *target, const char *reduction, double delta)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (!(delta > 0))
        grd_raise(GRD_ERROR_RUNTIME, "huber_loss does not support non-positive values for delta.");
    if (grd_pending() || !check_floating("huber", self, target) || !broadcast_both(&self, &target))
        return grd_failed;
    grd_tensor *loss = grd_hidden_huber(grd_sub(self, target), delta);
    return grd_loss_reduce(how == GRD_LOSS_NONE ? grd_composite_like(loss, self) : loss, how);
}

/* ---- Distributions ------------------------------------------------------------------------------------------------------------------ */

static enum grd_loss_reduction kl_div_reduction_of(const char *name)
{
    static const char *const others[] = {"mean", "sum", "none"};
    if (name != NULL && strcmp(name, "batchmean") == 0)
        return GRD_LOSS_BATCH_MEAN;
    for (int i = 0; i < GRD_LENGTH(others); i++)
        if (name == NULL || strcmp(name, others[i]) == 0)
            return grd_loss_reduction_of(name);
    grd_raise(GRD_ERROR_VALUE, "%s is not a valid value for reduction: " GRD_WORDS_KL_DIV_REDUCTION, name);
    return GRD_LOSS_INVALID;
}

grd_tensor *op_kl_div(grd_tensor *self, grd_tensor *target, const char *reduction, bool log_target)
{
    enum grd_loss_reduction how = kl_div_reduction_of(reduction);
    if (how != GRD_LOSS_INVALID && (grd_category_of((grd_dtype)self->dtype) <= GRD_CATEGORY_INTEGER ||
                                    grd_category_of((grd_dtype)target->dtype) <= GRD_CATEGORY_INTEGER))
        grd_raise(GRD_ERROR_RUNTIME, "Integral inputs not supported.");
    if (grd_pending())
        return grd_failed;
    grd_tensor *loss;
    if (log_target) {
        loss = grd_mul(grd_exp(target), grd_sub(target, self));
    } else { /* t log t, with log 1 where t is 0 */
        grd_tensor *one = grd_number(grd_int(1));
        grd_tensor *log_t = grd_log(grd_where(grd_eq_scalar(target, grd_int(0)), one, target));
        loss = grd_sub(grd_mul(target, log_t), grd_mul(target, self));
    }
    if (how != GRD_LOSS_BATCH_MEAN)
        return grd_loss_reduce(loss, how);
    double batch = self->ndim > 0 ? (double)self->sizes[0] : 1;
    return grd_div_scalar(grd_sum(loss), grd_float(batch));
}

grd_tensor *op_log_sigmoid(grd_tensor *self)
{
    return grd_composite_contiguous(grd_hidden_log_sigmoid(self));
}

/* The losses before they are weighted and reduced. */
static grd_tensor *binary_cross_entropies(grd_tensor *self, grd_tensor *target)
{
    double low, high;
    if (grd_composite_extremes(self, &low, &high) && !(low >= 0 && high <= 1))
        return grd_fail(GRD_ERROR_RUNTIME, "all elements of input should be between 0 and 1");
    grd_scalar floor = grd_int(-100);
    grd_tensor *no = grd_clamp_min(grd_log1p(grd_neg(self)), floor), *yes = grd_clamp_min(grd_log(self), floor);
    return grd_sub(grd_mul(grd_sub_scalar(target, grd_int(1)), no), grd_mul(target, yes));
}

grd_tensor *op_binary_cross_entropy(grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how != GRD_LOSS_INVALID && self->dtype != target->dtype)
        grd_raise(GRD_ERROR_RUNTIME, "Found dtype %s but expected %s", grd_dtype_type_name((grd_dtype)target->dtype),
                  grd_dtype_type_name((grd_dtype)self->dtype));
    else if (how != GRD_LOSS_INVALID && !grd_same_sizes(target, grd_dims_from(self->sizes, self->ndim))) {
        char own[1024], other[1024];
        grd_raise(GRD_ERROR_VALUE,
                  "Using a target size (%s) that is different to the input size (%s) is deprecated. Please ensure they have the same size.",
                  grd_format_int64s(other, sizeof other, target->sizes, target->ndim),
                  grd_format_int64s(own, sizeof own, self->sizes, self->ndim));
    } else if (how != GRD_LOSS_INVALID && !is_floating(self))
        grd_raise_no_kernel("binary_cross_entropy", (grd_dtype)self->dtype);
    if (grd_pending())
        return grd_failed;
    return weighted(grd_composite_like(binary_cross_entropies(self, target), self), weight, how);
}

grd_tensor *op_binary_cross_entropy_with_logits(grd_tensor *self, grd_tensor *target, grd_tensor *weight, grd_tensor *pos_weight,
                                                const char *reduction)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how != GRD_LOSS_INVALID && !grd_same_sizes(target, grd_dims_from(self->sizes, self->ndim))) {
        char own[1024], other[1024];
        grd_raise(GRD_ERROR_VALUE, "Target size (%s) must be the same as input size (%s)",
                  grd_format_int64s(other, sizeof other, target->sizes, target->ndim),
                  grd_format_int64s(own, sizeof own, self->sizes, self->ndim));
    }
    if (grd_pending())
        return grd_failed;
    grd_scalar one = grd_int(1);
    grd_tensor *log_sigmoid = grd_log_sigmoid(self);
    if (pos_weight != NULL)
        log_sigmoid = grd_mul(grd_add_scalar(grd_mul(grd_sub_scalar(pos_weight, one), target), one), log_sigmoid);
    grd_tensor *negative = grd_neg(grd_sub_scalar(target, one)), *rest = grd_mul(negative, self), *loss = grd_sub(rest, log_sigmoid);
    /* A pos_weight may not have more elements than the input: PyTorch computes the loss in the memory of `negative`. */
    if (grd_pending() || !grd_check_inplace_shape(negative, grd_sizes(loss)))
        return grd_failed;
    return weighted(grd_composite_like(loss, negative), weight, how);
}

/* ---- Cross entropy ------------------------------------------------------------------------------------------------------------------ */

/* Class weights in a shape that broadcasts over the class dimension. */
static grd_tensor *spread_weight(grd_tensor *weight, int64_t ndim, int64_t class_dim)
{
    int64_t sizes[GRD_MAX_DIMS];
    for (int64_t d = 0; d < ndim; d++)
        sizes[d] = d == class_dim ? weight->numel : 1;
    return grd_reshape(weight, grd_dims_from(sizes, ndim));
}

/* Targets are probabilities: -sum(weight target log_p), the mean over all but the class dimension. */
static grd_tensor *cross_entropy_probabilities(grd_tensor *log_p, grd_tensor *target, grd_tensor *weight, enum grd_loss_reduction how,
                                               int64_t dim, double smoothing)
{
    int64_t classes = log_p->sizes[dim];
    if (smoothing > 0)
        target = grd_add_scalar(grd_mul_scalar(target, grd_float(1 - smoothing)), grd_float(smoothing / (double)classes));
    grd_tensor *loss = grd_mul(log_p, target);
    if (weight != NULL)
        loss = grd_mul(loss, spread_weight(weight, log_p->ndim, dim));
    if (how == GRD_LOSS_NONE)
        return grd_neg(grd_sum(loss, .dim = grd_dims(dim)));
    grd_tensor *sum = grd_neg(grd_sum(loss));
    return how == GRD_LOSS_SUM ? sum : grd_div_scalar(sum, grd_float((double)log_p->numel / (double)classes));
}

/* Targets are classes, smoothed: (1 - s) nll + s / C * (the loss of a uniform target, over the same samples and weights). */
static grd_tensor *cross_entropy_smoothed(grd_tensor *log_p, grd_tensor *target, grd_tensor *weight, enum grd_loss_reduction how,
                                          int64_t dim, int64_t ignore_index, const char *reduction, double smoothing)
{
    grd_tensor *nll = grd_nll_loss(log_p, target, .weight = weight, .reduction = reduction, .ignore_index = ignore_index);
    grd_tensor *spread = weight == NULL ? log_p : grd_mul(log_p, spread_weight(weight, log_p->ndim, dim));
    grd_tensor *uniform = grd_neg(grd_sum(spread, .dim = grd_dims(dim)));
    grd_tensor *ignored = grd_eq_scalar(target, grd_int(ignore_index));
    if (grd_pending())
        return grd_failed;
    if (log_p->ndim == 1)
        ignored = grd_reshape(ignored, GRD_NO_DIMS);
    uniform = grd_masked_fill(uniform, ignored, grd_int(0));
    if (how == GRD_LOSS_SUM)
        uniform = grd_sum(uniform);
    if (how == GRD_LOSS_MEAN) {
        grd_tensor *counted;
        if (weight == NULL) {
            counted = grd_to(grd_logical_not(ignored), .dtype = (grd_dtype)log_p->dtype);
        } else {
            grd_tensor *classes = grd_masked_fill(grd_to(grd_reshape(target, grd_dims(target->numel)), .dtype = GRD_INT64),
                                                  grd_reshape(ignored, grd_dims(target->numel)), grd_int(0));
            counted = grd_masked_fill(grd_index_select(weight, 0, classes), grd_reshape(ignored, grd_dims(target->numel)), grd_int(0));
        }
        uniform = grd_div(grd_sum(uniform), grd_sum(counted));
    }
    double share = smoothing / (double)log_p->sizes[dim];
    return grd_add(grd_mul_scalar(nll, grd_float(1 - smoothing)), grd_mul_scalar(uniform, grd_float(share)));
}

grd_tensor *op_cross_entropy(grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction, int64_t ignore_index,
                             double label_smoothing)
{
    enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
        grd_raise(GRD_ERROR_RUNTIME, "label_smoothing must be between 0.0 and 1.0. Got: %g", label_smoothing);
    else if (self->ndim == 0)
        grd_raise(GRD_ERROR_VALUE, "Expected 1 or more dimensions (got 0)");
    if (grd_pending())
        return grd_failed;
    int64_t dim = self->ndim == 1 ? 0 : 1;
    bool probabilities = grd_same_sizes(target, grd_dims_from(self->sizes, self->ndim));
    if (probabilities && !is_floating(target)) {
        grd_raise(GRD_ERROR_RUNTIME, "Expected floating point type for target with class probabilities, got %s",
                  grd_dtype_type_name((grd_dtype)target->dtype));
    } else if (probabilities && ignore_index >= 0) {
        grd_raise(GRD_ERROR_RUNTIME, "ignore_index is not supported for floating point target");
    } else if (weight != NULL && (weight->ndim != 1 || weight->numel != self->sizes[dim])) {
        char have[1024];
        grd_raise(GRD_ERROR_RUNTIME,
                  "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s",
                  (long long)self->sizes[dim], grd_format_int64s(have, sizeof have, weight->sizes, weight->ndim));
    } else if (!is_floating(self)) {
        grd_raise_no_kernel("log_softmax_lastdim_kernel_impl", (grd_dtype)self->dtype);
    }
    if (grd_pending())
        return grd_failed;
    grd_tensor *log_p = grd_log_softmax(self, dim);
    if (grd_pending())
        return grd_failed;
    if (probabilities)
        return cross_entropy_probabilities(log_p, target, weight, how, dim, label_smoothing);
    if (label_smoothing > 0)
        return cross_entropy_smoothed(log_p, target, weight, how, dim, ignore_index, reduction, label_smoothing);
    return grd_nll_loss(log_p, target, .weight = weight, .reduction = reduction, .ignore_index = ignore_index);
}
