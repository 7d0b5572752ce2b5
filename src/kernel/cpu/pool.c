/* The loops of pooling; see kernel/pool.h. Typed: int64 float32 float64.
 *
 * A row of the output is made in two steps: the rows of its windows become one line, element by element, then the windows of that line become outputs.
 * Vectors run along the line first, over outputs side by side, or the channels at one place, then. Windows at the edge of a row, which lack some elements,
 * are taken alone.
 * The gradient of an average goes the same way: rows of gradients become a line, and each element of the input takes those of the windows it is in.
 * Invariant: the order in which elements are combined follows from the windows alone, so that results do not depend on the level. */
#include "kernel/pool.h"

#include <string.h>

#include "kernel/cpu/shuffle.h"

/* Integers as wide as an element: masks, and places in an image. */
#if GRD_TAG == GRD_TAG_float32
typedef int32_t P;
#else
typedef int64_t P;
#endif
typedef P place_vector __attribute__((vector_size(VECTOR_BYTES)));

/* ---- Vectors ------------------------------------------------------------------------------------------------------------------------- */

/* Loads elements with a stride, of which the first n are used; what is read after them lies within the margin of a line. */
GRD_INLINE vector load_strided(const T *at, int64_t n, int64_t stride)
{
    if (stride == 1)
        return load_vector(at);
    if (stride == 2)
        return evens(load_vector(at), load_vector(at + LANES));
    vector v = {0};
    for (int64_t i = 0; i < n; i++)
        v[i] = at[i * stride];
    return v;
}

GRD_INLINE void store_first(T *at, vector v, int64_t n)
{
    if (n == LANES)
        store_vector(at, v);
    else
        store_lanes(at, first_lanes(n), v);
}

GRD_INLINE vector vector_of(C x)
{
    return (vector){0} + x;
}

/* Integers wrap: lanes that are not used hold anything. */
GRD_INLINE vector plus(vector a, vector b)
{
#if GRD_IS_FLOAT
    return a + b;
#else
    typedef U unsigned_vector __attribute__((vector_size(VECTOR_BYTES)));
    return (vector)((unsigned_vector)a + (unsigned_vector)b);
#endif
}

GRD_INLINE place_vector places_of(P x)
{
    return (place_vector){0} + x;
}

GRD_INLINE place_vector choose(place_vector mask, place_vector yes, place_vector no)
{
    return (mask & yes) | (~mask & no);
}

/* ---- Windows ------------------------------------------------------------------------------------------------------------------------- */

struct range {
    int64_t first, n; /* elements in the image */
    int64_t extent;   /* with those of the padding */
};

/* a / b rounded up, where most often b is 1. */
static inline int64_t up_quotient(int64_t a, int64_t b)
{
    return b == 1 ? a : (a + b - 1) / b;
}

/* a / b, where most often b is 1 or 2 and a division would be much of the work on a short row. */
static inline int64_t quotient(int64_t a, int64_t b)
{
    return b == 1 ? a : b == 2 ? a >> 1 : a / b;
}

/* Adaptive windows of an output of `out`. Seen from the input: the windows that an element is in. */
static inline struct range adaptive_range(int64_t in, int64_t out, int64_t o)
{
    const int64_t first = o * in / out, n = ((o + 1) * in + out - 1) / out - first;
    return (struct range){first, n, n};
}

static inline struct range range_of(const struct grd_pool *x, int axis, int64_t o)
{
    const int64_t in = x->in[axis], dilation = x->dilation[axis], at = o * x->stride[axis] - x->padding[axis];
    if (x->kernel[axis] == 0)
        return adaptive_range(in, x->out[axis], o);
    const int64_t skipped = at < 0 ? up_quotient(-at, dilation) : 0, inside = up_quotient(in - at, dilation);
    const int64_t n = at_most(x->kernel[axis], inside) - skipped;
    return (struct range){at + skipped * dilation, n > 0 ? n : 0, at_most(x->kernel[axis], in + x->padding[axis] - at)};
}

/* The windows that element i is in; they are not dilated. */
static inline struct range windows_of(const struct grd_pool *x, int axis, int64_t i)
{
    const int64_t at = i + x->padding[axis], kernel = x->kernel[axis], stride = x->stride[axis];
    if (kernel == 0)
        return adaptive_range(x->out[axis], x->in[axis], i);
    const int64_t first = at < kernel ? 0 : quotient(at - kernel, stride) + 1,
                  n = at_most(quotient(at, stride), x->out[axis] - 1) + 1 - first;
    return (struct range){first, n > 0 ? n : 0, 0};
}

/* Returns the number that an average over elements of some ranges is divided by. */
static inline int64_t count_of(const struct grd_pool *x, struct range r)
{
    return x->include_pad ? r.extent : r.n;
}

/* Windows [low, high) along an axis are those that lack no element; none of adaptive ones. */
static inline void find_complete(const struct grd_pool *x, int axis, int64_t *ret_low, int64_t *ret_high)
{
    const int64_t out = x->out[axis], padding = x->padding[axis], stride = x->stride[axis], kernel = x->kernel[axis];
    const int64_t last =
        kernel == 0 ? -1 : x->in[axis] + padding - (kernel - 1) * x->dilation[axis] - 1; /* where one may begin, in the padded image */
    *ret_low = last < 0 ? 0 : at_most((padding + stride - 1) / stride, out);
    *ret_high = last < 0 ? 0 : at_most(last / stride + 1, out);
}

/* ---- Lines --------------------------------------------------------------------------------------------------------------------------- */

enum { MARGIN = GRD_POOL_SLACK / 4 / sizeof(T) /* elements before and behind a line */ };
enum kind { SUM, LARGEST, INDEXED };

/* Row of an output: d and h count its depth and height. */
struct row {
    int64_t image, d, h;
};

static inline struct row row_of(const int64_t *sizes, int64_t i)
{
    const int64_t rows = sizes[0] * sizes[1];
    return (struct row){i / rows, i % rows / sizes[1], i % sizes[1]};
}

/* Consecutive rows of an output whose windows have the same shape and cut, and the lines of input that they become. Steps are for depth and height. */
struct batch {
    int64_t n;                /* lines */
    const T *from;            /* of the first */
    int64_t rows[2], step[2]; /* of a line */
    int64_t place, place_step[2];
    int64_t next, next_place;  /* from line to line */
    int64_t count;             /* rows that an average over a line counts */
    int64_t length, line_step; /* of a line; from the start of a line to that of the next, with margins between */
    T *line;
    P *places; /* of the first element in the row that each element of a line is from */
};

static inline C least(void)
{
#if GRD_IS_FLOAT
    return (C)-__builtin_inf();
#else
    return INT64_MIN;
#endif
}

/* NaN is larger than what is not. */
GRD_INLINE place_vector is_larger(vector v, vector best)
{
#if GRD_IS_FLOAT
    return (v > best) | (v != v);
#else
    return v > best;
#endif
}

/* Compares elements that are not visited in the order of their places: of equal elements the first wins, of several NaN the last. */
GRD_INLINE place_vector is_larger_at(vector v, place_vector here, vector best, place_vector found)
{
    const place_vector equal = (v == best) & (here < found);
#if GRD_IS_FLOAT
    return (v > best) | equal | ((v != v) & ((best == best) | (here > found)));
#else
    return (v > best) | equal;
#endif
}

GRD_INLINE void join_elements(const struct batch *x, enum kind kind, int64_t slot, int64_t i, int64_t n)
{
    const lane_mask some = first_lanes(n);
    vector value = vector_of(kind == SUM ? 0 : least());
    const T *from = x->from + slot * x->next + i;
    const int64_t place = x->place + slot * x->next_place, to = slot * x->line_step + i;
    place_vector found = places_of((P)place);
    for (int64_t d = 0; d < x->rows[0]; d++)
        for (int64_t h = 0; h < x->rows[1]; h++) {
            const T *at = from + d * x->step[0] + h * x->step[1];
            const vector v = n == LANES ? load_vector(at) : load_lanes(at, some);
            const place_vector larger = is_larger(v, value);
            value = kind == SUM ? plus(value, v) : (vector)choose(larger, (place_vector)v, (place_vector)value);
            if (kind == INDEXED)
                found = choose(larger, places_of((P)(place + d * x->place_step[0] + h * x->place_step[1])), found);
        }
    store_first(x->line + to, value, n);
    if (kind == INDEXED)
        store_first((T *)(x->places + to), (vector)found, n);
}

GRD_INLINE void join_rows(const struct batch *x, enum kind kind)
{
    for (int64_t slot = 0; slot < x->n; slot++) {
        int64_t i = 0;
        for (; i + LANES <= x->length; i += LANES)
            join_elements(x, kind, slot, i, LANES);
        if (i < x->length)
            join_elements(x, kind, slot, i, x->length - i);
    }
}

/* ---- Windows of a line --------------------------------------------------------------------------------------------------------------- */

/* Windows side by side, of `taps` elements each, `step` elements and `place_step` places apart. */
struct span {
    int64_t n, taps, step, place_step;
    const T *from;
    const P *places;
    C count; /* what sums are divided by; 1: nothing */
    T *out;
    int64_t *indices, place, lane_place; /* of the first element for lane 0; from lane to lane */
};

GRD_INLINE void write_indices(int64_t *to, const P *offsets, int64_t n, int64_t place, int64_t lane_place)
{
    LANEWISE
    for (int64_t i = 0; i < n; i++)
        to[i] = place + i * lane_place + offsets[i];
}

GRD_INLINE void take_lanes(const struct span *s, enum kind kind, int64_t stride, int64_t i, int64_t n)
{
    const T *at = s->from + i * stride;
    const P *places = s->places + i * stride;
    vector value = load_strided(at, n, stride);
    place_vector found = kind == INDEXED ? (place_vector)load_strided((const T *)places, n, stride) : places_of(0);
    for (int64_t k = 1; k < s->taps; k++) {
        const vector v = load_strided(at + k * s->step, n, stride);
        place_vector larger = is_larger(v, value);
        if (kind == INDEXED) {
            const place_vector here = (place_vector)load_strided((const T *)(places + k * s->step), n, stride) + (P)(k * s->place_step);
            larger = is_larger_at(v, here, value, found);
            found = choose(larger, here, found);
        }
        value = kind == SUM ? plus(value, v) : (vector)choose(larger, (place_vector)v, (place_vector)value);
    }
    store_first(s->out + i, kind == SUM && s->count != 1 ? value / vector_of(s->count) : value, n);
    if (kind == INDEXED) {
        P offsets[LANES];
        memcpy(offsets, &found, sizeof offsets);
        write_indices(s->indices + i, offsets, n, s->place + i * s->lane_place, s->lane_place);
    }
}

GRD_INLINE void take_strided(const struct span *s, enum kind kind, int64_t stride)
{
    int64_t i = 0;
    for (; i + LANES <= s->n; i += LANES)
        take_lanes(s, kind, stride, i, LANES);
    if (i < s->n)
        take_lanes(s, kind, stride, i, s->n - i);
}

GRD_INLINE void take_span(const struct span *s, enum kind kind, int64_t stride)
{
    if (stride == 1)
        take_strided(s, kind, 1);
    else if (stride == 2)
        take_strided(s, kind, 2);
    else
        take_strided(s, kind, stride);
}

/* ---- Rows of an output --------------------------------------------------------------------------------------------------------------- */

struct job {
    const struct grd_pool *pool;
    const T *in;
    T *out;
    int64_t *indices;
    struct batch batch;
    int64_t low[GRD_POOL_AXES], high[GRD_POOL_AXES]; /* windows that lack no element */
    bool tiled;                                      /* those of a row are all of it, and the next row goes on as it does */
};

static inline int64_t elements_of(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Begins a batch of at most n rows: lines that are joined together are not read at once at other places, for which memory would have to wait. */
static void open_batch(struct job *job, const struct row *at, int64_t n)
{
    const struct grd_pool *x = job->pool;
    const int64_t height = x->in[1], width = x->in[2];
    const struct range r[2] = {range_of(x, 0, at->d), range_of(x, 1, at->h)};
    struct batch *b = &job->batch;
    const bool complete = at->h >= job->low[1] && at->h < job->high[1];
    b->n = complete ? at_most(at_most(n, x->lines), job->high[1] - at->h) : 1;
    b->place = (r[0].first * height + r[1].first) * width;
    b->from = job->in + (at->image * elements_of(x->in) + b->place) * x->channels;
    b->count = count_of(x, r[0]) * count_of(x, r[1]);
    b->next_place = x->stride[1] * width;
    b->next = b->next_place * x->channels;
    for (int i = 0; i < 2; i++) {
        b->rows[i] = r[i].n;
        b->place_step[i] = (i == 0 ? height * width : width) * x->dilation[i];
        b->step[i] = b->place_step[i] * x->channels;
    }
}

/* A window without an element. */
static void leave_empty(const struct span *s, int64_t place)
{
    for (int64_t i = 0; i < s->n; i++)
        s->out[i] = least();
    for (int64_t i = 0; s->indices != NULL && i < s->n; i++)
        s->indices[i] = place;
}

/* Windows [o, o + n) of a row: more than one lack no element. */
GRD_INLINE void take_windows(const struct job *job, int64_t slot, int64_t row, int64_t o, int64_t n, enum kind kind)
{
    const struct grd_pool *x = job->pool;
    const struct batch *b = &job->batch;
    const bool inner = o >= job->low[2] && o < job->high[2];
    const struct range r = inner ? (struct range){o * x->stride[2] - x->padding[2], x->kernel[2], x->kernel[2]} : range_of(x, 2, o);
    const int64_t channels = x->channels, at = (row * x->out[2] + o) * channels, first = slot * b->line_step + r.first * channels;
    struct span s = {.n = n * channels,
                     .taps = r.n,
                     .step = x->dilation[2] * channels,
                     .place_step = x->dilation[2],
                     .from = b->line + first,
                     .places = b->places + first,
                     .count = x->divisor != 0 ? (C)x->divisor : (C)(b->count * count_of(x, r)),
                     .out = job->out + at,
                     .indices = kind == INDEXED ? job->indices + at : NULL,
                     .place = r.first,
                     .lane_place = channels == 1 ? x->stride[2] : 0};
    if (kind != SUM && r.n == 0)
        leave_empty(&s, b->place + slot * b->next_place + r.first);
    else
        take_span(&s, kind, n > 1 ? x->stride[2] : 1);
}

GRD_INLINE void take_row(const struct job *job, int64_t slot, int64_t row, enum kind kind)
{
    const struct grd_pool *x = job->pool;
    for (int64_t o = 0; o < x->out[2];) {
        const bool several = o == job->low[2] && job->low[2] < job->high[2] && x->channels == 1;
        const int64_t n = several ? job->high[2] - job->low[2] : 1;
        take_windows(job, slot, row, o, n, kind);
        o += n;
    }
}

static void open_job(struct job *job, T *memory)
{
    const struct grd_pool *x = job->pool;
    for (int axis = 0; axis < GRD_POOL_AXES; axis++)
        find_complete(x, axis, &job->low[axis], &job->high[axis]);
    job->batch.length = x->in[2] * x->channels;
    job->tiled = x->channels == 1 && job->low[2] == 0 && job->high[2] == x->out[2] && x->in[2] == x->out[2] * x->stride[2];
    job->batch.line_step = job->batch.length + (job->tiled ? 0 : 2 * MARGIN);
    job->batch.line = memory + MARGIN;
    job->batch.places = (P *)memory + x->lines * job->batch.line_step + 4 * MARGIN;
}

/* Fills the margins of the lines with the identity, so that windows at the ends of a row are computed like all others. Averages allow that only if
 * padding is counted. */
static void fill_margins(struct job *job, T *memory, enum kind kind)
{
    const struct grd_pool *x = job->pool;
    const int64_t beyond = (x->out[2] - 1) * x->stride[2] + (x->kernel[2] - 1) * x->dilation[2] + 1 - x->padding[2] - x->in[2];
    const bool counted = kind == LARGEST || x->divisor != 0 || (x->include_pad && beyond <= x->padding[2]);
    if (x->kernel[2] == 0 || x->channels > 1 || job->tiled || !counted || x->padding[2] > MARGIN || beyond > MARGIN)
        return;
    for (int64_t i = 0; i < x->lines * job->batch.line_step; i++)
        memory[i] = kind == SUM ? 0 : least();
    job->low[2] = 0;
    job->high[2] = x->out[2];
}

GRD_INLINE void take_rows(struct job *job, T *memory, int64_t begin, int64_t end, enum kind kind)
{
    const struct grd_pool *x = job->pool;
    open_job(job, memory);
    if (kind != INDEXED)
        fill_margins(job, memory, kind);
    for (int64_t i = begin; i < end; i += job->batch.n) {
        const struct row at = row_of(x->out, i);
        open_batch(job, &at, end - i);
        join_rows(&job->batch, kind);
        if (job->tiled && kind != INDEXED)
            take_windows(job, 0, i, 0, job->batch.n * x->out[2], kind);
        else
            for (int64_t slot = 0; slot < job->batch.n; slot++)
                take_row(job, slot, i + slot, kind);
    }
}

static void largest(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, int64_t *indices, void *memory)
{
    struct job job = {.pool = x, .in = in, .out = out, .indices = indices};
    if (indices == NULL)
        take_rows(&job, memory, begin, end, LARGEST);
    else
        take_rows(&job, memory, begin, end, INDEXED);
}

static void average(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, void *memory)
{
    struct job job = {.pool = x, .in = in, .out = out};
    take_rows(&job, memory, begin, end, SUM);
}

/* ---- Gradients ----------------------------------------------------------------------------------------------------------------------- */

static void largest_backward(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, const int64_t *indices, void *grad_in)
{
    const int64_t outputs = elements_of(x->out), places = elements_of(x->in), channels = x->channels;
    const int64_t parts = (channels + GRD_POOL_CHANNELS - 1) / GRD_POOL_CHANNELS;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / parts, from = i % parts * GRD_POOL_CHANNELS, n = at_most(GRD_POOL_CHANNELS, channels - from);
        const T *given = (const T *)grad + image * outputs * channels + from;
        const int64_t *index = indices + image * outputs * channels + from;
        T *to = (T *)grad_in + image * places * channels + from;
        for (int64_t o = 0; o < outputs * channels; o += channels)
            for (int64_t c = 0; c < n; c++)
                if ((uint64_t)index[o + c] < (uint64_t)places)
                    to[index[o + c] * channels + c] += given[o + c];
    }
}

#if GRD_IS_FLOAT
struct gradient {
    const struct grd_pool *pool;
    const T *grad;
    T *out;
    const T *counts;   /* of each window: its elements along the row, a factor of what an average is divided by */
    int64_t low, high; /* elements whose windows all lie in the row or its margins; high - low is a multiple of the stride */
};

static void add_shares(T *line, const T *grad, const T *counts, C rows, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_vector(line + i, load_vector(line + i) + load_vector(grad + i) / (load_vector(counts + i) * rows));
    const lane_mask some = first_lanes(n - i);
    if (i < n)
        store_vector(line + i, load_vector(line + i) + load_lanes(grad + i, some) / (load_vector(counts + i) * rows));
}

/* Writes the sum of an element's shares for each column: of the windows, along depth and height, that the row of the input is in. */
static void join_shares(const struct gradient *g, const struct row *at, T *line)
{
    const struct grd_pool *x = g->pool;
    const struct range d = windows_of(x, 0, at->d), h = windows_of(x, 1, at->h);
    const int64_t n = x->out[2] * x->channels;
    for (int64_t i = 0; i < n; i += LANES)
        store_vector(line + i, vector_of(0));
    for (int64_t i = d.first; i < d.first + d.n; i++)
        for (int64_t k = h.first; k < h.first + h.n; k++) {
            const int64_t rows = x->divisor != 0 ? 1 : count_of(x, range_of(x, 0, i)) * count_of(x, range_of(x, 1, k));
            add_shares(line, g->grad + ((at->image * x->out[0] + i) * x->out[1] + k) * n, g->counts, (C)rows, n);
        }
}

/* The rows that are in the same windows as one, from it on. */
static int64_t rows_alike(const struct grd_pool *x, int64_t h)
{
    const int64_t stride = x->stride[1], at = h + x->padding[1];
    return stride > 0 && x->kernel[1] == stride ? at_most(stride - (at - quotient(at, stride) * stride), x->in[1] - h) : 1;
}

/* Sums of `taps` vectors, `step` elements apart. */
GRD_INLINE vector sum_of(const T *at, int64_t taps, int64_t step)
{
    vector sum = vector_of(0);
    for (int64_t k = 0; k < taps; k++)
        sum += load_vector(at + k * step);
    return sum;
}

/* The last windows that n elements, or channels of one, are in are those at `at`; there are `taps` of them. */
static void take_shares(const T *at, int64_t taps, int64_t step, int64_t n, T *out)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_vector(out + i, sum_of(at + i, taps, step));
    if (i < n)
        store_first(out + i, sum_of(at + i, taps, step), n - i);
}

static int64_t taps_of(const struct grd_pool *x, int64_t phase)
{
    return phase < x->kernel[2] ? (x->kernel[2] - 1 - phase) / x->stride[2] + 1 : 0;
}

/* take_strides for a stride of 2: a vector of the even elements and one of the odd ones at a time. */
static void take_pairs(const struct grd_pool *x, const T *at, int64_t n, T *out)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const vector even = sum_of(at + i, taps_of(x, 0), -1), odd = sum_of(at + i, taps_of(x, 1), -1);
        const int64_t elements = 2 * at_most(LANES, n - i);
        store_first(out + 2 * i, low_pairs(even, odd), at_most(LANES, elements));
        if (elements > LANES)
            store_first(out + 2 * i + LANES, high_pairs(even, odd), elements - LANES);
    }
}

/* Writes `stride` elements for each of n windows: element i * stride + phase is the sum of the gradients of the windows that cover it. */
static void take_strides(const struct grd_pool *x, const T *at, int64_t n, T *out)
{
    const int64_t stride = x->stride[2];
    for (int64_t phase = 0; phase < stride; phase++)
        for (int64_t i = 0; i < n; i += LANES) {
            const vector sum = sum_of(at + i, taps_of(x, phase), -1);
            for (int64_t k = 0; k < at_most(LANES, n - i); k++)
                out[(i + k) * stride + phase] = sum[k];
        }
}

static void take_element(const struct grd_pool *x, const T *line, int64_t i, T *out)
{
    const struct range r = windows_of(x, 2, i);
    take_shares(line + r.first * x->channels, r.n, x->channels, x->channels, out);
}

/* n elements, whose windows all are in the line, the last one of the first at `last`. */
static void take_elements(const struct grd_pool *x, const T *last, int64_t n, T *out)
{
    const int64_t stride = x->stride[2];
    if (stride == 1)
        take_shares(last, x->kernel[2], -x->channels, n * x->channels, out);
    else if (stride == 2)
        take_pairs(x, last, n / 2, out);
    else
        take_strides(x, last, n / stride, out);
}

/* A row of the gradient from its line. */
static void spread_line(const struct gradient *g, const T *line, T *out)
{
    const struct grd_pool *x = g->pool;
    const int64_t channels = x->channels;
    for (int64_t i = 0; i < x->in[2];) {
        const int64_t n = i == g->low && g->low < g->high ? g->high - g->low : 1;
        if (n == 1)
            take_element(x, line, i, out + i * channels);
        else
            take_elements(x, line + quotient(i + x->padding[2], x->stride[2]) * channels, n, out + i * channels);
        i += n;
    }
}

static void spread_rows(const struct gradient *g, const T *line, T *out, int64_t rows)
{
    const int64_t width = g->pool->in[2] * g->pool->channels;
    spread_line(g, line, out);
    for (int64_t i = 1; i < rows; i++)
        memcpy(out + i * width, out, (size_t)width * sizeof *out);
}

/* Windows in the margin, where there is room for them, give nothing. */
static void find_inner(struct gradient *g, T *lines, int64_t line_step)
{
    const struct grd_pool *x = g->pool;
    const int64_t stride = x->stride[2], padding = x->padding[2], in = x->in[2] + padding;
    if (x->kernel[2] == 0 || (x->channels > 1 && stride > 1))
        return;
    const int64_t before = (x->kernel[2] - 1) / stride, windows = in / stride;
    const bool roomy = before * x->channels <= MARGIN && (windows - x->out[2]) * x->channels <= MARGIN;
    for (int64_t i = -MARGIN; i < x->lines * line_step - MARGIN; i++)
        lines[i] = 0;
    g->low = (roomy || before * stride < padding ? (padding + stride - 1) / stride : before) * stride - padding;
    g->high = (roomy ? windows : at_most(x->out[2], windows)) * stride - padding;
}

static void average_backward(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, void *grad_in, void *memory)
{
    const int64_t width = x->in[2] * x->channels, line_step = x->out[2] * x->channels + GRD_POOL_SLACK / (int64_t)sizeof(T);
    T *const counts = memory, *const lines = counts + line_step + MARGIN;
    struct gradient g = {.pool = x, .grad = grad, .out = grad_in, .counts = counts};
    for (int64_t i = 0; i < line_step && x->out[2] > 0; i++) {
        const int64_t o = at_most(i / x->channels, x->out[2] - 1);
        counts[i] = (C)(x->divisor != 0 ? x->divisor : count_of(x, range_of(x, 2, o)));
    }
    find_inner(&g, lines, line_step);
    while (begin < end) {
        int64_t rows[GRD_POOL_LINES], n = 0;
        for (int64_t i = begin; i < end && n < x->lines; i += rows[n++]) {
            const struct row at = row_of(x->in, i);
            join_shares(&g, &at, lines + n * line_step);
            rows[n] = at_most(rows_alike(x, at.h), end - i);
        }
        for (int64_t slot = 0; slot < n; begin += rows[slot++])
            spread_rows(&g, lines + slot * line_step, g.out + begin * width, rows[slot]);
    }
}
#endif

const struct grd_pool_row GRD_TYPED(grd_pool_row) = {
    .largest = largest,
    .largest_backward = largest_backward,
    .average = average,
#if GRD_IS_FLOAT
    .average_backward = average_backward,
#endif
};
