/* Makes the tables for resampling images. For each axis a table lists, for each output element, the input elements that are summed for it and
 * their weights. The loops over images are in cpu/resample.c.
 *
 * Positions are rounded as in PyTorch, to float32 where PyTorch computes in float32. */
#include "base/integer.h"
#include "kernel/resample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    ALIGNMENT = 64,
    MOST_PRECISION = 22, /* the most fractional bits that a weight in fixed point has, as in PyTorch */
    WEIGHT_LIMIT = 1 << 15,
    MOST_TAPS = 4 /* without an antialiasing filter, the most input elements that are summed for one output element */
};

/* ---- Positions ------------------------------------------------------------------------------------------------------------------------- */

/* Rounds `value` to float32 if positions are float32. A call after every operation makes double arithmetic give the results of float32 arithmetic. */
static double rounded(const struct grd_resample_source *x, double value)
{
    return x->single ? (double)(float)value : value;
}

/* Returns the position in the input that corresponds to the centre of output element o. With align_corners, an element's centre has the
 * element's number as its coordinate. */
static double position_of(const struct grd_resample_source *x, double scale, int64_t o)
{
    if (x->align_corners)
        return rounded(x, scale * (double)o);
    const double position = rounded(x, rounded(x, scale * rounded(x, (double)o + 0.5)) - 0.5);
    return x->mode != GRD_RESAMPLE_CUBIC && position < 0 ? 0 : position;
}

/* The two functions below compute Keys's cubic convolution kernel with parameter `a` at distance x: cubic_near for x up to 1, cubic_far for x from
 * 1 to 2. */
static double cubic_near(double x, double a)
{
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static double cubic_far(double x, double a)
{
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* Returns sin(pi x) / (pi x). */
static double sinc(double x)
{
    const double angle = 3.14159265358979323846 * x;
    return x == 0 ? 1 : sin(angle) / angle;
}

/* Returns the value of the antialiasing filter of `mode` at `distance` from its centre. The unit of the distance is one input element, or `scale`
 * input elements if the image shrinks. */
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

/* The input elements that are summed for one output element: elements `first` to first + n - 1. An index outside of the image stands for the nearest
 * element inside. With an antialiasing filter, `at` is the coordinate of the centre of the filter. Without one, `at` is the position of the output
 * between two neighbouring elements, from 0 to 1. */
struct taps {
    int64_t first, n;
    double at;
};

/* Returns the one input element that is nearest to output o. As in PyTorch, a scale given by the caller is ignored for two-dimensional images
 * whose size is kept or doubled. */
static struct taps nearest_tap(const struct grd_resample_source *x, int64_t in, int64_t out, double scale, int64_t o)
{
    if (x->mode == GRD_RESAMPLE_NEAREST && x->n == 2 && (out == in || out == 2 * in))
        return (struct taps){o * in / out, 1, 0};
    const double middle = (double)o + (x->mode == GRD_RESAMPLE_NEAREST_EXACT ? 0.5 : 0);
    const double position = floor((double)(float)((float)middle * (float)scale));
    return (struct taps){position < (double)in ? (int64_t)position : in - 1, 1, 0};
}

/* Returns the two neighbouring input elements between which output o is linearly interpolated. */
static struct taps linear_taps(const struct grd_resample_source *x, int64_t in, int64_t out, double scale, int64_t o)
{
    const double position = in == out ? (double)o : position_of(x, scale, o);
    const int64_t first = position < (double)in ? (int64_t)position : in - 1;
    return (struct taps){first, 2, fmin(fmax(rounded(x, position - (double)first), 0), 1)};
}

/* Returns the four neighbouring input elements from which output o is interpolated by a cubic. */
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

/* Returns the input elements under the antialiasing filter of output o. If the image shrinks, the filter is stretched by the scale, so that no
 * input element is skipped. */
static struct taps filter_taps(const struct grd_resample_source *x, int64_t in, double scale, int64_t o)
{
    const double reach = rounded(x, grd_resample_reach(x, scale)), middle = rounded(x, scale * rounded(x, (double)o + 0.5));
    const double begin = middle - reach + 0.5, end = middle + reach + 0.5;
    const int64_t first = begin > 0 ? grd_clamped((int64_t)fmin(begin, (double)in), 0, in) : 0;
    const int64_t n = (int64_t)fmin(end, (double)in) - first, most = grd_resample_filter_taps(x, in, scale);
    return (struct taps){first, grd_clamped(n, 0, most), middle};
}

int64_t grd_resample_filter_taps(const struct grd_resample_source *x, int64_t in, double scale)
{
    return (int64_t)fmin(2 * ceil(grd_resample_reach(x, scale)) + 1, (double)in);
}

static bool is_resampled(const struct grd_resample_source *x, int axis)
{
    return axis >= GRD_RESAMPLE_AXES - x->n;
}

/* Returns the input elements that are summed for output o, along an axis of `in` elements. This is element o alone if the axis is not resampled. */
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

/* Writes the weights of the input elements `t` in the antialiasing filter, scaled so that their sum is 1. */
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

/* Writes the weights of the input elements `t` of one output. */
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

/* A table under construction, with weights of type double. */
struct table {
    int64_t out; /* number of outputs; the k-th element and weight of output o are at index k * out + o */
    double *weights;
    int32_t *index, *counts;
};

/* Appends input element `index` and its weight to the list of input elements that are summed for output o. */
static void put_tap(const struct table *t, int64_t o, int64_t index, double weight)
{
    const int64_t at = t->counts[o]++ * t->out + o;
    t->index[at] = (int32_t)index;
    t->weights[at] = weight;
}

/* Appends input element `index` and its weight to the list of elements that are summed for output o. If the last element of the list is the same
 * element, adds `weight` to its weight instead. */
static void add_tap(const struct table *t, int64_t o, int64_t index, double weight)
{
    const int64_t last = (t->counts[o] - 1) * t->out + o;
    if (t->counts[o] > 0 && t->index[last] == index)
        t->weights[last] += weight;
    else
        put_tap(t, o, index, weight);
}

/* If successive entries in the list of output o have the same input element, moves the sum of their weights to the first of these entries. Otherwise
 * each weight would be rounded to int16 on its own, which adds errors. */
static void merge_taps(const struct table *t, int64_t o)
{
    for (int64_t k = (t->counts[o] - 1) * t->out + o; k > o; k -= t->out)
        if (t->index[k] == t->index[k - t->out]) {
            t->weights[k - t->out] += t->weights[k];
            t->weights[k] = 0;
        }
}

/* Returns the largest number of fractional bits with which all n weights, in fixed point, fit into an int16. */
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

/* Converts the weights from double to the type that the kernel reads, in the same memory. This type is int16 for uint8 images, otherwise the dtype of
 * the images. */
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
        while (begin < o && grd_clamped(before.first + before.n - 1, 0, in - 1) < grd_clamped(t.first, 0, in - 1))
            before = taps_of(x, axis, in, out, ++begin);
        most = o - begin + 1 > most ? o - begin + 1 : most;
    }
    return most;
}

/* Returns the size in bytes of the table of one axis, including scratch memory for the weights of one output. The scratch memory is large enough
 * because one output uses at most as many elements as the input has, or MOST_TAPS if there is no filter. */
int64_t grd_resample_table_bytes(const struct grd_resample_axis *a)
{
    const int64_t most = (a->in > a->out ? a->in : a->out) + MOST_TAPS;
    return ((a->out * a->taps * (int64_t)(sizeof(double) + sizeof(int32_t)) + a->out * (int64_t)sizeof(int32_t) +
             most * (int64_t)sizeof(double)) /
                ALIGNMENT +
            1) *
           ALIGNMENT;
}

/* True if each output element is the sum of the same number of input elements, a->taps. */
static bool all_full(const struct grd_resample_axis *a)
{
    for (int64_t o = 0; o < a->out; o++)
        if (a->counts[o] != a->taps)
            return false;
    return true;
}

/* Builds in `memory` the table of one axis, which lists the elements to sum for each output. If x->transposed, builds the table of the backward pass,
 * which lists for each input element the outputs that use it. */
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
                add_tap(&table, grd_clamped(t.first + k, 0, in - 1), o, weights[k]);
            else
                put_tap(&table, o, grd_clamped(t.first + k, 0, in - 1), weights[k]);
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
