/* Copies, converts and fills the memory of tensors. The operators are in conversion.c and creation.c.
 *
 * Contiguous blocks and transpositions have fast paths here. Conversions between dtypes use the kernels of the cast table. Invariant: the caller has
 * checked that the tensors may be written. */
#include "op/copy.h"

#include <string.h>

#include "base/parallel.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/iter.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/bytes.h"
#include "kernel/index.h"
#include "kernel/map.h"
#include "op/sizes.h"

enum {
    PATTERN_BYTES = 2048,         /* bytes of the pattern from which memory is filled; a multiple of every element size */
    TRANSPOSE_MIN = 8,            /* minimum rows and columns for blocked transposition; smaller matrices are not worth the overhead */
    TRANSPOSE_PIECE = 256 * 1024, /* bytes that one call of a transposition kernel copies */
    PAGE = 4096,                  /* largest number of contiguous bytes of the source that a transposition kernel reads at a time */
    CACHE_LINE = 64,
    /* transposed results with at least this many bytes do not fit into the caches and are written with streaming stores */
    STREAM_MIN = 8 * 1024 * 1024
};

/* Returns the lowest address of a dense tensor. With negative strides it is below t->data. */
static char *block_start(const grd_tensor *t)
{
    int64_t back = 0;
    for (int64_t i = 0; i < t->ndim; i++)
        if (t->strides[i] < 0)
            back += (t->sizes[i] - 1) * t->strides[i];
    return t->data + back * t->itemsize;
}

/* ---- One block --------------------------------------------------------------------------------------------------------- */

/* The context that grd_parallel_for passes to copy_bytes. */
struct block_copy {
    char *to;
    const char *from;
    bool past; /* true to write with streaming stores, which bypass the caches */
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

/* The context that grd_parallel_for passes to fill_bytes. */
struct block_fill {
    char *to;
    const char *pattern; /* PATTERN_BYTES bytes to repeat; NULL to write zeros */
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

/* Describes the transposition of many matrices. Rows of a matrix of `to` are columns of the matrix of `from`. */
struct transposition {
    grd_transpose_kernel *kernel;
    char *to;
    const char *from;
    /* A matrix of `to` is rows x columns. Its rows are to_stride bytes apart. The columns of the matrix of `from` are from_stride bytes apart. */
    int64_t rows, columns, to_stride, from_stride;
    /* One kernel call transposes a piece of at most `high` rows and `wide` columns. A matrix is divided into `down` pieces from top to
     * bottom and `across` pieces from left to right. */
    int64_t high, wide, down, across;
    int64_t itemsize;
    bool streamed;
    /* There is one matrix for each index of the n other dimensions. `sizes` holds the sizes of these dimensions, to_strides and from_strides their
     * strides in bytes. */
    int64_t n, sizes[GRD_MAX_DIMS], to_strides[GRD_MAX_DIMS], from_strides[GRD_MAX_DIMS];
};

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
        t->kernel(grd_least(t->rows - row, t->high), grd_least(t->columns - column, t->wide), to, t->to_stride, from, t->from_stride,
                  t->streamed);
    }
}

/* Returns the dimension of `t` that has stride 1 and at least TRANSPOSE_MIN elements; -1 if there is none. */
static int64_t innermost(const grd_tensor *t)
{
    for (int64_t i = t->ndim - 1; i >= 0; i--)
        if (t->strides[i] == 1 && t->sizes[i] >= TRANSPOSE_MIN)
            return i;
    return -1;
}

/* If `to` and `from` have different innermost dimensions, copies by transposition and returns true. Otherwise returns false. */
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
    t.high = grd_least(t.rows, PAGE / itemsize);
    int64_t wide = TRANSPOSE_PIECE / itemsize / t.high;
    t.wide = grd_least(t.columns, wide - wide % CACHE_LINE);
    t.down = (t.rows - 1) / t.high + 1;
    t.across = (t.columns - 1) / t.wide + 1;
    int64_t piece = t.high * t.wide * itemsize;
    grd_parallel_for(0, matrices * t.down * t.across, (TRANSPOSE_PIECE - 1) / piece + 1, transpose_pieces, &t);
    return true;
}

/* ---- Any strides ------------------------------------------------------------------------------------------------------------ */

bool grd_have_same_strides(const grd_tensor *a, const grd_tensor *b)
{
    for (int64_t i = 0; i < a->ndim; i++)
        if (a->sizes[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

/* Chooses the kind of stores for a copy of `from` to `to`, which have the same dtype. Streaming stores bypass the caches and are chosen if the two
 * tensors do not fit into the caches. An element of `from` that is broadcast counts once, because it stays in a cache. */
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
        if (to->data == from->data && grd_have_same_strides(to, from))
            return;
        if (grd_is_dense(to) && grd_have_same_strides(to, from)) {
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
    if (!grd_is_dense(t)) {
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

bool grd_check_convertible(grd_dtype from, grd_dtype to)
{
    return grd_cast_kernel(from, to) != NULL
               ? true
               : grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "no conversion from %s to %s", grd_dtype_name(from), grd_dtype_name(to));
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

/* ---- clone, contiguous, to ------------------------------------------------------------------------------------------------------ */

grd_tensor grd_spread(const grd_tensor *t, const grd_tensor *to, int64_t *strides)
{
    grd_tensor part = *t;
    for (int64_t i = to->ndim - 1, own = (int64_t)t->ndim - 1; i >= 0; i--, own--)
        strides[i] = own < 0 || t->sizes[own] == 1 ? 0 : t->strides[own];
    part.flags = 0;
    part.ndim = to->ndim;
    part.sizes = to->sizes;
    part.strides = strides;
    part.numel = to->numel;
    return part;
}

bool grd_is_same_view(const grd_tensor *a, const grd_tensor *b)
{
    return a == b || (a->data == b->data && a->dtype == b->dtype && grd_same_sizes(a, grd_sizes(b)) &&
                      memcmp(a->strides, b->strides, a->ndim * sizeof *a->strides) == 0);
}

bool grd_copy_elements(grd_tensor *to, const grd_tensor *from)
{
    int64_t strides[GRD_MAX_DIMS];
    if (grd_is_meta(to) || to->numel == 0)
        return true;
    if (grd_cast_kernel(from->dtype, to->dtype) == NULL)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"copy_\" not implemented for '%s' to '%s'", grd_dtype_type_name(from->dtype),
                         grd_dtype_type_name(to->dtype));
    if (grd_may_share_bytes(to, from) && !grd_is_same_view(to, from)) /* otherwise elements could be overwritten before they are read */
        from = grd_clone_contiguous(from, from->dtype);
    if (grd_pending())
        return false;
    const grd_tensor part = grd_same_sizes(from, grd_sizes(to)) ? *from : grd_spread(from, to, strides);
    grd_copy_strided(to, &part);
    return true;
}

grd_tensor *grd_clone_contiguous(const grd_tensor *t, grd_dtype dtype)
{
    grd_tensor *copy = grd_new(grd_sizes(t), dtype == GRD_DTYPE_NONE ? (grd_dtype)t->dtype : dtype, grd_device_of(t));
    if (grd_pending())
        return grd_failed;
    return grd_copy_elements(copy, t) ? copy : grd_failed;
}

grd_tensor *grd_contiguous_as(grd_tensor *t, grd_dtype dtype)
{
    if (grd_has(t, GRD_FLAG_CONTIGUOUS) && (dtype == GRD_DTYPE_NONE || t->dtype == dtype))
        return t;
    return grd_clone_contiguous(t, dtype);
}
