/* Implements operators that give several tensors the same shape: broadcast_tensors and meshgrid. Schema: schema/combine.toml and
 * schema/arrange.toml. */
#include <string.h>

#include "gen/uses/op/broadcast.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/plan.h"

grd_tensors op_broadcast_tensors(grd_tensors tensors)
{
    int64_t sizes[GRD_MAX_DIMS], n = 0;
    grd_tensor **views = grd_pool_array(tensors.n, sizeof *views);
    for (int64_t i = 0; i < tensors.n && !grd_pending(); i++) {
        int64_t before[GRD_MAX_DIMS];
        memcpy(before, sizes, (size_t)n * sizeof *before);
        grd_shape_broadcast(grd_dims_from(before, n), grd_sizes(tensors.data[i]), sizes, &n);
    }
    const grd_dims common = grd_dims_from(sizes, n);
    for (int64_t i = 0; i < tensors.n && !grd_pending(); i++)
        views[i] = grd_same_sizes(tensors.data[i], common) ? tensors.data[i] : grd_expand(tensors.data[i], common);
    return grd_list_made(views, tensors.n);
}

static bool check_grid(grd_tensors tensors, const char *indexing)
{
    if (strcmp(indexing, "xy") != 0 && strcmp(indexing, "ij") != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s", indexing);
    if (tensors.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "meshgrid expects a non-empty TensorList");
    if (!grd_check_ndim(tensors.n))
        return false;
    for (int64_t i = 0; i < tensors.n; i++) {
        if (tensors.data[i]->ndim > 1)
            return grd_raise(GRD_ERROR_RUNTIME, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: %d dimensions",
                             tensors.data[i]->ndim);
        if (tensors.data[i]->dtype != tensors.data[0]->dtype)
            return grd_raise(GRD_ERROR_RUNTIME, "meshgrid expects all tensors to have the same dtype");
    }
    return true;
}

grd_tensors op_meshgrid(grd_tensors tensors, const char *indexing)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t n = tensors.n;
    grd_tensor **list = check_grid(tensors, indexing) ? grd_pool_array(n, sizeof *list) : NULL;
    if (list == NULL)
        return (grd_tensors){0};
    /* 1 if indexing = "xy", which exchanges the first two dimensions of the result; otherwise 0 */
    const int64_t swapped = indexing[0] == 'x' && n > 1;
    for (int64_t i = 0; i < n; i++)
        sizes[i < 2 ? i ^ swapped : i] = tensors.data[i]->numel;
    for (int64_t i = 0; i < n; i++) {
        int64_t one[GRD_MAX_DIMS];
        for (int64_t k = 0; k < n; k++)
            one[k] = 1;
        one[i < 2 ? i ^ swapped : i] = -1;
        list[i] = grd_expand(grd_reshape(tensors.data[i], grd_dims_from(one, n)), grd_dims_from(sizes, n));
    }
    return grd_list_made(list, n);
}

bool grd_vectors_check(grd_tensors tensors)
{
    for (int64_t i = 0; i < tensors.n; i++)
        if (tensors.data[i]->ndim != 1)
            return grd_raise(GRD_ERROR_RUNTIME, "Expect a 1D vector, but got shape %s", grd_list_text(grd_sizes(tensors.data[i])));
    return true;
}
