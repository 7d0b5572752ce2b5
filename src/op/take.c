/* Computes take and take_along_dim by calls of other operators, and checks the arguments of put. Where the schema has no gradient formula, autograd
 * records the operators that are called. Schema: schema/arrange.toml. */
#include <string.h>

#include "gen/uses/op/take.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/index.h"
#include "op/formula.h"
#include "op/index_loops.h"
#include "op/plan.h"

grd_tensor *op_take(grd_tensor *out, grd_tensor *self, grd_tensor *index)
{
    if (!grd_check_indexed_out(out, grd_tensors(self, index)))
        return grd_failed;
    if (index->dtype != GRD_INT64)
        return grd_fail(GRD_ERROR_RUNTIME, "take(): Expected a long tensor for index, but got %s",
                        grd_dtype_type_name((grd_dtype)index->dtype));
    if (self->numel == 0 && index->numel > 0)
        return grd_fail(GRD_ERROR_INDEX, "take(): tried to take from an empty tensor");
    grd_tensor *taken = grd_index(grd_reshape(self, grd_dims(-1)), grd_tensors(index));
    return grd_composite_finish(out, NULL, out == NULL ? grd_composite_contiguous(taken) : taken);
}

bool grd_put_check(const grd_tensor *self, const grd_tensor *index, const grd_tensor *source)
{
    if (index->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "put_(): Expected a long tensor for index, but got %s",
                         grd_dtype_type_name((grd_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s",
                         grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)source->dtype));
    if (self->numel == 0 && index->numel > 0)
        return grd_raise(GRD_ERROR_INDEX, "put_(): Tried to put elements into an empty tensor");
    return source->numel == index->numel ||
           grd_raise(
               GRD_ERROR_INDEX,
               "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, index.numel() = %lld",
               (long long)source->numel, (long long)index->numel);
}

/* Returns t broadcast against `other` in all dimensions except `dim`, in which t keeps its size. */
static grd_tensor *spread_but(grd_tensor *t, const grd_tensor *other, int64_t dim)
{
    int64_t own[GRD_MAX_DIMS], its[GRD_MAX_DIMS], sizes[GRD_MAX_DIMS], n;
    memcpy(own, t->sizes, t->ndim * sizeof *own);
    memcpy(its, other->sizes, other->ndim * sizeof *its);
    own[dim] = its[dim] = 1;
    if (!grd_shape_broadcast(grd_dims_from(own, t->ndim), grd_dims_from(its, other->ndim), sizes, &n))
        return grd_failed;
    sizes[dim] = t->sizes[dim];
    return grd_expand(t, grd_dims_from(sizes, n));
}

grd_tensor *op_take_along_dim(grd_tensor *self, grd_tensor *indices, grd_scalar dim)
{
    int64_t along;
    if (indices->dtype != GRD_INT64)
        return grd_fail(GRD_ERROR_RUNTIME, "torch.take_along_dim(): dtype of indices should be Long but got %s",
                        grd_dtype_type_name((grd_dtype)indices->dtype));
    if (dim.kind == GRD_SCALAR_NONE)
        return grd_gather(grd_reshape(self, grd_dims(-1)), 0, grd_reshape(indices, grd_dims(-1)));
    if (self->ndim != indices->ndim)
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d dimensions for input, and %d "
            "dimensions for indices",
            self->ndim, indices->ndim);
    if (!grd_wrap_dim(self, grd_scalar_int64(dim), &along))
        return grd_failed;
    indices = grd_where(grd_lt_scalar(indices, grd_int(0)), grd_add_scalar(indices, grd_int(grd_size_along(self, along))), indices);
    if (grd_pending())
        return grd_failed;
    return self->ndim == 0 ? grd_gather(self, 0, indices)
                           : grd_gather(spread_but(self, indices, along), along, spread_but(indices, self, along));
}
