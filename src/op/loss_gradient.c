/* Gradients of the losses that are recorded as one node: composites, differentiable in their turn. Schema: schema/loss.toml; the losses: loss.c, loss_distance.c. */
#include "gen/uses/op/loss_gradient.h"
#include "op/common.h"
#include "op/loss.h"

/* The gradient of each of the losses that were reduced, which have the sizes of a and b together. b may be NULL. */
static grd_tensor *unreduced(grd_tensor *grad, const grd_tensor *a, const grd_tensor *b, const char *reduction)
{
    int64_t sizes[GRD_MAX_DIMS], n, count = a->numel;
    if (grd_loss_reduction_of(reduction) != GRD_LOSS_MEAN)
        return grad;
    if (b != NULL && (!grd_shape_broadcast(grd_sizes(a), grd_sizes(b), sizes, &n) || !grd_shape_numel(grd_dims_from(sizes, n), &count)))
        return grd_failed;
    return grd_div_scalar(grad, grd_float((double)count));
}

grd_tensor *op_hidden_unreduced(grd_tensor *grad, grd_tensor *self, grd_tensor *weight, const char *reduction)
{
    return unreduced(grad, self, weight, reduction);
}

/* The same, times the weight. */
static grd_tensor *weighted(grd_tensor *grad, const grd_tensor *self, grd_tensor *weight, const char *reduction)
{
    grd_tensor *each = unreduced(grad, self, weight, reduction);
    return weight == NULL ? each : grd_mul(each, weight);
}

/* ---- Differences ---------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_hidden_mse_loss_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, const char *reduction)
{
    return grd_mul(grd_mul_scalar(grd_sub(self, target), grd_int(2)), unreduced(grad, self, target, reduction));
}

grd_tensor *op_hidden_smooth_l1_loss_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, const char *reduction, double beta)
{
    grd_tensor *d = grd_sub(self, target);
    grd_tensor *slope = grd_clamp(grd_div_scalar(d, grd_float(beta)), .min = grd_int(-1), .max = grd_int(1));
    return grd_mul(slope, unreduced(grad, self, target, reduction));
}

grd_tensor *op_hidden_huber_loss_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, const char *reduction, double delta)
{
    grd_tensor *d = grd_sub(self, target);
    grd_tensor *slope = grd_clamp(d, .min = grd_float(-delta), .max = grd_float(delta));
    return grd_mul(slope, unreduced(grad, self, target, reduction));
}

grd_tensor *op_hidden_soft_margin_loss_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, const char *reduction)
{
    grd_tensor *opposite = grd_neg(target);
    grd_tensor *slope = grd_mul(opposite, grd_sigmoid(grd_mul(opposite, self)));
    return grd_mul(grd_conj(slope), unreduced(grad, self, target, reduction));
}

/* ---- Binary cross entropy ------------------------------------------------------------------------------------------------------- */

grd_tensor *op_hidden_binary_cross_entropy_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, grd_tensor *weight,
                                                    const char *reduction)
{
    grd_tensor *one = grd_number(grd_int(1));
    grd_tensor *divisor = grd_clamp_min(grd_mul(grd_sub(one, self), self), grd_float(1e-12));
    return grd_div(grd_mul(weighted(grad, self, weight, reduction), grd_sub(self, target)), divisor);
}

grd_tensor *op_hidden_binary_cross_entropy_target_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, grd_tensor *weight,
                                                           const char *reduction)
{
    (void)target;
    const grd_scalar floor = grd_int(-100);
    grd_tensor *no = grd_clamp_min(grd_log1p(grd_neg(self)), floor), *yes = grd_clamp_min(grd_log(self), floor);
    return grd_mul(weighted(grad, self, weight, reduction), grd_sub(no, yes));
}

grd_tensor *op_hidden_binary_cross_entropy_with_logits_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target, grd_tensor *weight,
                                                                grd_tensor *pos_weight, const char *reduction)
{
    grd_tensor *slope = grd_sub(grd_sigmoid(self), target);
    if (pos_weight != NULL) {
        grd_tensor *t = grd_mul(pos_weight, target), *one = grd_number(grd_int(1));
        slope = grd_sub(grd_mul(grd_sub(grd_add(t, one), target), grd_sigmoid(self)), t);
    }
    return grd_mul(slope, weighted(grad, self, weight, reduction));
}

grd_tensor *op_hidden_binary_cross_entropy_with_logits_target_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target,
                                                                       grd_tensor *weight, grd_tensor *pos_weight, const char *reduction)
{
    (void)target;
    grd_tensor *slope = grd_neg(self);
    if (pos_weight != NULL)
        slope = grd_sub(slope, grd_mul(grd_sub_scalar(pos_weight, grd_int(1)), grd_log_sigmoid(self)));
    return grd_mul(slope, weighted(grad, self, weight, reduction));
}

grd_tensor *op_hidden_binary_cross_entropy_with_logits_pos_weight_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *target,
                                                                           grd_tensor *weight, const char *reduction)
{
    return grd_mul(grd_mul(grd_neg(target), grd_log_sigmoid(self)), weighted(grad, self, weight, reduction));
}
