/* Operators that make tensors of random numbers: the factories, permutations, dropout and multinomial.
 *
 * The fills they call are in random.c. Invariants are those of random.c: drawn serially, in PyTorch's order and width, after every check. */
#include <math.h>

#include "gen/uses/op/sample.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/composite.h"
#include "op/plan.h"
#include "op/random.h"

/* ---- Permutations ------------------------------------------------------------------------------------------------------------------- */

/* From this length on PyTorch draws 64 bits per step, from the inside out. */
#define LONG_PERMUTATION ((int64_t)(UINT32_MAX / 20))

bool plan_randperm(struct grd_plan *p, int64_t n, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    (void)generator;
    if (dtype == GRD_DTYPE_NONE)
        dtype = GRD_INT64;
    const bool floating = grd_random_is_floating(dtype);
    int64_t low, high;
    if (dtype == GRD_BOOL || (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !floating))
        return grd_raise_no_kernel("randperm", dtype);
    grd_random_bounds(dtype, &low, &high);
    const int64_t most = floating ? ((int64_t)1 << grd_random_digits(dtype)) + 1 : high == INT64_MAX ? high : high + 1;
    if (n > most && dtype != GRD_BFLOAT16) /* which PyTorch lets round */
        return grd_raise(GRD_ERROR_RUNTIME, "n cannot be greater than %lld for %s type.", (long long)most, grd_dtype_type_name(dtype));
    return grd_plan_new(p, grd_dims(n), dtype, device, requires_grad) &&
           grd_plan_computed_in(p, n >= LONG_PERMUTATION ? GRD_INT64 : GRD_UINT32);
}

void run_randperm(const struct grd_plan *p, int64_t n, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    (void)dtype, (void)device, (void)requires_grad;
    struct grd_generator *locked = grd_generator_lock(generator);
    if (p->planned[0].as == GRD_INT64)
        grd_kernels->random->shuffle_long(&locked->engine, n, (int64_t *)p->results[0]->data);
    else
        grd_kernels->random->shuffle(&locked->engine, n, (uint32_t *)p->results[0]->data);
    grd_generator_unlock(locked);
}

/* ---- dropout, multinomial ----------------------------------------------------------------------------------------------------------- */

grd_tensor *op_dropout(grd_tensor *input, double p, bool training, grd_generator *generator)
{
    if (!(p >= 0 && p <= 1))
        return grd_fail(GRD_ERROR_VALUE, "dropout probability has to be between 0 and 1, but got %g", p);
    if (!training || p == 0 || input->numel == 0)
        return input;
    if (p == 1)
        return grd_mul(input, grd_zeros(GRD_NO_DIMS, .dtype = (grd_dtype)input->dtype, .device = grd_device_of(input)));
    if (!grd_check_castable(GRD_FLOAT32, (grd_dtype)input->dtype))
        return grd_failed;
    /* 1 / (1 - p) is rounded once, from float32 where the dtype has fewer bits. */
    const bool half = input->dtype == GRD_FLOAT16 || input->dtype == GRD_BFLOAT16;
    grd_tensor *noise = grd_empty_like(input, .dtype = half ? GRD_FLOAT32 : GRD_DTYPE_NONE);
    noise = grd_div_scalar_(grd_bernoulli_(noise, .p = grd_float(1 - p), .generator = generator), grd_float(1 - p));
    return grd_mul(input, half ? grd_to(noise, .dtype = (grd_dtype)input->dtype) : noise);
}

/* Of all classes or the sum of them, for each row. */
static bool check_finite(grd_tensor *p)
{
    double low, high;
    if (!grd_composite_extremes(p, &low, &high))
        return !grd_pending();
    if (!(low >= 0 && high < INFINITY))
        return grd_raise(GRD_ERROR_RUNTIME, "probability tensor contains either `inf`, `nan` or element < 0");
    return (grd_composite_extremes(grd_sum(p, .dim = grd_dims(-1)), &low, NULL) && low > 0) || grd_pending() ||
           grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (sum of probabilities <= 0)");
}

/* Without replacement: the places of the largest p / q, with q exponentially distributed. */
grd_tensor *op_multinomial(grd_tensor *self, int64_t num_samples, bool replacement, grd_generator *generator)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (self->ndim < 1 || self->ndim > 2)
        return grd_fail(GRD_ERROR_RUNTIME, "prob_dist must be 1 or 2 dim");
    if (!grd_random_is_floating(dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "multinomial only supports floating-point dtypes for input, got: %s",
                        grd_dtype_type_name(dtype));
    if (num_samples <= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "cannot sample n_sample <= 0 samples");
    if (!replacement && num_samples > self->sizes[self->ndim - 1])
        return grd_fail(GRD_ERROR_RUNTIME, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    if (self->sizes[self->ndim - 1] > 1 << 24)
        return grd_fail(GRD_ERROR_RUNTIME, "number of categories cannot exceed 2^24");
    self = grd_detach(self);
    if (replacement && num_samples > 1)
        return grd_hidden_multinomial_with_replacement(self, num_samples, .generator = generator);
    if (!check_finite(self))
        return grd_failed;
    grd_tensor *scores = grd_div(self, grd_exponential_(grd_empty_like(self), .generator = generator));
    return num_samples == 1 ? grd_argmax(scores, .dim = grd_int(-1), .keepdim = true) : grd_topk(scores, num_samples).indices;
}

bool plan_hidden_multinomial_with_replacement(struct grd_plan *p, grd_tensor *self, int64_t num_samples, grd_generator *generator)
{
    (void)generator;
    p->scratch_bytes = (size_t)self->sizes[self->ndim - 1] * sizeof(double);
    return grd_plan_reads_as(p, self, GRD_FLOAT64) &&
           grd_plan_result(p, self->ndim == 2 ? grd_dims(self->sizes[0], num_samples) : grd_dims(num_samples), GRD_INT64);
}

bool check_hidden_multinomial_with_replacement(struct grd_plan *p, grd_tensor *self, int64_t num_samples, grd_generator *generator)
{
    static const char *const faults[] = {[GRD_PROBABILITIES_NEGATIVE] = "encountering probability entry < 0",
                                         [GRD_PROBABILITIES_INFINITE] = "encountering probability entry = infinity or NaN",
                                         [GRD_PROBABILITIES_ZERO] = "sum of probabilities <= 0"};
    (void)num_samples, (void)generator;
    const int64_t classes = self->sizes[self->ndim - 1], rows = self->ndim == 2 ? self->sizes[0] : 1;
    for (int64_t row = 0; row < rows; row++) {
        const enum grd_probabilities found =
            grd_kernels->random->check_probabilities(classes, (const double *)p->in[0]->data + row * classes);
        if (found != GRD_PROBABILITIES_FINE)
            return grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (%s)", faults[found]);
    }
    return true;
}

/* A binary search in the cumulated probabilities, which are kept in float for dtypes up to float32. */
void run_hidden_multinomial_with_replacement(const struct grd_plan *p, grd_tensor *self, int64_t num_samples, grd_generator *generator)
{
    const int64_t classes = self->sizes[self->ndim - 1], rows = p->results[0]->numel / num_samples;
    double *cumulated = (double *)p->scratch;
    struct grd_generator *locked = grd_generator_lock(generator);
    for (int64_t row = 0; row < rows; row++) {
        grd_kernels->random->cumulate(classes, (const double *)p->in[0]->data + row * classes, self->dtype == GRD_FLOAT64, cumulated);
        grd_kernels->random->choose(&locked->engine, classes, cumulated, num_samples, (int64_t *)p->results[0]->data + row * num_samples);
    }
    grd_generator_unlock(locked);
}
