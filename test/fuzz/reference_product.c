/* Computes the matrix product of reference tensors. */
#include "reference_parts.h"

/* Returns x as a batch of matrices. A vector becomes a matrix with one row if `row` is true, otherwise with one column. */
static struct reference as_matrices(const struct reference *x, bool row)
{
    struct reference m = *x;
    if (x->ndim == 1) {
        m.ndim = 2;
        m.sizes[0] = row ? 1 : x->sizes[0];
        m.sizes[1] = row ? x->sizes[0] : 1;
    }
    return m;
}

enum verdict reference_matmul(const struct reference *x, const struct reference *y, struct reference *ret)
{
    if (x->ndim == 0 || y->ndim == 0 || x->dtype != y->dtype)
        return REFUSED;
    if (x->dtype == GRD_BOOL)
        return UNSURE;
    const struct reference a = as_matrices(x, true), b = as_matrices(y, false);
    struct reference left = a, right = b;
    left.ndim -= 2;
    right.ndim -= 2;
    int ndim;
    int64_t sizes[REFERENCE_DIMS + 2];
    const int64_t rows = a.sizes[a.ndim - 2], inner = a.sizes[a.ndim - 1], columns = b.sizes[b.ndim - 1];
    if (inner != b.sizes[b.ndim - 2] || !reference_broadcast((const struct reference *const[]){&left, &right}, 2, &ndim, sizes))
        return REFUSED;
    struct reference full;
    sizes[ndim] = rows;
    sizes[ndim + 1] = columns;
    if (!reference_new(&full, x->dtype, ndim + 2, sizes))
        return TOO_LARGE;
    reference_inherit(&full, x);
    reference_inherit(&full, y);
    const enum category category = number_category(x->dtype);
    for (int i = 0; i < full.n; i++) {
        int64_t index[REFERENCE_DIMS], in_a[REFERENCE_DIMS], in_b[REFERENCE_DIMS];
        struct number *z = reference_at(&full, i);
        reference_split_index(&full, i, index);
        for (int d = 0; d < left.ndim; d++)
            in_a[d] = left.sizes[d] == 1 ? 0 : index[d + ndim - left.ndim];
        for (int d = 0; d < right.ndim; d++)
            in_b[d] = right.sizes[d] == 1 ? 0 : index[d + ndim - right.ndim];
        in_a[left.ndim] = index[ndim];
        in_b[right.ndim + 1] = index[ndim + 1];
        for (int64_t k = 0; k < inner; k++) {
            in_a[left.ndim + 1] = k;
            in_b[right.ndim] = k;
            const struct number *p = reference_at(&a, reference_join_index(&a, in_a)),
                                *q = reference_at(&b, reference_join_index(&b, in_b));
            z->i = (int64_t)((uint64_t)z->i + (uint64_t)p->i * (uint64_t)q->i);
            z->re += p->re * q->re - p->im * q->im;
            z->im += p->re * q->im + p->im * q->re;
            z->size += (fabs(p->re) + fabs(p->im)) * (fabs(q->re) + fabs(q->im));
            number_add_slope(z, p, q->re);
            number_add_slope(z, q, p->re);
        }
        z->i = category == INTEGRAL ? number_wrap(z->i, x->dtype) : 0;
    }
    *ret = full;
    ret->ndim = 0;
    for (int d = 0; d < full.ndim; d++)
        if (!(d == ndim && x->ndim == 1) && !(d == ndim + 1 && y->ndim == 1))
            ret->sizes[ret->ndim++] = full.sizes[d];
    return VALID;
}
