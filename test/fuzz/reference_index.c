/* Implements gather, scatter, other operators with an index tensor, and concatenation for reference tensors. */
#include "reference_parts.h"

static int64_t size_along(const struct reference *x, int dim)
{
    return x->ndim > 0 ? x->sizes[dim] : 1;
}

static bool all_inside(const struct reference *at, int64_t size)
{
    for (int i = 0; i < at->n; i++)
        if (reference_at(at, i)->i < 0 || reference_at(at, i)->i >= size)
            return false;
    return true;
}

static bool is_index(const struct reference *at)
{
    return at->dtype == GRD_INT64 || at->dtype == GRD_INT32;
}

/* Returns the row-major position of the element of x that gather reads for element i of `at`. The two elements have the same index, except that along
 * `dim` the index in x is the value of element i. */
static int named_place(const struct reference *x, int dim, const struct reference *at, int i)
{
    int64_t index[REFERENCE_DIMS];
    reference_split_index(at, i, index);
    if (x->ndim > 0)
        index[dim] = reference_at(at, i)->i;
    return reference_join_index(x, index);
}

/* True if no size of the index `at` is larger than that of `bound`, except along `dim`. With `dim` = -1 there is no exception. */
static bool index_fits(int dim, const struct reference *at, const struct reference *bound)
{
    if (bound->ndim != at->ndim && at->n > 0)
        return false;
    for (int d = 0; d < at->ndim && d < bound->ndim; d++)
        if (at->sizes[d] > bound->sizes[d] && d != dim)
            return false;
    return true;
}

enum verdict reference_gather(const struct reference *x, int dim, const struct reference *at, struct reference *ret)
{
    if (!is_index(at))
        return at->n == 0 ? UNSURE : REFUSED; /* an empty index may be of any dtype */
    if (at->ndim != x->ndim || at->n == 0 || x->n == 0)
        return UNSURE;
    if (!index_fits(dim, at, x) || !all_inside(at, size_along(x, dim)))
        return REFUSED;
    if (!reference_new(ret, x->dtype, at->ndim, at->sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    for (int i = 0; i < at->n; i++)
        *reference_at(ret, i) = *reference_at(x, named_place(x, dim, at, i));
    return VALID;
}

enum verdict reference_index_select(const struct reference *x, int dim, const struct reference *at, struct reference *ret)
{
    if (!is_index(at) || at->ndim > 1)
        return REFUSED;
    if (x->ndim == 0 || at->ndim == 0)
        return UNSURE;
    if (!all_inside(at, x->sizes[dim]))
        return REFUSED;
    struct reference shape = *x;
    shape.sizes[dim] = at->n;
    if (!reference_new(ret, x->dtype, shape.ndim, shape.sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[REFERENCE_DIMS];
        reference_split_index(ret, i, index);
        index[dim] = reference_at(at, (int)index[dim])->i;
        *reference_at(ret, i) = *reference_at(x, reference_join_index(x, index));
    }
    return VALID;
}

enum verdict reference_scatter(const struct reference *x, int dim, const struct reference *at, const struct reference *source, bool add,
                               struct reference *ret)
{
    if (!is_index(at) && at->n == 0)
        return UNSURE;
    if (!is_index(at) || source->dtype != x->dtype)
        return REFUSED;
    if (at->ndim != x->ndim || source->ndim != x->ndim || at->n == 0 || x->n == 0 || x->dtype == GRD_BOOL)
        return UNSURE;
    if (!index_fits(dim, at, x) || !index_fits(-1, at, source) || !all_inside(at, size_along(x, dim)))
        return REFUSED;
    if (!reference_new(ret, x->dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    reference_inherit(ret, source);
    for (int i = 0; i < x->n; i++)
        *reference_at(ret, i) = *reference_at(x, i);
    bool named[REFERENCE_CELLS] = {false}, twice = false;
    for (int i = 0; i < at->n; i++) {
        int64_t index[REFERENCE_DIMS];
        reference_split_index(at, i, index);
        const int place = named_place(x, dim, at, i);
        const struct number *s = reference_at(source, reference_join_index(source, index));
        struct number *y = reference_at(ret, place);
        twice |= named[place];
        named[place] = true;
        if (!add) {
            *y = *s;
            continue;
        }
        y->i = number_wrap((int64_t)((uint64_t)y->i + (uint64_t)s->i), x->dtype);
        y->size = fmax(y->size, fabs(y->re) + fabs(y->im)) + fabs(s->re) + fabs(s->im);
        y->re += s->re;
        y->im += s->im;
        number_add_slope(y, s, 1);
    }
    /* If several elements of `source` are written to one element of the result, the last one remains. The derivatives of the overwritten elements are
     * undefined, so `lost` is set. With `add`, nothing is overwritten. */
    ret->memory->lost |= twice && !add;
    return VALID;
}

enum verdict reference_cat(const struct reference *const *parts, int n, int dim, grd_dtype common, struct reference *ret)
{
    struct reference shape = *parts[0];
    for (int k = 0; k < n; k++)
        if (parts[k]->ndim == 0)
            return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    for (int k = 0; k < n; k++)
        if (parts[k]->ndim == 1 && parts[k]->n == 0) /* cat ignores an empty vector, whatever the shapes of the other tensors are */
            return UNSURE;
    if (dim < 0)
        return REFUSED;
    for (int k = 1; k < n; k++) {
        if (parts[k]->ndim != shape.ndim)
            return REFUSED;
        for (int d = 0; d < shape.ndim; d++)
            if (d != dim && parts[k]->sizes[d] != shape.sizes[d])
                return REFUSED;
    }
    shape.sizes[dim] = 0;
    for (int k = 0; k < n; k++)
        shape.sizes[dim] += parts[k]->sizes[dim];
    if (!reference_new(ret, common, shape.ndim, shape.sizes))
        return TOO_LARGE;
    int64_t start = 0;
    for (int k = 0; k < n; k++) {
        reference_inherit(ret, parts[k]);
        for (int i = 0; i < parts[k]->n; i++) {
            int64_t index[REFERENCE_DIMS];
            reference_split_index(parts[k], i, index);
            index[dim] += start;
            if (!number_convert(reference_at(parts[k], i), parts[k]->dtype, common, reference_at(ret, reference_join_index(ret, index))))
                return UNSURE;
        }
        start += parts[k]->sizes[dim];
    }
    return VALID;
}
