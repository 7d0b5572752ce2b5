/* Turns blocks of attention scores into softmax weights, and computes the gradient of the scores. A block holds the scores of a few queries, its
 * rows, for a range of keys, its columns. kernel/attention.h has the formulas. The build compiles this file once for float32 and once for float64.
 *
 * A row of scores is computed in vectors of LANES elements. The elements of the last vector that lie after the row's last key get the weight 0. A row
 * that sees no key has the maximum -inf and the sum 0. Its scores are shifted by 0 instead of -inf, which makes its weights 0 instead of NaN. If a
 * score is NaN or +inf, the sum of its row becomes NaN.
 * Invariant: the order in which the weights of a row are added depends only on the positions of the keys in their block, not on the instruction
 * set. */
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

/* Returns exp(x) for x up to about 0. Returns 0 for x < LEAST_POWER, where exp(x) would be subnormal or nearly so. Arithmetic on subnormal numbers is
 * many times slower, and such small terms would not change a sum that is at least 1. */
GRD_INLINE T power(T x)
{
    const T e = reduce_exp_low(x < LEAST_POWER ? LEAST_POWER : x);
    return x < LEAST_POWER ? 0 : e;
}

/* Rounds n up to a multiple of LANES. */
GRD_INLINE int64_t whole(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* Returns the larger of a and b; returns a if either is NaN. */
GRD_INLINE T higher(T a, T b)
{
    return b > a ? b : a;
}

/* Returns the sum of LANES numbers, which are overwritten. */
GRD_INLINE T fold_sum(T *lanes)
{
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] += lanes[l + 8];
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] += lanes[l + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/* Returns the largest of LANES numbers, which are overwritten. */
GRD_INLINE T fold_max(T *lanes)
{
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] = higher(lanes[l], lanes[l + 8]);
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] = higher(lanes[l], lanes[l + 4]);
    return higher(higher(lanes[0], lanes[2]), higher(lanes[1], lanes[3]));
}

/* ---- Scores -------------------------------------------------------------------------------------------------------------------------- */

/* Returns how many keys of block b the query of row r sees. These are the first keys of the block. Causal attention leaves out the keys after the
 * query. Keys that b->mask hides are counted, too. */
GRD_INLINE int64_t keys_seen(const struct grd_attention_block *b, int64_t r)
{
    const int64_t seen = b->visible + r;
    return seen <= 0 ? 0 : grd_least(seen, b->keys);
}

/* Sets s[j] = s[j] * scale + bias[j * column] for j < n. `column` is the stride of the bias in elements, 0 if it is broadcast over the keys. */
GRD_INLINE void add_bias(int64_t n, T *restrict s, T scale, const T *bias, int64_t column)
{
    for (int64_t j = 0; j < n; j++)
        s[j] = s[j] * scale + bias[j * column];
}

/* Sets s[j] = s[j] * scale if mask[j * column] is true, otherwise s[j] = -inf, for j < n. `column` is the stride of the mask in elements, 0 if it is
 * broadcast over the keys. */
GRD_INLINE void hide(int64_t n, T *restrict s, T scale, const uint8_t *mask, int64_t column)
{
    for (int64_t j = 0; j < n; j++)
        s[j] = mask[j * column] ? s[j] * scale : -INFINITY;
}

/* Applies the bias and the mask of block b to the n scores of row r. Each score becomes score * scale + bias, or -inf where the mask hides the key.
 * Without bias and mask the scores do not change. Returns the factor by which the caller still has to multiply the scores: b->scale if b has neither
 * bias nor mask, otherwise 1. */
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

/* Writes zeros to the elements [from, to) of s. `from` and `to` are multiples of LANES. */
GRD_INLINE void clear_lanes(T *s, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j += LANES)
        LANEWISE for (int l = 0; l < LANES; l++) s[j + l] = 0;
}

/* Applies dropout to the n elements of s, which belong to row r. Elements for which b->keep is nonzero are multiplied by b->keep_scale, and all
 * others become 0. */
GRD_INLINE void drop(const struct grd_attention_block *b, int64_t r, int64_t n, T *restrict s)
{
    const uint8_t *keep = b->keep + r * b->keep_row;
    const T scale = (T)b->keep_scale;
    for (int64_t j = 0; j < n; j++)
        s[j] = keep[j] ? s[j] * scale : 0;
}

/* ---- Forward ------------------------------------------------------------------------------------------------------------------------- */

/* Multiplies the n scores of a row by `scale` and fills the last vector of the row up with -inf. Returns the maximum of these scores and of `most`,
 * the largest score of the row in earlier blocks. */
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

/* Replaces each of the n scores of a row by exp(score - shift). row_max() has filled the last vector up with -inf, which becomes 0. Returns the sum
 * of the results. */
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

/* Returns the number that is subtracted from the scores of a row with the maximum `max`. A row whose keys are all hidden has the maximum -inf; its
 * scores are shifted by 0. */
GRD_INLINE T shift_of(T max)
{
    return max == -INFINITY ? 0 : max;
}

/* Turns the scores of a block into weights exp(score - max[r]). Updates max[r], the largest score of row r in all blocks so far, and sum[r], the
 * sum of its weights before dropout. Writes to ret_factors[r] the factor by which the output that row r has accumulated from earlier blocks must
 * be multiplied. */
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
         r++) { /* separate from the loop above, so that the processor can overlap the long dependency chains of several rows' maxima */
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

/* Multiplies each element of row i of x by factors[i]. x has `rows` rows of n elements, which begin `row` elements apart. */
static void rescale(int64_t rows, int64_t n, const void *factors, void *x, int64_t row)
{
    for (int64_t r = 0; r < rows; r++) {
        const T factor = ((const T *)factors)[r];
        T *values = (T *)x + r * row;
        for (int64_t j = 0; j < n; j++)
            values[j] *= factor;
    }
}

/* Ends the computation of the weights of `rows` rows. Writes 1 / sum[r] to ret_factors[r], or 0 if row r sees no key, and the logarithm of the sum
 * of exp(score) over row r to ret_logsumexp[r]. max[r] is the largest score of row r, and sum[r] is the sum of exp(score - max[r]). */
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

/* Computes the weights p = exp(s * scale - shift) of the n keys of a row. Then overwrites `slopes`, which holds the gradients of the weights, with
 * p * (slopes - delta) * factor, and s with p. Fills the last vectors of s and `slopes` up with zeros. */
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

/* Replaces the scores of block b by the weights after dropout. On entry `slopes` holds the gradients of these weights; they are replaced by the
 * gradients of the products query key^T. For row r, logsumexp[r] is log(sum(exp(scores))) as written by finish(), and delta[r] is the number from
 * row_deltas() that is subtracted from the gradients of the weights. */
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

/* Returns the inner product of x and y, which have n elements. */
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

/* Writes to ret_delta[r] the inner product of row r of x and row r of y, minus less[r]. The rows have n elements. The rows of x begin x_row elements
 * apart, the rows of y y_row elements apart. */
static void row_deltas(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *y, int64_t y_row, const void *less,
                       void *ret_delta)
{
    for (int64_t r = 0; r < rows; r++)
        ((T *)ret_delta)[r] = dot_row(n, (const T *)x + r * x_row, (const T *)y + r * y_row) - ((const T *)less)[r];
}

const struct grd_attention_row GRD_TYPED(grd_attention_row) = {
    .weigh = weigh, .rescale = rescale, .finish = finish, .slope = slope, .delta = row_deltas};
