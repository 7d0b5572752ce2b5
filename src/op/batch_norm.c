/* Normalisation of channels, dimension 1: over a batch, within a sample, in groups. Composites. Schema: schema/normalization.toml. */
#include "base/text.h"
#include "gen/op_impl.h"
#include "gradus/gradus.h"
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
    if ((running_mean == NULL) != (running_var == NULL) || (running_mean == NULL && !own))
        return grd_raise(GRD_ERROR_RUNTIME, "Expected running_mean and running_var to be defined");
    return check_vector(running_mean, input, "running_mean") && check_vector(running_var, input, "running_var") &&
           check_vector(weight, input, "weight") && check_vector(bias, input, "bias");
}

/* (input - mean) / sqrt(variance + eps) * weight + bias, in input's dtype. */
static grd_tensor *normalized(grd_tensor *input, grd_tensor *mean, grd_tensor *variance, grd_tensor *weight, grd_tensor *bias, double eps)
{
    grd_tensor *scale = grd_rsqrt(grd_add_scalar(variance, grd_float(eps)));
    if (weight != NULL)
        scale = grd_mul(scale, per_channel(weight, input));
    grd_tensor *result = grd_mul(grd_sub(input, mean), scale);
    if (bias != NULL)
        result = grd_add(result, per_channel(bias, input));
    return grd_pending() ? grd_failed : grd_composite_suggested(grd_to(result, .dtype = input->dtype), input);
}

/* running = (1 - momentum) running + momentum * statistic, which is no part of the graph. */
static void follow(grd_tensor *running, grd_tensor *statistic, double momentum)
{
    grd_tensor *part = grd_mul_scalar(grd_detach(statistic), grd_float(momentum));
    grd_copy_(running, grd_add(grd_mul_scalar(running, grd_float(1 - momentum)), part));
}

/* By the input's own statistics, of all samples together or of each. */
static grd_tensor *by_its_own(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                              bool each_sample, double momentum, double eps)
{
    int64_t dims[GRD_MAX_DIMS], n = 0, count = 1;
    for (int i = each_sample ? 2 : 0; i < input->ndim; i++) {
        if (i == 1)
            continue;
        dims[n++] = i;
        count *= input->sizes[i];
    }
    const grd_var_mean_result own = grd_var_mean(input, .dim = grd_dims_from(dims, n), .correction = grd_int(0), .keepdim = true);
    grd_tensor *result = normalized(input, own.average, own.variance, weight, bias, eps);
    if (running_mean != NULL && !grd_pending()) {
        const grd_dims samples = grd_dims(0);
        grd_tensor *mean = each_sample ? grd_mean(own.average, .dim = samples) : own.average;
        grd_tensor *variance = each_sample ? grd_mean(own.variance, .dim = samples) : own.variance;
        follow(running_mean, grd_reshape(mean, grd_dims(-1)), momentum);
        follow(running_var, grd_mul_scalar(grd_reshape(variance, grd_dims(-1)), grd_float((double)count / (double)(count - 1))), momentum);
    }
    return grd_pending() ? grd_failed : result;
}

grd_tensor *op_batch_norm(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                          bool training, double momentum, double eps)
{
    if (input->ndim == 1 && input->numel == 0) /* which PyTorch takes for no channels of nothing */
        return grd_clone(input);
    if (!check(input, running_mean, running_var, weight, bias, training))
        return grd_failed;
    if (training)
        return by_its_own(input, running_mean, running_var, weight, bias, false, momentum, eps);
    return normalized(input, per_channel(running_mean, input), per_channel(running_var, input), weight, bias, eps);
}

grd_tensor *op_instance_norm(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                             bool use_input_stats, double momentum, double eps)
{
    if (!check(input, running_mean, running_var, weight, bias, use_input_stats))
        return grd_failed;
    if (input->ndim < 3) {
        grd_raise(GRD_ERROR_RUNTIME, "Expected at least 3 dimensions for input tensor but received %d", input->ndim);
        return grd_failed;
    }
    grd_tensor *result = use_input_stats
                             ? by_its_own(input, running_mean, running_var, weight, bias, true, momentum, eps)
                             : normalized(input, per_channel(running_mean, input), per_channel(running_var, input), weight, bias, eps);
    return grd_composite_contiguous(result);
}

grd_tensor *op_group_norm(grd_tensor *input, int64_t num_groups, grd_tensor *weight, grd_tensor *bias, double eps)
{
    if (!check(input, NULL, NULL, weight, bias, true))
        return grd_failed;
    const int64_t samples = input->sizes[0], channels = input->sizes[1];
    if (num_groups <= 0 || channels % num_groups != 0) {
        char sizes[512];
        grd_raise(GRD_ERROR_RUNTIME,
                  "Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%lld",
                  grd_format_int64s(sizes, sizeof sizes, input->sizes, input->ndim), (long long)num_groups);
        return grd_failed;
    }
    int64_t size = channels / num_groups;
    for (int i = 2; i < input->ndim; i++)
        size *= input->sizes[i];
    grd_tensor *rows = grd_layer_norm(grd_reshape(input, grd_dims(samples, num_groups, size)), grd_dims(size), .eps = eps);
    grd_tensor *result = grd_reshape(rows, grd_sizes(input));
    if (weight != NULL)
        result = grd_mul(result, per_channel(weight, input));
    if (bias != NULL)
        result = grd_add(result, per_channel(bias, input));
    return grd_composite_suggested(result, input);
}
