/* Optimizer steps over lists of tensors: checks, temporaries where tensors are not laid out alike, and the loops in pieces of fixed size.
 *
 * Invariants: every check and allocation comes before the first write; what is written is divided at fixed places, so that the bits do not
 * depend on the number of threads. */
#include "kernel/optim.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/optim.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/copy.h"

enum { GRAIN = 16 * 1024, ROLES = 5 };

/* The tensors that belong to one parameter: itself, its gradient, its state. NULL: there is no such state. */
enum { PARAM, GRAD, STATE };
struct group {
    grd_tensor *original[ROLES];
    grd_tensor *near[ROLES];    /* the same elements for the kernel: of one dtype and layout, on the cpu */
    grd_tensor *rounded[ROLES]; /* on their way to another device: room for elements of the original's dtype */
};

struct step {
    grd_tensors lists[ROLES]; /* by role */
    const char *names[ROLES];
    int nroles, first_optional; /* from there on a list may be empty */
    struct group *groups;
    int64_t n;
};

/* ---- Checks ------------------------------------------------------------------------------------------------------------------- */

static bool check_dtype(grd_dtype dtype)
{
    const enum grd_category category = grd_category_of(dtype);
    return (category == GRD_CATEGORY_COMPLEX || category == GRD_CATEGORY_FLOAT) && dtype != GRD_FLOAT8_E4M3FN && dtype != GRD_FLOAT8_E5M2
               ? true
               : grd_raise(GRD_ERROR_RUNTIME, "parameters must be floating point or complex, not %s", grd_dtype_name(dtype));
}

static bool check_alike(const grd_tensor *param, const grd_tensor *t, const char *name, int64_t i)
{
    if (t->dtype != param->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s[%lld] has dtype %s where the parameter has %s", name, (long long)i,
                         grd_dtype_name((grd_dtype)t->dtype), grd_dtype_name((grd_dtype)param->dtype));
    if (!grd_same_sizes(t, grd_dims_from(param->sizes, param->ndim)))
        return grd_raise(GRD_ERROR_RUNTIME, "%s[%lld] has sizes %s where the parameter has %s", name, (long long)i,
                         grd_list_text(grd_sizes(t)), grd_list_text(grd_sizes(param)));
    return grd_check_same_device(grd_tensors((grd_tensor *)(uintptr_t)param, (grd_tensor *)(uintptr_t)t));
}

static bool check_lists(const struct step *s)
{
    for (int role = GRAD; role < s->nroles; role++)
        if (s->lists[role].n != s->n && !(role >= s->first_optional && s->lists[role].n == 0))
            return grd_raise(GRD_ERROR_RUNTIME, "%s has %lld tensors for %lld parameters", s->names[role], (long long)s->lists[role].n,
                             (long long)s->n);
    for (int64_t i = 0; i < s->n; i++) {
        const grd_tensor *param = s->lists[PARAM].data[i];
        if (!check_dtype((grd_dtype)param->dtype))
            return false;
        for (int role = PARAM; role < s->nroles; role++) {
            if (s->lists[role].n == 0)
                continue;
            const grd_tensor *t = s->lists[role].data[i];
            if (!check_alike(param, t, s->names[role], i) || (role != GRAD && !grd_check_no_internal_overlap(t)))
                return false;
        }
    }
    return true;
}

/* ---- There and back ------------------------------------------------------------------------------------------------------------- */

/* The kernels have float32 and float64; numbers come in pairs in complex tensors. */
static grd_dtype computed_in(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 ? GRD_FLOAT32 : dtype;
}

/* Whether the kernel can run over the memory of the tensors as it lies. */
static bool are_alike(const struct group *g, int nroles)
{
    const grd_tensor *param = g->original[PARAM];
    const grd_dims sizes = grd_dims_from(param->sizes, param->ndim);
    if (grd_is_extra(grd_device_of(param)) || computed_in((grd_dtype)param->dtype) != (grd_dtype)param->dtype ||
        !grd_shape_is_dense(sizes, param->strides))
        return false;
    for (int role = GRAD; role < nroles; role++) {
        const grd_tensor *t = g->original[role];
        for (int i = 0; t != NULL && i < param->ndim; i++)
            if (t->strides[i] != param->strides[i] && param->sizes[i] != 1)
                return false;
    }
    return true;
}

static bool bring_near(struct group *g, int nroles)
{
    const bool alike = are_alike(g, nroles);
    for (int role = PARAM; role < nroles && !grd_pending(); role++) {
        grd_tensor *t = g->original[role];
        if (t == NULL || alike) {
            g->near[role] = t;
            continue;
        }
        const grd_tensor *here = grd_on_cpu(t);
        if (!grd_pending())
            g->near[role] = grd_clone_contiguous(here, computed_in((grd_dtype)t->dtype));
        if (!grd_pending() && grd_is_extra(grd_device_of(t)))
            g->rounded[role] = grd_new(grd_sizes(t), (grd_dtype)t->dtype, GRD_CPU);
    }
    return !grd_pending();
}

static void put_back(struct group *g, int nroles)
{
    for (int role = PARAM; role < nroles; role++) {
        grd_tensor *t = g->original[role], *near = g->near[role];
        if (t == NULL || role == GRAD)
            continue;
        if (g->rounded[role] != NULL && grd_copy_elements(g->rounded[role], near))
            grd_transfer(t, g->rounded[role]);
        else if (near != t)
            grd_copy_elements(t, near);
        grd_bump_version(t);
    }
}

/* False, with the error raised, unless every parameter and what belongs to it is at hand. */
static bool prepare(struct step *s)
{
    s->n = s->lists[PARAM].n;
    if (!check_lists(s))
        return false;
    s->groups = grd_pool_array(s->n + 1, sizeof *s->groups);
    if (s->groups == NULL)
        return false;
    memset(s->groups, 0, (size_t)s->n * sizeof *s->groups);
    for (int64_t i = 0; i < s->n; i++) {
        for (int role = PARAM; role < s->nroles; role++)
            s->groups[i].original[role] = s->lists[role].n > 0 ? s->lists[role].data[i] : NULL;
        if (!grd_is_meta(s->groups[i].original[PARAM]) && !bring_near(&s->groups[i], s->nroles))
            return false;
    }
    return true;
}

/* ---- The loops ---------------------------------------------------------------------------------------------------------------------- */

/* One parameter with the numbers of its step, one of the two. */
struct work {
    const struct group *group;
    const struct grd_sgd_numbers *sgd;
    const struct grd_adam_numbers *adam;
    const struct grd_optim_row *kernels;
    int64_t itemsize; /* of what the kernel counts: half a complex number */
};

static void run_piece(int64_t begin, int64_t end, void *context)
{
    const struct work *w = context;
    const int64_t offset = begin * w->itemsize;
    grd_tensor *const *near = w->group->near;
    struct grd_optim_block block = {.n = end - begin, .param = near[PARAM]->data + offset, .grad = near[GRAD]->data + offset};
    for (int role = STATE; role < ROLES; role++)
        block.state[role - STATE] = near[role] != NULL ? near[role]->data + offset : NULL;
    if (w->sgd != NULL)
        w->kernels->sgd(&block, w->sgd);
    else
        w->kernels->adam(&block, w->adam);
}

static void run(struct step *s, int64_t i, const struct grd_sgd_numbers *sgd, const struct grd_adam_numbers *adam)
{
    struct group *group = &s->groups[i];
    const grd_tensor *param = group->near[PARAM];
    if (param == NULL)
        return;
    const bool pairs = grd_dtype_is_complex((grd_dtype)param->dtype);
    const grd_dtype real = grd_dtype_to_real((grd_dtype)param->dtype);
    struct work work = {group, sgd, adam, grd_kernels->optim[real], grd_dtype_size(real)};
    grd_parallel_for(0, param->numel * (pairs ? 2 : 1), GRAIN, run_piece, &work);
    put_back(group, s->nroles);
}

grd_tensors op_hidden_sgd_step(grd_tensors params, grd_tensors grads, grd_tensors momentum_buffers, double lr, double momentum,
                               double dampening, double weight_decay, bool nesterov, bool maximize, bool first)
{
    struct step s = {{params, grads, momentum_buffers}, {"params", "grads", "momentum_buffers"}, 3, STATE, NULL, 0};
    const struct grd_sgd_numbers numbers = {lr, momentum, dampening, weight_decay, nesterov, maximize, first};
    if (!prepare(&s))
        return (grd_tensors){0};
    for (int64_t i = 0; i < s.n; i++)
        run(&s, i, &numbers, NULL);
    return params;
}

/* ---- Adam ------------------------------------------------------------------------------------------------------------------------------ */

static bool check_steps(grd_tensors steps, int64_t n)
{
    if (steps.n != n)
        return grd_raise(GRD_ERROR_RUNTIME, "steps has %lld tensors for %lld parameters", (long long)steps.n, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const grd_tensor *step = steps.data[i];
        if (step->numel != 1 || grd_category_of((grd_dtype)step->dtype) != GRD_CATEGORY_FLOAT)
            return grd_raise(GRD_ERROR_RUNTIME, "steps[%lld] must be one floating point number", (long long)i);
    }
    return true;
}

/* Adds 1 to a counter that is at hand, and returns it. */
static double advance(grd_tensor *step, grd_tensor *near)
{
    const double count = grd_scalar_double(grd_scalar_read(near->data, (grd_dtype)near->dtype)) + 1;
    grd_scalar_write(grd_float(count), (grd_dtype)near->dtype, near->data);
    if (near != step)
        grd_transfer(step, near);
    grd_bump_version(step);
    return count;
}

grd_tensors op_hidden_adam_step(grd_tensors params, grd_tensors grads, grd_tensors exp_avgs, grd_tensors exp_avg_sqs,
                                grd_tensors max_exp_avg_sqs, grd_tensors steps, double lr, double beta1, double beta2, double weight_decay,
                                double eps, bool amsgrad, bool maximize, bool decoupled)
{
    const grd_tensors none = {0};
    struct step s = {{params, grads, exp_avgs, exp_avg_sqs, amsgrad ? max_exp_avg_sqs : none},
                     {"params", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
                     ROLES,
                     amsgrad ? ROLES : ROLES - 1,
                     NULL,
                     0};
    struct grd_adam_numbers numbers = {.weight_decay = decoupled ? 0 : weight_decay,
                                       .shrink = decoupled ? 1 - lr * weight_decay : 1,
                                       .beta1 = beta1,
                                       .beta2 = beta2,
                                       .eps = eps,
                                       .maximize = maximize};
    if (!check_steps(steps, params.n) || !prepare(&s))
        return none;
    grd_tensor **counters = grd_pool_array(s.n + 1, sizeof *counters);
    for (int64_t i = 0; i < s.n && !grd_pending(); i++)
        counters[i] = s.groups[i].near[PARAM] == NULL ? NULL : grd_on_cpu(steps.data[i]);
    if (grd_pending())
        return none;
    for (int64_t i = 0; i < s.n; i++) {
        if (counters[i] == NULL)
            continue;
        const double count = advance(steps.data[i], counters[i]);
        numbers.step_size = lr / (1 - pow(beta1, count));
        numbers.correction = sqrt(1 - pow(beta2, count));
        run(&s, i, NULL, &numbers);
    }
    return params;
}
