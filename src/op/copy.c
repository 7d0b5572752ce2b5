/* Copying, converting and filling.
 *
 * Lives here: the fast ways through memory (one block, runs of bytes, blocked transposition) and the operators around them.
 * Conversion between dtypes is the cast table's, element by element.
 * Invariant: what is written was checked before; only a device from outside can fail to copy, which leaves its error pending. */
#include "op/copy.h"

#include <string.h>

#include "base/parallel.h"
#include "core/iter.h"
#include "gen/uses/op/copy.h"
#include "gradus/library.h"
#include "kernel/bytes.h"
#include "kernel/index.h"
#include "kernel/map.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/plan.h"

enum {
    PATTERN_BYTES = 2048,         /* of repeated elements that fill works with; a multiple of every element size */
    TRANSPOSE_MIN = 8,            /* smaller than this, the loop overhead is not worth it */
    TRANSPOSE_PIECE = 256 * 1024, /* bytes of one call of a transposition kernel */
    PAGE = 4096,                  /* bytes in a row of such a piece, at most */
    CACHE_LINE = 64,
    STREAM_MIN = 8 * 1024 * 1024 /* results of so many bytes would not stay in the caches anyway */
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
    bool past; /* the caches */
};

static void copy_bytes(int64_t begin, int64_t end, void *context)
{
    const struct block_copy *copy = context;
    if (copy->past)
        grd_kernels->bytes->copy_past(end - begin, copy->to + begin, copy->from + begin);
    else
        grd_copy_line(copy->to + begin, copy->from + begin, end - begin);
}

void grd_copy_block(char *to, const char *from, int64_t bytes)
{
    if (bytes <= GRD_COPY_GRAIN) {
        grd_copy_line(to, from, bytes);
        return;
    }
    struct block_copy copy = {to, from, grd_stores_for(2 * bytes, 2, (char *const[]){to, (char *)(uintptr_t)from}) == GRD_STORES_PAST};
    grd_parallel_for(0, bytes, GRD_COPY_GRAIN, copy_bytes, &copy);
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
    int64_t high, wide, down, across;              /* rows and columns of a piece; pieces down and across one matrix */
    int64_t itemsize;
    bool streamed;
    int64_t n, sizes[GRD_MAX_DIMS], to_strides[GRD_MAX_DIMS], from_strides[GRD_MAX_DIMS]; /* the other dimensions; bytes */
};

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void transpose_pieces(int64_t begin, int64_t end, void *context)
{
    const struct transposition *t = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t column = piece % t->across * t->wide, row = piece / t->across % t->down * t->high;
        int64_t matrix = piece / t->across / t->down;
        char *to = t->to + row * t->to_stride + column * t->itemsize;
        const char *from = t->from + row * t->itemsize + column * t->from_stride;
        for (int64_t i = t->n - 1; i >= 0; i--) {
            int64_t at = matrix % t->sizes[i];
            matrix /= t->sizes[i];
            to += at * t->to_strides[i];
            from += at * t->from_strides[i];
        }
        t->kernel(at_most(t->rows - row, t->high), at_most(t->columns - column, t->wide), to, t->to_stride, from, t->from_stride,
                  t->streamed);
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
    int64_t itemsize = to->itemsize, matrices = 1;
    struct transposition t = {
        .kernel = grd_kernels->transpose[grd_index_size(itemsize)],
        .to = to->data,
        .from = from->data,
        .rows = to->sizes[row],
        .columns = to->sizes[column],
        .to_stride = grd_byte_stride(to, row),
        .from_stride = grd_byte_stride(from, column),
        .itemsize = itemsize,
        .streamed = to->numel * itemsize >= STREAM_MIN && (uintptr_t)to->data % CACHE_LINE == 0,
    };
    for (int64_t i = 0; i < to->ndim; i++) {
        if (i != column && grd_byte_stride(to, i) % CACHE_LINE != 0)
            t.streamed = false;
        if (i == row || i == column)
            continue;
        t.sizes[t.n] = to->sizes[i];
        t.to_strides[t.n] = grd_byte_stride(to, i);
        t.from_strides[t.n++] = grd_byte_stride(from, i);
        matrices *= to->sizes[i];
    }
    t.high = at_most(t.rows, PAGE / itemsize);
    int64_t wide = TRANSPOSE_PIECE / itemsize / t.high;
    t.wide = at_most(t.columns, wide - wide % CACHE_LINE);
    t.down = (t.rows - 1) / t.high + 1;
    t.across = (t.columns - 1) / t.wide + 1;
    int64_t piece = t.high * t.wide * itemsize;
    grd_parallel_for(0, matrices * t.down * t.across, (TRANSPOSE_PIECE - 1) / piece + 1, transpose_pieces, &t);
    return true;
}

/* ---- Any strides ------------------------------------------------------------------------------------------------------------ */

static bool same_strides(const grd_tensor *a, const grd_tensor *b)
{
    for (int64_t i = 0; i < a->ndim; i++)
        if (a->sizes[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

/* How a result of the same dtype is to be written. Elements that are broadcast are read from the cache. */
static enum grd_stores stores_for(const grd_tensor *to, const grd_tensor *from)
{
    int64_t read = 1;
    for (int64_t i = 0; i < from->ndim; i++)
        read *= from->strides[i] == 0 ? 1 : from->sizes[i];
    return grd_stores_for((to->numel + read) * to->itemsize, 2, (char *const[]){to->data, from->data});
}

void grd_copy_strided(grd_tensor *to, const grd_tensor *from)
{
    if (grd_pending() || to->numel == 0 || grd_is_meta(to))
        return;
    if (to->dtype == from->dtype) {
        if (to->data == from->data && same_strides(to, from))
            return;
        if (covers_block(to) && same_strides(to, from)) {
            grd_copy_block(block_start(to), block_start(from), to->numel * to->itemsize);
            return;
        }
        if (copy_transposed(to, from))
            return;
    }
    int64_t strides[2][GRD_MAX_DIMS];
    for (int64_t i = 0; i < to->ndim; i++) {
        strides[0][i] = grd_byte_stride(to, i);
        strides[1][i] = grd_byte_stride(from, i);
    }
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(to), 2, (char *const[]){to->data, from->data}, (const int64_t *const[]){strides[0], strides[1]});
    const enum grd_stores stores = stores_for(to, from);
    grd_iter_run(&it, grd_cast_kernel(from->dtype, to->dtype), from->dtype == to->dtype ? &stores : NULL);
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
        int64_t standing[GRD_MAX_DIMS] = {0};
        const grd_tensor one = grd_part_of(t, (char *)(uintptr_t)element, t->sizes, standing);
        grd_copy_strided(t, &one);
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
    if (bytes <= GRD_COPY_GRAIN)
        fill_bytes(0, bytes, &fill);
    else
        grd_parallel_for(0, bytes, GRD_COPY_GRAIN, fill_bytes, &fill);
}

grd_tensor *grd_filled(grd_tensor *t, grd_scalar value)
{
    char element[16];
    if (grd_is_failed(t) || !grd_scalar_write(value, t->dtype, element))
        return grd_failed;
    grd_fill_elements(t, element);
    return t;
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

/* ---- copy, fill, zero --------------------------------------------------------------------------------------------------------- */

/* `src` broadcast to the sizes of `self`. */
static grd_tensor *broadcast_source(grd_tensor *self, grd_tensor *src)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    if (grd_same_sizes(src, grd_sizes(self)))
        return src;
    if (!grd_shape_broadcast(grd_sizes(self), grd_sizes(src), sizes, &n))
        return grd_failed;
    if (!grd_same_sizes(self, grd_dims_from(sizes, n)))
        return grd_fail(GRD_ERROR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s", grd_list_text(grd_sizes(self)),
                        grd_list_text(grd_dims_from(sizes, n)));
    return op_expand(src, grd_sizes(self));
}

bool grd_check_convertible(grd_dtype from, grd_dtype to)
{
    return grd_cast_kernel(from, to) != NULL
               ? true
               : grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "no conversion from %s to %s", grd_dtype_name(from), grd_dtype_name(to));
}

/* Copies between any two devices are planned: the run does not ask where its operands lie. */
static bool check_copy(struct grd_plan *p, grd_tensor *src, grd_device device, grd_dtype dtype)
{
    p->device = device;
    p->any_device = true;
    if (src->device == GRD_DEVICE_META && device.type != GRD_DEVICE_META)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    return grd_check_convertible((grd_dtype)src->dtype, dtype);
}

bool grd_may_share_bytes(const grd_tensor *a, const grd_tensor *b)
{
    int64_t a_low, a_high, b_low, b_high;
    const bool borrowed = a->storage->release != NULL && b->storage->release != NULL;
    if ((a->storage != b->storage && !borrowed) || a->numel == 0 || b->numel == 0)
        return false;
    if (!grd_shape_extent(grd_sizes(a), a->strides, &a_low, &a_high) || !grd_shape_extent(grd_sizes(b), b->strides, &b_low, &b_high))
        return true;
    return a->data + a_low * a->itemsize < b->data + (b_high + 1) * b->itemsize &&
           b->data + b_low * b->itemsize < a->data + (a_high + 1) * a->itemsize;
}

/* Between devices, or on one from outside: bytes where they lie alike, otherwise by way of the cpu. */
static void copy_between(grd_tensor *to, grd_tensor *from)
{
    const bool one_way = to->device == from->device || to->device == GRD_DEVICE_CPU || from->device == GRD_DEVICE_CPU;
    const bool alike = to->dtype == from->dtype && same_strides(to, from) && covers_block(to);
    if (one_way && alike && !grd_may_share_bytes(to, from)) {
        grd_transfer(to, from);
        return;
    }
    from = grd_on_cpu(from);
    grd_tensor *staged = to;
    if (to->device != GRD_DEVICE_CPU)
        staged = grd_new_strided(grd_sizes(to), grd_strides(to), to->dtype, GRD_CPU);
    grd_copy_strided(staged, from);
    if (staged != to && !grd_pending())
        grd_transfer(to, staged);
}

/* Writes what is read to the result. */
void run_elements(const struct grd_plan *p)
{
    if (grd_is_extra(p->device) || grd_is_extra(grd_device_of(p->in[0])))
        copy_between(p->results[0], p->in[0]);
    else
        grd_copy_strided(p->results[0], p->in[0]);
}

bool plan_copy(struct grd_plan *p, grd_tensor *self, grd_tensor *src, bool non_blocking)
{
    (void)non_blocking;
    p->any_strides = p->aligned = p->repeats = true;
    if (!check_copy(p, src, grd_device_of(self), (grd_dtype)self->dtype) || !grd_check_no_internal_overlap(self))
        return false;
    /* Of memory with gaps PyTorch does not ask how it overlaps. */
    if (covers_block(self) && covers_block(src) && !grd_check_no_partial_overlap(self, src))
        return false;
    grd_tensor *from = broadcast_source(self, src);
    return !grd_pending() && grd_plan_reads(p, from) && grd_plan_result(p, grd_sizes(self), (grd_dtype)self->dtype);
}

/* The element, of the result's dtype, is the state. */
bool plan_fill(struct grd_plan *p, grd_tensor *self, grd_scalar value)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    p->device = grd_device_of(self);
    p->any_strides = p->repeats = true;
    return grd_scalar_write(value, dtype, p->state) && grd_plan_like(p, self, dtype);
}

/* ---- Shortcuts: the two halves in one, without a plan, on the cpu ----------------------------------------------------------------------- */

grd_tensor *shortcut_fill(grd_tensor *out, grd_tensor *self, grd_scalar value)
{
    return self->device != GRD_DEVICE_CPU ? NULL : grd_filled(out != NULL ? out : grd_new_like(self, GRD_DTYPE_NONE), value);
}

/* Memory that is not shared holds no part of another tensor's. */
grd_tensor *shortcut_copy(grd_tensor *out, grd_tensor *self, grd_tensor *src, bool non_blocking)
{
    (void)non_blocking;
    const bool contiguous = (self->flags & src->flags & GRD_FLAG_CONTIGUOUS) != 0,
               same = self->dtype == src->dtype && self->dtype <= GRD_COMPLEX128;
    if (!contiguous || !same || self->device != GRD_DEVICE_CPU || src->device != GRD_DEVICE_CPU || grd_may_share_bytes(self, src) ||
        !grd_same_sizes(src, grd_sizes(self)))
        return NULL;
    grd_copy_block(out->data, src->data, src->numel * src->itemsize);
    return out;
}

static grd_tensor *shortcut_like(grd_tensor *self, grd_dtype dtype)
{
    if (self->device != GRD_DEVICE_CPU || self->dtype > GRD_COMPLEX128 || dtype > GRD_COMPLEX128)
        return NULL;
    grd_tensor *result = grd_new_like(self, dtype);
    grd_copy_strided(result, self);
    return result;
}

grd_tensor *shortcut_clone(grd_tensor *self, const char *memory_format)
{
    return memory_format == NULL || strcmp(memory_format, "preserve") == 0 ? shortcut_like(self, (grd_dtype)self->dtype) : NULL;
}

grd_tensor *shortcut_to_copy(grd_tensor *self, grd_dtype dtype, grd_device device)
{
    const bool here = device.type == GRD_DEVICE_NONE || (device.type == self->device && device.index == self->device_index);
    return here && dtype != GRD_DTYPE_NONE ? shortcut_like(self, dtype) : NULL;
}

grd_tensor *op_fill_tensor(grd_tensor *out, grd_tensor *self, grd_tensor *value)
{
    if (value->ndim > 0)
        return grd_fail(GRD_ERROR_RUNTIME, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    const bool loses_imaginary =
        grd_dtype_is_complex(value->dtype) && !grd_dtype_is_complex(self->dtype); /* a number may not, a tensor may */
    if (value->device == GRD_DEVICE_CPU && !loses_imaginary) {
        const grd_scalar number = grd_scalar_read(value->data, value->dtype);
        return out != NULL ? grd_fill_(self, number) : grd_fill(self, number);
    }
    if (out == NULL)
        return grd_copy_(grd_empty_like(self), value);
    return grd_composite_finish(out, self, grd_expand(grd_to(value, .dtype = self->dtype, .device = grd_device_of(self)), grd_sizes(self)));
}

/* ---- clone, contiguous, to ------------------------------------------------------------------------------------------------------ */

bool plan_clone(struct grd_plan *p, grd_tensor *self, const char *memory_format)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    const enum grd_memory_format format = grd_memory_format_of(memory_format, GRD_FORMAT_PRESERVE, self->ndim);
    return format != GRD_FORMAT_FAILED && grd_check_convertible(dtype, dtype) && grd_plan_reads(p, self) &&
           grd_plan_in_format(p, self, format, dtype);
}

bool plan_hidden_restrided(struct grd_plan *p, grd_tensor *self, grd_dims strides)
{
    if (strides.n != self->ndim)
        return grd_raise(GRD_ERROR_RUNTIME, "dimensionality of sizes (%d) must match dimensionality of strides (%lld)", self->ndim,
                         (long long)strides.n);
    return grd_plan_reads(p, self) && grd_plan_strided(p, grd_sizes(self), strides.data, (grd_dtype)self->dtype);
}

grd_tensor *op_contiguous(grd_tensor *self, const char *memory_format)
{
    const enum grd_memory_format format = grd_memory_format_of(memory_format, GRD_FORMAT_CONTIGUOUS, self->ndim);
    if (format == GRD_FORMAT_FAILED)
        return grd_failed;
    if (grd_is_channels_last_format(format) ? grd_is_channels_last(self) : grd_is_contiguous(self))
        return self;
    if (format == GRD_FORMAT_PRESERVE)
        return grd_fail(GRD_ERROR_RUNTIME, "preserve memory format is unsupported by the contiguous operator");
    return grd_clone(self, .memory_format = memory_format != NULL ? memory_format : "contiguous");
}

grd_tensor *op_to(grd_tensor *self, grd_dtype dtype, grd_device device, bool copy)
{
    bool same_dtype = dtype == GRD_DTYPE_NONE || dtype == self->dtype;
    grd_device target = grd_device_of(self);
    if (device.type != GRD_DEVICE_NONE && !grd_device_resolve(device, &target))
        return grd_failed;
    if (!same_dtype || target.type != self->device || target.index != self->device_index)
        return grd_to_copy(self, .dtype = dtype, .device = device);
    return copy ? grd_clone(self) : self;
}

bool plan_to_copy(struct grd_plan *p, grd_tensor *self, grd_dtype dtype, grd_device device)
{
    grd_device target = grd_device_of(self);
    if (dtype == GRD_DTYPE_NONE)
        dtype = self->dtype;
    if (device.type != GRD_DEVICE_NONE && !grd_device_resolve(device, &target))
        return false;
    return check_copy(p, self, target, dtype) && grd_plan_reads(p, self) && grd_plan_like(p, self, dtype);
}
