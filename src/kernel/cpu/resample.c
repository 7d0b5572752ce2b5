/* Resamples images (interpolate); see kernel/resample.h. The build compiles this file once for each of uint8, float32 and float64.
 *
 * A row of the input is resampled along its length once, and the result stays in a buffer while neighbouring rows of the output need it. A table
 * lists the input elements and the weights for each output. Only the first counts[o] entries of output o are used. The other entries have the weight
 * 0, but their input elements may be infinite, and 0 * infinity would be NaN.
 * Invariant: the terms of a sum are added in their order in the table, so results do not depend on the instruction-set level. */
#include "kernel/resample.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/cpu/widest.h"
#include "kernel/cpu/lanes.h"

#if GRD_IS_INTEGER
typedef int16_t weight;
typedef int32_t sum;
#else
typedef C weight, sum;
#endif

enum { BLOCK = 256 /* most sums that are computed together */, FEW = 4 /* most terms that are added without a buffer of sums */ };

/* Converts a sum to an element. For uint8 the sum is a fixed-point number with `precision` fraction bits, which is rounded and clamped to 0 and
 * 255. */
GRD_INLINE T finished(sum s, int precision)
{
#if GRD_IS_INTEGER
    const int32_t rounded = (s + (1 << (precision - 1))) >> precision;
    return (T)(rounded < 0 ? 0 : rounded > UINT8_MAX ? UINT8_MAX : rounded);
#else
    (void)precision;
    return s;
#endif
}

/* ---- Along a row ------------------------------------------------------------------------------------------------------------------------ */

/* Computes the outputs [first, end) of a row, one by one. Each is the weighted sum of `taps` input elements. */
GRD_INLINE void resample_elements(const struct grd_resample_axis *a, int taps, const T *restrict in, int64_t first, int64_t end,
                                  T *restrict out)
{
    const weight *weights = a->weights;
    for (int64_t o = first; o < end; o++) {
        sum s = (sum)weights[o] * in[a->index[o]];
        for (int k = 1; k < taps; k++)
            s += (sum)weights[k * a->out + o] * in[a->index[k * a->out + o]];
        out[o] = finished(s, a->precision);
    }
}

#if GRD_TAG == GRD_TAG_float32 && defined(__AVX2__)
/* A vector that holds the index of an input element in each lane. */
typedef int32_t places __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t places_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* Returns the vector whose lane l is lane at[l] of v. */
GRD_INLINE vector picked(vector v, places at)
{
#if defined(__AVX512F__)
    return (vector)_mm512_permutexvar_ps((__m512i)at, (__m512)v);
#else
    return (vector)_mm256_permutevar8x32_ps((__m256)v, (__m256i)at);
#endif
}

GRD_INLINE bool are_zeros(places x)
{
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) == 0;
#else
    return _mm256_testz_si256((__m256i)x, (__m256i)x);
#endif
}

/* Computes LANES neighbouring outputs, beginning with output o. If all their input elements lie within one vector, which is usual, this vector is
 * loaded once and the elements are picked from it. Otherwise the outputs are computed one by one. */
GRD_INLINE void resample_lanes(const struct grd_resample_axis *a, int taps, const T *in, int64_t o, T *out)
{
    const int64_t first = grd_least(a->index[o], a->in - LANES);
    const vector near = load_vector(in + first);
    vector s = {0};
    places beyond = {0};
    for (int k = 0; k < taps; k++) {
        const places at = *(const places_unaligned *)(a->index + k * a->out + o) - (int32_t)first;
        const vector product = load_vector((const weight *)a->weights + k * a->out + o) * picked(near, at);
        s = k == 0 ? product : s + product;
        beyond |= at & ~(LANES - 1);
    }
    if (are_zeros(beyond))
        store_vector(out + o, s);
    else
        resample_elements(a, taps, in, o, o + LANES, out);
}
#endif

/* Resamples a row of one channel in which every output is made of `taps` input elements. `taps` is a constant where this is inlined. */
GRD_INLINE void resample_line(const struct grd_resample_axis *a, int taps, const T *restrict in, T *restrict out)
{
    int64_t o = 0;
#if GRD_TAG == GRD_TAG_float32 && defined(__AVX2__)
    for (; a->in >= LANES && o + LANES <= a->out; o += LANES)
        resample_lanes(a, taps, in, o, out);
#endif
    resample_elements(a, taps, in, o, a->out, out);
}

/* Resamples a row of one channel along its length. The number of input elements may differ from output to output. */
static void resample_filtered(const struct grd_resample_axis *a, const T *restrict in, T *restrict out)
{
    const weight *weights = a->weights;
    for (int64_t o = 0; o < a->out; o++) {
        sum s = 0;
        for (int64_t k = o; k < a->counts[o] * a->out; k += a->out)
            s += (sum)weights[k] * in[a->index[k]];
        out[o] = finished(s, a->precision);
    }
}

/* Writes to out[i] the sum of w[k] * from[k][i] over k < taps, for i < n. `taps` is a constant where this is inlined. */
GRD_INLINE void combine(int taps, const T *const *from, const weight *w, int precision, int64_t n, T *restrict out)
{
    for (int64_t i = 0; i < n; i++) {
        sum s = 0;
        UNROLLED
        for (int k = 0; k < taps; k++)
            s += (sum)w[k] * from[k][i];
        out[i] = finished(s, precision);
    }
}

/* True if the weight w is exactly 1. For uint8 it is a fixed-point number with `precision` fraction bits. */
GRD_INLINE bool is_one(weight w, int precision)
{
#if GRD_IS_INTEGER
    return w == 1 << precision;
#else
    (void)precision;
    return w == 1;
#endif
}

/* Writes to out[i] the sum of w[k] * from[k][i] over k < taps, for i < n. `taps` is at most FEW. Unlike combine(), this function takes a `taps` that
 * is not a constant. If the only term has the weight 1, the elements of from[0] are copied. */
static void combine_few(int64_t taps, const T *const *from, const weight *w, int precision, int64_t n, T *out)
{
    if (taps == 0)
        memset(out, 0, (size_t)n * sizeof *out);
    else if (taps == 1 && is_one(w[0], precision))
        memcpy(out, from[0], (size_t)n * sizeof *out);
    else if (taps == 1)
        combine(1, from, w, precision, n, out);
    else if (taps == 2)
        combine(2, from, w, precision, n, out);
    else if (taps == 3)
        combine(3, from, w, precision, n, out);
    else
        combine(4, from, w, precision, n, out);
}

/* Adds w * from[i] to sums[i] for i < n. */
GRD_INLINE void add_scaled(sum *restrict sums, weight w, const T *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] += (sum)w * from[i];
}

GRD_INLINE void finish_sums(T *restrict out, const sum *restrict sums, int precision, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = finished(sums[i], precision);
}

/* Computes the `channels` elements at position o of an output row from the input row `in`. *a lists the input positions and weights for o. */
static void resample_place(const struct grd_resample_axis *a, int64_t o, int64_t channels, const T *in, T *out)
{
    const weight *weights = a->weights;
    const T *from[FEW];
    weight w[FEW];
    for (int64_t k = 0; k < a->counts[o] && k < FEW; k++) {
        from[k] = in + a->index[k * a->out + o] * channels;
        w[k] = weights[k * a->out + o];
    }
    if (a->counts[o] <= FEW) {
        combine_few(a->counts[o], from, w, a->precision, channels, out);
        return;
    }
    for (int64_t c = 0; c < channels; c += BLOCK) {
        sum sums[BLOCK] = {0};
        const int64_t n = grd_least(BLOCK, channels - c);
        for (int64_t k = 0; k < a->counts[o]; k++)
            add_scaled(sums, weights[k * a->out + o], in + a->index[k * a->out + o] * channels + c, n);
        finish_sums(out + c, sums, a->precision, n);
    }
}

/* Resamples the input row `in` along its length and writes a->out positions of `channels` elements each to `out`. *a lists the input positions and
 * weights for each output position. */
static void resample_row(const struct grd_resample_axis *a, int64_t channels, const T *in, T *out)
{
    if (channels > 1)
        for (int64_t o = 0; o < a->out; o++)
            resample_place(a, o, channels, in, out + o * channels);
    else if (a->full && a->taps == 1)
        resample_line(a, 1, in, out);
    else if (a->full && a->taps == 2)
        resample_line(a, 2, in, out);
    else if (a->full && a->taps == 4)
        resample_line(a, 4, in, out);
    else
        resample_filtered(a, in, out);
}

/* ---- Across rows ------------------------------------------------------------------------------------------------------------------------ */

/* The arguments of the functions that compute the output rows of image number `image`. `in` is the input of all images. `kept` is a buffer of input
 * rows that have been resampled along their length. Neighbouring output rows use them again. */
struct rows {
    const struct grd_resample *x;
    const T *in;
    T *kept;
    int64_t *keys; /* keys[i] is the number of the input row in slot i of the buffer, counted through all images; -1 if the slot is empty */
    int64_t image;
};

/* Returns the input row at (depth, height) of the current image, resampled along its length. If the buffer r->kept does not hold this row, computes
 * it first. */
static const T *kept_row(const struct rows *r, int64_t depth, int64_t height)
{
    const struct grd_resample *x = r->x;
    const struct grd_resample_axis *width = &x->axes[2];
    const int64_t row = (r->image * x->axes[0].in + depth) * x->axes[1].in + height, slot = row % x->lines;
    T *const kept = r->kept + slot * width->out * x->channels;
    if (r->keys[slot] != row)
        resample_row(width, x->channels, r->in + row * width->in * x->channels, kept);
    r->keys[slot] = row;
    return kept;
}

/* Returns the weight of an input row, the product of its weights along depth and height. For uint8 the depth weight is always 1, so this is the
 * height weight, a fixed-point number. */
GRD_INLINE weight weight_of(weight depth, weight height)
{
#if GRD_IS_INTEGER
    (void)depth;
    return height;
#else
    return depth * height;
#endif
}

/* Computes the output row at (depth, height), which has n elements, as the weighted sum of more than FEW input rows that have been resampled along
 * their length. The sums are accumulated in a buffer, for BLOCK elements at a time. */
static void sum_many_rows(const struct rows *r, int64_t depth, int64_t height, int64_t n, T *out)
{
    const struct grd_resample_axis *d = &r->x->axes[0], *h = &r->x->axes[1];
    const weight *depth_weights = d->weights, *height_weights = h->weights;
    for (int64_t from = 0; from < n; from += BLOCK) {
        sum sums[BLOCK] = {0};
        const int64_t some = grd_least(BLOCK, n - from);
        for (int64_t i = depth; i < d->counts[depth] * d->out; i += d->out)
            for (int64_t k = height; k < h->counts[height] * h->out; k += h->out)
                add_scaled(sums, weight_of(depth_weights[i], height_weights[k]), kept_row(r, d->index[i], h->index[k]) + from, some);
        finish_sums(out + from, sums, h->precision, some);
    }
}

/* Computes the output row at (depth, height), which has n elements, as the weighted sum of input rows that have been resampled along their length. */
static void sum_rows(const struct rows *r, int64_t depth, int64_t height, int64_t n, T *out)
{
    const struct grd_resample_axis *d = &r->x->axes[0], *h = &r->x->axes[1];
    const weight *depth_weights = d->weights, *height_weights = h->weights;
    const T *row[FEW];
    weight w[FEW];
    int64_t taps = 0;
    if (d->counts[depth] * h->counts[height] > FEW) {
        sum_many_rows(r, depth, height, n, out);
        return;
    }
    for (int64_t i = depth; i < d->counts[depth] * d->out; i += d->out)
        for (int64_t k = height; k < h->counts[height] * h->out; k += h->out) {
            row[taps] = kept_row(r, d->index[i], h->index[k]);
            w[taps++] = weight_of(depth_weights[i], height_weights[k]);
        }
    combine_few(taps, row, w, h->precision, n, out);
}

static void forward(const struct grd_resample *x, int64_t begin, int64_t end, const void *in, void *out, void *kept, int64_t *keys)
{
    const int64_t heights = x->axes[1].out, rows = x->axes[0].out * heights, n = x->axes[2].out * x->channels;
    for (int64_t i = 0; i < x->lines; i++)
        keys[i] = -1;
    for (int64_t i = begin; i < end; i++) {
        const struct rows r = {x, in, kept, keys, i / rows};
        sum_rows(&r, i % rows / heights, i % heights, n, (T *)out + i * n);
    }
}

const struct grd_resample_row GRD_TYPED(grd_resample_row) = {.forward = forward};
