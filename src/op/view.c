/* Plans views, i.e. determines sizes, strides and offset of results that share storage with the operator's argument.
 *
 * A view has a plan but no run, because the plan determines everything: sizes, strides and offset. The functions op_<name>, which create the tensors,
 * are generated (gen/view_calls.h, included at the end). This file also has the gradients of views, which write a gradient to the same view of a
 * tensor of zeros.
 *
 * Invariant: a view reads and writes no elements. */
#include <string.h>

#include "gen/uses/op/view.h"
#include "base/integer.h"
#include "core/new.h"
#include "core/resize.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/copy.h"
#include "op/formula.h"
#include "op/plan.h"
#include "op/view.h"

/* Copies the sizes and strides of `t` to the view v. If `t` stores them inline, always copies GRD_INLINE_DIMS of each, because a copy of constant
 * size compiles to a few moves without a loop. */
GRD_INLINE void view_of(struct grd_view *v, const grd_tensor *t)
{
    const size_t n = t->sizes == t->inline_dims ? GRD_INLINE_DIMS : t->ndim;
    grd_view_start(v, t, t->ndim);
    if (GRD_LIKELY(n == GRD_INLINE_DIMS)) {
        memcpy(v->size, t->sizes, GRD_INLINE_DIMS * sizeof *v->size);
        memcpy(v->stride, t->strides, GRD_INLINE_DIMS * sizeof *v->stride);
    } else {
        memcpy(v->size, t->sizes, n * sizeof *v->size);
        memcpy(v->stride, t->strides, n * sizeof *v->stride);
    }
}

/* Copies the sizes and strides of `t`, without the dimensions in the bit set `dims`, to the view v. */
GRD_INLINE void view_without(struct grd_view *v, const grd_tensor *t, uint64_t dims)
{
    grd_view_start(v, t, 0);
    for (int64_t i = 0; i < t->ndim; i++)
        if (!(dims >> i & 1))
            grd_view_append(v, t->sizes[i], t->strides[i]);
}

/* Adds steps * stride to the offset. On overflow, the offset stays unchanged. Only an empty tensor can cause an overflow. */
static inline void advance(struct grd_view *v, int64_t steps, int64_t stride)
{
    int64_t there;
    if (GRD_LIKELY(!__builtin_mul_overflow(steps, stride, &there)) && GRD_LIKELY(!__builtin_add_overflow(v->offset, there, &there)) &&
        GRD_LIKELY(there >= 0))
        v->offset = there;
}

/* Inverts the conjugate key of `view` and returns `view`. */
static grd_tensor *turned_round(grd_tensor *view)
{
    if (!grd_is_failed(view))
        view->keys ^= 1u << GRD_KEY_CONJUGATE;
    return view;
}

/* Returns the tensor that v describes, a view of self. */
static inline grd_tensor *made(grd_tensor *self, const struct grd_view *v)
{
    const grd_dims sizes = grd_dims_from(v->sizes, v->n), strides = grd_dims_from(v->strides, v->n);
    if (v->itself)
        return self;
    if (GRD_UNLIKELY(v->turns))
        return turned_round(grd_new_view_as(self, v->dtype, sizes, strides, v->offset));
    if (v->detached)
        return grd_new_detached_as(self, v->dtype, sizes, strides, v->offset);
    if (v->dtype != GRD_DTYPE_NONE)
        return grd_new_view_as(self, v->dtype, sizes, strides, v->offset);
    return v->checked ? grd_new_view(self, sizes, strides, v->offset) : grd_new_part(self, sizes, strides, v->offset);
}

/* Changes the sizes, strides and offset of `out` itself to those of the view. Returns `out`, or grd_failed on an error. */
static inline grd_tensor *turned(grd_tensor *out, const struct grd_view *v)
{
    return grd_set_geometry(out, grd_dims_from(v->sizes, v->n), grd_dims_from(v->strides, v->n), v->offset) ? out : grd_failed;
}

/* ---- alias and detach ---------------------------------------------------------------------------------------------------- */

static inline bool plan_alias(struct grd_view *v, grd_tensor *self)
{
    grd_view_start(v, self, self->ndim);
    v->sizes = self->sizes;
    v->strides = self->strides;
    return true;
}

static inline bool plan_detach(struct grd_view *v, grd_tensor *self)
{
    v->dtype = (grd_dtype)self->dtype;
    return v->detached = plan_alias(v, self);
}

/* ---- Views with other sizes ------------------------------------------------------------------------------------------- */

static inline bool plan_view(struct grd_view *v, grd_tensor *self, grd_dims size)
{
    grd_view_start(v, self, size.n);
    if (!grd_shape_infer(size, self->numel, v->size))
        return false;
    if (grd_has(self, GRD_FLAG_CANONICAL))
        grd_shape_contiguous_strides(grd_dims_from(v->size, size.n), v->stride);
    else if (!grd_shape_view_strides(grd_sizes(self), self->strides, grd_dims_from(v->size, size.n), v->stride))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                         "two contiguous subspaces). Use .reshape(...) instead.");
    return true;
}

grd_tensor *op_reshape(grd_tensor *self, grd_dims shape)
{
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    if (!grd_shape_infer(shape, self->numel, sizes))
        return grd_failed;
    grd_dims wanted = grd_dims_from(sizes, shape.n);
    if (grd_shape_view_strides(grd_sizes(self), self->strides, wanted, strides))
        return grd_view(self, wanted);
    return grd_unsafe_view(grd_clone(self, .memory_format = "contiguous"), wanted);
}

/* Returns the sizes of `t`, with the sizes of dims `first` to `past` - 1 replaced by `others`. `sizes` is the memory for the result. */
static grd_dims replaced(const grd_tensor *t, int64_t first, int64_t past, grd_dims others, int64_t *sizes)
{
    int64_t n = 0;
    for (int64_t i = 0; i < first; i++)
        sizes[n++] = t->sizes[i];
    for (int64_t i = 0; i < others.n; i++)
        sizes[n++] = others.data[i];
    for (int64_t i = past; i < t->ndim; i++)
        sizes[n++] = t->sizes[i];
    return grd_dims_from(sizes, n);
}

grd_tensor *op_flatten(grd_tensor *self, int64_t start_dim, int64_t end_dim)
{
    int64_t sizes[GRD_MAX_DIMS], product = 1;
    if (!grd_wrap_dim(self, start_dim, &start_dim) || !grd_wrap_dim(self, end_dim, &end_dim))
        return grd_failed;
    if (start_dim > end_dim)
        return grd_fail(GRD_ERROR_RUNTIME, "flatten() has invalid args: start_dim cannot come after end_dim");
    if (self->ndim == 0)
        return grd_view(self, grd_dims(1));
    if (start_dim == end_dim)
        return self;
    for (int64_t i = start_dim; i <= end_dim; i++)
        if (__builtin_mul_overflow(product, self->sizes[i], &product))
            return grd_fail(GRD_ERROR_RUNTIME, "the product of the sizes from start_dim to end_dim fits into no integer");
    return grd_reshape(self, replaced(self, start_dim, end_dim + 1, grd_dims(product), sizes));
}

/* Writes the sizes of the new dimensions to ret_sizes, with -1 replaced by the inferred size. Returns false, with RuntimeError, if the product of
 * these sizes is not the size along dim. */
static bool check_unflatten(grd_tensor *self, int64_t dim, grd_dims sizes, int64_t *ret_sizes)
{
    int64_t size = grd_size_along(self, dim), product = 1, inferred = -1;
    if (sizes.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "unflatten: sizes must be non-empty");
    if (!grd_check_ndim(self->ndim + sizes.n - 1))
        return false;
    bool fits = true;
    for (int64_t i = 0; i < sizes.n; i++) {
        ret_sizes[i] = sizes.data[i];
        if (sizes.data[i] != -1)
            fits &= sizes.data[i] >= 0 && !__builtin_mul_overflow(product, sizes.data[i], &product);
        else if (inferred >= 0)
            return grd_raise(GRD_ERROR_RUNTIME, "only one dimension can be inferred");
        else
            inferred = i;
    }
    if (inferred >= 0 && fits && product != 0 && size % product == 0)
        ret_sizes[inferred] = size / product;
    else if (inferred >= 0 || !fits || product != size)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "unflatten: Provided sizes %s don't multiply up to the size of dim %lld (%lld) in the input tensor",
                         grd_list_text(sizes), (long long)dim, (long long)size);
    return true;
}

grd_tensor *op_unflatten(grd_tensor *self, int64_t dim, grd_dims sizes)
{
    int64_t parts[GRD_MAX_DIMS], result[2 * GRD_MAX_DIMS];
    if (!grd_wrap_dim(self, dim, &dim) || !check_unflatten(self, dim, sizes, parts))
        return grd_failed;
    return grd_view(self, replaced(self, dim, dim + 1, grd_dims_from(parts, sizes.n), result));
}

/* Plans squeeze(). If `dim` is absent (dim.data is NULL), all dimensions of size 1 are removed. If `dim` is an empty list, none is removed. */
static inline bool plan_squeeze(struct grd_view *v, grd_tensor *self, grd_dims dim)
{
    uint64_t mask = 0;
    if ((dim.data == NULL || dim.n > 0) && !grd_shape_dim_mask(dim, self->ndim, &mask))
        return false;
    for (int64_t i = 0; i < self->ndim; i++)
        if (self->sizes[i] != 1)
            mask &= ~(UINT64_C(1) << i);
    view_without(v, self, mask);
    return true;
}

static inline bool plan_unsqueeze(struct grd_view *v, grd_tensor *self, int64_t dim)
{
    int64_t stride = 1;
    if (!grd_check_ndim(self->ndim + 1) || !grd_shape_wrap_dim(dim, self->ndim + 1, &dim))
        return false;
    if (dim < self->ndim && __builtin_mul_overflow(self->sizes[dim], self->strides[dim], &stride))
        stride = 1;
    grd_view_start(v, self, 0);
    for (int64_t i = 0; i <= self->ndim; i++) {
        if (i == dim)
            grd_view_append(v, 1, stride);
        if (i < self->ndim)
            grd_view_append(v, self->sizes[i], self->strides[i]);
    }
    return true;
}

/* ---- Views with another order of dimensions ----------------------------------------------------------------------------- */

/* Plans a view with the dimensions a and b exchanged. */
static inline bool swap(struct grd_view *v, const grd_tensor *self, int64_t a, int64_t b)
{
    view_of(v, self);
    if (a != b) {
        v->size[a] = self->sizes[b];
        v->size[b] = self->sizes[a];
        v->stride[a] = self->strides[b];
        v->stride[b] = self->strides[a];
    }
    return true;
}

static inline bool plan_transpose(struct grd_view *v, grd_tensor *self, int64_t dim0, int64_t dim1)
{
    return grd_wrap_dim(self, dim0, &dim0) && grd_wrap_dim(self, dim1, &dim1) && swap(v, self, dim0, dim1);
}

static inline bool plan_t(struct grd_view *v, grd_tensor *self)
{
    if (self->ndim > 2)
        return grd_raise(GRD_ERROR_RUNTIME, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    return swap(v, self, 0, self->ndim == 2);
}

static inline bool plan_mT(struct grd_view *v, grd_tensor *self)
{
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "tensor.mT is only supported on matrices or batches of matrices. Got %d-D tensor.", self->ndim);
    return swap(v, self, self->ndim - 2, self->ndim - 1);
}

/* Writes the dims, with negative ones counted from the end, to ret_dims. Returns false, with the error raised, if a dim is out of range or occurs
 * twice. The error names movedim and its argument `what`, or permute if `what` is NULL. */
static bool wrap_each(int64_t ndim, grd_dims dims, const char *what, int64_t *ret_dims, uint64_t *ret_mask)
{
    *ret_mask = 0;
    for (int64_t i = 0; i < dims.n; i++) {
        if (!grd_shape_wrap_dim(dims.data[i], ndim, &ret_dims[i]))
            return false;
        if (*ret_mask >> ret_dims[i] & 1)
            return what == NULL ? grd_raise(GRD_ERROR_RUNTIME, "permute(): duplicate dims are not allowed.")
                                : grd_raise(GRD_ERROR_RUNTIME, "movedim: repeated dim in `%s` (%s)", what, grd_list_text(dims));
        *ret_mask |= (uint64_t)1 << ret_dims[i];
    }
    return true;
}

static bool check_permutation(int64_t ndim, grd_dims dims, int64_t *ret_dims)
{
    uint64_t all;
    if (dims.n != ndim)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of "
                         "dimensions i.e. "
                         "input.dim() = %lld is not equal to len(dims) = %lld",
                         (long long)ndim, (long long)dims.n);
    return wrap_each(ndim, dims, NULL, ret_dims, &all);
}

static inline bool plan_permute(struct grd_view *v, grd_tensor *self, grd_dims dims)
{
    int64_t order[GRD_MAX_DIMS];
    if (!check_permutation(self->ndim, dims, order))
        return false;
    grd_view_start(v, self, 0);
    for (int64_t i = 0; i < dims.n; i++)
        grd_view_append(v, self->sizes[order[i]], self->strides[order[i]]);
    return true;
}

grd_dims grd_inverse_order(grd_dims dims)
{
    int64_t order[GRD_MAX_DIMS], *const inverse = grd_pool_array(dims.n + 1, sizeof *inverse);
    if (inverse == NULL || !check_permutation(dims.n, dims, order))
        return GRD_NO_DIMS;
    for (int64_t i = 0; i < dims.n; i++)
        inverse[order[i]] = i;
    return grd_dims_from(inverse, dims.n);
}

grd_tensor *op_movedim(grd_tensor *self, grd_dims source, grd_dims destination)
{
    if (source.n != destination.n)
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "movedim: Invalid source or destination dims: source (%s dims) should contain the same number of dims as destination (%s dims)",
            grd_list_text(source), grd_list_text(destination));
    int64_t from[GRD_MAX_DIMS], to[GRD_MAX_DIMS], order[GRD_MAX_DIMS];
    uint64_t taken, placed;
    if (!grd_check_ndim(source.n) || !wrap_each(self->ndim, source, "source", from, &taken) ||
        !wrap_each(self->ndim, destination, "destination", to, &placed))
        return grd_failed;
    if (self->ndim == 0)
        return self;
    for (int64_t i = 0; i < source.n; i++)
        order[to[i]] = from[i];
    for (int64_t i = 0, next = 0; i < self->ndim; i++) {
        if (placed >> i & 1)
            continue;
        while (taken >> next & 1)
            next++;
        order[i] = next++;
    }
    return grd_permute(self, grd_dims_from(order, self->ndim));
}

/* ---- expand -------------------------------------------------------------------------------------------------------------- */

/* Sets size and stride of dimension i of an expanded view. Returns false, with RuntimeError, if self does not expand to `size`. */
static inline bool expanded_size(const grd_tensor *self, grd_dims size, int64_t i, struct grd_view *v)
{
    int64_t dim = i - (size.n - self->ndim), wanted = size.data[i];
    if (dim < 0 && wanted < 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing dimension %lld",
                         (long long)wanted, (long long)i);
    int64_t present = dim >= 0 ? self->sizes[dim] : 1;
    if (wanted == -1)
        wanted = present;
    if (wanted != present && (present != 1 || wanted < 0))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %lld.  "
                         "Target sizes: %s.  Tensor sizes: %s",
                         (long long)wanted, (long long)present, (long long)i, grd_list_text(size), grd_list_text(grd_sizes(self)));
    v->size[i] = wanted;
    if (dim >= 0 && wanted == present)
        v->stride[i] = self->strides[dim];
    else if (dim < 0 && wanted == 1 && self->ndim > 0 && i + 1 == size.n)
        v->stride[i] = 1;
    else if (dim < 0 && wanted == 1 && self->ndim > 0 && !__builtin_mul_overflow(v->size[i + 1], v->stride[i + 1], &v->stride[i]))
        return true;
    else
        v->stride[i] = 0;
    return true;
}

static inline bool plan_expand(struct grd_view *v, grd_tensor *self, grd_dims size)
{
    if (!grd_check_ndim(size.n))
        return false;
    if (size.n < self->ndim)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "expand(): tensor of size %s, size=%s: the number of sizes provided (%lld) must be greater or equal to the number "
                         "of dimensions in the tensor (%d)",
                         grd_list_text(grd_sizes(self)), grd_list_text(size), (long long)size.n, self->ndim);
    int64_t numel = 1;
    bool large = false;
    grd_view_start(v, self, size.n);
    for (int64_t i = size.n - 1; i >= 0; i--) {
        if (!expanded_size(self, size, i, v))
            return false;
        large |= __builtin_mul_overflow(numel, v->size[i] > 1 ? v->size[i] : 1, &numel);
    }
    return !large || grd_shape_numel(grd_dims_from(v->size, size.n), &numel);
}

/* ---- Views of some of the elements ----------------------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) bool refuse_index(const grd_tensor *self, int64_t dim, int64_t index)
{
    return grd_raise(GRD_ERROR_INDEX, "select(): index %lld out of range for tensor of size %s at dimension %lld", (long long)index,
                     grd_list_text(grd_sizes(self)), (long long)dim);
}

/* Writes `index`, with a negative index counted from the end of dimension dim, to *ret_index. Returns false, with IndexError, if the index is out of
 * range. */
static inline bool wrap_index(const grd_tensor *self, int64_t dim, int64_t index, int64_t *ret_index)
{
    const int64_t size = self->sizes[dim];
    *ret_index = index < 0 ? index + size : index;
    return GRD_LIKELY((uint64_t)*ret_index < (uint64_t)size) || refuse_index(self, dim, index);
}

GRD_INLINE bool plan_select(struct grd_view *v, grd_tensor *self, int64_t dim, int64_t index)
{
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "select() cannot be applied to a 0-dim tensor.");
    if (!grd_wrap_dim(self, dim, &dim) || !wrap_index(self, dim, index, &index))
        return false;
    const int64_t rest = (int64_t)self->ndim - 1;
    /* If the first or the last dimension is removed, the sizes and strides of the other dimensions are adjacent in the arrays of self. These arrays
     * are then used without a copy. */
    if (GRD_LIKELY(dim == 0 || dim == rest)) {
        grd_view_start(v, self, rest);
        v->sizes = self->sizes + (dim == 0);
        v->strides = self->strides + (dim == 0);
    } else {
        view_without(v, self, UINT64_C(1) << dim);
    }
    advance(v, index, self->strides[dim]);
    return true;
}

/* Returns a slice bound as Python interprets it. The result is `absent` if the bound is None. A negative bound is counted from the end. The bound is
 * then clamped to [low, high]. */
static inline int64_t slice_bound(const grd_scalar *bound, int64_t absent, int64_t size, int64_t low, int64_t high)
{
    if (bound->kind == GRD_SCALAR_NONE)
        return absent;
    int64_t value = grd_scalar_int64(*bound);
    return grd_clamped(value < 0 ? value + size : value, low, high);
}

/* Returns the number of elements of a slice. Writes the index of its first element to *ret_first. `step` must not be 0. */
static int64_t slice_range(int64_t size, const grd_scalar *start, const grd_scalar *end, int64_t step, int64_t *ret_first)
{
    if (step > 0) {
        int64_t first = slice_bound(start, 0, size, 0, size), last = slice_bound(end, size, size, 0, size);
        *ret_first = first;
        return first < last ? (last - first - 1) / step + 1 : 0;
    }
    int64_t first = slice_bound(start, size - 1, size, -1, size - 1), last = slice_bound(end, -1, size, -1, size - 1);
    *ret_first = first < 0 ? 0 : first;
    return first > last ? (int64_t)((uint64_t)(first - last - 1) / -(uint64_t)step) + 1 : 0;
}

GRD_INLINE bool plan_slice(struct grd_view *v, grd_tensor *self, int64_t dim, grd_scalar start, grd_scalar end, int64_t step)
{
    int64_t first, stride;
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "slice() cannot be applied to a 0-dim tensor.");
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    if (step == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "slice step must not be zero");
    view_of(v, self);
    v->size[dim] = slice_range(self->sizes[dim], &start, &end, step, &first);
    advance(v, first, self->strides[dim]);
    /* If stride * step overflows, `step` exceeds the size along dim. The slice then has at most one element, so its stride is never used. */
    if (!__builtin_mul_overflow(self->strides[dim], step, &stride))
        v->stride[dim] = stride;
    return true;
}

GRD_INLINE bool plan_diagonal(struct grd_view *v, grd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2)
{
    int64_t given1 = dim1, given2 = dim2;
    if (!grd_wrap_dim(self, dim1, &dim1) || !grd_wrap_dim(self, dim2, &dim2))
        return false;
    if (dim1 == dim2)
        return grd_raise(GRD_ERROR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)given1, (long long)given2);
    int64_t rows = self->sizes[dim1], columns = self->sizes[dim2], size;
    offset = grd_clamped(offset, -rows, columns);
    if (offset >= 0)
        size = rows < columns - offset ? rows : columns - offset;
    else
        size = rows + offset < columns ? rows + offset : columns;
    view_without(v, self, UINT64_C(1) << dim1 | UINT64_C(1) << dim2);
    grd_view_append(v, size, (int64_t)((uint64_t)self->strides[dim1] + (uint64_t)self->strides[dim2]));
    if (size > 0)
        advance(v, offset >= 0 ? offset : -offset, self->strides[offset >= 0 ? dim2 : dim1]);
    return true;
}

static inline bool plan_unfold(struct grd_view *v, grd_tensor *self, int64_t dimension, int64_t size, int64_t step)
{
    if (!grd_check_ndim(self->ndim + 1) || !grd_wrap_dim(self, dimension, &dimension))
        return false;
    int64_t present = grd_size_along(self, dimension), stride = self->ndim ? self->strides[dimension] : 1, windows_stride;
    if (size < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "size is %lld but must be >= 0", (long long)size);
    if (size > present)
        return grd_raise(GRD_ERROR_RUNTIME, "maximum size for tensor at dimension %lld is %lld but size is %lld", (long long)dimension,
                         (long long)present, (long long)size);
    if (step <= 0)
        return grd_raise(GRD_ERROR_RUNTIME, "step is %lld but must be > 0", (long long)step);
    view_of(v, self);
    v->checked = true;
    grd_view_append(v, size, stride);
    if (self->ndim > 0)
        v->size[dimension] = (present - size) / step + 1;
    if (self->ndim > 0 && !__builtin_mul_overflow(stride, step, &windows_stride))
        v->stride[dimension] = windows_stride;
    return true;
}

/* ---- as_strided ------------------------------------------------------------------------------------------------------------- */

static inline bool plan_as_strided(struct grd_view *v, grd_tensor *self, grd_dims size, grd_dims stride, grd_scalar storage_offset)
{
    if (size.n != stride.n)
        return grd_raise(GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
    grd_view_start(v, self, size.n);
    v->sizes = size.data;
    v->strides = stride.data;
    v->checked = true;
    if (storage_offset.kind != GRD_SCALAR_NONE)
        v->offset = grd_scalar_int64(storage_offset);
    return v->offset >= 0 || grd_raise(GRD_ERROR_RUNTIME, "Tensor: invalid storage offset %lld", (long long)v->offset);
}

/* ---- Operators that return several views ------------------------------------------------------------------------------------ */

/* Describes several views of one tensor, which divide its dimension `dim`. */
struct views {
    int64_t n, dim;
    int64_t each;         /* size of each view along dim; the last one may be smaller */
    const int64_t *sizes; /* size of each view along dim; NULL if `each` is used */
    bool single;          /* each view is one element along dim, and has no dimension `dim` */
};

static const grd_tensors no_tensors = {0, NULL};

/* Returns the views that `vs` describes, flagged as several views that one operator has returned. Autograd refuses in-place changes of such views. */
static grd_tensors made_several(grd_tensor *self, const struct views *vs)
{
    int64_t room[2][GRD_MAX_DIMS];
    struct grd_view v = {.size = room[0], .stride = room[1]};
    const int64_t stride = self->strides[vs->dim], total = self->sizes[vs->dim];
    grd_tensor **list = grd_pool_array(vs->n, sizeof *list);
    view_without(&v, self, vs->single ? UINT64_C(1) << vs->dim : 0);
    for (int64_t i = 0, start = 0; list != NULL && i < vs->n && !grd_pending(); i++) {
        const int64_t rest = total - start, size = vs->sizes != NULL ? vs->sizes[i] : rest < vs->each ? rest : vs->each;
        v.offset = self->offset;
        advance(&v, start, stride);
        if (!vs->single)
            v.size[vs->dim] = size;
        list[i] = made(self, &v);
        start += size;
    }
    if (grd_pending())
        return no_tensors;
    for (int64_t i = 0; i < vs->n && grd_thread.grad_off == 0; i++)
        list[i]->flags = (uint16_t)((list[i]->flags & ~GRD_FLAG_NO_GRAD_VIEW) | GRD_FLAG_MULTI_VIEW);
    return (grd_tensors){vs->n, list};
}

static bool plan_unbind(struct views *vs, grd_tensor *self, int64_t dim)
{
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    *vs = (struct views){.n = self->sizes[dim], .dim = dim, .each = 1, .single = true};
    return true;
}

static bool check_has_dims(const grd_tensor *self, const char *function)
{
    return self->ndim > 0 || grd_raise(GRD_ERROR_RUNTIME, "%s expects at least a 1-dimensional tensor", function);
}

static bool plan_split(struct views *vs, grd_tensor *self, int64_t split_size, int64_t dim)
{
    if (!check_has_dims(self, "split"))
        return false;
    if (split_size < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "split expects split_size be non-negative, but got split_size=%lld", (long long)split_size);
    if (!grd_wrap_dim(self, dim, &dim))
        return false;
    const int64_t size = self->sizes[dim];
    if (split_size == 0 && size != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
                         (long long)size);
    *vs = (struct views){.n = size == 0 ? 1 : (size - 1) / split_size + 1, .dim = dim, .each = split_size};
    return true;
}

static bool plan_split_with_sizes(struct views *vs, grd_tensor *self, grd_dims split_sizes, int64_t dim)
{
    int64_t total = 0;
    bool overflow = false;
    if (!check_has_dims(self, "split") || !grd_wrap_dim(self, dim, &dim))
        return false;
    for (int64_t i = 0; i < split_sizes.n; i++) {
        if (split_sizes.data[i] < 0)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s",
                             grd_list_text(split_sizes));
        overflow |= __builtin_add_overflow(total, split_sizes.data[i], &total);
    }
    if (overflow || total != self->sizes[dim])
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %lld), but got split_sizes=%s",
            (long long)self->sizes[dim], (long long)dim, grd_list_text(split_sizes));
    *vs = (struct views){.n = split_sizes.n, .dim = dim, .sizes = split_sizes.data};
    return true;
}

grd_tensors op_chunk(grd_tensor *self, int64_t chunks, int64_t dim)
{
    int64_t along, *sizes;
    if (!check_has_dims(self, "chunk"))
        return no_tensors;
    if (chunks <= 0)
        grd_raise(GRD_ERROR_RUNTIME, "chunk expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
    if (grd_pending() || !grd_wrap_dim(self, dim, &along))
        return no_tensors;
    if (self->sizes[along] > 0)
        return grd_split(self, (self->sizes[along] - 1) / chunks + 1, .dim = along);
    if ((sizes = grd_pool_array(chunks, sizeof *sizes)) == NULL)
        return no_tensors;
    return grd_split_with_sizes(self, grd_dims_from(memset(sizes, 0, (size_t)chunks * sizeof *sizes), chunks), .dim = along);
}

/* ---- Scatter operators, which write into a view of a copy ----------------------------------------------------------------------- */

/* Returns a copy of self with the same strides, even if there are gaps between elements, as in PyTorch. If elements of self share memory, the copy is
 * contiguous. */
static grd_tensor *copied(grd_tensor *self)
{
    return grd_shape_may_overlap(grd_sizes(self), self->strides) ? grd_clone(self) : grd_hidden_restrided(self, grd_strides(self));
}

/* Copies src to `part`, a view of `made`, and returns `made`. If the sizes of src and `part` differ, raises RuntimeError and returns grd_failed. */
static grd_tensor *with_part(grd_tensor *made, grd_tensor *part, grd_tensor *src)
{
    if (!grd_pending() && !grd_same_sizes(src, grd_sizes(part)))
        return grd_fail(GRD_ERROR_RUNTIME, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                        grd_list_text(grd_sizes(src)), grd_list_text(grd_sizes(part)));
    grd_copy_(part, src);
    return grd_pending() ? grd_failed : made;
}

grd_tensor *op_select_scatter(grd_tensor *self, grd_tensor *src, int64_t dim, int64_t index)
{
    grd_tensor *made = copied(self);
    return with_part(made, grd_select(made, dim, index), src);
}

grd_tensor *op_slice_scatter(grd_tensor *self, grd_tensor *src, int64_t dim, grd_scalar start, grd_scalar end, int64_t step)
{
    grd_tensor *made = copied(self);
    return with_part(made, grd_slice(made, .dim = dim, .start = start, .end = end, .step = step), src);
}

grd_tensor *op_diagonal_scatter(grd_tensor *self, grd_tensor *src, int64_t offset, int64_t dim1, int64_t dim2)
{
    grd_tensor *made = copied(self);
    return with_part(made, grd_diagonal(made, .offset = offset, .dim1 = dim1, .dim2 = dim2), src);
}

int64_t grd_offset_within(grd_scalar storage_offset, int64_t offset)
{
    int64_t within = 0;
    if (storage_offset.kind != GRD_SCALAR_NONE && __builtin_sub_overflow(grd_scalar_int64(storage_offset), offset, &within))
        return INT64_MIN; /* an offset outside of any storage, which is refused later */
    return within;
}

grd_tensor *op_as_strided_scatter(grd_tensor *self, grd_tensor *src, grd_dims size, grd_dims stride, grd_scalar storage_offset)
{
    if (!grd_is_contiguous(self))
        return grd_fail(GRD_ERROR_RUNTIME, "as_strided_scatter is currently only supported for contiguous inputs");
    grd_tensor *made = copied(self);
    const grd_scalar within = grd_int(grd_offset_within(storage_offset, grd_offset(self)));
    return with_part(made, grd_as_strided(made, size, stride, .storage_offset = within), src);
}

/* ---- Gradients of views -------------------------------------------------------------------------------------------------------- */

static bool check_view_gradient(grd_dims view, const grd_tensor *grad)
{
    return grd_same_sizes(grad, view) || grd_raise(GRD_ERROR_RUNTIME, "the gradient has sizes %s where the view has %s",
                                                   grd_list_text(grd_sizes(grad)), grd_list_text(view));
}

/* The state of a call that computes the gradient of a view. run_view_backward() fills the result with zeros and writes the gradient to `view`, a view
 * of the result. */
struct written {
    struct grd_view view;
    /* Memory for the sizes and strides of `view`. */
    int64_t room[2][GRD_MAX_DIMS];
};

/* Returns the member `view` of the `struct written` in the plan's state. Sets the pointers of `view` to the arrays of that struct. */
static struct grd_view *written_view(const struct grd_plan *p)
{
    struct written *w = (struct written *)(uintptr_t)p->state;
    _Static_assert(sizeof *w <= GRD_PLAN_STATE, "room in the plan");
    w->view.size = w->room[0];
    w->view.stride = w->room[1];
    return &w->view;
}

/* Plans the result, a contiguous tensor of the given sizes. run_view_backward() fills the result with zeros and then writes `grad` to a view of it.
 * Gives *zeros the sizes and strides of the result but no data, so that the caller can plan the view. Returns false, with the error raised,
 * on failure. */
static bool plan_written(struct grd_plan *p, grd_tensor *grad, grd_dims sizes, grd_tensor *zeros)
{
    int64_t numel;
    if (!grd_shape_numel(sizes, &numel) || !grd_plan_reads(p, grad) || !grd_plan_result(p, sizes, (grd_dtype)grad->dtype))
        return false;
    struct grd_planned *planned = &p->planned[0];
    grd_shape_contiguous_strides(sizes, planned->strides);
    *zeros = (grd_tensor){.ndim = (uint16_t)sizes.n, .numel = numel, .sizes = planned->sizes, .strides = planned->strides};
    return true;
}

static bool check_written(const struct grd_plan *p, const grd_tensor *grad)
{
    const struct grd_view *v = written_view(p);
    return check_view_gradient(grd_dims_from(v->sizes, v->n), grad);
}

void run_view_backward(const struct grd_plan *p)
{
    grd_tensor *result = p->results[0], part = *p->in[0];
    const struct grd_view *v = written_view(p);
    part.flags = 0;
    part.strides = (int64_t *)(uintptr_t)v->strides;
    part.data = result->data + v->offset * result->itemsize;
    grd_zero_elements(result);
    grd_copy_strided(&part, p->in[0]);
}

int64_t grd_window_dim(grd_dims sizes, int64_t dimension)
{
    return !grd_shape_wrap_dim(dimension, sizes.n, &dimension) || sizes.n == 0 ? 0 : dimension + 1;
}

/* Returns the gradient of unfold(). Step i of the loop adds the gradients of element i of all windows in one call. This is correct although windows
 * may overlap, because the elements i of different windows never share memory. */
grd_tensor *op_hidden_unfold_backward(grd_tensor *grad, grd_dims sizes, int64_t dimension, int64_t size, int64_t step)
{
    grd_tensor *zeros = grd_zeros(sizes, .dtype = (grd_dtype)grad->dtype, .device = grd_device_of(grad));
    grd_tensor *windows = grd_unfold(zeros, dimension, size, step);
    if (grd_pending() || !check_view_gradient(grd_sizes(windows), grad))
        return grd_failed;
    for (int64_t i = 0; i < size && !grd_pending(); i++) {
        grd_scope round = grd_scope_open();
        grd_add_(grd_select(windows, -1, i), grd_select(grad, -1, i));
        grd_scope_close(round);
    }
    return grd_pending() ? grd_failed : zeros;
}

#include "gen/view_calls.h"
