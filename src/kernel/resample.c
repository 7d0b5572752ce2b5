/* Where each element of a resampled image comes from, with which weights: tables along each axis. The loops over images are in cpu/resample.c.
 *
 * Positions are computed as PyTorch computes them, in float32 where it does. */
#include "kernel/resample.h"

#include <math.h>
#include <string.h>

enum {
    ALIGNMENT = 64,
    MOST_PRECISION = 22, /* bits of a weight in fixed point behind the point, as in PyTorch */
    WEIGHT_LIMIT = 1 << 15
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

/* ---- Tables ---------------------------------------------------------------------------------------------------------------------------- */

/* The table of an axis while it is made: weights as doubles of one output. */
struct row {
    int64_t in, o;
    int64_t taps;
    int32_t *index;  /* every out-th */
    double *weights; /* of all outputs, every out-th */
    int64_t out;
};

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static void put_tap(const struct row *r, int64_t k, int64_t index, double weight)
{
    r->index[k * r->out + r->o] = (int32_t)clamped(index, r->in);
    r->weights[k * r->out + r->o] = weight;
}

/* As in PyTorch images of two dimensions that stay, or double, do so whatever scale is given. */
static int64_t put_nearest(const struct grd_resample_source *x, const struct row *r, double scale)
{
    if (x->mode == GRD_RESAMPLE_NEAREST && x->n == 2 && (r->out == r->in || r->out == 2 * r->in)) {
        put_tap(r, 0, r->o * r->in / r->out, 1);
        return 1;
    }
    const double o = (double)r->o + (x->mode == GRD_RESAMPLE_NEAREST_EXACT ? 0.5 : 0),
                 position = floor((double)(float)((float)o * (float)scale));
    put_tap(r, 0, position < (double)r->in ? (int64_t)position : r->in - 1, 1);
    return 1;
}

static int64_t put_linear(const struct grd_resample_source *x, const struct row *r, double scale)
{
    const double position = r->in == r->out ? (double)r->o : position_of(x, scale, r->o);
    const int64_t first = position < (double)r->in ? (int64_t)position : r->in - 1;
    const double share = fmin(fmax(rounded(x, position - (double)first), 0), 1);
    put_tap(r, 0, first, rounded(x, 1 - share));
    put_tap(r, 1, first + 1, share);
    return 2;
}

static int64_t put_cubic(const struct grd_resample_source *x, const struct row *r, double scale)
{
    const double position = position_of(x, scale, r->o), whole = fmin(floor(position), (double)(r->in - 1));
    const double t = fmin(fmax(rounded(x, position - whole), 0), 1);
    const int64_t first = whole < 0 ? -1 : (int64_t)whole;
    put_tap(r, 0, first - 1, cubic_far(t + 1, -0.75));
    put_tap(r, 1, first, cubic_near(t, -0.75));
    put_tap(r, 2, first + 1, cubic_near(1 - t, -0.75));
    put_tap(r, 3, first + 2, cubic_far(2 - t, -0.75));
    return 4;
}

double grd_resample_reach(const struct grd_resample_source *x, double scale)
{
    const double reach = x->mode == GRD_RESAMPLE_LANCZOS ? 3 : x->mode == GRD_RESAMPLE_CUBIC ? 2 : 1;
    return reach * (scale >= 1 ? scale : 1);
}

/* The filter, as wide as an output where those are wider than elements of the input; its weights sum to 1. Beyond the input there is one tap, of no weight. */
static int64_t put_filtered(const struct grd_resample_source *x, const struct row *r, double scale)
{
    const double reach = rounded(x, grd_resample_reach(x, scale)), shrink = scale >= 1 ? rounded(x, 1 / scale) : 1;
    const double middle = rounded(x, scale * rounded(x, (double)r->o + 0.5)), begin = middle - reach + 0.5, end = middle + reach + 0.5;
    const int64_t first = begin > 0 ? clamped((int64_t)fmin(begin, (double)r->in), r->in + 1) : 0;
    int64_t count = (int64_t)fmin(end, (double)r->in) - first;
    count = count < 0 ? 0 : count > r->taps ? r->taps : count;
    double sum = 0;
    if (count == 0)
        put_tap(r, 0, first, 0);
    for (int64_t k = 0; k < count; k++) {
        put_tap(r, k, first + k, filter(x->mode, rounded(x, rounded(x, rounded(x, (double)(first + k) - middle) + 0.5) * shrink)));
        sum += r->weights[k * r->out + r->o];
    }
    for (int64_t k = 0; k < count && sum != 0; k++)
        r->weights[k * r->out + r->o] /= sum;
    return count > 0 ? count : 1;
}

/* An element that several taps name has the weight of all in the first. */
static void merge_taps(const struct row *r, int64_t count)
{
    for (int64_t k = count - 1; k > 0; k--)
        if (r->index[k * r->out + r->o] == r->index[(k - 1) * r->out + r->o]) {
            r->weights[(k - 1) * r->out + r->o] += r->weights[k * r->out + r->o];
            r->weights[k * r->out + r->o] = 0;
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

int64_t grd_resample_table_bytes(const struct grd_resample_axis *a)
{
    return ((a->out * a->taps * (int64_t)(sizeof(double) + sizeof(int32_t)) + a->out * (int64_t)sizeof(int32_t)) / ALIGNMENT + 1) *
           ALIGNMENT;
}

static void make_table(const struct grd_resample_source *x, int axis, struct grd_resample_axis *a, char *memory)
{
    const bool resampled = axis >= GRD_RESAMPLE_AXES - x->n;
    struct row r = {.in = a->in, .out = a->out, .taps = a->taps, .weights = (double *)memory};
    r.index = (int32_t *)(r.weights + a->out * a->taps);
    int32_t *const counts = r.index + a->out * a->taps;
    memset(memory, 0, (size_t)grd_resample_table_bytes(a));
    for (r.o = 0; r.o < a->out; r.o++) {
        const double scale = x->scales[axis];
        if (!resampled)
            put_tap(&r, 0, r.o, 1);
        counts[r.o] = !resampled ? 1
                                 : (int32_t)(x->antialias                     ? put_filtered(x, &r, scale)
                                             : x->mode == GRD_RESAMPLE_CUBIC  ? put_cubic(x, &r, scale)
                                             : x->mode == GRD_RESAMPLE_LINEAR ? put_linear(x, &r, scale)
                                                                              : put_nearest(x, &r, scale));
        if (x->weight_bytes == sizeof(int16_t))
            merge_taps(&r, counts[r.o]);
    }
    a->index = r.index;
    a->counts = counts;
    convert_weights(x, a, r.weights);
}

void grd_resample_make_tables(const struct grd_resample_source *x, struct grd_resample *kernel, char *memory)
{
    for (int i = 0; i < GRD_RESAMPLE_AXES; i++) {
        make_table(x, i, &kernel->axes[i], memory);
        memory += grd_resample_table_bytes(&kernel->axes[i]);
    }
}
