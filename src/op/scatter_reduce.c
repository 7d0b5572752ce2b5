/* Reductions of what an index sends to one place: scatter_reduce, index_reduce, scatter with a word for how. Sums are scatter_add's; products and
 * extremes have loops of their own (kernel/cpu/index.c). Schema: schema/index.toml. */
#include <math.h>
#include <string.h>

#include "gen/uses/op/scatter_reduce.h"
#include "gradus/library.h"
#include "op/index_loops.h"
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
