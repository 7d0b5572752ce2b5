/* Computes lists of sizes and dims for plans and formulas, and numbers such as the product of a list. */
#include "op/sizes.h"

#include <string.h>

#include "base/object.h"
#include "base/text.h"
#include "core/shape.h"
#include "core/tensor.h"

enum { LIST_CHARS = 1024 };

const char *grd_list_text(grd_dims list)
{
    char *text = grd_pool_alloc(LIST_CHARS);
    return text != NULL ? grd_format_int64s(text, LIST_CHARS, list.data, list.n) : "[]";
}

bool grd_same_sizes(const grd_tensor *t, grd_dims sizes)
{
    return t->ndim == sizes.n && memcmp(t->sizes, sizes.data, (size_t)sizes.n * sizeof *sizes.data) == 0;
}

int64_t grd_numel_of(grd_dims sizes)
{
    int64_t numel;
    return grd_shape_numel(sizes, &numel) ? numel : 0;
}

int64_t grd_least_of(grd_dims sizes)
{
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < sizes.n; i++)
        least = sizes.data[i] < least ? sizes.data[i] : least;
    return least;
}

grd_dims grd_last_dims(grd_dims shape)
{
    int64_t *const dims = grd_pool_array(shape.n + 1, sizeof *dims);
    for (int64_t i = 0; dims != NULL && i < shape.n; i++)
        dims[i] = i - shape.n;
    return grd_dims_from(dims, shape.n);
}

grd_dims grd_dims_but(grd_dims sizes, int64_t dim)
{
    int64_t *const dims = grd_pool_array(sizes.n + 1, sizeof *dims);
    int64_t n = 0;
    for (int64_t i = 0; dims != NULL && i < sizes.n; i++)
        if (i != dim)
            dims[n++] = i;
    return grd_dims_from(dims, n);
}

int64_t grd_last_of(grd_dims list)
{
    return list.n > 0 ? list.data[list.n - 1] : 0;
}

grd_dims grd_but_last_of(grd_dims list)
{
    return grd_dims_from(list.data, grd_greatest(list.n - 1, 0));
}

bool grd_is_empty(grd_dims sizes)
{
    for (int64_t d = 0; d < sizes.n; d++)
        if (sizes.data[d] == 0)
            return true;
    return false;
}

grd_dims grd_kept_sizes(grd_dims sizes, grd_dims dim)
{
    uint64_t mask;
    int64_t *const kept = grd_pool_array(sizes.n + 1, sizeof *kept);
    if (kept == NULL || !grd_shape_dim_mask(dim, sizes.n, &mask))
        return GRD_NO_DIMS;
    for (int64_t d = 0; d < sizes.n; d++)
        kept[d] = mask >> d & 1 ? 1 : sizes.data[d];
    return grd_dims_from(kept, sizes.n);
}

grd_dims grd_line_sizes(grd_dims sizes, grd_scalar dim)
{
    int64_t *const lines = grd_pool_array(3, sizeof *lines), d = grd_scalar_int64(dim);
    if (lines == NULL)
        return GRD_NO_DIMS;
    lines[0] = lines[1] = lines[2] = 1;
    d = d < 0 ? d + sizes.n : d;
    for (int64_t i = 0; i < sizes.n; i++)
        lines[dim.kind == GRD_SCALAR_NONE || i == d ? 1 : i < d ? 0 : 2] *= sizes.data[i];
    return grd_dims_from(lines, 3);
}
