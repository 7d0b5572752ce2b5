/* Normalisation of channels, dimension 1: over a batch, within a sample, in groups. Composites, recorded as one node, and their gradients. Schema: schema/normalization.toml. */
#include "base/text.h"
#include "gen/uses/op/batch_norm.h"
#include "gradus/library.h"
#include "op/common.h"
#include "op/composite.h"

/* A vector with an element for each channel, for the sizes of the input; NULL stays. */
static grd_tensor *per_channel(grd_tensor *vector, const grd_tensor *input)
{
    int64_t sizes[GRD_MAX_DIMS];
    for (int i = 0; i < input->ndim; i++)
        sizes[i] = i == 1 ? input->sizes[1] : 1;
    return vector == NULL ? NULL : grd_reshape(vector, grd_dims_from(sizes, input->ndim));
}

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

/* (input - mean) / sqrt(variance + eps) */
static grd_tensor *centred_and_scaled(grd_tensor *input, grd_tensor *mean, grd_tensor *variance, double eps)
{
    return grd_mul(grd_sub(input, mean), grd_rsqrt(grd_add_scalar(variance, grd_float(eps))));
}

/* All dimensions but the channels. */
struct others {
    int64_t dims[GRD_MAX_DIMS], n, count;
};

static struct others other_dims(const grd_tensor *input)
{
    struct others others = {.count = 1};
    for (int i = 0; i < input->ndim; i++)
        if (i != 1) {
            others.dims[others.n++] = i;
            others.count = grd_wrapping_product(others.count, input->sizes[i]);
        }
    return others;
}

/* Mean and variance of the input, or those that were given, which broadcast over the input. */
struct statistics {
    grd_tensor *mean, *variance;
};

static struct statistics own_statistics(grd_tensor *input)
{
    const struct others others = other_dims(input);
    const grd_var_mean_result own =
        grd_var_mean(input, .dim = grd_dims_from(others.dims, others.n), .correction = grd_int(0), .keepdim = true);
    return (struct statistics){own.average, own.variance};
}

void op_hidden_native_batch_norm(grd_tensor *input, grd_tensor *weight, grd_tensor *bias, grd_tensor *mean, grd_tensor *variance,
                                 double eps, grd_tensor **ret)
{
    const struct statistics used =
        mean == NULL ? own_statistics(input) : (struct statistics){per_channel(mean, input), per_channel(variance, input)};
    grd_tensor *scale = grd_rsqrt(grd_add_scalar(used.variance, grd_float(eps)));
    if (weight != NULL)
        scale = grd_mul(scale, per_channel(weight, input));
    grd_tensor *result = grd_mul(grd_sub(input, used.mean), scale);
    if (bias != NULL)
        result = grd_add(result, per_channel(bias, input));
    ret[0] = grd_pending() ? grd_failed : grd_composite_suggested(grd_to(result, .dtype = input->dtype), input);
    ret[1] = used.mean;
    ret[2] = used.variance;
}

/* The statistics of the forward pass; computed again where the gradient of a gradient goes through them. */
static struct statistics used_statistics(grd_tensor *input, const grd_tensor *mean, grd_tensor *used_mean, grd_tensor *used_variance)
{
    return mean == NULL && grd_composite_is_recorded(input) ? own_statistics(input) : (struct statistics){used_mean, used_variance};
}

grd_tensor *op_hidden_native_batch_norm_backward(grd_tensor *grad_output, grd_tensor *input, grd_tensor *weight, grd_tensor *mean,
                                                 grd_tensor *used_mean, grd_tensor *used_variance, double eps)
{
    const struct statistics used = used_statistics(input, mean, used_mean, used_variance);
    grd_tensor *u = weight != NULL ? grd_mul(grad_output, grd_conj(per_channel(weight, input))) : grad_output;
    grd_tensor *rstd = grd_rsqrt(grd_add_scalar(used.variance, grd_float(eps)));
    if (mean != NULL)
        return grd_mul(u, grd_conj(rstd));
    const struct others others = other_dims(input);
    const grd_dims dims = grd_dims_from(others.dims, others.n);
    grd_tensor *h = grd_mul(grd_sub(input, used.mean), rstd);
    grd_tensor *along = grd_mul(h, grd_mean(grd_real(grd_mul(u, grd_conj(h))), .dim = dims, .keepdim = true));
    return grd_mul(grd_sub(grd_sub(u, grd_mean(u, .dim = dims, .keepdim = true)), along), rstd);
}

grd_tensor *op_hidden_channel_sum(grd_tensor *self)
{
    const struct others others = other_dims(self);
    return grd_sum(self, .dim = grd_dims_from(others.dims, others.n));
}

grd_tensor *op_hidden_native_batch_norm_weight_backward(grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *used_mean,
                                                        grd_tensor *used_variance, double eps)
{
    const struct statistics used = used_statistics(input, mean, used_mean, used_variance);
    return grd_hidden_channel_sum(grd_mul(grad_output, grd_conj(centred_and_scaled(input, used.mean, used.variance, eps))));
}

/* running = (1 - momentum) running + momentum * statistic, which is no part of the graph. */
static void follow(grd_tensor *running, grd_tensor *statistic, double momentum)
{
    grd_tensor *part = grd_mul_scalar(grd_detach(statistic), grd_float(momentum));
    grd_copy_(running, grd_add(grd_mul_scalar(running, grd_float(1 - momentum)), part));
}

/* The running statistics take the averages of what `samples` samples have each for themselves, [samples * channels] of `count` elements. */
static void follow_both(grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *mean, grd_tensor *variance, int64_t samples,
                        double count, double momentum)
{
    const grd_dims first = grd_dims(0), sizes = grd_dims(samples, running_mean->numel);
    follow(running_mean, grd_mean(grd_reshape(mean, sizes), .dim = first), momentum);
    follow(running_var, grd_mul_scalar(grd_mean(grd_reshape(variance, sizes), .dim = first), grd_float(count / (count - 1))), momentum);
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
        follow_both(running_mean, running_var, result.used_mean, result.used_variance, 1, (double)other_dims(input).count, momentum);
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
        follow_both(running_mean, running_var, result.used_mean, result.used_variance, samples,
                    (double)grd_sizes_product(sizes + 2, input->ndim - 2), momentum);
    return grd_pending() ? grd_failed : grd_view(result.output, grd_sizes(input));
}

static bool check_groups(const grd_tensor *input, int64_t num_groups)
{
    char sizes[512];
    if (input->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    if (num_groups <= 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected num groups to be greater than 0, got %lld", (long long)num_groups);
    return input->sizes[1] % num_groups == 0 ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%lld",
                     grd_format_int64s(sizes, sizeof sizes, input->sizes, input->ndim), (long long)num_groups);
}

/* Rows with an element for all that a group has. */
static grd_tensor *rows_of_groups(grd_tensor *t, int64_t num_groups)
{
    if (!check_groups(t, num_groups))
        return grd_failed;
    const int64_t size = grd_wrapping_product(t->sizes[1] / num_groups, grd_sizes_product(t->sizes + 2, t->ndim - 2));
    return grd_reshape(t, grd_dims(t->sizes[0], num_groups, size));
}

/* The last dimension of rows, which layer_norm is to normalize. */
static grd_dims row_size(const grd_tensor *rows)
{
    return grd_pending() ? grd_dims_from(NULL, 0) : grd_dims_from(rows->sizes + 2, 1);
}

static bool check_group_vector(const grd_tensor *vector, const grd_tensor *input, const char *name)
{
    char own[512], sizes[512];
    return vector == NULL || (vector->ndim == 1 && vector->numel == input->sizes[1]) ||
           grd_raise(
               GRD_ERROR_RUNTIME,
               "Expected %s to be a vector of size equal to the number of channels in input, but got %s of shape %s and input of shape %s",
               name, name, grd_format_int64s(own, sizeof own, vector->sizes, vector->ndim),
               grd_format_int64s(sizes, sizeof sizes, input->sizes, input->ndim));
}

grd_tensor *op_group_norm(grd_tensor *input, int64_t num_groups, grd_tensor *weight, grd_tensor *bias, double eps)
{
    if (!check(input, NULL, NULL, NULL, NULL, true))
        return grd_failed;
    if (!check_groups(input, num_groups) || !check_group_vector(weight, input, "weight") || !check_group_vector(bias, input, "bias"))
        return grd_failed;
    return grd_hidden_native_group_norm(input, num_groups, weight, bias, eps).output;
}

void op_hidden_native_group_norm(grd_tensor *input, int64_t num_groups, grd_tensor *weight, grd_tensor *bias, double eps, grd_tensor **ret)
{
    grd_tensor *rows = rows_of_groups(input, num_groups);
    const grd_hidden_layer_norm_result normed = grd_hidden_layer_norm(rows, row_size(rows), NULL, NULL, eps, true);
    grd_tensor *result = grd_hidden_unsafe_view(normed.output, grd_sizes(input));
    if (weight != NULL)
        result = grd_mul(result, per_channel(weight, input));
    if (bias != NULL)
        result = grd_add(result, per_channel(bias, input));
    ret[0] = grd_composite_suggested(result, input);
    ret[1] = normed.mean;
    ret[2] = normed.rstd;
}

grd_tensor *op_hidden_native_group_norm_backward(grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd,
                                                 grd_tensor *weight, int64_t num_groups, double eps)
{
    grd_tensor *u = weight != NULL ? grd_mul(grad_output, grd_conj(per_channel(weight, input))) : grad_output;
    grd_tensor *rows = rows_of_groups(input, num_groups), *grad_rows = rows_of_groups(u, num_groups);
    return grd_reshape(grd_hidden_layer_norm_input_backward(grad_rows, rows, mean, rstd, NULL, row_size(rows), eps, true),
                       grd_sizes(input));
}

grd_tensor *op_hidden_native_group_norm_weight_backward(grd_tensor *grad_output, grd_tensor *input, int64_t num_groups, double eps)
{
    grd_tensor *rows = rows_of_groups(input, num_groups);
    grd_tensor *h = grd_reshape(grd_hidden_normalized(rows, row_size(rows), eps, true), grd_sizes(input));
    return grd_hidden_channel_sum(grd_mul(grad_output, h));
}
