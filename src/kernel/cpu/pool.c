/* The loops of pooling; see kernel/pool.h. Typed: int64 float32 float64.
 *
 * Windows are taken a vector at a time: its lanes are neighbours in a row, whose elements are `stride` apart, or the channels at one place. Windows at the edge
 * of a row, which lack some elements, are taken alone.
 * Invariant: each lane combines the elements of its window in the order of their places, so that results do not depend on the level. */
#include "kernel/pool.h"

#include <string.h>

#include "kernel/cpu/lanes.h"

enum { PLACE_LIMIT = INT32_MAX };

/* Integers as wide as an element: masks, and places in an image, whose windows are taken alone where it has more than PLACE_LIMIT. */
#if GRD_TAG == GRD_TAG_float32
typedef int32_t P;
#else
typedef int64_t P;
#endif
typedef P place_vector __attribute__((vector_size(VECTOR_BYTES)));

/* The elements of windows that are in the image: n[0] * n[1] * n[2] of them, the first at `first` for lane 0. */
struct window {
    int64_t n[GRD_POOL_AXES], step[GRD_POOL_AXES]; /* along depth, height and width; in elements of the input */
    int64_t first, place;                          /* the element of the first; the place of that in the image */
    int64_t place_step[GRD_POOL_AXES], lane_place; /* from element to element, and from lane to lane */
    int64_t count;                                 /* what an average is divided by */
};

/* The lanes in use: those in `some` unless all are; of vectors that hold every other element those in `low` and `high`. */
struct lanes {
    int64_t n;
    lane_mask some, low, high;
};

/* An image, and the channels of it to take. */
struct job {
    const struct grd_pool *pool;
    const T *in, *grad;
    T *out, *grad_in;
    int64_t *indices;
    int64_t places;
    int64_t from, n;
};

/* Works on windows side by side, whose outputs begin at `at` in those of the image. `all`: every lane is used. `stride`: elements from lane to lane. */
typedef void lanes_function(const struct job *job, const struct window *w, const struct lanes *lanes, bool all, int64_t stride, int64_t at);

/* ---- Vectors ------------------------------------------------------------------------------------------------------------------------- */

static inline struct lanes lanes_of(int64_t n)
{
    const int64_t pairs = 2 * n - 1;
    return (struct lanes){n, first_lanes(n), first_lanes(at_most(pairs, LANES)), first_lanes(pairs > LANES - 1 ? pairs - (LANES - 1) : 0)};
}

/* Every other element of two vectors, of which the second begins with the last of the first. */
INLINE vector every_other(vector low, vector high)
{
#if defined(__AVX512F__) && GRD_TAG == GRD_TAG_float32
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
#elif defined(__AVX512F__) || (defined(__AVX__) && GRD_TAG == GRD_TAG_float32)
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
#elif defined(__AVX__) || GRD_TAG == GRD_TAG_float32
    return __builtin_shufflevector(low, high, 0, 2, 5, 7);
#else
    return __builtin_shufflevector(low, high, 0, 3);
#endif
}

/* Reads no element but those of the lanes and what lies between them. */
INLINE vector load_apart(const T *at, const struct lanes *lanes, bool all, int64_t stride)
{
    if (stride == 1)
        return all ? load_vector(at) : load_lanes(at, lanes->some);
    if (stride == 2)
        return all ? every_other(load_vector(at), load_vector(at + LANES - 1))
                   : every_other(load_lanes(at, lanes->low), load_lanes(at + LANES - 1, lanes->high));
    vector v = {0};
    for (int64_t i = 0; i < (all ? LANES : lanes->n); i++)
        v[i] = at[i * stride];
    return v;
}

INLINE void store_some(T *at, vector v, const struct lanes *lanes, bool all)
{
    if (all)
        store_vector(at, v);
    else
        store_lanes(at, lanes->some, v);
}

INLINE vector vector_of(C x)
{
    return (vector){0} + x;
}

INLINE place_vector choose(place_vector mask, place_vector yes, place_vector no)
{
    return (mask & yes) | (~mask & no);
}

/* ---- Windows ------------------------------------------------------------------------------------------------------------------------- */

struct range {
    int64_t first, n; /* elements in the image */
    int64_t extent;   /* with those of the padding */
};

static inline struct range range_of(const struct grd_pool *x, int axis, int64_t o)
{
    const int64_t in = x->in[axis], out = x->out[axis], dilation = x->dilation[axis];
    if (x->kernel[axis] == 0) {
        const int64_t first = o * in / out, n = ((o + 1) * in + out - 1) / out - first;
        return (struct range){first, n, n};
    }
    const int64_t at = o * x->stride[axis] - x->padding[axis];
    const int64_t skipped = at < 0 ? (dilation - 1 - at) / dilation : 0, inside = (in - at + dilation - 1) / dilation;
    const int64_t n = at_most(x->kernel[axis], inside) - skipped;
    return (struct range){at + skipped * dilation, n > 0 ? n : 0, at_most(x->kernel[axis], in + x->padding[axis] - at)};
}

static inline struct window window_of(const struct grd_pool *x, const struct range *r, int64_t from)
{
    const int64_t height = x->in[1], width = x->in[2];
    const int64_t apart[GRD_POOL_AXES] = {height * width, width, 1};
    struct window w = {.lane_place = x->channels > 1 ? 0 : x->stride[2], .count = 1};
    w.place = (r[0].first * height + r[1].first) * width + r[2].first;
    w.first = w.place * x->channels + from;
    for (int i = 0; i < GRD_POOL_AXES; i++) {
        w.n[i] = r[i].n;
        w.place_step[i] = apart[i] * x->dilation[i];
        w.step[i] = w.place_step[i] * x->channels;
        w.count *= x->include_pad ? r[i].extent : r[i].n;
    }
    w.count = x->divisor != 0 ? x->divisor : w.count;
    return w;
}

/* n windows, or channels of one, side by side. */
INLINE void take(const struct job *job, struct window *w, int64_t n, int64_t stride, int64_t at, lanes_function *body)
{
    const int64_t first = w->first, place = w->place, most = job->places <= PLACE_LIMIT ? LANES : 1;
    for (int64_t i = 0; i < n; i += most) {
        const struct lanes lanes = lanes_of(at_most(most, n - i));
        w->first = first + i * stride;
        w->place = place + i * w->lane_place;
        if (lanes.n == LANES)
            body(job, w, &lanes, true, stride, at + i);
        else
            body(job, w, &lanes, false, stride, at + i);
    }
}

/* Windows [low, high) of a row are those that lack no element; none of adaptive ones. */
static inline void find_complete(const struct grd_pool *x, int64_t *ret_low, int64_t *ret_high)
{
    const int64_t out = x->out[2], padding = x->padding[2], stride = x->stride[2], kernel = x->kernel[2];
    const int64_t last =
        kernel == 0 ? -1 : x->in[2] + padding - (kernel - 1) * x->dilation[2] - 1; /* where one may begin, in the padded row */
    *ret_low = last < 0 ? 0 : at_most((padding + stride - 1) / stride, out);
    *ret_high = last < 0 ? 0 : at_most(last / stride + 1, out);
}

INLINE void take_row(const struct job *job, int64_t row, lanes_function *body)
{
    const struct grd_pool *x = job->pool;
    struct range r[GRD_POOL_AXES] = {range_of(x, 0, row / x->out[1]), range_of(x, 1, row % x->out[1])};
    int64_t low = 0, high = 0;
    if (x->channels == 1)
        find_complete(x, &low, &high);
    for (int64_t o = 0; o < x->out[2];) {
        const bool complete = o == low && low < high;
        const int64_t at = (row * x->out[2] + o) * x->channels + job->from, n = complete ? high - low : 1;
        r[2] = range_of(x, 2, o);
        struct window w = window_of(x, r, job->from);
        if (x->channels > 1)
            take(job, &w, job->n, 1, at, body);
        else if (!complete || x->stride[2] == 1)
            take(job, &w, n, 1, at, body);
        else if (x->stride[2] == 2)
            take(job, &w, n, 2, at, body);
        else
            take(job, &w, n, x->stride[2], at, body);
        o += n;
    }
}

static inline int64_t places_of(const struct grd_pool *x)
{
    return x->in[0] * x->in[1] * x->in[2];
}

static inline int64_t outputs_of(const struct grd_pool *x)
{
    return x->out[0] * x->out[1] * x->out[2];
}

INLINE void take_rows(const struct grd_pool *x, int64_t begin, int64_t end, const T *in, T *out, int64_t *indices, lanes_function *body)
{
    const int64_t rows = x->out[0] * x->out[1], places = places_of(x), outputs = outputs_of(x) * x->channels;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / rows;
        const struct job job = {.pool = x,
                                .in = in + image * places * x->channels,
                                .out = out + image * outputs,
                                .places = places,
                                .indices = indices != NULL ? indices + image * outputs : NULL,
                                .n = x->channels};
        take_row(&job, i % rows, body);
    }
}

/* Part i of all images; what is saved of its image comes later. */
static struct job part(const struct grd_pool *x, int64_t i, const T *grad, T *grad_in)
{
    const int64_t parts = (x->channels + GRD_POOL_CHANNELS - 1) / GRD_POOL_CHANNELS, places = places_of(x);
    const int64_t image = i / parts, from = i % parts * GRD_POOL_CHANNELS;
    return (struct job){.pool = x,
                        .grad = grad + image * outputs_of(x) * x->channels,
                        .grad_in = grad_in + image * places * x->channels,
                        .places = places,
                        .from = from,
                        .n = at_most(GRD_POOL_CHANNELS, x->channels - from)};
}

/* ---- The largest ------------------------------------------------------------------------------------------------------------------------ */

static inline C least(void)
{
#if GRD_IS_FLOAT
    return (C)-__builtin_inf();
#else
    return INT64_MIN;
#endif
}

/* NaN is larger than what is not. */
INLINE place_vector is_larger(vector v, vector best)
{
#if GRD_IS_FLOAT
    return (v > best) | (v != v);
#else
    return v > best;
#endif
}

/* The largest element of each lane, and how far its place is from that of the first element. */
INLINE vector find_largest(const struct window *w, const T *in, const struct lanes *lanes, bool all, int64_t stride, place_vector *found)
{
    vector best = vector_of(least());
    for (int64_t d = 0; d < w->n[0]; d++)
        for (int64_t h = 0; h < w->n[1]; h++) {
            const T *at = in + w->first + d * w->step[0] + h * w->step[1];
            const int64_t place = d * w->place_step[0] + h * w->place_step[1];
            for (int64_t k = 0; k < w->n[2]; k++) {
                const vector v = load_apart(at + k * w->step[2], lanes, all, stride);
                const place_vector larger = is_larger(v, best), here = (place_vector){0} + (P)(place + k * w->place_step[2]);
                best = (vector)choose(larger, (place_vector)v, (place_vector)best);
                if (found != NULL)
                    *found = choose(larger, here, *found);
            }
        }
    return best;
}

INLINE void largest_lanes(const struct job *job, const struct window *w, const struct lanes *lanes, bool all, int64_t stride, int64_t at)
{
    store_some(job->out + at, find_largest(w, job->in, lanes, all, stride, NULL), lanes, all);
}

INLINE void write_indices(int64_t *to, const P *apart, int64_t n, int64_t place, int64_t lane_place)
{
    LANEWISE
    for (int64_t i = 0; i < n; i++)
        to[i] = place + i * lane_place + apart[i];
}

INLINE void indexed_lanes(const struct job *job, const struct window *w, const struct lanes *lanes, bool all, int64_t stride, int64_t at)
{
    place_vector found = {0};
    P apart[LANES];
    store_some(job->out + at, find_largest(w, job->in, lanes, all, stride, &found), lanes, all);
    memcpy(apart, &found, sizeof apart);
    if (all)
        write_indices(job->indices + at, apart, LANES, w->place, w->lane_place);
    else
        write_indices(job->indices + at, apart, lanes->n, w->place, w->lane_place);
}

static void largest(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out, int64_t *indices)
{
    if (indices == NULL)
        take_rows(x, begin, end, in, out, NULL, largest_lanes);
    else
        take_rows(x, begin, end, in, out, indices, indexed_lanes);
}

static void largest_backward(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, const int64_t *indices, void *grad_in)
{
    const int64_t outputs = outputs_of(x), channels = x->channels;
    for (int64_t i = begin; i < end; i++) {
        const struct job job = part(x, i, grad, grad_in);
        const int64_t *index = indices + (job.grad - (const T *)grad);
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t c = job.from; c < job.from + job.n; c++)
                if ((uint64_t)index[o * channels + c] < (uint64_t)job.places)
                    job.grad_in[index[o * channels + c] * channels + c] += job.grad[o * channels + c];
    }
}

/* ---- Averages ------------------------------------------------------------------------------------------------------------------------- */

INLINE void average_lanes(const struct job *job, const struct window *w, const struct lanes *lanes, bool all, int64_t stride, int64_t at)
{
    vector sum = {0};
    for (int64_t d = 0; d < w->n[0]; d++)
        for (int64_t h = 0; h < w->n[1]; h++)
            for (int64_t k = 0; k < w->n[2]; k++)
                sum += load_apart(job->in + w->first + d * w->step[0] + h * w->step[1] + k * w->step[2], lanes, all, stride);
    store_some(job->out + at, sum / vector_of((C)w->count), lanes, all);
}

INLINE void add_apart(T *at, vector v, const struct lanes *lanes, bool all, int64_t stride)
{
    if (stride == 1)
        store_some(at, load_apart(at, lanes, all, 1) + v, lanes, all);
    else
        for (int64_t i = 0; i < (all ? LANES : lanes->n); i++)
            at[i * stride] += v[i];
}

INLINE void share_lanes(const struct job *job, const struct window *w, const struct lanes *lanes, bool all, int64_t stride, int64_t at)
{
    const vector share = load_apart(job->grad + at, lanes, all, 1) / vector_of((C)w->count);
    for (int64_t d = 0; d < w->n[0]; d++)
        for (int64_t h = 0; h < w->n[1]; h++)
            for (int64_t k = 0; k < w->n[2]; k++)
                add_apart(job->grad_in + w->first + d * w->step[0] + h * w->step[1] + k * w->step[2], share, lanes, all, stride);
}

static void average(const struct grd_pool *x, int64_t begin, int64_t end, const void *in, void *out)
{
    take_rows(x, begin, end, in, out, NULL, average_lanes);
}

static void average_backward(const struct grd_pool *x, int64_t begin, int64_t end, const void *grad, void *grad_in)
{
    for (int64_t i = begin; i < end; i++) {
        const struct job job = part(x, i, grad, grad_in);
        for (int64_t row = 0; row < x->out[0] * x->out[1]; row++)
            take_row(&job, row, share_lanes);
    }
}

const struct grd_pool_row GRD_TYPED(grd_pool_row) = {
    .largest = largest, .largest_backward = largest_backward, .average = average, .average_backward = average_backward};
