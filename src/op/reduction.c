/* Sums and products, any, all, counts, extremes and their places. Moments are in moments.c, norms and logsumexp in norm.c, scans in
 * scan.c; how a reduction runs is in reduce.c. */
#include "base/memory.h"
#include "base/text.h"
#include "gradus/ops/amax.h"
#include "gradus/ops/amin.h"
#include "gradus/ops/div.h"
#include "gradus/ops/eq.h"
#include "gradus/ops/expand.h"
#include "gradus/ops/isnan.h"
#include "gradus/ops/logical_and.h"
#include "gradus/ops/logical_not.h"
#include "gradus/ops/logical_or.h"
#include "gradus/ops/masked_fill.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/nansum.h"
#include "gradus/ops/ne.h"
#include "gradus/ops/reshape.h"
#include "gradus/ops/scatter_add.h"
#include "gradus/ops/sum.h"
#include "gradus/ops/to.h"
#include "gradus/ops/zeros.h"
#include "gen/impl/reduction.h"
#include "op/reduce.h"

/* ---- Sums and products ------------------------------------------------------------------------------------------------------------ */
static uint64_t all_dims(const grd_tensor *self)
{
    return self->ndim == 64 ? ~(uint64_t)0 : ((uint64_t)1 << self->ndim) - 1;
}

/* The mask of an optional single dim: all when absent. */
static bool optional_dim_mask(const grd_tensor *self, grd_scalar dim, uint64_t *ret_mask)
{
    int64_t d;
    if (dim.kind == GRD_SCALAR_NONE) {
        *ret_mask = all_dims(self);
        return true;
    }
    if (!grd_wrap_dim(self, grd_scalar_int64(dim), &d))
        return false;
    *ret_mask = (uint64_t)1 << d;
    return true;
}

/* Integers and bool add up in int64. */
static grd_dtype sum_dtype(const grd_tensor *self, grd_dtype dtype)
{
    if (dtype != GRD_DTYPE_NONE)
        return dtype;
    return grd_reduce_is_integral((grd_dtype)self->dtype) ? GRD_INT64 : (grd_dtype)self->dtype;
}

grd_tensor *op_sum(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    grd_dtype to = sum_dtype(self, dtype);
    if (!grd_reduce_check("sum", self, to) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    if (to == GRD_BOOL)
        return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, GRD_FINISH_ANY, 0);
    return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_SUM, to, GRD_FINISH_NONE, 0);
}

grd_tensor *op_sum_to_size(grd_tensor *self, grd_dims size)
{
    int64_t dims[GRD_MAX_DIMS];
    const int64_t extra = self->ndim - size.n;
    int n = 0;
    bool fits = extra >= 0;
    for (int64_t i = 0; fits && i < self->ndim; i++) {
        const bool stretched = i < extra || size.data[i - extra] != self->sizes[i];
        fits = i < extra || !stretched || size.data[i - extra] == 1;
        if (stretched)
            dims[n++] = i;
    }
    if (!fits) {
        char from[256], to[256];
        return grd_fail(GRD_ERROR_RUNTIME, "size %s is not expandable to size %s.", grd_format_int64s(to, sizeof to, size.data, size.n),
                        grd_format_int64s(from, sizeof from, self->sizes, self->ndim));
    }
    if (size.n == 0)
        return grd_sum(self);
    if (n == 0)
        return self;
    grd_tensor *sum = grd_sum(self, .dim = grd_dims_from(dims, n), .keepdim = true);
    return extra > 0 ? grd_reshape(sum, size) : sum;
}

grd_tensor *op_mean(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    grd_dtype to = dtype != GRD_DTYPE_NONE ? dtype : (grd_dtype)self->dtype;
    if (!grd_dtype_is_floating(to) && !grd_dtype_is_complex(to))
        return grd_fail(GRD_ERROR_RUNTIME,
                        "could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s",
                        dtype != GRD_DTYPE_NONE ? "Optional" : "Input", grd_dtype_type_name(to));
    if (!grd_reduce_check("mean", self, to) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_SUM, to, GRD_FINISH_DIVIDE, grd_reduce_count(grd_sizes(self), mask));
}

grd_tensor *op_prod(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim, grd_dtype dtype)
{
    uint64_t mask;
    grd_dtype to = sum_dtype(self, dtype);
    if (!grd_reduce_check("prod", self, to) || !optional_dim_mask(self, dim, &mask))
        return grd_failed;
    if (to == GRD_BOOL)
        return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, GRD_FINISH_ALL, grd_reduce_count(grd_sizes(self), mask));
    return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_PROD, to, GRD_FINISH_NONE, 0);
}

grd_tensor *op_nansum(grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "nansum on CPU does not support complex inputs");
    if (grd_dtype_is_floating((grd_dtype)self->dtype))
        self = grd_masked_fill(self, grd_ne(self, self), grd_int(0));
    return grd_sum(self, .dim = dim, .keepdim = keepdim, .dtype = dtype);
}

/* ---- Truth and counts --------------------------------------------------------------------------------------------------------------- */
/* Unlike elsewhere, an empty list of dims reduces none. */
static bool truth_mask(const grd_tensor *self, grd_dims dim, uint64_t *ret_mask)
{
    if (dim.data != NULL && dim.n == 0) {
        *ret_mask = 0;
        return true;
    }
    return grd_shape_dim_mask(dim, self->ndim, ret_mask);
}

static grd_tensor *truth(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, const char *name, enum grd_reduce_finish finish)
{
    uint64_t mask;
    grd_dtype to = self->dtype == GRD_UINT8 ? GRD_UINT8 : GRD_BOOL;
    if (!grd_reduce_check(name, self, to) || !truth_mask(self, dim, &mask))
        return grd_failed;
    if (out != NULL && out->dtype != GRD_BOOL && out->dtype != GRD_UINT8)
        return grd_fail(GRD_ERROR_RUNTIME, "%s only supports bool tensor for result, got: %s", name,
                        grd_dtype_type_name((grd_dtype)out->dtype));
    if (out != NULL)
        to = (grd_dtype)out->dtype;
    return grd_reduce(out, self, mask, keepdim, GRD_REDUCE_NONZERO, to, finish, grd_reduce_count(grd_sizes(self), mask));
}

grd_tensor *op_any(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return truth(out, self, dim, keepdim, "any", GRD_FINISH_ANY);
}

grd_tensor *op_all(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return truth(out, self, dim, keepdim, "all", GRD_FINISH_ALL);
}

grd_tensor *op_count_nonzero(grd_tensor *out, grd_tensor *self, grd_dims dim)
{
    uint64_t mask;
    if (!grd_reduce_check("count_nonzero", self, GRD_INT64) || !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    return grd_reduce(out, self, mask, false, GRD_REDUCE_NONZERO, GRD_INT64, GRD_FINISH_NONE, 0);
}

/* ---- Extremes ----------------------------------------------------------------------------------------------------------------------- */
/* There is no extreme of nothing. */
static bool check_not_empty(const grd_tensor *self, bool dim_given, uint64_t mask, grd_error_code code, const char *hint)
{
    if (self->numel != 0)
        return true;
    if (!dim_given)
        return grd_raise(code, "Expected reduction dim to be specified for input.numel() == 0.%s", hint);
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return grd_raise(GRD_ERROR_INDEX, "Expected reduction dim %d to have non-zero size.", d);
    return true;
}

static const char specify_dim[] = " Specify the reduction dim with the 'dim' argument.";

static grd_tensor *extreme(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim, const char *name, enum grd_reduce_kind kind)
{
    uint64_t mask;
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (dtype == GRD_COMPLEX64 || dtype == GRD_COMPLEX128 || !grd_reduce_has_arithmetic(dtype))
        return grd_fail_no_kernel(name, dtype);
    if (!grd_shape_dim_mask(dim, self->ndim, &mask) || !check_not_empty(self, dim.n > 0, mask, GRD_ERROR_RUNTIME, specify_dim))
        return grd_failed;
    return grd_reduce(out, self, mask, keepdim, kind, dtype, GRD_FINISH_NONE, 0);
}

grd_tensor *op_max(grd_tensor *out, grd_tensor *self)
{
    return extreme(out, self, (grd_dims){0, NULL}, false, "max", GRD_REDUCE_MAX);
}

grd_tensor *op_min(grd_tensor *out, grd_tensor *self)
{
    return extreme(out, self, (grd_dims){0, NULL}, false, "min", GRD_REDUCE_MIN);
}

grd_tensor *op_amax(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return extreme(out, self, dim, keepdim, "amax", GRD_REDUCE_MAX);
}

grd_tensor *op_amin(grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim)
{
    return extreme(out, self, dim, keepdim, "amin", GRD_REDUCE_MIN);
}

/* The extreme in a first pass, its first place in a second; `values` may be NULL. False when memory ran out. */
static bool find_extreme(grd_tensor *values, grd_tensor *places, const grd_tensor *self, uint64_t mask, enum grd_reduce_kind kind)
{
    struct grd_reduction r;
    grd_reduction_plan(&r, grd_reduce_read_as(kind, (grd_dtype)self->dtype, (grd_dtype)self->dtype), self, mask);
    grd_reduction_kernel(&r, kind);
    int64_t extreme_bytes = grd_reduction_scratch(&r, true);
    char *extremes = grd_alloc((size_t)extreme_bytes);
    if (extremes == NULL)
        return false;
    if (values != NULL)
        grd_reduction_store(&r, values);
    r.gathered = extremes;
    struct grd_reduction second = r;
    grd_reduction_kernel(&second, GRD_REDUCE_FIND);
    second.center = extremes;
    grd_reduction_store(&second, places);
    int64_t bytes = grd_reduction_scratch(&second, false);
    second.gathered = NULL;
    if (bytes > 0 && (second.gathered = grd_alloc((size_t)bytes)) == NULL) {
        grd_free(extremes, (size_t)extreme_bytes);
        return false;
    }
    grd_reduction_run(&r);
    grd_reduction_run(&second);
    grd_free(second.gathered, (size_t)bytes);
    grd_free(extremes, (size_t)extreme_bytes);
    return true;
}

static void extreme_with_place(grd_tensor *self, int64_t dim, bool keepdim, const char *name, enum grd_reduce_kind kind, grd_tensor **ret)
{
    int64_t d;
    grd_dtype dtype = (grd_dtype)self->dtype;
    ret[0] = ret[1] = grd_failed;
    if (grd_dtype_is_complex(dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "does not support complex input");
        return;
    }
    if (!grd_reduce_has_arithmetic(dtype)) {
        grd_raise_no_kernel(name, dtype);
        return;
    }
    if (!grd_wrap_dim(self, dim, &d) || !check_not_empty(self, true, (uint64_t)1 << d, GRD_ERROR_INDEX, ""))
        return;
    grd_tensor *values = grd_reduce_prepare(NULL, self, (uint64_t)1 << d, keepdim, dtype);
    grd_tensor *places = grd_reduce_prepare(NULL, self, (uint64_t)1 << d, keepdim, GRD_INT64);
    if (grd_pending() || (!grd_is_meta(values) && !find_extreme(values, places, self, (uint64_t)1 << d, kind)))
        return;
    ret[0] = values;
    ret[1] = places;
}

void op_max_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    extreme_with_place(self, dim, keepdim, "max", GRD_REDUCE_MAX, ret);
}

void op_min_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    extreme_with_place(self, dim, keepdim, "min", GRD_REDUCE_MIN, ret);
}

static grd_tensor *place(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim, const char *name, enum grd_reduce_kind kind)
{
    uint64_t mask;
    grd_dtype dtype = (grd_dtype)self->dtype;
    bool everywhere = dim.kind == GRD_SCALAR_NONE;
    if (grd_dtype_is_complex(dtype) || dtype == GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "does not support %s input", dtype == GRD_BOOL ? "bool" : "complex");
    if (!grd_reduce_has_arithmetic(dtype))
        return grd_fail_no_kernel(name, dtype);
    if (!optional_dim_mask(self, dim, &mask) || !check_not_empty(self, !everywhere, mask, GRD_ERROR_INDEX, ""))
        return grd_failed;
    grd_tensor *places = grd_reduce_prepare(out, self, mask, keepdim, GRD_INT64);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(places)) {
        /* The place in row-major order: over a contiguous tensor all dims are one. */
        grd_tensor *in_order = everywhere ? grd_contiguous_as(self, GRD_DTYPE_NONE) : self;
        if (grd_pending() || !find_extreme(NULL, places, in_order, mask, kind))
            return grd_failed;
    }
    return grd_out_finish(out, places);
}

grd_tensor *op_argmax(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim)
{
    return place(out, self, dim, keepdim, "argmax", GRD_REDUCE_MAX);
}

grd_tensor *op_argmin(grd_tensor *out, grd_tensor *self, grd_scalar dim, bool keepdim)
{
    return place(out, self, dim, keepdim, "argmin", GRD_REDUCE_MIN);
}

/* ---- Gradients: composites, differentiable in their turn --------------------------------------------------------------- */
grd_tensor *grd_reduce_restored(grd_tensor *t, grd_dims sizes, uint64_t mask, bool keepdim)
{
    int64_t with_ones[GRD_MAX_DIMS];
    if (keepdim)
        return t;
    for (int64_t d = 0; d < sizes.n; d++)
        with_ones[d] = mask >> d & 1 ? 1 : sizes.data[d];
    return grd_reshape(t, grd_dims_from(with_ones, sizes.n));
}

grd_tensor *grd_quotient_or_zero(grd_tensor *a, grd_tensor *b)
{
    return grd_masked_fill(grd_div(a, b), grd_eq_scalar(b, grd_int(0)), grd_int(0));
}

/* Over the sizes that were reduced. Where those come first, broadcasting restores them. */
static grd_tensor *spread(grd_tensor *grad, grd_dims sizes, uint64_t mask, bool keepdim)
{
    const bool leading = (mask & (mask + 1)) == 0;
    return grd_expand(leading ? grad : grd_reduce_restored(grad, sizes, mask, keepdim), sizes);
}

grd_tensor *op_hidden_sum_backward(grd_tensor *grad, grd_dims sizes, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    return spread(grad, sizes, mask, keepdim);
}

grd_tensor *op_hidden_mean_backward(grd_tensor *grad, grd_dims sizes, grd_dims dim, bool keepdim)
{
    uint64_t mask;
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    grd_tensor *share = grd_div_scalar(grad, grd_float(grd_reduce_count(sizes, mask)));
    return spread(share, sizes, mask, keepdim);
}

void op_aminmax(grd_tensor *self, grd_scalar dim, bool keepdim, grd_tensor **ret)
{
    const int64_t one = grd_scalar_int64(dim);
    const grd_dims dims = dim.kind == GRD_SCALAR_NONE ? GRD_NO_DIMS : grd_dims_from(&one, 1);
    ret[0] = grd_amin(self, .dim = dims, .keepdim = keepdim);
    ret[1] = grd_amax(self, .dim = dims, .keepdim = keepdim);
}

grd_tensor *op_nanmean(grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    if (!grd_dtype_is_floating((grd_dtype)self->dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "nanmean(): expected input to have floating point dtype but got %s",
                        grd_dtype_type_name((grd_dtype)self->dtype));
    grd_tensor *count = grd_sum(grd_logical_not(grd_isnan(self)), .dim = dim, .keepdim = keepdim);
    return grd_div(grd_nansum(self, .dim = dim, .keepdim = keepdim, .dtype = dtype), count);
}

/* Ties share the gradient evenly. */
grd_tensor *op_hidden_extreme_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, grd_dims dim, bool keepdim, bool nan)
{
    uint64_t mask;
    grd_dims sizes = grd_sizes(self);
    if (!grd_shape_dim_mask(dim, sizes.n, &mask))
        return grd_failed;
    grd_tensor *extreme = grd_reduce_restored(result, sizes, mask, keepdim), *equal = grd_eq(self, extreme);
    if (nan)
        equal = grd_logical_or(equal, grd_logical_and(grd_isnan(self), grd_isnan(extreme)));
    grd_tensor *ties = grd_to(equal, .dtype = grd_tensor_dtype(grad));
    return grd_mul(grd_div(grd_reduce_restored(grad, sizes, mask, keepdim), grd_sum(ties, .dim = dim, .keepdim = true)), ties);
}

/* The gradient goes to the place each value came from. */
grd_tensor *op_hidden_choose_backward(grd_tensor *grad, grd_tensor *places, grd_dims sizes, int64_t dim, bool keepdim)
{
    int64_t d;
    if (!grd_shape_wrap_dim(dim, sizes.n, &d))
        return grd_failed;
    grd_tensor *nothing = grd_zeros(sizes, .dtype = grd_tensor_dtype(grad), .device = grd_tensor_device(grad));
    uint64_t mask = (uint64_t)1 << d;
    return grd_scatter_add(nothing, d, grd_reduce_restored(places, sizes, mask, keepdim), grd_reduce_restored(grad, sizes, mask, keepdim));
}
