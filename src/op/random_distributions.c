/* Runs the operators that draw a random number for each element of one or two tensors of distribution parameters: poisson, binomial, gamma and
 * Dirichlet.
 *
 * The algorithms that turn random words into numbers are in kernel/sampler.c. In-place fills, whose parameters are numbers, are in random_fill.c.
 *
 * Invariant: numbers are drawn one after the other under the generator's lock, in the order of a contiguous result, and after all checks. */
#include "gen/uses/op/random_distributions.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/sampler.h"
#include "op/composite.h"
#include "op/plan.h"
#include "op/random_fill.h"
#include "op/checks.h"

static bool is_wide(grd_dtype dtype)
{
    return dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
}

/* Plans a result that is computed in float64 from parameters read as float64. */
static bool plan_drawn(struct grd_plan *p, grd_tensor *self)
{
    return grd_plan_reads_as(p, self, GRD_FLOAT64) && grd_plan_result(p, grd_sizes(self), (grd_dtype)self->dtype) &&
           grd_plan_computed_in(p, GRD_FLOAT64);
}

/* Returns the elements of the result. The run writes them as float64, whatever the dtype of the result is. */
static double *drawn(const struct grd_plan *p)
{
    return (double *)p->results[0]->data;
}

/* Returns the elements of p->in[which], a tensor of parameters of the distribution. */
static const double *parameters(const struct grd_plan *p, int which)
{
    return (const double *)p->in[which]->data;
}

/* ---- poisson, binomial -------------------------------------------------------------------------------------------------------------- */

bool plan_poisson(struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    (void)generator;
    return (grd_random_is_floating((grd_dtype)self->dtype) || grd_raise_no_kernel("poisson", (grd_dtype)self->dtype)) &&
           plan_drawn(p, self);
}

bool check_poisson(struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    double least;
    (void)self, (void)generator;
    return !grd_composite_extremes(p->in[0], &least, NULL) || least >= 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "invalid Poisson rate, expected rate to be non-negative");
}

void run_poisson(const struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    struct grd_generator *locked = grd_generator_lock(generator);
    grd_sample_poissons(locked, self->numel, parameters(p, 0), drawn(p));
    grd_generator_unlock(locked);
}

bool plan_binomial(struct grd_plan *p, grd_tensor *count, grd_tensor *prob, grd_generator *generator)
{
    const grd_dtype dtype = (grd_dtype)count->dtype;
    int64_t sizes[GRD_MAX_DIMS], ndim;
    (void)generator;
    if (!grd_random_is_floating(dtype))
        return grd_raise(GRD_ERROR_VALUE, "binomial only supports floating-point dtypes for count, got: %s", grd_dtype_type_name(dtype));
    if (!grd_random_is_floating((grd_dtype)prob->dtype))
        return grd_raise(GRD_ERROR_VALUE, "binomial only supports floating-point dtypes for prob, got: %s",
                         grd_dtype_type_name((grd_dtype)prob->dtype));
    if (!is_wide(dtype))
        return grd_raise_no_kernel("binomial", dtype);
    if (count->dtype != prob->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Found dtype %s but expected %s", grd_dtype_type_name((grd_dtype)prob->dtype),
                         grd_dtype_type_name(dtype));
    if (!grd_shape_broadcast(grd_sizes(count), grd_sizes(prob), sizes, &ndim))
        return false;
    const grd_dims to = grd_dims_from(sizes, ndim);
    return grd_plan_reads_as(p, grd_expand(count, to), GRD_FLOAT64) && grd_plan_reads_as(p, grd_expand(prob, to), GRD_FLOAT64) &&
           grd_plan_result(p, to, dtype) && grd_plan_computed_in(p, GRD_FLOAT64) && !grd_pending();
}

void run_binomial(const struct grd_plan *p, grd_tensor *count, grd_tensor *prob, grd_generator *generator)
{
    (void)prob;
    struct grd_generator *locked = grd_generator_lock(generator);
    grd_sample_binomials(locked, p->results[0]->numel, parameters(p, 0), parameters(p, 1), count->dtype == GRD_FLOAT64, drawn(p));
    grd_generator_unlock(locked);
}

/* ---- gamma, Dirichlet ---------------------------------------------------------------------------------------------------------------- */

bool plan_standard_gamma(struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    (void)generator;
    return (is_wide((grd_dtype)self->dtype) || grd_raise_no_kernel("gamma", (grd_dtype)self->dtype)) && plan_drawn(p, self);
}

void run_standard_gamma(const struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    struct grd_generator *locked = grd_generator_lock(generator);
    grd_sample_gammas(locked, self->numel, parameters(p, 0), self->dtype == GRD_FLOAT64, drawn(p));
    grd_generator_unlock(locked);
}

bool plan_sample_dirichlet(struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    (void)generator;
    return (is_wide((grd_dtype)self->dtype) || grd_raise_no_kernel("dirichlet", (grd_dtype)self->dtype)) && plan_drawn(p, self);
}

/* Draws gamma-distributed numbers in float64 and divides each by the sum of its row. */
void run_sample_dirichlet(const struct grd_plan *p, grd_tensor *self, grd_generator *generator)
{
    const int64_t n = self->ndim > 0 ? self->sizes[self->ndim - 1] : 1;
    struct grd_generator *locked = grd_generator_lock(generator);
    grd_sample_gammas(locked, self->numel, parameters(p, 0), true, drawn(p));
    grd_generator_unlock(locked);
    grd_normalize_gammas(self->numel / n, n, self->dtype == GRD_FLOAT64, drawn(p));
}
