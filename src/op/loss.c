/* Defines functions that the formulas of losses in schema/loss.toml call, and computes the losses that have no formula. nll_loss is in nll_loss.c.
 *
 * Invariant: no loss composed of other operators divides by 0 or takes the logarithm of 0, because the gradient would be infinite or NaN. */
#include <string.h>

#include "base/object.h"
#include "gen/uses/op/loss.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/formula.h"

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

bool grd_loss_check(const char *reduction)
{
    return grd_loss_reduction_of(reduction) != GRD_LOSS_INVALID;
}

grd_tensor *grd_loss_reduced(grd_tensor *loss, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    return how == GRD_LOSS_MEAN ? grd_mean(loss) : how == GRD_LOSS_SUM ? grd_sum(loss) : loss;
}

double grd_loss_share(const char *reduction, grd_dims a, grd_dims b)
{
    int64_t sizes[GRD_MAX_DIMS], n, count;
    if (grd_loss_reduction_of(reduction) != GRD_LOSS_MEAN)
        return 1;
    return grd_shape_broadcast(a, b, sizes, &n) && grd_shape_numel(grd_dims_from(sizes, n), &count) ? 1 / (double)count : 0;
}

int64_t grd_class_dim(grd_dims sizes)
{
    return sizes.n > 1;
}

/* ---- Helpers of formulas --------------------------------------------------------------------------------------------------------- */

/* True if `var` has the input's sizes except for one dimension, which has size 1. */
static bool is_constant_along_one(const grd_tensor *input, const grd_tensor *var)
{
    int64_t differing = 0;
    bool ones = var->ndim == input->ndim;
    for (int64_t i = 0; ones && i < var->ndim; i++)
        if (var->sizes[i] != input->sizes[i]) {
            ones = var->sizes[i] == 1;
            differing++;
        }
    return ones && differing == 1;
}

grd_tensor *grd_loss_variance(const grd_tensor *input, grd_tensor *var)
{
    const bool is_row = input->ndim > 0 && grd_same_sizes(var, grd_dims_from(input->sizes, input->ndim - 1));
    double least;
    if (!is_row && !is_constant_along_one(input, var) && !grd_same_sizes(var, grd_sizes(input)))
        return grd_fail(GRD_ERROR_VALUE, "var is of incorrect size");
    if (grd_composite_extremes(var, &least, NULL) && least < 0)
        return grd_fail(GRD_ERROR_VALUE, "var has negative entry/entries");
    return is_row ? grd_unsqueeze(var, -1) : var;
}

/* Returns max(t, least), but passes the gradient to t even where `least` is larger. */
static grd_tensor *raised(grd_tensor *t, double least)
{
    return grd_add(t, grd_sub(grd_clamp_min(grd_detach(t), grd_float(least)), grd_detach(t)));
}

grd_tensor *op_cosine_similarity(grd_tensor *x1, grd_tensor *x2, int64_t dim, double eps)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    const grd_dtype dtype = grd_promote((grd_dtype)x1->dtype, (grd_dtype)x2->dtype);
    if (!grd_dtype_is_inexact(dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "expected common dtype to be floating point, yet common dtype is %s",
                        grd_dtype_type_name(dtype));
    if (eps < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "eps must be non-negative, got: %g", eps);
    if (!grd_shape_broadcast(grd_sizes(x1), grd_sizes(x2), sizes, &n))
        return grd_failed;
    x1 = grd_expand(grd_to(x1, .dtype = dtype), grd_dims_from(sizes, n));
    x2 = grd_expand(grd_to(x2, .dtype = dtype), grd_dims_from(sizes, n));
    const grd_dims along = grd_dims(dim);
    grd_tensor *n1 = raised(grd_norm(x1, .dim = along, .keepdim = true), eps),
               *n2 = raised(grd_norm(x2, .dim = along, .keepdim = true), eps);
    return grd_sum(grd_mul(grd_div(x1, n1), grd_div(x2, n2)), .dim = along);
}

bool grd_loss_check_weight(const grd_tensor *weight, int64_t classes)
{
    return weight == NULL || (weight->ndim == 1 && weight->numel == classes) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s",
                     (long long)classes, grd_list_text(grd_sizes(weight)));
}

/* ---- Cross entropy ------------------------------------------------------------------------------------------------------------------ */

/* Returns the cross entropy for targets that are probabilities, which is -sum(weight * target * log_p). For the reduction "mean" the sum is divided
 * by the number of samples. */
static grd_tensor *cross_entropy_probabilities(grd_tensor *log_p, grd_tensor *target, grd_tensor *weight, enum grd_loss_reduction how,
                                               int64_t dim, double smoothing)
{
    int64_t classes = log_p->sizes[dim];
    if (smoothing > 0)
        target = grd_add_scalar(grd_mul_scalar(target, grd_float(1 - smoothing)), grd_float(smoothing / (double)classes));
    grd_tensor *loss = grd_mul(log_p, target);
    if (weight != NULL)
        loss = grd_mul(loss, grd_composite_along(weight, log_p->ndim, dim));
    if (how == GRD_LOSS_NONE)
        return grd_neg(grd_sum(loss, .dim = grd_dims(dim)));
    grd_tensor *sum = grd_neg(grd_sum(loss));
    return how == GRD_LOSS_SUM ? sum : grd_div_scalar(sum, grd_float((double)log_p->numel / (double)classes));
}

/* Returns the cross entropy with label smoothing s for targets that are class indices: (1 - s) * nll + s / C * u. C is the number of classes. u is
 * reduced like nll, but each sample contributes the sum of the losses of all classes instead of the loss of its target. */
static grd_tensor *cross_entropy_smoothed(grd_tensor *log_p, grd_tensor *target, grd_tensor *weight, enum grd_loss_reduction how,
                                          int64_t dim, int64_t ignore_index, const char *reduction, double smoothing)
{
    grd_tensor *nll = grd_nll_loss(log_p, target, .weight = weight, .reduction = reduction, .ignore_index = ignore_index);
    grd_tensor *spread = weight == NULL ? log_p : grd_mul(log_p, grd_composite_along(weight, log_p->ndim, dim));
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
        grd_tensor *counted = grd_logical_not(ignored);
        if (weight != NULL) {
            const grd_dims vector = grd_dims(target->numel);
            grd_tensor *classes = grd_masked_fill(grd_to(target, .dtype = GRD_INT64), grd_reshape(ignored, grd_sizes(target)), grd_int(0));
            ignored = grd_reshape(ignored, vector);
            counted = grd_masked_fill(grd_index_select(weight, 0, grd_reshape(classes, vector)), ignored, grd_int(0));
        }
        uniform = grd_div(grd_sum(uniform), grd_sum(grd_to(counted, .dtype = (grd_dtype)log_p->dtype)));
    }
    double share = smoothing / (double)log_p->sizes[dim];
    return grd_add(grd_mul_scalar(nll, grd_float(1 - smoothing)), grd_mul_scalar(uniform, grd_float(share)));
}

grd_tensor *op_cross_entropy(grd_tensor *self, grd_tensor *target, grd_tensor *weight, const char *reduction, int64_t ignore_index,
                             double label_smoothing)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
        return grd_fail(GRD_ERROR_RUNTIME, "label_smoothing must be between 0.0 and 1.0. Got: %g", label_smoothing);
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_VALUE, "Expected 1 or more dimensions (got 0)");
    const int64_t dim = self->ndim == 1 ? 0 : 1;
    const bool probabilities = grd_same_sizes(target, grd_sizes(self));
    if (probabilities && !grd_dtype_is_floating((grd_dtype)target->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "Expected floating point type for target with class probabilities, got %s",
                        grd_dtype_type_name((grd_dtype)target->dtype));
    if (probabilities && ignore_index >= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "ignore_index is not supported for floating point target");
    if (!grd_loss_check_weight(weight, self->sizes[dim]))
        return grd_failed;
    if (!grd_dtype_is_floating((grd_dtype)self->dtype))
        return grd_fail_no_kernel("log_softmax_lastdim_kernel_impl", (grd_dtype)self->dtype);
    grd_tensor *log_p = grd_log_softmax(self, dim);
    if (grd_pending())
        return grd_failed;
    if (probabilities)
        return cross_entropy_probabilities(log_p, target, weight, how, dim, label_smoothing);
    if (label_smoothing > 0)
        return cross_entropy_smoothed(log_p, target, weight, how, dim, ignore_index, reduction, label_smoothing);
    return grd_nll_loss(log_p, target, .weight = weight, .reduction = reduction, .ignore_index = ignore_index);
}

/* ---- Linear cross entropy -------------------------------------------------------------------------------------------------------------- */

bool grd_linear_cross_entropy_check(const grd_tensor *input, const grd_tensor *linear_weight, const grd_tensor *linear_bias)
{
    if (input->ndim < 1 || input->ndim > 2)
        return grd_raise(GRD_ERROR_RUNTIME, "expected input with dimensionality 1 or 2, got %d", input->ndim);
    if (linear_weight->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "expected linear_weight with dimensionality at least 2, got %d", linear_weight->ndim);
    const int64_t features = input->sizes[input->ndim - 1], columns = linear_weight->sizes[linear_weight->ndim - 1];
    const grd_dims classes = grd_linear_classes(grd_sizes(linear_weight));
    if (features != columns)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "expected equal input and linear_weight last dimensions (in_features), got %lld and %lld, respectively",
                         (long long)features, (long long)columns);
    if (linear_bias != NULL && !grd_same_sizes(linear_bias, classes))
        return grd_raise(GRD_ERROR_RUNTIME, "expected linear_bias shape %s, got %s", grd_list_text(classes),
                         grd_list_text(grd_sizes(linear_bias)));
    return input->ndim == 2 || classes.n == 1 ||
           grd_raise(
               GRD_ERROR_RUNTIME,
               "K-dimensional loss defined by linear_weight shape %s requires batched input, (N, %lld), got unbatched input with shape %s",
               grd_list_text(grd_sizes(linear_weight)), (long long)features, grd_list_text(grd_sizes(input)));
}

grd_dims grd_linear_classes(grd_dims linear_weight)
{
    return grd_dims_from(linear_weight.data, linear_weight.n - 1);
}

grd_dims grd_logits_sizes(grd_dims input, grd_dims classes)
{
    const int64_t before = input.n - 1;
    int64_t *const sizes = grd_pool_array(before + classes.n, sizeof *sizes);
    if (sizes == NULL)
        return GRD_NO_DIMS;
    memcpy(sizes, input.data, (size_t)before * sizeof *sizes);
    memcpy(sizes + before, classes.data, (size_t)classes.n * sizeof *sizes);
    return grd_dims_from(sizes, before + classes.n);
}

/* ---- Adaptive softmax --------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_hidden_adaptive_log_prob(grd_tensor *head, grd_tensors tails, int64_t shortlist)
{
    head = grd_log_softmax(head, 1);
    grd_tensor **parts = grd_pool_array(tails.n + 1, sizeof *parts);
    if (parts == NULL)
        return grd_failed;
    parts[0] = grd_narrow(head, 1, 0, shortlist);
    for (int64_t i = 0; i < tails.n; i++)
        parts[i + 1] = grd_add(grd_log_softmax(tails.data[i], 1), grd_narrow(head, 1, shortlist + i, 1));
    return grd_cat(grd_tensors_from(parts, tails.n + 1), .dim = 1);
}
