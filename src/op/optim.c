/* Runs optimizer steps over lists of tensors. This file checks the arguments, makes temporaries for tensors that do not have the same layout, and
 * loops over the elements in parallel. The arguments of each optimizer are in optim_steps.c, and the update of elements is in kernel/cpu/optim.c.
 *
 * Invariants: every check and allocation is done before the first write. The work is divided at fixed positions, so that the bits do not depend on
 * the number of threads. */
#include "op/optim.h"

#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/optim.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "op/checks.h"
#include "op/dtypes.h"
#include "op/sizes.h"
#include "core/iter.h"

/* Number of elements per task. */
enum { GRAIN = 16 * 1024 };

/* Tensors of one parameter, indexed by role: the parameter, its gradient, and its states. An element is NULL if the optimizer has no such state. */
struct group {
    /* Tensors that the caller passed. */
    grd_tensor *original[GRD_OPTIM_ROLES];
    /* Tensors for the kernel, with the elements of `original`. They are on the CPU and have one dtype and one layout. A tensor of `original` that can
     * be used in place is its own operand. */
    grd_tensor *operand[GRD_OPTIM_ROLES];
    /* For a parameter on a plug-in's device: CPU tensors of the original's dtype, into which results are rounded before they are transferred to the
     * device. NULL for a parameter on the CPU. */
    grd_tensor *rounded[GRD_OPTIM_ROLES];
    grd_tensor *values[GRD_OPTIM_VALUES]; /* scalar states, e.g. the step count, as CPU tensors of one element */
};

/* One call of grd_optim_run(): its arguments, and one struct group for each of its n parameters. */
struct step {
    const struct grd_optim_step *call;
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

static bool check_same_shape(const grd_tensor *param, const grd_tensor *t, const char *name, int64_t i)
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
    const int first_optional = s->call->optimizer->nlists - s->call->optimizer->noptional;
    for (int role = GRD_OPTIM_GRAD; role < s->call->optimizer->nlists; role++)
        if (s->call->lists[role].n != s->n && !(role >= first_optional && s->call->lists[role].n == 0))
            return grd_raise(GRD_ERROR_RUNTIME, "%s has %lld tensors for %lld parameters", s->call->optimizer->lists[role],
                             (long long)s->call->lists[role].n, (long long)s->n);
    for (int64_t i = 0; i < s->n; i++) {
        const grd_tensor *param = s->call->lists[GRD_OPTIM_PARAM].data[i];
        if (!check_dtype((grd_dtype)param->dtype))
            return false;
        for (int role = GRD_OPTIM_PARAM; role < s->call->optimizer->nlists; role++) {
            if (s->call->lists[role].n == 0)
                continue;
            const grd_tensor *t = s->call->lists[role].data[i];
            if (!check_same_shape(param, t, s->call->optimizer->lists[role], i) ||
                (role != GRD_OPTIM_GRAD && !grd_check_no_internal_overlap(t)))
                return false;
        }
    }
    return true;
}

static bool check_values(const struct step *s)
{
    for (int k = 0; k < s->call->optimizer->nvalues; k++) {
        const grd_tensors values = s->call->values[k];
        const char *name = s->call->optimizer->values[k];
        if (values.n != s->n)
            return grd_raise(GRD_ERROR_RUNTIME, "%s has %lld tensors for %lld parameters", name, (long long)values.n, (long long)s->n);
        for (int64_t i = 0; i < s->n; i++)
            if (values.data[i]->numel != 1 || grd_category_of((grd_dtype)values.data[i]->dtype) != GRD_CATEGORY_FLOAT)
                return grd_raise(GRD_ERROR_RUNTIME, "%s[%lld] must be one floating point number", name, (long long)i);
    }
    return true;
}

/* ---- Operands of the kernel ------------------------------------------------------------------------------------------------------------- */

/* True if the kernel can run in place over a parameter, its gradient and its states. These tensors must be on the CPU and dense, have equal
 * strides, and have a dtype in which the kernel computes. */
static bool have_one_layout(const struct group *g, int nroles)
{
    const grd_tensor *param = g->original[GRD_OPTIM_PARAM];
    const grd_dims sizes = grd_dims_from(param->sizes, param->ndim);
    if (grd_is_extra(grd_device_of(param)) || grd_computed_dtype((grd_dtype)param->dtype) != (grd_dtype)param->dtype ||
        !grd_shape_is_dense(sizes, param->strides))
        return false;
    for (int role = GRD_OPTIM_GRAD; role < nroles; role++) {
        const grd_tensor *t = g->original[role];
        for (int i = 0; t != NULL && i < param->ndim; i++)
            if (t->strides[i] != param->strides[i] && param->sizes[i] != 1)
                return false;
    }
    return true;
}

/* Sets g->operand and g->rounded for the parameter, the gradient and each state. Tensors that the kernel cannot use in place are copied. Returns
 * false with an error if a copy fails. */
static bool make_operands(struct group *g, int nroles)
{
    const bool one_layout = have_one_layout(g, nroles);
    for (int role = GRD_OPTIM_PARAM; role < nroles && !grd_pending(); role++) {
        grd_tensor *t = g->original[role];
        if (t == NULL || one_layout) {
            g->operand[role] = t;
            continue;
        }
        const grd_tensor *here = grd_on_cpu(t);
        if (!grd_pending())
            g->operand[role] = grd_clone_contiguous(here, grd_computed_dtype((grd_dtype)t->dtype));
        if (!grd_pending() && grd_is_extra(grd_device_of(t)))
            g->rounded[role] = grd_new(grd_sizes(t), (grd_dtype)t->dtype, GRD_CPU);
    }
    return !grd_pending();
}

/* Copies the kernel's results to the parameter and its states if the kernel has not updated them in place. Marks the parameter and its states as
 * changed. */
static void put_back(struct group *g, int nroles)
{
    for (int role = GRD_OPTIM_PARAM; role < nroles; role++) {
        grd_tensor *t = g->original[role], *operand = g->operand[role];
        if (t == NULL || role == GRD_OPTIM_GRAD)
            continue;
        if (g->rounded[role] != NULL && grd_copy_elements(g->rounded[role], operand))
            grd_transfer(t, g->rounded[role]);
        else if (operand != t)
            grd_copy_elements(t, operand);
        grd_bump_version(t);
    }
}

/* Sets group->values, the scalar states of parameter i (e.g. its step count). These are the caller's tensors if they are on the CPU, otherwise copies
 * on the CPU. Returns false if an error is pending. */
static bool bring_values(const struct grd_optim_step *call, struct group *group, int64_t i)
{
    for (int k = 0; k < call->optimizer->nvalues && !grd_pending(); k++)
        group->values[k] = grd_on_cpu(call->values[k].data[i]);
    return !grd_pending();
}

/* Checks the arguments and prepares the tensors of every parameter for the kernel. Returns false, with the error raised, on failure. */
static bool prepare(struct step *s)
{
    s->n = s->call->lists[GRD_OPTIM_PARAM].n;
    if (!check_values(s) || !check_lists(s))
        return false;
    s->groups = grd_pool_array(s->n + 1, sizeof *s->groups);
    if (s->groups == NULL)
        return false;
    memset(s->groups, 0, (size_t)s->n * sizeof *s->groups);
    for (int64_t i = 0; i < s->n; i++) {
        for (int role = GRD_OPTIM_PARAM; role < s->call->optimizer->nlists; role++)
            s->groups[i].original[role] = s->call->lists[role].n > 0 ? s->call->lists[role].data[i] : NULL;
        if (!grd_is_meta(s->groups[i].original[GRD_OPTIM_PARAM]) &&
            !(make_operands(&s->groups[i], s->call->optimizer->nlists) && bring_values(s->call, &s->groups[i], i)))
            return false;
    }
    return true;
}

/* ---- The loops ---------------------------------------------------------------------------------------------------------------------- */

/* Arguments of run_piece(), which runs in parallel. */
struct work {
    const struct step *step;
    const struct group *group;
    const struct grd_optim_row *kernels;
    int64_t itemsize; /* bytes of an element for the kernel; a complex number counts as two elements */
};

/* Updates the elements [begin, end) of one parameter. */
static void run_piece(int64_t begin, int64_t end, void *context)
{
    const struct work *w = context;
    const int64_t offset = begin * w->itemsize;
    grd_tensor *const *operand = w->group->operand;
    struct grd_optim_block block = {.kind = w->step->call->optimizer->kind,
                                    .n = end - begin,
                                    .param = operand[GRD_OPTIM_PARAM]->data + offset,
                                    .grad = operand[GRD_OPTIM_GRAD]->data + offset,
                                    .numbers = w->step->call->numbers};
    for (int k = 0; k < GRD_OPTIM_STATES; k++)
        block.state[k] = operand[GRD_OPTIM_STATE + k] != NULL ? operand[GRD_OPTIM_STATE + k]->data + offset : NULL;
    w->kernels->step(&block);
}

/* Increments the step count of parameter i and lets the optimizer set the numeric arguments of the kernel for this parameter. */
static void advance(const struct grd_optim_step *call, const struct group *group, int64_t i)
{
    double numbers[GRD_OPTIM_VALUES] = {0};
    for (int k = 0; k < call->optimizer->nvalues; k++)
        numbers[k] = grd_scalar_double(grd_scalar_read(group->values[k]->data, (grd_dtype)group->values[k]->dtype)) + (k == 0);
    if (call->optimizer->set_numbers != NULL)
        call->optimizer->set_numbers(call->numbers, numbers);
    for (int k = 0; k < call->optimizer->nvalues; k++) {
        grd_tensor *value = call->values[k].data[i], *operand = group->values[k];
        grd_scalar_write(grd_float(numbers[k]), (grd_dtype)operand->dtype, operand->data);
        if (operand != value)
            grd_transfer(value, operand);
        grd_bump_version(value);
    }
}

static void run_parameter(struct step *s, int64_t i)
{
    struct group *group = &s->groups[i];
    const grd_tensor *param = group->operand[GRD_OPTIM_PARAM];
    if (param == NULL)
        return;
    const bool pairs = grd_dtype_is_complex((grd_dtype)param->dtype);
    const grd_dtype real = grd_dtype_to_real((grd_dtype)param->dtype);
    struct work work = {s, group, grd_kernels->optim[real], grd_dtype_size(real)};
    advance(s->call, group, i);
    grd_parallel_for(0, param->numel * (pairs ? 2 : 1), GRAIN, run_piece, &work);
    put_back(group, s->call->optimizer->nlists);
}

grd_tensors grd_optim_run(const struct grd_optim_step *call)
{
    struct step s = {.call = call};
    if (!prepare(&s))
        return (grd_tensors){0};
    for (int64_t i = 0; i < s.n; i++)
        run_parameter(&s, i);
    return call->lists[GRD_OPTIM_PARAM];
}
