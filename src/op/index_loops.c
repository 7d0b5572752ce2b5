/* Runs the nest of loops around the kernels of indexing operators, and reads and checks index tensors; see index_loops.h.
 *
 * Invariant: an element that is written several times is written by one thread in the order of the index, so results do not depend on the number of
 * threads. */
#include "op/index_loops.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "core/geometry.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/bytes.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "gen/uses/op/index_loops.h"
#include "op/sizes.h"
#include "core/iter.h"

enum {
    /* Number of elements (ELEMENTS_GRAIN), or of indices to check (CHECK_GRAIN), in a task. */
    ELEMENTS_GRAIN = 16 * 1024,
    CHECK_GRAIN = 128 * 1024,
    ROW_PIECE = 4096, /* number of elements of the innermost loop that are one unit of work */
    /* a row (all elements along the indexed dimension) of more than MOST_ROW bytes is not prefetched, because it may not stay in the L1 cache */
    MOST_ROW = 32 * 1024,
    /* rows are not prefetched if all rows together have at most NEAR bytes, because they stay in the L2 cache */
    NEAR = 512 * 1024,
    CACHE_LINE = 64,
    /* Smallest piece (elements of the innermost loop) if a unit of work runs through the whole indexed dimension. With smaller pieces, the calls of
     * kernels would take most of the time. */
    SHARED_PIECE = 512
};

/* ---- Indices ------------------------------------------------------------------------------------------------------------- */

bool grd_is_index_dtype(const grd_tensor *index)
{
    return index->dtype == GRD_INT64 || index->dtype == GRD_INT32;
}

bool grd_check_index_dtype(const grd_tensor *index)
{
    return grd_is_index_dtype(index) ||
           grd_raise(GRD_ERROR_RUNTIME, "Expected dtype int32/int64 for index but got: %s", grd_dtype_name(index->dtype));
}

bool grd_check_index_vector(const grd_tensor *index)
{
    return index->ndim <= 1 || grd_raise(GRD_ERROR_INDEX, "Index is supposed to be a vector, but got dim: %d with type: %s and size: %s",
                                         index->ndim, grd_dtype_name(index->dtype), grd_list_text(grd_sizes(index)));
}

bool grd_check_index_ndim(const grd_tensor *index, const grd_tensor *t, const char *what)
{
    int64_t a = index->ndim > 0 ? index->ndim : 1, b = t->ndim > 0 ? t->ndim : 1;
    return a == b || index->numel == 0 ||
           grd_raise(GRD_ERROR_RUNTIME, "Index tensor must have the same number of dimensions as %s tensor", what);
}

bool grd_read_indices(grd_tensor *index, struct grd_indices *ret)
{
    int64_t sizes[GRD_MAX_DIMS];
    for (int64_t i = 0; i < index->ndim; i++)
        sizes[i] = index->strides[i] == 0 && index->sizes[i] > 1 ? 1 : index->sizes[i];
    grd_dims shape = grd_dims_from(sizes, index->ndim);
    if (!grd_same_sizes(index, shape))
        index = grd_new_view(index, shape, grd_strides(index), index->offset);
    grd_tensor *contiguous = grd_pending() ? index : grd_contiguous_as(index, GRD_INT64);
    if (grd_pending())
        return false;
    ret->data = (const int64_t *)(const void *)contiguous->data;
    ret->stored = contiguous->numel;
    grd_shape_contiguous_strides(shape, ret->strides);
    for (int64_t i = 0; i < index->ndim; i++)
        ret->strides[i] = sizes[i] == 1 ? 0 : grd_wrapping_product(ret->strides[i], sizeof(int64_t));
    return true;
}

/* The context that grd_parallel_for passes to check_some. check_some sets `left` to true if an index lies outside the range [low, high). */
struct range {
    const int64_t *indices;
    int64_t low, high;
    atomic_bool left;
};

static void check_some(int64_t begin, int64_t end, void *context)
{
    struct range *r = context;
    if (grd_kernels->index->check(end - begin, r->indices + begin, r->low, r->high) >= 0)
        atomic_store_explicit(&r->left, true, memory_order_relaxed);
}

bool grd_indices_in_range(struct grd_indices *indices, int64_t low, int64_t high)
{
    struct range range = {.indices = indices->data, .low = low, .high = high};
    grd_parallel_for(0, indices->stored, CHECK_GRAIN, check_some, &range);
    if (range.left)
        indices->first_bad = indices->data[grd_kernels->index->check(indices->stored, indices->data, low, high)];
    return !range.left;
}

bool grd_raise_out_of_bounds(grd_error_code code, const struct grd_indices *indices, int64_t dim, int64_t size)
{
    return grd_raise(code, "index %lld is out of bounds for dimension %lld with size %lld", (long long)indices->first_bad, (long long)dim,
                     (long long)size);
}

/* ---- The loops ----------------------------------------------------------------------------------------------------------- */

/* True if dimensions i and i + 1 of the loops can be merged into one for all operands. */
static bool mergeable(const struct grd_indexed *x, int64_t i)
{
    if (x->in_order && (i == x->dim || i + 1 == x->dim))
        return false;
    for (int operand = 0; operand < GRD_OPERANDS; operand++)
        if (x->strides[operand][i] != x->strides[operand][i + 1] * x->sizes[i + 1])
            return false;
    return true;
}

static void drop_dimension(struct grd_indexed *x, int64_t dim)
{
    size_t rest = (size_t)(x->n - dim - 1) * sizeof *x->sizes;
    memmove(x->sizes + dim, x->sizes + dim + 1, rest);
    for (int operand = 0; operand < GRD_OPERANDS; operand++)
        memmove(x->strides[operand] + dim, x->strides[operand] + dim + 1, rest);
    x->n--;
    if (x->dim == dim)
        x->dim = -1;
    else if (x->dim > dim)
        x->dim--;
}

/* Reduces the number of loops: drops dimensions of size 1 and merges adjacent dimensions if the strides of all operands allow it. */
static void coalesce(struct grd_indexed *x)
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

/* Returns the dimension of the innermost loop, which is the last dimension unless that is short and another dimension is much longer. */
static int64_t choose_inner(const struct grd_indexed *x)
{
    int64_t best = x->n - 1;
    for (int64_t i = x->n - 2; i >= 0 && x->sizes[x->n - 1] < 8; i--)
        if (x->sizes[i] > 4 * x->sizes[best])
            best = i;
    return best;
}

/* A unit of work is a piece (a range of the elements) of the innermost loop at one position of the other loops. If elements must be visited in order
 * (x->in_order), a unit also runs through all positions along the indexed dimension. */
struct unit {
    char *data[GRD_OPERANDS]; /* address of each operand's first element in the innermost loop, for the position `at` */
    int64_t at[GRD_MAX_DIMS + 2], piece;
};

/* True if a unit of work stays at one position of dimension `dim`. A unit runs through several positions of the innermost loop's dimension and,
 * if elements must be visited in order, of the indexed dimension. */
static bool is_outer(const struct grd_indexed *x, int64_t dim)
{
    return dim != x->inner && !(x->in_order && dim == x->dim);
}

/* Sets *ret to the unit of work with the given number: the addresses of its operands, its position in the loops, and the number of its piece of
 * the innermost loop. */
static void find_unit(const struct grd_indexed *x, int64_t number, struct unit *ret)
{
    int64_t rest = number / x->pieces;
    ret->piece = number % x->pieces;
    memcpy(ret->data, x->data, sizeof ret->data);
    for (int64_t i = x->n - 1; i >= 0; i--) {
        if (!is_outer(x, i))
            continue;
        ret->at[i] = rest % x->sizes[i];
        rest /= x->sizes[i];
        for (int operand = 0; operand < GRD_OPERANDS; operand++)
            ret->data[operand] += ret->at[i] * x->strides[operand][i];
    }
}

/* Advances *u to the next unit of work by adding strides. The divisions of find_unit would take longer than the work itself if the unit is small. */
static void next_unit(const struct grd_indexed *x, struct unit *u)
{
    if (++u->piece < x->pieces)
        return;
    u->piece = 0;
    for (int64_t i = x->n - 1; i >= 0; i--) {
        if (!is_outer(x, i))
            continue;
        for (int operand = 0; operand < GRD_OPERANDS; operand++)
            u->data[operand] += x->strides[operand][i];
        if (++u->at[i] < x->sizes[i])
            return;
        for (int operand = 0; operand < GRD_OPERANDS; operand++)
            u->data[operand] -= x->sizes[i] * x->strides[operand][i];
        u->at[i] = 0;
    }
}

static void run_unit(const struct grd_indexed *x, const struct unit *u)
{
    const int64_t first = u->piece * x->piece, left = x->sizes[x->inner] - first, length = left < x->piece ? left : x->piece;
    char *data[GRD_OPERANDS];
    int64_t strides[GRD_OPERANDS];
    for (int operand = 0; operand < GRD_OPERANDS; operand++) {
        strides[operand] = x->strides[operand][x->inner];
        data[operand] = u->data[operand] + first * strides[operand];
    }
    if (x->row > 0)
        grd_kernels->index->prefetch(x->row, data[x->in_order ? GRD_RESULT : GRD_SOURCE]);
    const bool loops = x->in_order && x->dim >= 0 && x->dim != x->inner;
    for (int64_t k = loops ? x->sizes[x->dim] : 1; k > 0; k--) {
        x->kernel(length, data, strides, &x->step);
        for (int operand = 0; loops && operand < GRD_OPERANDS; operand++)
            data[operand] += x->strides[operand][x->dim];
    }
}

static void run_units(int64_t begin, int64_t end, void *context)
{
    const struct grd_indexed *x = context;
    struct unit u;
    find_unit(x, begin, &u);
    for (int64_t left = end - begin; left > 0; left--) {
        run_unit(x, &u);
        next_unit(x, &u);
    }
}

/* ---- Rows that are read ---------------------------------------------------------------------------------------------------- */

/* The arguments of read_rows, which copies rows of the source. A row is the contiguous elements of the innermost loop; the indices along dimension
 * `dim` of the loops select the rows. One call of the kernel copies all rows along `dim`. */
struct rows {
    const struct grd_indexed *x;
    int64_t dim;
};

/* Returns the last dimension of the loops along which the indices are contiguous and each index selects one row of the source. A row is the elements
 * of the innermost loop. Returns -1 if there is no such dimension, or if the loops do not copy contiguous rows. */
static int64_t find_rows(const struct grd_indexed *x)
{
    /* If elements of the result are contiguous, `size` is the size of an element, and the kernel is the one for this size. */
    const int64_t size = x->strides[GRD_RESULT][x->inner];
    const bool is_a_size = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
    const bool copies = !x->in_order && is_a_size && x->kernel == grd_kernels->index->gather[grd_index_size(size)];
    int64_t dim = copies && x->strides[GRD_SOURCE][x->inner] == size && x->strides[GRD_INDEX][x->inner] == 0 ? x->n - 1 : -1;
    while (dim >= 0 && (dim == x->inner || x->strides[GRD_INDEX][dim] != sizeof(int64_t) || x->strides[GRD_SOURCE][dim] != 0))
        dim--;
    return dim;
}

static void read_rows(int64_t begin, int64_t end, void *context)
{
    const struct rows *rows = context;
    const struct grd_indexed *x = rows->x;
    const int64_t size = x->sizes[rows->dim], to_stride = x->strides[GRD_RESULT][rows->dim];
    const int64_t bytes = x->sizes[x->inner] * x->strides[GRD_RESULT][x->inner];
    while (begin < end) {
        const int64_t first = begin % size, n = size - first < end - begin ? size - first : end - begin;
        char *data[GRD_OPERANDS];
        memcpy(data, x->data, sizeof data);
        for (int64_t i = x->n - 1, rest = begin / size; i >= 0; i--) {
            if (i == x->inner || i == rows->dim)
                continue;
            for (int operand = 0; operand < GRD_OPERANDS; operand++)
                data[operand] += rest % x->sizes[i] * x->strides[operand][i];
            rest /= x->sizes[i];
        }
        grd_kernels->bytes->gather_rows(&(struct grd_listed_rows){.n = n,
                                                                  .bytes = bytes,
                                                                  .to_stride = to_stride,
                                                                  .step = x->step,
                                                                  .to = data[GRD_RESULT] + first * to_stride,
                                                                  .from = data[GRD_SOURCE],
                                                                  .index = (const int64_t *)(const void *)data[GRD_INDEX] + first});
        begin += n;
    }
}

/* If the loops read contiguous rows of at most ROW_PIECE elements, reads all rows and returns true. A row is the elements of the innermost loop.
 * Otherwise returns false, and the caller runs the general loops, which divide long rows among threads. */
static bool run_rows(const struct grd_indexed *x)
{
    struct rows rows = {x, find_rows(x)};
    const int64_t length = x->sizes[x->inner];
    int64_t n = 1;
    if (rows.dim < 0 || length > ROW_PIECE)
        return false;
    for (int64_t i = 0; i < x->n; i++)
        n *= i == x->inner ? 1 : x->sizes[i];
    grd_parallel_for(0, n, ELEMENTS_GRAIN / length, read_rows, &rows);
    return true;
}

/* ---- All of them ----------------------------------------------------------------------------------------------------------- */

/* True if elements must be visited in order and the result has stride 0 along a dimension other than the indexed one. All positions along this
 * dimension write the same element, so one thread must run all positions. */
static bool is_repeated(const struct grd_indexed *x)
{
    for (int64_t i = 0; i < x->n; i++)
        if (x->in_order && i != x->dim && x->sizes[i] > 1 && x->strides[GRD_RESULT][i] == 0)
            return true;
    return false;
}

void grd_indexed_run(struct grd_indexed *x)
{
    for (int64_t i = 0; i < x->n; i++)
        if (x->sizes[i] == 0)
            return;
    coalesce(x);
    if (x->n == 0) {
        x->sizes[x->n++] = 1;
        for (int operand = 0; operand < GRD_OPERANDS; operand++)
            x->strides[operand][0] = 0;
    }
    x->inner = choose_inner(x);
    if (run_rows(x))
        return;
    bool one_piece = x->in_order && x->dim == x->inner, loops = x->in_order && x->dim >= 0 && !one_piece;
    int64_t length = x->sizes[x->inner], units = 1;
    /* If each unit of work visits all positions along the indexed dimension x->dim, the innermost dimension is divided into about 8 pieces of at
     * least SHARED_PIECE elements. It is one piece if it is the indexed dimension itself. In all other cases a piece has ROW_PIECE elements. */
    x->piece = one_piece ? length : loops ? (length / 8 > SHARED_PIECE ? length / 8 : SHARED_PIECE) : ROW_PIECE;
    x->pieces = (length - 1) / x->piece + 1;
    for (int64_t i = 0; i < x->n; i++)
        if (i != x->inner && !(loops && i == x->dim))
            units *= x->sizes[i];
    /* Rows accessed at random addresses are prefetched if most of a row is needed, because the hardware cannot predict these addresses. */
    if (x->dim != x->inner || x->row > MOST_ROW || length * CACHE_LINE < x->row || x->row * units <= NEAR)
        x->row = 0;
    int64_t work = (length < x->piece ? length : x->piece) * (loops ? x->sizes[x->dim] : 1);
    if (is_repeated(x)) {
        run_units(0, units * x->pieces, x);
        return;
    }
    grd_parallel_for(0, units * x->pieces, work < ELEMENTS_GRAIN ? ELEMENTS_GRAIN / work : 1, run_units, x);
}

void grd_indexed_operand(struct grd_indexed *x, int operand, const grd_tensor *t)
{
    x->data[operand] = t->data;
    for (int64_t i = 0; i < t->ndim; i++)
        x->strides[operand][i] = grd_byte_stride(t, i);
}

void grd_indexed_elements(struct grd_indexed *x, const grd_tensor *places, int operand, const grd_tensor *index,
                          const struct grd_indices *indices, int64_t dim)
{
    x->n = index->ndim;
    x->dim = index->ndim > 0 ? dim : -1;
    memcpy(x->sizes, index->sizes, index->ndim * sizeof *x->sizes);
    memcpy(x->strides[GRD_INDEX], indices->strides, index->ndim * sizeof *x->sizes);
    x->data[GRD_INDEX] = (char *)(uintptr_t)indices->data;
    grd_indexed_operand(x, operand, places);
    x->step = places->ndim > 0 ? grd_byte_stride(places, dim) : 0;
    x->row = x->step == places->itemsize ? places->sizes[dim] * x->step : 0;
    x->strides[operand][dim] = 0;
}

void grd_indexed_slices(struct grd_indexed *x, const grd_tensor *places, int operand, const struct grd_indices *indices, int64_t dim,
                        int64_t count)
{
    memset(x->strides, 0, sizeof x->strides);
    x->n = places->ndim > 0 ? places->ndim : 1;
    x->dim = dim;
    memcpy(x->sizes, places->sizes, places->ndim * sizeof *x->sizes);
    x->sizes[dim] = count;
    x->strides[GRD_INDEX][dim] = count == 1 ? 0 : (int64_t)sizeof(int64_t);
    x->data[GRD_INDEX] = (char *)(uintptr_t)indices->data;
    grd_indexed_operand(x, operand, places);
    x->step = places->ndim > 0 ? grd_byte_stride(places, dim) : 0;
    x->row = x->step == places->itemsize ? places->sizes[dim] * x->step : 0;
    x->strides[operand][dim] = 0;
}

/* ---- Kernels ------------------------------------------------------------------------------------------------------------- */

grd_loop_kernel *grd_kernel_of_size(grd_loop_kernel *const *kernels, const grd_tensor *t)
{
    return kernels[grd_index_size(t->itemsize)];
}

/* ---- Operators along one dimension ---------------------------------------------------------------------------------------- */

static struct grd_indexed_plan *indexed_of(const struct grd_plan *p)
{
    return (struct grd_indexed_plan *)(uintptr_t)p->state;
}

bool grd_plan_writes(struct grd_plan *p, const struct grd_indexed_plan *indexed, grd_tensor *self, grd_tensor *index, grd_tensor *source,
                     grd_dtype as)
{
    *indexed_of(p) = *indexed;
    indexed_of(p)->writes = p->any_strides = true;
    return grd_plan_starts_from(p, self) && grd_plan_reads(p, index) &&
           grd_plan_reads_as(p, source, as == self->dtype ? GRD_DTYPE_NONE : as) &&
           (indexed->keeps_layout ? grd_plan_like(p, self, (grd_dtype)self->dtype)
                                  : grd_plan_result(p, grd_sizes(self), (grd_dtype)self->dtype)) &&
           grd_plan_computed_in(p, as);
}

bool grd_plan_gathers(struct grd_plan *p, const struct grd_indexed_plan *indexed, grd_tensor *self, grd_tensor *index, grd_dims sizes)
{
    *indexed_of(p) = *indexed;
    p->any_strides = true;
    return grd_plan_reads(p, self) && grd_plan_reads(p, index) && grd_plan_result(p, sizes, (grd_dtype)self->dtype);
}

/* Replaces indices->data by a new list in which each negative index is replaced by index + size. False if memory runs out. */
static bool wrap_indices(struct grd_indices *indices, int64_t size)
{
    const int64_t step = (int64_t)sizeof *indices->data;
    grd_tensor *wrapped = grd_new_zeros(grd_dims(indices->stored), GRD_INT64, GRD_CPU);
    if (grd_is_failed(wrapped))
        return false;
    grd_kernels->index->add_offsets(indices->stored, (char *const[]){wrapped->data, (char *)(uintptr_t)indices->data},
                                    (const int64_t[]){step, step}, &(struct grd_indexed_dim){size, 1});
    indices->data = (const int64_t *)(const void *)wrapped->data;
    return true;
}

bool check_indexed(struct grd_plan *p)
{
    struct grd_indexed_plan *x = indexed_of(p);
    const int64_t size = grd_size_along(p->in[0], x->dim);
    if (x->unchecked)
        return true;
    if (!grd_read_indices(p->in[1], &x->indices))
        return false;
    if (!grd_indices_in_range(&x->indices, x->wraps ? -size : 0, size))
        return x->range_code == GRD_ERROR_NONE ? grd_raise(GRD_ERROR_INDEX, "index out of range in self")
                                               : grd_raise_out_of_bounds(x->range_code, &x->indices, x->dim, size);
    return !x->wraps || wrap_indices(&x->indices, size);
}

void run_indexed(const struct grd_plan *p)
{
    struct grd_indexed_plan *plan = indexed_of(p);
    const grd_tensor *self = plan->writes ? p->results[0] : p->in[0], *index = p->in[1];
    const int operand = plan->writes ? GRD_RESULT : GRD_SOURCE;
    struct grd_indexed x = {.kernel = plan->kernel, .in_order = plan->writes, .data[GRD_SOURCE] = plan->element};
    if (plan->slices)
        grd_indexed_slices(&x, self, operand, &plan->indices, plan->dim, index->numel);
    else
        grd_indexed_elements(&x, self, operand, index, &plan->indices, plan->dim);
    if (!plan->writes)
        grd_indexed_operand(&x, GRD_RESULT, p->results[0]);
    else if (p->in[2] != NULL)
        grd_indexed_operand(&x, GRD_SOURCE, p->in[2]);
    if (plan->slices && plan->indices.stored == 1)
        x.strides[GRD_INDEX][plan->dim] = 0;
    grd_indexed_run(&x);
}

/* ---- What is written ----------------------------------------------------------------------------------------------------- */

static bool is_expanded(const grd_tensor *t)
{
    for (int i = 0; i < t->ndim; i++)
        if (t->strides[i] == 0 && t->sizes[i] > 1)
            return true;
    return false;
}

bool grd_check_repeated_out(const grd_tensor *out, const char *name, const char *example)
{
    if (out == NULL || !is_expanded(out))
        return out == NULL || grd_check_no_internal_overlap(out);
    char text[256];
    snprintf(text, sizeof text,
             "Use of %s on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
             "This also applies to advanced indexing e.g. %s",
             name, example);
    return grd_warn(text);
}

bool grd_check_indexed_out(const grd_tensor *out, grd_tensors read)
{
    return out == NULL || (grd_check_no_internal_overlap(out) && grd_check_no_overlaps(out, read));
}

bool grd_check_no_overlaps(const grd_tensor *out, grd_tensors read)
{
    if (out == NULL)
        return true;
    for (int64_t i = 0; i < read.n; i++)
        if (read.data[i] != NULL && !grd_check_no_overlap(out, read.data[i]))
            return false;
    return true;
}
