/* Computes grid_sample and its gradients; see kernel/grid.h. The build compiles this file once for float32 and once for float64.
 *
 * The taps of a point are the elements of an image that the point is interpolated from, with their weights. The taps of a block of points are
 * computed once and used for all channels. A tap outside of the image counts as 0 and has `inside` = 0. A loop reads some other element for it and
 * ignores the value.
 * Invariant: sums are taken in the order of taps and then of channels, so results do not depend on the instruction-set level. */
#include "kernel/grid.h"

#include <math.h>
#include <string.h>

#include "kernel/cpu/widest.h"
#include "kernel/cpu/typed.h"

enum { POINTS = GRD_GRID_POINTS, LINE = 4 /* maximum number of elements along an axis from which a point is interpolated */, TAPS = 16 };

/* The taps of up to POINTS points along one axis. A tap is an element of the image from which a point is interpolated, with its weight. Each array is
 * indexed by tap and point. `place` is the index of the element along the axis, `inside` is 1 if the element is inside of the image and otherwise 0,
 * and `slope` is the derivative of the weight with respect to the point's coordinate. */
struct axis_taps {
    int32_t place[LINE][POINTS], inside[LINE][POINTS];
    C weight[LINE][POINTS], slope[LINE][POINTS];
};

/* All taps of up to POINTS points. A tap is an element of the image from which a point is interpolated, with its weight. The arrays are indexed by
 * tap and point. `place` is the index of the element in its channel, `inside` is 1 if the element is inside of the image and otherwise 0, and `slope`
 * holds the derivatives of the weight with respect to the point's coordinates. */
struct taps {
    int64_t n, count; /* number of points, number of taps of each point */
    int32_t place[TAPS][POINTS], inside[TAPS][POINTS];
    C weight[TAPS][POINTS], slope[GRD_GRID_AXES][TAPS][POINTS]; /* slope[a] is the derivative with respect to the coordinate along axis a */
};

/* ---- Coordinates ----------------------------------------------------------------------------------------------------------------------- */

/* An axis of `size` elements, on which the coordinates -1 and 1 are `span` elements apart. If `beyond` is 0, these coordinates are the centres of
 * the first and the last element. If `beyond` is 0.5, they are the outer edges of the two elements. */
struct extent {
    C size, span, beyond;
};

GRD_INLINE struct extent extent_of(int64_t size, bool align_corners)
{
    return align_corners ? (struct extent){(C)size, (C)(size - 1), 0} : (struct extent){(C)size, (C)size, (C)0.5};
}

/* Returns `position` clamped to [0, size - 1]. Sets *slope to 0 if `position` is on or beyond an end of this interval. */
GRD_INLINE C clipped(C position, C size, C *slope)
{
    *slope = position <= 0 || position >= size - 1 ? 0 : *slope;
    const C low = position > 0 ? position : 0;
    return low < size - 1 ? low : size - 1;
}

/* Returns `position` mirrored at `low` and `low` + `span` until it lies between these two. Each reflection changes the sign of *slope. If `span` is
 * not positive, returns 0 and sets *slope to 0. */
GRD_INLINE C reflected(C position, C low, C span, C *slope)
{
    if (span <= 0) {
        *slope = 0;
        return 0;
    }
    const C distance = fabs(position - low), flips = floor(distance / span), rest = distance - flips * span;
    const bool odd = flips - 2 * floor(flips / 2) != 0;
    *slope = (position < low) != odd ? -*slope : *slope;
    return odd ? span - rest + low : rest + low;
}

/* Returns `position` after the padding mode has been applied to it. Multiplies *slope by the derivative of the result with respect to `position`. */
GRD_INLINE C padded(enum grd_grid_padding padding, struct extent extent, C position, C *slope)
{
    if (padding == GRD_GRID_ZEROS)
        return position;
    if (padding == GRD_GRID_REFLECTION)
        position = reflected(position, -extent.beyond, extent.span, slope);
    return clipped(position, extent.size, slope);
}

/* Converts a position to an integer. NaN and positions beyond 1e9 become -100, which is outside of every image. */
GRD_INLINE int32_t whole(C position)
{
    const C known = (position > (C)-1e9) & (position < (C)1e9) ? position : -100;
    return (int32_t)known;
}

/* Sets tap number `tap` of point p in *a. A tap is an element from which a point is interpolated. Here it is element `position`, an integer, of an
 * axis with `size` elements. The weight of the tap is `weight`, and the derivative of the weight is `slope`. */
GRD_INLINE void put(struct axis_taps *a, int tap, int64_t p, C position, int64_t size, C weight, C slope)
{
    const int32_t place = whole(position);
    a->inside[tap][p] = place >= 0 && place < size;
    a->place[tap][p] = a->inside[tap][p] ? place : 0;
    a->weight[tap][p] = weight;
    a->slope[tap][p] = slope;
}

/* Returns the weight of cubic convolution (a = -3/4) for an element whose distance x from the point is at most 1. */
GRD_INLINE C cubic_near(C x)
{
    return ((C)1.25 * x - (C)2.25) * x * x + 1;
}

/* Returns the weight of cubic convolution (a = -3/4) for an element whose distance x from the point is between 1 and 2. */
GRD_INLINE C cubic_far(C x)
{
    return (((C)-0.75 * x + (C)3.75) * x - 6) * x + 3;
}

/* Returns the derivative of cubic_near(x) with respect to x. */
GRD_INLINE C cubic_near_slope(C x)
{
    return ((C)3.75 * x - (C)4.5) * x;
}

/* Returns the derivative of cubic_far(x) with respect to x. */
GRD_INLINE C cubic_far_slope(C x)
{
    return ((C)-2.25 * x + (C)7.5) * x - 6;
}

/* For cubic interpolation at point p, writes to *a the indices of four elements along one axis, their weights, and the derivatives of the weights.
 * The padding mode is applied to each of the four positions around `position` separately. */
GRD_INLINE void put_cubic(enum grd_grid_padding padding, struct extent extent, struct axis_taps *a, int64_t p, C position, int64_t size,
                          C slope)
{
    const C first = floor(position), t = position - first;
    const C weights[LINE] = {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)};
    const C slopes[LINE] = {cubic_far_slope(t + 1), cubic_near_slope(t), -cubic_near_slope(1 - t), -cubic_far_slope(2 - t)};
    for (int k = 0; k < LINE; k++) {
        C unused = 1;
        put(a, k, p, padded(padding, extent, first + (C)(k - 1), &unused), size, weights[k], slopes[k] * slope);
    }
}

/* Writes to *a the elements along an axis of `size` elements from which n points are interpolated, and their weights. `mode` and `padding` are
 * constants at each call, so that the loop vectorises. */
GRD_INLINE void take_line(enum grd_grid_mode mode, enum grd_grid_padding padding, const struct grd_grid *x, int64_t size,
                          const T *restrict coordinates, int64_t n, struct axis_taps *restrict a)
{
    const struct extent extent = extent_of(size, x->align_corners);
    const int64_t step = x->dims;
    for (int64_t p = 0; p < n; p++) {
        C slope = extent.span / 2, position = (coordinates[p * step] + 1) / 2 * extent.span - extent.beyond;
        if (mode == GRD_GRID_BICUBIC) {
            put_cubic(padding, extent, a, p, position, size, slope);
            continue;
        }
        position = padded(padding, extent, position, &slope);
        const C first = mode == GRD_GRID_NEAREST ? nearbyint(position) : floor(position);
        if (mode == GRD_GRID_NEAREST) {
            put(a, 0, p, first, size, 1, 0);
            continue;
        }
        put(a, 0, p, first, size, first + 1 - position, -slope);
        put(a, 1, p, first + 1, size, position - first, slope);
    }
}

GRD_INLINE void take_mode(enum grd_grid_mode mode, const struct grd_grid *x, int64_t size, const T *coordinates, int64_t n,
                          struct axis_taps *a)
{
    if (x->padding == GRD_GRID_ZEROS)
        take_line(mode, GRD_GRID_ZEROS, x, size, coordinates, n, a);
    else if (x->padding == GRD_GRID_BORDER)
        take_line(mode, GRD_GRID_BORDER, x, size, coordinates, n, a);
    else
        take_line(mode, GRD_GRID_REFLECTION, x, size, coordinates, n, a);
}

/* Writes to *a the elements along an axis of `size` elements from which n points are interpolated, and their weights. Returns the number of elements
 * per point. The coordinates of neighbouring points are x->dims elements apart. */
static int take_axis(const struct grd_grid *x, int64_t size, const T *coordinates, int64_t n, struct axis_taps *a)
{
    if (x->mode == GRD_GRID_BICUBIC)
        take_mode(GRD_GRID_BICUBIC, x, size, coordinates, n, a);
    else if (x->mode == GRD_GRID_NEAREST)
        take_mode(GRD_GRID_NEAREST, x, size, coordinates, n, a);
    else
        take_mode(GRD_GRID_BILINEAR, x, size, coordinates, n, a);
    return x->mode == GRD_GRID_BICUBIC ? LINE : x->mode == GRD_GRID_NEAREST ? 1 : 2;
}

/* Writes to *taps the elements of the image from which each point is interpolated. a[0], a[1] and a[2] list elements along width, height and
 * depth, and counts[i] is the number of elements along axis i. Each combination of the three lists is one tap, whose weight is the product of the
 * three weights. If `slopes`, also writes the derivatives of the weights, which only the gradient of the grid needs. */
GRD_INLINE void combine(const struct grd_grid *x, const struct axis_taps *restrict a, const int *counts, bool slopes,
                        struct taps *restrict taps)
{
    const int64_t n = taps->n;
    const int32_t height = (int32_t)x->sizes[1], width = (int32_t)x->sizes[2];
    taps->count = 0;
    for (int d = 0; d < counts[2]; d++)
        for (int h = 0; h < counts[1]; h++)
            for (int w = 0; w < counts[0]; w++) {
                const int64_t k = taps->count++;
                for (int64_t p = 0; p < n; p++) {
                    const C wide = a[0].weight[w][p], high = a[1].weight[h][p], deep = a[2].weight[d][p];
                    taps->place[k][p] = (a[2].place[d][p] * height + a[1].place[h][p]) * width + a[0].place[w][p];
                    taps->inside[k][p] = a[0].inside[w][p] & a[1].inside[h][p] & a[2].inside[d][p];
                    taps->weight[k][p] = wide * high * deep;
                    if (!slopes)
                        continue;
                    taps->slope[0][k][p] = a[0].slope[w][p] * high * deep;
                    taps->slope[1][k][p] = a[1].slope[h][p] * wide * deep;
                    taps->slope[2][k][p] = a[2].slope[d][p] * wide * high;
                }
            }
}

/* Writes to *taps the elements of the image from which n points are interpolated, and their weights. Also writes the derivatives of the weights if
 * `slopes`. The coordinates of the points begin at `grid`. Along an axis that the image lacks, the weight is 1. */
static void take_points(const struct grd_grid *x, const T *grid, int64_t n, bool slopes, struct taps *taps)
{
    struct axis_taps axes[GRD_GRID_AXES];
    int counts[GRD_GRID_AXES] = {1, 1, 1};
    taps->n = n;
    for (int i = 0; i < GRD_GRID_AXES; i++)
        if (i < x->dims)
            counts[i] = take_axis(x, x->sizes[GRD_GRID_AXES - 1 - i], grid + i, n, &axes[i]);
        else
            for (int64_t p = 0; p < n; p++)
                put(&axes[i], 0, p, 0, 1, 1, 0);
    if (slopes)
        combine(x, axes, counts, true, taps);
    else
        combine(x, axes, counts, false, taps);
}

/* ---- Images ---------------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of elements of one channel of an image. */
static int64_t plane_of(const struct grd_grid *x)
{
    return x->sizes[0] * x->sizes[1] * x->sizes[2];
}

/* Returns the number of blocks of at most POINTS points into which the points of one sample are divided. */
static int64_t blocks_of(const struct grd_grid *x)
{
    return (x->points + POINTS - 1) / POINTS;
}

/* Interpolates one channel (`plane`) at n points, and writes the results to `out`. Each result is the weighted sum of `count` elements of the
 * channel, which *taps lists. */
GRD_INLINE void sample(const struct taps *restrict taps, int count, int64_t n, const T *restrict plane, T *restrict out)
{
    for (int64_t p = 0; p < n; p++) {
        C s = 0;
        for (int k = 0; k < count; k++) {
            const C value = taps->weight[k][p] * plane[taps->place[k][p]];
            s += taps->inside[k][p] ? value : taps->weight[k][p] * 0; /* 0, or NaN if the coordinate is NaN */
        }
        out[p] = s;
    }
}

static void sample_plane(const struct taps *taps, const T *plane, T *out)
{
    if (taps->count == 1)
        sample(taps, 1, taps->n, plane, out);
    else if (taps->count == 4)
        sample(taps, 4, taps->n, plane, out);
    else if (taps->count == 8)
        sample(taps, 8, taps->n, plane, out);
    else
        sample(taps, TAPS, taps->n, plane, out);
}

static void forward(const struct grd_grid *x, int64_t begin, int64_t end, const void *in, const void *grid, void *out)
{
    struct taps taps;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / blocks_of(x), first = i % blocks_of(x) * POINTS;
        take_points(x, (const T *)grid + (image * x->points + first) * x->dims, grd_least(POINTS, x->points - first), false, &taps);
        for (int64_t c = image * x->channels; c < (image + 1) * x->channels; c++)
            sample_plane(&taps, (const T *)in + c * plane_of(x), (T *)out + c * x->points + first);
    }
}

/* Adds the gradient of each point, multiplied by the weights of its taps, to the elements of one channel (`plane`) from which the point was
 * interpolated. */
static void scatter(const struct taps *taps, const T *grad, T *plane)
{
    for (int64_t k = 0; k < taps->count; k++)
        for (int64_t p = 0; p < taps->n; p++)
            if (taps->inside[k][p])
                plane[taps->place[k][p]] += taps->weight[k][p] * grad[p];
}

static void backward_image(const struct grd_grid *x, int64_t begin, int64_t end, const void *grad, const void *grid, void *grad_in)
{
    const int64_t parts = (x->channels + GRD_GRID_CHANNELS - 1) / GRD_GRID_CHANNELS;
    struct taps taps;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / parts, from = i % parts * GRD_GRID_CHANNELS, to = grd_least(from + GRD_GRID_CHANNELS, x->channels);
        for (int64_t first = 0; first < x->points; first += POINTS) {
            take_points(x, (const T *)grid + (image * x->points + first) * x->dims, grd_least(POINTS, x->points - first), false, &taps);
            for (int64_t c = image * x->channels + from; c < image * x->channels + to; c++)
                scatter(&taps, (const T *)grad + c * x->points + first, (T *)grad_in + c * plane_of(x));
        }
    }
}

/* Adds to sums[p] what one channel (`plane`) contributes to the derivative of the loss with respect to the coordinate of point p along `axis`. */
GRD_INLINE void add_slopes(const struct taps *restrict taps, int axis, const T *restrict plane, const T *restrict grad, C *restrict sums)
{
    for (int64_t k = 0; k < taps->count; k++)
        for (int64_t p = 0; p < taps->n; p++) {
            const C value = taps->slope[axis][k][p] * plane[taps->place[k][p]] * grad[p];
            sums[p] += taps->inside[k][p] ? value : 0;
        }
}

static void backward_grid(const struct grd_grid *x, int64_t begin, int64_t end, const void *grad, const void *in, const void *grid,
                          void *grad_grid)
{
    struct taps taps;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / blocks_of(x), first = i % blocks_of(x) * POINTS, at = (image * x->points + first) * x->dims;
        C sums[GRD_GRID_AXES][POINTS];
        memset(sums, 0, sizeof sums);
        take_points(x, (const T *)grid + at, grd_least(POINTS, x->points - first), true, &taps);
        for (int64_t c = image * x->channels; c < (image + 1) * x->channels; c++)
            for (int axis = 0; axis < x->dims; axis++)
                add_slopes(&taps, axis, (const T *)in + c * plane_of(x), (const T *)grad + c * x->points + first, sums[axis]);
        for (int64_t p = 0; p < taps.n; p++)
            for (int axis = 0; axis < x->dims; axis++)
                ((T *)grad_grid)[at + p * x->dims + axis] = sums[axis][p];
    }
}

const struct grd_grid_row GRD_TYPED(grd_grid_row) = {.forward = forward, .backward_image = backward_image, .backward_grid = backward_grid};
