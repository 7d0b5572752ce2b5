/* Where each element of a resampled image comes from, with which weights: tables along each axis. The loops over images are in cpu/resample.c.
 *
 * Positions are computed as PyTorch computes them, in float32 where it does. */
#include "kernel/resample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    ALIGNMENT = 64,
    MOST_PRECISION = 22, /* bits of a weight in fixed point behind the point, as in PyTorch */
    WEIGHT_LIMIT = 1 << 15,
    MOST_TAPS = 4 /* of what is no filter */
};

/* ---- Positions ------------------------------------------------------------------------------------------------------------------------- */

/* x in the precision of positions: after every operation it makes arithmetic in double that of float. */
static double rounded(const struct grd_resample_source *x, double value)
{
    return x->single ? (double)(float)value : value;
}

/* The position in the input of the middle of element o of the output; with aligned corners elements are their middles. */
static double position_of(const struct grd_resample_source *x, double scale, int64_t o)
{
    if (x->align_corners)
        return rounded(x, scale * (double)o);
    const double position = rounded(x, rounded(x, scale * rounded(x, (double)o + 0.5)) - 0.5);
    return x->mode != GRD_RESAMPLE_CUBIC && position < 0 ? 0 : position;
}

/* Keys's cubic convolution, for distances up to 1 and from 1 to 2. */
static double cubic_near(double x, double a)
{
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static double cubic_far(double x, double a)
{
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* sin(pi x) / (pi x) */
static double sinc(double x)
{
    const double angle = 3.14159265358979323846 * x;
    return x == 0 ? 1 : sin(angle) / angle;
}

static double filter(enum grd_resample_mode mode, double distance)
{
    const double x = fabs(distance);
    if (mode == GRD_RESAMPLE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (mode == GRD_RESAMPLE_LANCZOS)
        return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    return x < 1 ? cubic_near(x, -0.5) : x < 2 ? cubic_far(x, -0.5) : 0;
}

/* ---- Taps ------------------------------------------------------------------------------------------------------------------------------ */

/* An output is a sum over elements first, ..., first + n - 1, the ones beyond the ends moved to them. `at` says where between them it lies: in parts of an element
 * behind the one before it or, for filters, where its middle is. */
struct taps {
    int64_t first, n;
    double at;
};

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* The nearest element. Like in PyTorch, a two-dimensional image whose size stays or doubles ignores the scale that is given. */
static struct taps nearest_tap(const struct grd_resample_source *x, int64_t in, int64_t out, double scale, int64_t o)
{
    if (x->mode == GRD_RESAMPLE_NEAREST && x->n == 2 && (out == in || out == 2 * in))
        return (struct taps){o * in / out, 1, 0};
    const double middle = (double)o + (x->mode == GRD_RESAMPLE_NEAREST_EXACT ? 0.5 : 0);
    const double position = floor((double)(float)((float)middle * (float)scale));
    return (struct taps){position < (double)in ? (int64_t)position : in - 1, 1, 0};
}

static struct taps linear_taps(const struct grd_resample_source *x, int64_t in, int64_t out, double scale, int64_t o)
{
    const double position = in == out ? (double)o : position_of(x, scale, o);
    const int64_t first = position < (double)in ? (int64_t)position : in - 1;
    return (struct taps){first, 2, fmin(fmax(rounded(x, position - (double)first), 0), 1)};
}

static struct taps cubic_taps(const struct grd_resample_source *x, int64_t in, double scale, int64_t o)
{
    const double position = position_of(x, scale, o), whole = fmin(floor(position), (double)(in - 1));
    const int64_t before = whole < 0 ? -1 : (int64_t)whole;
    return (struct taps){before - 1, 4, fmin(fmax(rounded(x, position - whole), 0), 1)};
}

double grd_resample_reach(const struct grd_resample_source *x, double scale)
{
    const double reach = x->mode == GRD_RESAMPLE_LANCZOS ? 3 : x->mode == GRD_RESAMPLE_CUBIC ? 2 : 1;
    return reach * (scale >= 1 ? scale : 1);
}

/* The taps of an antialiasing filter, which is stretched by the scale if the image shrinks, so that it covers an output. */
static struct taps filter_taps(const struct grd_resample_source *x, int64_t in, double scale, int64_t o)
{
    const double reach = rounded(x, grd_resample_reach(x, scale)), middle = rounded(x, scale * rounded(x, (double)o + 0.5));
    const double begin = middle - reach + 0.5, end = middle + reach + 0.5;
    const int64_t first = begin > 0 ? clamped((int64_t)fmin(begin, (double)in), in + 1) : 0;
    const int64_t n = (int64_t)fmin(end, (double)in) - first, most = grd_resample_filter_taps(x, in, scale);
    return (struct taps){first, n < 0 ? 0 : n > most ? most : n, middle};
}

int64_t grd_resample_filter_taps(const struct grd_resample_source *x, int64_t in, double scale)
{
    return (int64_t)fmin(2 * ceil(grd_resample_reach(x, scale)) + 1, (double)in);
}

static bool is_resampled(const struct grd_resample_source *x, int axis)
{
    return axis >= GRD_RESAMPLE_AXES - x->n;
}

/* Returns the taps of output o along an axis of `in` elements; along an axis that is not resampled the element at o, with weight 1. */
static struct taps taps_of(const struct grd_resample_source *x, int axis, int64_t in, int64_t out, int64_t o)
{
    const double scale = x->scales[axis];
    if (!is_resampled(x, axis))
        return (struct taps){o, 1, 0};
    if (x->antialias)
        return filter_taps(x, in, scale, o);
    return x->mode == GRD_RESAMPLE_CUBIC    ? cubic_taps(x, in, scale, o)
           : x->mode == GRD_RESAMPLE_LINEAR ? linear_taps(x, in, out, scale, o)
                                            : nearest_tap(x, in, out, scale, o);
}

/* The weights of a filter sum to 1. */
static void weigh_filter(const struct grd_resample_source *x, double scale, const struct taps *t, double *weights)
{
    const double shrink = scale >= 1 ? rounded(x, 1 / scale) : 1;
    double sum = 0;
    for (int64_t k = 0; k < t->n; k++) {
        weights[k] = filter(x->mode, rounded(x, rounded(x, rounded(x, (double)(t->first + k) - t->at) + 0.5) * shrink));
        sum += weights[k];
    }
    for (int64_t k = 0; k < t->n && sum != 0; k++)
        weights[k] /= sum;
}

static void weigh(const struct grd_resample_source *x, int axis, const struct taps *t, double *weights)
{
    if (x->antialias && is_resampled(x, axis))
        weigh_filter(x, x->scales[axis], t, weights);
    else if (t->n == 4) {
        weights[0] = cubic_far(t->at + 1, -0.75);
        weights[1] = cubic_near(t->at, -0.75);
        weights[2] = cubic_near(1 - t->at, -0.75);
        weights[3] = cubic_far(2 - t->at, -0.75);
    } else {
        weights[0] = rounded(x, 1 - t->at);
        weights[t->n - 1] = t->n == 2 ? t->at : weights[0];
    }
}

/* ---- Tables ---------------------------------------------------------------------------------------------------------------------------- */

/* A table while it is made: weights are doubles. */
struct table {
    int64_t out; /* tap k of output o is at k * out + o */
    double *weights;
    int32_t *index, *counts;
};

static void put_tap(const struct table *t, int64_t o, int64_t index, double weight)
{
    const int64_t at = t->counts[o]++ * t->out + o;
    t->index[at] = (int32_t)index;
    t->weights[at] = weight;
}

/* Output o has each element once in a row. */
static void add_tap(const struct table *t, int64_t o, int64_t index, double weight)
{
    const int64_t last = (t->counts[o] - 1) * t->out + o;
    if (t->counts[o] > 0 && t->index[last] == index)
        t->weights[last] += weight;
    else
        put_tap(t, o, index, weight);
}

/* An element that several taps of output o name has the weight of all in the first. */
static void merge_taps(const struct table *t, int64_t o)
{
    for (int64_t k = (t->counts[o] - 1) * t->out + o; k > o; k -= t->out)
        if (t->index[k] == t->index[k - t->out]) {
            t->weights[k - t->out] += t->weights[k];
            t->weights[k] = 0;
        }
}

/* The most bits behind the point with which the largest of n weights still is an int16. */
static int precision_of(const double *weights, int64_t n)
{
    double largest = 0;
    int precision = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, weights[i]);
    while (precision < MOST_PRECISION && (int64_t)(0.5 + largest * (double)(1 << (precision + 1))) < WEIGHT_LIMIT)
        precision++;
    return precision;
}

/* The weights in the kernel's type, in the place of the doubles. */
static void convert_weights(const struct grd_resample_source *x, struct grd_resample_axis *a, double *weights)
{
    const int64_t n = a->out * a->taps;
    a->weights = weights;
    a->precision = x->weight_bytes == sizeof(int16_t) ? precision_of(weights, n) : 0;
    for (int64_t i = 0; i < n; i++) {
        const double w = weights[i], fixed = w * (double)(1 << a->precision);
        if (x->weight_bytes == sizeof(int16_t))
            ((int16_t *)weights)[i] = (int16_t)(fixed < 0 ? fixed - 0.5 : fixed + 0.5);
        else if (x->weight_bytes == sizeof(float))
            ((float *)weights)[i] = (float)w;
    }
}

int64_t grd_resample_most_outputs(const struct grd_resample_source *x, int axis, int64_t in, int64_t out)
{
    int64_t most = 1, begin = 0;
    for (int64_t o = 0; o < out; o++) {
        const struct taps t = taps_of(x, axis, in, out, o);
        struct taps before = taps_of(x, axis, in, out, begin);
        while (begin < o && clamped(before.first + before.n - 1, in) < clamped(t.first, in))
            before = taps_of(x, axis, in, out, ++begin);
        most = o - begin + 1 > most ? o - begin + 1 : most;
    }
    return most;
}

/* Includes room for the weights of one output, which has at most as many taps as the input has elements, and at most MOST_TAPS. */
int64_t grd_resample_table_bytes(const struct grd_resample_axis *a)
{
    const int64_t most = (a->in > a->out ? a->in : a->out) + MOST_TAPS;
    return ((a->out * a->taps * (int64_t)(sizeof(double) + sizeof(int32_t)) + a->out * (int64_t)sizeof(int32_t) +
             most * (int64_t)sizeof(double)) /
                ALIGNMENT +
            1) *
           ALIGNMENT;
}

static bool all_full(const struct grd_resample_axis *a)
{
    for (int64_t o = 0; o < a->out; o++)
        if (a->counts[o] != a->taps)
            return false;
    return true;
}

static void make_table(const struct grd_resample_source *x, int axis, struct grd_resample_axis *a, char *memory)
{
    const int64_t in = x->transposed ? a->out : a->in, out = x->transposed ? a->in : a->out;
    struct table table = {.out = a->out, .weights = (double *)memory};
    memset(memory, 0, (size_t)grd_resample_table_bytes(a));
    double *const weights = table.weights + a->out * a->taps;
    table.index = (int32_t *)(weights + (in > out ? in : out) + MOST_TAPS);
    table.counts = table.index + a->out * a->taps;
    for (int64_t o = 0; o < out; o++) {
        const struct taps t = taps_of(x, axis, in, out, o);
        weigh(x, axis, &t, weights);
        for (int64_t k = 0; k < t.n; k++)
            if (x->transposed)
                add_tap(&table, clamped(t.first + k, in), o, weights[k]);
            else
                put_tap(&table, o, clamped(t.first + k, in), weights[k]);
        if (x->weight_bytes == sizeof(int16_t))
            merge_taps(&table, o);
    }
    a->index = table.index;
    a->counts = table.counts;
    a->full = all_full(a);
    convert_weights(x, a, table.weights);
}

void grd_resample_make_tables(const struct grd_resample_source *x, struct grd_resample *kernel, char *memory)
{
    for (int i = 0; i < GRD_RESAMPLE_AXES; i++) {
        make_table(x, i, &kernel->axes[i], memory);
        memory += grd_resample_table_bytes(&kernel->axes[i]);
    }
}
