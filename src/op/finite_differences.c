/* Implements diff, the differences of neighbouring elements, and gradient, which estimates derivatives from them. */
#include "gen/uses/op/finite_differences.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"

/* Returns elements [begin, end) of `t` along dimension `dim`. Negative numbers count from the end, and an `end` of 0 means all remaining elements. */
static grd_tensor *cut(grd_tensor *t, int64_t dim, int64_t begin, int64_t end)
{
    return grd_slice(t, .dim = dim, .start = grd_int(begin), .end = grd_int(end == 0 ? INT64_MAX : end));
}

/* Returns a * x + b * y + c * z. */
static grd_tensor *sum_of(grd_tensor *a, grd_tensor *x, grd_tensor *b, grd_tensor *y, grd_tensor *c, grd_tensor *z)
{
    return grd_add(grd_add(grd_mul(a, x), grd_mul(b, y)), grd_mul(c, z));
}

/* Returns the derivative of the parabola through three neighbouring elements x, y and z, where y is at distance h from x and z at distance k from y.
 * The derivative is taken at x for an `edge` of 0, at y for 1 and at z for 2. */
static grd_tensor *parabola(grd_tensor *x, grd_tensor *y, grd_tensor *z, grd_tensor *h, grd_tensor *k, int edge)
{
    grd_tensor *both = grd_add(h, k);
    grd_tensor *first = edge == 0 ? grd_add(both, h) : k, *last = edge == 2 ? grd_add(both, k) : h;
    grd_tensor *a = grd_div(edge == 2 ? first : grd_neg(first), grd_mul(h, both));
    grd_tensor *b = grd_div(edge == 0 ? both : edge == 2 ? grd_neg(both) : grd_sub(k, h), grd_mul(h, k));
    grd_tensor *c = grd_div(edge == 0 ? grd_neg(last) : last, grd_mul(k, both));
    return sum_of(a, x, b, y, c, z);
}

/* Returns the slope of the straight line through two elements x and y at distance h. */
static grd_tensor *line_slope(grd_tensor *x, grd_tensor *y, grd_tensor *h)
{
    return grd_div(grd_sub(y, x), h);
}

/* Returns the derivative of `t` along dimension `dim`, where neighbours have distance h. If `parabolic` (edge_order 2), the first and last elements
 * are computed from three elements instead of two. */
static grd_tensor *even_slopes(grd_tensor *t, int64_t dim, grd_tensor *h, bool parabolic)
{
    grd_tensor *center = grd_div(grd_sub(cut(t, dim, 2, 0), cut(t, dim, 0, -2)), grd_number(grd_float(2)));
    grd_tensor *first = grd_sub(cut(t, dim, 1, 2), cut(t, dim, 0, 1)), *last = grd_sub(cut(t, dim, -1, 0), cut(t, dim, -2, -1));
    if (parabolic) {
        grd_tensor *three = grd_number(grd_float(1.5)), *half = grd_number(grd_float(0.5));
        first = grd_sub(grd_mul(first, three), grd_mul(grd_sub(cut(t, dim, 2, 3), cut(t, dim, 1, 2)), half));
        last = grd_sub(grd_mul(last, three), grd_mul(grd_sub(cut(t, dim, -2, -1), cut(t, dim, -3, -2)), half));
    }
    return grd_div(grd_cat(grd_tensors(first, center, last), .dim = dim), h);
}

/* Returns the derivative of `t` along dimension `dim`. `h` holds the distances between neighbours along this dimension. If `parabolic` (edge_order
 * 2), the first and last elements are computed from three elements instead of two. */
static grd_tensor *slopes(grd_tensor *t, int64_t dim, grd_tensor *h, bool parabolic)
{
    grd_tensor *center = parabola(cut(t, dim, 0, -2), cut(t, dim, 1, -1), cut(t, dim, 2, 0), cut(h, dim, 0, -1), cut(h, dim, 1, 0), 1);
    grd_tensor *first, *last;
    if (parabolic) {
        first = parabola(cut(t, dim, 0, 1), cut(t, dim, 1, 2), cut(t, dim, 2, 3), cut(h, dim, 0, 1), cut(h, dim, 1, 2), 0);
        last = parabola(cut(t, dim, -3, -2), cut(t, dim, -2, -1), cut(t, dim, -1, 0), cut(h, dim, -2, -1), cut(h, dim, -1, 0), 2);
    } else {
        first = line_slope(cut(t, dim, 0, 1), cut(t, dim, 1, 2), cut(h, dim, 0, 1));
        last = line_slope(cut(t, dim, -2, -1), cut(t, dim, -1, 0), cut(h, dim, -1, 0));
    }
    return grd_cat(grd_tensors(first, center, last), .dim = dim);
}

/* ---- The operators ------------------------------------------------------------------------------------------------------------------- */

/* The dims along which torch.gradient differentiates. */
struct gradient_dims {
    int64_t n, dims[GRD_MAX_DIMS];
};

/* Writes the dims along which to differentiate to *ret_dims: those of `dim`, or all if `dim` is absent. `spacings` is the number of distances
 * that the caller gave, or -1 if one distance applies to all dims. Returns false, with an error raised, if the arguments do not fit together. */
static bool find_dims(const grd_tensor *self, grd_dims dim, int64_t edge_order, int64_t spacings, struct gradient_dims *ret_dims)
{
    uint64_t seen = 0;
    if (self->dtype == GRD_UINT8)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.gradient does not support uint8 input.");
    if (spacings >= 0 && dim.data == NULL && spacings != self->ndim)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = %d', since dim "
            "argument was not given, but got a list of length %lld",
            self->ndim, (long long)spacings);
    if (spacings >= 0 && dim.data != NULL && spacings != dim.n)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, "
            "but got a spacing argument of length %lld and a dim argument of length %lld.",
            (long long)spacings, (long long)dim.n);
    if (edge_order != 1 && edge_order != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.gradient only supports edge_order=1 and edge_order=2.");
    if (dim.data != NULL && !grd_shape_dim_mask(dim, self->ndim, &seen))
        return false;
    ret_dims->n = dim.data == NULL ? self->ndim : dim.n;
    for (int64_t i = 0; i < ret_dims->n; i++) {
        ret_dims->dims[i] = dim.data == NULL ? i : grd_wrapped_dim(self, dim.data[i]);
        if (self->sizes[ret_dims->dims[i]] <= edge_order)
            return grd_raise(GRD_ERROR_RUNTIME, "torch.gradient expected each dimension size to be at least edge_order+1");
    }
    return true;
}

grd_tensors op_gradient_even(grd_tensor *self, grd_scalar spacing, grd_dims dim, int64_t edge_order)
{
    struct gradient_dims d = {0};
    const bool fits = find_dims(self, dim, edge_order, -1, &d);
    grd_tensor **made = grd_pool_array(d.n, sizeof *made), *h = grd_number(spacing.kind == GRD_SCALAR_NONE ? grd_int(1) : spacing);
    for (int64_t i = 0; fits && made != NULL && i < d.n; i++)
        made[i] = even_slopes(self, d.dims[i], h, edge_order == 2);
    return grd_pending() ? grd_tensors_from(NULL, 0) : grd_tensors_from(made, d.n);
}

grd_tensors op_gradient_spacings(grd_tensor *self, grd_tensor *spacing, grd_dims dim, int64_t edge_order)
{
    struct gradient_dims d = {0};
    const bool fits = find_dims(self, dim, edge_order, spacing->numel, &d);
    grd_tensor **made = grd_pool_array(d.n, sizeof *made);
    for (int64_t i = 0; fits && made != NULL && i < d.n; i++) {
        grd_tensor *h = grd_to(grd_select(grd_reshape(spacing, grd_dims(-1)), 0, i), .dtype = grd_dtype_to_float((grd_dtype)self->dtype));
        made[i] = even_slopes(self, d.dims[i], h, edge_order == 2);
    }
    return grd_pending() ? grd_tensors_from(NULL, 0) : grd_tensors_from(made, d.n);
}

grd_tensors op_gradient_coordinates(grd_tensor *self, grd_tensors spacing, grd_dims dim, int64_t edge_order)
{
    struct gradient_dims d = {0};
    const bool fits = find_dims(self, dim, edge_order, spacing.n, &d);
    grd_tensor **made = grd_pool_array(d.n, sizeof *made);
    for (int64_t i = 0; fits && made != NULL && i < d.n; i++) {
        if (spacing.data[i]->ndim != 1) {
            grd_raise(GRD_ERROR_RUNTIME,
                      "torch.gradient expected each element of spacing to have one dimension, but got an element with %d dimensions!",
                      spacing.data[i]->ndim);
            break;
        }
        made[i] = slopes(self, d.dims[i], grd_composite_along(grd_diff(spacing.data[i]), self->ndim, d.dims[i]), edge_order == 2);
    }
    return grd_pending() ? grd_tensors_from(NULL, 0) : grd_tensors_from(made, d.n);
}

grd_tensor *op_diff(grd_tensor *self, int64_t n, int64_t dim, grd_tensor *prepend, grd_tensor *append)
{
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "diff expects input to be at least one-dimensional");
    if (n < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "order must be non-negative but got %lld", (long long)n);
    if (!grd_wrap_dim(self, dim, &dim))
        return grd_failed;
    grd_tensor *parts[3], *t = self;
    int64_t count = 0;
    if (prepend != NULL)
        parts[count++] = prepend;
    parts[count++] = self;
    if (append != NULL)
        parts[count++] = append;
    if (count > 1)
        t = grd_cat(grd_tensors_from(parts, count), .dim = dim);
    if (n == 0 && !grd_pending())
        return grd_clone(self);
    for (int64_t i = 0; i < n && !grd_pending() && (i == 0 || t->sizes[dim] > 0); i++) {
        const int64_t rest = t->sizes[dim] > 0 ? t->sizes[dim] - 1 : 0;
        grd_tensor *ahead = grd_narrow(t, dim, t->sizes[dim] - rest, rest), *behind = grd_narrow(t, dim, 0, rest);
        t = t->dtype == GRD_BOOL ? grd_logical_xor(ahead, behind) : grd_sub(ahead, behind);
    }
    return grd_pending() ? grd_failed : t;
}
