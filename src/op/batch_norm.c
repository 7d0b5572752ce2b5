/* Normalisation of channels, dimension 1: over a batch, within a sample, in groups. Composites, recorded as one node, and their gradients. Schema: schema/normalization.toml. */
#include "gen/uses/op/batch_norm.h"
#include "gradus/library.h"
#include "op/formula.h"

static bool check_vector(const grd_tensor *vector, const grd_tensor *input, const char *name)
{
    return vector == NULL || (vector->ndim == 1 && vector->numel == input->sizes[1]) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s should contain %lld elements not %lld", name, (long long)input->sizes[1],
                     (long long)vector->numel);
}

/* What the three ask of their arguments. `own`: the statistics are the input's. */
static bool check(const grd_tensor *input, const grd_tensor *running_mean, const grd_tensor *running_var, const grd_tensor *weight,
                  const grd_tensor *bias, bool own)
{
    if (input->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    if (!check_vector(running_mean, input, "running_mean") || !check_vector(running_var, input, "running_var"))
        return false;
    if ((running_mean == NULL) != (running_var == NULL) || (running_mean == NULL && !own))
        return grd_raise(GRD_ERROR_RUNTIME, "Expected running_mean and running_var to be defined");
    return check_vector(weight, input, "weight") && check_vector(bias, input, "bias");
}

void op_hidden_native_batch_norm(grd_tensor *input, grd_tensor *weight, grd_tensor *bias, grd_tensor *mean, grd_tensor *variance,
                                 double eps, grd_tensor **ret)
{
    grd_var_mean_result used = {grd_composite_along(variance, input->ndim, 1), grd_composite_along(mean, input->ndim, 1)};
    if (mean == NULL)
        used = grd_var_mean(input, .dim = grd_dims_but(grd_sizes(input), 1), .correction = grd_int(0), .keepdim = true);
    grd_tensor *scale = grd_rsqrt(grd_add_scalar(used.variance, grd_float(eps)));
    if (weight != NULL)
        scale = grd_mul(scale, grd_composite_along(weight, input->ndim, 1));
    grd_tensor *result = grd_mul(grd_sub(input, used.average), scale);
    if (bias != NULL)
        result = grd_add(result, grd_composite_along(bias, input->ndim, 1));
    ret[0] = grd_pending() ? grd_failed : grd_composite_suggested(grd_to(result, .dtype = input->dtype), input);
    ret[1] = used.average;
    ret[2] = used.variance;
}

/* running = (1 - momentum) running + momentum * statistic, which is no part of the graph. */
static void follow(grd_tensor *running, grd_tensor *statistic, double momentum)
{
    grd_tensor *part = grd_mul_scalar(grd_detach(statistic), grd_float(momentum));
    grd_copy_(running, grd_add(grd_mul_scalar(running, grd_float(1 - momentum)), part));
}

/* The running statistics take the averages of what `samples` samples have each for themselves, samples * channels. */
static void follow_both(grd_tensor *running_mean, grd_tensor *running_var, const grd_hidden_native_batch_norm_result *made, int64_t samples,
                        double momentum)
{
    const grd_dims first = grd_dims(0), sizes = grd_dims(samples, running_mean->numel);
    const double count = (double)made->output->numel / (double)made->used_mean->numel;
    follow(running_mean, grd_mean(grd_reshape(made->used_mean, sizes), .dim = first), momentum);
    follow(running_var, grd_mul_scalar(grd_mean(grd_reshape(made->used_variance, sizes), .dim = first), grd_float(count / (count - 1))),
           momentum);
}

/* A copy that gradients do not go to, so that the running statistics may change before the backward pass; NULL stays. */
static grd_tensor *constant(grd_tensor *t)
{
    return t == NULL ? NULL : grd_clone(grd_detach(t));
}

grd_tensor *op_batch_norm(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                          bool training, double momentum, double eps)
{
    if (input->ndim == 1 && input->numel == 0) /* which PyTorch takes for no channels of nothing */
        return grd_clone(input);
    if (!check(input, running_mean, running_var, weight, bias, training))
        return grd_failed;
    const grd_hidden_native_batch_norm_result result = grd_hidden_native_batch_norm(
        input, weight, bias, training ? NULL : constant(running_mean), training ? NULL : constant(running_var), eps);
    if (training && running_mean != NULL && !grd_pending())
        follow_both(running_mean, running_var, &result, 1, momentum);
    return grd_pending() ? grd_failed : result.output;
}

/* A vector for the channels of every sample; NULL stays. */
static grd_tensor *for_each_sample(grd_tensor *vector, int64_t samples)
{
    return vector == NULL ? NULL : grd_repeat(vector, grd_dims(samples));
}

/* batch_norm of one sample whose channels are those of all samples. */
grd_tensor *op_instance_norm(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                             bool use_input_stats, double momentum, double eps)
{
    if (!check(input, running_mean, running_var, weight, bias, use_input_stats))
        return grd_failed;
    if (input->ndim < 3)
        return grd_fail(GRD_ERROR_RUNTIME, "Expected at least 3 dimensions for input tensor but received %d", input->ndim);
    const int64_t samples = input->sizes[0];
    int64_t sizes[GRD_MAX_DIMS] = {1, grd_wrapping_product(samples, input->sizes[1])};
    for (int i = 2; i < input->ndim; i++)
        sizes[i] = input->sizes[i];
    grd_tensor *mean = use_input_stats ? NULL : for_each_sample(constant(running_mean), samples);
    grd_tensor *variance = use_input_stats ? NULL : for_each_sample(constant(running_var), samples);
    const grd_hidden_native_batch_norm_result result =
        grd_hidden_native_batch_norm(grd_view(grd_contiguous(input), grd_dims_from(sizes, input->ndim)), for_each_sample(weight, samples),
                                     for_each_sample(bias, samples), mean, variance, eps);
    if (use_input_stats && running_mean != NULL && !grd_pending())
        follow_both(running_mean, running_var, &result, samples, momentum);
    return grd_pending() ? grd_failed : grd_view(result.output, grd_sizes(input));
}

bool grd_check_groups(const grd_tensor *input, int64_t num_groups)
{
    if (input->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    if (num_groups <= 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected num groups to be greater than 0, got %lld", (long long)num_groups);
    return input->sizes[1] % num_groups == 0 ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%lld",
                     grd_list_text(grd_sizes(input)), (long long)num_groups);
}

grd_dims grd_group_sizes(grd_dims sizes, int64_t num_groups)
{
    int64_t *const rows = grd_pool_array(3, sizeof *rows);
    if (rows == NULL)
        return GRD_NO_DIMS;
    rows[0] = sizes.data[0];
    rows[1] = num_groups;
    rows[2] = grd_wrapping_product(sizes.data[1] / num_groups, grd_sizes_product(sizes.data + 2, sizes.n - 2));
    return grd_dims_from(rows, 3);
}
