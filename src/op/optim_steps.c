/* Runs in-place steps of the optimizers. Each function describes the tensors and numbers of one optimizer and calls grd_optim_run(). Formulas:
 * schema/optim.toml. Loops: kernel/cpu/optim.c.
 *
 * A function <name>_at sets the numeric arguments of the kernel for one parameter. values[0] is the step count of the parameter and
 * starts at 1. */
#include <math.h>

#include "gen/uses/op/optim_steps.h"
#include "op/optim.h"

/* Returns the numeric arguments that the kernels of all optimizers have. A decoupled weight decay shrinks the parameter instead of adding to the
 * gradient. */
static struct grd_optim_numbers common(double lr, double weight_decay, bool maximize, bool decoupled)
{
    return (struct grd_optim_numbers){lr, decoupled ? 0 : weight_decay, decoupled ? 1 - lr * weight_decay : 1, maximize};
}

/* ---- SGD ----------------------------------------------------------------------------------------------------------------------- */

static const struct grd_optimizer sgd = {
    .kind = GRD_OPTIMIZER_sgd, .lists = {"params", "grads", "momentum_buffers"}, .nlists = 3, .noptional = 1};

grd_tensors op_sgd_step(grd_tensors params, grd_tensors grads, grd_tensors momentum_buffers, double lr, double momentum, double dampening,
                        double weight_decay, bool nesterov, bool maximize, bool first)
{
    struct grd_sgd_numbers x = {common(lr, weight_decay, maximize, false), momentum, dampening, nesterov, first};
    return grd_optim_run(&(struct grd_optim_step){&sgd, {params, grads, momentum_buffers}, {{0}}, &x});
}

/* ---- Adam ---------------------------------------------------------------------------------------------------------------------- */

struct adam {
    struct grd_adam_numbers x;
    double lr;
};

static void adam_at(void *numbers, double *values)
{
    struct adam *a = numbers;
    a->x.common.lr = a->lr / (1 - pow(a->x.beta1, values[0]));
    a->x.correction = sqrt(1 - pow(a->x.beta2, values[0]));
}

static const struct grd_optimizer adam = {.kind = GRD_OPTIMIZER_adam,
                                          .lists = {"params", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
                                          .nlists = 5,
                                          .noptional = 1,
                                          .values = {"steps"},
                                          .nvalues = 1,
                                          .set_numbers = adam_at};

grd_tensors op_adam_step(grd_tensors params, grd_tensors grads, grd_tensors exp_avgs, grd_tensors exp_avg_sqs, grd_tensors max_exp_avg_sqs,
                         grd_tensors steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                         bool maximize, bool decoupled)
{
    struct grd_optimizer optimizer = adam;
    optimizer.noptional = !amsgrad;
    struct adam a = {{common(lr, weight_decay, maximize, decoupled), beta1, beta2, eps, 1}, lr};
    return grd_optim_run(&(struct grd_optim_step){
        &optimizer, {params, grads, exp_avgs, exp_avg_sqs, amsgrad ? max_exp_avg_sqs : (grd_tensors){0}}, {steps}, &a});
}

/* ---- Adadelta ------------------------------------------------------------------------------------------------------------------ */

static const struct grd_optimizer adadelta = {.kind = GRD_OPTIMIZER_adadelta,
                                              .lists = {"params", "grads", "square_avgs", "acc_deltas"},
                                              .nlists = 4,
                                              .values = {"steps"},
                                              .nvalues = 1};

grd_tensors op_adadelta_step(grd_tensors params, grd_tensors grads, grd_tensors square_avgs, grd_tensors acc_deltas, grd_tensors steps,
                             double lr, double rho, double eps, double weight_decay, bool maximize)
{
    struct grd_adadelta_numbers x = {common(lr, weight_decay, maximize, false), rho, eps};
    return grd_optim_run(&(struct grd_optim_step){&adadelta, {params, grads, square_avgs, acc_deltas}, {steps}, &x});
}

/* ---- Adagrad ------------------------------------------------------------------------------------------------------------------- */

struct adagrad {
    struct grd_adagrad_numbers x;
    double lr, lr_decay;
};

static void adagrad_at(void *numbers, double *values)
{
    struct adagrad *a = numbers;
    a->x.common.lr = a->lr / (1 + (values[0] - 1) * a->lr_decay);
}

static const struct grd_optimizer adagrad = {.kind = GRD_OPTIMIZER_adagrad,
                                             .lists = {"params", "grads", "state_sums"},
                                             .nlists = 3,
                                             .values = {"steps"},
                                             .nvalues = 1,
                                             .set_numbers = adagrad_at};

grd_tensors op_adagrad_step(grd_tensors params, grd_tensors grads, grd_tensors state_sums, grd_tensors steps, double lr, double lr_decay,
                            double eps, double weight_decay, bool maximize)
{
    struct adagrad a = {{common(lr, weight_decay, maximize, false), eps}, lr, lr_decay};
    return grd_optim_run(&(struct grd_optim_step){&adagrad, {params, grads, state_sums}, {steps}, &a});
}

/* ---- Adamax -------------------------------------------------------------------------------------------------------------------- */

struct adamax {
    struct grd_adamax_numbers x;
    double lr;
};

static void adamax_at(void *numbers, double *values)
{
    struct adamax *a = numbers;
    a->x.common.lr = a->lr / (1 - pow(a->x.beta1, values[0]));
}

static const struct grd_optimizer adamax = {.kind = GRD_OPTIMIZER_adamax,
                                            .lists = {"params", "grads", "exp_avgs", "exp_infs"},
                                            .nlists = 4,
                                            .values = {"steps"},
                                            .nvalues = 1,
                                            .set_numbers = adamax_at};

grd_tensors op_adamax_step(grd_tensors params, grd_tensors grads, grd_tensors exp_avgs, grd_tensors exp_infs, grd_tensors steps, double lr,
                           double beta1, double beta2, double eps, double weight_decay, bool maximize)
{
    struct adamax a = {{common(lr, weight_decay, maximize, false), beta1, beta2, eps}, lr};
    return grd_optim_run(&(struct grd_optim_step){&adamax, {params, grads, exp_avgs, exp_infs}, {steps}, &a});
}

/* ---- ASGD ---------------------------------------------------------------------------------------------------------------------- */

struct asgd {
    struct grd_asgd_numbers x;
    double lr, lambd, alpha, t0;
};

/* Sets the numeric arguments of the kernel for an ASGD step. `values` has the step count, eta (learning rate) and mu (weight of the new parameter
 * in the average). This step uses eta and mu that the previous step has stored, and stores eta and mu for the next step. */
static void asgd_at(void *numbers, double *values)
{
    struct asgd *a = numbers;
    a->x.common.lr = values[1];
    a->x.kept = 1 - a->lambd * values[1];
    a->x.mu = values[2];
    values[1] = a->lr / pow(1 + a->lambd * a->lr * values[0], a->alpha);
    values[2] = 1 / fmax(1, values[0] - a->t0);
}

static const struct grd_optimizer asgd = {.kind = GRD_OPTIMIZER_asgd,
                                          .lists = {"params", "grads", "axs"},
                                          .nlists = 3,
                                          .values = {"steps", "etas", "mus"},
                                          .nvalues = 3,
                                          .set_numbers = asgd_at};

grd_tensors op_asgd_step(grd_tensors params, grd_tensors grads, grd_tensors axs, grd_tensors steps, grd_tensors etas, grd_tensors mus,
                         double lr, double lambd, double alpha, double t0, double weight_decay, bool maximize)
{
    struct asgd a = {{common(lr, weight_decay, maximize, false), 1, 1}, lr, lambd, alpha, t0};
    return grd_optim_run(&(struct grd_optim_step){&asgd, {params, grads, axs}, {steps, etas, mus}, &a});
}

/* ---- NAdam --------------------------------------------------------------------------------------------------------------------- */

struct nadam {
    struct grd_nadam_numbers x;
    double lr, momentum_decay;
    bool single; /* the product of the momenta is stored in float32, so it is rounded after each step */
};

/* Returns the momentum of a step: beta1 * (1 - 0.5 * 0.96^(step * momentum_decay)). */
static double nadam_momentum(const struct nadam *a, double step)
{
    return a->x.beta1 * (1 - 0.5 * pow(0.96, step * a->momentum_decay));
}

/* Sets the numeric arguments of the kernel for a NAdam step. `values` has the step count, and the product of the momenta of all steps so far. */
static void nadam_at(void *numbers, double *values)
{
    struct nadam *a = numbers;
    const double momentum = nadam_momentum(a, values[0]), next = nadam_momentum(a, values[0] + 1);
    values[1] = a->single ? (double)((float)values[1] * (float)momentum) : values[1] * momentum;
    a->x.correction = 1 - pow(a->x.beta2, values[0]);
    a->x.grad_factor = -a->lr * (1 - momentum) / (1 - values[1]);
    a->x.mean_factor = -a->lr * next / (1 - values[1] * next);
}

static const struct grd_optimizer nadam = {.kind = GRD_OPTIMIZER_nadam,
                                           .lists = {"params", "grads", "exp_avgs", "exp_avg_sqs"},
                                           .nlists = 4,
                                           .values = {"steps", "mu_products"},
                                           .nvalues = 2,
                                           .set_numbers = nadam_at};

grd_tensors op_nadam_step(grd_tensors params, grd_tensors grads, grd_tensors exp_avgs, grd_tensors exp_avg_sqs, grd_tensors steps,
                          grd_tensors mu_products, double lr, double beta1, double beta2, double eps, double weight_decay,
                          double momentum_decay, bool maximize, bool decoupled)
{
    const bool single = mu_products.n > 0 && mu_products.data[0]->dtype == GRD_FLOAT32;
    struct nadam a = {{common(lr, weight_decay, maximize, decoupled), beta1, beta2, eps, 1, 0, 0}, lr, momentum_decay, single};
    return grd_optim_run(&(struct grd_optim_step){&nadam, {params, grads, exp_avgs, exp_avg_sqs}, {steps, mu_products}, &a});
}

/* ---- RAdam --------------------------------------------------------------------------------------------------------------------- */

static void radam_at(void *numbers, double *values)
{
    struct grd_radam_numbers *x = numbers;
    const double step = values[0], power = pow(x->beta2, step), most = 2 / (1 - x->beta2) - 1;
    const double length = most - 2 * step * power / (1 - power); /* length of the running mean, in steps (rho_t in the RAdam paper) */
    x->correction = 1 - pow(x->beta1, step);
    x->root = sqrt(1 - power);
    x->adaptive = length > 5;
    x->rectified = x->adaptive ? sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) : 1;
}

static const struct grd_optimizer radam = {.kind = GRD_OPTIMIZER_radam,
                                           .lists = {"params", "grads", "exp_avgs", "exp_avg_sqs"},
                                           .nlists = 4,
                                           .values = {"steps"},
                                           .nvalues = 1,
                                           .set_numbers = radam_at};

grd_tensors op_radam_step(grd_tensors params, grd_tensors grads, grd_tensors exp_avgs, grd_tensors exp_avg_sqs, grd_tensors steps,
                          double lr, double beta1, double beta2, double eps, double weight_decay, bool maximize, bool decoupled)
{
    struct grd_radam_numbers x = {common(lr, weight_decay, maximize, decoupled), beta1, beta2, eps, 1, false, 1, 1};
    return grd_optim_run(&(struct grd_optim_step){&radam, {params, grads, exp_avgs, exp_avg_sqs}, {steps}, &x});
}

/* ---- RMSprop ------------------------------------------------------------------------------------------------------------------- */

static const struct grd_optimizer rmsprop = {.kind = GRD_OPTIMIZER_rmsprop,
                                             .lists = {"params", "grads", "square_avgs", "momentum_buffers", "grad_avgs"},
                                             .nlists = 5,
                                             .noptional = 2,
                                             .values = {"steps"},
                                             .nvalues = 1};

grd_tensors op_rmsprop_step(grd_tensors params, grd_tensors grads, grd_tensors square_avgs, grd_tensors momentum_buffers,
                            grd_tensors grad_avgs, grd_tensors steps, double lr, double alpha, double eps, double weight_decay,
                            double momentum, bool maximize)
{
    struct grd_rmsprop_numbers x = {common(lr, weight_decay, maximize, false), alpha, eps, momentum};
    return grd_optim_run(&(struct grd_optim_step){&rmsprop, {params, grads, square_avgs, momentum_buffers, grad_avgs}, {steps}, &x});
}

/* ---- Rprop --------------------------------------------------------------------------------------------------------------------- */

static const struct grd_optimizer rprop = {
    .kind = GRD_OPTIMIZER_rprop, .lists = {"params", "grads", "prevs", "step_sizes"}, .nlists = 4, .values = {"steps"}, .nvalues = 1};

grd_tensors op_rprop_step(grd_tensors params, grd_tensors grads, grd_tensors prevs, grd_tensors step_sizes, grd_tensors steps,
                          double etaminus, double etaplus, double step_size_min, double step_size_max, bool maximize)
{
    struct grd_rprop_numbers x = {common(0, 0, maximize, false), etaminus, etaplus, step_size_min, step_size_max};
    return grd_optim_run(&(struct grd_optim_step){&rprop, {params, grads, prevs, step_sizes}, {steps}, &x});
}
