/* The scores of a block of attention, and their gradient; see kernel/attention.h. Typed: float32 float64.
 *
 * Each row is computed in whole lanes: the places behind its last key weigh nothing, whatever they hold. A row that sees no key at all has the maximum -inf and the sum 0; it is
 * shifted by 0, so that its weights are 0 and not NaN. NaN and +inf come through the sums.
 * Invariant: lanes and their order depend on the place of a key in its block alone. */
#include "kernel/cpu/widest.h"

#include "kernel/attention.h"

#include "kernel/cpu/reduce_exp.h"
#include "kernel/cpu/typed.h"

enum { LANES = GRD_ATTENTION_LANES };

#if GRD_TAG == GRD_TAG_float32
#define LEAST_POWER (-87)
#else
#define LEAST_POWER (-708)
#endif

/* exp(x) for x up to about 0, without subnormal results, which take many times as long and add nothing to a sum that is at least 1. */
GRD_INLINE T power(T x)
{
    const T e = reduce_exp_low(x < LEAST_POWER ? LEAST_POWER : x);
    return x < LEAST_POWER ? 0 : e;
}

GRD_INLINE int64_t whole(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

GRD_INLINE T higher(T a, T b)
{
    return b > a ? b : a;
}

GRD_INLINE T fold_sum(T *lanes)
{
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] += lanes[l + 8];
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] += lanes[l + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

GRD_INLINE T fold_max(T *lanes)
{
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] = higher(lanes[l], lanes[l + 8]);
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] = higher(lanes[l], lanes[l + 4]);
    return higher(higher(lanes[0], lanes[2]), higher(lanes[1], lanes[3]));
}

/* ---- Scores -------------------------------------------------------------------------------------------------------------------------- */

/* How many keys of the block row r sees, masks aside. */
GRD_INLINE int64_t keys_seen(const struct grd_attention_block *b, int64_t r)
{
    const int64_t seen = b->visible + r;
    return seen <= 0 ? 0 : at_most(seen, b->keys);
}

GRD_INLINE void add_bias(int64_t n, T *restrict s, T scale, const T *bias, int64_t column)
{
    for (int64_t j = 0; j < n; j++)
        s[j] = s[j] * scale + bias[j * column];
}

GRD_INLINE void hide(int64_t n, T *restrict s, T scale, const uint8_t *mask, int64_t column)
{
    for (int64_t j = 0; j < n; j++)
        s[j] = mask[j * column] ? s[j] * scale : -INFINITY;
}

/* Applies the masks, which take the scale along, to n elements that need not be whole lanes. Returns what is left of the scale. */
GRD_INLINE T apply_masks(const struct grd_attention_block *b, int64_t r, int64_t n, T *s)
{
    T scale = (T)b->scale;
    if (b->bias != NULL) {
        const T *bias = (const T *)b->bias + r * b->bias_row;
        if (b->bias_column == 1)
            add_bias(n, s, scale, bias, 1);
        else
            add_bias(n, s, scale, bias, b->bias_column);
        scale = 1;
    }
    if (b->mask != NULL) {
        const uint8_t *mask = b->mask + r * b->mask_row;
        if (b->mask_column == 1)
            hide(n, s, scale, mask, 1);
        else
            hide(n, s, scale, mask, b->mask_column);
        scale = 1;
    }
    return scale;
}

/* Whole lanes of zeros. */
GRD_INLINE void clear_lanes(T *s, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j += LANES)
        LANEWISE for (int l = 0; l < LANES; l++) s[j + l] = 0;
}

GRD_INLINE void drop(const struct grd_attention_block *b, int64_t r, int64_t n, T *restrict s)
{
    const uint8_t *keep = b->keep + r * b->keep_row;
    const T scale = (T)b->keep_scale;
    for (int64_t j = 0; j < n; j++)
        s[j] = keep[j] ? s[j] * scale : 0;
}

/* ---- Forward ------------------------------------------------------------------------------------------------------------------------- */

/* s *= scale, -inf behind n; returns the largest, or `most`. */
GRD_INLINE T row_max(int64_t n, T *s, T scale, T most)
{
    T lanes[LANES];
    LANEWISE for (int l = 0; l < LANES; l++) lanes[l] = most;
    for (int64_t j = 0; j < n; j += LANES) {
        const int left = (int)(n - j);
        LANEWISE for (int l = 0; l < LANES; l++)
        {
            const T score = s[j + l] * scale;
            s[j + l] = l < left ? score : -INFINITY;
            lanes[l] = higher(lanes[l], s[j + l]);
        }
    }
    return fold_max(lanes);
}

/* s = exp(s - shift); returns their sum. */
GRD_INLINE T row_exp(int64_t n, T *s, T shift)
{
    T lanes[LANES];
    LANEWISE for (int l = 0; l < LANES; l++) lanes[l] = 0;
    for (int64_t j = 0; j < n; j += LANES)
        LANEWISE for (int l = 0; l < LANES; l++)
        {
            const T e = power(s[j + l] - shift);
            s[j + l] = e;
            lanes[l] += e;
        }
    return fold_sum(lanes);
}

GRD_INLINE T shift_of(T max)
{
    return max == -INFINITY ? 0 : max;
}

static void weigh(const struct grd_attention_block *b, void *max, void *sum, void *ret_factors)
{
    T *maxima = max, *sums = sum, *factors = ret_factors, added[GRD_ATTENTION_ROWS];
    if (b->first)
        for (int64_t r = 0; r < b->rows; r++) {
            maxima[r] = -INFINITY;
            sums[r] = 0;
        }
    for (int64_t r = 0; r < b->rows; r++) {
        T *s = (T *)b->scores + r * b->stride;
        const int64_t n = keys_seen(b, r);
        const T scale = apply_masks(b, r, n, s), most = row_max(n, s, scale, maxima[r]);
        factors[r] = maxima[r] - shift_of(most);
        maxima[r] = most;
    }
    for (int64_t r = 0; r < b->rows;
         r++) { /* a second loop, since the chain of instructions to a row's maximum is long and those of several rows overlap */
        T *s = (T *)b->scores + r * b->stride;
        const int64_t n = keys_seen(b, r);
        added[r] = row_exp(n, s, shift_of(maxima[r]));
        if (b->keep != NULL)
            drop(b, r, n, s);
        clear_lanes(s, whole(n), b->keys);
    }
    for (int64_t r = 0; r < b->rows; r++) {
        factors[r] = power(factors[r]);
        sums[r] = sums[r] * factors[r] + added[r];
    }
}

static void rescale(int64_t rows, int64_t n, const void *factors, void *x, int64_t row)
{
    for (int64_t r = 0; r < rows; r++) {
        const T factor = ((const T *)factors)[r];
        T *values = (T *)x + r * row;
        for (int64_t j = 0; j < n; j++)
            values[j] *= factor;
    }
}

static void finish(int64_t rows, const void *max, const void *sum, void *ret_factors, void *ret_logsumexp)
{
    const T *maxima = max, *sums = sum;
    T *restrict factors = ret_factors, *restrict logsumexp = ret_logsumexp;
    for (int64_t r = 0; r < rows; r++) {
        factors[r] = sums[r] == 0 ? 0 : 1 / sums[r];
        logsumexp[r] = shift_of(maxima[r]) + vm_log(sums[r]);
    }
}

/* ---- Backward ------------------------------------------------------------------------------------------------------------------------ */

/* For the n keys of a row: s = p = exp(s scale - shift), slopes = p (slopes - delta) factor. The last vector is filled up with zeros. */
GRD_INLINE void slope_row(int64_t n, T *restrict s, T *restrict slopes, T scale, T shift, T delta, T factor)
{
    for (int64_t j = 0; j < n; j += LANES) {
        const int left = (int)(n - j);
        LANEWISE for (int l = 0; l < LANES; l++)
        {
            const T e = power(s[j + l] * scale - shift), slope = e * (slopes[j + l] - delta) * factor;
            s[j + l] = l < left ? e : 0;
            slopes[j + l] = l < left ? slope : 0;
        }
    }
}

static void slope(const struct grd_attention_block *b, const void *logsumexp, const void *delta, void *slopes)
{
    for (int64_t r = 0; r < b->rows; r++) {
        T *s = (T *)b->scores + r * b->stride, *slopes_row = (T *)slopes + r * b->stride;
        const int64_t n = keys_seen(b, r);
        const T scale = apply_masks(b, r, n, s);
        if (b->keep != NULL)
            drop(b, r, n, slopes_row);
        slope_row(n, s, slopes_row, scale, shift_of(((const T *)logsumexp)[r]), ((const T *)delta)[r], (T)b->scale);
        if (b->keep != NULL)
            drop(b, r, n, s);
        clear_lanes(s, whole(n), b->keys);
        clear_lanes(slopes_row, whole(n), b->keys);
    }
}

static T dot_row(int64_t n, const T *x, const T *y)
{
    T lanes[LANES];
    LANEWISE for (int l = 0; l < LANES; l++) lanes[l] = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        LANEWISE for (int l = 0; l < LANES; l++) lanes[l] += x[j + l] * y[j + l];
    for (int l = 0; j < n; j++, l++)
        lanes[l] += x[j] * y[j];
    return fold_sum(lanes);
}

static void row_deltas(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *y, int64_t y_row, const void *less,
                       void *ret_delta)
{
    for (int64_t r = 0; r < rows; r++)
        ((T *)ret_delta)[r] = dot_row(n, (const T *)x + r * x_row, (const T *)y + r * y_row) - ((const T *)less)[r];
}

const struct grd_attention_row GRD_TYPED(grd_attention_row) = {
    .weigh = weigh, .rescale = rescale, .finish = finish, .slope = slope, .delta = row_deltas};
