/* Operators of reference tensors that read or write elements selected by an index tensor, and concatenation. */
#include "plain_parts.h"

static int64_t size_along(const struct plain *x, int dim)
{
    return x->ndim > 0 ? x->sizes[dim] : 1;
}

static bool all_inside(const struct plain *at, int64_t size)
{
    for (int i = 0; i < at->n; i++)
        if (plain_at(at, i)->i < 0 || plain_at(at, i)->i >= size)
            return false;
    return true;
}

static bool is_index(const struct plain *at)
{
    return at->dtype == GRD_INT64 || at->dtype == GRD_INT32;
}

/* Returns the position in x that element i of `at` selects along dim. */
static int named_place(const struct plain *x, int dim, const struct plain *at, int i)
{
    int64_t index[PLAIN_DIMS];
    plain_split_index(at, i, index);
    if (x->ndim > 0)
        index[dim] = plain_at(at, i)->i;
    return plain_join_index(x, index);
}

/* True if no size of the index is larger than that of `bound`, except along `dim` (-1: no exception). */
static bool index_fits(int dim, const struct plain *at, const struct plain *bound)
{
    if (bound->ndim != at->ndim && at->n > 0)
        return false;
    for (int d = 0; d < at->ndim && d < bound->ndim; d++)
        if (at->sizes[d] > bound->sizes[d] && d != dim)
            return false;
    return true;
}

enum verdict plain_gather(const struct plain *x, int dim, const struct plain *at, struct plain *ret)
{
    if (!is_index(at))
        return at->n == 0 ? UNSURE : REFUSED; /* an empty index may be of any dtype */
    if (at->ndim != x->ndim || at->n == 0 || x->n == 0)
        return UNSURE;
    if (!index_fits(dim, at, x) || !all_inside(at, size_along(x, dim)))
        return REFUSED;
    if (!plain_new(ret, x->dtype, at->ndim, at->sizes))
        return TOO_LARGE;
    plain_inherit(ret, x);
    for (int i = 0; i < at->n; i++)
        *plain_at(ret, i) = *plain_at(x, named_place(x, dim, at, i));
    return VALID;
}

enum verdict plain_index_select(const struct plain *x, int dim, const struct plain *at, struct plain *ret)
{
    if (!is_index(at) || at->ndim > 1)
        return REFUSED;
    if (x->ndim == 0 || at->ndim == 0)
        return UNSURE;
    if (!all_inside(at, x->sizes[dim]))
        return REFUSED;
    struct plain shape = *x;
    shape.sizes[dim] = at->n;
    if (!plain_new(ret, x->dtype, shape.ndim, shape.sizes))
        return TOO_LARGE;
    plain_inherit(ret, x);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[PLAIN_DIMS];
        plain_split_index(ret, i, index);
        index[dim] = plain_at(at, (int)index[dim])->i;
        *plain_at(ret, i) = *plain_at(x, plain_join_index(x, index));
    }
    return VALID;
}

enum verdict plain_scatter(const struct plain *x, int dim, const struct plain *at, const struct plain *source, bool add, struct plain *ret)
{
    if (!is_index(at) && at->n == 0)
        return UNSURE;
    if (!is_index(at) || source->dtype != x->dtype)
        return REFUSED;
    if (at->ndim != x->ndim || source->ndim != x->ndim || at->n == 0 || x->n == 0 || x->dtype == GRD_BOOL)
        return UNSURE;
    if (!index_fits(dim, at, x) || !index_fits(-1, at, source) || !all_inside(at, size_along(x, dim)))
        return REFUSED;
    if (!plain_new(ret, x->dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    plain_inherit(ret, x);
    plain_inherit(ret, source);
    for (int i = 0; i < x->n; i++)
        *plain_at(ret, i) = *plain_at(x, i);
    bool named[PLAIN_CELLS] = {false}, twice = false;
    for (int i = 0; i < at->n; i++) {
        int64_t index[PLAIN_DIMS];
        plain_split_index(at, i, index);
        const int place = named_place(x, dim, at, i);
        const struct number *s = plain_at(source, plain_join_index(source, index));
        struct number *y = plain_at(ret, place);
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
    /* If several values are written to one element, the last one stays, but the gradients of the others are not defined. */
    ret->memory->lost |= twice && !add;
    return VALID;
}

enum verdict plain_cat(const struct plain *const *parts, int n, int dim, grd_dtype common, struct plain *ret)
{
    struct plain shape = *parts[0];
    for (int k = 0; k < n; k++)
        if (parts[k]->ndim == 0)
            return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    for (int k = 0; k < n; k++)
        if (parts[k]->ndim == 1 && parts[k]->n == 0) /* cat ignores an empty vector, whatever the shapes of the others */
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
    if (!plain_new(ret, common, shape.ndim, shape.sizes))
        return TOO_LARGE;
    int64_t start = 0;
    for (int k = 0; k < n; k++) {
        plain_inherit(ret, parts[k]);
        for (int i = 0; i < parts[k]->n; i++) {
            int64_t index[PLAIN_DIMS];
            plain_split_index(parts[k], i, index);
            index[dim] += start;
            if (!number_convert(plain_at(parts[k], i), parts[k]->dtype, common, plain_at(ret, plain_join_index(ret, index))))
                return UNSURE;
        }
        start += parts[k]->sizes[dim];
    }
    return VALID;
}
