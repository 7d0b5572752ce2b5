/* Computes max pooling and average pooling, and their gradients; see kernel/pool.h. The build compiles this file once for each of int64, float32 and
 * float64.
 *
 * A row of the output is computed in two steps. The first step combines the input rows covered by the windows of the row. The result is an array of
 * the length of an input row, called a line. Vectors run along the line. The second step combines, for each window, the elements of the line that the
 * window covers. Vectors run over neighbouring outputs, or over the channels of one output. Windows at the ends of a row that reach beyond the image
 * are computed one by one.
 * The gradient of an average is computed in the same way. Rows of gradients are combined into a line with one value per window. Then each element of
 * the input adds up the values of the windows that contain it.
 * Invariant: the order in which elements are combined depends on the windows only, so results do not depend on the instruction-set level. */
#include "kernel/pool.h"

#include <string.h>

#include "kernel/cpu/shuffle.h"

/* An integer as wide as an element, used for masks and for positions in an image. */
#if GRD_TAG == GRD_TAG_float32
typedef int32_t P;
#else
typedef int64_t P;
#endif
typedef P place_vector __attribute__((vector_size(VECTOR_BYTES)));

/* ---- Vectors ------------------------------------------------------------------------------------------------------------------------- */

/* Returns a vector of n elements that are `stride` elements apart. If the stride is 1 or 2, this loads whole vectors and may read past the n
 * elements, which is safe because the array is followed by memory for a margin. */
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

/* Stores the first n lanes of v to `at`. */
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

/* Returns a + b. Integers are added as unsigned numbers, which wrap around. Unused lanes hold arbitrary values, and an overflow of signed numbers in
 * them would be undefined. */
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

/* Returns the lanes of `yes` where the mask is set, and the lanes of `no` elsewhere. */
GRD_INLINE place_vector choose(place_vector mask, place_vector yes, place_vector no)
{
    return (mask & yes) | (~mask & no);
}

/* ---- Windows ------------------------------------------------------------------------------------------------------------------------- */

/* A range along one axis. It holds either the elements of a window, or the windows that contain an element. */
struct range {
    int64_t first, n; /* first: the first element (or window) inside of the image; n: the number of elements (or windows) inside */
    int64_t extent;   /* for a window: the number of its elements, including those in the padding */
};

/* Returns a / b rounded up. If b is 1, the most frequent case, no division is needed. */
static inline int64_t up_quotient(int64_t a, int64_t b)
{
    return b == 1 ? a : (a + b - 1) / b;
}

/* Returns a / b. If b is 1 or 2, the most frequent cases, no division is needed. On a short row, divisions would take much of the time. */
static inline int64_t quotient(int64_t a, int64_t b)
{
    return b == 1 ? a : b == 2 ? a >> 1 : a / b;
}

/* Returns the elements of window number o of adaptive pooling, which has `out` windows over `in` elements along an axis. If `in` and `out` are
 * exchanged, returns the windows that contain element o of the input. */
static inline struct range adaptive_range(int64_t in, int64_t out, int64_t o)
{
    const int64_t first = o * in / out, n = ((o + 1) * in + out - 1) / out - first;
    return (struct range){first, n, n};
}

/* Returns the elements of window number o along an axis. */
static inline struct range range_of(const struct grd_pool *x, int axis, int64_t o)
{
    const int64_t in = x->in[axis], dilation = x->dilation[axis], at = o * x->stride[axis] - x->padding[axis];
    if (x->kernel[axis] == 0)
        return adaptive_range(in, x->out[axis], o);
    const int64_t skipped = at < 0 ? up_quotient(-at, dilation) : 0, inside = up_quotient(in - at, dilation);
    const int64_t n = grd_least(x->kernel[axis], inside) - skipped;
    return (struct range){at + skipped * dilation, n > 0 ? n : 0, grd_least(x->kernel[axis], in + x->padding[axis] - at)};
}

/* Returns the range of windows along an axis that contain element i of the input: the number of the first of these windows (`first`) and how many
 * there are (`n`). The dilation must be 1. */
static inline struct range windows_of(const struct grd_pool *x, int axis, int64_t i)
{
    const int64_t at = i + x->padding[axis], kernel = x->kernel[axis], stride = x->stride[axis];
    if (kernel == 0)
        return adaptive_range(x->out[axis], x->in[axis], i);
    const int64_t first = at < kernel ? 0 : quotient(at - kernel, stride) + 1,
                  n = grd_least(quotient(at, stride), x->out[axis] - 1) + 1 - first;
    return (struct range){first, n > 0 ? n : 0, 0};
}

/* Returns how many elements of a window are counted in the divisor of an average, along one axis. r is the window's range along this axis. */
static inline int64_t count_of(const struct grd_pool *x, struct range r)
{
    return x->include_pad ? r.extent : r.n;
}

/* Finds the windows [*ret_low, *ret_high) along an axis that lie completely in the image. For adaptive pooling the range is empty. */
static inline void find_complete(const struct grd_pool *x, int axis, int64_t *ret_low, int64_t *ret_high)
{
    const int64_t out = x->out[axis], padding = x->padding[axis], stride = x->stride[axis], kernel = x->kernel[axis];
    const int64_t last =
        /* the last position in the padded image at which a complete window can begin */
        kernel == 0 ? -1 : x->in[axis] + padding - (kernel - 1) * x->dilation[axis] - 1;
    *ret_low = last < 0 ? 0 : grd_least((padding + stride - 1) / stride, out);
    *ret_high = last < 0 ? 0 : grd_least(last / stride + 1, out);
}

/* ---- Lines --------------------------------------------------------------------------------------------------------------------------- */

enum { MARGIN = GRD_POOL_SLACK / 4 / sizeof(T) /* elements of memory before and after each array of combined rows */ };
/* Selects what is computed for each window, which is the sum, the largest element, or the largest element with its index. */
enum kind { SUM, LARGEST, INDEXED };

/* A row of the output, or of the input for gradients. It is named by its image and by its coordinates d and h along depth and height. */
struct row {
    int64_t image, d, h;
};

/* Returns row number i. Rows are counted through all images, each of which has the given sizes along depth, height and width. */
static inline struct row row_of(const int64_t *sizes, int64_t i)
{
    const int64_t rows = sizes[0] * sizes[1];
    return (struct row){i / rows, i % rows / sizes[1], i % sizes[1]};
}

/* Consecutive rows of the output, whose windows have the same shape along depth and height. Each of these rows has a line, an array that combines the
 * input rows covered by the windows of the row. In arrays of two elements, element 0 is for depth and element 1 for height. */
struct batch {
    int64_t n;                /* number of output rows, and of lines */
    const T *from;            /* the first input element that line 0 combines */
    int64_t rows[2], step[2]; /* rows: input rows that are combined into a line; step: elements from one of them to the next */
    /* place: the position of `from` in its image. place_step: distance in positions between neighbouring input rows that are combined into one
     * line. */
    int64_t place, place_step[2];
    /* next: distance in elements from the first input row of a line to the first input row of the next line; next_place: this distance in
     * positions */
    int64_t next, next_place;
    int64_t count;             /* number of input rows per window that are counted in the divisor of an average */
    int64_t length, line_step; /* length: elements of a line; line_step: elements from one line to the next, margins included */
    /* The first line. A line is an array that combines, element by element, the input rows covered by the windows of one output row. Lines begin
     * line_step elements apart. */
    T *line;
    /* Used only if indices are computed. An element of a line is then the largest of several elements, one from each input row that is combined. For
     * each element of a line, `places` holds the position in the image at which the row with the largest element begins. */
    P *places;
};

/* Returns the smallest value of the dtype, which never replaces another one in a maximum. */
static inline C least(void)
{
#if GRD_IS_FLOAT
    return (C)-__builtin_inf();
#else
    return INT64_MIN;
#endif
}

/* Returns a mask of the lanes in which v replaces `best`, the largest element so far, because v is larger or NaN. */
GRD_INLINE place_vector is_larger(vector v, vector best)
{
#if GRD_IS_FLOAT
    return (v > best) | (v != v);
#else
    return v > best;
#endif
}

/* Returns a mask of the lanes in which v replaces `best`, the largest element so far. `here` and `found` are the positions of v and of `best`. The
 * elements need not be compared in the order of their positions. Of equal elements the one with the lowest position wins, of several NaN the one with
 * the highest. */
GRD_INLINE place_vector is_larger_at(vector v, place_vector here, vector best, place_vector found)
{
    const place_vector equal = (v == best) & (here < found);
#if GRD_IS_FLOAT
    return (v > best) | equal | ((v != v) & ((best == best) | (here > found)));
#else
    return (v > best) | equal;
#endif
}

/* Computes the elements [i, i + n) of line number `slot` of the batch. A line is an array that combines the input rows covered by the windows of one
 * output row. n is at most LANES. */
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

/* Computes all lines of the batch. A line is an array that combines the input rows covered by the windows of one output row. */
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

/* Outputs that are computed together from one line, an array that combines the input rows covered by their windows. Each window has `taps` elements.
 * From one of these elements to the next there are `step` elements of the line, and place_step positions of the image. */
struct span {
    int64_t n, taps, step, place_step;
    const T *from;
    const P *places;
    C count; /* sums are divided by this number, unless it is 1 */
    T *out;
    /* place: position in the input row at which the window of output 0 begins. lane_place: positions from one output's window to the next. */
    int64_t *indices, place, lane_place;
};

/* Writes the indices of n outputs to `to`. to[i] is the position, in the image, of the largest element in the window of output i. In each input row,
 * this window begins at position place + i * lane_place of the row. offsets[i] is the position at which the row of the largest element begins, plus
 * the distance of this element from the start of the window. */
GRD_INLINE void write_indices(int64_t *to, const P *offsets, int64_t n, int64_t place, int64_t lane_place)
{
    LANEWISE
    for (int64_t i = 0; i < n; i++)
        to[i] = place + i * lane_place + offsets[i];
}

/* Computes the outputs [i, i + n) of those that *s describes. n is at most LANES. From one output to the next, the start of the window moves by
 * `stride` elements in the array at s->from. */
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

/* Computes all outputs that *s describes. From one output to the next, the start of the window moves by `stride` elements in the array at s->from. */
GRD_INLINE void take_strided(const struct span *s, enum kind kind, int64_t stride)
{
    int64_t i = 0;
    for (; i + LANES <= s->n; i += LANES)
        take_lanes(s, kind, stride, i, LANES);
    if (i < s->n)
        take_lanes(s, kind, stride, i, s->n - i);
}

/* Calls take_strided() for the outputs that *s describes. Strides of 1 and 2 are passed as constants, because there are faster loads for them. */
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

/* The arguments of a call of largest() or average(), and the batch of output rows that is being computed. */
struct job {
    const struct grd_pool *pool;
    const T *in;
    T *out;
    int64_t *indices;
    struct batch batch;
    int64_t low[GRD_POOL_AXES], high[GRD_POOL_AXES]; /* along each axis, the windows [low, high) lie in the image completely */
    /* true if an input row has exactly out * stride elements and all windows lie in it; consecutive lines are then computed as one long line */
    bool tiled;
};

static inline int64_t elements_of(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Sets job->batch to a batch of at most n rows of the output, beginning with the row *at. All lines of a batch (arrays of combined input rows, one
 * for each output row) are written before the first of them is read. A load from a line just written, at another alignment than its stores, would
 * stall store forwarding. */
static void open_batch(struct job *job, const struct row *at, int64_t n)
{
    const struct grd_pool *x = job->pool;
    const int64_t height = x->in[1], width = x->in[2];
    const struct range r[2] = {range_of(x, 0, at->d), range_of(x, 1, at->h)};
    struct batch *b = &job->batch;
    const bool complete = at->h >= job->low[1] && at->h < job->high[1];
    b->n = complete ? grd_least(grd_least(n, x->lines), job->high[1] - at->h) : 1;
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

/* Writes the outputs that *s describes, whose windows contain no elements. The outputs become the smallest number of the dtype, and their indices
 * become `place`. */
static void leave_empty(const struct span *s, int64_t place)
{
    for (int64_t i = 0; i < s->n; i++)
        s->out[i] = least();
    for (int64_t i = 0; s->indices != NULL && i < s->n; i++)
        s->indices[i] = place;
}

/* Computes the outputs [o, o + n) of row number `row` of the output from line number `slot` of the batch. A line is an array that combines the input
 * rows covered by the windows of one output row. If n > 1, the windows of all n outputs lie completely in the image. */
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

/* Computes row number `row` of the output from its line, an array that combines the input rows covered by the windows of the row. The line has the
 * number `slot` in job->batch. */
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

/* Sets the members of *job that are the same for all batches of output rows: the ranges of windows that lie completely in the image, and pointers
 * into `memory` to the lines (arrays of combined input rows) and to the positions of their elements. */
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

/* Fills the margins, i.e. the memory before and after each line (array of combined input rows), with neutral values. Then all windows of a row count
 * as complete, and those at its ends are computed together with the others. Does nothing for adaptive pooling and for several channels. Also does
 * nothing if the padding is longer than a margin, or if the divisor of an average depends on how much of a window lies in the image. */
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

/* Computes the rows [begin, end) of the output, counted through all images. `kind` is a constant where this is inlined. */
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
        const int64_t image = i / parts, from = i % parts * GRD_POOL_CHANNELS, n = grd_least(GRD_POOL_CHANNELS, channels - from);
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
/* The arguments of average_backward(), and what it computes before the first row. */
struct gradient {
    const struct grd_pool *pool;
    const T *grad;
    T *out;
    /* for each output of a row: pool->divisor, or the number of elements of its window along the row. Gradients are divided by this number. */
    const T *counts;
    /* The elements [low, high) of an input row are computed without tests for the ends of the row, because the terms of windows beyond the ends are
     * stored as 0. high - low is a multiple of the stride. */
    int64_t low, high;
};

/* Adds grad[i] / (counts[i] * rows) to line[i] for n windows. counts[i] * rows is the divisor of the average of window i. */
static void add_shares(T *line, const T *grad, const T *counts, C rows, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_vector(line + i, load_vector(line + i) + load_vector(grad + i) / (load_vector(counts + i) * rows));
    const lane_mask some = first_lanes(n - i);
    if (i < n)
        store_vector(line + i, load_vector(line + i) + load_lanes(grad + i, some) / (load_vector(counts + i) * rows));
}

/* Writes a term to `line` for each output position along the width. The term is the sum of gradient / divisor over all windows at this position that
 * contain the input row *at. */
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

/* Returns how many consecutive input rows, beginning with row h, lie in the same windows along the height. */
static int64_t rows_alike(const struct grd_pool *x, int64_t h)
{
    const int64_t stride = x->stride[1], at = h + x->padding[1];
    return stride > 0 && x->kernel[1] == stride ? grd_least(stride - (at - quotient(at, stride) * stride), x->in[1] - h) : 1;
}

/* Returns the sum of `taps` vectors. The first is at `at`, and each begins `step` elements after the one before it. */
GRD_INLINE vector sum_of(const T *at, int64_t taps, int64_t step)
{
    vector sum = vector_of(0);
    for (int64_t k = 0; k < taps; k++)
        sum += load_vector(at + k * step);
    return sum;
}

/* Writes out[i] = the sum over k < taps of at[i + k * step], for n elements i. */
static void take_shares(const T *at, int64_t taps, int64_t step, int64_t n, T *out)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_vector(out + i, sum_of(at + i, taps, step));
    if (i < n)
        store_first(out + i, sum_of(at + i, taps, step), n - i);
}

/* Returns how many windows along the width contain an element. `phase` is the element's distance from the start of the last of these windows. */
static int64_t taps_of(const struct grd_pool *x, int64_t phase)
{
    return phase < x->kernel[2] ? (x->kernel[2] - 1 - phase) / x->stride[2] + 1 : 0;
}

/* Writes 2 n elements of a row of the gradient for a stride of 2. at[i] is the term that window i adds to each element in it; window i begins at
 * element 2 i. The function computes a vector of even and a vector of odd elements at a time and interleaves them. */
static void take_pairs(const struct grd_pool *x, const T *at, int64_t n, T *out)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const vector even = sum_of(at + i, taps_of(x, 0), -1), odd = sum_of(at + i, taps_of(x, 1), -1);
        const int64_t elements = 2 * grd_least(LANES, n - i);
        store_first(out + 2 * i, low_pairs(even, odd), grd_least(LANES, elements));
        if (elements > LANES)
            store_first(out + 2 * i + LANES, high_pairs(even, odd), elements - LANES);
    }
}

/* Writes n * stride elements of a row of the gradient. Window i begins at element i * stride, and at[i] is the term that it adds to each of its
 * elements. Element i * stride + phase is contained in taps_of(x, phase) windows. Window i is the last of these. */
static void take_strides(const struct grd_pool *x, const T *at, int64_t n, T *out)
{
    const int64_t stride = x->stride[2];
    for (int64_t phase = 0; phase < stride; phase++)
        for (int64_t i = 0; i < n; i += LANES) {
            const vector sum = sum_of(at + i, taps_of(x, phase), -1);
            for (int64_t k = 0; k < grd_least(LANES, n - i); k++)
                out[(i + k) * stride + phase] = sum[k];
        }
}

/* Writes element i of a row of the gradient, with all its channels. `line` holds one term for each window along the width. The element is the sum of
 * the terms of the windows that contain it. windows_of() finds these windows, so the function also serves at the ends of a row. */
static void take_element(const struct grd_pool *x, const T *line, int64_t i, T *out)
{
    const struct range r = windows_of(x, 2, i);
    take_shares(line + r.first * x->channels, r.n, x->channels, x->channels, out);
}

/* Writes n elements of a row of the gradient. Each is the sum of the terms of all windows that contain it. The terms are in an array, one for each
 * window along the width, and `last` points to the term of the last window that contains the first element. Terms before or after the array must be
 * readable and 0. */
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

/* Writes a row of the gradient. `line` holds one term for each window along the width. Each element is the sum of the terms of the windows that
 * contain it. */
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

/* Writes `rows` equal rows of the gradient. `line` holds one term for each window along the width. Each element is the sum of the terms of the
 * windows that contain it. */
static void spread_rows(const struct gradient *g, const T *line, T *out, int64_t rows)
{
    const int64_t width = g->pool->in[2] * g->pool->channels;
    spread_line(g, line, out);
    for (int64_t i = 1; i < rows; i++)
        memcpy(out + i * width, out, (size_t)width * sizeof *out);
}

/* Finds the elements [g->low, g->high) of an input row that need no test for the ends of the row. The range stays empty for adaptive pooling, or if
 * there are several channels and a stride above 1. Otherwise fills the memory at `lines` with zeros. Each line holds one value for each window along
 * the width, with a margin on both sides. The zeros in the margins stand for windows beyond the ends of the row, which add nothing. */
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
    g->high = (roomy ? windows : grd_least(x->out[2], windows)) * stride - padding;
}

static void average_backward(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, void *grad_in, void *memory)
{
    const int64_t width = x->in[2] * x->channels, line_step = x->out[2] * x->channels + GRD_POOL_SLACK / (int64_t)sizeof(T);
    T *const counts = memory, *const lines = counts + line_step + MARGIN;
    struct gradient g = {.pool = x, .grad = grad, .out = grad_in, .counts = counts};
    for (int64_t i = 0; i < line_step && x->out[2] > 0; i++) {
        const int64_t o = grd_least(i / x->channels, x->out[2] - 1);
        counts[i] = (C)(x->divisor != 0 ? x->divisor : count_of(x, range_of(x, 2, o)));
    }
    find_inner(&g, lines, line_step);
    while (begin < end) {
        int64_t rows[GRD_POOL_LINES], n = 0;
        for (int64_t i = begin; i < end && n < x->lines; i += rows[n++]) {
            const struct row at = row_of(x->in, i);
            join_shares(&g, &at, lines + n * line_step);
            rows[n] = grd_least(rows_alike(x, at.h), end - i);
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
