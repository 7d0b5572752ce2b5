/* Draws random indices for randperm and multinomial.
 *
 * Invariant: numbers are drawn serially after all checks, in the same order and with the same number of bits as in PyTorch. */
#include <math.h>

#include <string.h>

#include "gen/uses/op/random_indices.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/plan.h"
#include "op/random_fill.h"

/* ---- Permutations ------------------------------------------------------------------------------------------------------------------- */

/* Minimum length of a permutation for which PyTorch draws 64 bits per step and uses the inside-out variant of the Fisher-Yates shuffle. */
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
    grd_int64_bounds(dtype, &low, &high);
    const int64_t most = floating ? ((int64_t)1 << grd_limits[dtype].digits) + 1 : high == INT64_MAX ? high : high + 1;
    if (n > most && dtype != GRD_BFLOAT16) /* for bfloat16 PyTorch accepts that indices are rounded */
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

/* ---- multinomial -------------------------------------------------------------------------------------------------------------------- */

bool grd_multinomial_check(grd_tensor *p)
{
    double low, high;
    if (!grd_composite_extremes(p, &low, &high))
        return !grd_pending();
    if (!(low >= 0 && high < INFINITY))
        return grd_raise(GRD_ERROR_RUNTIME, "probability tensor contains either `inf`, `nan` or element < 0");
    return (grd_composite_extremes(grd_sum(p, .dim = grd_dims(-1)), &low, NULL) && low > 0) || grd_pending() ||
           grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (sum of probabilities <= 0)");
}

bool plan_hidden_multinomial_with_replacement(struct grd_plan *p, grd_tensor *self, int64_t num_samples, grd_generator *generator)
{
    int64_t sizes[GRD_MAX_DIMS];
    (void)generator;
    if (self->ndim == 0 || num_samples <= 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         self->ndim == 0 ? "prob_dist must have at least one dimension" : "cannot sample n_sample <= 0 samples");
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    sizes[self->ndim - 1] = num_samples;
    grd_plan_scratch(p, (double)self->sizes[self->ndim - 1] * sizeof(double));
    return grd_plan_reads_as(p, self, GRD_FLOAT64) && grd_plan_result(p, grd_dims_from(sizes, self->ndim), GRD_INT64);
}

bool check_hidden_multinomial_with_replacement(struct grd_plan *p, grd_tensor *self, int64_t num_samples, grd_generator *generator)
{
    static const char *const faults[] = {[GRD_PROBABILITIES_NEGATIVE] = "encountering probability entry < 0",
                                         [GRD_PROBABILITIES_INFINITE] = "encountering probability entry = infinity or NaN",
                                         [GRD_PROBABILITIES_ZERO] = "sum of probabilities <= 0"};
    (void)num_samples, (void)generator;
    const int64_t classes = self->sizes[self->ndim - 1], rows = grd_sizes_product(self->sizes, self->ndim - 1);
    for (int64_t row = 0; row < rows; row++) {
        const enum grd_probabilities found =
            grd_kernels->random->check_probabilities(classes, (const double *)p->in[0]->data + row * classes);
        if (found != GRD_PROBABILITIES_FINE)
            return grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (%s)", faults[found]);
    }
    return true;
}

/* Draws samples by binary search in the cumulative probabilities. As in PyTorch, these are rounded to float32 unless self is float64. */
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
