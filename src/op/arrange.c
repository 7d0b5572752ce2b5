/* Composites that lay elements out anew: diagonals, joins by name, repetitions, grids, places along a dimension. Each calls operators and, unless the schema has its gradient, is
 * differentiated through them. Schema: schema/arrange.toml. */
#include <string.h>

#include "gen/uses/op/arrange.h"
#include "gradus/library.h"
#include "kernel/index.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/formula.h"
#include "op/index_loops.h"
#include "op/plan.h"

/* ---- Diagonals --------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_diag_embed(grd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t n = self->ndim + 1;
    int64_t size;
    if (self->ndim == 0 || n > GRD_MAX_DIMS)
        return grd_fail(GRD_ERROR_RUNTIME, "diag_embed takes a tensor of 1 to %d dimensions, not %d", GRD_MAX_DIMS - 1, self->ndim);
    if (!grd_shape_wrap_dim(dim1, n, &dim1) || !grd_shape_wrap_dim(dim2, n, &dim2))
        return grd_failed;
    if (dim1 == dim2)
        return grd_fail(GRD_ERROR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    if (offset == INT64_MIN || __builtin_add_overflow(self->sizes[self->ndim - 1], offset < 0 ? -offset : offset, &size))
        return grd_fail(GRD_ERROR_RUNTIME, "offset %lld is out of range for a diagonal of %lld elements", (long long)offset,
                        (long long)self->sizes[self->ndim - 1]);
    for (int64_t i = 0, own = 0; i < n; i++)
        sizes[i] = i == dim1 || i == dim2 ? size : self->sizes[own++];
    return grd_hidden_diagonal_backward(self, grd_dims_from(sizes, n), offset, dim1, dim2);
}

/* ---- Turning ------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_rot90(grd_tensor *self, int64_t k, grd_dims dims)
{
    int64_t a, b;
    if (dims.n != 2)
        return grd_fail(GRD_ERROR_RUNTIME, "expected total rotation dims == 2, but got dims = %lld", (long long)dims.n);
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "expected total dims >= 2, but got total dims = %d", self->ndim);
    if (!grd_wrap_dim(self, dims.data[0], &a) || !grd_wrap_dim(self, dims.data[1], &b))
        return grd_failed;
    if (a == b)
        return grd_fail(GRD_ERROR_RUNTIME, "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                        (long long)dims.data[0], (long long)dims.data[1]);
    const int64_t turns = (k % 4 + 4) % 4;
    if (turns == 0)
        return grd_clone(self, .memory_format = "contiguous");
    if (turns == 2)
        return grd_flip(self, grd_dims(a, b));
    return grd_new_detached(grd_transpose(grd_flip(self, grd_dims(turns == 1 ? b : a)), a, b));
}

int64_t grd_turns_back(int64_t k)
{
    return -(k % 4);
}

/* ---- Differences --------------------------------------------------------------------------------------------------------------------- */

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

/* ---- Repetition ---------------------------------------------------------------------------------------------------------------------- */

bool plan_repeat_interleave_indices(struct grd_plan *p, grd_tensor *repeats, grd_scalar output_size)
{
    (void)output_size;
    if (!grd_check_has_data(repeats))
        return false;
    if (repeats->dtype != GRD_INT64 && repeats->dtype != GRD_INT32)
        return grd_raise_no_kernel("repeat_interleave", (grd_dtype)repeats->dtype);
    if (repeats->ndim != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "repeat_interleave only accept 1D vector as repeat");
    return grd_plan_reads_as(p, repeats, GRD_INT64);
}

bool check_repeat_interleave_indices(struct grd_plan *p, grd_tensor *repeats, grd_scalar output_size)
{
    const int64_t total = grd_kernels->index->total(repeats->numel, (const int64_t *)(const void *)p->in[0]->data);
    if (total < 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         total == -1 ? "repeats can not be negative" : "the repeats add up to more than a tensor can hold");
    if (output_size.kind != GRD_SCALAR_NONE && grd_scalar_int64(output_size) != total)
        return grd_raise(GRD_ERROR_RUNTIME, "allocated size does not match required size");
    return grd_plan_result(p, grd_dims(total), GRD_INT64);
}

void run_repeat_interleave_indices(const struct grd_plan *p, grd_tensor *repeats, grd_scalar output_size)
{
    (void)output_size;
    grd_kernels->index->repeat(repeats->numel, (const int64_t *)(const void *)p->in[0]->data, (int64_t *)(void *)p->results[0]->data);
}

/* `self`, or without a dim its elements in row-major order, and the dim along which they are repeated. */
static bool repeated(grd_tensor *self, grd_scalar dim, grd_tensor **ret_self, int64_t *ret_dim)
{
    const bool flat = dim.kind == GRD_SCALAR_NONE;
    *ret_self = flat ? grd_reshape(self, grd_dims(-1)) : grd_atleast_1d(self);
    return !grd_pending() && grd_wrap_dim(*ret_self, flat ? 0 : grd_scalar_int64(dim), ret_dim);
}

grd_tensor *op_repeat_interleave(grd_tensor *self, int64_t repeats, grd_scalar dim, grd_scalar output_size)
{
    int64_t along, total, sizes[GRD_MAX_DIMS + 1];
    if (repeats < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Repeats must be non-negative");
    if (!repeated(self, dim, &self, &along))
        return grd_failed;
    if (__builtin_mul_overflow(self->sizes[along], repeats, &total))
        return grd_fail(GRD_ERROR_RUNTIME, "the repeats add up to more than a tensor can hold");
    if (output_size.kind != GRD_SCALAR_NONE && grd_scalar_int64(output_size) != total)
        return grd_fail(GRD_ERROR_RUNTIME, "allocated size does not match required size");
    for (int64_t i = 0; i <= self->ndim; i++)
        sizes[i] = i == along + 1 ? repeats : -1;
    grd_tensor *wide = grd_expand(grd_unsqueeze(self, along + 1), grd_dims_from(sizes, self->ndim + 1));
    return grd_flatten(grd_clone(wide, .memory_format = "contiguous"), .start_dim = along, .end_dim = along + 1);
}

grd_tensor *op_repeat_interleave_each(grd_tensor *self, grd_tensor *repeats, grd_scalar dim, grd_scalar output_size)
{
    int64_t along;
    if (!repeated(self, dim, &self, &along))
        return grd_failed;
    if (repeats->ndim == 0 || (repeats->ndim == 1 && repeats->numel == 1))
        repeats = grd_expand(grd_reshape(repeats, grd_dims(1)), grd_dims(self->sizes[along]));
    if (!grd_pending() && repeats->ndim == 1 && repeats->numel != self->sizes[along])
        grd_raise(GRD_ERROR_RUNTIME,
                  "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and input.size(%lld) = %lld",
                  (long long)repeats->numel, (long long)along, (long long)self->sizes[along]);
    return grd_pending() ? grd_failed : grd_index_select(self, along, grd_repeat_interleave_indices(repeats, .output_size = output_size));
}

/* ---- Grids ----------------------------------------------------------------------------------------------------------------------------- */

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
    const int64_t swapped = indexing[0] == 'x' && n > 1; /* the first two dimensions are exchanged */
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

/* ---- Cutting ---------------------------------------------------------------------------------------------------------------------------- */

/* The views between places of a dimension, and from and to its ends. */
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

/* ---- Places ------------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_take(grd_tensor *out, grd_tensor *self, grd_tensor *index)
{
    if (!grd_check_indexed_out(out, grd_tensors(self, index)))
        return grd_failed;
    if (index->dtype != GRD_INT64)
        return grd_fail(GRD_ERROR_RUNTIME, "take(): Expected a long tensor for index, but got %s",
                        grd_dtype_type_name((grd_dtype)index->dtype));
    if (self->numel == 0 && index->numel > 0)
        return grd_fail(GRD_ERROR_INDEX, "take(): tried to take from an empty tensor");
    grd_tensor *taken = grd_index(grd_reshape(self, grd_dims(-1)), grd_tensors(index));
    return grd_composite_finish(out, NULL, out == NULL ? grd_composite_contiguous(taken) : taken);
}

bool grd_put_check(const grd_tensor *self, const grd_tensor *index, const grd_tensor *source)
{
    if (index->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "put_(): Expected a long tensor for index, but got %s",
                         grd_dtype_type_name((grd_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s",
                         grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)source->dtype));
    if (self->numel == 0 && index->numel > 0)
        return grd_raise(GRD_ERROR_INDEX, "put_(): Tried to put elements into an empty tensor");
    return source->numel == index->numel ||
           grd_raise(
               GRD_ERROR_INDEX,
               "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, index.numel() = %lld",
               (long long)source->numel, (long long)index->numel);
}

grd_tensor *op_fill_diagonal(grd_tensor *out, grd_tensor *self, grd_scalar fill_value, bool wrap)
{
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "dimensions must larger than 1");
    int64_t stride = 0;
    for (int64_t i = 0; i < self->ndim; i++) {
        if (self->ndim > 2 && self->sizes[i] != self->sizes[0])
            return grd_fail(GRD_ERROR_RUNTIME, "all dimensions of input must be of equal length");
        stride += self->strides[i];
    }
    const int64_t rows = self->sizes[0], columns = self->sizes[1];
    if (wrap && self->ndim == 2 && rows > columns) {
        const grd_device device = grd_device_of(self);
        grd_tensor *row = grd_arange(grd_int(rows), .device = device), *column = grd_arange(grd_int(columns), .device = device);
        return grd_masked_fill_(out, grd_eq(grd_unsqueeze(grd_remainder_scalar(row, grd_int(columns + 1)), 1), column), fill_value);
    }
    grd_fill_(grd_as_strided(out, grd_dims(rows < columns ? rows : columns), grd_dims(stride)), fill_value);
    return grd_pending() ? grd_failed : out;
}

/* Sizes broadcast but along `dim`, where each keeps its own. */
static grd_tensor *spread_but(grd_tensor *t, const grd_tensor *other, int64_t dim)
{
    int64_t own[GRD_MAX_DIMS], its[GRD_MAX_DIMS], sizes[GRD_MAX_DIMS], n;
    memcpy(own, t->sizes, t->ndim * sizeof *own);
    memcpy(its, other->sizes, other->ndim * sizeof *its);
    own[dim] = its[dim] = 1;
    if (!grd_shape_broadcast(grd_dims_from(own, t->ndim), grd_dims_from(its, other->ndim), sizes, &n))
        return grd_failed;
    sizes[dim] = t->sizes[dim];
    return grd_expand(t, grd_dims_from(sizes, n));
}

grd_tensor *op_take_along_dim(grd_tensor *self, grd_tensor *indices, grd_scalar dim)
{
    int64_t along;
    if (indices->dtype != GRD_INT64)
        return grd_fail(GRD_ERROR_RUNTIME, "torch.take_along_dim(): dtype of indices should be Long but got %s",
                        grd_dtype_type_name((grd_dtype)indices->dtype));
    if (dim.kind == GRD_SCALAR_NONE)
        return grd_gather(grd_reshape(self, grd_dims(-1)), 0, grd_reshape(indices, grd_dims(-1)));
    if (self->ndim != indices->ndim)
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d dimensions for input, and %d "
            "dimensions for indices",
            self->ndim, indices->ndim);
    if (!grd_wrap_dim(self, grd_scalar_int64(dim), &along))
        return grd_failed;
    indices = grd_where(grd_lt_scalar(indices, grd_int(0)), grd_add_scalar(indices, grd_int(grd_size_along(self, along))), indices);
    if (grd_pending())
        return grd_failed;
    return self->ndim == 0 ? grd_gather(self, 0, indices)
                           : grd_gather(spread_but(self, indices, along), along, spread_but(indices, self, along));
}

grd_tensor *op_masked_scatter(grd_tensor *out, grd_tensor *self, grd_tensor *mask, grd_tensor *source)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    if (self->dtype != source->dtype)
        return grd_fail(GRD_ERROR_RUNTIME, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                        grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)source->dtype));
    if (mask->dtype != GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                        grd_dtype_type_name((grd_dtype)mask->dtype));
    if (!grd_check_has_data(mask) || !grd_check_same_device(grd_tensors(self, mask, source)) ||
        !grd_shape_broadcast(grd_sizes(self), grd_sizes(mask), sizes, &n))
        return grd_failed;
    const grd_dims common = grd_dims_from(sizes, n);
    mask = grd_expand(mask, common);
    const int64_t count = (int64_t)grd_item_double(grd_sum(mask));
    if (!grd_pending() && count > source->numel)
        grd_raise(GRD_ERROR_RUNTIME, "Number of elements of source < number of ones in mask");
    if (grd_pending())
        return grd_failed;
    grd_tensor *placed = grd_hidden_masked_select_backward(grd_narrow(grd_reshape(source, grd_dims(-1)), 0, 0, count), common, mask);
    grd_tensor *value = grd_where(mask, placed, self);
    return grd_composite_finish(out, self, out == NULL ? grd_composite_contiguous(value) : value);
}

/* ---- Products of places ------------------------------------------------------------------------------------------------------------------- */

/* The first dimension of size 3, for those who do not say which. */
static int64_t dimension_of_three(const grd_tensor *t)
{
    for (int64_t i = 0; i < t->ndim; i++)
        if (t->sizes[i] == 3)
            return i;
    grd_raise(GRD_ERROR_RUNTIME, "no dimension of size 3 in input");
    return -1;
}

grd_tensor *op_cross(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar dim)
{
    if (self->ndim != other->ndim)
        return grd_fail(GRD_ERROR_RUNTIME, "linalg.cross: inputs must have the same number of dimensions.");
    if (self->dtype == GRD_BOOL)
        return grd_fail_no_kernel("cross", GRD_BOOL);
    const int64_t given = dim.kind == GRD_SCALAR_NONE ? dimension_of_three(self) : grd_scalar_int64(dim);
    int64_t along;
    if (grd_pending() || !grd_wrap_dim(self, given, &along))
        return grd_failed;
    if (self->ndim == 0 || self->sizes[along] != 3 || other->sizes[along] != 3)
        return grd_fail(GRD_ERROR_RUNTIME, "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld", (long long)given,
                        (long long)grd_size_along(self, along), (long long)grd_size_along(other, along));
    if (!grd_check_indexed_out(out, grd_tensors(self, other)))
        return grd_failed;
    return grd_composite_finish(out, NULL, grd_hidden_linalg_cross(self, other, along));
}

grd_tensor *op_kron(grd_tensor *self, grd_tensor *other)
{
    const int64_t n = self->ndim > other->ndim ? self->ndim : other->ndim;
    int64_t left[GRD_MAX_DIMS], right[GRD_MAX_DIMS], sizes[GRD_MAX_DIMS];
    if (!grd_check_ndim(2 * n))
        return grd_failed;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = i - (n - self->ndim), b = i - (n - other->ndim);
        left[2 * i] = a >= 0 ? self->sizes[a] : 1;
        right[2 * i + 1] = b >= 0 ? other->sizes[b] : 1;
        left[2 * i + 1] = right[2 * i] = 1;
        sizes[i] = grd_wrapping_product(left[2 * i], right[2 * i + 1]);
    }
    grd_tensor *product = grd_mul(grd_reshape(self, grd_dims_from(left, 2 * n)), grd_reshape(other, grd_dims_from(right, 2 * n)));
    /* The dims of a batch tensor's product may lie in another order. */
    return grd_unsafe_view(grd_is_batch(product) ? grd_contiguous(product) : product, grd_dims_from(sizes, n));
}

/* ---- tensordot ---------------------------------------------------------------------------------------------------------------------------- */

/* A dimension of size 1 stands for all of the other's, which are added up. */
static void match_sizes(grd_tensor **a, int64_t dim_a, grd_tensor **b, int64_t dim_b)
{
    int64_t i, j;
    if ((*a)->ndim == 0 || (*b)->ndim == 0) {
        grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                  (long long)((*a)->ndim == 0 ? dim_a : dim_b));
        return;
    }
    if (!grd_wrap_dim(*a, dim_a, &i) || !grd_wrap_dim(*b, dim_b, &j) || (*a)->sizes[i] == (*b)->sizes[j])
        return;
    if ((*a)->sizes[i] == 1)
        *b = grd_sum(*b, .dim = grd_dims(j), .keepdim = true, .dtype = (*b)->dtype);
    else if ((*b)->sizes[j] == 1)
        *a = grd_sum(*a, .dim = grd_dims(i), .keepdim = true, .dtype = (*a)->dtype);
}

grd_tensor *op_tensordot(grd_tensor *self, grd_tensor *other, grd_dims dims_self, grd_dims dims_other)
{
    int64_t first[GRD_MAX_DIMS], last[GRD_MAX_DIMS], sizes[2 * GRD_MAX_DIMS], length = 1;
    const int64_t n = dims_self.n;
    uint64_t mask;
    if (n != dims_other.n)
        return grd_fail(GRD_ERROR_RUNTIME, "both dimension lists should have same length, got %lld and %lld", (long long)n,
                        (long long)dims_other.n);
    for (int64_t i = 0; i < n && !grd_pending(); i++)
        match_sizes(&self, dims_self.data[i], &other, dims_other.data[i]);
    if (grd_pending() || !grd_shape_dim_mask(dims_self, self->ndim, &mask) || !grd_shape_dim_mask(dims_other, other->ndim, &mask))
        return grd_failed;
    for (int64_t i = 0; i < n; i++) {
        const int64_t left = grd_size(self, dims_self.data[i]), right = grd_size(other, dims_other.data[i]);
        if (left != right)
            return grd_fail(GRD_ERROR_RUNTIME,
                            "contracted dimensions need to match, but first has size %lld in dim %lld and second has size %lld in dim %lld",
                            (long long)left, (long long)dims_self.data[i], (long long)right, (long long)dims_other.data[i]);
        first[i] = i;
        last[i] = i - n;
        length *= left;
    }
    grd_tensor *left = grd_movedim(self, dims_self, grd_dims_from(last, n)),
               *right = grd_movedim(other, dims_other, grd_dims_from(first, n));
    const int64_t rows = self->ndim - n, columns = other->ndim - n;
    if (grd_pending())
        return grd_failed;
    if (rows + columns == 0 && n > 0)
        return grd_view(grd_dot(grd_reshape(left, grd_dims(length)), grd_reshape(right, grd_dims(length))), grd_dims_from(sizes, 0));
    memcpy(sizes, left->sizes, (size_t)rows * sizeof *sizes);
    memcpy(sizes + rows, right->sizes + n, (size_t)columns * sizeof *sizes);
    left = grd_reshape(left, grd_dims(grd_sizes_product(sizes, rows), length));
    right = grd_reshape(right, grd_dims(length, grd_sizes_product(sizes + rows, columns)));
    return grd_reshape(grd_mm(left, right), grd_dims_from(sizes, rows + columns));
}
