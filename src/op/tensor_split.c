/* Computes tensor_split, and checks the arguments of hsplit, vsplit and dsplit. The other operators that split a tensor into views are in view.c. */
#include <string.h>

#include "gen/uses/op/tensor_split.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/plan.h"

/* Splits self along `dim` before each index in `places`, and returns the parts as views. The first part starts at index 0. */
static grd_tensors cut(grd_tensor *self, grd_dims places, int64_t dim)
{
    if (self->ndim == 0)
        grd_raise(GRD_ERROR_RUNTIME, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    grd_tensor **list = !grd_pending() && grd_wrap_dim(self, dim, &dim) ? grd_pool_array(places.n + 1, sizeof *list) : NULL;
    for (int64_t i = 0, start = 0; list != NULL && i <= places.n; i++) {
        const int64_t end = i < places.n ? places.data[i] : self->sizes[dim];
        list[i] = grd_slice(self, .dim = dim, .start = grd_int(start), .end = grd_int(end));
        start = end;
    }
    return grd_list_made(list, places.n + 1);
}

grd_tensors op_tensor_split(grd_tensor *self, int64_t sections, int64_t dim)
{
    const int64_t size = self->ndim > 0 ? grd_size(self, dim) : 0;
    if (sections <= 0 && self->ndim > 0)
        grd_raise(GRD_ERROR_RUNTIME, "number of sections must be larger than 0, got %lld", (long long)sections);
    int64_t *places = grd_pending() ? NULL : grd_pool_array(sections, sizeof *places);
    if (places == NULL)
        return (grd_tensors){0};
    for (int64_t i = 1, place = 0; i < sections; i++)
        places[i - 1] = place += size / sections + (i <= size % sections);
    return cut(self, grd_dims_from(places, grd_greatest(sections, 1) - 1), dim);
}

grd_tensors op_tensor_split_indices(grd_tensor *self, grd_dims indices, int64_t dim)
{
    return cut(self, indices, dim);
}

grd_tensors op_tensor_split_tensor(grd_tensor *self, grd_tensor *tensor_indices_or_sections, int64_t dim)
{
    grd_tensor *given = tensor_indices_or_sections;
    if (given->dtype != GRD_INT64)
        grd_raise(GRD_ERROR_RUNTIME, "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
                  grd_dtype_type_name((grd_dtype)given->dtype));
    else if (given->ndim > 1)
        grd_raise(GRD_ERROR_RUNTIME,
                  "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor "
                  "with %d dims",
                  given->ndim);
    if (grd_pending() || !grd_check_has_data(given))
        return (grd_tensors){0};
    if (given->ndim == 0)
        return grd_tensor_split(self, grd_item_int64(given), .dim = dim);
    given = grd_contiguous(grd_to(given, .device = GRD_CPU));
    return grd_pending() ? (grd_tensors){0} : cut(self, grd_dims_from((const int64_t *)(const void *)given->data, given->numel), dim);
}

bool grd_split_check(const grd_tensor *self, int64_t least, int64_t dim, int64_t sections, const char *name)
{
    if (self->ndim < least)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.%s requires a tensor with at least %lld dimension, but got a tensor with %d dimensions!",
                         name, (long long)least, self->ndim);
    return (sections != 0 && self->sizes[dim] % sections == 0) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "torch.%s attempted to split along dimension %lld, but the size of the dimension %lld is not divisible by the "
                     "split_size %lld!",
                     name, (long long)dim, (long long)self->sizes[dim], (long long)sections);
}
