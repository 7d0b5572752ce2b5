/* Implements index_add, index_copy and index_fill, which write slices of a tensor at the positions that an index selects.
 *
 * Invariants: every index is checked before anything is written. If an index occurs more than once, index_copy keeps the last
 * slice, and index_add adds the slices in the order of the index. */
#include <string.h>

#include "gen/uses/op/index_add.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "op/formula.h"
#include "op/index_add_rows.h"
#include "op/index_loops.h"

bool grd_check_index_source(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source)
{
    if (!grd_check_index_vector(index) || !grd_check_index_dtype(index))
        return false;
    if (self->dtype != source->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "self (%s) and source (%s) must have the same scalar type", grd_dtype_name(self->dtype),
                         grd_dtype_name(source->dtype));
    bool fits = source->ndim == self->ndim || (self->ndim <= 1 && source->ndim <= 1);
    if (fits && dim < source->ndim && source->sizes[dim] != index->numel)
        return grd_raise(GRD_ERROR_RUNTIME, "Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %lld",
                         (long long)index->numel, (long long)source->sizes[dim], (long long)dim);
    for (int64_t i = 0; fits && i < self->ndim && i < source->ndim; i++)
        fits = i == dim || source->sizes[i] == self->sizes[i];
    if (!fits || (source->ndim == 0 && index->numel != 1) || (self->ndim == 0 && source->numel != 1))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = %s "
                         "source.shape = %s",
                         grd_list_text(grd_sizes(self)), grd_list_text(grd_sizes(source)));
    return true;
}

/* True if the slices along dimension `dim` have no elements. In this case index_add, index_copy and index_fill do not read the index, as in
 * PyTorch. */
static bool has_empty_slices(const grd_tensor *self, int64_t dim)
{
    for (int64_t i = 0; i < self->ndim; i++)
        if (i != dim && self->sizes[i] == 0)
            return true;
    return false;
}

/* Plans an operator that writes slices of `source` to the positions along `dim` that `index` selects. `as` is the dtype of the computation, and
 * range_code is the code of the error for an index out of range. Returns false, with the error raised, on failure. */
static bool plan_slices(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source, grd_loop_kernel *kernel,
                        grd_error_code range_code, grd_dtype as)
{
    const struct grd_indexed_plan indexed = {
        .kernel = kernel, .slices = true, .unchecked = has_empty_slices(self, dim), .range_code = range_code, .dim = dim};
    return grd_plan_writes(p, &indexed, self, index, source, as);
}

static bool is_one(grd_scalar s)
{
    return s.kind != GRD_SCALAR_COMPLEX && grd_scalar_double(s) == 1;
}

/* Returns `source` multiplied by `alpha` in source's dtype. */
static grd_tensor *scaled(grd_tensor *source, grd_scalar alpha)
{
    char element[16];
    if (is_one(alpha))
        return source;
    grd_tensor *factor = grd_new(GRD_NO_DIMS, source->dtype, grd_device_of(source));
    if (grd_is_failed(factor) || !grd_scalar_write(alpha, source->dtype, element))
        return grd_failed;
    grd_fill_elements(factor, element);
    return grd_mul(source, factor);
}

bool plan_index_add(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source, grd_scalar alpha)
{
    grd_dtype dtype = grd_computed_dtype(self->dtype);
    grd_loop_kernel *kernel = grd_kernels->index->add[dtype];
    if (!grd_wrap_dim(self, dim, &dim) || !grd_check_index_source(self, dim, index, source))
        return false;
    if (kernel == NULL)
        return grd_raise_no_kernel("index_add", self->dtype);
    const bool by_rows = is_one(alpha) && grd_adds_rows(p, self, dim, index, source);
    if (by_rows) {
        dtype = (grd_dtype)self->dtype;
        grd_plan_scratch(p, grd_added_rows_scratch(self, dim, index));
    }
    const struct grd_indexed_plan indexed = {.kernel = kernel,
                                             .slices = true,
                                             .unchecked = has_empty_slices(self, dim),
                                             .by_rows = by_rows,
                                             .range_code = GRD_ERROR_RUNTIME,
                                             .dim = dim};
    return grd_plan_writes(p, &indexed, self, index, source, dtype);
}

bool check_index_add(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source, grd_scalar alpha)
{
    (void)self, (void)dim, (void)index, (void)source;
    if (!check_indexed(p))
        return false;
    p->in[2] = scaled(p->in[2], alpha);
    return !grd_pending();
}

void run_index_add(const struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source, grd_scalar alpha)
{
    const struct grd_indexed_plan *indexed = (const struct grd_indexed_plan *)(const void *)p->state;
    (void)self, (void)dim, (void)index, (void)source, (void)alpha;
    if (indexed->by_rows)
        grd_add_rows(p);
    else
        run_indexed(p);
}

/* Returns the sizes of `t` without dimension `dim`, as text for errors. */
static const char *slice_text(const grd_tensor *t, int64_t dim)
{
    int64_t sizes[GRD_MAX_DIMS], n = 0;
    for (int64_t i = 0; i < t->ndim; i++)
        if (i != dim)
            sizes[n++] = t->sizes[i];
    return grd_list_text(grd_dims_from(sizes, n));
}

/* True if self and source have equal sizes in all dimensions except `dim`. A zero-dimensional tensor counts as having one dimension. */
static bool have_same_slices(const grd_tensor *self, const grd_tensor *source, int64_t dim)
{
    bool same = source->ndim == self->ndim || (source->ndim <= 1 && self->ndim <= 1);
    for (int64_t i = 0; same && i < self->ndim && i < source->ndim; i++)
        same = i == dim || source->sizes[i] == self->sizes[i];
    return same;
}

static bool check_copied(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source)
{
    const int64_t count = index->numel;
    if (index->ndim > 1)
        return grd_raise(GRD_ERROR_INDEX, "index_copy_(): Index should have dimension 1 or 0 (got %d)", index->ndim);
    if (source->ndim == 0 && count != 1)
        return grd_raise(GRD_ERROR_INDEX, "index_copy_(): When source is scalar, index should have one element (got %lld)",
                         (long long)count);
    if (source->ndim != self->ndim && source->ndim != 0 && self->ndim != 0)
        return grd_raise(GRD_ERROR_INDEX,
                         "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
                         "dimensionality (%d), destination dimensionality (%d)",
                         source->ndim, self->ndim);
    if (!grd_is_index_dtype(index))
        return grd_raise(GRD_ERROR_RUNTIME, "index_copy_(): Expected a long tensor for index, but got %s",
                         grd_dtype_type_name((grd_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "index_copy_(): self and source expected to have the same dtype, but got (self) %s and (source) %s",
                         grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)source->dtype));
    if (!have_same_slices(self, source, dim))
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: %s at dimension %lld "
            "and source slice shape: %s at dimension %lld.",
            slice_text(self, dim), (long long)dim, slice_text(source, dim), (long long)dim);
    return source->ndim == 0 || source->sizes[dim] == count ||
           grd_raise(GRD_ERROR_INDEX, "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
                     (long long)count, (long long)source->sizes[dim]);
}

bool plan_index_copy(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source)
{
    return grd_wrap_dim(self, dim, &dim) && check_copied(self, dim, index, source) &&
           plan_slices(p, self, dim, index, source, grd_kernel_of_size(grd_kernels->index->scatter, self), GRD_ERROR_INDEX,
                       (grd_dtype)self->dtype);
}

bool plan_index_fill(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_scalar value)
{
    if (value.kind == GRD_SCALAR_COMPLEX && grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_COMPLEX)
        return grd_raise(GRD_ERROR_RUNTIME, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    if (!grd_is_index_dtype(index))
        return grd_raise(GRD_ERROR_INDEX, "index_fill_(): Expected dtype int32/int64 for index, but got %s",
                         grd_dtype_name((grd_dtype)index->dtype));
    if (index->ndim > 1)
        return grd_raise(GRD_ERROR_RUNTIME, "Index has to be a vector/scalar");
    if (!grd_check_repeated_out(p->out, "index_fill_", "tensor[mask] = scalar"))
        return false;
    struct grd_indexed_plan indexed = {.kernel = grd_kernel_of_size(grd_kernels->index->scatter, self),
                                       .slices = true,
                                       .wraps = true,
                                       .keeps_layout = true,
                                       .unchecked = has_empty_slices(self, dim),
                                       .range_code = GRD_ERROR_INDEX,
                                       .dim = dim};
    p->repeats = true;
    return grd_scalar_write(value, self->dtype, indexed.element) && grd_plan_writes(p, &indexed, self, index, NULL, (grd_dtype)self->dtype);
}

bool plan_index_fill_tensor(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *value)
{
    if (value->ndim > 0)
        return grd_raise(GRD_ERROR_RUNTIME, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                         value->ndim);
    return plan_index_fill(p, self, dim, index, grd_dtype_is_complex((grd_dtype)value->dtype) ? grd_complex_number(0, 0) : grd_int(0));
}

bool check_index_fill_tensor(struct grd_plan *p, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *value)
{
    (void)dim, (void)index;
    struct grd_indexed_plan *indexed = (struct grd_indexed_plan *)(void *)p->state;
    return grd_check_has_data(value) && grd_scalar_write(grd_scalar_read(value->data, value->dtype), self->dtype, indexed->element) &&
           check_indexed(p);
}
