/* Computes optimizer steps by calls of differentiable operators, so that gradients flow through the steps. The in-place steps, which autograd does
 * not record, are in optim_steps.c.
 *
 * Results are in the order of the arguments: the parameter, then its states. */
#include <string.h>

#include "base/error.h"
#include "base/object.h"
#include "core/tensor.h"
#include "gen/uses/op/optim_recorded.h"
#include "gradus/library.h"
#include "op/composite.h"
#include "op/formula.h"

/* Arguments and results of one step of one parameter. */
struct recorded {
    grd_tensor *param, *grad;
    /* The optimizer's states of the parameter, e.g. running means. */
    grd_tensors states;
    double lr;
    grd_tensor *rate; /* learning rate as a tensor; NULL if `lr` is to be used */
    /* 1-D tensor with the optimizer's other numbers, e.g. beta1, beta2 and eps. */
    grd_tensor *numbers;
    grd_tensor **next; /* results: next[0] is the new parameter, next[1 + k] the new state k */
};

/* Returns element i of r->numbers. Returns 1 on the meta device, where the value cannot be read. */
static double number(const struct recorded *r, int64_t i)
{
    return !grd_composite_has_values(r->numbers) ? 1 : grd_scalar_double(grd_item(grd_select(r->numbers, 0, i)));
}

static grd_tensor *scaled(grd_tensor *t, double factor)
{
    return grd_mul_scalar(t, grd_float(factor));
}

static grd_tensor *shifted(grd_tensor *t, double term)
{
    return grd_add_scalar(t, grd_float(term));
}

static grd_tensor *divided(grd_tensor *t, double divisor)
{
    return grd_div_scalar(t, grd_float(divisor));
}

/* Returns t * (lr * times / over). lr is the tensor r->rate, or the number r->lr if r->rate is NULL. */
static grd_tensor *times_rate(const struct recorded *r, grd_tensor *t, double times, double over)
{
    return r->rate == NULL ? scaled(t, r->lr * times / over) : grd_mul(divided(scaled(r->rate, times), over), t);
}

/* Returns the new running mean of squares: factor * mean + (1 - factor) * grad^2. */
static grd_tensor *mean_square(const struct recorded *r, grd_tensor *mean, double factor)
{
    return grd_addcmul(scaled(mean, factor), r->grad, r->grad, .value = grd_float(1 - factor));
}

/* Returns the new running mean of gradients: factor * mean + (1 - factor) * grad. */
static grd_tensor *mean_gradient(const struct recorded *r, grd_tensor *mean, double factor)
{
    return grd_lerp(mean, r->grad, grd_number(grd_float(1 - factor)));
}

/* Computes a step of SGD. r->numbers holds momentum, dampening and nesterov. The momentum buffer starts as the detached gradient. */
static void step_sgd(const struct recorded *r)
{
    const double momentum = number(r, 0);
    grd_tensor *slope = r->grad;
    if (momentum != 0) {
        r->next[1] = r->states.n == 0 ? grd_clone(grd_detach(r->grad))
                                      : grd_add(scaled(r->states.data[0], momentum), scaled(r->grad, 1 - number(r, 1)));
        slope = number(r, 2) != 0 ? grd_add(r->grad, scaled(r->next[1], momentum)) : r->next[1];
    }
    r->next[0] = grd_sub(r->param, times_rate(r, slope, 1, 1));
}

static void step_adadelta(const struct recorded *r)
{
    const double rho = number(r, 0), eps = number(r, 1);
    r->next[1] = mean_square(r, r->states.data[0], rho);
    grd_tensor *ratio = grd_div(grd_sqrt(shifted(r->states.data[1], eps)), grd_sqrt(shifted(r->next[1], eps))),
               *delta = grd_mul(ratio, r->grad);
    r->next[2] = grd_addcmul(scaled(r->states.data[1], rho), delta, delta, .value = grd_float(1 - rho));
    r->next[0] = grd_sub(r->param, times_rate(r, delta, 1, 1));
}

static void step_adagrad(const struct recorded *r)
{
    r->next[1] = grd_addcmul(r->states.data[0], r->grad, r->grad);
    r->next[0] = grd_sub(r->param, grd_div(times_rate(r, r->grad, 1, number(r, 1)), shifted(grd_sqrt(r->next[1]), number(r, 0))));
}

static void step_adam(const struct recorded *r)
{
    const double beta1 = number(r, 0), beta2 = number(r, 1), eps = number(r, 2), over = number(r, 3), root = number(r, 4);
    r->next[1] = mean_gradient(r, r->states.data[0], beta1);
    grd_tensor *square = r->next[2] = mean_square(r, r->states.data[1], beta2);
    if (r->states.n > 2) /* if amsgrad */
        square = r->next[3] = grd_maximum(grd_clone(r->states.data[2]), square);
    r->next[0] = grd_sub(r->param, grd_div(times_rate(r, r->next[1], 1, over), shifted(divided(grd_sqrt(square), root), eps)));
}

static void step_adamax(const struct recorded *r)
{
    r->next[1] = mean_gradient(r, r->states.data[0], number(r, 0));
    r->next[2] = grd_maximum(scaled(r->states.data[1], number(r, 1)), shifted(grd_abs(r->grad), number(r, 2)));
    r->next[0] = grd_sub(r->param, grd_div(times_rate(r, r->next[1], 1, number(r, 3)), r->next[2]));
}

static void step_asgd(const struct recorded *r)
{
    const double lambd = number(r, 0), eta = number(r, 1), mu = number(r, 2);
    grd_tensor *moved = grd_sub(scaled(r->param, 1 - lambd * eta), scaled(r->grad, eta)), *mean = r->states.data[0];
    r->next[0] = moved;
    r->next[1] = mu == 1 ? grd_clone(moved) : grd_add(mean, scaled(grd_sub(moved, mean), mu));
}

static void step_nadam(const struct recorded *r)
{
    const double over = number(r, 3), mu = number(r, 4), mu_next = number(r, 5), product = number(r, 6);
    r->next[1] = mean_gradient(r, r->states.data[0], number(r, 0));
    r->next[2] = mean_square(r, r->states.data[1], number(r, 1));
    grd_tensor *divisor = shifted(grd_sqrt(divided(r->next[2], over)), number(r, 2));
    grd_tensor *moved = grd_sub(r->param, grd_div(times_rate(r, r->grad, 1 - mu, 1 - product), divisor));
    r->next[0] = grd_sub(moved, grd_div(times_rate(r, r->next[1], mu_next, 1 - product * mu_next), divisor));
}

static void step_radam(const struct recorded *r)
{
    const double eps = number(r, 2), over = number(r, 3), factor = number(r, 4);
    r->next[1] = mean_gradient(r, r->states.data[0], number(r, 0));
    r->next[2] = mean_square(r, r->states.data[1], number(r, 1));
    grd_tensor *update = divided(r->next[1], over);
    if (factor != 0)
        update = grd_div(scaled(update, factor), shifted(grd_sqrt(r->next[2]), eps));
    r->next[0] = grd_sub(r->param, times_rate(r, update, 1, 1));
}

/* Computes a step of RMSprop. r->states holds the running mean of squares, then the momentum buffer if momentum is not 0, then the running mean of
 * gradients if the optimizer is centered. */
static void step_rmsprop(const struct recorded *r)
{
    const double alpha = number(r, 0), eps = number(r, 1), momentum = number(r, 2);
    const bool moving = momentum > 0 && r->states.n > 1;
    const int64_t centered = moving ? 2 : 1;
    grd_tensor *square = r->next[1] = mean_square(r, r->states.data[0], alpha);
    if (r->states.n > centered) {
        grd_tensor *mean = r->next[centered + 1] = mean_gradient(r, r->states.data[centered], alpha);
        square = grd_addcmul(square, mean, mean, .value = grd_int(-1));
    }
    grd_tensor *direction = grd_div(r->grad, shifted(grd_sqrt(square), eps));
    if (moving)
        direction = r->next[2] = grd_add(scaled(r->states.data[1], momentum), direction);
    r->next[0] = grd_sub(r->param, times_rate(r, direction, 1, 1));
}

static void step_rprop(const struct recorded *r)
{
    grd_tensor *agreement = grd_mul(r->grad, r->states.data[0]), *turned = grd_lt_scalar(agreement, grd_int(0));
    grd_tensor *grown = grd_masked_fill(grd_ones_like(r->grad), grd_gt_scalar(agreement, grd_int(0)), grd_float(number(r, 1)));
    grd_tensor *factor = grd_masked_fill(grown, turned, grd_float(number(r, 0)));
    r->next[2] = grd_clamp(grd_mul(r->states.data[1], factor), .min = grd_float(number(r, 2)), .max = grd_float(number(r, 3)));
    r->next[1] = grd_where(turned, grd_zeros_like(r->grad), r->grad);
    r->next[0] = grd_sub(r->param, grd_mul(grd_sign(r->next[1]), r->next[2]));
}

static const struct {
    const char *name;
    void (*step)(const struct recorded *r);
    int least, most, numbers; /* least and most: range of the number of states; numbers: least length of r->numbers */
} OPTIMIZERS[] = {
    {"sgd", step_sgd, 0, 1, 3},     {"adadelta", step_adadelta, 2, 2, 2}, {"adagrad", step_adagrad, 1, 1, 2},
    {"adam", step_adam, 2, 3, 5},   {"adamax", step_adamax, 2, 2, 4},     {"asgd", step_asgd, 1, 1, 3},
    {"nadam", step_nadam, 2, 2, 7}, {"radam", step_radam, 2, 2, 5},       {"rmsprop", step_rmsprop, 1, 3, 3},
    {"rprop", step_rprop, 2, 2, 4},
};

/* Applies weight decay: adds a multiple of the parameter to the gradient or, if `decoupled`, shrinks the parameter. The
 * weight decay is the tensor `decay`, or the number `weight_decay` if `decay` is NULL. */
static void decay_weights(struct recorded *r, double weight_decay, grd_tensor *decay, bool decoupled)
{
    if (decoupled && r->rate == NULL && decay == NULL)
        r->param = scaled(r->param, 1 - r->lr * weight_decay);
    else if (decoupled)
        r->param = grd_mul(r->param,
                           grd_rsub_scalar(times_rate(r, decay != NULL ? decay : grd_number(grd_float(weight_decay)), 1, 1), grd_int(1)));
    else
        r->grad = grd_add(r->grad, decay != NULL ? grd_mul(decay, r->param) : scaled(r->param, weight_decay));
}

grd_tensors op_hidden_recorded_step(grd_tensor *self, grd_tensor *grad, grd_tensors states, const char *optimizer, double lr,
                                    grd_tensor *rate, double weight_decay, grd_tensor *decay, bool maximize, bool decoupled,
                                    grd_tensor *numbers)
{
    size_t i = 0;
    while (i < sizeof OPTIMIZERS / sizeof *OPTIMIZERS && strcmp(OPTIMIZERS[i].name, optimizer) != 0)
        i++;
    if (i == sizeof OPTIMIZERS / sizeof *OPTIMIZERS) {
        grd_raise(GRD_ERROR_RUNTIME, "there is no recorded step of the optimizer '%s', only of " GRD_WORDS_HIDDEN_RECORDED_STEP_OPTIMIZER,
                  optimizer);
        return (grd_tensors){0};
    }
    if (states.n < OPTIMIZERS[i].least || states.n > OPTIMIZERS[i].most || numbers->numel < OPTIMIZERS[i].numbers) {
        grd_raise(GRD_ERROR_RUNTIME, "a recorded step of '%s' takes %d to %d states and %d numbers, not %lld and %lld", optimizer,
                  OPTIMIZERS[i].least, OPTIMIZERS[i].most, OPTIMIZERS[i].numbers, (long long)states.n, (long long)numbers->numel);
        return (grd_tensors){0};
    }
    struct recorded r = {self, maximize ? grd_neg(grad) : grad, states, lr, rate, numbers, grd_pool_array(states.n + 2, sizeof *r.next)};
    if (r.next == NULL)
        return (grd_tensors){0};
    for (int64_t k = 0; k < states.n; k++)
        r.next[k + 1] = states.data[k];
    r.next[states.n + 1] = NULL;
    if (weight_decay != 0 || decay != NULL)
        decay_weights(&r, weight_decay, decay, decoupled);
    OPTIMIZERS[i].step(&r);
    /* The results are the parameter and its states. One more result, if any, is the momentum buffer that sgd has created in its first step. */
    return grd_list_made(r.next, states.n + 1 + (r.next[states.n + 1] != NULL));
}
