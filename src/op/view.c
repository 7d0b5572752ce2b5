/* Views: the geometry of operators whose result shares storage with their argument.
 *
 * Bounds against the storage are checked once, by grd_new_view, but where dimensions are only rearranged, repeated or left out: then the
 * view lies within its tensor (part_with). as_strided, and the hidden operators that put a gradient back where a
 * view took it from, are in view_gradient.c.
 * Invariant: no element is read or written. */
#include <string.h>

#include "base/text.h"
#include "gradus/ops/clone.h"
#include "gradus/ops/expand.h"
#include "gradus/ops/permute.h"
#include "gradus/ops/reshape.h"
#include "gradus/ops/slice.h"
#include "gradus/ops/split.h"
#include "gradus/ops/split_with_sizes.h"
#include "gradus/ops/transpose.h"
#include "gradus/ops/view.h"
#include "gen/impl/view.h"
#include "gen/ops/_unsafe_view.h"
#include "gradus/library.h"
#include "op/common.h"

enum { LIST_CHARS = 512 }; /* of a formatted list in an error */

/* Sizes and strides under construction; starts as those of a tensor. */
struct geometry {
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    int64_t n, offset;
};

/* Few dimensions are copied as many, which costs a few moves and no loop. */
static inline void geometry_of(const grd_tensor *t, struct geometry *g)
{
    const size_t n = t->sizes == t->inline_dims ? GRD_INLINE_DIMS : t->ndim;
    if (GRD_LIKELY(n == GRD_INLINE_DIMS)) {
        memcpy(g->sizes, t->sizes, GRD_INLINE_DIMS * sizeof *g->sizes);
        memcpy(g->strides, t->strides, GRD_INLINE_DIMS * sizeof *g->strides);
    } else {
        memcpy(g->sizes, t->sizes, n * sizeof *g->sizes);
        memcpy(g->strides, t->strides, n * sizeof *g->strides);
    }
    g->n = t->ndim;
    g->offset = t->offset;
}

/* n dimensions still to be written. */
static inline void geometry_start(const grd_tensor *t, int64_t n, struct geometry *g)
{
    g->n = n;
    g->offset = t->offset;
}

static void remove_dim(struct geometry *g, int64_t dim)
{
    size_t rest = (size_t)(g->n - dim - 1) * sizeof *g->sizes;
    memmove(g->sizes + dim, g->sizes + dim + 1, rest);
    memmove(g->strides + dim, g->strides + dim + 1, rest);
    g->n--;
}

static void insert_dim(struct geometry *g, int64_t dim, int64_t size, int64_t stride)
{
    size_t rest = (size_t)(g->n - dim) * sizeof *g->sizes;
    memmove(g->sizes + dim + 1, g->sizes + dim, rest);
    memmove(g->strides + dim + 1, g->strides + dim, rest);
    g->sizes[dim] = size;
    g->strides[dim] = stride;
    g->n++;
}

/* Where the first element moves to. An empty tensor has none, and its strides may be any: where that leads out of all memory it stays. */
static inline int64_t moved(int64_t offset, int64_t steps, int64_t stride)
{
    int64_t there;
    const bool leads_out = __builtin_mul_overflow(steps, stride, &there) || __builtin_add_overflow(offset, there, &there) || there < 0;
    return GRD_UNLIKELY(leads_out) ? offset : there;
}

static void advance(struct geometry *g, int64_t steps, int64_t stride)
{
    g->offset = moved(g->offset, steps, stride);
}

static grd_tensor *view_with(grd_tensor *self, const struct geometry *g)
{
    return grd_new_view(self, grd_dims_from(g->sizes, g->n), grd_dims_from(g->strides, g->n), g->offset);
}

static grd_tensor *part_with(grd_tensor *self, const struct geometry *g)
{
    return grd_new_part(self, grd_dims_from(g->sizes, g->n), grd_dims_from(g->strides, g->n), g->offset);
}

static bool check_ndim(int64_t n)
{
    return n <= GRD_MAX_DIMS || grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)n, GRD_MAX_DIMS);
}

/* ---- All of it ----------------------------------------------------------------------------------------------------------- */

grd_tensor *op_detach(grd_tensor *self)
{
    return grd_new_detached(self);
}

/* ---- Other sizes, same elements --------------------------------------------------------------------------------------- */

grd_tensor *op_view(grd_tensor *self, grd_dims size)
{
    struct geometry g;
    geometry_start(self, size.n, &g);
    if (!grd_shape_infer(size, self->numel, g.sizes))
        return grd_failed;
    if (grd_has(self, GRD_FLAG_CANONICAL)) {
        grd_shape_contiguous_strides(grd_dims_from(g.sizes, g.n), g.strides);
    } else if (!grd_shape_view_strides(grd_sizes(self), self->strides, grd_dims_from(g.sizes, g.n), g.strides))
        return grd_fail(GRD_ERROR_RUNTIME,
                        "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                        "two contiguous subspaces). Use .reshape(...) instead.");
    return part_with(self, &g);
}

grd_tensor *op_reshape(grd_tensor *self, grd_dims shape)
{
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    if (!grd_shape_infer(shape, self->numel, sizes))
        return grd_failed;
    grd_dims wanted = grd_dims_from(sizes, shape.n);
    if (grd_shape_view_strides(grd_sizes(self), self->strides, wanted, strides))
        return grd_view(self, wanted);
    return grd_hidden_unsafe_view(grd_clone(self, .memory_format = "contiguous"), wanted);
}

grd_tensor *op_hidden_unsafe_view(grd_tensor *self, grd_dims size)
{
    return grd_new_detached(op_view(self, size));
}

grd_tensor *op_view_as(grd_tensor *self, grd_tensor *other)
{
    return grd_view(self, grd_sizes(other));
}

grd_tensor *op_flatten(grd_tensor *self, int64_t start_dim, int64_t end_dim)
{
    int64_t sizes[GRD_MAX_DIMS], n = 0, product = 1;
    if (!grd_wrap_dim(self, start_dim, &start_dim) || !grd_wrap_dim(self, end_dim, &end_dim))
        return grd_failed;
    if (start_dim > end_dim)
        return grd_fail(GRD_ERROR_RUNTIME, "has invalid args: start_dim cannot come after end_dim");
    if (self->ndim == 0)
        return grd_view(self, grd_dims(1));
    if (start_dim == end_dim)
        return self;
    for (int64_t i = 0; i < self->ndim; i++) {
        if (i < start_dim || i > end_dim) {
            sizes[n++] = self->sizes[i];
            continue;
        }
        if (__builtin_mul_overflow(product, self->sizes[i], &product))
            return grd_fail(GRD_ERROR_RUNTIME, "the product of the sizes from start_dim to end_dim fits into no integer");
        if (i == end_dim)
            sizes[n++] = product;
    }
    return grd_reshape(self, grd_dims_from(sizes, n));
}

static bool check_unflatten(grd_tensor *self, int64_t dim, grd_dims sizes, int64_t *ret_sizes)
{
    char list[LIST_CHARS];
    int64_t size = self->ndim ? self->sizes[dim] : 1, product = 1, inferred = -1;
    if (sizes.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "sizes must be non-empty");
    if (!check_ndim(self->ndim + sizes.n - 1))
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
        return grd_raise(GRD_ERROR_RUNTIME, "Provided sizes %s don't multiply up to the size of dim %lld (%lld) in the input tensor",
                         grd_format_int64s(list, sizeof list, sizes.data, sizes.n), (long long)dim, (long long)size);
    return true;
}

grd_tensor *op_unflatten(grd_tensor *self, int64_t dim, grd_dims sizes)
{
    int64_t parts[GRD_MAX_DIMS], result[2 * GRD_MAX_DIMS], n = 0;
    if (!grd_wrap_dim(self, dim, &dim) || !check_unflatten(self, dim, sizes, parts))
        return grd_failed;
    for (int64_t i = 0; i < dim; i++)
        result[n++] = self->sizes[i];
    for (int64_t i = 0; i < sizes.n; i++)
        result[n++] = parts[i];
    for (int64_t i = dim + 1; i < self->ndim; i++)
        result[n++] = self->sizes[i];
    return grd_view(self, grd_dims_from(result, n));
}

/* Note that an empty list squeezes nothing, while an absent one squeezes everything. */
grd_tensor *op_squeeze(grd_tensor *self, grd_dims dim)
{
    uint64_t mask = 0;
    if ((dim.data == NULL || dim.n > 0) && !grd_shape_dim_mask(dim, self->ndim, &mask))
        return grd_failed;
    struct geometry g;
    geometry_start(self, 0, &g);
    for (int64_t i = 0; i < self->ndim; i++) {
        if (self->sizes[i] == 1 && (mask >> i & 1))
            continue;
        g.sizes[g.n] = self->sizes[i];
        g.strides[g.n++] = self->strides[i];
    }
    return part_with(self, &g);
}

grd_tensor *op_unsqueeze(grd_tensor *self, int64_t dim)
{
    if (!check_ndim(self->ndim + 1) || !grd_shape_wrap_dim(dim, self->ndim + 1, &dim))
        return grd_failed;
    struct geometry g;
    geometry_of(self, &g);
    int64_t stride = 1;
    if (dim < self->ndim && __builtin_mul_overflow(self->sizes[dim], self->strides[dim], &stride))
        stride = 1;
    insert_dim(&g, dim, 1, stride);
    return part_with(self, &g);
}

/* ---- Other order of dimensions ------------------------------------------------------------------------------------------ */

static grd_tensor *swapped(grd_tensor *self, int64_t a, int64_t b)
{
    struct geometry g;
    geometry_of(self, &g);
    if (a != b) {
        g.sizes[a] = self->sizes[b];
        g.sizes[b] = self->sizes[a];
        g.strides[a] = self->strides[b];
        g.strides[b] = self->strides[a];
    }
    return part_with(self, &g);
}

grd_tensor *op_transpose(grd_tensor *self, int64_t dim0, int64_t dim1)
{
    if (!grd_wrap_dim(self, dim0, &dim0) || !grd_wrap_dim(self, dim1, &dim1))
        return grd_failed;
    return swapped(self, dim0, dim1);
}

grd_tensor *op_swapaxes(grd_tensor *self, int64_t axis0, int64_t axis1)
{
    return grd_transpose(self, axis0, axis1);
}

grd_tensor *op_t(grd_tensor *self)
{
    if (self->ndim > 2)
        return grd_fail(GRD_ERROR_RUNTIME, "expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    return swapped(self, 0, self->ndim == 2);
}

grd_tensor *op_mT(grd_tensor *self)
{
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "tensor.mT is only supported on matrices or batches of matrices. Got %d-D tensor.", self->ndim);
    return swapped(self, self->ndim - 2, self->ndim - 1);
}

/* Wraps the dims and checks that each occurs once. */
static bool check_permutation(int64_t ndim, grd_dims dims, int64_t *ret_dims)
{
    uint64_t seen = 0;
    if (dims.n != ndim)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. "
                         "input.dim() = %lld is not equal to len(dims) = %lld",
                         (long long)ndim, (long long)dims.n);
    for (int64_t i = 0; i < dims.n; i++) {
        if (!grd_shape_wrap_dim(dims.data[i], ndim, &ret_dims[i]))
            return false;
        if (seen >> ret_dims[i] & 1)
            return grd_raise(GRD_ERROR_RUNTIME, "duplicate dims are not allowed.");
        seen |= (uint64_t)1 << ret_dims[i];
    }
    return true;
}

grd_tensor *op_permute(grd_tensor *self, grd_dims dims)
{
    int64_t order[GRD_MAX_DIMS];
    if (!check_permutation(self->ndim, dims, order))
        return grd_failed;
    struct geometry g;
    geometry_start(self, dims.n, &g);
    for (int64_t i = 0; i < dims.n; i++) {
        g.sizes[i] = self->sizes[order[i]];
        g.strides[i] = self->strides[order[i]];
    }
    return part_with(self, &g);
}

grd_tensor *op_hidden_permute_backward(grd_tensor *grad, grd_dims dims)
{
    int64_t order[GRD_MAX_DIMS], inverse[GRD_MAX_DIMS];
    if (!check_permutation(grad->ndim, dims, order))
        return grd_failed;
    for (int64_t i = 0; i < dims.n; i++)
        inverse[order[i]] = i;
    return grd_permute(grad, grd_dims_from(inverse, dims.n));
}

static bool wrap_moved(const grd_tensor *self, const char *what, grd_dims dims, int64_t *ret_dims, uint64_t *ret_mask)
{
    char list[LIST_CHARS];
    uint64_t mask = 0;
    for (int64_t i = 0; i < dims.n; i++) {
        if (!grd_wrap_dim(self, dims.data[i], &ret_dims[i]))
            return false;
        if (mask >> ret_dims[i] & 1)
            return grd_raise(GRD_ERROR_RUNTIME, "repeated dim in `%s` (%s)", what, grd_format_int64s(list, sizeof list, dims.data, dims.n));
        mask |= (uint64_t)1 << ret_dims[i];
    }
    *ret_mask = mask;
    return true;
}

grd_tensor *op_movedim(grd_tensor *self, grd_dims source, grd_dims destination)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    if (source.n != destination.n)
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "Invalid source or destination dims: source (%s dims) should contain the same number of dims as destination (%s dims)",
            grd_format_int64s(list, sizeof list, source.data, source.n),
            grd_format_int64s(other, sizeof other, destination.data, destination.n));
    if (source.n > GRD_MAX_DIMS) {
        check_ndim(source.n);
        return grd_failed;
    }
    int64_t from[GRD_MAX_DIMS], to[GRD_MAX_DIMS], order[GRD_MAX_DIMS];
    uint64_t taken, placed;
    if (!wrap_moved(self, "source", source, from, &taken) || !wrap_moved(self, "destination", destination, to, &placed))
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

/* ---- Repeated elements --------------------------------------------------------------------------------------------------- */

static inline bool expanded_size(const grd_tensor *self, grd_dims size, int64_t i, struct geometry *g)
{
    char list[LIST_CHARS], own[LIST_CHARS];
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
                         (long long)wanted, (long long)present, (long long)i, grd_format_int64s(list, sizeof list, size.data, size.n),
                         grd_format_int64s(own, sizeof own, self->sizes, self->ndim));
    g->sizes[i] = wanted;
    if (dim >= 0 && wanted == present)
        g->strides[i] = self->strides[dim];
    else if (dim < 0 && wanted == 1 && self->ndim > 0 && i + 1 == size.n)
        g->strides[i] = 1;
    else if (dim < 0 && wanted == 1 && self->ndim > 0 && !__builtin_mul_overflow(g->sizes[i + 1], g->strides[i + 1], &g->strides[i]))
        return true;
    else
        g->strides[i] = 0;
    return true;
}

grd_tensor *op_expand(grd_tensor *self, grd_dims size)
{
    char list[LIST_CHARS], own[LIST_CHARS];
    if (!check_ndim(size.n))
        return grd_failed;
    if (size.n < self->ndim)
        return grd_fail(GRD_ERROR_RUNTIME,
                        "tensor of size %s, size=%s: the number of sizes provided (%lld) must be greater or equal to the number of "
                        "dimensions in the tensor (%d)",
                        grd_format_int64s(own, sizeof own, self->sizes, self->ndim),
                        grd_format_int64s(list, sizeof list, size.data, size.n), (long long)size.n, self->ndim);
    struct geometry g;
    int64_t numel = 1;
    bool large = false;
    geometry_start(self, size.n, &g);
    for (int64_t i = size.n - 1; i >= 0; i--) {
        if (!expanded_size(self, size, i, &g))
            return grd_failed;
        large |= __builtin_mul_overflow(numel, g.sizes[i] > 1 ? g.sizes[i] : 1, &numel);
    }
    return !large || grd_shape_numel(grd_dims_from(g.sizes, g.n), &numel) ? part_with(self, &g) : grd_failed;
}

grd_tensor *op_expand_as(grd_tensor *self, grd_tensor *other)
{
    return grd_expand(self, grd_sizes(other));
}

grd_tensor *op_broadcast_to(grd_tensor *self, grd_dims size)
{
    return grd_expand(self, size);
}

/* ---- Part of the elements -------------------------------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) bool refuse_index(const grd_tensor *self, int64_t dim, int64_t index)
{
    char list[LIST_CHARS];
    return grd_raise(GRD_ERROR_INDEX, "index %lld out of range for tensor of size %s at dimension %lld", (long long)index,
                     grd_format_int64s(list, sizeof list, self->sizes, self->ndim), (long long)dim);
}

/* The place of an index from -size to size - 1 in a dimension; IndexError otherwise. */
static inline bool wrap_index(const grd_tensor *self, int64_t dim, int64_t index, int64_t *ret_index)
{
    const int64_t size = self->sizes[dim];
    *ret_index = index < 0 ? index + size : index;
    return GRD_LIKELY((uint64_t)*ret_index < (uint64_t)size) || refuse_index(self, dim, index);
}

static __attribute__((noinline)) grd_tensor *without_dim(grd_tensor *self, int64_t dim, int64_t offset)
{
    struct geometry g;
    geometry_of(self, &g);
    remove_dim(&g, dim);
    g.offset = offset;
    return part_with(self, &g);
}

grd_tensor *op_select(grd_tensor *self, int64_t dim, int64_t index)
{
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_INDEX, "cannot be applied to a 0-dim tensor.");
    if (!grd_wrap_dim(self, dim, &dim) || !wrap_index(self, dim, index, &index))
        return grd_failed;
    const int64_t rest = self->ndim - 1, offset = moved(self->offset, index, self->strides[dim]);
    /* All but the first dimension lie together, and all but the last. */
    if (GRD_LIKELY(dim == 0))
        return grd_new_part(self, grd_dims_from(self->sizes + 1, rest), grd_dims_from(self->strides + 1, rest), offset);
    if (dim == rest)
        return grd_new_part(self, grd_dims_from(self->sizes, rest), grd_dims_from(self->strides, rest), offset);
    return without_dim(self, dim, offset);
}

static int64_t clamped(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A bound as Python's slices read it: absent, counted from the end, beyond either end. */
static int64_t slice_bound(grd_scalar bound, int64_t absent, int64_t size, int64_t low, int64_t high)
{
    if (bound.kind == GRD_SCALAR_NONE)
        return absent;
    int64_t value = grd_scalar_int64(bound);
    return clamped(value < 0 ? value + size : value, low, high);
}

/* The first index and the number of elements; step is not 0. */
static int64_t slice_range(int64_t size, grd_scalar start, grd_scalar end, int64_t step, int64_t *ret_first)
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

grd_tensor *op_slice(grd_tensor *self, int64_t dim, grd_scalar start, grd_scalar end, int64_t step)
{
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_INDEX, "cannot be applied to a 0-dim tensor.");
    if (!grd_wrap_dim(self, dim, &dim))
        return grd_failed;
    if (step == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "slice step must not be zero");
    struct geometry g;
    geometry_of(self, &g);
    int64_t first, stride;
    g.sizes[dim] = slice_range(self->sizes[dim], start, end, step, &first);
    advance(&g, first, g.strides[dim]);
    /* A step too large for a stride can only be that of a single element, whose stride is never used. */
    if (!__builtin_mul_overflow(g.strides[dim], step, &stride))
        g.strides[dim] = stride;
    return part_with(self, &g);
}

grd_tensor *op_narrow(grd_tensor *self, int64_t dim, int64_t start, int64_t length)
{
    if (self->ndim == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "cannot be applied to a 0-dim tensor.");
    if (length < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "length must be non-negative.");
    if (!grd_wrap_dim(self, dim, &dim))
        return grd_failed;
    int64_t size = self->sizes[dim];
    if (start < -size || start > size)
        return grd_fail(GRD_ERROR_INDEX, "start out of range (expected to be in range of [%lld, %lld], but got %lld)", (long long)-size,
                        (long long)size, (long long)start);
    if (start < 0)
        start += size;
    if (length > size - start)
        return grd_fail(GRD_ERROR_RUNTIME, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
                        (long long)length, (long long)size);
    return grd_slice(self, .dim = dim, .start = grd_int(start), .end = grd_int(start + length));
}

grd_tensor *op_diagonal(grd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2)
{
    int64_t given1 = dim1, given2 = dim2;
    if (!grd_wrap_dim(self, dim1, &dim1) || !grd_wrap_dim(self, dim2, &dim2))
        return grd_failed;
    if (dim1 == dim2)
        return grd_fail(GRD_ERROR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)given1, (long long)given2);
    int64_t rows = self->sizes[dim1], columns = self->sizes[dim2], size;
    offset = clamped(offset, -rows, columns);
    if (offset >= 0)
        size = rows < columns - offset ? rows : columns - offset;
    else
        size = rows + offset < columns ? rows + offset : columns;
    struct geometry g;
    geometry_of(self, &g);
    int64_t stride = g.strides[dim1] + g.strides[dim2];
    if (size > 0)
        advance(&g, offset >= 0 ? offset : -offset, g.strides[offset >= 0 ? dim2 : dim1]);
    remove_dim(&g, dim1 > dim2 ? dim1 : dim2);
    remove_dim(&g, dim1 > dim2 ? dim2 : dim1);
    insert_dim(&g, g.n, size, stride);
    return view_with(self, &g);
}

grd_tensor *op_unfold(grd_tensor *self, int64_t dimension, int64_t size, int64_t step)
{
    if (!check_ndim(self->ndim + 1) || !grd_wrap_dim(self, dimension, &dimension))
        return grd_failed;
    int64_t present = self->ndim ? self->sizes[dimension] : 1, stride = self->ndim ? self->strides[dimension] : 1;
    if (size < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "size is %lld but must be >= 0", (long long)size);
    if (size > present)
        return grd_fail(GRD_ERROR_RUNTIME, "maximum size for tensor at dimension %lld is %lld but size is %lld", (long long)dimension,
                        (long long)present, (long long)size);
    if (step <= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "step is %lld but must be > 0", (long long)step);
    struct geometry g;
    geometry_of(self, &g);
    insert_dim(&g, g.n, size, stride);
    if (self->ndim > 0) {
        int64_t windows_stride;
        g.sizes[dimension] = (present - size) / step + 1;
        if (!__builtin_mul_overflow(stride, step, &windows_stride))
            g.strides[dimension] = windows_stride;
    }
    return view_with(self, &g);
}

/* ---- Several views ---------------------------------------------------------------------------------------------------------- */

static const grd_tensors no_tensors = {0, NULL};

/* The results of an operator that returns several views of a tensor, marked as such: autograd refuses to write them. */
static grd_tensors several_views(grd_tensor **list, int64_t n)
{
    if (grd_pending())
        return no_tensors;
    for (int64_t i = 0; i < n && grd_thread.grad_off == 0; i++)
        list[i]->flags = (uint16_t)((list[i]->flags & ~GRD_FLAG_NO_GRAD_VIEW) | GRD_FLAG_MULTI_VIEW);
    return (grd_tensors){n, list};
}

grd_tensors op_unbind(grd_tensor *self, int64_t dim)
{
    if (self->ndim == 0) {
        grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
        return no_tensors;
    }
    if (!grd_wrap_dim(self, dim, &dim))
        return no_tensors;
    int64_t n = self->sizes[dim];
    grd_tensor **list = grd_pool_array(n, sizeof *list);
    if (list == NULL)
        return no_tensors;
    for (int64_t i = 0; i < n && !grd_pending(); i++)
        list[i] = op_select(self, dim, i);
    return several_views(list, n);
}

/* Views of `size` elements each, the last with what is left. */
static grd_tensors split_evenly(grd_tensor *self, int64_t size, int64_t n, int64_t dim)
{
    int64_t total = self->sizes[dim];
    int64_t *sizes = grd_pool_array(n, sizeof *sizes);
    if (sizes == NULL)
        return no_tensors;
    for (int64_t i = 0; i < n; i++)
        sizes[i] = total - i * size < size ? total - i * size : size;
    return grd_split_with_sizes(self, grd_dims_from(sizes, n), .dim = dim);
}

grd_tensors op_split(grd_tensor *self, int64_t split_size, int64_t dim)
{
    if (self->ndim == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "expects at least a 1-dimensional tensor");
        return no_tensors;
    }
    if (split_size < 0) {
        grd_raise(GRD_ERROR_RUNTIME, "expects split_size be non-negative, but got split_size=%lld", (long long)split_size);
        return no_tensors;
    }
    if (!grd_wrap_dim(self, dim, &dim))
        return no_tensors;
    int64_t size = self->sizes[dim];
    if (split_size == 0 && size != 0) {
        grd_raise(GRD_ERROR_RUNTIME, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld", (long long)size);
        return no_tensors;
    }
    return split_evenly(self, split_size, size == 0 ? 1 : (size - 1) / split_size + 1, dim);
}

grd_tensors op_chunk(grd_tensor *self, int64_t chunks, int64_t dim)
{
    if (self->ndim == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "expects at least a 1-dimensional tensor");
        return no_tensors;
    }
    if (chunks <= 0) {
        grd_raise(GRD_ERROR_RUNTIME, "expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
        return no_tensors;
    }
    if (!grd_wrap_dim(self, dim, &dim))
        return no_tensors;
    int64_t total = self->sizes[dim];
    return total == 0 ? split_evenly(self, 0, chunks, dim) : grd_split(self, (total - 1) / chunks + 1, .dim = dim);
}

grd_tensors op_split_with_sizes(grd_tensor *self, grd_dims split_sizes, int64_t dim)
{
    char list_text[LIST_CHARS];
    if (self->ndim == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "expects at least a 1-dimensional tensor");
        return no_tensors;
    }
    if (!grd_wrap_dim(self, dim, &dim))
        return no_tensors;
    int64_t total = 0;
    bool overflow = false;
    for (int64_t i = 0; i < split_sizes.n; i++) {
        if (split_sizes.data[i] < 0) {
            grd_raise(GRD_ERROR_RUNTIME, "expects split_sizes have only non-negative entries, but got split_sizes=%s",
                      grd_format_int64s(list_text, sizeof list_text, split_sizes.data, split_sizes.n));
            return no_tensors;
        }
        overflow |= __builtin_add_overflow(total, split_sizes.data[i], &total);
    }
    if (overflow || total != self->sizes[dim]) {
        grd_raise(
            GRD_ERROR_RUNTIME, "expects split_sizes to sum exactly to %lld (input tensor's size at dimension %lld), but got split_sizes=%s",
            (long long)self->sizes[dim], (long long)dim, grd_format_int64s(list_text, sizeof list_text, split_sizes.data, split_sizes.n));
        return no_tensors;
    }
    grd_tensor **list = grd_pool_array(split_sizes.n, sizeof *list);
    if (list == NULL)
        return no_tensors;
    for (int64_t i = 0, start = 0; i < split_sizes.n && !grd_pending(); start += split_sizes.data[i], i++)
        list[i] = op_slice(self, dim, grd_int(start), grd_int(start + split_sizes.data[i]), 1);
    return several_views(list, split_sizes.n);
}
