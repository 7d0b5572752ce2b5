/* Implements torch._fft_c2c, _fft_r2c and _fft_c2r: checks, plans, and the loop over the lines along each dimension (a line is the elements along one
 * dimension). The transform of a line, or of several in vector lanes, is in op/fft_passes.c. The functions of torch.fft are formulas over these three
 * operators. Schema: schema/fft.toml.
 *
 * Invariant: the transform of a line is bit for bit the same whatever the other lines, the strides and the number of threads are. */
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/fft.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/fft_passes.h"
#include "op/formula.h"
#include "op/plan.h"
#include "op/fft_tables.h"

enum {
    /* lines of at most this length are always transformed in lanes (one line per vector lane), even a single one */
    SHORT_LINE = 48,
    LONGEST_BATCHED = 1024,  /* longest contiguous line that is transformed in vector lanes; a longer one is transformed by itself */
    LONGEST_IN_LANES = 4096, /* longest line that is transformed in vector lanes if its elements are not contiguous */
    NEAR_BYTES = 1 << 15,    /* a group of lines, one per vector lane, stays in the L1 cache if it has at most this number of bytes */
    SHARED_LINE = 1 << 14,   /* least number of elements of a line that several threads share */
    PIECE_WORK = 1 << 14,    /* least number of elements of a task */
    /* Largest number of tasks per thread. */
    PIECES_OF_THREAD = 4,
    /* Limit on the bytes of a block of items. An item is the input of one multidimensional transform. Each block passes through all steps before
     * the next block begins, so a block should fit into a core's cache. */
    BLOCK_BYTES = 1 << 19
};

enum direction {
    TO_COMPLEX, /* from complex or real numbers to complex numbers */
    TO_HALF,    /* from n real numbers to the first n / 2 + 1 elements of their transform */
    FROM_HALF   /* from the first n / 2 + 1 elements of a transform to n real numbers */
};

/* One step of a transform along several dimensions: the transform of all lines along dimension `dim`. A line is the elements along a dimension. */
struct step {
    grd_tensor *from, *to;
    enum direction direction;
    bool is_inverse, in_lanes;
    int dim;
    /* Length of the transform. For TO_HALF and FROM_HALF this is the number of real numbers. */
    int64_t n;
    double scale;
    const struct grd_fft_node *node; /* tables for a transform of n elements or, if n is even and input or result is real, of n / 2 */
    /* Table of the roots of unity that turn the transform of n / 2 complex numbers into that of n real numbers, or back. NULL if `node` is for n
     * elements. */
    const struct grd_fft_node *real;
    /* `lines` is the number of lines. Either they are divided among `pieces` tasks (then parts is 1), or each line is shared by `parts` tasks
     * (then pieces is 1). */
    int64_t lines, pieces, parts;
    /* Bytes of scratch memory of each of the `pieces` tasks. */
    int64_t piece_bytes;
};

/* A transform along several dims, as the plan functions hand it to run_fft. If the input or the result is real, the step along the last of `dims`
 * converts from or to real numbers. */
struct request {
    enum direction direction;
    bool is_inverse;
    int ndims, nsteps;
    uint8_t dims[GRD_MAX_DIMS];
    int64_t n; /* length of the transform along the last dim */
    int64_t normalization;
    struct step *steps;
    /* An item is the input of one transform along all of `dims`. There are `items` items, in blocks of `block` items. Each block passes through
     * all steps before the next block begins, so that the block stays in the cache. */
    int64_t items, block;
    int64_t tasks; /* number of tasks among which the blocks are divided */
    int64_t task_bytes;
};

/* ---- Plans ----------------------------------------------------------------------------------------------------------------------------- */

/* Sizes and strides of a result. */
struct layout {
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};

/* Sorts dims by falling stride. Dims with equal strides keep their order. */
static void sort_by_stride(const int64_t *strides, uint8_t *dims, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && strides[dims[j]] > strides[dims[j - 1]]; j--) {
            const uint8_t moved = dims[j];
            dims[j] = dims[j - 1];
            dims[j - 1] = moved;
        }
}

/* Takes the input's sizes and strides in *layout and replaces them by those of the result of transforms along the n dimensions `dims`, as in PyTorch.
 * In the result, `dims` are innermost, and all other dimensions follow in the order of their strides. The last of `dims` gets `last` elements. */
static void lay_out(struct layout *layout, int ndim, const uint8_t *dims, int n, int64_t last)
{
    uint8_t order[GRD_MAX_DIMS];
    int outer = 0;
    for (int d = 0; d < ndim; d++)
        if (memchr(dims, d, (size_t)n) == NULL)
            order[outer++] = (uint8_t)d;
    sort_by_stride(layout->strides, order, outer);
    memcpy(order + outer, dims, (size_t)n);
    layout->sizes[dims[n - 1]] = last;
    uint64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        layout->strides[order[i]] = (int64_t)stride;
        stride *= (uint64_t)grd_greatest(layout->sizes[order[i]], i < outer ? 0 : 1);
    }
}

static bool read_dims(struct request *r, const grd_tensor *self, grd_dims dim)
{
    bool seen[GRD_MAX_DIMS] = {false};
    r->ndims = (int)dim.n;
    if (dim.n > self->ndim)
        return grd_raise(GRD_ERROR_RUNTIME, "FFT dims must be unique");
    for (int64_t i = 0; i < dim.n; i++) {
        int64_t d;
        if (!grd_wrap_dim(self, dim.data[i], &d))
            return false;
        if (self->ndim == 0)
            return grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim.data[i]);
        if (seen[d])
            return grd_raise(GRD_ERROR_RUNTIME, "FFT dims must be unique");
        seen[d] = true;
        r->dims[i] = (uint8_t)d;
        if (self->sizes[d] < 1)
            return grd_raise(GRD_ERROR_RUNTIME, "Invalid number of data points (%lld) specified", (long long)self->sizes[d]);
    }
    return true;
}

static bool prepare(struct grd_plan *p);

/* Plans the result with dtype `dtype`, whose last transformed dimension has `last` elements (-1: as many as `self`), and plans to read `self`. */
static bool plan_transform(struct grd_plan *p, grd_tensor *self, grd_dtype dtype, int64_t last)
{
    const struct request *r = (const struct request *)p->state;
    struct layout layout;
    uint8_t sorted[GRD_MAX_DIMS];
    int64_t numel;
    const int n = r->ndims, before = n - (r->direction != TO_COMPLEX || dtype != self->dtype);
    memcpy(layout.sizes, self->sizes, (size_t)self->ndim * sizeof *layout.sizes);
    memcpy(layout.strides, self->strides, (size_t)self->ndim * sizeof *layout.strides);
    memcpy(sorted, r->dims, (size_t)n);
    sort_by_stride(layout.strides, sorted, before);
    if (r->direction == FROM_HALF && n > 1)
        lay_out(&layout, self->ndim, sorted, n - 1, layout.sizes[sorted[n - 2]]);
    if (r->direction == FROM_HALF)
        lay_out(&layout, self->ndim, r->dims + n - 1, 1, last);
    else
        lay_out(&layout, self->ndim, sorted, n, last < 0 ? layout.sizes[sorted[n - 1]] : last);
    const grd_dims sizes = grd_dims_from(layout.sizes, self->ndim);
    p->any_strides = true;
    p->prepare = prepare;
    return grd_shape_numel(sizes, &numel) && grd_plan_reads(p, self) && grd_plan_strided(p, sizes, layout.strides, dtype);
}

/* True if there are kernels for `dtype`. Raises RuntimeError otherwise. */
static bool check_kernels(grd_dtype dtype)
{
    const grd_dtype real = grd_dtype_to_real(dtype);
    return grd_kernels->fft[real] != NULL ||
           grd_raise(GRD_ERROR_RUNTIME, "MKL FFT doesn't support tensors of type: %s", grd_dtype_type_name(real));
}

static bool check_complex(const grd_tensor *self)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (!grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "Only supports complex dtypes, but found: %s", grd_dtype_type_name(dtype));
    return check_kernels(dtype);
}

static struct request *open_request(struct grd_plan *p, enum direction direction, bool is_inverse, int64_t normalization)
{
    struct request *r = (struct request *)p->state;
    *r = (struct request){.direction = direction, .is_inverse = is_inverse, .normalization = normalization};
    return r;
}

bool plan_hidden_fft_c2c(struct grd_plan *p, grd_tensor *self, grd_dims dim, int64_t normalization, bool forward)
{
    struct request *r = open_request(p, TO_COMPLEX, !forward, normalization);
    if (!check_complex(self) || !read_dims(r, self, dim))
        return false;
    if (r->ndims == 0)
        return grd_plan_starts_from(p, self) && grd_plan_like(p, self, (grd_dtype)self->dtype);
    r->n = self->sizes[r->dims[r->ndims - 1]];
    return plan_transform(p, self, (grd_dtype)self->dtype, -1);
}

bool plan_hidden_fft_r2c(struct grd_plan *p, grd_tensor *self, grd_dims dim, int64_t normalization, bool onesided)
{
    struct request *r = open_request(p, onesided ? TO_HALF : TO_COMPLEX, false, normalization);
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (!grd_dtype_is_floating(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "Only supports floating-point dtypes, but found: %s", grd_dtype_type_name(dtype));
    if (!check_kernels(dtype))
        return false;
    if (dim.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "_fft_r2c must transform at least one axis");
    if (!read_dims(r, self, dim))
        return false;
    r->n = self->sizes[r->dims[r->ndims - 1]];
    return plan_transform(p, self, grd_dtype_to_complex(dtype), onesided ? r->n / 2 + 1 : r->n);
}

bool plan_hidden_fft_c2r(struct grd_plan *p, grd_tensor *self, grd_dims dim, int64_t normalization, int64_t last_dim_size)
{
    struct request *r = open_request(p, FROM_HALF, true, normalization);
    if (!check_complex(self))
        return false;
    if (dim.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "_fft_c2r must transform at least one axis");
    if (!read_dims(r, self, dim))
        return false;
    const int last = r->dims[r->ndims - 1];
    if (last_dim_size < 1)
        return grd_raise(GRD_ERROR_RUNTIME, "Invalid number of data points (%lld) specified", (long long)last_dim_size);
    if (self->sizes[last] <= last_dim_size / 2)
        return grd_raise(GRD_ERROR_RUNTIME, "_fft_c2r: %lld elements along dimension %d are too few for a result of %lld",
                         (long long)self->sizes[last], last, (long long)last_dim_size);
    r->n = last_dim_size;
    return plan_transform(p, self, grd_dtype_to_real((grd_dtype)self->dtype), last_dim_size);
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------------------------- */

/* Returns 2 for a complex dtype, 1 for a real one. */
static int64_t parts_of(const grd_tensor *t)
{
    return grd_dtype_is_complex((grd_dtype)t->dtype) ? 2 : 1;
}

/* True if the n real numbers of a line are transformed as n / 2 complex ones. */
static bool is_halved(const struct step *s)
{
    return s->direction != TO_COMPLEX && s->n % 2 == 0;
}

/* Returns the length of the complex transform that is computed for a line: n / 2 if the n real numbers are transformed as n / 2 complex ones,
 * otherwise n. */
static int64_t length_of(const struct step *s)
{
    return is_halved(s) ? s->n / 2 : s->n;
}

/* True if it is faster to transform several lines at once, one per vector lane, than one line after the other. */
static bool goes_in_lanes(const struct step *s)
{
    const struct grd_fft_node *node = s->node;
    const int64_t n = length_of(s), lanes = node->row->lanes;
    if (n <= SHORT_LINE || s->lines < lanes / 2)
        return n <= SHORT_LINE;
    if (s->from->strides[s->dim] != 1 || s->to->strides[s->dim] != 1)
        return n <= LONGEST_IN_LANES;
    /* A line that is transformed alone is split into an a x b matrix. This is fast if a and b are multiples of the number of lanes, because the
     * matrix fills whole vectors. In this case, several lines are transformed together only if they stay in the L1 cache. The limit
     * on their bytes is half as large for complex lines, because a complex line loses less time than a real line if it is transformed alone. */
    const bool is_full = node->inner == NULL && node->a % lanes == 0 && node->b % lanes == 0;
    return n <= LONGEST_BATCHED && !(is_full && (is_halved(s) ? 1 : 2) * grd_fft_lanes_bytes(node->row, n) > NEAR_BYTES);
}

/* Returns the number of tasks for a transform of `work` elements along one dimension. It is at most `most`. */
static int64_t pieces_of(double work, int64_t most)
{
    const int threads = grd_num_threads();
    return threads == 1 ? 1 : grd_greatest(1, (int64_t)fmin(fmin(work / PIECE_WORK, (double)most), PIECES_OF_THREAD * threads));
}

/* Looks up or computes the tables of a step (the transform along one dimension), and decides the number of its tasks and their scratch memory.
 * Returns false if memory runs out. */
static bool set_up(struct step *s)
{
    const grd_dtype dtype = grd_dtype_to_real((grd_dtype)s->to->dtype);
    const struct grd_fft_row *row = grd_kernels->fft[dtype];
    const int64_t n = length_of(s);
    s->lines = s->to->numel / s->to->sizes[s->dim];
    s->node = grd_fft_node(n <= SHORT_LINE ? GRD_FFT_SHORT : GRD_FFT_LONG, n, dtype);
    s->real = is_halved(s) && s->node != NULL ? grd_fft_node(GRD_FFT_REAL, s->n, dtype) : NULL;
    if (s->node == NULL || (is_halved(s) && s->real == NULL))
        return false;
    s->in_lanes = goes_in_lanes(s);
    const double work = (double)s->lines * (double)n;
    s->parts = 1;
    if (s->in_lanes) {
        s->pieces = pieces_of(work, grd_ceil_div(s->lines, row->lanes));
        s->piece_bytes = 2 * grd_fft_lanes_bytes(row, grd_greatest(grd_fft_lanes_room(s->node), n + 1));
    } else {
        const bool is_shared = n >= SHARED_LINE && s->lines < 2 * grd_num_threads();
        s->pieces = is_shared ? 1 : pieces_of(work, s->lines);
        s->parts = is_shared ? pieces_of(work, INT64_MAX) : 1;
        s->piece_bytes =
            grd_fft_line_bytes(s->node, s->parts) + (s->direction == FROM_HALF ? grd_fft_lanes_bytes(row, n / row->lanes + 1) : 0);
    }
    return true;
}

/* Appends to the request a step that transforms `from` along dimension `dim` to `to`, and sets up the step. Returns false if memory runs out. */
static bool add_step(struct request *r, enum direction direction, grd_tensor *from, grd_tensor *to, int dim, int64_t n)
{
    struct step *s = &r->steps[r->nsteps++];
    *s = (struct step){.from = from, .to = to, .direction = direction, .is_inverse = r->is_inverse, .dim = dim, .n = n, .scale = 1};
    return set_up(s);
}

/* Adds one step (the complex transform along one dimension) for each of r->dims except the last, from the last but one down to the first. The first
 * of these steps reads `from`, the others read `to`, and all write `to`. Returns false if memory runs out. */
static bool add_others(struct request *r, grd_tensor *from, grd_tensor *to)
{
    bool is_right = true;
    for (int i = r->ndims - 2; i >= 0 && is_right; i--, from = to)
        is_right = add_step(r, TO_COMPLEX, from, to, r->dims[i], to->sizes[r->dims[i]]);
    return is_right;
}

/* Writes to ret_order all dimensions except s->dim that have more than one element, and returns their number. The dimensions are sorted by falling
 * stride. The lines of the step are numbered in row-major order of these dimensions. */
static int order_of(const struct step *s, uint8_t ret_order[GRD_MAX_DIMS])
{
    int n = 0;
    for (int d = 0; d < s->to->ndim; d++)
        if (d != s->dim && s->to->sizes[d] > 1)
            ret_order[n++] = (uint8_t)d;
    sort_by_stride(s->from->strides, ret_order, n);
    return n;
}

/* True if all steps process the items one after the other and in the same order, where an item is the input of one transform along all of r->dims.
 * Otherwise a block of items cannot pass through all steps before the next block begins. */
static bool come_by_items(const struct request *r)
{
    uint8_t first[GRD_MAX_DIMS], order[GRD_MAX_DIMS];
    const int along = order_of(r->steps, first);
    int64_t items = 1;
    int n = 0;
    for (; n < along && memchr(r->dims, first[n], (size_t)r->ndims) == NULL; n++)
        items *= r->steps->to->sizes[first[n]];
    bool is_same = items == r->items;
    for (int i = 1; i < r->nsteps; i++)
        is_same = is_same && order_of(&r->steps[i], order) >= n && memcmp(first, order, (size_t)n) == 0;
    return is_same;
}

/* Divides the items into blocks, where an item is the input of one transform along all of r->dims. All items are one block if there is only one step,
 * if the blocks would not keep all threads busy, or if the steps process the items in different orders. */
static void divide(struct request *r)
{
    const grd_tensor *made = r->steps->to;
    const int threads = grd_num_threads();
    int64_t elements = 1;
    for (int i = 0; i < r->ndims; i++)
        elements *= made->sizes[r->dims[i]];
    r->items = made->numel / elements;
    r->block = grd_greatest(1, BLOCK_BYTES / (elements * made->itemsize));
    r->tasks = 1;
    const int64_t blocks = grd_ceil_div(r->items, r->block);
    if (r->nsteps < 2 || (threads > 1 && blocks < 2 * threads) || !come_by_items(r)) {
        r->block = r->items;
    } else if (blocks > 1) {
        r->tasks = pieces_of((double)made->numel, blocks);
        for (int i = 0; i < r->nsteps; i++)
            r->steps[i].pieces = 1;
    }
}

static bool prepare(struct grd_plan *p)
{
    struct request *r = (struct request *)p->state;
    grd_tensor *const from = p->in[0], *const to = p->results[0];
    const int last = r->dims[r->ndims - 1];
    if (to->numel == 0)
        return true;
    r->steps = grd_pool_array(r->ndims, sizeof *r->steps);
    if (r->steps == NULL)
        return false;
    if (r->direction == FROM_HALF) {
        grd_tensor *const between = r->ndims > 1 ? grd_new_like(from, GRD_DTYPE_NONE) : from;
        if (grd_is_failed(between) || !add_others(r, from, between) || !add_step(r, FROM_HALF, between, to, last, r->n))
            return false;
    } else if (!add_step(r, r->direction, from, to, last, r->n) || !add_others(r, to, to)) {
        return false;
    }
    double elements = (double)r->n, bytes = 0;
    for (int i = 0; i < r->ndims - 1; i++)
        elements *= (double)to->sizes[r->dims[i]];
    if (r->normalization != 0)
        r->steps[r->nsteps - 1].scale = r->normalization == 1 ? 1 / sqrt(elements) : 1 / elements;
    divide(r);
    for (int i = 0; i < r->nsteps; i++)
        bytes = fmax(bytes, (double)r->steps[i].piece_bytes * (double)r->steps[i].pieces);
    r->task_bytes = (int64_t)bytes;
    grd_plan_scratch(p, bytes * (double)r->tasks);
    return true;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------------------------------ */

/* The lines of one step of a transform, where a line is the elements along the transformed dimension. The lines are in row-major order of
 * `sizes`, the sizes of the other dimensions, which are merged where strides allow it. `from` and `to` are the strides between lines in the
 * source and the result. All strides are counted in real numbers. */
struct lines {
    const struct step *step;
    const struct grd_fft_row *row;
    int ndim;
    int64_t sizes[GRD_MAX_DIMS], from[GRD_MAX_DIMS], to[GRD_MAX_DIMS];
    struct grd_fft_line source, result; /* line number 0: its address and stride in the source and in the result */
    /* `itemsize` is the number of bytes of a real number. The lines [begin, end) are transformed in tasks. A task has `grain` lines or, if
     * several lines are transformed at once in vector lanes, `grain` groups of such lines. */
    int64_t itemsize, begin, end, grain;
    char *scratch;
};

static struct grd_fft_line first_line(const grd_tensor *t, int dim, int64_t itemsize)
{
    const int64_t parts = parts_of(t);
    return (struct grd_fft_line){t->data, parts == 2 ? t->data + itemsize : NULL, t->strides[dim] * parts};
}

/* Returns `line` with real and imaginary parts exchanged. Exchanging the parts in source and result turns a transform into its inverse. */
static struct grd_fft_line exchanged(struct grd_fft_line line)
{
    return (struct grd_fft_line){line.im, line.re, line.element};
}

/* Returns `line`, a line of real numbers, as a line of half as many complex numbers, each made of two neighbours. */
static struct grd_fft_line paired(struct grd_fft_line line, int64_t itemsize)
{
    return (struct grd_fft_line){line.re, line.re + line.element * itemsize, 2 * line.element};
}

static void open_lines(struct lines *l, const struct step *s, char *scratch)
{
    uint8_t order[GRD_MAX_DIMS];
    const int n = order_of(s, order);
    l->step = s;
    l->row = s->node->row;
    l->itemsize = s->to->itemsize / parts_of(s->to);
    l->scratch = scratch;
    l->source = first_line(s->from, s->dim, l->itemsize);
    l->result = first_line(s->to, s->dim, l->itemsize);
    l->ndim = 0;
    for (int i = 0; i < n; i++) {
        const int64_t size = s->to->sizes[order[i]], from = s->from->strides[order[i]] * parts_of(s->from),
                      to = s->to->strides[order[i]] * parts_of(s->to);
        int at = l->ndim - 1;
        if (at >= 0 && l->from[at] == from * size && l->to[at] == to * size)
            l->sizes[at] *= size;
        else
            l->sizes[at = l->ndim++] = size;
        l->from[at] = from;
        l->to[at] = to;
    }
}

/* Writes the offsets of lines [first, first + count) in the source to ret_from, and those in the result to ret_to. Offsets are counted in real
 * numbers. */
static void find_lines(const struct lines *l, int64_t first, int64_t count, int64_t *ret_from, int64_t *ret_to)
{
    const int inner = l->ndim - 1;
    for (int64_t done = 0; done < count;) {
        int64_t index = first + done, from = 0, to = 0;
        for (int d = inner; d >= 0; d--) {
            const int64_t at = d > 0 ? index % l->sizes[d] : index;
            from += at * l->from[d];
            to += at * l->to[d];
            index = d > 0 ? index / l->sizes[d] : 0;
        }
        /* From this line to the end of the innermost dimension of l->sizes, lines are one stride apart. So their offsets need no divisions. */
        const int64_t from_step = inner >= 0 ? l->from[inner] : 0, to_step = inner >= 0 ? l->to[inner] : 0;
        const int64_t run = inner > 0 ? grd_least(count - done, l->sizes[inner] - (first + done) % l->sizes[inner]) : count - done;
        for (int64_t i = 0; i < run; i++) {
            ret_from[done + i] = from + i * from_step;
            ret_to[done + i] = to + i * to_step;
        }
        done += run;
    }
}

/* Transforms lines [first, first + count), one in each vector lane. `data` and `other` are scratch memory. */
static void transform_in_lanes(const struct lines *l, int64_t first, int64_t count, char *data, char *other)
{
    const struct step *s = l->step;
    const struct grd_fft_row *row = l->row;
    const int64_t n = length_of(s);
    struct grd_fft_line source = l->source, result = l->result;
    /* The first `count` elements of sources.offsets and results.offsets are the offsets of the lines. The elements after them belong to lanes without
     * a line. In sources.offsets these repeat the offset of the last line. In results.offsets they are not set, because put() does not read them. */
    struct grd_fft_lines sources, results;
    if (s->direction == TO_COMPLEX && s->is_inverse) {
        source = exchanged(source);
        result = exchanged(result);
    } else if (s->real != NULL && s->direction == TO_HALF) {
        source = paired(source, l->itemsize);
    } else if (s->real != NULL) {
        result = exchanged(paired(result, l->itemsize));
    }
    grd_fft_set_lines(&sources, &source, source.element, count);
    grd_fft_set_lines(&results, &result, result.element, count);
    find_lines(l, first, count, sources.offsets, results.offsets);
    for (int64_t i = count; i < row->lanes; i++)
        sources.offsets[i] = sources.offsets[count - 1];
    row->take(&sources, s->direction == FROM_HALF ? s->n / 2 + 1 : n, data);
    if (s->direction == FROM_HALF && s->real == NULL) {
        row->mirror(n, data);
    } else if (s->direction == FROM_HALF) {
        row->fold(n, data, s->real->roots, other);
        char *const folded = other;
        other = data;
        data = folded;
    }
    char *made = grd_fft_lanes(s->node, data, other);
    if (s->direction == TO_HALF && s->real != NULL) {
        char *const unfolded = made == data ? other : data;
        row->unfold(n, made, s->real->roots, unfolded);
        made = unfolded;
    }
    row->put(made, s->direction == TO_HALF ? s->n / 2 + 1 : n, s->scale, &results);
}

static void lanes_task(int64_t begin, int64_t end, void *context)
{
    const struct lines *l = context;
    const int64_t lanes = l->row->lanes;
    char *const data = l->scratch + begin / l->grain * l->step->piece_bytes;
    for (int64_t i = begin; i < end; i++)
        transform_in_lanes(l, l->begin + i * lanes, grd_least(lanes, l->end - l->begin - i * lanes), data, data + l->step->piece_bytes / 2);
}

/* Returns `line` with its addresses increased by `bytes`. */
static struct grd_fft_line moved(struct grd_fft_line line, int64_t bytes)
{
    return (struct grd_fft_line){line.re + bytes, line.im != NULL ? line.im + bytes : NULL, line.element};
}

/* Transforms line `number` by itself, not together with others in vector lanes. The work is divided into s->parts tasks. */
static void transform_line(const struct lines *l, int64_t number, char *scratch)
{
    const struct step *s = l->step;
    const int64_t n = length_of(s);
    int64_t from, to;
    find_lines(l, number, 1, &from, &to);
    struct grd_fft_line source = moved(l->source, from * l->itemsize), result = moved(l->result, to * l->itemsize);
    if (s->direction == FROM_HALF) {
        const struct grd_fft_line prepared = {scratch, scratch + l->itemsize, 2};
        if (s->real != NULL) {
            l->row->fold_line(n, &source, s->real->roots, scratch);
            result = exchanged(paired(result, l->itemsize));
        } else {
            l->row->mirror_line(n, &source, scratch);
        }
        grd_fft_line(s->node, &prepared, &result, n, s->scale, s->parts, scratch + s->piece_bytes - grd_fft_line_bytes(s->node, s->parts));
        return;
    }
    if (s->is_inverse) {
        source = exchanged(source);
        result = exchanged(result);
    } else if (s->real != NULL) {
        source = paired(source, l->itemsize);
    }
    const int64_t limit = s->direction == TO_HALF && s->real == NULL ? n / 2 + 1 : n;
    grd_fft_line(s->node, &source, &result, limit, s->real != NULL ? 1 : s->scale, s->parts, scratch);
    if (s->real != NULL)
        l->row->unfold_line(n, s->real->roots, s->scale, &result);
}

static void lines_task(int64_t begin, int64_t end, void *context)
{
    const struct lines *l = context;
    for (int64_t i = begin; i < end; i++)
        transform_line(l, l->begin + i, l->scratch + begin / l->grain * l->step->piece_bytes);
}

/* Transforms the lines [begin, end) of a step, where a line is the elements along the transformed dimension. */
static void run_step(const struct step *s, int64_t begin, int64_t end, char *scratch)
{
    struct lines l;
    open_lines(&l, s, scratch);
    l.begin = begin;
    l.end = end;
    const int64_t lines = end - begin, tasks = s->in_lanes ? grd_ceil_div(lines, l.row->lanes) : lines;
    l.grain = grd_ceil_div(tasks, s->pieces);
    grd_parallel_for(0, tasks, l.grain, s->in_lanes ? lanes_task : lines_task, &l);
}

/* The context that grd_parallel_for passes to blocks_task. */
struct blocks {
    const struct request *request;
    int64_t grain;
    char *scratch;
};

static void blocks_task(int64_t begin, int64_t end, void *context)
{
    const struct blocks *b = context;
    const struct request *r = b->request;
    for (int64_t i = begin; i < end; i++)
        for (int k = 0; k < r->nsteps; k++) {
            const struct step *s = &r->steps[k];
            const int64_t lines = s->lines / r->items;
            run_step(s, i * r->block * lines, grd_least(r->items, (i + 1) * r->block) * lines,
                     b->scratch + begin / b->grain * r->task_bytes);
        }
}

void run_fft(const struct grd_plan *p)
{
    const struct request *r = (const struct request *)p->state;
    if (r->nsteps == 0)
        return;
    const int64_t blocks = grd_ceil_div(r->items, r->block);
    struct blocks b = {.request = r, .grain = grd_ceil_div(blocks, r->tasks), .scratch = p->scratch};
    grd_parallel_for(0, blocks, b.grain, blocks_task, &b);
}
