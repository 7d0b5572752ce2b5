/* Writes elements to positions given by an index. scatter stores them, and scatter_add adds them. scatter_reduce, index_reduce, and scatter with the
 * argument `reduce` reduce all elements with the same position: sums by calling scatter_add, products, minima and maxima by loops of their own
 * (kernel/cpu/index.c). Schema: schema/index.toml.
 *
 * Invariants: every index is checked before anything is written. If several elements have the same position, the last one is stored, and sums are
 * computed in the order of the index. */
#include <math.h>
#include <string.h>

#include "gen/uses/op/scatter.h"
#include "core/dtype.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/index_loops.h"

/* ---- scatter and scatter_add --------------------------------------------------------------------------------------------- */

static bool check_scatter(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *src)
{
    if ((index->numel > 0 && !grd_check_index_dtype(index)) || !grd_check_index_ndim(index, self, "self") ||
        (src && !grd_check_index_ndim(index, src, "src")))
        return false;
    if (src != NULL && src->dtype != self->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "scatter(): Expected self.dtype to be equal to src.dtype, but got %s and %s",
                         grd_dtype_name(self->dtype), grd_dtype_name(src->dtype));
    if (index->numel == 0)
        return true;
    bool fits = src == NULL || src->ndim > 0 || index->numel == 1;
    for (int64_t i = 0; i < index->ndim; i++) {
        fits &= i == dim || self->ndim == 0 || index->sizes[i] <= self->sizes[i];
        fits &= src == NULL || src->ndim == 0 || index->sizes[i] <= src->sizes[i];
    }
    fits &= src == NULL || index->ndim > 0 || src->numel > 0;
    if (fits)
        return true;
    const char *const list = grd_list_text(grd_sizes(index)), *const own = grd_list_text(grd_sizes(self));
    if (src == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected index %s to be no larger than self %s apart from dimension %lld", list, own,
                         (long long)dim);
    return grd_raise(GRD_ERROR_RUNTIME,
                     "Expected index %s to be no larger than self %s apart from dimension %lld and to be no larger size than src %s", list,
                     own, (long long)dim, grd_list_text(grd_sizes(src)));
}

/* Plans a call of `kernel` that writes elements of `src` to self (in place) or to a copy of self. `index` gives the positions along dim. The kernel
 * computes in the dtype `as`. Returns false, with the error raised, on failure. */
static bool plan_elements(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, grd_loop_kernel *kernel,
                          grd_dtype as)
{
    const struct grd_indexed_plan indexed = {.kernel = kernel, .unchecked = index->numel == 0, .range_code = GRD_ERROR_RUNTIME, .dim = dim};
    return grd_plan_writes(p, &indexed, self, index, src, as);
}

bool plan_scatter(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src)
{
    return grd_wrap_dim(self, dim, &dim) && check_scatter(self, dim, index, src) &&
           plan_elements(p, self, dim, index, src, grd_kernel_of_size(grd_kernels->index->scatter, self), (grd_dtype)self->dtype);
}

bool plan_scatter_value(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_scalar value)
{
    struct grd_indexed_plan *indexed = (struct grd_indexed_plan *)(void *)p->state;
    return plan_scatter(p, self, dim, index, NULL) && grd_scalar_write(value, self->dtype, indexed->element);
}

bool plan_scatter_add(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src)
{
    const grd_dtype dtype = grd_computed_dtype(self->dtype);
    grd_loop_kernel *kernel = grd_kernels->index->add[dtype];
    if (!grd_wrap_dim(self, dim, &dim) || !check_scatter(self, dim, index, src))
        return false;
    return kernel != NULL ? plan_elements(p, self, dim, index, src, kernel, dtype) : grd_raise_no_kernel("scatter_add", self->dtype);
}

grd_dims grd_used_sizes(grd_dims index, grd_dims src)
{
    int64_t numel = 0, *const used = grd_pool_array(src.n + 1, sizeof *used);
    for (int64_t i = 0; used != NULL && grd_shape_numel(index, &numel) && i < src.n; i++)
        used[i] = index.n == src.n ? index.data[i] : numel;
    return grd_dims_from(used, used != NULL ? src.n : 0);
}

/* ---- Products, minima and maxima --------------------------------------------------------------------------------------------------- */

/* Returns the reduction with the given name, or GRD_FOLDS if there is none. */
static enum grd_fold fold_of(const char *name)
{
    static const char *const names[GRD_FOLDS] = {"prod", "amax", "amin"};
    int fold = 0;
    while (fold < GRD_FOLDS && strcmp(name, names[fold]) != 0)
        fold++;
    return (enum grd_fold)fold;
}

/* Returns the dtype in which scatter_reduce with the reduction `fold` accumulates elements of `dtype`. */
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
    if (!grd_wrap_dim(self, dim, &dim) || !check_scatter(self, dim, index, src))
        return false;
    const struct grd_indexed_plan indexed = {.kernel = kernel, .unchecked = index->numel == 0, .range_code = GRD_ERROR_RUNTIME, .dim = dim};
    return kernel != NULL ? grd_plan_writes(p, &indexed, self, index, src, dtype) : grd_raise_no_kernel("scatter_reduce", self->dtype);
}

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
