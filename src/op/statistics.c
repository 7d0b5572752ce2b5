/* Computes quantiles and covariance, and checks the arguments of the trapezoidal rule. Schema: schema/statistics.toml.
 *
 * All these operators are composed of other operators, which are differentiated one by one. */
#include <string.h>

#include "base/error.h"
#include "gen/uses/op/statistics.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/order.h"

/* ---- Quantiles --------------------------------------------------------------------------------------------------------------------- */

/* Maximum number of elements along the reduced dimension. With more elements, float32 could not represent every rank exactly. */
static const int64_t LONGEST = INT64_C(1) << 24;

static bool check_quantile(grd_tensor *self, grd_tensor *q)
{
    if (self->numel == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "quantile() input tensor must be non-empty");
    if (q->ndim > 1)
        return grd_raise(GRD_ERROR_RUNTIME, "quantile() q must be a scalar or 1D tensor");
    if (self->dtype != GRD_FLOAT32 && self->dtype != GRD_FLOAT64)
        return grd_raise(GRD_ERROR_RUNTIME, "quantile() input tensor must be either float or double dtype");
    if (self->dtype != q->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "quantile() q tensor must be same dtype as the input tensor");
    if (self->device != q->device || self->device_index != q->device_index)
        return grd_raise(GRD_ERROR_RUNTIME, "quantile() q tensor must be on the same device as the input tensor");
    return true;
}

grd_tensor *grd_quantile_fraction(grd_tensor *self, double q)
{
    if (!(q >= 0 && q <= 1))
        return grd_fail(GRD_ERROR_RUNTIME, "quantile() q must be in the range [0, 1] but got %g", q);
    return grd_full((grd_dims){0}, grd_float(q), .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
}

/* Returns the positions of the quantiles q in sorted lines, i.e. along the last dimension. A fraction means a position between two elements. NaNs are
 * at the end of a sorted line. If `ignore_nan`, they do not count as elements. Otherwise a line with a NaN gives the position of its last element,
 * which is NaN. */
static grd_tensor *ranks_of(grd_tensor *lines, grd_tensor *q, bool ignore_nan)
{
    if (ignore_nan) {
        grd_tensor *count = grd_sum(grd_logical_not(grd_isnan(lines)), .dim = grd_dims(-1), .keepdim = true);
        return grd_clamp(grd_mul(q, grd_sub_scalar(count, grd_int(1))), .min = grd_int(0));
    }
    const int64_t last = grd_size(lines, -1) - 1;
    return grd_where(grd_isnan(grd_narrow(lines, -1, last, 1)), grd_number(grd_int(last)), grd_mul_scalar(q, grd_int(last)));
}

/* Returns the elements at the positions `ranks` of `lines`, which is sorted along its last dimension. If a rank is not an integer, `interpolation`
 * says how the value is computed from the two elements next to the rank. */
static grd_tensor *at_ranks(grd_tensor *lines, grd_tensor *ranks, const char *interpolation)
{
    const bool linear = strcmp(interpolation, "linear") == 0, midpoint = strcmp(interpolation, "midpoint") == 0;
    if (linear || midpoint) {
        grd_tensor *below = grd_to(ranks, .dtype = GRD_INT64), *above = grd_to(grd_ceil(ranks), .dtype = GRD_INT64);
        grd_tensor *weight = midpoint ? grd_full_like(ranks, grd_float(0.5)) : grd_sub(ranks, below);
        return grd_lerp(grd_gather(lines, -1, below), grd_gather(lines, -1, above), weight);
    }
    if (strcmp(interpolation, "lower") == 0)
        ranks = grd_floor(ranks);
    else if (strcmp(interpolation, "higher") == 0)
        ranks = grd_ceil(ranks);
    else if (strcmp(interpolation, "nearest") == 0)
        ranks = grd_round(ranks);
    else
        return grd_fail(GRD_ERROR_RUNTIME, "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s",
                        interpolation);
    return grd_gather(lines, -1, grd_to(ranks, .dtype = GRD_INT64));
}

/* Returns quantiles along `dim`, or of all elements if `dim` is None. Returns grd_failed on an error. First moves the elements along the reduced
 * dimensions to a new last dimension, which is then sorted. The reduced dimensions keep size 1. */
grd_tensor *op_hidden_quantile(grd_tensor *self, grd_tensor *q, grd_scalar dim, bool keepdim, const char *interpolation, bool ignore_nan)
{
    int64_t along = 0, sizes[GRD_MAX_DIMS + 1];
    const bool all = dim.kind == GRD_SCALAR_NONE;
    if (!check_quantile(self, q) || (!all && !grd_wrap_dim(self, grd_scalar_int64(dim), &along)))
        return grd_failed;
    if (!grd_composite_within(q, 0, 1))
        return grd_fail(GRD_ERROR_RUNTIME, "quantile() q values must be in the range [0, 1]");
    for (int64_t i = 0; i < self->ndim; i++)
        sizes[i] = 1;
    sizes[self->ndim] = self->numel;
    const bool is_one_line = all || self->ndim == 0;
    grd_tensor *lines =
        is_one_line ? grd_reshape(self, grd_dims_from(sizes, self->ndim + 1)) : grd_transpose(grd_unsqueeze(self, -1), along, -1);
    if (grd_size(lines, -1) > LONGEST)
        return grd_fail(GRD_ERROR_RUNTIME, "quantile() input tensor is too large");
    lines = grd_sort(lines).values;
    grd_tensor *values = at_ranks(lines, ranks_of(lines, grd_reshape(q, grd_dims(-1)), ignore_nan), interpolation);
    grd_tensor *found = q->ndim > 0 ? grd_movedim(values, grd_dims(-1), grd_dims(0)) : grd_squeeze(values, .dim = grd_dims(-1));
    if (keepdim || self->ndim == 0)
        return found;
    return is_one_line ? grd_reshape(found, grd_sizes(q)) : grd_squeeze(found, .dim = grd_dims(q->ndim + along));
}

/* ---- Covariance -------------------------------------------------------------------------------------------------------------------- */

static bool check_weights(const char *name, const char *kind, grd_tensor *weights, bool is_of_kind, int64_t observations)
{
    if (weights->ndim > 1)
        return grd_raise(GRD_ERROR_RUNTIME, "cov(): expected %s to have one or fewer dimensions but got %s with %d dimensions", name, name,
                         weights->ndim);
    if (!is_of_kind)
        return grd_raise(GRD_ERROR_RUNTIME, "cov(): expected %s to have %s dtype but got %s with %s dtype", name, kind, name,
                         grd_dtype_type_name((grd_dtype)weights->dtype));
    if (weights->numel != observations)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "cov(): expected %s to have the same numel as there are observations in the input but got %lld != %lld", name,
                         (long long)weights->numel, (long long)observations);
    return grd_check_ordered("cov", (grd_dtype)weights->dtype);
}

static bool check_not_negative(const char *name, grd_tensor *weights)
{
    double least;
    return weights == NULL || !grd_composite_extremes(weights, &least, NULL) || !(least < 0) ||
           grd_raise(GRD_ERROR_RUNTIME, "cov(): %s cannot be negative", name);
}

/* Checks the weights, which may be NULL. Sets *ret_weights to fweights * aweights if both are given, otherwise to the one that is given or to NULL.
 * Returns false, with the error raised, if a weight is invalid. */
static bool take_weights(grd_tensor *fweights, grd_tensor *aweights, int64_t observations, grd_tensor **ret_weights)
{
    *ret_weights = fweights != NULL ? fweights : aweights;
    if (fweights != NULL &&
        !check_weights("fweights", "integral", fweights, grd_dtype_is_integer((grd_dtype)fweights->dtype), observations))
        return false;
    if (aweights != NULL &&
        !check_weights("aweights", "floating point", aweights, grd_dtype_is_floating((grd_dtype)aweights->dtype), observations))
        return false;
    /* The values of the weights are checked last, since this check has to read the data. */
    if (!check_not_negative("fweights", fweights) || !check_not_negative("aweights", aweights))
        return false;
    if (fweights != NULL && aweights != NULL)
        *ret_weights = grd_mul(fweights, aweights);
    return !grd_pending();
}

grd_tensor *op_cov(grd_tensor *self, int64_t correction, grd_tensor *fweights, grd_tensor *aweights)
{
    if (self->ndim > 2)
        return grd_fail(GRD_ERROR_RUNTIME, "cov(): expected input to have two or fewer dimensions but got an input with %d dimensions",
                        self->ndim);
    if (self->dtype == GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "cov(): bool dtype is not supported for input");
    grd_tensor *rows = self->ndim == 2 ? self : grd_reshape(self, grd_dims(1, self->numel)), *weights;
    if (grd_pending() || !take_weights(fweights, aweights, rows->sizes[1], &weights))
        return grd_failed;
    grd_tensor *total =
        weights == NULL ? grd_full((grd_dims){0}, grd_int(rows->sizes[1]), .device = grd_device_of(self)) : grd_sum(weights);
    if (weights != NULL && grd_composite_has_values(total) && grd_item_double(total) == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "cov(): weights sum to zero, can't be normalized");
    grd_tensor *mean = grd_div(grd_sum(weights == NULL ? rows : grd_mul(rows, weights), .dim = grd_dims(1), .keepdim = true), total);
    grd_tensor *less = grd_number(grd_int(correction));
    if (aweights != NULL && correction != 0)
        less = grd_div(grd_mul(less, grd_sum(grd_mul(weights, aweights))), total);
    grd_tensor *freedom = grd_sub(total, less);
    if (grd_composite_has_values(freedom) && grd_item_double(freedom) <= 0) {
        grd_warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
        freedom = grd_zeros_like(freedom);
    }
    grd_tensor *centered = grd_sub(rows, mean), *weighted = weights == NULL ? centered : grd_mul(centered, weights);
    return grd_squeeze(grd_div(grd_mm(centered, grd_conj_physical(grd_t(weighted))), freedom));
}

/* ---- The trapezoidal rule ------------------------------------------------------------------------------------------------------------ */

static bool check_samples(const grd_tensor *y, int64_t dim)
{
    return y->ndim > 0 ? grd_wrap_dim(y, dim, &dim)
                       : grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
}

bool grd_trapezoid_check(const grd_tensor *y, grd_scalar dx, int64_t dim, const char *function)
{
    if (y->dtype == GRD_BOOL)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: received a bool input for `y`, but bool is not supported", function);
    if (dx.kind == GRD_SCALAR_COMPLEX || dx.kind == GRD_SCALAR_BOOL)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Currently, we only support dx as a real number.", function);
    return check_samples(y, dim);
}

grd_tensor *grd_trapezoid_places(const grd_tensor *y, grd_tensor *x, int64_t dim, const char *function)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (y->dtype == GRD_BOOL || x->dtype == GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "%s: received a bool input for `x` or `y`, but bool is not supported", function);
    if (!check_samples(y, dim))
        return grd_failed;
    if (x->ndim == 1 && x->numel != grd_size(y, dim))
        return grd_fail(GRD_ERROR_RUNTIME, "%s: There must be one `x` value for each sample point", function);
    if (x->ndim == 1)
        return grd_composite_along(x, y->ndim, grd_wrapped_dim(y, dim));
    if (x->ndim >= y->ndim)
        return x;
    for (int64_t i = 0; i < y->ndim; i++)
        sizes[i] = i < y->ndim - x->ndim ? 1 : x->sizes[i - (y->ndim - x->ndim)];
    return grd_reshape(x, grd_dims_from(sizes, y->ndim));
}
