/* Indexing by tensors: reading, writing and adding at places that indices or masks name.
 *
 * Lives here: checks, the nest of loops around the indexed kernels (struct indexed), two-pass selection by masks.
 * Invariants: every index is checked before anything is written. What is written several times is written in the order of the
 * index, by one thread, so that results do not depend on the number of threads. */
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "core/iter.h"
#include "gen/op_impl.h"
#include "gradus/gradus.h"
#include "kernel/index.h"
#include "op/common.h"
#include "op/copy.h"

enum {
    LIST_CHARS = 512, /* of a formatted list in an error */
    ELEMENTS_GRAIN = 16 * 1024,
    ROW_PIECE = 4096, /* of a long inner dimension that is one unit of work */
    MASK_BLOCK = 16 * 1024
};

/* ---- Indices ------------------------------------------------------------------------------------------------------------- */

static bool is_index_dtype(const grd_tensor *index)
{
    return index->dtype == GRD_INT64 || index->dtype == GRD_INT32;
}

static bool check_index_dtype(const grd_tensor *index)
{
    return is_index_dtype(index) ||
           grd_raise(GRD_ERROR_RUNTIME, "Expected dtype int32/int64 for index but got: %s", grd_dtype_name(index->dtype));
}

/* An index tensor as the loops read it: int64, with strides in bytes; dimensions it repeats along stay repeated. */
struct indices {
    const int64_t *data;
    int64_t strides[GRD_MAX_DIMS];
    int64_t unique, first_bad; /* elements in memory; the first bad index itself, when check_indices failed */
};

/* Reads `index` into ret; temporaries go to the pool. False only when memory is out. */
static bool read_indices(grd_tensor *index, struct indices *ret)
{
    int64_t sizes[GRD_MAX_DIMS];
    for (int64_t i = 0; i < index->ndim; i++)
        sizes[i] = index->strides[i] == 0 && index->sizes[i] > 1 ? 1 : index->sizes[i];
    grd_dims shape = grd_dims_from(sizes, index->ndim);
    if (!grd_same_sizes(index, shape))
        index = grd_new_view(index, shape, grd_strides(index), index->offset);
    grd_tensor *plain = grd_pending() ? index : grd_contiguous_as(index, GRD_INT64);
    if (grd_pending())
        return false;
    ret->data = (const int64_t *)(const void *)plain->data;
    ret->unique = plain->numel;
    grd_shape_contiguous_strides(shape, ret->strides);
    for (int64_t i = 0; i < index->ndim; i++)
        ret->strides[i] *= sizes[i] == 1 ? 0 : (int64_t)sizeof(int64_t);
    return true;
}

/* Whether all lie in [low, high). */
static bool in_range(struct indices *indices, int64_t low, int64_t high)
{
    int64_t position = grd_kernels->index->check(indices->unique, indices->data, low, high);
    if (position >= 0)
        indices->first_bad = indices->data[position];
    return position < 0;
}

static bool raise_out_of_bounds(grd_error_code code, const struct indices *indices, int64_t dim, int64_t size)
{
    return grd_raise(code, "index %lld is out of bounds for dimension %lld with size %lld", (long long)indices->first_bad, (long long)dim,
                     (long long)size);
}

/* ---- The loops --------------------------------------------------------------------------------------------------------------- */

enum { RESULT, SOURCE, INDEX, OPERANDS };

/* A nest of loops over the positions of an index. `dim` is the indexed dimension: the operand the index points into has stride 0 there. */
struct indexed {
    grd_loop_kernel *kernel;
    int64_t step;   /* bytes between elements of the operand the index points into, along its indexed dimension */
    bool in_order;  /* positions along dim must be visited in order, by one thread */
    int64_t dim, n; /* n: dimensions */
    int64_t sizes[GRD_MAX_DIMS + 2], strides[OPERANDS][GRD_MAX_DIMS + 2]; /* bytes */
    char *data[OPERANDS];
    /* Set by run: */
    int64_t inner, piece, pieces; /* the innermost dimension, and how it is cut */
};

static bool mergeable(const struct indexed *x, int64_t i)
{
    if (x->in_order && (i == x->dim || i + 1 == x->dim))
        return false;
    for (int operand = 0; operand < OPERANDS; operand++)
        if (x->strides[operand][i] != x->strides[operand][i + 1] * x->sizes[i + 1])
            return false;
    return true;
}

static void drop_dimension(struct indexed *x, int64_t dim)
{
    size_t rest = (size_t)(x->n - dim - 1) * sizeof *x->sizes;
    memmove(x->sizes + dim, x->sizes + dim + 1, rest);
    for (int operand = 0; operand < OPERANDS; operand++)
        memmove(x->strides[operand] + dim, x->strides[operand] + dim + 1, rest);
    x->n--;
    if (x->dim == dim)
        x->dim = -1;
    else if (x->dim > dim)
        x->dim--;
}

/* Fewer, longer loops: dimensions of size 1 go, those that lie behind each other in all operands become one. */
static void coalesce(struct indexed *x)
{
    for (int64_t i = x->n - 1; i >= 0; i--)
        if (x->sizes[i] == 1)
            drop_dimension(x, i);
    for (int64_t i = x->n - 2; i >= 0; i--) {
        if (!mergeable(x, i))
            continue;
        x->sizes[i + 1] *= x->sizes[i];
        drop_dimension(x, i);
    }
}

/* The last dimension, unless it is so short that another one makes the better loop. */
static int64_t choose_inner(const struct indexed *x)
{
    int64_t best = x->n - 1;
    for (int64_t i = x->n - 2; i >= 0 && x->sizes[x->n - 1] < 8; i--)
        if (x->sizes[i] > 4 * x->sizes[best])
            best = i;
    return best;
}

static void run_unit(const struct indexed *x, int64_t unit)
{
    int64_t first = unit % x->pieces * x->piece, rest = unit / x->pieces;
    int64_t length = x->sizes[x->inner] - first < x->piece ? x->sizes[x->inner] - first : x->piece;
    bool loops = x->in_order && x->dim >= 0 && x->dim != x->inner;
    char *data[OPERANDS];
    int64_t strides[OPERANDS];
    for (int operand = 0; operand < OPERANDS; operand++) {
        strides[operand] = x->strides[operand][x->inner];
        data[operand] = x->data[operand] + first * strides[operand];
    }
    for (int64_t i = x->n - 1; i >= 0; i--) {
        if (i == x->inner || (loops && i == x->dim))
            continue;
        int64_t at = rest % x->sizes[i];
        rest /= x->sizes[i];
        for (int operand = 0; operand < OPERANDS; operand++)
            data[operand] += at * x->strides[operand][i];
    }
    for (int64_t k = loops ? x->sizes[x->dim] : 1; k > 0; k--) {
        x->kernel(length, data, strides, &x->step);
        for (int operand = 0; loops && operand < OPERANDS; operand++)
            data[operand] += x->strides[operand][x->dim];
    }
}

static void run_units(int64_t begin, int64_t end, void *context)
{
    for (int64_t unit = begin; unit < end; unit++)
        run_unit(context, unit);
}

static void run_indexed(struct indexed *x)
{
    for (int64_t i = 0; i < x->n; i++)
        if (x->sizes[i] == 0)
            return;
    coalesce(x);
    if (x->n == 0) {
        x->sizes[x->n++] = 1;
        for (int operand = 0; operand < OPERANDS; operand++)
            x->strides[operand][0] = 0;
    }
    x->inner = choose_inner(x);
    bool whole = x->in_order && x->dim == x->inner, loops = x->in_order && x->dim >= 0 && !whole;
    int64_t length = x->sizes[x->inner], units = 1;
    /* When one thread must do all of dim, threads share the inner dimension instead. */
    x->piece = whole ? length : loops ? (length / 8 > 16 ? length / 8 : 16) : ROW_PIECE;
    x->pieces = (length - 1) / x->piece + 1;
    for (int64_t i = 0; i < x->n; i++)
        if (i != x->inner && !(loops && i == x->dim))
            units *= x->sizes[i];
    int64_t work = (length < x->piece ? length : x->piece) * (loops ? x->sizes[x->dim] : 1);
    grd_parallel_for(0, units * x->pieces, work < ELEMENTS_GRAIN ? ELEMENTS_GRAIN / work : 1, run_units, x);
}

static void set_operand(struct indexed *x, int operand, const grd_tensor *t)
{
    x->data[operand] = t->data;
    for (int64_t i = 0; i < t->ndim; i++)
        x->strides[operand][i] = t->strides[i] * t->itemsize;
}

/* Loops of gather and scatter: every dimension of `index` counts; `places` is what the index points into. */
static void set_elements(struct indexed *x, const grd_tensor *places, int operand, const grd_tensor *index, const struct indices *indices,
                         int64_t dim)
{
    x->n = index->ndim;
    x->dim = index->ndim > 0 ? dim : -1;
    memcpy(x->sizes, index->sizes, index->ndim * sizeof *x->sizes);
    memcpy(x->strides[INDEX], indices->strides, index->ndim * sizeof *x->sizes);
    x->data[INDEX] = (char *)(uintptr_t)indices->data;
    set_operand(x, operand, places);
    x->step = places->ndim > 0 ? places->strides[dim] * places->itemsize : 0;
    x->strides[operand][dim] = 0;
}

/* Loops over slices: the index is a vector along dim; `slices` has `count` of them and is what goes along with the index. */
static void set_slices(struct indexed *x, const grd_tensor *places, int operand, const struct indices *indices, int64_t dim, int64_t count)
{
    memset(x->strides, 0, sizeof x->strides);
    x->n = places->ndim > 0 ? places->ndim : 1;
    x->dim = dim;
    memcpy(x->sizes, places->sizes, places->ndim * sizeof *x->sizes);
    x->sizes[dim] = count;
    x->strides[INDEX][dim] = count == 1 ? 0 : (int64_t)sizeof(int64_t);
    x->data[INDEX] = (char *)(uintptr_t)indices->data;
    set_operand(x, operand, places);
    x->step = places->ndim > 0 ? places->strides[dim] * places->itemsize : 0;
    x->strides[operand][dim] = 0;
}

/* What an in-place or functional operator writes: out, or a copy of self. */
static grd_tensor *target_of(grd_tensor *out, grd_tensor *self)
{
    if (out != NULL)
        return out;
    grd_tensor *result = grd_new_like(self, GRD_DTYPE_NONE);
    if (!grd_is_failed(result))
        grd_copy_strided(result, self);
    return result;
}

/* `t`, or its copy when it lies in memory that is about to be written. */
static grd_tensor *apart_from(const grd_tensor *out, grd_tensor *t)
{
    return out != NULL && out->storage == t->storage ? grd_clone_contiguous(t, GRD_DTYPE_NONE) : t;
}

/* Note [Half sums]: sums of float16 and bfloat16 are kept in float32 until the last term is in, as PyTorch does. An operator that adds
 * therefore works on float32 copies and converts its result once. */
static grd_dtype sum_dtype(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 ? GRD_FLOAT32 : dtype;
}

/* A copy of self to add to. */
static grd_tensor *widened(const grd_tensor *out, const grd_tensor *self, grd_dtype dtype)
{
    return out == NULL || grd_check_no_internal_overlap(out) ? grd_clone_contiguous(self, dtype) : grd_failed;
}

/* The sums as the operator returns them. */
static grd_tensor *narrowed(grd_tensor *out, const grd_tensor *self, const grd_tensor *sums)
{
    grd_tensor *result = grd_pending() ? grd_failed : out != NULL ? out : grd_new_like(self, GRD_DTYPE_NONE);
    if (!grd_is_failed(result))
        grd_copy_strided(result, sums);
    return result;
}

static grd_loop_kernel *kernel_of_size(grd_loop_kernel *const *kernels, const grd_tensor *t)
{
    return kernels[grd_index_size(t->itemsize)];
}

/* ---- Slices -------------------------------------------------------------------------------------------------------------------- */

static int64_t size_along(const grd_tensor *t, int64_t dim)
{
    return t->ndim > 0 ? t->sizes[dim] : 1;
}

static bool check_vector(const grd_tensor *index)
{
    char list[LIST_CHARS];
    return index->ndim <= 1 ||
           grd_raise(GRD_ERROR_INDEX, "Index is supposed to be a vector, but got dim: %d with type: %s and size: %s", index->ndim,
                     grd_dtype_name(index->dtype), grd_format_int64s(list, sizeof list, index->sizes, index->ndim));
}

grd_tensor *op_index_select(grd_tensor *self, int64_t dim, grd_tensor *index)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!grd_wrap_dim(self, dim, &dim) || !check_vector(index) || !check_index_dtype(index) ||
        !grd_check_same_device(grd_tensors(self, index)))
        return grd_failed;
    if (self->ndim == 0 && index->numel != 1) {
        grd_raise(GRD_ERROR_RUNTIME, "Index to scalar can have only 1 value, got %lld value(s)", (long long)index->numel);
        return grd_failed;
    }
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim > 0)
        sizes[dim] = index->numel;
    struct indices indices;
    bool meta = grd_is_meta(self);
    if (!meta && (!read_indices(index, &indices) ||
                  (!in_range(&indices, 0, size_along(self, dim)) && !grd_raise(GRD_ERROR_INDEX, "index out of range in self"))))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims_from(sizes, self->ndim), self->dtype, grd_device_of(self));
    if (!grd_is_failed(result) && !meta) {
        struct indexed x = {.kernel = kernel_of_size(grd_kernels->index->gather, self)};
        set_slices(&x, self, SOURCE, &indices, dim, index->numel);
        set_operand(&x, RESULT, result);
        if (indices.unique == 1)
            x.strides[INDEX][dim] = 0;
        run_indexed(&x);
    }
    return result;
}

grd_tensor *op__index_select_backward(grd_tensor *grad, grd_dims sizes, int64_t dim, grd_tensor *index)
{
    grd_tensor *zeros = grd_zeros(sizes, .dtype = grad->dtype, .device = grd_device_of(grad));
    return grd_index_add(zeros, dim, index, grad);
}

/* What index_add and index_copy ask of their source. */
static bool check_source(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    if (!check_vector(index) || !check_index_dtype(index))
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
                         grd_format_int64s(list, sizeof list, self->sizes, self->ndim),
                         grd_format_int64s(other, sizeof other, source->sizes, source->ndim));
    return true;
}

/* Writes slices of source with the kernel, in the order of the index. */
static grd_tensor *write_slices(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source,
                                grd_loop_kernel *kernel, grd_error_code range_error)
{
    if (!grd_check_same_device(grd_tensors(self, index, source)) || (out != NULL && !grd_check_no_internal_overlap(out)))
        return grd_failed;
    struct indices indices;
    bool meta = grd_is_meta(self);
    if (!meta &&
        (!read_indices(apart_from(out, index), &indices) ||
         (!in_range(&indices, 0, size_along(self, dim)) && !raise_out_of_bounds(range_error, &indices, dim, size_along(self, dim)))))
        return grd_failed;
    source = apart_from(out, source);
    grd_tensor *result = grd_pending() ? grd_failed : target_of(out, self);
    if (!grd_is_failed(result) && !meta) {
        struct indexed x = {.kernel = kernel, .in_order = true};
        set_slices(&x, result, RESULT, &indices, dim, index->numel);
        set_operand(&x, SOURCE, source);
        if (indices.unique == 1)
            x.strides[INDEX][dim] = 0;
        run_indexed(&x);
    }
    return result;
}

static bool is_one(grd_scalar s)
{
    return s.kind != GRD_SCALAR_COMPLEX && grd_scalar_double(s) == 1;
}

/* `source` times alpha, in its own dtype. */
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

grd_tensor *op_index_add(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source, grd_scalar alpha)
{
    grd_dtype dtype = sum_dtype(self->dtype);
    grd_loop_kernel *kernel = grd_kernels->index->add[dtype];
    if (!grd_wrap_dim(self, dim, &dim) || !check_source(self, dim, index, source))
        return grd_failed;
    if (kernel == NULL) {
        grd_raise_no_kernel("index_add", self->dtype);
        return grd_failed;
    }
    if (dtype == self->dtype) {
        source = scaled(source, alpha);
        return grd_pending() ? grd_failed : write_slices(out, self, dim, index, source, kernel, GRD_ERROR_RUNTIME);
    }
    grd_tensor *sums = widened(out, self, dtype), *terms = grd_pending() ? sums : grd_contiguous_as(source, dtype);
    if (!grd_pending())
        terms = scaled(terms, alpha);
    if (!grd_pending())
        write_slices(sums, sums, dim, index, terms, kernel, GRD_ERROR_RUNTIME);
    return narrowed(out, self, sums);
}

grd_tensor *op__index_add_source_backward(grd_tensor *grad, int64_t dim, grd_tensor *index, grd_dims sizes, grd_scalar alpha)
{
    grd_tensor *part = grd_index_select(grad, dim, index);
    if (!grd_pending() && part->ndim != sizes.n)
        part = grd_view(part, sizes);
    if (is_one(alpha))
        return part;
    if (alpha.kind == GRD_SCALAR_COMPLEX)
        alpha.v.c.im = -alpha.v.c.im;
    return grd_mul(part, grd_number(alpha));
}

grd_tensor *op_index_copy(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *source)
{
    if (!grd_wrap_dim(self, dim, &dim) || !check_source(self, dim, index, source))
        return grd_failed;
    return write_slices(out, self, dim, index, source, kernel_of_size(grd_kernels->index->scatter, self), GRD_ERROR_INDEX);
}

/* Negative indices are counted from the end, once they are known to be in range. */
static void wrap_indices(int64_t *index, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        index[i] += index[i] < 0 ? size : 0;
}

grd_tensor *op_index_fill(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_scalar value)
{
    _Alignas(16) char element[16];
    if (!grd_wrap_dim(self, dim, &dim) || !check_vector(index) || !check_index_dtype(index) ||
        !grd_check_same_device(grd_tensors(self, index)) || (out != NULL && !grd_check_no_internal_overlap(out)) ||
        !grd_scalar_write(value, self->dtype, element))
        return grd_failed;
    struct indices indices;
    bool meta = grd_is_meta(self);
    int64_t size = size_along(self, dim);
    if (!meta) {
        grd_tensor *own = grd_clone_contiguous(index, GRD_INT64);
        if (grd_pending() || !read_indices(own, &indices) ||
            (!in_range(&indices, -size, size) && !raise_out_of_bounds(GRD_ERROR_INDEX, &indices, dim, size)))
            return grd_failed;
        wrap_indices((int64_t *)(void *)own->data, own->numel, size);
    }
    grd_tensor *result = target_of(out, self);
    if (!grd_is_failed(result) && !meta) {
        struct indexed x = {.kernel = kernel_of_size(grd_kernels->index->scatter, self), .in_order = true};
        set_slices(&x, result, RESULT, &indices, dim, index->numel);
        x.data[SOURCE] = element;
        run_indexed(&x);
    }
    return result;
}

/* ---- Elements --------------------------------------------------------------------------------------------------------------------- */

/* 0-d counts as 1-d with one element, on either side. */
static bool check_same_ndim(const grd_tensor *index, const grd_tensor *t, const char *what)
{
    int64_t a = index->ndim > 0 ? index->ndim : 1, b = t->ndim > 0 ? t->ndim : 1;
    return a == b || index->numel == 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "Index tensor must have the same number of dimensions as %s tensor", what);
}

grd_tensor *op_gather(grd_tensor *self, int64_t dim, grd_tensor *index)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    if (!grd_wrap_dim(self, dim, &dim) || !check_index_dtype(index) || !check_same_ndim(index, self, "input") ||
        !grd_check_same_device(grd_tensors(self, index)))
        return grd_failed;
    for (int64_t i = 0; index->numel > 0 && i < index->ndim && i < self->ndim; i++) {
        if (i == dim || index->sizes[i] <= self->sizes[i])
            continue;
        grd_raise(GRD_ERROR_RUNTIME,
                  "Size does not match at dimension %lld expected index %s to be no larger than self %s apart from dimension %lld",
                  (long long)i, grd_format_int64s(list, sizeof list, index->sizes, index->ndim),
                  grd_format_int64s(other, sizeof other, self->sizes, self->ndim), (long long)dim);
        return grd_failed;
    }
    struct indices indices;
    bool skip = grd_is_meta(self) || index->numel == 0;
    if (!skip && (!read_indices(index, &indices) || (!in_range(&indices, 0, size_along(self, dim)) &&
                                                     !raise_out_of_bounds(GRD_ERROR_RUNTIME, &indices, dim, size_along(self, dim)))))
        return grd_failed;
    grd_tensor *result = grd_new(grd_sizes(index), self->dtype, grd_device_of(self));
    if (!grd_is_failed(result) && !skip) {
        struct indexed x = {.kernel = kernel_of_size(grd_kernels->index->gather, self)};
        set_elements(&x, self, SOURCE, index, &indices, dim);
        set_operand(&x, RESULT, result);
        run_indexed(&x);
    }
    return result;
}

grd_tensor *op__gather_backward(grd_tensor *grad, grd_dims sizes, int64_t dim, grd_tensor *index)
{
    grd_tensor *zeros = grd_zeros(sizes, .dtype = grad->dtype, .device = grd_device_of(grad));
    return grd_scatter_add(zeros, dim, index, grad);
}

/* `src` is NULL for scatter_value. */
static bool check_scatter(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *src)
{
    char own[LIST_CHARS], list[LIST_CHARS], other[LIST_CHARS];
    if (!check_index_dtype(index) || !check_same_ndim(index, self, "self") || (src && !check_same_ndim(index, src, "src")))
        return false;
    if (src != NULL && src->dtype != self->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected self.dtype to be equal to src.dtype, but got %s and %s", grd_dtype_name(self->dtype),
                         grd_dtype_name(src->dtype));
    if (index->numel == 0)
        return true;
    bool fits = src == NULL || src->ndim > 0 || index->numel == 1;
    for (int64_t i = 0; i < index->ndim; i++) {
        fits &= i == dim || self->ndim == 0 || index->sizes[i] <= self->sizes[i];
        fits &= src == NULL || src->ndim == 0 || index->sizes[i] <= src->sizes[i];
    }
    fits &= src == NULL || index->ndim > 0 || src->numel > 0;
    if (fits)
        return true;
    grd_format_int64s(list, sizeof list, index->sizes, index->ndim);
    grd_format_int64s(own, sizeof own, self->sizes, self->ndim);
    if (src == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected index %s to be no larger than self %s apart from dimension %lld", list, own,
                         (long long)dim);
    return grd_raise(GRD_ERROR_RUNTIME,
                     "Expected index %s to be no larger than self %s apart from dimension %lld and to be no larger size than src %s", list,
                     own, (long long)dim, grd_format_int64s(other, sizeof other, src->sizes, src->ndim));
}

/* `src` NULL: the one element `value` everywhere. */
static grd_tensor *write_elements(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, char *value,
                                  grd_loop_kernel *kernel)
{
    grd_tensor *present = src != NULL ? src : self;
    if (!grd_check_same_device(grd_tensors(self, index, present)) || (out != NULL && !grd_check_no_internal_overlap(out)))
        return grd_failed;
    struct indices indices;
    bool skip = grd_is_meta(self) || index->numel == 0;
    if (!skip &&
        (!read_indices(apart_from(out, index), &indices) ||
         (!in_range(&indices, 0, size_along(self, dim)) && !raise_out_of_bounds(GRD_ERROR_RUNTIME, &indices, dim, size_along(self, dim)))))
        return grd_failed;
    if (src != NULL && !skip)
        src = apart_from(out, src);
    grd_tensor *result = grd_pending() ? grd_failed : target_of(out, self);
    if (!grd_is_failed(result) && !skip) {
        struct indexed x = {.kernel = kernel, .in_order = true, .data[SOURCE] = value};
        if (src != NULL)
            set_operand(&x, SOURCE, src);
        set_elements(&x, result, RESULT, index, &indices, dim);
        run_indexed(&x);
    }
    return result;
}

grd_tensor *op_scatter(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src)
{
    if (!grd_wrap_dim(self, dim, &dim) || !check_scatter(self, dim, index, src))
        return grd_failed;
    return write_elements(out, self, dim, index, src, NULL, kernel_of_size(grd_kernels->index->scatter, self));
}

grd_tensor *op_scatter_value(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_scalar value)
{
    _Alignas(16) char element[16];
    if (!grd_wrap_dim(self, dim, &dim) || !check_scatter(self, dim, index, NULL) || !grd_scalar_write(value, self->dtype, element))
        return grd_failed;
    return write_elements(out, self, dim, index, NULL, element, kernel_of_size(grd_kernels->index->scatter, self));
}

grd_tensor *op_scatter_add(grd_tensor *out, grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src)
{
    grd_dtype dtype = sum_dtype(self->dtype);
    grd_loop_kernel *kernel = grd_kernels->index->add[dtype];
    if (!grd_wrap_dim(self, dim, &dim) || !check_scatter(self, dim, index, src))
        return grd_failed;
    if (kernel == NULL) {
        grd_raise_no_kernel("scatter_add", self->dtype);
        return grd_failed;
    }
    if (dtype == self->dtype)
        return write_elements(out, self, dim, index, src, NULL, kernel);
    grd_tensor *sums = widened(out, self, dtype), *terms = grd_pending() ? sums : grd_contiguous_as(src, dtype);
    if (!grd_pending())
        write_elements(sums, sums, dim, index, terms, NULL, kernel);
    return narrowed(out, self, sums);
}

/* Elements of src beyond the index had no part in the result. */
grd_tensor *op__scatter_source_backward(grd_tensor *grad, int64_t dim, grd_tensor *index, grd_dims sizes)
{
    int64_t grown[GRD_MAX_DIMS];
    if (index->numel == 0)
        return grd_zeros(sizes, .dtype = grad->dtype, .device = grd_device_of(grad));
    grd_tensor *part = grd_gather(grad, dim, index);
    if (!grd_pending() && part->ndim != sizes.n)
        return grd_reshape(part, sizes);
    memcpy(grown, index->sizes, index->ndim * sizeof *grown);
    for (int64_t i = 0; i < sizes.n && !grd_pending(); i++) {
        if (grown[i] == sizes.data[i])
            continue;
        grown[i] = sizes.data[i];
        part = grd__slice_backward(part, grd_dims_from(grown, sizes.n), i, grd_int(0), grd_int(index->sizes[i]), 1);
    }
    return part;
}

/* ---- Masks ------------------------------------------------------------------------------------------------------------------------- */

static bool check_mask(const grd_tensor *mask)
{
    return mask->dtype == GRD_BOOL ||
           grd_raise(GRD_ERROR_RUNTIME, "only boolean masks are supported, but got mask with dtype %s", grd_dtype_name(mask->dtype));
}

grd_tensor *op_masked_fill(grd_tensor *out, grd_tensor *self, grd_tensor *mask, grd_scalar value)
{
    _Alignas(16) char element[16];
    if (!check_mask(mask) || !grd_check_same_device(grd_tensors(self, mask)) || !grd_scalar_write(value, self->dtype, element))
        return grd_failed;
    struct grd_iter it;
    grd_tensor *result = grd_iter_elementwise(
        &it, &(struct grd_iter_spec){
                 .out = out, .inputs = {self, mask}, .ninputs = 2, .rule = GRD_TYPE_KEEP, .dtype = self->dtype, .name = "masked_fill"});
    if (!grd_pending())
        grd_iter_run(&it, kernel_of_size(grd_kernels->index->masked_fill, self), element);
    return result;
}

grd_tensor *op_masked_fill_tensor(grd_tensor *out, grd_tensor *self, grd_tensor *mask, grd_tensor *value)
{
    if (value->ndim > 0) {
        grd_raise(GRD_ERROR_RUNTIME, "only a 0-dimensional value tensor is supported, but got tensor with %d dimension(s).", value->ndim);
        return grd_failed;
    }
    grd_scalar number = grd_is_meta(value) ? grd_int(0) : grd_scalar_read(value->data, value->dtype);
    return op_masked_fill(out, self, mask, number);
}

/* A mask and the number of its set elements before each block of MASK_BLOCK. */
struct counted_mask {
    const uint8_t *data;
    int64_t n, total;
    int64_t *before;
    /* What move_blocks does with it: */
    grd_mask_move *move;
    char *to;
    const char *from;
    int64_t itemsize;
    bool expands; /* the dense list is `from` */
};

static void count_blocks(int64_t begin, int64_t end, void *context)
{
    struct counted_mask *mask = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, n = mask->n - first < MASK_BLOCK ? mask->n - first : MASK_BLOCK;
        mask->before[block] = grd_kernels->index->count(n, mask->data + first);
    }
}

static int64_t mask_blocks(const struct counted_mask *mask)
{
    return mask->n == 0 ? 0 : (mask->n - 1) / MASK_BLOCK + 1;
}

/* `t` is a contiguous bool tensor. */
static bool count_mask(const grd_tensor *t, struct counted_mask *ret)
{
    *ret = (struct counted_mask){.data = (const uint8_t *)t->data, .n = t->numel};
    int64_t blocks = mask_blocks(ret);
    ret->before = grd_pool_alloc((size_t)(blocks + 1) * sizeof *ret->before);
    if (ret->before == NULL)
        return false;
    grd_parallel_for(0, blocks, 1, count_blocks, ret);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t here = ret->before[i];
        ret->before[i] = ret->total;
        ret->total += here;
    }
    return true;
}

static void move_blocks(int64_t begin, int64_t end, void *context)
{
    struct counted_mask *mask = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, n = mask->n - first < MASK_BLOCK ? mask->n - first : MASK_BLOCK;
        int64_t dense = mask->before[block] * mask->itemsize, sparse = first * mask->itemsize;
        mask->move(n, mask->data + first, mask->to + (mask->expands ? sparse : dense), mask->from + (mask->expands ? dense : sparse));
    }
}

/* The sizes two tensors broadcast to. */
static bool common_sizes(grd_dims a, const grd_tensor *mask, int64_t *ret_sizes, grd_dims *ret)
{
    int64_t n;
    if (!check_mask(mask) || !grd_check_has_data(mask) || !grd_shape_broadcast(grd_sizes(mask), a, ret_sizes, &n))
        return false;
    *ret = grd_dims_from(ret_sizes, n);
    return true;
}

grd_tensor *op_masked_select(grd_tensor *self, grd_tensor *mask)
{
    int64_t storage[GRD_MAX_DIMS];
    grd_dims sizes;
    if (!common_sizes(grd_sizes(self), mask, storage, &sizes) || !grd_check_has_data(self))
        return grd_failed;
    grd_tensor *from = op_expand(self, sizes), *where = op_expand(mask, sizes);
    struct counted_mask counted;
    if (!grd_pending())
        from = grd_contiguous_as(from, GRD_DTYPE_NONE);
    if (!grd_pending())
        where = grd_contiguous_as(where, GRD_DTYPE_NONE);
    if (grd_pending() || !count_mask(where, &counted))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims(counted.total), self->dtype, grd_device_of(self));
    if (!grd_is_failed(result)) {
        counted.move = grd_kernels->index->compress[grd_index_size(self->itemsize)];
        counted.to = result->data;
        counted.from = from->data;
        counted.itemsize = self->itemsize;
        grd_parallel_for(0, mask_blocks(&counted), 1, move_blocks, &counted);
    }
    return result;
}

grd_tensor *op__masked_select_backward(grd_tensor *grad, grd_dims sizes, grd_tensor *mask)
{
    int64_t storage[GRD_MAX_DIMS];
    grd_dims common;
    if (!common_sizes(sizes, mask, storage, &common) || !grd_check_has_data(grad))
        return grd_failed;
    grd_tensor *where = op_expand(mask, common), *from = grd_contiguous_as(grad, GRD_DTYPE_NONE);
    struct counted_mask counted;
    if (!grd_pending())
        where = grd_contiguous_as(where, GRD_DTYPE_NONE);
    if (grd_pending() || !count_mask(where, &counted))
        return grd_failed;
    if (counted.total != grad->numel) {
        grd_raise(GRD_ERROR_RUNTIME, "the mask has %lld elements set where the gradient has %lld", (long long)counted.total,
                  (long long)grad->numel);
        return grd_failed;
    }
    grd_tensor *result = grd_new_zeros(common, grad->dtype, grd_device_of(grad));
    if (!grd_is_failed(result)) {
        counted.move = grd_kernels->index->expand[grd_index_size(grad->itemsize)];
        counted.to = result->data;
        counted.from = from->data;
        counted.itemsize = grad->itemsize;
        counted.expands = true;
        grd_parallel_for(0, mask_blocks(&counted), 1, move_blocks, &counted);
    }
    return result;
}

struct coordinates {
    const struct counted_mask *mask;
    int64_t *to;
    grd_dims sizes;
};

/* Rows of coordinates: the position is counted like an odometer, so that nothing is divided per element. */
static void write_coordinates(int64_t begin, int64_t end, void *context)
{
    const struct coordinates *c = context;
    int64_t ndim = c->sizes.n, at[GRD_MAX_DIMS];
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, last = first + MASK_BLOCK < c->mask->n ? first + MASK_BLOCK : c->mask->n, rest = first;
        int64_t *row = c->to + c->mask->before[block] * ndim;
        for (int64_t d = ndim - 1; d >= 0; d--) {
            at[d] = rest % c->sizes.data[d];
            rest /= c->sizes.data[d];
        }
        for (int64_t i = first; i < last; i++) {
            if (c->mask->data[i]) {
                memcpy(row, at, (size_t)ndim * sizeof *row);
                row += ndim;
            }
            for (int64_t d = ndim - 1; d >= 0 && ++at[d] == c->sizes.data[d]; d--)
                at[d] = 0;
        }
    }
}

grd_tensor *op_nonzero(grd_tensor *self)
{
    if (!grd_check_has_data(self))
        return grd_failed;
    grd_tensor *set = grd_contiguous_as(self, GRD_BOOL);
    struct counted_mask counted;
    if (grd_pending() || !count_mask(set, &counted))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims(counted.total, self->ndim), GRD_INT64, grd_device_of(self));
    if (!grd_is_failed(result) && self->ndim > 0) {
        struct coordinates c = {&counted, (int64_t *)(void *)result->data, grd_sizes(self)};
        grd_parallel_for(0, mask_blocks(&counted), 1, write_coordinates, &c);
    }
    return result;
}

/* ---- Embedding --------------------------------------------------------------------------------------------------------------------- */

static bool check_embedding(grd_dims weight, const grd_tensor *indices)
{
    if (weight.n != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "'weight' must be 2-D");
    if (indices->ndim >= GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %d, the limit is %d", indices->ndim + 1, GRD_MAX_DIMS);
    return is_index_dtype(indices) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s",
                     grd_dtype_name(indices->dtype));
}

/* Indices as a contiguous list of int64, all in [0, rows). */
static bool read_rows(grd_tensor *index, int64_t rows, struct indices *ret)
{
    grd_tensor *plain = grd_contiguous_as(index, GRD_INT64);
    if (grd_pending())
        return false;
    *ret = (struct indices){.data = (const int64_t *)(const void *)plain->data, .unique = plain->numel};
    return in_range(ret, 0, rows) || grd_raise(GRD_ERROR_INDEX, "index out of range in self");
}

grd_tensor *op_embedding(grd_tensor *weight, grd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq)
{
    (void)padding_idx;
    (void)scale_grad_by_freq;
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_embedding(grd_sizes(weight), indices) || !grd_check_same_device(grd_tensors(weight, indices)))
        return grd_failed;
    memcpy(sizes, indices->sizes, indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = weight->sizes[1];
    struct indices rows;
    if (!grd_is_meta(weight) && !read_rows(indices, weight->sizes[0], &rows))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims_from(sizes, (int64_t)indices->ndim + 1), weight->dtype, grd_device_of(weight));
    if (!grd_is_failed(result) && !grd_is_meta(weight)) {
        struct indexed x = {.kernel = kernel_of_size(grd_kernels->index->gather, weight), .data[RESULT] = result->data};
        set_slices(&x, weight, SOURCE, &rows, 0, rows.unique);
        x.strides[RESULT][0] = weight->sizes[1] * weight->itemsize;
        x.strides[RESULT][1] = weight->itemsize;
        run_indexed(&x);
    }
    return result;
}

/* Adds row i of grad to row rows[i] of sums. */
static void add_rows(grd_tensor *sums, grd_tensor *grad, const struct indices *rows, grd_loop_kernel *kernel)
{
    grd_tensor *from = grd_contiguous_as(grad, sums->dtype);
    if (grd_pending())
        return;
    struct indexed x = {.kernel = kernel, .in_order = true};
    set_slices(&x, sums, RESULT, rows, 0, rows->unique);
    x.data[SOURCE] = from->data;
    x.strides[SOURCE][0] = sums->sizes[1] * sums->itemsize;
    x.strides[SOURCE][1] = sums->itemsize;
    run_indexed(&x);
}

/* Divides every row by how often it is named. */
static void divide_rows(grd_tensor *t, const struct indices *rows)
{
    grd_tensor *counts = grd_new_zeros(grd_dims(t->sizes[0], 1), GRD_INT64, grd_device_of(t));
    if (grd_is_failed(counts))
        return;
    int64_t *count = (int64_t *)(void *)counts->data;
    for (int64_t i = 0; i < rows->unique; i++)
        count[rows->data[i]]++;
    for (int64_t i = 0; i < counts->numel; i++)
        count[i] += count[i] == 0;
    grd_tensor *divisor = grd_clone_contiguous(counts, t->dtype);
    if (!grd_pending())
        grd_div_(t, divisor);
}

grd_tensor *op__embedding_backward(grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq)
{
    char list[LIST_CHARS];
    if (!check_embedding(sizes, indices) || !grd_check_same_device(grd_tensors(grad, indices)))
        return grd_failed;
    if (grad->numel != indices->numel * sizes.data[1] || grad->ndim != indices->ndim + 1) {
        grd_raise(GRD_ERROR_RUNTIME, "gradient of sizes %s does not belong to the indices",
                  grd_format_int64s(list, sizeof list, grad->sizes, grad->ndim));
        return grd_failed;
    }
    grd_dtype dtype = sum_dtype(grad->dtype);
    grd_loop_kernel *kernel = grd_kernels->index->add[dtype];
    if (kernel == NULL) {
        grd_raise_no_kernel("embedding_backward", grad->dtype);
        return grd_failed;
    }
    grd_tensor *sums = grd_new_zeros(sizes, dtype, grd_device_of(grad));
    struct indices rows;
    if (!grd_pending() && !grd_is_meta(grad) && read_rows(indices, sizes.data[0], &rows)) {
        add_rows(sums, grad, &rows, kernel);
        if (scale_grad_by_freq && !grd_pending())
            divide_rows(sums, &rows);
        if (padding_idx >= 0 && padding_idx < sizes.data[0])
            memset(sums->data + padding_idx * sizes.data[1] * sums->itemsize, 0, (size_t)(sizes.data[1] * sums->itemsize));
    }
    if (grd_pending())
        return grd_failed;
    return dtype == grad->dtype ? sums : grd_clone_contiguous(sums, grad->dtype);
}

grd_tensor *op__embedding_double_backward(grd_tensor *grad, grd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq)
{
    grd_tensor *result = grd_embedding(grad, indices);
    if (padding_idx >= 0) {
        grd_tensor *padding = grd_eq(indices, grd_number(grd_int(padding_idx)));
        result = grd_masked_fill(result, grd_unsqueeze(padding, -1), grd_int(0));
    }
    if (!scale_grad_by_freq || grd_pending())
        return result;
    grd_tensor *flat = grd_reshape(indices, grd_dims(-1));
    grd_tensor *zeros = grd_zeros(grd_dims(grad->sizes[0]), .dtype = grad->dtype, .device = grd_device_of(grad));
    grd_tensor *ones = grd_ones(grd_dims(indices->numel), .dtype = grad->dtype, .device = grd_device_of(grad));
    grd_tensor *counts = grd_index_select(grd_index_add(zeros, 0, flat, ones), 0, flat);
    return grd_div(result, grd_unsqueeze(grd_reshape(counts, grd_sizes(indices)), -1));
}

/* ---- one_hot ------------------------------------------------------------------------------------------------------------------------ */

/* The smallest and the largest of n > 0 numbers. */
static void extremes(const int64_t *values, int64_t n, int64_t *ret_low, int64_t *ret_high)
{
    int64_t low = values[0], high = values[0];
    for (int64_t i = 1; i < n; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    *ret_low = low;
    *ret_high = high;
}

grd_tensor *op_one_hot(grd_tensor *self, int64_t num_classes)
{
    int64_t sizes[GRD_MAX_DIMS], low = 0, high = 0;
    if (self->dtype != GRD_INT64) {
        grd_raise(GRD_ERROR_RUNTIME, "one_hot is only applicable to index tensor of type LongTensor.");
        return grd_failed;
    }
    if (self->ndim >= GRD_MAX_DIMS) {
        grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %d, the limit is %d", self->ndim + 1, GRD_MAX_DIMS);
        return grd_failed;
    }
    if (self->numel == 0 && num_classes <= 0) {
        grd_raise(GRD_ERROR_RUNTIME, "Can not infer total number of classes from empty tensor.");
        return grd_failed;
    }
    if (num_classes < 0 && !grd_check_has_data(self))
        return grd_failed;
    grd_tensor *plain = grd_contiguous_as(self, GRD_DTYPE_NONE);
    bool reads = !grd_pending() && self->numel > 0 && !grd_is_meta(self);
    if (reads)
        extremes((const int64_t *)(const void *)plain->data, plain->numel, &low, &high);
    if (low < 0)
        grd_raise(GRD_ERROR_RUNTIME, "Class values must be non-negative.");
    else if (reads && num_classes >= 0 && high >= num_classes)
        grd_raise(GRD_ERROR_RUNTIME, "Class values must be smaller than num_classes.");
    if (grd_pending())
        return grd_failed;
    int64_t classes = num_classes >= 0 ? num_classes : high == INT64_MAX ? high : high + 1;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[self->ndim] = classes;
    grd_tensor *result = grd_new_zeros(grd_dims_from(sizes, (int64_t)self->ndim + 1), GRD_INT64, grd_device_of(self));
    if (!grd_is_failed(result) && reads) {
        const int64_t *from = (const int64_t *)(const void *)plain->data;
        int64_t *to = (int64_t *)(void *)result->data;
        for (int64_t i = 0; i < plain->numel; i++)
            to[i * classes + from[i]] = 1;
    }
    return result;
}
