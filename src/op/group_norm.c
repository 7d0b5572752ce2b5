/* Computes group normalization and its gradient, one group after the other, so that the second pass over a group finds its elements in the cache. The
 * loops are those of kernel/cpu/channels.c. Formulas are in schema/normalization.toml.
 *
 * Invariant: each group is computed by one thread. */
#include "base/parallel.h"
#include "gen/uses/op/group_norm.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/channels.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lines.h"
#include "op/plan.h"

enum {
    PIECE = 4096,   /* maximum number of elements of a group that one kernel call sums */
    GRAIN = 1 << 15 /* number of elements that are enough work for one task */
};

/* Everything about one call of group normalization, or of its gradient, that the tasks need. */
struct group_norm {
    const struct grd_channels_row *kernels;
    struct grd_channels groups,
        channels; /* the elements as rows: `groups` has a row per group of each sample, `channels` a row per channel of each sample */
    struct grd_channel_groups each;
    int64_t itemsize, pieces;
    const char *data, *grad;
    char *out, *sums, *products;
    /* Arrays. mean, variance: one element per group. firsts, seconds: for each piece (PIECE elements) of each group, its mean and its sum of
     * squared deviations. */
    char *firsts, *seconds, *mean, *variance;
    /* Arrays with one element per channel of each sample. In the forward pass, out = (data - center) * scale + shift. In the gradient,
     * out = grad * scale - share - (data - center) * slope. */
    char *center, *scale, *shift, *share, *slope;
};

static struct group_norm *norm_of(const struct grd_plan *p)
{
    return (struct group_norm *)(uintptr_t)p->state;
}

static bool check_vector(const grd_tensor *vector, const grd_tensor *input)
{
    return vector == NULL || (vector->ndim == 1 && vector->numel == input->sizes[1]) ||
           grd_raise(GRD_ERROR_RUNTIME, "a weight or bias must have one element for each channel");
}

static bool plan_groups(struct grd_plan *p, const grd_tensor *input, int64_t num_groups, const grd_tensor *weight, const grd_tensor *bias,
                        double eps)
{
    struct group_norm *x = norm_of(p);
    const grd_dtype dtype = (grd_dtype)input->dtype, as = grd_lines_dtype(dtype);
    if (!grd_check_groups(input, num_groups) || !check_vector(weight, input) || !check_vector(bias, input))
        return false;
    if (grd_kernels->channels[as] == NULL)
        return grd_raise_no_kernel("GroupNormKernelImpl", dtype);
    const int64_t samples = input->sizes[0], channels = input->sizes[1], width = channels / num_groups;
    const int64_t positions = grd_sizes_product(input->sizes + 2, input->ndim - 2), of_group = grd_wrapping_product(width, positions);
    *x = (struct group_norm){.kernels = grd_kernels->channels[as], .itemsize = grd_dtype_size(as)};
    x->groups = (struct grd_channels){1, grd_wrapping_product(samples, num_groups), of_group, false};
    x->channels = (struct grd_channels){1, grd_wrapping_product(samples, channels), grd_greatest(1, positions),
                                        false}; /* at least 1, because the kernels divide by the number of positions */
    x->each = (struct grd_channel_groups){.width = width, .groups = num_groups, .positions = positions, .eps = eps};
    x->pieces = of_group / PIECE + (of_group % PIECE > 0);
    const double of_sample = (2 * (double)x->pieces + 2) * (double)num_groups + 5 * (double)channels;
    grd_plan_scratch(p, of_sample * (double)samples * (double)x->itemsize);
    return grd_plan_result(p, grd_sizes(input), dtype) && grd_plan_computed_in(p, as);
}

bool plan_hidden_group_norm(struct grd_plan *p, grd_tensor *input, int64_t num_groups, grd_tensor *weight, grd_tensor *bias, double eps)
{
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    return grd_check_parameter_dtypes(input, (const grd_tensor *const[]){weight, bias}, 2) &&
           plan_groups(p, input, num_groups, weight, bias, eps) && grd_plan_reads_as(p, input, dtype) &&
           grd_plan_reads_as(p, weight, dtype) && grd_plan_reads_as(p, bias, dtype);
}

bool plan_hidden_group_norm_backward(struct grd_plan *p, grd_tensor *grad, grd_tensor *input, int64_t num_groups, grd_tensor *weight,
                                     double eps)
{
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    if (!plan_groups(p, input, num_groups, weight, NULL, eps))
        return false;
    if (!grd_same_sizes(grad, grd_sizes(input)))
        return grd_raise(GRD_ERROR_RUNTIME, "the gradient must have the input's size");
    const grd_dims parts = grd_dims(input->sizes[0], input->sizes[1]);
    return grd_plan_result(p, parts, dtype) && grd_plan_result(p, parts, dtype) && grd_plan_reads_as(p, input, dtype) &&
           grd_plan_reads_as(p, weight, dtype) && grd_plan_reads_as(p, grad, dtype);
}

/* Divides the scratch memory among the arrays of *x that have elements per group or per channel. */
static void share_scratch(struct group_norm *x, char *scratch)
{
    const int64_t groups = x->groups.channels * x->itemsize, channels = x->channels.channels * x->itemsize;
    x->mean = scratch;
    x->variance = x->mean + groups;
    x->firsts = x->variance + groups;
    x->seconds = x->firsts + x->pieces * groups;
    x->center = x->seconds + x->pieces * groups;
    x->scale = x->center + channels;
    x->shift = x->scale + channels;
    x->share = x->shift + channels;
    x->slope = x->share + channels;
}

/* Computes the mean and variance of a group, and from these the scale and shift of each of its channels. */
static void find_moments(const struct group_norm *x, int64_t group)
{
    for (int64_t piece = 0; piece < x->pieces; piece++) {
        const int64_t first = piece * PIECE, at = piece * x->groups.channels * x->itemsize;
        const struct grd_channel_piece elements = {first, grd_least(first + PIECE, x->groups.positions), group, group + 1};
        x->kernels->moments(&x->groups, elements, x->data, x->firsts + at, x->seconds + at);
    }
    x->kernels->combine(&x->groups, PIECE, group, group + 1, x->firsts, x->seconds, x->mean, x->variance);
    x->kernels->spread(&x->each, group, group + 1, x->mean, x->variance, x->center, x->scale, x->shift);
}

/* Returns the piece (a range of positions of a range of channels) that holds all elements of a group. */
static struct grd_channel_piece channels_of(const struct group_norm *x, int64_t group)
{
    return (struct grd_channel_piece){0, x->each.positions, group * x->each.width, (group + 1) * x->each.width};
}

static void normalise_groups(int64_t begin, int64_t end, void *context)
{
    const struct group_norm *x = context;
    for (int64_t group = begin; group < end; group++) {
        find_moments(x, group);
        x->kernels->normalise(&x->channels, channels_of(x, group), x->data, x->center, x->scale, x->shift, x->out);
    }
}

static void differentiate_groups(int64_t begin, int64_t end, void *context)
{
    const struct group_norm *x = context;
    for (int64_t group = begin; group < end; group++) {
        const struct grd_channel_piece channels = channels_of(x, group);
        find_moments(x, group);
        x->kernels->products(&x->channels, channels, x->data, x->grad, x->center, x->sums, x->products);
        x->kernels->group_slopes(&x->each, group, group + 1, x->variance, x->sums, x->products, x->share, x->slope);
        x->kernels->gradient(&x->channels, channels, x->data, x->grad, x->center, x->share, x->slope, x->scale, x->out);
    }
}

static void run_groups(const struct grd_plan *p, grd_task *task)
{
    struct group_norm *x = norm_of(p);
    share_scratch(x, p->scratch);
    x->data = p->in[0]->data;
    x->each.weight = p->in[1] == NULL ? NULL : p->in[1]->data;
    x->out = p->results[0]->data;
    grd_parallel_for(0, x->groups.channels, grd_greatest(1, GRAIN / grd_greatest(1, x->groups.positions)), task, x);
}

void run_hidden_group_norm(const struct grd_plan *p, grd_tensor *input, int64_t num_groups, grd_tensor *weight, grd_tensor *bias,
                           double eps)
{
    (void)input, (void)num_groups, (void)weight, (void)bias, (void)eps;
    norm_of(p)->each.bias = p->in[2] == NULL ? NULL : p->in[2]->data;
    run_groups(p, normalise_groups);
}

void run_hidden_group_norm_backward(const struct grd_plan *p, grd_tensor *grad, grd_tensor *input, int64_t num_groups, grd_tensor *weight,
                                    double eps)
{
    (void)grad, (void)input, (void)num_groups, (void)weight, (void)eps;
    struct group_norm *x = norm_of(p);
    x->products = p->results[1]->data;
    x->sums = p->results[2]->data;
    x->grad = p->in[2]->data;
    run_groups(p, differentiate_groups);
}
