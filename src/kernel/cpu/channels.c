/* Computes batch normalisation, group normalisation and their gradients, channel by channel; see kernel/channels.h. The build compiles this file once
 * for float32 and once for float64. */
#include "kernel/cpu/widest.h" /* included before all other headers, because its pragma holds for the code after it */

#include "kernel/channels.h"

#include <math.h>
#include <string.h>

#include "kernel/cpu/typed.h"

enum { LANES = 64 / sizeof(T), VECTORS = 4, BLOCK = VECTORS * LANES };

typedef T lanes __attribute__((vector_size(64)));
typedef T lanes_unaligned __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
typedef double doubles __attribute__((vector_size(32)));
typedef T few_lanes __attribute__((vector_size(sizeof(doubles) / sizeof(double) * sizeof(T)), may_alias));

/* Selects which sums the functions below compute over the elements of a channel. x is an element of the input, and `grad` is the gradient of the
 * output at the same position. SUM adds x - center, with a center of 0. SQUARES adds (x - center)^2. PRODUCTS adds `grad` to a first sum and grad *
 * (x - center) to a second one. */
enum sums { SUM, SQUARES, PRODUCTS };

/* Adds the terms of LANES elements of x to *first, lane by lane. *first is the first of the sums that `what` selects (see enum sums). If `what` is
 * PRODUCTS, also adds terms to *second, the second sum. `grad` holds the gradients of the output at the places of x. */
GRD_INLINE void add_lanes(enum sums what, const T *x, const T *grad, const lanes *center, lanes *first, lanes *second)
{
    const lanes d = *(const lanes_unaligned *)x - *center;
    if (what == PRODUCTS) {
        *first += *(const lanes_unaligned *)grad;
        *second += *(const lanes_unaligned *)grad * d;
    } else {
        *first += what == SQUARES ? d * d : d;
    }
}

/* Adds the term of one element x to *first, the first of the sums that `what` selects (see enum sums). If `what` is PRODUCTS, also adds its term to
 * *second, the second sum. `grad` is the gradient of the output at the place of x. */
GRD_INLINE void add_one(enum sums what, T x, T grad, T center, double *first, double *second)
{
    const T d = x - center;
    *first += (double)(what == PRODUCTS ? grad : what == SQUARES ? d * d : d);
    *second += (double)(what == PRODUCTS ? grad * d : 0);
}

/* Returns the sum of all lanes of VECTORS vectors and of `rest`. The vectors are added in the type T, the lanes of their sum in double. */
static T total(const lanes *vectors, double rest)
{
    const lanes sum = (vectors[0] + vectors[1]) + (vectors[2] + vectors[3]);
    doubles parts = {rest};
    for (size_t i = 0; i < sizeof sum / sizeof(few_lanes); i++)
        parts += __builtin_convertvector(((const few_lanes *)&sum)[i], doubles);
    return (T)((parts[0] + parts[1]) + (parts[2] + parts[3]));
}

/* ---- Channels whose elements are contiguous ------------------------------------------------------------------------------------ */

/* n elements of one channel that are contiguous in memory and belong to one sample. `at` is the offset of the first of them from the start of the
 * tensor, in elements. */
struct segment {
    int64_t at, n;
};

/* Returns the segment that begins with element i of `channel`. It ends at the end of the sample, or before element `last` if that comes first.
 * Elements of a channel are numbered over all samples. */
GRD_INLINE struct segment segment_of(const struct grd_channels *x, int64_t channel, int64_t i, int64_t last)
{
    const int64_t sample = i == 0 ? 0 : i / x->positions, position = i - sample * x->positions;
    return (struct segment){(sample * x->channels + channel) * x->positions + position, grd_least(last - i, x->positions - position)};
}

/* Returns the segment that follows the segment s in the same channel. It is in the next sample. `left` is the number of elements that are to be read
 * after s. */
GRD_INLINE struct segment next_segment(const struct grd_channels *x, struct segment s, int64_t left)
{
    return (struct segment){s.at + s.n + (x->channels - 1) * x->positions, grd_least(left, x->positions)};
}

/* Computes the sums that `what` selects (see enum sums) over the elements [piece->first, piece->last) of one channel. The first sum goes to
 * *ret_first, and the second to *ret_second, which is 0 unless `what` is PRODUCTS. The elements of the channel are contiguous within a sample. */
GRD_INLINE void sum_channel(enum sums what, const struct grd_channels *x, const struct grd_channel_piece *piece, int64_t channel,
                            const T *data, const T *grad, T center, T *ret_first, T *ret_second)
{
    lanes first[VECTORS] = {0}, second[VECTORS] = {0};
    const lanes centers = center - (lanes){0};
    double rest = 0, other_rest = 0;
    struct segment s = segment_of(x, channel, piece->first, piece->last);
    for (int64_t left = piece->last - piece->first; left > 0; left -= s.n, s = next_segment(x, s, left)) {
        const T *d = data + s.at, *g = what == PRODUCTS ? grad + s.at : NULL;
        int64_t i = 0;
        for (; i + BLOCK <= s.n; i += BLOCK)
            for (int v = 0; v < VECTORS; v++)
                add_lanes(what, d + i + v * LANES, what == PRODUCTS ? g + i + v * LANES : NULL, &centers, &first[v], &second[v]);
        for (; i + LANES <= s.n; i += LANES)
            add_lanes(what, d + i, what == PRODUCTS ? g + i : NULL, &centers, &first[0], &second[0]);
        for (; i < s.n; i++)
            add_one(what, d[i], what == PRODUCTS ? g[i] : 0, center, &rest, &other_rest);
    }
    *ret_first = total(first, rest);
    *ret_second = what == PRODUCTS ? total(second, other_rest) : 0;
}

/* ---- Innermost channels ------------------------------------------------------------------------------------------------------------ */

/* Computes the sums that `what` selects (see enum sums) for n * LANES neighbouring channels over `rows` positions. The tensor is channels_last, so
 * a row holds all channels of one position, and rows are `step` elements apart. If `center` is NULL, it is 0 for all channels. */
GRD_INLINE void sum_columns(enum sums what, int n, int64_t rows, int64_t step, const T *data, const T *grad, const T *center, T *ret_first,
                            T *ret_second)
{
    lanes first[VECTORS] = {0}, second[VECTORS] = {0}, centers[VECTORS] = {0};
    for (int v = 0; v < n && center != NULL; v++)
        centers[v] = *(const lanes_unaligned *)(center + v * LANES);
    for (int64_t row = 0; row < rows; row++)
        for (int v = 0; v < n; v++)
            add_lanes(what, data + row * step + v * LANES, what == PRODUCTS ? grad + row * step + v * LANES : NULL, &centers[v], &first[v],
                      &second[v]);
    for (int v = 0; v < n; v++) {
        *(lanes_unaligned *)(ret_first + v * LANES) = first[v];
        if (what == PRODUCTS)
            *(lanes_unaligned *)(ret_second + v * LANES) = second[v];
    }
}

/* Computes the sums that `what` selects (see enum sums) for one channel of a channels_last tensor over `rows` positions, which are `step` elements
 * apart. *ret_second is written only if `what` is PRODUCTS. */
GRD_INLINE void sum_column(enum sums what, int64_t rows, int64_t step, const T *data, const T *grad, T center, T *ret_first, T *ret_second)
{
    double first = 0, second = 0;
    for (int64_t row = 0; row < rows; row++)
        add_one(what, data[row * step], what == PRODUCTS ? grad[row * step] : 0, center, &first, &second);
    *ret_first = (T)first;
    if (what == PRODUCTS)
        *ret_second = (T)second;
}

/* Writes the sums that `what` selects for the channels [c, c + width) of a channels_last tensor, over the elements [piece->first, piece->last) of
 * each channel. `width` is BLOCK, LANES or 1. */
GRD_INLINE void sum_some(enum sums what, int64_t width, const struct grd_channels *x, const struct grd_channel_piece *piece, int64_t c,
                         const T *data, const T *grad, const T *center, T *ret_first, T *ret_second)
{
    const int64_t at = piece->first * x->channels + c, rows = piece->last - piece->first;
    const T *g = what == PRODUCTS ? grad + at : NULL, *centers = center == NULL ? NULL : center + c;
    T *second = what == PRODUCTS ? ret_second + c : NULL;
    if (width == BLOCK)
        sum_columns(what, VECTORS, rows, x->channels, data + at, g, centers, ret_first + c, second);
    else if (width == LANES)
        sum_columns(what, 1, rows, x->channels, data + at, g, centers, ret_first + c, second);
    else
        sum_column(what, rows, x->channels, data + at, g, center == NULL ? 0 : centers[0], ret_first + c, second);
}

/* Returns how many channels sum_some() computes at a time if `channels` channels are left. Blocks of vectors and single vectors of channels are
 * summed faster than single channels. */
static int64_t width_of(int64_t channels)
{
    return channels >= BLOCK ? BLOCK : channels >= LANES ? LANES : 1;
}

/* ---- Sums of a piece ------------------------------------------------------------------------------------------------------------------ */

/* For each channel c in [piece.begin, piece.end), writes to ret_mean[c] the mean of its elements [piece.first, piece.last), and to ret_squares[c] the
 * sum of the squared deviations of these elements from the mean. */
static void moments(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, void *ret_mean, void *ret_squares)
{
    const T n = (T)(piece.last - piece.first);
    T *mean = ret_mean, *squares = ret_squares, none;
    if (!x->innermost) {
        for (int64_t c = piece.begin; c < piece.end; c++) {
            sum_channel(SUM, x, &piece, c, data, NULL, 0, &mean[c], &none);
            mean[c] /= n;
            sum_channel(SQUARES, x, &piece, c, data, NULL, mean[c], &squares[c], &none);
        }
        return;
    }
    for (int64_t c = piece.begin, width; c < piece.end; c += width) {
        width = width_of(piece.end - c);
        sum_some(SUM, width, x, &piece, c, data, NULL, NULL, mean, NULL);
        for (int64_t i = c; i < c + width; i++)
            mean[i] /= n;
        sum_some(SQUARES, width, x, &piece, c, data, NULL, mean, squares, NULL);
    }
}

/* For each channel c in [piece.begin, piece.end), writes to ret_grad[c] the sum of grad and to ret_product[c] the sum of grad * (data - mean), both
 * over its elements [piece.first, piece.last). */
static void products(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *grad, const void *mean,
                     void *ret_grad, void *ret_product)
{
    const T *center = mean;
    T *first = ret_grad, *second = ret_product;
    if (!x->innermost) {
        for (int64_t c = piece.begin; c < piece.end; c++)
            sum_channel(PRODUCTS, x, &piece, c, data, grad, center[c], &first[c], &second[c]);
        return;
    }
    for (int64_t c = piece.begin, width; c < piece.end; c += width) {
        width = width_of(piece.end - c);
        sum_some(PRODUCTS, width, x, &piece, c, data, grad, center, first, second);
    }
}

/* ---- Of all pieces -------------------------------------------------------------------------------------------------------------------- */

enum { COMBINED = 64 }; /* Number of channels that are combined at a time; add_pieces() writes their sums to an array on the stack. */

/* Returns how many elements piece number `piece` of a channel has. Each channel is divided into pieces of `length` elements; the last piece may
 * be shorter. */
static int64_t piece_length(const struct grd_channels *x, int64_t length, int64_t piece)
{
    return grd_least(length, x->samples * x->positions - piece * length);
}

static int64_t piece_count(const struct grd_channels *x, int64_t length)
{
    return (x->samples * x->positions + length - 1) / length;
}

/* Adds up the values of all pieces of each of n channels. values[p * x->channels + begin + c] is the value of piece p of channel begin + c, and
 * the sum for this channel goes to ret_sums[c]. A piece is `length` elements of a channel; the last piece may be shorter. If `weighted`, each
 * value is multiplied by the number of elements of its piece. */
static void add_pieces(const struct grd_channels *x, int64_t length, int64_t begin, int64_t n, const T *values, bool weighted,
                       double *ret_sums)
{
    memset(ret_sums, 0, COMBINED * sizeof *ret_sums);
    for (int64_t p = 0; p < piece_count(x, length); p++) {
        const double weight = weighted ? (double)piece_length(x, length, p) : 1;
        for (int64_t c = 0; c < n; c++)
            ret_sums[c] += weight * (double)values[p * x->channels + begin + c];
    }
}

/* Computes the mean and the variance of the channels [begin, end) from the mean and the sum of squared deviations of each of their pieces. A piece
 * is `length` elements of a channel. A piece with the mean p and the sum s adds s + length * (p - m)^2 to the sum of a channel with the mean m. */
static void combine(const struct grd_channels *x, int64_t length, int64_t begin, int64_t end, const void *means, const void *squares,
                    void *ret_mean, void *ret_variance)
{
    const double count = (double)(x->samples * x->positions);
    double mean[COMBINED], variance[COMBINED];
    for (; begin < end; begin += COMBINED) {
        const int64_t n = grd_least(end - begin, COMBINED);
        add_pieces(x, length, begin, n, means, true, mean);
        add_pieces(x, length, begin, n, squares, false, variance);
        for (int64_t c = 0; c < n; c++)
            mean[c] /= count;
        for (int64_t p = 0; p < piece_count(x, length); p++) {
            const double weight = (double)piece_length(x, length, p);
            for (int64_t c = 0; c < n; c++) {
                const double distance = (double)((const T *)means)[p * x->channels + begin + c] - mean[c];
                variance[c] += weight * distance * distance;
            }
        }
        for (int64_t c = 0; c < n; c++) {
            ((T *)ret_mean)[begin + c] = (T)mean[c];
            ((T *)ret_variance)[begin + c] = (T)(variance[c] / count);
        }
    }
}

/* Adds up two arrays of values over all pieces. The arrays have one value per piece and channel, where a piece is `length` elements of a channel. For
 * each of the channels [begin, end), the sum of its values in `firsts` goes to ret_first, and the sum of its values in `seconds` to ret_second. */
static void add(const struct grd_channels *x, int64_t length, int64_t begin, int64_t end, const void *firsts, const void *seconds,
                void *ret_first, void *ret_second)
{
    double first[COMBINED], second[COMBINED];
    for (; begin < end; begin += COMBINED) {
        const int64_t n = grd_least(end - begin, COMBINED);
        add_pieces(x, length, begin, n, firsts, false, first);
        add_pieces(x, length, begin, n, seconds, false, second);
        for (int64_t c = 0; c < n; c++) {
            ((T *)ret_first)[begin + c] = (T)first[c];
            ((T *)ret_second)[begin + c] = (T)second[c];
        }
    }
}

static void scales(int64_t begin, int64_t end, const void *variance, double eps, const void *weight, void *ret_scale)
{
    const T *of = variance, *weights = weight;
    for (int64_t c = begin; c < end; c++)
        ((T *)ret_scale)[c] = (T)((weights == NULL ? 1 : (double)weights[c]) / sqrt((double)of[c] + eps));
}

/* Writes the numbers `share` and `slope` and the gradient of the weight for each of the channels [begin, end). With these numbers, the gradient of
 * the input is grad * scale - share - (data - mean) * slope. `sum` and `product` are the sums of grad and of grad * (data - mean) over the channel.
 * `count` is the number of elements of a channel, or 0 if mean and variance do not depend on the data; then share and slope are 0. */
static void slopes(int64_t begin, int64_t end, double count, const void *variance, double eps, const void *scale, const void *sum,
                   const void *product, void *ret_share, void *ret_slope, void *ret_weight)
{
    for (int64_t c = begin; c < end; c++) {
        const double of = (double)((const T *)variance)[c] + eps, each = (double)((const T *)product)[c];
        const double share = count > 0 ? (double)((const T *)scale)[c] / count : 0;
        ((T *)ret_share)[c] = (T)(share * (double)((const T *)sum)[c]);
        ((T *)ret_slope)[c] = (T)(share * each / of);
        ((T *)ret_weight)[c] = (T)(each / sqrt(of));
    }
}

/* ---- Of groups ------------------------------------------------------------------------------------------------------------------------- */

/* Returns the weight of a channel, or 1 if there are no weights. `channel` is numbered over all samples. All samples use the same weights, one per
 * channel of a sample. */
static double weight_of(const struct grd_channel_groups *x, int64_t channel)
{
    return x->weight == NULL ? 1 : (double)((const T *)x->weight)[channel % (x->groups * x->width)];
}

/* Writes three numbers for each channel of the groups [begin, end): the mean of its group; the scale, weight / sqrt(variance + eps) with the variance
 * of its group; and the shift, which is the bias of the channel, or 0 if there are no biases. */
static void spread(const struct grd_channel_groups *x, int64_t begin, int64_t end, const void *mean, const void *variance, void *ret_mean,
                   void *ret_scale, void *ret_shift)
{
    for (int64_t c = begin * x->width; c < end * x->width; c++) {
        const double of = (double)((const T *)variance)[c / x->width] + x->eps;
        ((T *)ret_mean)[c] = ((const T *)mean)[c / x->width];
        ((T *)ret_scale)[c] = (T)(weight_of(x, c) / sqrt(of));
        ((T *)ret_shift)[c] = x->bias == NULL ? 0 : ((const T *)x->bias)[c % (x->groups * x->width)];
    }
}

/* Writes share = rstd * mean(u) and slope = rstd^3 * mean(u * (data - mean)) for each channel of the groups [begin, end), where u = grad * weight and
 * rstd = 1 / sqrt(variance + eps). Both means are taken over the group of the channel. On entry `product` holds the sum of grad * (data - mean)
 * of each channel. On return it holds rstd times this sum, which is the channel's contribution to the gradient of the weight. */
static void group_slopes(const struct grd_channel_groups *x, int64_t begin, int64_t end, const void *variance, const void *sum,
                         void *product, void *ret_share, void *ret_slope)
{
    const double count = (double)(x->width * x->positions);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * x->width;
        const double of = (double)((const T *)variance)[group] + x->eps, rstd = 1 / sqrt(of);
        double u = 0, ud = 0;
        for (int64_t c = first; c < first + x->width; c++) {
            u += weight_of(x, c) * (double)((const T *)sum)[c];
            ud += weight_of(x, c) * (double)((const T *)product)[c];
        }
        for (int64_t c = first; c < first + x->width; c++) {
            ((T *)product)[c] = (T)((double)((const T *)product)[c] * rstd);
            ((T *)ret_share)[c] = (T)(rstd * u / count);
            ((T *)ret_slope)[c] = (T)(rstd * ud / count / of);
        }
    }
}

/* ---- Written element by element ---------------------------------------------------------------------------------------------------------- */

/* Writes (data - mean) * scale + shift for the elements [piece.first, piece.last) of the channels [piece.begin, piece.end). `mean`, `scale` and
 * `shift` have one element per channel. */
static void normalise(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *mean, const void *scale,
                      const void *shift, void *out)
{
    const T *means = mean, *factors = scale, *shifts = shift;
    for (int64_t c = piece.begin; !x->innermost && c < piece.end; c++) {
        const T m = means[c], factor = factors[c], b = shifts[c];
        struct segment s = segment_of(x, c, piece.first, piece.last);
        for (int64_t left = piece.last - piece.first; left > 0; left -= s.n, s = next_segment(x, s, left)) {
            const T *d = (const T *)data + s.at;
            T *restrict o = (T *)out + s.at;
            for (int64_t i = 0; i < s.n; i++)
                o[i] = (d[i] - m) * factor + b;
        }
    }
    for (int64_t row = piece.first; x->innermost && row < piece.last; row++) {
        const T *d = (const T *)data + row * x->channels;
        T *restrict o = (T *)out + row * x->channels;
        for (int64_t c = piece.begin; c < piece.end; c++)
            o[c] = (d[c] - means[c]) * factors[c] + shifts[c];
    }
}

/* Writes grad * scale - share - (data - mean) * slope, the gradient of the input, for the elements [piece.first, piece.last) of each of the channels
 * [piece.begin, piece.end). `mean`, `share`, `slope` and `scale` have one value per channel. */
static void gradient(const struct grd_channels *x, struct grd_channel_piece piece, const void *data, const void *grad, const void *mean,
                     const void *share, const void *slope, const void *scale, void *out)
{
    const T *means = mean, *shares = share, *slopes = slope, *factors = scale;
    for (int64_t c = piece.begin; !x->innermost && c < piece.end; c++) {
        const T m = means[c], of_all = shares[c], k = slopes[c], factor = factors[c];
        struct segment s = segment_of(x, c, piece.first, piece.last);
        for (int64_t left = piece.last - piece.first; left > 0; left -= s.n, s = next_segment(x, s, left)) {
            const T *d = (const T *)data + s.at, *g = (const T *)grad + s.at;
            T *restrict o = (T *)out + s.at;
            for (int64_t i = 0; i < s.n; i++)
                o[i] = g[i] * factor - of_all - (d[i] - m) * k;
        }
    }
    for (int64_t row = piece.first; x->innermost && row < piece.last; row++) {
        const T *d = (const T *)data + row * x->channels, *g = (const T *)grad + row * x->channels;
        T *restrict o = (T *)out + row * x->channels;
        for (int64_t c = piece.begin; c < piece.end; c++)
            o[c] = g[c] * factors[c] - shares[c] - (d[c] - means[c]) * slopes[c];
    }
}

const struct grd_channels_row GRD_TYPED(grd_channels_row) = {.moments = moments,
                                                             .products = products,
                                                             .normalise = normalise,
                                                             .gradient = gradient,
                                                             .combine = combine,
                                                             .add = add,
                                                             .scales = scales,
                                                             .slopes = slopes,
                                                             .spread = spread,
                                                             .group_slopes = group_slopes};
