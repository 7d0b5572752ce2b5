/* Running sums and products along one dimension, and the first-order linear recurrence their gradients are.
 *
 * The loops are in kernel/cpu/scan.c. A line is always done by one thread, from its start. */
#include "base/memory.h"
#include "base/parallel.h"
#include "gradus/ops/cat.h"
#include "gradus/ops/conj.h"
#include "gradus/ops/cumprod.h"
#include "gradus/ops/expand.h"
#include "gradus/ops/flip.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/narrow.h"
#include "gradus/ops/ones_like.h"
#include "gradus/ops/reshape.h"
#include "gradus/ops/to.h"
#include "gradus/ops/unsqueeze.h"
#include "gradus/ops/zeros_like.h"
#include "gen/impl/reduction.h"
#include "gen/ops/_linear_scan.h"
#include "gen/ops/_linear_scan_adjoint.h"
#include "kernel/reduce.h"
#include "kernel/table.h"
#include "op/common.h"

enum { COLUMNS = 256, GRAIN = 1 << 14 };

/* Contiguous [outer, n, inner]; a strip is up to COLUMNS neighbours of inner or, when that is 1, up to `together` of outer. */
struct scan {
    grd_scan_kernel *kernel;
    const char *in, *factor;
    char *out;
    int64_t n, inner, outer, together, strips_per_row, size;
    grd_dtype carries;
    bool from_one; /* what the carry starts from; otherwise zero */
};

static void scan_strips(int64_t begin, int64_t end, void *context)
{
    const struct scan *s = context;
    for (int64_t strip = begin; strip < end; strip++) {
        int64_t row = strip / s->strips_per_row * s->together, lines = s->outer - row < s->together ? s->outer - row : s->together;
        int64_t first = strip % s->strips_per_row * COLUMNS, cols = s->inner - first;
        int64_t at = (row * s->n * s->inner + first) * s->size;
        grd_complex128 carry[COLUMNS];
        if (cols > COLUMNS)
            cols = COLUMNS;
        for (int64_t j = 0; j < cols; j++) {
            if (s->carries == GRD_COMPLEX128)
                carry[j] = (grd_complex128){s->from_one, 0};
            else if (s->carries == GRD_FLOAT64)
                ((double *)carry)[j] = s->from_one;
            else
                ((int64_t *)carry)[j] = s->from_one;
        }
        s->kernel(&(struct grd_scan_block){
            .lines = lines,
            .rows = s->n,
            .cols = cols,
            .stride = s->inner * s->size,
            .in = s->in + at,
            .factor = s->factor != NULL ? s->factor + at : NULL,
            .out = s->out + at,
            .carry = carry,
        });
    }
}

/* All three contiguous and of dtype `as`; factor may be NULL. */
static void scan(enum grd_scan_kind kind, grd_dtype as, grd_tensor *out, const grd_tensor *in, const grd_tensor *factor, int64_t dim)
{
    int64_t inner = 1, n = out->ndim > 0 ? out->sizes[dim] : 1;
    if (out->numel == 0)
        return;
    for (int d = (int)dim + 1; d < out->ndim; d++)
        inner *= out->sizes[d];
    struct scan s = {
        .kernel = grd_kernels->reduce->scan[as]->scan[kind],
        .in = in->data,
        .factor = factor != NULL ? factor->data : NULL,
        .out = out->data,
        .n = n,
        .inner = inner,
        .outer = out->numel / n / inner,
        .together = inner > 1       ? 1
                    : n < GRAIN / 4 ? GRAIN / n
                                    : 4,
        .strips_per_row = (inner + COLUMNS - 1) / COLUMNS,
        .size = grd_dtype_size(as),
        .carries = as == GRD_FLOAT32 ? GRD_FLOAT64 : as,
        .from_one = kind == GRD_SCAN_PROD,
    };
    int64_t strips = (s.outer + s.together - 1) / s.together * s.strips_per_row;
    int64_t cost = n * s.together * (inner < COLUMNS ? inner : COLUMNS);
    grd_parallel_for(0, strips, cost < GRAIN ? GRAIN / cost : 1, scan_strips, &s);
}

/* The dtype with a kernel that results of `dtype` are computed in. */
static grd_dtype computed_in(grd_dtype dtype)
{
    switch (grd_category_of(dtype)) {
    case GRD_CATEGORY_COMPLEX:
        return GRD_COMPLEX128;
    case GRD_CATEGORY_FLOAT:
        return dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
    default:
        return GRD_INT64;
    }
}

static grd_tensor *running(grd_tensor *out, grd_tensor *self, int64_t dim, grd_dtype dtype, const char *name, enum grd_scan_kind kind)
{
    int64_t d;
    grd_dtype from = (grd_dtype)self->dtype;
    if (dtype == GRD_DTYPE_NONE)
        dtype = grd_category_of(from) <= GRD_CATEGORY_INTEGER ? GRD_INT64 : from;
    if (dtype == GRD_BOOL || dtype > GRD_COMPLEX128 || from > GRD_COMPLEX128)
        return grd_fail_no_kernel(name, from > GRD_COMPLEX128 ? from : dtype);
    if (!grd_wrap_dim(self, dim, &d) || !grd_out_check_inputs(out, grd_tensors(self)))
        return grd_failed;
    grd_tensor *result = grd_out_prepare(out, grd_sizes(self), dtype, grd_device_of(self));
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        grd_dtype as = computed_in(dtype);
        grd_tensor *in = grd_contiguous_as(self, as);
        grd_tensor *work = dtype == as ? result : in != self ? in : grd_new(grd_sizes(self), as, GRD_CPU);
        if (grd_pending())
            return grd_failed;
        scan(kind, as, work, in, NULL, d);
        if (work != result && !grd_copy_elements(result, work))
            return grd_failed;
    }
    return grd_out_finish(out, result);
}

grd_tensor *op_cumsum(grd_tensor *out, grd_tensor *self, int64_t dim, grd_dtype dtype)
{
    return running(out, self, dim, dtype, "cumsum", GRD_SCAN_SUM);
}

grd_tensor *op_cumprod(grd_tensor *out, grd_tensor *self, int64_t dim, grd_dtype dtype)
{
    return running(out, self, dim, dtype, "cumprod", GRD_SCAN_PROD);
}

/* y[k] = factor[k] * y[k - 1] + self[k], from y[-1] = 0. */
grd_tensor *op_hidden_linear_scan(grd_tensor *self, grd_tensor *factor, int64_t dim)
{
    int64_t d;
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (!grd_wrap_dim(self, dim, &d))
        return grd_failed;
    if (!grd_same_sizes(factor, grd_sizes(self)) || factor->dtype != dtype || dtype < GRD_FLOAT16 || dtype > GRD_COMPLEX128)
        return grd_fail(GRD_ERROR_RUNTIME, "expected two floating point or complex tensors of one shape and dtype");
    grd_tensor *result = grd_out_prepare(NULL, grd_sizes(self), dtype, grd_device_of(self));
    if (grd_pending() || grd_is_meta(result))
        return result;
    grd_dtype as = computed_in(dtype);
    grd_tensor *in = grd_contiguous_as(self, as), *factors = grd_contiguous_as(factor, as);
    grd_tensor *work = dtype == as ? result : in;
    if (grd_pending())
        return grd_failed;
    scan(GRD_SCAN_LINEAR, as, work, in, factors, d);
    if (work != result && !grd_copy_elements(result, work))
        return grd_failed;
    return result;
}

/* ---- Gradients: composites, differentiable in their turn ---------------------------------------------------------------------------- */
/* t moved by one along dim, with zeros or ones where nothing moves to: t[k - 1], or t[k + 1] when `back`. */
static grd_tensor *moved(grd_tensor *t, int64_t dim, bool back, bool ones)
{
    int64_t n = grd_size(t, dim);
    grd_tensor *end = grd_narrow(t, dim, 0, 1), *rest = grd_narrow(t, dim, back, n - 1);
    grd_tensor *fresh = ones ? grd_ones_like(end) : grd_zeros_like(end);
    return grd_cat(back ? grd_tensors(rest, fresh) : grd_tensors(fresh, rest), .dim = dim);
}

/* The adjoint of a recurrence runs backward: g[k] = grad[k] + conj(factor[k + 1]) * g[k + 1]. */
grd_tensor *op_hidden_linear_scan_adjoint(grd_tensor *grad, grd_tensor *factor, int64_t dim)
{
    if (grd_ndim(grad) == 0 || grd_numel(grad) == 0)
        return grad;
    grd_dims dims = grd_dims_from(&dim, 1);
    grd_tensor *factors = grd_flip(moved(grd_conj(factor), dim, true, false), dims);
    return grd_flip(grd_hidden_linear_scan(grd_flip(grad, dims), factors, dim), dims);
}

grd_tensor *op_hidden_linear_scan_factor_backward(grd_tensor *grad, grd_tensor *factor, grd_tensor *result, int64_t dim)
{
    if (grd_ndim(grad) == 0)
        return grd_zeros_like(grad);
    if (grd_numel(grad) == 0)
        return grad;
    return grd_mul(grd_hidden_linear_scan_adjoint(grad, factor, dim), grd_conj(moved(result, dim, false, false)));
}

/* d/dx[k] = (product before k) * s[k], s[k] = grad[k] + x[k + 1] * s[k + 1]: no division, so zeros need no care. */
grd_tensor *op_hidden_cumprod_backward(grd_tensor *grad, grd_tensor *self, grd_tensor *result, int64_t dim)
{
    if (grd_ndim(grad) == 0 || grd_numel(grad) == 0)
        return grad;
    self = grd_to(self, .dtype = grd_tensor_dtype(grad));
    return grd_mul(grd_hidden_linear_scan_adjoint(grad, self, dim), grd_conj(moved(result, dim, false, true)));
}

/* The products of all others along a dim are exclusive running products from both ends. */
static grd_tensor *product_of_others(grd_tensor *t, int64_t dim)
{
    grd_dims dims = grd_dims_from(&dim, 1);
    grd_tensor *before = grd_cumprod(moved(t, dim, false, true), dim);
    grd_tensor *after = grd_flip(grd_cumprod(grd_flip(moved(t, dim, true, true), dims), dim), dims);
    return grd_mul(before, after);
}

/* Right with any number of zeros. */
grd_tensor *op_hidden_prod_backward(grd_tensor *grad, grd_tensor *self, grd_scalar dim, bool keepdim)
{
    self = grd_to(self, .dtype = grd_tensor_dtype(grad));
    if (grd_ndim(self) == 0 || grd_numel(self) == 0)
        return grd_expand(grd_ndim(self) == 0 ? grad : grd_zeros_like(self), grd_sizes(self));
    if (dim.kind == GRD_SCALAR_NONE) {
        grd_tensor *others = product_of_others(grd_reshape(self, grd_dims(-1)), 0);
        return grd_mul(grd_reshape(grd_conj(others), grd_sizes(self)), keepdim ? grad : grd_reshape(grad, GRD_NO_DIMS));
    }
    grd_tensor *others = product_of_others(self, grd_scalar_int64(dim));
    return grd_mul(keepdim ? grad : grd_unsqueeze(grad, grd_scalar_int64(dim)), grd_conj(others));
}
