/* Reductions of what an index sends to one place: scatter_reduce, index_reduce, scatter with a word for how. Sums are scatter_add's; products and
 * extremes have loops of their own (kernel/cpu/index.c). Schema: schema/index.toml. */
#include <math.h>
#include <string.h>

#include "gen/uses/op/scatter_reduce.h"
#include "gradus/library.h"
#include "op/indexed.h"
#include "op/formula.h"

/* ---- Products and extremes --------------------------------------------------------------------------------------------------------- */

/* GRD_FOLDS when there is no such word. */
static enum grd_fold fold_of(const char *name)
{
    static const char *const names[GRD_FOLDS] = {"prod", "amax", "amin"};
    int fold = 0;
    while (fold < GRD_FOLDS && strcmp(name, names[fold]) != 0)
        fold++;
    return (enum grd_fold)fold;
}

/* The dtype it is computed in. */
static grd_dtype fold_dtype(enum grd_fold fold, grd_dtype dtype)
{
    switch (grd_category_of(dtype)) {
    case GRD_CATEGORY_FLOAT:
        return fold == GRD_FOLD_PROD || dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
    case GRD_CATEGORY_COMPLEX:
        return GRD_COMPLEX128;
    default:
        return dtype == GRD_UINT64 && fold != GRD_FOLD_PROD ? dtype : GRD_INT64;
    }
}

bool plan_hidden_scatter_fold(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, const char *reduce)
{
    const enum grd_fold fold = fold_of(reduce);
    const grd_dtype dtype = fold_dtype(fold, self->dtype);
    grd_loop_kernel *kernel = fold < GRD_FOLDS ? grd_kernels->index->fold[fold][dtype] : NULL;
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_scatter(self, dim, index, src))
        return false;
    const struct grd_indexed_plan indexed = {.kernel = kernel, .unchecked = index->numel == 0, .range_code = GRD_ERROR_RUNTIME, .dim = dim};
    return kernel != NULL ? grd_plan_writes(p, &indexed, self, index, src, dtype) : grd_raise_no_kernel("scatter_reduce", self->dtype);
}

/* Of equal extremes, where they are in self and src; their number is added up per place. */
static grd_tensor *extreme_backward(grd_tensor *grad, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, grd_tensor *result,
                                    bool of_src)
{
    grd_tensor *in_self = grd_to(grd_eq(self, result), .dtype = self->dtype);
    grd_tensor *in_src = grd_to(grd_eq(src, grd_gather(result, dim, index)), .dtype = src->dtype);
    grd_tensor *share = grd_div(grad, grd_scatter_add(in_self, dim, index, in_src));
    return of_src ? grd_mul(in_src, grd_gather(share, dim, index)) : grd_mul(in_self, share);
}

/* result / src where src is not 0. Where it is the only 0 of its place, the product with 1 in its stead; 0 where there are more. */
static grd_tensor *product_backward(grd_tensor *grad, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, grd_tensor *result)
{
    const grd_scalar one = grd_int(1), none = grd_int(0);
    grd_tensor *is_zero = grd_eq_scalar(src, none);
    grd_tensor *zeros = grd_scatter_add(grd_zeros_like(self, .dtype = GRD_INT64), dim, index, grd_to(is_zero, .dtype = GRD_INT64));
    grd_tensor *single = grd_logical_and(is_zero, grd_eq_scalar(grd_gather(zeros, dim, index), one));
    grd_tensor *others = grd_hidden_scatter_fold(self, dim, index, grd_masked_fill(src, single, one), "prod");
    grd_tensor *divided = grd_div(grd_gather(grd_mul(grad, grd_conj(result)), dim, index), grd_conj(grd_masked_fill(src, is_zero, one)));
    return grd_where(single, grd_gather(grd_mul(grad, grd_conj(others)), dim, index), grd_masked_fill(divided, is_zero, none));
}

/* The elements of src that the index uses: as many as it has along each dimension. */
static grd_tensor *used(grd_tensor *src, const grd_tensor *index)
{
    for (int64_t i = 0; i < src->ndim && i < index->ndim && !grd_pending(); i++)
        if (src->sizes[i] != index->sizes[i])
            src = grd_narrow(src, i, 0, index->sizes[i]);
    return src;
}

grd_tensor *op_hidden_scatter_fold_backward(grd_tensor *grad_output, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src,
                                            grd_tensor *result, const char *reduce, bool of_src)
{
    if (index->numel == 0)
        return of_src ? grd_zeros_like(src) : grad_output;
    grd_tensor *values = used(src, index), *grad;
    if (grd_pending())
        return grd_failed;
    if (fold_of(reduce) != GRD_FOLD_PROD)
        grad = extreme_backward(grad_output, self, dim, index, values, result, of_src);
    else if (of_src)
        grad = product_backward(grad_output, self, dim, index, values, result);
    else
        grad = grd_mul(grad_output, grd_conj(grd_hidden_scatter_fold(grd_ones_like(self), dim, index, values, "prod")));
    return of_src && !grd_pending() ? grd_scatter_grown(grad, grd_sizes(src)) : grad;
}

/* ---- By name ------------------------------------------------------------------------------------------------------------------------ */

grd_scalar grd_scatter_identity(const char *reduce, grd_dtype dtype)
{
    const enum grd_fold fold = fold_of(reduce);
    const double sign = fold == GRD_FOLD_AMAX ? -1 : 1;
    if (fold == GRD_FOLD_PROD || fold == GRD_FOLDS)
        return grd_int(fold == GRD_FOLD_PROD);
    if (grd_category_of(dtype) == GRD_CATEGORY_FLOAT)
        return grd_float(sign * INFINITY);
    int64_t low, high;
    grd_int64_bounds(dtype, &low, &high);
    return grd_int(fold == GRD_FOLD_AMIN ? high : low);
}

grd_tensor *grd_scatter_counts(grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, bool include_self)
{
    grd_tensor *count = include_self ? grd_ones_like(self) : grd_zeros_like(self);
    count = grd_scatter_add(count, dim, index, grd_ones_like(src));
    return include_self ? count : grd_masked_fill(count, grd_logical_not(count), grd_int(1));
}

grd_tensor *op_hidden_scatter_reduce_backward(grd_tensor *grad, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src,
                                              grd_tensor *result, const char *reduce, bool include_self, bool of_src)
{
    const enum grd_fold fold = fold_of(reduce);
    grd_tensor *each;
    if (fold < GRD_FOLDS) {
        grd_tensor *base = include_self ? self : grd_scatter_value(self, dim, index, grd_scatter_identity(reduce, self->dtype));
        each = grd_hidden_scatter_fold_backward(grad, base, dim, index, src, result, reduce, of_src);
    } else {
        each = strcmp(reduce, "sum") == 0 ? grad : grd_div(grad, grd_scatter_counts(self, dim, index, src, include_self));
        each = of_src ? grd_hidden_scatter_source_backward(each, dim, index, grd_sizes(src)) : each;
    }
    return of_src || include_self ? each : grd_scatter_value(each, dim, index, grd_int(0));
}
