/* Implements index_select and gather, which read the elements that an index selects. Their gradients are formulas that call scatter_add and
 * index_add.
 *
 * Invariant: every index is checked before the result is allocated. */
#include <string.h>

#include "gen/uses/op/gather.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/index_loops.h"
#include "op/sizes.h"

bool plan_index_select(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    if (index->ndim > 1)
        return grd_raise(GRD_ERROR_INDEX, "index_select(): Index is supposed to be a vector");
    if (!grd_is_index_dtype(index))
        return grd_raise(GRD_ERROR_RUNTIME, "index_select(): Expected dtype int32 or int64 for index, but got %s",
                         grd_dtype_name((grd_dtype)index->dtype));
    if (self->ndim == 0 && index->numel != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                         (long long)index->numel);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim > 0)
        sizes[dim] = index->numel;
    const struct grd_indexed_plan indexed = {.kernel = grd_kernel_of_size(grd_kernels->index->gather, self), .slices = true, .dim = dim};
    return grd_plan_gathers(p, &indexed, self, index, grd_dims_from(sizes, self->ndim));
}

bool plan_gather(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index)
{
    if (!grd_wrap_dim(self, dim, &dim) || (index->numel > 0 && !grd_check_index_dtype(index)) ||
        !grd_check_index_ndim(index, self, "input"))
        return false;
    for (int64_t i = 0; index->numel > 0 && i < index->ndim && i < self->ndim; i++) {
        if (i == dim || index->sizes[i] <= self->sizes[i])
            continue;
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Size does not match at dimension %lld expected index %s to be no larger than self %s apart from dimension %lld",
                         (long long)i, grd_list_text(grd_sizes(index)), grd_list_text(grd_sizes(self)), (long long)dim);
    }
    const struct grd_indexed_plan indexed = {.kernel = grd_kernel_of_size(grd_kernels->index->gather, self),
                                             .unchecked = index->numel == 0,
                                             .range_code = GRD_ERROR_RUNTIME,
                                             .dim = dim};
    return grd_plan_gathers(p, &indexed, self, index, grd_sizes(index));
}
