/* Indexing by several tensors at once: `index` reads the elements that index tensors select, `index_put` writes them.
 *
 * Index tensors and masks are first turned into one list of memory offsets, one for each selected element (or slice of elements). The loops in
 * index_loops.c then read or write at these offsets.
 * Invariants: every index is checked before anything is allocated or written. If an element is selected more than once, its values are written or
 * added in the order of the index by one thread. */
#include <string.h>

#include "base/text.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/iter.h"
#include "core/scalar.h"
#include "gen/uses/op/advanced_indexing.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "op/index_loops.h"
#include "op/plan.h"
#include "op/checks.h"
#include "op/sizes.h"

/* The index tensors of one call, one for each indexed dimension of `self` (the tensor that is indexed), and the positions of the elements that they
 * select. */
struct places {
    /* index[d] is the index tensor of dimension d of self, or NULL if d is not indexed. A mask of several dimensions is replaced by one integer index
     * tensor per dimension. If joined[d] is not 0, a single index tensor replaces the mask; it indexes these dimensions flattened to one. */
    grd_tensor *index[GRD_MAX_DIMS];
    /* joined[d] is 0 for an ordinary dimension. If one index tensor replaces a mask over several dimensions, joined[d] is not 0 for these dimensions:
     * for the last one it is the number of elements of the mask, for the others it is -1. */
    int64_t joined[GRD_MAX_DIMS];
    int64_t sizes[GRD_MAX_DIMS], n;    /* the shape to which the index tensors broadcast, and its number of dimensions n */
    int64_t count;                     /* the number of elements of the broadcast index, i.e. the product of `sizes` */
    int64_t left[GRD_MAX_DIMS], nleft; /* the `nleft` dimensions of self without an index */
    /* position of the index dimensions in the result, i.e. the number of unindexed dimensions before them */
    int64_t at;
    struct grd_indices list; /* the offsets in self of the selected elements, in the order of the broadcast index */
    int64_t step;            /* unit of the offsets in `list`, in bytes */
};

/* ---- Which dimensions --------------------------------------------------------------------------------------------------------- */

static bool is_mask(const grd_tensor *index)
{
    return index->dtype == GRD_BOOL || index->dtype == GRD_UINT8;
}

static bool check_one(const grd_tensor *self, const grd_tensor *index, int64_t dim)
{
    if (!is_mask(index) && (grd_category_of((grd_dtype)index->dtype) != GRD_CATEGORY_INTEGER || index->dtype == GRD_UINT64))
        return grd_raise(GRD_ERROR_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
    const int64_t span = is_mask(index) ? index->ndim : 1;
    if (span == 0)
        return grd_raise(GRD_ERROR_INDEX, "a mask without dimensions selects nothing of dimension %lld", (long long)dim);
    if (dim + span > self->ndim)
        return grd_raise(GRD_ERROR_INDEX, "too many indices for tensor of dimension %d", self->ndim);
    for (int64_t i = 0; is_mask(index) && i < span; i++)
        if (index->sizes[i] != self->sizes[dim + i] && index->sizes[i] != 0)
            return grd_raise(GRD_ERROR_INDEX,
                             "The shape of the mask %s at index %lld does not match the shape of the indexed tensor %s at index %lld",
                             grd_list_text(grd_sizes(index)), (long long)i, grd_list_text(grd_sizes(self)), (long long)(dim + i));
    return true;
}

/* Replaces `mask`, which indexes several dimensions of self from `dim` on, by a single index tensor that indexes these dimensions flattened to one.
 * Sets p->index and p->joined for these dimensions. self must be contiguous, because otherwise they have no common stride. */
static void join(struct places *p, int64_t dim, grd_tensor *mask)
{
    grd_tensor *places = op_nonzero(op_reshape(mask, grd_dims(-1)));
    places = grd_pending() ? places : op_select(places, 1, 0);
    for (int64_t k = 0; k < mask->ndim; k++) {
        p->index[dim + k] = places;
        p->joined[dim + k] = k + 1 < mask->ndim ? -1 : mask->numel;
    }
}

/* Sets p->index[d] to the index tensor for each indexed dimension d of self. `dims` lists these dimensions; without `dims`, the first dimensions are
 * indexed. A mask is replaced by integer index tensors, one for each of its dimensions. If `joins`, which requires that self and out are contiguous,
 * a mask of several dimensions is replaced by a single index tensor instead (see join()). Returns false after raising an error. */
static bool assign(const grd_tensor *self, grd_tensors indices, grd_dims dims, bool joins, struct places *p)
{
    if (dims.data != NULL && dims.n != indices.n)
        return grd_raise(GRD_ERROR_VALUE, "%lld dimensions are named for %lld index tensors", (long long)dims.n, (long long)indices.n);
    int64_t next = 0;
    for (int64_t i = 0; i < indices.n; i++) {
        grd_tensor *index = indices.data[i];
        int64_t dim = next;
        if (dims.data != NULL && !grd_wrap_dim(self, dims.data[i], &dim))
            return false;
        if (dim < next)
            return grd_raise(GRD_ERROR_VALUE, "the dims of index tensors must increase, and a mask uses as many dims as it has dimensions");
        if (!check_one(self, index, dim))
            return false;
        next = dim + (is_mask(index) ? index->ndim : 1);
        if (!is_mask(index)) {
            p->index[dim] = index;
            continue;
        }
        if (joins && index->ndim > 1) {
            join(p, dim, index);
            if (grd_pending())
                return false;
            continue;
        }
        grd_tensor *coordinates = op_nonzero(index);
        for (int64_t k = 0; !grd_pending() && dim + k < next; k++)
            p->index[dim + k] = op_select(coordinates, 1, k);
        if (grd_pending())
            return false;
    }
    return true;
}

/* ---- What they broadcast to ------------------------------------------------------------------------------------------------------ */

static bool raise_mismatch(const grd_tensor *self, const struct places *p)
{
    struct grd_text text = {0};
    for (int64_t dim = 0; dim < self->ndim; dim++)
        if (p->index[dim] != NULL)
            grd_text_add(&text, "%s%s", text.size ? ", " : "", grd_list_text(grd_sizes(p->index[dim])));
    grd_raise(GRD_ERROR_INDEX, "shape mismatch: indexing tensors could not be broadcast together with shapes %s",
              text.data != NULL ? text.data : "");
    grd_text_done(&text);
    return false;
}

/* Sets p->sizes to the shape that the index tensors broadcast to. Raises IndexError if they do not broadcast. */
static bool broadcast(const grd_tensor *self, struct places *p)
{
    for (int64_t dim = 0; dim < self->ndim; dim++)
        if (p->index[dim] != NULL && p->index[dim]->ndim > p->n)
            p->n = p->index[dim]->ndim;
    for (int64_t i = 0; i < p->n; i++)
        p->sizes[i] = 1;
    for (int64_t dim = 0; dim < self->ndim; dim++) {
        const grd_tensor *index = p->index[dim];
        for (int64_t i = 0; index != NULL && i < index->ndim; i++) {
            int64_t *size = &p->sizes[p->n - index->ndim + i];
            if (*size != index->sizes[i] && *size != 1 && index->sizes[i] != 1)
                return raise_mismatch(self, p);
            *size = *size == 1 ? index->sizes[i] : *size;
        }
    }
    return grd_shape_numel(grd_dims_from(p->sizes, p->n), &p->count);
}

/* Returns the position of the index dimensions among the result's dimensions. If the indexed dimensions are adjacent, this is the position of the
 * first indexed dimension, otherwise 0. */
static int64_t place_of(const grd_tensor *self, const struct places *p)
{
    int64_t first = 0, last = self->ndim - 1;
    while (first < self->ndim && p->index[first] == NULL)
        first++;
    while (last > first && p->index[last] == NULL)
        last--;
    for (int64_t dim = first; dim <= last; dim++)
        if (p->index[dim] == NULL)
            return 0;
    return first < self->ndim ? first : 0;
}

/* ---- Where the elements are --------------------------------------------------------------------------------------------------------- */

/* Adds the offset along one indexed dimension of self, dim->stride * index, to each of the p->count int64 values in `offsets`. The indices are the
 * elements of `indices`, a tensor with `ndim` dimensions, broadcast to p->sizes. A negative index counts from the end of the dimension. */
static void add_dimension(const struct grd_indexed_dim *dim, const struct grd_indices *indices, const struct places *p, int64_t ndim,
                          char *offsets)
{
    int64_t own[GRD_MAX_DIMS], strides[GRD_MAX_DIMS] = {0};
    grd_shape_contiguous_strides(grd_dims_from(p->sizes, p->n), own);
    for (int64_t i = 0; i < p->n; i++)
        own[i] *= (int64_t)sizeof(int64_t);
    for (int64_t i = 0; i < ndim; i++)
        strides[p->n - ndim + i] = indices->strides[i];
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims_from(p->sizes, p->n), 2, (char *const[]){offsets, (char *)(uintptr_t)indices->data},
                 (const int64_t *const[]){own, strides});
    grd_iter_run(&it, grd_kernels->index->add_offsets, dim);
}

/* Raises IndexError if at least one element is selected but an indexed dimension of self has size 0. A dimension of size 0 that has no index is
 * allowed; the result is then empty. */
static bool check_nonempty_dims(const grd_tensor *self, const struct places *p)
{
    for (int64_t dim = 0; dim < self->ndim && p->count > 0; dim++)
        if (p->index[dim] != NULL && self->sizes[dim] == 0)
            return grd_raise(GRD_ERROR_INDEX, "index is out of bounds for dimension with size 0");
    return true;
}

/* True if no element is selected. This is so if the broadcast index is empty or a dimension of self without an index has size 0. */
static bool names_nothing(const grd_tensor *self, const struct places *p)
{
    bool nothing = p->count == 0;
    for (int64_t i = 0; i < p->nleft; i++)
        nothing |= self->sizes[p->left[i]] == 0;
    return nothing;
}

/* Sets p->list and p->step to the offsets of the selected elements in `self`. If only one dimension is indexed, no index is negative, and the index
 * shares no memory with `self`, which may be written, p->list is the index tensor itself, and p->step is the stride of the dimension. Otherwise
 * p->list holds the sums of the offsets along all indexed dimensions. Raises IndexError if an index is out of range. As in PyTorch, any index is
 * accepted if no element is selected. */
static bool locate(const grd_tensor *self, struct places *p)
{
    char *offsets = NULL;
    int64_t indexed = 0;
    if (names_nothing(self, p))
        return true;
    for (int64_t dim = 0; dim < self->ndim; dim++)
        indexed += p->index[dim] != NULL && p->joined[dim] >= 0;
    for (int64_t dim = 0; dim < self->ndim; dim++) {
        struct grd_indices indices;
        /* Dimensions flattened to one (`joined`) are contiguous, so their stride follows from the sizes. self->strides would be wrong, because a
         * dimension of size 1 may have any stride. */
        const bool joined = p->joined[dim] > 0;
        const int64_t size = joined ? p->joined[dim] : self->sizes[dim];
        const int64_t stride = joined ? grd_sizes_product(self->sizes + dim + 1, self->ndim - dim - 1) : self->strides[dim];
        if (p->index[dim] == NULL || p->joined[dim] < 0)
            continue;
        if (!grd_read_indices(p->index[dim], &indices))
            return false;
        if (!grd_indices_in_range(&indices, -size, size))
            return grd_raise_out_of_bounds(GRD_ERROR_INDEX, &indices, dim, size);
        if (indexed == 1 && indices.stored == p->count && grd_indices_in_range(&indices, 0, size) && !grd_overlaps(self, p->index[dim])) {
            p->list = indices;
            p->step = stride * self->itemsize;
            return true;
        }
        if (offsets == NULL)
            offsets = grd_new_zeros(grd_dims(p->count), GRD_INT64, GRD_CPU)->data;
        if (grd_pending())
            return false;
        add_dimension(&(struct grd_indexed_dim){size, stride}, &indices, p, p->index[dim]->ndim, offsets);
    }
    static const int64_t here = 0;
    p->list.data = indexed > 0 ? (const int64_t *)(const void *)offsets : &here;
    p->step = self->itemsize;
    return true;
}

static bool has_mask(grd_tensors indices)
{
    for (int64_t i = 0; i < indices.n; i++)
        if (is_mask(indices.data[i]))
            return true;
    return false;
}

static bool check_devices(const grd_tensor *self, grd_tensors indices)
{
    for (int64_t i = 0; i < indices.n; i++)
        if (!grd_check_same_device(grd_tensors((grd_tensor *)(uintptr_t)self, indices.data[i])))
            return false;
    return true;
}

/* Fills *p, except for p->list and p->step (the offsets of the selected elements), which locate() sets. Reads the elements of masks. `out` may be
 * NULL. Returns false if it raised an error. */
static bool find_places(const grd_tensor *self, const grd_tensor *out, grd_tensors indices, grd_dims dims, struct places *p)
{
    const bool joins = grd_has(self, GRD_FLAG_CONTIGUOUS) && (out == NULL || grd_has(out, GRD_FLAG_CONTIGUOUS));
    *p = (struct places){.count = 1};
    if (!assign(self, indices, dims, joins, p) || !broadcast(self, p))
        return false;
    p->at = place_of(self, p);
    for (int64_t dim = 0; dim < self->ndim; dim++)
        if (p->index[dim] == NULL)
            p->left[p->nleft++] = dim;
    if (p->nleft + p->n > GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)(p->nleft + p->n), GRD_MAX_DIMS);
    return check_nonempty_dims(self, p);
}

static struct places *places_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct places) <= GRD_PLAN_STATE, "room in the plan");
    return (struct places *)(uintptr_t)p->state;
}

/* ---- The loops ----------------------------------------------------------------------------------------------------------------------- */

/* Writes the shape of the selected elements to ret_sizes and returns it: the sizes of the dimensions of self without an index, with the sizes of the
 * broadcast index inserted at position p->at. If `merged`, the index counts as one dimension of size p->count. */
static grd_dims selected_sizes(const grd_tensor *self, const struct places *p, bool merged, int64_t *ret_sizes)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->at; i++)
        ret_sizes[n++] = self->sizes[p->left[i]];
    memcpy(ret_sizes + n, merged ? &p->count : p->sizes, (size_t)(merged ? 1 : p->n) * sizeof *ret_sizes);
    n += merged ? 1 : p->n;
    for (int64_t i = p->at; i < p->nleft; i++)
        ret_sizes[n++] = self->sizes[p->left[i]];
    return grd_dims_from(ret_sizes, n);
}

/* Runs `kernel` over the selected elements of `self` and the elements of `other`, which has the strides other_strides. If `operand` is GRD_SOURCE,
 * reads `self` and writes `other`. If `operand` is GRD_RESULT, reads `other` and writes `self` in the order of the index; other_strides then has a
 * single stride for all index dimensions together. */
static void run_places(const grd_tensor *self, int operand, const struct places *p, const grd_tensor *other, const int64_t *other_strides,
                       grd_loop_kernel *kernel)
{
    const bool writes = operand == GRD_RESULT;
    const int side = writes ? GRD_SOURCE : GRD_RESULT;
    const int64_t span = writes ? 1 : p->n;
    struct grd_indexed x = {.kernel = kernel, .step = p->step, .in_order = writes, .dim = p->at};
    int64_t list[GRD_MAX_DIMS];
    x.n = selected_sizes(self, p, writes, x.sizes).n;
    grd_shape_contiguous_strides(grd_dims_from(writes ? &p->count : p->sizes, span), list);
    for (int64_t i = 0; i < p->nleft; i++)
        x.strides[operand][i < p->at ? i : i + span] = grd_byte_stride(self, p->left[i]);
    for (int64_t i = 0; i < x.n; i++)
        x.strides[side][i] = grd_wrapping_product(other_strides[i], other->itemsize);
    for (int64_t i = 0; i < span; i++)
        x.strides[GRD_INDEX][p->at + i] = p->count == 1 ? 0 : list[i] * (int64_t)sizeof(int64_t);
    x.data[operand] = self->data;
    x.data[side] = other->data;
    x.data[GRD_INDEX] = (char *)(uintptr_t)p->list.data;
    grd_indexed_run(&x);
}

/* Writes the strides, in elements, of a view of `index` with result.n dimensions. Dimensions p->at to p->at + p->n - 1 of the view are those of the
 * broadcast index; all others have size 1. Broadcast dimensions have stride 0. If there is no such view, writes contiguous strides. */
static void index_strides(const grd_tensor *index, const struct places *p, grd_dims result, int64_t *ret_strides)
{
    int64_t raised[GRD_MAX_DIMS], expanded[GRD_MAX_DIMS] = {0};
    const int64_t missing = p->n - index->ndim;
    for (int64_t i = missing; i < p->n; i++)
        expanded[i] = index->sizes[i - missing] == 1 && p->sizes[i] != 1 ? 0 : index->strides[i - missing];
    for (int64_t i = 0; i < result.n; i++)
        raised[i] = i >= p->at && i < p->at + p->n ? p->sizes[i - p->at] : 1;
    const grd_dims sizes = grd_dims_from(p->sizes, p->n), wanted = grd_dims_from(raised, result.n);
    if (!grd_shape_view_strides(sizes, expanded, wanted, ret_strides))
        grd_shape_contiguous_strides(wanted, ret_strides);
    for (int64_t i = 0; i < result.n; i++)
        if (raised[i] == 1 && result.data[i] != 1)
            ret_strides[i] = 0;
}

/* Plans the dense result of the operator `index`. As in PyTorch, the order of its dimensions in memory follows the strides of self and of the
 * index tensors. */
static bool plan_selection(struct grd_plan *plan, const grd_tensor *self, const struct places *p)
{
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS], numel;
    const grd_dims selected = selected_sizes(self, p, false, sizes);
    int64_t(*told)[GRD_MAX_DIMS] = grd_pool_array((int64_t)self->ndim + 1, sizeof *told);
    if (told == NULL)
        return false;
    memset(told[0], 0, sizeof told[0]);
    for (int64_t i = 0; i < p->nleft; i++)
        told[0][i < p->at ? i : i + p->n] = self->strides[p->left[i]];
    int n = 1;
    for (int64_t dim = 0; dim < self->ndim; dim++)
        if (p->index[dim] != NULL)
            index_strides(p->index[dim], p, selected, told[n++]);
    if (!grd_shape_numel(selected, &numel))
        return false;
    if (numel <= 1)
        return grd_plan_result(plan, selected, (grd_dtype)self->dtype);
    grd_shape_ordered_strides(selected, (const int64_t(*)[GRD_MAX_DIMS])told, n, strides);
    return grd_plan_strided(plan, selected, strides, (grd_dtype)self->dtype);
}

/* Plans the operator `index`: checks its arguments and describes the result. If an index is a mask, the size of the result depends on the elements of
 * the mask. In this case check_index, which runs later, reads the mask and describes the result. */
bool plan_index(struct grd_plan *p, grd_tensor *self, grd_tensors indices, grd_dims dims)
{
    if (!check_devices(self, indices) || !grd_plan_reads(p, self))
        return false;
    return has_mask(indices) ? grd_check_has_data(self)
                             : find_places(self, p->out, indices, dims, places_of(p)) && plan_selection(p, self, places_of(p));
}

bool check_index(struct grd_plan *p, grd_tensor *self, grd_tensors indices, grd_dims dims)
{
    struct places *places = places_of(p);
    return (!has_mask(indices) || (find_places(self, p->out, indices, dims, places) && plan_selection(p, self, places))) &&
           locate(self, places);
}

void run_index(const struct grd_plan *p)
{
    run_places(p->in[0], GRD_SOURCE, places_of(p), p->results[0], p->results[0]->strides,
               grd_kernel_of_size(grd_kernels->index->gather, p->in[0]));
}

/* The state of index_put that its plan and check functions hand to run_index_put. `strides`: the strides, in elements, that `values` has once it is
 * broadcast to the shape of the selected elements and its index dimensions are merged into one. `kernel`: writes or adds one element. */
struct put {
    struct places places;
    int64_t strides[GRD_MAX_DIMS + 1];
    grd_loop_kernel *kernel;
};

/* True if index_put writes one value where a mask is true. As masked_fill() does, it then takes the value from a tensor of any dtype and shape. */
static bool fills_mask(grd_tensors indices, const grd_tensor *values, bool accumulate)
{
    return !accumulate && values->numel == 1 && indices.n == 1 && indices.data[0] != NULL && indices.data[0]->dtype == GRD_BOOL;
}

/* Raises RuntimeError and returns false unless `values` broadcasts to the shape of the selected elements and has the dtype of `self`. */
static bool check_values(const grd_tensor *self, const grd_tensor *values, const struct places *p)
{
    int64_t sizes[GRD_MAX_DIMS];
    const grd_dims selected = selected_sizes(self, p, false, sizes);
    bool fits = values->ndim <= selected.n;
    for (int64_t i = 0; fits && i < values->ndim; i++)
        fits = values->sizes[i] == 1 || values->sizes[i] == selected.data[selected.n - values->ndim + i];
    if (!fits)
        return grd_raise(GRD_ERROR_RUNTIME, "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
                         grd_list_text(grd_sizes(values)), grd_list_text(selected));
    return values->dtype == self->dtype ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
                     grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)values->dtype));
}

/* Returns a view of `values`, broadcast to the shape of the selected elements. If the index dimensions of this view cannot be merged into one
 * dimension, returns a contiguous copy of the view instead. Writes to put->strides the strides of the returned tensor with merged index
 * dimensions. */
static grd_tensor *flattened(const grd_tensor *self, grd_tensor *values, struct put *put)
{
    int64_t sizes[GRD_MAX_DIMS], merged[GRD_MAX_DIMS + 1];
    const grd_dims selected = selected_sizes(self, &put->places, false, sizes), wanted = selected_sizes(self, &put->places, true, merged);
    /* If no element is selected, the strides are not needed. Computing them could fail, because the product of the sizes other than 0 may
     * overflow. */
    if (put->places.count == 0)
        return values;
    values = op_expand(values, selected);
    if (grd_pending() || grd_shape_view_strides(selected, values->strides, wanted, put->strides))
        return values;
    grd_shape_contiguous_strides(wanted, put->strides);
    return grd_contiguous_as(values, GRD_DTYPE_NONE);
}

/* Computes the offsets of the selected elements in the result, once the result is allocated and its strides are known. Returns false if an index is
 * out of range. */
static bool locate_result(struct grd_plan *p)
{
    return locate(p->results[0], places_of(p));
}

bool plan_index_put(struct grd_plan *p, grd_tensor *self, grd_tensors indices, grd_tensor *values, bool accumulate, grd_dims dims)
{
    const grd_dtype dtype = (grd_dtype)self->dtype, as = accumulate ? grd_computed_dtype(dtype) : dtype;
    _Static_assert(sizeof(struct put) <= GRD_PLAN_STATE, "room in the plan");
    struct put *put = (struct put *)(void *)p->state;
    put->kernel = accumulate ? grd_kernels->index->add[as] : grd_kernel_of_size(grd_kernels->index->scatter, self);
    if (put->kernel == NULL)
        return grd_raise_no_kernel("index_put", dtype);
    if (!grd_check_no_overlaps(p->out, indices) || !check_devices(self, indices))
        return false;
    if (has_mask(indices) ? !grd_check_has_data(self)
                          : !find_places(self, p->out, indices, dims, places_of(p)) || !check_values(self, values, places_of(p)))
        return false;
    p->repeats = p->any_strides = true;
    p->prepare = locate_result;
    return grd_check_repeated_out(p->out, "index_put_", "tensor[indices] = tensor") && grd_plan_starts_from(p, self) &&
           grd_plan_reads_as(p, values, as == dtype ? GRD_DTYPE_NONE : as) && grd_plan_like(p, self, dtype) && grd_plan_computed_in(p, as);
}

bool check_index_put(struct grd_plan *p, grd_tensor *self, grd_tensors indices, grd_tensor *values, bool accumulate, grd_dims dims)
{
    struct places *places = places_of(p);
    const bool fills = fills_mask(indices, values, accumulate);
    if (has_mask(indices) && !(find_places(self, p->out, indices, dims, places) && (fills || check_values(self, values, places))))
        return false;
    if (fills) {
        p->in[1] = grd_new_zeros(GRD_NO_DIMS, (grd_dtype)self->dtype, GRD_CPU);
        if (grd_pending() || !grd_scalar_write(grd_scalar_read(values->data, values->dtype), self->dtype, p->in[1]->data))
            return false;
    }
    p->in[1] = flattened(self, p->in[1], (struct put *)(void *)p->state);
    return !grd_pending();
}

void run_index_put(const struct grd_plan *p)
{
    const struct put *put = (const struct put *)(const void *)p->state;
    run_places(p->results[0], GRD_RESULT, &put->places, p->in[1], put->strides, put->kernel);
}
