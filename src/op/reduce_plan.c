/* Plans reductions, i.e. determines their dtypes and passes and checks their arguments. Also computes sum_to_size and products over several dims by
 * calls of reductions. Reductions are run in reduce_run.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/uses/op/reduce_plan.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/reduce.h"
#include "op/formula.h"

/* ---- Dtypes -------------------------------------------------------------------------------------------------------------------------- */
/* True if elements of the dtype can be added and multiplied. float8 and quantized dtypes can only be stored and converted. */
static inline bool has_arithmetic(grd_dtype dtype)
{
    return dtype <= GRD_COMPLEX128;
}

/* Returns the dtype of the results. `dtype` is the operator's argument or NONE. */
static inline grd_dtype type_of(enum grd_reduce_type type, const grd_tensor *out, grd_dtype from, grd_dtype dtype)
{
    const bool given = dtype != GRD_DTYPE_NONE;
    switch (type) {
    case GRD_REDUCE_SUMS:
        return given ? dtype : grd_plan_sums_in(out, from);
    case GRD_REDUCE_MEANS:
        return given ? dtype : grd_dtype_is_integral(from) ? from : grd_plan_sums_in(out, from);
    case GRD_REDUCE_FLOAT:
        return given ? dtype : grd_plan_sums_in(out, grd_dtype_to_float(from));
    case GRD_REDUCE_TRUTH:
        return out != NULL ? (grd_dtype)out->dtype : from == GRD_UINT8 ? GRD_UINT8 : GRD_BOOL;
    case GRD_REDUCE_INT64:
        return GRD_INT64;
    default:
        return from;
    }
}

/* Returns the dtype of the tensor to which a pass of the given kind writes. It is int64 for indices, the real dtype of `to` for counts, absolute
 * values and squares, and `to` otherwise. */
static inline grd_dtype pass_dtype(enum grd_reduce_kind kind, grd_dtype to)
{
    if (kind == GRD_REDUCE_FIND)
        return GRD_INT64;
    return kind == GRD_REDUCE_NONZERO || kind == GRD_REDUCE_ABS || kind == GRD_REDUCE_SQUARE ? grd_dtype_to_real(to) : to;
}

/* Returns the dtype in which kernels read elements of dtype `from` for a result of dtype `to`. There are kernels for the returned dtype. */
static inline grd_dtype read_as(enum grd_reduce_kind kind, grd_dtype from, grd_dtype to)
{
    const bool summing = kind == GRD_REDUCE_SUM || kind == GRD_REDUCE_PROD;
    const grd_dtype wanted = summing && !(grd_dtype_is_integral(from) && grd_dtype_is_integral(to)) ? to : from;
    if (grd_category_of(wanted) == GRD_CATEGORY_COMPLEX)
        return GRD_COMPLEX128;
    if (grd_category_of(wanted) == GRD_CATEGORY_FLOAT)
        return from == GRD_FLOAT32 || from == GRD_FLOAT16 || from == GRD_BFLOAT16 ? GRD_FLOAT32 : GRD_FLOAT64;
    if ((kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN) && grd_kernels->reduce[from] != NULL)
        return from;
    return kind != GRD_REDUCE_PROD && (from == GRD_BOOL || from == GRD_UINT8) ? GRD_UINT8 : GRD_INT64;
}

/* ---- The plan ------------------------------------------------------------------------------------------------------------------------ */
static bool check_dtypes(const struct grd_reduce_rule *rule, grd_dtype from, grd_dtype to, bool given)
{
    const char *const refused = rule->refuses[grd_category_of(from)];
    if (refused != NULL && *refused != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "%s", refused);
    if (rule->type == GRD_REDUCE_MEANS && !grd_dtype_is_inexact(to))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "%s(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s",
                         rule->name, given ? "Optional" : "Input", grd_dtype_type_name(to));
    if (refused != NULL || !has_arithmetic(from))
        return grd_raise_no_kernel(rule->name, from);
    return has_arithmetic(to) || rule->type == GRD_REDUCE_TRUTH || grd_raise_no_kernel(rule->name, to);
}

/* True if there are elements to reduce, or rule->empty allows that there are none. Otherwise raises the error that rule->empty gives. */
static bool check_not_empty(const struct grd_reduce_rule *rule, const grd_tensor *self, bool dim_given, uint64_t mask)
{
    const bool runtime = rule->empty == GRD_EMPTY_RUNTIME_ERROR;
    if (rule->empty == GRD_EMPTY_TAKEN || self->numel != 0)
        return true;
    if (!dim_given)
        return grd_raise(runtime ? GRD_ERROR_RUNTIME : GRD_ERROR_INDEX,
                         "%s(): Expected reduction dim to be specified for input.numel() == 0.%s", rule->name,
                         runtime ? " Specify the reduction dim with the 'dim' argument." : "");
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return grd_raise(GRD_ERROR_INDEX, "%s(): Expected reduction dim %d to have non-zero size.", rule->name, d);
    return true;
}

/* Raises RuntimeError if the result of all() or any() is to be written to an `out` that is neither bool nor uint8. */
static bool check_truth(const struct grd_reduce_rule *rule, const grd_tensor *out)
{
    return rule->type != GRD_REDUCE_TRUTH || out == NULL || out->dtype == GRD_BOOL || out->dtype == GRD_UINT8 ||
           grd_raise(GRD_ERROR_RUNTIME, "%s only supports bool tensor for result, got: %s", rule->name,
                     grd_dtype_type_name((grd_dtype)out->dtype));
}

/* True if an empty list of dims was given and means that no dimension is reduced. */
static inline bool reduces_none(const struct grd_reduce_rule *rule, grd_dims dim)
{
    return rule->none && dim.data != NULL && dim.n == 0;
}

/* Writes the sizes of the result, and returns its number of dimensions. Bit d of `mask` is set if dimension d is reduced. */
static inline int64_t reduced_sizes(const grd_tensor *self, uint64_t mask, bool keepdim, int64_t *ret_sizes)
{
    int64_t n = 0;
    if (!keepdim && self->ndim < GRD_MAX_DIMS && mask + 1 == (uint64_t)1 << self->ndim)
        return 0;
    for (int d = 0; d < self->ndim; d++) {
        if (!(mask >> d & 1))
            ret_sizes[n++] = self->sizes[d];
        else if (keepdim)
            ret_sizes[n++] = 1;
    }
    return n;
}

/* Returns the number of elements per output, which is the product of the sizes of the reduced dimensions. */
static double count_of(grd_dims sizes, uint64_t mask)
{
    double count = 1;
    for (int64_t d = 0; d < sizes.n; d++)
        if (mask >> d & 1)
            count *= (double)sizes.data[d];
    return count;
}

/* Sets the passes of the reduction, and for each pass the number that pass->end uses, e.g. the divisor of a mean. A sum with a bool result is
 * computed as any(), and a product as all(). */
static void plan_passes(struct grd_reduction *r, const struct grd_reduce_rule *rule, grd_dtype to, double count, double correction)
{
    r->npasses = rule->npasses;
    for (int i = 0; i < r->npasses; i++) {
        struct grd_reduction_pass *pass = &r->passes[i];
        pass->what = rule->passes[i];
        if (rule->type == GRD_REDUCE_SUMS && to == GRD_BOOL) {
            pass->what.finish = pass->what.kind == GRD_REDUCE_SUM ? GRD_FINISH_ANY : GRD_FINISH_ALL;
            pass->what.kind = GRD_REDUCE_NONZERO;
        }
        const bool divides = pass->what.finish == GRD_FINISH_DIVIDE || pass->what.finish == GRD_FINISH_DIVIDE_ROOT;
        pass->number = !divides ? count : count > correction ? count - correction : 0;
    }
}

/* Replaces the count of nonzero bytes by the maximum of the bytes for any(), and by the minimum of the bytes for all(). The kernels for extremes
 * process many bytes at a time and are faster. */
static void take_truth_of_extremes(struct grd_reduction *r)
{
    struct grd_reduce_pass *const pass = &r->passes[0].what;
    if (r->read != GRD_UINT8 || (pass->finish != GRD_FINISH_ANY && pass->finish != GRD_FINISH_ALL))
        return;
    pass->kind = pass->finish == GRD_FINISH_ANY ? GRD_REDUCE_MAX : GRD_REDUCE_MIN;
    pass->finish = GRD_FINISH_TRUTH;
}

/* Plans the dtype and the layout in which the passes read self. Returns the dtype. */
static grd_dtype reads_self(struct grd_plan *p, const struct grd_reduce_rule *rule, grd_tensor *self, grd_dims dim, grd_dtype to)
{
    const grd_dtype from = (grd_dtype)self->dtype;
    const bool converts = rule->type == GRD_REDUCE_FLOAT && grd_dtype_is_integral(from);
    /* Without `dim`, argmax and argmin return an index into the elements in row-major order. Therefore self is read as a contiguous tensor, whose
     * dims can be merged into one. */
    const bool in_order = rule->passes[rule->npasses - 1].kind == GRD_REDUCE_FIND && dim.n == 0;
    grd_plan_reads_as(p, self, converts ? to : in_order ? from : GRD_DTYPE_NONE);
    return converts ? to : from;
}

bool plan_reduce(struct grd_plan *p, const struct grd_reduce_rule *rule, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype,
                 grd_scalar correction)
{
    double subtracted = 1;
    if (correction.kind != GRD_SCALAR_NONE && !grd_scalar_write(correction, GRD_FLOAT64, &subtracted))
        return false;
    int64_t sizes[GRD_MAX_DIMS];
    struct grd_reduction *r = grd_reduction_of(p);
    const grd_dtype to = type_of(rule->type, p->out, (grd_dtype)self->dtype, dtype);
    r->mask = 0;
    if (!check_dtypes(rule, (grd_dtype)self->dtype, to, dtype != GRD_DTYPE_NONE) ||
        !(reduces_none(rule, dim) || grd_shape_dim_mask(dim, self->ndim, &r->mask)) || !check_not_empty(rule, self, dim.n > 0, r->mask) ||
        !check_truth(rule, p->out))
        return false;
    const grd_dtype from = reads_self(p, rule, self, dim, to);
    const int64_t n = reduced_sizes(self, r->mask, keepdim, sizes);
    plan_passes(r, rule, to, count_of(grd_sizes(self), r->mask), subtracted);
    r->read = read_as(r->passes[0].what.kind, from, to);
    take_truth_of_extremes(r);
    for (int result = 0; result < p->op->nresults; result++)
        for (int i = 0; i < r->npasses; i++)
            if (r->passes[i].what.result == result)
                grd_plan_result(p, grd_dims_from(sizes, n), pass_dtype(r->passes[i].what.kind, to));
    p->prepare = grd_reduction_prepare;
    return true;
}

/* ---- The shortcut -------------------------------------------------------------------------------------------------------------------- */
/* Returns a mask in which bit d is set if dimension d is reduced. Returns 0 if none is reduced or `dim` is invalid, without raising an error. */
static inline uint64_t small_mask(const struct grd_reduce_rule *rule, const grd_tensor *self, grd_dims dim)
{
    uint64_t mask = 0;
    if (dim.n == 0)
        return reduces_none(rule, dim) ? 0 : ((uint64_t)1 << self->ndim) - 1;
    for (int64_t i = 0; i < dim.n; i++) {
        const int64_t d = dim.data[i] < 0 ? dim.data[i] + self->ndim : dim.data[i];
        if ((uint64_t)d >= self->ndim || mask >> d & 1)
            return 0;
        mask |= (uint64_t)1 << d;
    }
    return mask;
}

/* True if the kernels can read elements of `from` without conversion for a result of dtype `to`. */
static inline bool reads_in_place(const struct grd_reduce_rule *rule, grd_dtype from, grd_dtype to)
{
    const struct grd_reduce_row *row = grd_kernels->reduce[from];
    if (rule->refuses[grd_category_of(from)] != NULL || row == NULL || row->kinds[rule->passes[0].kind].lines == NULL ||
        (rule->type == GRD_REDUCE_MEANS && grd_dtype_is_integral(to)))
        return false;
    return to == from || (to != GRD_BOOL && has_arithmetic(to) && read_as(rule->passes[0].kind, from, to) == from);
}

/* Reduces a contiguous tensor by one kernel call. `columns` is true if the first dims are reduced, and false if the last dims are. */
static void reduce_block(const struct grd_reduce_pass *pass, const grd_tensor *self, int64_t n, bool columns, grd_tensor *result)
{
    const grd_dtype from = (grd_dtype)self->dtype, gathers = grd_reduce_gathers(pass->kind, from);
    const grd_dtype finished = grd_reduce_finished(pass->finish, gathers);
    const struct grd_reduce_row *row = grd_kernels->reduce[from];
    const int64_t outputs = result->numel;
    _Alignas(GRD_REDUCE_WIDEST) char gathered[GRD_REDUCE_STRIP * GRD_REDUCE_WIDEST];
    row->kinds[pass->kind].begin(outputs, gathered);
    (columns ? row->kinds[pass->kind].columns : row->kinds[pass->kind].lines)(&(struct grd_reduce_block){
        .outputs = outputs, .n = n, .stride = (columns ? outputs : n) * self->itemsize, .in = self->data, .gathered = gathered});
    if (row->end[pass->finish] != NULL)
        row->end[pass->finish](outputs, gathered, NULL, (double)n);
    grd_kernels->cast[finished][result->dtype](outputs, (char *const[]){result->data, gathered},
                                               (const int64_t[]){result->itemsize, grd_dtype_table[finished].size}, NULL);
}

grd_tensor *shortcut_reduce(const struct grd_reduce_rule *rule, grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim,
                            grd_dtype dtype)
{
    int64_t sizes[GRD_MAX_DIMS];
    const grd_dtype from = (grd_dtype)self->dtype, to = type_of(rule->type, NULL, from, dtype);
    if (out != NULL || !grd_has(self, GRD_FLAG_CONTIGUOUS) || self->numel == 0 || self->numel > GRD_REDUCE_LEAF ||
        self->ndim >= GRD_MAX_DIMS || self->device != GRD_DEVICE_CPU || !reads_in_place(rule, from, to))
        return NULL;
    const uint64_t mask = small_mask(rule, self, dim);
    const int64_t ndim = reduced_sizes(self, mask, keepdim, sizes), outputs = ndim == 0 ? 1 : grd_sizes_product(sizes, ndim);
    const int64_t n = outputs == 1 ? self->numel : (uint32_t)self->numel / (uint32_t)outputs;
    const bool lines = outputs == 1 || (outputs <= GRD_REDUCE_LINES && mask + (mask & -mask) == (uint64_t)1 << self->ndim);
    if (mask == 0 || n < 2 || (!lines && (outputs > GRD_REDUCE_STRIP || n > GRD_REDUCE_ROWS || (mask & (mask + 1)) != 0)))
        return NULL;
    grd_tensor *result = grd_new(grd_dims_from(sizes, ndim), pass_dtype(rule->passes[0].kind, to), grd_device_of(self));
    if (!grd_pending())
        reduce_block(&rule->passes[0], self, n, !lines, result);
    return result;
}

grd_dtype grd_summing_dtype(const grd_tensor *out, const grd_tensor *self)
{
    return grd_plan_sums_in(out, grd_dtype_to_float((grd_dtype)self->dtype));
}

/* ---- Functions that gradient formulas call ------------------------------------------------------------------------------------------ */
double grd_reduced_count(grd_dims sizes, grd_dims dim)
{
    uint64_t mask;
    return grd_shape_dim_mask(dim, sizes.n, &mask) ? count_of(sizes, mask) : 0;
}

/* ---- sum_to_size ----------------------------------------------------------------------------------------------------------------------- */
grd_tensor *op_sum_to_size(grd_tensor *self, grd_dims size)
{
    int64_t dims[GRD_MAX_DIMS];
    const int64_t extra = self->ndim - size.n;
    int n = 0;
    bool fits = extra >= 0;
    for (int64_t i = 0; fits && i < self->ndim; i++) {
        const bool stretched = i < extra || size.data[i - extra] != self->sizes[i];
        fits = i < extra || !stretched || size.data[i - extra] == 1;
        if (stretched)
            dims[n++] = i;
    }
    if (!fits)
        return grd_fail(GRD_ERROR_RUNTIME, "size %s is not expandable to size %s.", grd_list_text(size), grd_list_text(grd_sizes(self)));
    if (size.n == 0)
        return grd_sum(self);
    if (n == 0)
        return self;
    grd_tensor *sum = grd_sum(self, .dim = grd_dims_from(dims, n), .keepdim = true);
    return extra > 0 ? grd_reshape(sum, size) : sum;
}

/* ---- Products over several dimensions ------------------------------------------------------------------------------------------- */

grd_tensor *op_hidden_prod_dims(grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype)
{
    bool reduced[GRD_MAX_DIMS] = {false};
    for (int64_t i = 0, d; i < dim.n; i++) {
        if (!grd_wrap_dim(self, dim.data[i], &d))
            return grd_failed;
        reduced[d] = true;
    }
    grd_tensor *product = grd_to(self, .dtype = dtype);
    for (int64_t d = self->ndim - 1; d >= 0; d--)
        product = reduced[d] ? grd_prod(product, .dim = grd_int(d), .keepdim = keepdim, .dtype = dtype) : product;
    return product;
}
