/* Copying, converting, filling, and joining.
 *
 * Lives here: the fast ways through memory (one block, runs of bytes, blocked transposition) and the operators around them.
 * Conversion between dtypes is the cast table's, element by element.
 * Invariant: an operator checks everything, then calls the functions of copy.h, which cannot fail. */
#include "op/copy.h"

#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "core/iter.h"
#include "gen/op_impl.h"
#include "gradus/gradus.h"
#include "kernel/index.h"
#include "op/common.h"

enum {
    LIST_CHARS = 512,         /* of a formatted list in an error */
    BYTES_GRAIN = 256 * 1024, /* of a block that one thread copies */
    PATTERN_BYTES = 2048,     /* of repeated elements that fill works with; a multiple of every element size */
    TRANSPOSE_ROWS = 64,      /* rows of one call of a transposition kernel */
    TRANSPOSE_MIN = 8,        /* smaller than this, the loop overhead is not worth it */
    ELEMENTS_GRAIN = 32 * 1024
};

static bool covers_block(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_CONTIGUOUS) || grd_shape_is_dense(grd_sizes(t), t->strides);
}

/* The lowest address of a dense tensor. */
static char *block_start(const grd_tensor *t)
{
    int64_t back = 0;
    for (int64_t i = 0; i < t->ndim; i++)
        if (t->strides[i] < 0)
            back += (t->sizes[i] - 1) * t->strides[i];
    return t->data + back * t->itemsize;
}

/* ---- One block --------------------------------------------------------------------------------------------------------- */

struct block_copy {
    char *to;
    const char *from;
};

static void copy_bytes(int64_t begin, int64_t end, void *context)
{
    const struct block_copy *copy = context;
    memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
}

static void copy_block(char *to, const char *from, int64_t bytes)
{
    if (bytes <= BYTES_GRAIN)
        memcpy(to, from, (size_t)bytes);
    else
        grd_parallel_for(0, bytes, BYTES_GRAIN, copy_bytes, &(struct block_copy){to, from});
}

struct block_fill {
    char *to;
    const char *pattern; /* PATTERN_BYTES; NULL: zeros */
};

static void fill_bytes(int64_t begin, int64_t end, void *context)
{
    const struct block_fill *fill = context;
    if (fill->pattern == NULL) {
        memset(fill->to + begin, 0, (size_t)(end - begin));
        return;
    }
    for (int64_t i = begin; i < end; i += PATTERN_BYTES)
        memcpy(fill->to + i, fill->pattern, (size_t)(end - i < PATTERN_BYTES ? end - i : PATTERN_BYTES));
}

/* ---- Blocked transposition ------------------------------------------------------------------------------------------------- */

struct transposition {
    grd_transpose_kernel *kernel;
    char *to;
    const char *from;
    int64_t rows, columns, to_stride, from_stride; /* strides in bytes: of a row of `to`, of a column in `from` */
    int64_t itemsize, blocks;                      /* blocks of rows in one matrix */
    int64_t n, sizes[GRD_MAX_DIMS], to_strides[GRD_MAX_DIMS], from_strides[GRD_MAX_DIMS]; /* the other dimensions; bytes */
};

static void transpose_blocks(int64_t begin, int64_t end, void *context)
{
    const struct transposition *t = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t row = piece % t->blocks * TRANSPOSE_ROWS, matrix = piece / t->blocks;
        char *to = t->to + row * t->to_stride;
        const char *from = t->from + row * t->itemsize;
        for (int64_t i = t->n - 1; i >= 0; i--) {
            int64_t at = matrix % t->sizes[i];
            matrix /= t->sizes[i];
            to += at * t->to_strides[i];
            from += at * t->from_strides[i];
        }
        int64_t rows = t->rows - row < TRANSPOSE_ROWS ? t->rows - row : TRANSPOSE_ROWS;
        t->kernel(rows, t->columns, to, t->to_stride, from, t->from_stride);
    }
}

/* The dimension of stride one, when it is long enough for tiles; -1: none. */
static int64_t innermost(const grd_tensor *t)
{
    for (int64_t i = t->ndim - 1; i >= 0; i--)
        if (t->strides[i] == 1 && t->sizes[i] >= TRANSPOSE_MIN)
            return i;
    return -1;
}

/* True when the copy was a transposition: rows of one are columns of the other. */
static bool copy_transposed(grd_tensor *to, const grd_tensor *from)
{
    int64_t column = innermost(to), row = innermost(from);
    if (column < 0 || row < 0 || column == row || to->strides[row] == 0 || from->strides[column] == 0)
        return false;
    int64_t itemsize = to->itemsize, pieces = 1;
    struct transposition t = {
        .kernel = grd_kernels->index->transpose[grd_index_size(itemsize)],
        .to = to->data,
        .from = from->data,
        .rows = to->sizes[row],
        .columns = to->sizes[column],
        .to_stride = to->strides[row] * itemsize,
        .from_stride = from->strides[column] * itemsize,
        .itemsize = itemsize,
        .blocks = (to->sizes[row] - 1) / TRANSPOSE_ROWS + 1,
    };
    for (int64_t i = 0; i < to->ndim; i++) {
        if (i == row || i == column)
            continue;
        t.sizes[t.n] = to->sizes[i];
        t.to_strides[t.n] = to->strides[i] * itemsize;
        t.from_strides[t.n++] = from->strides[i] * itemsize;
        pieces *= to->sizes[i];
    }
    int64_t piece = t.columns * (t.rows < TRANSPOSE_ROWS ? t.rows : TRANSPOSE_ROWS);
    grd_parallel_for(0, pieces * t.blocks, piece < ELEMENTS_GRAIN ? ELEMENTS_GRAIN / piece : 1, transpose_blocks, &t);
    return true;
}

/* ---- Any strides ------------------------------------------------------------------------------------------------------------ */

static void copy_elementwise(grd_tensor *to, const char *from, grd_dtype from_dtype, const int64_t *from_strides_bytes)
{
    int64_t to_strides[GRD_MAX_DIMS];
    for (int64_t i = 0; i < to->ndim; i++)
        to_strides[i] = to->strides[i] * to->itemsize;
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(to), 2, (char *const[]){to->data, (char *)(uintptr_t)from},
                 (const int64_t *const[]){to_strides, from_strides_bytes});
    grd_iter_run(&it, grd_kernels->cast[from_dtype][to->dtype], NULL);
}

static bool same_strides(const grd_tensor *a, const grd_tensor *b)
{
    for (int64_t i = 0; i < a->ndim; i++)
        if (a->sizes[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

void grd_copy_strided(grd_tensor *to, const grd_tensor *from)
{
    if (to->numel == 0 || grd_is_meta(to))
        return;
    if (to->dtype == from->dtype) {
        if (to->data == from->data && same_strides(to, from))
            return;
        if (covers_block(to) && same_strides(to, from)) {
            copy_block(block_start(to), block_start(from), to->numel * to->itemsize);
            return;
        }
        if (copy_transposed(to, from))
            return;
    }
    int64_t strides[GRD_MAX_DIMS];
    for (int64_t i = 0; i < from->ndim; i++)
        strides[i] = from->strides[i] * from->itemsize;
    copy_elementwise(to, from->data, from->dtype, strides);
}

static bool all_zero(const char *bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

void grd_fill_elements(grd_tensor *t, const void *element)
{
    if (t->numel == 0 || grd_is_meta(t))
        return;
    if (!covers_block(t)) {
        static const int64_t standing[GRD_MAX_DIMS];
        copy_elementwise(t, element, t->dtype, standing);
        return;
    }
    char pattern[PATTERN_BYTES];
    struct block_fill fill = {block_start(t), NULL};
    int64_t bytes = t->numel * t->itemsize;
    if (!all_zero(element, t->itemsize)) {
        int64_t wanted = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
        for (int64_t i = 0; i < wanted; i += t->itemsize)
            memcpy(pattern + i, element, t->itemsize);
        fill.pattern = pattern;
    }
    if (bytes <= BYTES_GRAIN)
        fill_bytes(0, bytes, &fill);
    else
        grd_parallel_for(0, bytes, BYTES_GRAIN, fill_bytes, &fill);
}

void grd_zero_elements(grd_tensor *t)
{
    static const char zero[16];
    grd_fill_elements(t, zero);
}

grd_tensor *grd_new_zeros(grd_dims sizes, grd_dtype dtype, grd_device device)
{
    grd_tensor *result = grd_new(sizes, dtype, device);
    if (!grd_is_failed(result))
        grd_zero_elements(result);
    return result;
}

bool grd_check_view_gradient(const grd_tensor *view, const grd_tensor *grad)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    return grd_same_sizes(view, grd_sizes(grad)) || grd_raise(GRD_ERROR_RUNTIME, "the gradient has sizes %s where the view has %s",
                                                              grd_format_int64s(list, sizeof list, grad->sizes, grad->ndim),
                                                              grd_format_int64s(other, sizeof other, view->sizes, view->ndim));
}

/* ---- copy, fill, zero --------------------------------------------------------------------------------------------------------- */

/* `src` broadcast to the sizes of `self`. */
static grd_tensor *broadcast_source(grd_tensor *self, grd_tensor *src)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    int64_t sizes[GRD_MAX_DIMS], n;
    if (grd_same_sizes(src, grd_sizes(self)))
        return src;
    if (!grd_shape_broadcast(grd_sizes(self), grd_sizes(src), sizes, &n))
        return grd_failed;
    if (!grd_same_sizes(self, grd_dims_from(sizes, n))) {
        grd_raise(GRD_ERROR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                  grd_format_int64s(list, sizeof list, self->sizes, self->ndim), grd_format_int64s(other, sizeof other, sizes, n));
        return grd_failed;
    }
    return op_expand(src, grd_sizes(self));
}

static bool check_convertible(grd_dtype from, grd_dtype to)
{
    return grd_kernels->cast[from] != NULL && grd_kernels->cast[from][to] != NULL
               ? true
               : grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "no conversion from %s to %s", grd_dtype_name(from), grd_dtype_name(to));
}

static bool check_readable(const grd_tensor *src, const grd_tensor *to)
{
    return !grd_is_meta(src) || grd_is_meta(to) || grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
}

/* Whether the two may have bytes in common. */
static bool may_share_memory(const grd_tensor *a, const grd_tensor *b)
{
    int64_t a_low, a_high, b_low, b_high;
    if (a->storage != b->storage || a->numel == 0 || b->numel == 0)
        return false;
    if (!grd_shape_extent(grd_sizes(a), a->strides, &a_low, &a_high) || !grd_shape_extent(grd_sizes(b), b->strides, &b_low, &b_high))
        return true;
    return a->data + a_low * a->itemsize < b->data + (b_high + 1) * b->itemsize &&
           b->data + b_low * b->itemsize < a->data + (a_high + 1) * a->itemsize;
}

grd_tensor *op_copy(grd_tensor *out, grd_tensor *self, grd_tensor *src, bool non_blocking)
{
    (void)self;
    (void)non_blocking;
    if (!check_readable(src, out) || !check_convertible(src->dtype, out->dtype) || !grd_check_no_internal_overlap(out))
        return grd_failed;
    grd_tensor *from = broadcast_source(out, src);
    bool same = out->data == from->data && out->dtype == from->dtype && same_strides(out, from);
    if (!grd_pending() && !same && !grd_is_meta(out) && may_share_memory(out, from))
        from = grd_clone_contiguous(from, GRD_DTYPE_NONE);
    if (!grd_pending())
        grd_copy_strided(out, from);
    return grd_pending() ? grd_failed : out;
}

grd_tensor *op_fill(grd_tensor *out, grd_tensor *self, grd_scalar value)
{
    char element[16];
    if (!grd_scalar_write(value, self->dtype, element))
        return grd_failed;
    grd_tensor *result = out != NULL ? out : grd_new_like(self, GRD_DTYPE_NONE);
    if (!grd_is_failed(result))
        grd_fill_elements(result, element);
    return result;
}

grd_tensor *op_zero(grd_tensor *out, grd_tensor *self)
{
    grd_tensor *result = out != NULL ? out : grd_new_like(self, GRD_DTYPE_NONE);
    if (!grd_is_failed(result))
        grd_zero_elements(result);
    return result;
}

/* ---- clone, contiguous, to ------------------------------------------------------------------------------------------------------ */

enum memory_format { PRESERVE, CONTIGUOUS, CHANNELS_LAST, UNKNOWN_FORMAT };

static enum memory_format memory_format_of(const char *name, enum memory_format absent, const grd_tensor *self)
{
    static const char *const names[] = {"preserve", "contiguous", "channels_last"};
    enum memory_format format = absent;
    if (name != NULL)
        for (format = PRESERVE; format < UNKNOWN_FORMAT && strcmp(name, names[format]) != 0;)
            format++;
    if (format == UNKNOWN_FORMAT)
        grd_raise(GRD_ERROR_VALUE, "memory_format must be 'preserve', 'contiguous' or 'channels_last', not '%s'", name);
    else if (format == CHANNELS_LAST && self->ndim != 4 && self->ndim != 5)
        grd_raise(GRD_ERROR_RUNTIME, "required rank 4 or 5 tensor to use channels_last format");
    return format;
}

static grd_tensor *new_channels_last(const grd_tensor *self)
{
    int64_t strides[5], n = self->ndim;
    strides[1] = 1;
    int64_t stride = self->sizes[1] > 1 ? self->sizes[1] : 1;
    for (int64_t i = n - 1; i > 1; i--) {
        strides[i] = stride;
        stride *= self->sizes[i] > 1 ? self->sizes[i] : 1;
    }
    strides[0] = stride;
    return grd_new_strided(grd_sizes(self), grd_dims_from(strides, n), self->dtype, grd_device_of(self));
}

static grd_tensor *new_in_format(const grd_tensor *self, enum memory_format format)
{
    if (format == CHANNELS_LAST)
        return new_channels_last(self);
    if (format == CONTIGUOUS)
        return grd_new(grd_sizes(self), self->dtype, grd_device_of(self));
    return grd_new_like(self, GRD_DTYPE_NONE);
}

grd_tensor *op_clone(grd_tensor *self, const char *memory_format)
{
    enum memory_format format = memory_format_of(memory_format, PRESERVE, self);
    if (grd_pending() || !check_convertible(self->dtype, self->dtype))
        return grd_failed;
    grd_tensor *result = new_in_format(self, format);
    if (!grd_is_failed(result))
        grd_copy_strided(result, self);
    return result;
}

grd_tensor *op_contiguous(grd_tensor *self, const char *memory_format)
{
    enum memory_format format = memory_format_of(memory_format, CONTIGUOUS, self);
    if (grd_pending())
        return grd_failed;
    if (format == PRESERVE) {
        grd_raise(GRD_ERROR_RUNTIME, "preserve memory format is unsupported by the contiguous operator");
        return grd_failed;
    }
    if (format == CHANNELS_LAST ? grd_is_channels_last(self) : grd_is_contiguous(self))
        return self;
    return grd_clone(self, .memory_format = format == CHANNELS_LAST ? "channels_last" : "contiguous");
}

grd_tensor *op_to(grd_tensor *self, grd_dtype dtype, grd_device device, bool copy)
{
    bool same_dtype = dtype == GRD_DTYPE_NONE || dtype == self->dtype;
    bool same_device =
        device.type == GRD_DEVICE_NONE || (device.type == self->device && (device.index < 0 || device.index == self->device_index));
    if (!same_dtype || !same_device)
        return grd__to_copy(self, .dtype = dtype, .device = device);
    return copy ? grd_clone(self) : self;
}

grd_tensor *op__to_copy(grd_tensor *self, grd_dtype dtype, grd_device device)
{
    grd_device target = device;
    if (dtype == GRD_DTYPE_NONE)
        dtype = self->dtype;
    if (device.type == GRD_DEVICE_NONE)
        target = grd_device_of(self);
    else if (!grd_device_resolve(device, &target))
        return grd_failed;
    if (grd_is_meta(self) && target.type != GRD_DEVICE_META) {
        grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
        return grd_failed;
    }
    if (!check_convertible(self->dtype, dtype))
        return grd_failed;
    grd_tensor *result;
    if (target.type == self->device) {
        result = grd_new_like(self, dtype);
        if (!grd_is_failed(result))
            grd_copy_strided(result, self);
        return result;
    }
    result = grd_new(grd_sizes(self), dtype, target);
    return target.type == GRD_DEVICE_META || grd_is_failed(result) ? result : grd_copy_(result, self);
}

/* ---- Joining ------------------------------------------------------------------------------------------------------------------- */

/* 1-d tensors without elements take no part, whatever the others' dimensions: programs start a cat with one. */
static bool is_left_out(const grd_tensor *t)
{
    return t->ndim == 1 && t->sizes[0] == 0;
}

static bool check_cat_sizes(const grd_tensor *first, const grd_tensor *t, int64_t dim, int64_t position)
{
    if (t->ndim != first->ndim)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensors must have same number of dimensions: got %d and %d", first->ndim, t->ndim);
    for (int64_t i = 0; i < t->ndim; i++)
        if (i != dim && t->sizes[i] != first->sizes[i])
            return grd_raise(GRD_ERROR_RUNTIME,
                             "Sizes of tensors must match except in dimension %lld. Expected size %lld but got size %lld for tensor number "
                             "%lld in the list.",
                             (long long)dim, (long long)first->sizes[i], (long long)t->sizes[i], (long long)position);
    return true;
}

struct cat_plan {
    const grd_tensor *first; /* that takes part; NULL: none does */
    int64_t dim;
    grd_dtype dtype;
    int64_t sizes[GRD_MAX_DIMS];
};

static bool plan_cat(grd_tensors tensors, int64_t dim, struct cat_plan *plan)
{
    if (tensors.n == 0)
        return grd_raise(GRD_ERROR_VALUE, "expected a non-empty list of Tensors");
    plan->first = NULL;
    plan->dtype = tensors.data[0]->dtype;
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (t->ndim == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)i);
        plan->dtype = grd_promote(plan->dtype, t->dtype);
        if (plan->first == NULL && !is_left_out(t))
            plan->first = t;
    }
    if (!grd_check_same_device(tensors) || !grd_wrap_dim(plan->first ? plan->first : tensors.data[0], dim, &plan->dim))
        return false;
    if (plan->first == NULL) {
        plan->sizes[0] = 0;
        return true;
    }
    memcpy(plan->sizes, plan->first->sizes, plan->first->ndim * sizeof *plan->sizes);
    plan->sizes[plan->dim] = 0;
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (is_left_out(t))
            continue;
        if (!check_cat_sizes(plan->first, t, plan->dim, i) || !check_convertible(t->dtype, plan->dtype))
            return false;
        if (__builtin_add_overflow(plan->sizes[plan->dim], t->sizes[plan->dim], &plan->sizes[plan->dim]))
            return grd_raise(GRD_ERROR_RUNTIME, "the sizes along dimension %lld overflow", (long long)plan->dim);
    }
    return true;
}

struct row_copy {
    char *to;
    const char *from;
    int64_t to_stride, bytes;
};

static void copy_rows(int64_t begin, int64_t end, void *context)
{
    const struct row_copy *copy = context;
    for (int64_t i = begin; i < end; i++)
        memcpy(copy->to + i * copy->to_stride, copy->from + i * copy->bytes, (size_t)copy->bytes);
}

/* Writes `t` to its place in the contiguous result, `start` elements in along dim. */
static void place(grd_tensor *result, const grd_tensor *t, int64_t dim, int64_t start)
{
    int64_t inner = result->strides[dim] * result->itemsize; /* bytes of one index of dim */
    char *to = result->data + start * inner;
    if (t->dtype == result->dtype && grd_is_contiguous(t)) {
        int64_t outer = 1;
        for (int64_t i = 0; i < dim; i++)
            outer *= t->sizes[i];
        struct row_copy copy = {to, t->data, result->sizes[dim] * inner, t->sizes[dim] * inner};
        if (outer == 1)
            copy_block(to, t->data, copy.bytes);
        else
            grd_parallel_for(0, outer, copy.bytes < BYTES_GRAIN ? BYTES_GRAIN / copy.bytes : 1, copy_rows, &copy);
        return;
    }
    /* The part of the result as a tensor, without a view's cost and its reference. */
    grd_tensor part = *result;
    part.flags = 0;
    part.sizes = t->sizes;
    part.data = to;
    part.numel = t->numel;
    grd_copy_strided(&part, t);
}

grd_tensor *op_cat(grd_tensors tensors, int64_t dim)
{
    struct cat_plan plan;
    if (!plan_cat(tensors, dim, &plan))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims_from(plan.sizes, plan.first ? plan.first->ndim : 1), plan.dtype, grd_device_of(tensors.data[0]));
    if (grd_is_failed(result) || grd_is_meta(result) || result->numel == 0)
        return result;
    for (int64_t i = 0, start = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (is_left_out(t))
            continue;
        if (t->numel > 0)
            place(result, t, plan.dim, start);
        start += t->sizes[plan.dim];
    }
    return result;
}

grd_tensors op__cat_backward(grd_tensor *grad, grd_dims sizes, int64_t dim)
{
    static const grd_tensors none = {NULL, 0};
    if (!grd_wrap_dim(grad, dim, &dim))
        return none;
    grd_tensor **list = grd_pool_alloc((size_t)(sizes.n > 0 ? sizes.n : 1) * sizeof *list);
    if (list == NULL)
        return none;
    for (int64_t i = 0, start = 0; i < sizes.n && !grd_pending(); start += sizes.data[i], i++)
        list[i] = grd_clone(grd_narrow(grad, dim, start, sizes.data[i]), .memory_format = "contiguous");
    return grd_pending() ? none : (grd_tensors){list, sizes.n};
}

grd_tensor *op_stack(grd_tensors tensors, int64_t dim)
{
    char list[LIST_CHARS], other[LIST_CHARS];
    if (tensors.n == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "expects a non-empty TensorList");
        return grd_failed;
    }
    const grd_tensor *first = tensors.data[0];
    for (int64_t i = 1; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (grd_same_sizes(t, grd_sizes(first)))
            continue;
        grd_raise(GRD_ERROR_RUNTIME, "expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld",
                  grd_format_int64s(list, sizeof list, first->sizes, first->ndim),
                  grd_format_int64s(other, sizeof other, t->sizes, t->ndim), (long long)i);
        return grd_failed;
    }
    if (!grd_shape_wrap_dim(dim, (int64_t)first->ndim + 1, &dim))
        return grd_failed;
    grd_tensor **raised = grd_pool_alloc((size_t)tensors.n * sizeof *raised);
    if (raised == NULL)
        return grd_failed;
    for (int64_t i = 0; i < tensors.n; i++)
        raised[i] = grd_unsqueeze(tensors.data[i], dim);
    const grd_tensors list_raised = {raised, tensors.n};
    return grd_cat(list_raised, .dim = grd_int(dim));
}

/* ---- Moved and repeated elements --------------------------------------------------------------------------------------------------- */

grd_tensor *op_flip(grd_tensor *self, grd_dims dims)
{
    uint64_t mask = 0;
    if (dims.n > 0 && !grd_shape_dim_mask(dims, self->ndim, &mask))
        return grd_failed;
    grd_tensor *result = grd_new_like(self, GRD_DTYPE_NONE);
    if (grd_is_failed(result) || grd_is_meta(self) || self->numel == 0)
        return result;
    /* The same elements read backwards: only this function sees them, so no view is made. */
    int64_t strides[GRD_MAX_DIMS];
    grd_tensor reversed = *self;
    reversed.flags = 0;
    reversed.strides = strides;
    for (int64_t i = 0; i < self->ndim; i++) {
        bool flipped = mask >> i & 1;
        strides[i] = flipped ? -self->strides[i] : self->strides[i];
        if (flipped)
            reversed.data += (self->sizes[i] - 1) * self->strides[i] * self->itemsize;
    }
    grd_copy_strided(result, &reversed);
    return result;
}

/* Copies the elements of every index of dim by `shift` places on, the last ones to the front. */
static void roll_once(grd_tensor *to, grd_tensor *from, int64_t dim, int64_t shift)
{
    int64_t size = from->sizes[dim];
    shift %= size;
    if (shift < 0)
        shift += size;
    for (int half = 0; half < 2; half++) {
        int64_t first = half ? size - shift : 0, length = half ? shift : size - shift, target = half ? 0 : shift;
        grd_tensor *part = op_slice(to, dim, grd_int(target), grd_int(target + length), 1);
        grd_tensor *source = op_slice(from, dim, grd_int(first), grd_int(first + length), 1);
        if (!grd_pending())
            grd_copy_strided(part, source);
    }
}

/* Without dims: the elements in row-major order, as one dimension. */
static grd_tensor *roll_flat(grd_tensor *self, int64_t shift)
{
    grd_tensor *result = grd_new(grd_sizes(self), self->dtype, grd_device_of(self));
    if (grd_is_failed(result) || grd_is_meta(self) || self->numel == 0)
        return result;
    grd_dims flat = grd_dims(self->numel), one = grd_dims(1);
    grd_tensor *from = grd_contiguous_as(self, GRD_DTYPE_NONE);
    if (!grd_pending()) {
        grd_tensor *to = grd_new_view(result, flat, one, 0);
        roll_once(to, grd_new_view(from, flat, one, from->offset), 0, shift);
    }
    return grd_pending() ? grd_failed : result;
}

static grd_tensor *roll_dim(grd_tensor *self, int64_t dim, int64_t shift)
{
    grd_tensor *result = grd_new_like(self, GRD_DTYPE_NONE);
    if (grd_is_failed(result) || grd_is_meta(self) || self->numel == 0)
        return result;
    roll_once(result, self, dim, shift);
    return result;
}

grd_tensor *op_roll(grd_tensor *self, grd_dims shifts, grd_dims dims)
{
    if (shifts.n == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "`shifts` required");
        return grd_failed;
    }
    if (dims.n == 0 && shifts.n == 1)
        return roll_flat(self, shifts.data[0]);
    if (shifts.n != dims.n) {
        grd_raise(GRD_ERROR_RUNTIME, "shifts and dimensions must align. shifts: %lld, dims:%lld", (long long)shifts.n, (long long)dims.n);
        return grd_failed;
    }
    if (self->ndim == 0) {
        grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dims.data[0]);
        return grd_failed;
    }
    int64_t dim;
    for (int64_t i = 0; i < dims.n; i++)
        if (!grd_wrap_dim(self, dims.data[i], &dim))
            return grd_failed;
    grd_tensor *result = self;
    for (int64_t i = 0; i < shifts.n && !grd_pending(); i++)
        if (grd_wrap_dim(self, dims.data[i], &dim))
            result = roll_dim(result, dim, shifts.data[i]);
    return grd_pending() ? grd_failed : result;
}

grd_tensor *op__roll_backward(grd_tensor *grad, grd_dims shifts, grd_dims dims)
{
    int64_t *back = grd_pool_alloc((size_t)(shifts.n > 0 ? shifts.n : 1) * sizeof *back);
    if (back == NULL)
        return grd_failed;
    for (int64_t i = 0; i < shifts.n; i++) {
        int64_t dim = 0, size = grad->numel;
        if (i < dims.n && !grd_wrap_dim(grad, dims.data[i], &dim))
            return grd_failed;
        if (i < dims.n)
            size = grad->ndim > 0 ? grad->sizes[dim] : 1;
        back[i] = size > 0 ? -(shifts.data[i] % size) : 0;
    }
    return grd_roll(grad, grd_dims_from(back, shifts.n), .dims = dims);
}

/* One expanded view with a dimension of repeats before each of self's; its copy in row-major order is the result. */
grd_tensor *op_repeat(grd_tensor *self, grd_dims repeats)
{
    int64_t raised[2 * GRD_MAX_DIMS], expanded[2 * GRD_MAX_DIMS], result[GRD_MAX_DIMS], n = 0;
    if (repeats.n < self->ndim) {
        grd_raise(GRD_ERROR_RUNTIME, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
        return grd_failed;
    }
    if (repeats.n > GRD_MAX_DIMS) {
        grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)repeats.n, GRD_MAX_DIMS);
        return grd_failed;
    }
    int64_t numel;
    for (int64_t i = 0; i < repeats.n; i++) {
        int64_t dim = i - (repeats.n - self->ndim), size = dim >= 0 ? self->sizes[dim] : 1, times = repeats.data[i];
        if (__builtin_mul_overflow(size, times, &result[i]))
            result[i] = times < 0 ? -1 : INT64_MAX;
        if (times < 0 && result[i] >= 0)
            result[i] = -1;
        if (times != 1) {
            raised[n] = 1;
            expanded[n++] = times;
        }
        if (dim >= 0) {
            raised[n] = size;
            expanded[n++] = size;
        }
    }
    if (!grd_shape_numel(grd_dims_from(result, repeats.n), &numel))
        return grd_failed;
    grd_tensor *view = grd_expand(grd_reshape(self, grd_dims_from(raised, n)), grd_dims_from(expanded, n));
    return grd_view(grd_clone(view, .memory_format = "contiguous"), grd_dims_from(result, repeats.n));
}

grd_tensor *op_tile(grd_tensor *self, grd_dims dims)
{
    int64_t repeats[GRD_MAX_DIMS];
    int64_t missing = (int64_t)self->ndim - dims.n;
    if (missing <= 0)
        return grd_repeat(self, dims);
    for (int64_t i = 0; i < self->ndim; i++)
        repeats[i] = i < missing ? 1 : dims.data[i - missing];
    return grd_repeat(self, grd_dims_from(repeats, self->ndim));
}
