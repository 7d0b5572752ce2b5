/* Implements normalization over channels (dimension 1): batch_norm, instance_norm, and checks for group_norm. The operators here have no kernels of
 * their own; they call the operators of channel_norm.c. Schema: schema/normalization.toml. */
#include "gen/uses/op/batch_norm.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"

static bool check_vector(const grd_tensor *vector, const grd_tensor *input, const char *name)
{
    return vector == NULL || (vector->ndim == 1 && vector->numel == input->sizes[1]) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s should contain %lld elements not %lld", name, (long long)input->sizes[1],
                     (long long)vector->numel);
}

bool grd_check_parameter_dtypes(const grd_tensor *input, const grd_tensor *const *parameters, int n)
{
    const grd_tensor *first = NULL;
    const bool half = input->dtype == GRD_FLOAT16 || input->dtype == GRD_BFLOAT16;
    for (int i = 0; i < n; i++) {
        const grd_tensor *t = parameters[i];
        if (t == NULL)
            continue;
        first = first == NULL ? t : first;
        if (first->dtype == input->dtype && t->dtype != input->dtype)
            return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name((grd_dtype)input->dtype),
                             grd_dtype_type_name((grd_dtype)t->dtype));
        if (first->dtype != input->dtype && t->dtype != GRD_FLOAT32)
            return grd_raise(GRD_ERROR_RUNTIME, "mixed dtype (CPU): expect parameter to have scalar type of Float");
        if (first->dtype != input->dtype && !half)
            return grd_raise(GRD_ERROR_RUNTIME, "mixed dtype (CPU): all inputs must share same datatype.");
    }
    return true;
}

/* True if running_mean and running_var are both given, or if `own` is true and both are NULL. Otherwise raises ValueError (`own` is true) or
 * RuntimeError. `own` is true if the input is normalized by its own mean and variance. */
static bool check_statistics(const grd_tensor *running_mean, const grd_tensor *running_var, bool own)
{
    if (own && (running_mean == NULL) != (running_var == NULL))
        return grd_raise(GRD_ERROR_VALUE, "running_mean and running_var must either both be None or neither be None");
    return own || (running_mean != NULL && running_var != NULL) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s must be defined in evaluation mode", running_mean == NULL ? "running_mean" : "running_var");
}

bool grd_check_batch_norm(const grd_tensor *input, const grd_tensor *running_mean, const grd_tensor *running_var, const grd_tensor *weight,
                          const grd_tensor *bias, bool own)
{
    if (input->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    return check_vector(running_mean, input, "running_mean") && check_vector(running_var, input, "running_var") &&
           check_statistics(running_mean, running_var, own) && check_vector(weight, input, "weight") && check_vector(bias, input, "bias") &&
           grd_check_parameter_dtypes(input, (const grd_tensor *const[]){weight, bias, running_mean, running_var}, 4);
}

/* Updates running_mean and running_var with made->used_mean and made->used_variance, the statistics by which this call has normalized its input. In
 * instance_norm there is one mean and variance per sample; they are first averaged over the `samples` samples. */
static void follow(grd_tensor *running_mean, grd_tensor *running_var, const grd_hidden_native_batch_norm_result *made, int64_t samples,
                   double momentum)
{
    const double count = (double)made->output->numel / (double)made->used_mean->numel;
    grd_tensor *mean = grd_detach(made->used_mean), *variance = grd_detach(made->used_variance);
    if (samples > 1) {
        const grd_dims sizes = grd_dims(samples, running_mean->numel);
        mean = grd_mean(grd_reshape(mean, sizes), .dim = grd_dims(0));
        variance = grd_mean(grd_reshape(variance, sizes), .dim = grd_dims(0));
    }
    grd_hidden_running_(running_mean, mean, momentum, 1);
    grd_hidden_running_(running_var, variance, momentum, count / (count - 1));
}

/* Returns `running` (running_mean or running_var) without autograd history, or NULL if the statistics of the input are used instead (`own`). */
static grd_tensor *given(grd_tensor *running, bool own)
{
    return own || running == NULL ? NULL : grd_detach(running);
}

static grd_hidden_native_batch_norm_result normalised(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var,
                                                      grd_tensor *weight, grd_tensor *bias, bool training, double momentum, double eps)
{
    const grd_hidden_native_batch_norm_result made =
        grd_hidden_native_batch_norm(input, weight, bias, given(running_mean, training), given(running_var, training), eps);
    if (training && running_mean != NULL && !grd_pending() && input->numel > 0)
        follow(running_mean, running_var, &made, 1, momentum);
    return made;
}

grd_tensor *op_batch_norm(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                          bool training, double momentum, double eps)
{
    if (input->ndim == 1 && input->numel == 0) /* PyTorch accepts an empty vector */
        return grd_clone(input);
    if (!grd_check_batch_norm(input, running_mean, running_var, weight, bias, training))
        return grd_failed;
    grd_tensor *output = normalised(input, running_mean, running_var, weight, bias, training, momentum, eps).output;
    return grd_pending() ? grd_failed : output;
}

void op_native_batch_norm(grd_tensor *input, grd_tensor *weight, grd_tensor *bias, grd_tensor *running_mean, grd_tensor *running_var,
                          bool training, double momentum, double eps, grd_tensor **ret)
{
    ret[0] = ret[1] = ret[2] = grd_failed;
    if (!check_statistics(running_mean, running_var, training))
        return;
    const grd_hidden_native_batch_norm_result made = normalised(input, running_mean, running_var, weight, bias, training, momentum, eps);
    ret[0] = made.output;
    if (grd_pending())
        return;
    const grd_tensor *parameter = weight != NULL ? weight : bias != NULL ? bias : running_mean != NULL ? running_mean : input;
    const grd_dtype dtype = (grd_dtype)parameter->dtype;
    if (training) {
        ret[1] = grd_to(made.used_mean, .dtype = dtype);
        ret[2] = grd_to(grd_rsqrt(grd_add_scalar(made.used_variance, grd_float(eps))), .dtype = dtype);
    } else {
        ret[1] = grd_empty(grd_dims(0), .dtype = dtype, .device = grd_device_of(input));
        ret[2] = grd_clone(ret[1]);
    }
}

/* Returns `vector`, which has one element per channel, repeated `samples` times; NULL if `vector` is NULL. */
static grd_tensor *for_each_sample(grd_tensor *vector, int64_t samples)
{
    return vector == NULL ? NULL : grd_repeat(vector, grd_dims(samples));
}

/* Computes instance_norm as the batch_norm of a single sample that has the channels of all samples. So each channel of each sample gets its own mean
 * and variance. */
grd_tensor *op_instance_norm(grd_tensor *input, grd_tensor *running_mean, grd_tensor *running_var, grd_tensor *weight, grd_tensor *bias,
                             bool use_input_stats, double momentum, double eps)
{
    if (!use_input_stats && (running_mean == NULL || running_var == NULL))
        return grd_fail(GRD_ERROR_RUNTIME, "Expected running_mean and running_var to be defined when use_input_stats is false");
    if (!grd_check_batch_norm(input, running_mean, running_var, weight, bias, use_input_stats))
        return grd_failed;
    if (input->ndim < 3)
        return grd_fail(GRD_ERROR_RUNTIME, "Expected at least 3 dimensions for input tensor but received %d", input->ndim);
    const int64_t samples = input->sizes[0];
    int64_t sizes[GRD_MAX_DIMS] = {1, grd_wrapping_product(samples, input->sizes[1])};
    for (int i = 2; i < input->ndim; i++)
        sizes[i] = input->sizes[i];
    grd_tensor *mean = for_each_sample(given(running_mean, use_input_stats), samples);
    grd_tensor *variance = for_each_sample(given(running_var, use_input_stats), samples);
    const grd_hidden_native_batch_norm_result result =
        grd_hidden_native_batch_norm(grd_view(grd_contiguous(input), grd_dims_from(sizes, input->ndim)), for_each_sample(weight, samples),
                                     for_each_sample(bias, samples), mean, variance, eps);
    if (use_input_stats && running_mean != NULL && !grd_pending())
        follow(running_mean, running_var, &result, samples, momentum);
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
