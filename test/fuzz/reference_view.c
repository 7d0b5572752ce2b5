/* Makes views of reference tensors (see reference.h). A view has its own list of cell numbers, which refer to the memory of the original tensor.
 * Only flip copies elements, as in PyTorch. */
#include "reference_parts.h"

/* Makes `ret` a view of x with the sizes of `shape`. The caller then sets the cell numbers of `ret`. Returns TOO_LARGE if `shape` has too many
 * elements or dimensions. */
static enum verdict view_of(const struct reference *x, struct reference *ret, const struct reference *shape)
{
    const int64_t n = reference_count(shape->ndim, shape->sizes);
    if (shape->ndim > REFERENCE_DIMS || n > REFERENCE_CELLS)
        return TOO_LARGE;
    *ret = *shape;
    ret->dtype = x->dtype;
    ret->memory = x->memory;
    ret->n = (int)n;
    return VALID;
}

enum verdict reference_transpose(const struct reference *x, int a, int b, struct reference *ret)
{
    struct reference shape = *x;
    if (x->ndim > 0) {
        shape.sizes[a] = x->sizes[b];
        shape.sizes[b] = x->sizes[a];
    }
    view_of(x, ret, &shape);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[REFERENCE_DIMS];
        reference_split_index(ret, i, index);
        const int64_t kept = index[a];
        index[a] = x->ndim > 0 ? index[b] : 0;
        if (x->ndim > 0)
            index[b] = kept;
        ret->at[i] = x->at[reference_join_index(x, index)];
    }
    return VALID;
}

enum verdict reference_select(const struct reference *x, int dim, int64_t index, struct reference *ret)
{
    if (x->ndim == 0 || index < -x->sizes[dim] || index >= x->sizes[dim])
        return REFUSED;
    struct reference shape = *x;
    shape.ndim--;
    for (int d = dim; d < shape.ndim; d++)
        shape.sizes[d] = x->sizes[d + 1];
    view_of(x, ret, &shape);
    for (int i = 0; i < ret->n; i++) {
        int64_t own[REFERENCE_DIMS], from[REFERENCE_DIMS];
        reference_split_index(ret, i, own);
        for (int d = 0, next = 0; d < x->ndim; d++)
            from[d] = d == dim ? (index < 0 ? index + x->sizes[dim] : index) : own[next++];
        ret->at[i] = x->at[reference_join_index(x, from)];
    }
    return VALID;
}

enum verdict reference_slice(const struct reference *x, int dim, int64_t start, int64_t end, int64_t step, struct reference *ret)
{
    if (x->ndim == 0 || step == 0)
        return REFUSED;
    const int64_t size = x->sizes[dim], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    int64_t places[REFERENCE_CELLS], n = 0;
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = start < low ? low : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
        places[n++] = i;
    struct reference shape = *x;
    shape.sizes[dim] = n;
    view_of(x, ret, &shape);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[REFERENCE_DIMS];
        reference_split_index(ret, i, index);
        index[dim] = places[index[dim]];
        ret->at[i] = x->at[reference_join_index(x, index)];
    }
    return VALID;
}

enum verdict reference_expand(const struct reference *x, int ndim, const int64_t *sizes, struct reference *ret)
{
    struct reference shape = {.ndim = ndim};
    if (ndim < x->ndim)
        return REFUSED;
    for (int d = 0; d < ndim; d++) {
        const int own = d - (ndim - x->ndim);
        const int64_t present = own < 0 ? 1 : x->sizes[own];
        if ((own < 0 && sizes[d] < 0) || sizes[d] < -1 || (sizes[d] != -1 && present != 1 && sizes[d] != present))
            return REFUSED;
        shape.sizes[d] = sizes[d] == -1 ? present : sizes[d];
    }
    if (view_of(x, ret, &shape) != VALID)
        return TOO_LARGE;
    for (int i = 0; i < ret->n; i++)
        ret->at[i] = x->at[reference_broadcast_place(x, ret, i)];
    return VALID;
}

enum verdict reference_reshape(const struct reference *x, int ndim, const int64_t *sizes, struct reference *ret)
{
    struct reference shape = {.ndim = ndim};
    memcpy(shape.sizes, sizes, (size_t)ndim * sizeof *sizes);
    if (reference_count(ndim, sizes) != x->n)
        return REFUSED;
    view_of(x, ret, &shape);
    memcpy(ret->at, x->at, sizeof ret->at);
    return VALID;
}

enum verdict reference_flip(const struct reference *x, unsigned dims, struct reference *ret)
{
    if (!reference_new(ret, x->dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    for (int i = 0; i < x->n; i++) {
        int64_t index[REFERENCE_DIMS];
        reference_split_index(ret, i, index);
        for (int d = 0; d < x->ndim; d++)
            if (dims >> d & 1)
                index[d] = x->sizes[d] - 1 - index[d];
        *reference_at(ret, i) = *reference_at(x, reference_join_index(x, index));
    }
    return VALID;
}
