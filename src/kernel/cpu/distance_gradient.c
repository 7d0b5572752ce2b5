/* Computes the gradient of cdist with respect to x1; see kernel/distance.h. The build compiles this file once for float32 and once for float64. Each
 * lane of a vector computes the gradient of a different row of x1. So the sum over the rows of x2 is taken in the same order for every width of the
 * vectors. Pieces of PIECE rows of x2 are summed first, and then the sums of the pieces are added. */
#include <float.h>
#include <tgmath.h>

#include "gen/binary_kernels.h"
#include "kernel/cpu/lanes.h"
#include "kernel/distance.h"
#include "kernel/map.h"
#include "kernel/table.h"

enum {
    PIECE = 64, /* maximum number of rows of x2 in a struct tile */
    TILE = 128, /* columns of the gradient that are computed at a time */
    COLUMNS = 4 /* maximum number of columns in a call of add_columns(), which holds their sums in registers */
};

/* Selects how an element d of the difference of a row of x1 and a row of x2 contributes to the gradient of x1. It contributes weight * factor. The
 * weight is the incoming gradient of the distance of the two rows, and the factor is one of the following. */
enum slope {
    DIFFERENCE, /* the factor is d; for this kind, the weight is already divided by the distance */
    SIGN,       /* the factor is the sign of d */
    QUOTIENT,   /* the factor is d / distance */
    LARGEST,    /* the factor is the sign of d if |d| equals the distance, otherwise 0 */
    POWER       /* the factor is the sign of d times (|d| / distance)^(p - 1) */
};

#if GRD_TAG == GRD_TAG_float32
static const T largest = FLT_MAX;
#else
static const T largest = DBL_MAX;
#endif

/* Returns 1 or -1, the sign of d, in the lanes where `counts` is set, 0 in all other lanes, and NaN where d is NaN. */
GRD_INLINE vector sign_of(vector d, lane_bits counts)
{
    const lane_bits one = (lane_bits)((vector){0} + 1), sign = (lane_bits) - (vector){0};
    return (vector)(((((lane_bits)d & sign) | one) & counts) | (d != d));
}

/* Returns the factor of the kind `slope`, see enum slope. d holds the differences and `far` the distances. For POWER, returns only the sign of d. */
GRD_INLINE vector slope_of(enum slope slope, vector d, vector far)
{
    if (slope == DIFFERENCE)
        return d;
    if (slope == QUOTIENT)
        return (vector)((lane_bits)(d / far) & (far != 0));
    return sign_of(d, slope == LARGEST ? (d != 0) & (magnitudes(d) == far) : d != 0);
}

/* A tile is a part of the gradient's computation. It consists of LANES rows of x1, one in each lane of a vector, and `others` rows of x2 (at most
 * PIECE). `width` is the number of elements of a row. */
struct tile {
    int64_t others, width;
    const T *b;                       /* the first of the rows of x2, which are `width` elements apart */
    vector weight[PIECE], far[PIECE]; /* incoming gradients and distances, with a vector for each row of x2 and a lane for each row of x1 */
};

/* Adds the contributions of t->others rows of x2 to `columns` neighbouring columns of the gradient of x1. For c < `columns`, a[c] holds a column
 * of x1, and sums[c] holds the same column of the gradient. Each lane belongs to one row of x1. b points to the first of these columns in the first
 * row of x2. */
GRD_INLINE void add_columns(const struct tile *t, int columns, enum slope slope, const T *b, const vector *a, vector *sums)
{
    vector piece[COLUMNS] = {{0}};
    for (int64_t j = 0; j < t->others; j++, b += t->width)
        UNROLLED for (int c = 0; c < columns; c++) piece[c] = multiply_add(t->weight[j], slope_of(slope, a[c] - b[c], t->far[j]), piece[c]);
    UNROLLED for (int c = 0; c < columns; c++) sums[c] += piece[c];
}

GRD_INLINE void add_all_columns(const struct tile *t, int64_t columns, enum slope slope, const vector *a, vector *sums)
{
    int64_t k = 0;
    for (; k + COLUMNS <= columns; k += COLUMNS)
        add_columns(t, COLUMNS, slope, t->b + k, a + k, sums + k);
    for (; k < columns; k++)
        add_columns(t, 1, slope, t->b + k, a + k, sums + k);
}

extern const struct grd_map_kernel GRD_TYPED(grd_binary_row)[];

/* Raises the numbers in n vectors to the power `exponent`, in place. */
static void to_powers(int64_t n, vector *x, T exponent)
{
    static const int64_t strides[] = {sizeof(T), sizeof(T), 0};
    if (exponent == 2)
        for (int64_t i = 0; i < n; i++)
            x[i] *= x[i];
    else if (exponent == (T)0.5)
        for (T *each = (T *)x; each < (T *)(x + n); each++)
            *each = sqrt(*each);
    else
        grd_map(n * LANES, (char *const[]){(char *)x, (char *)x, (char *)&exponent}, strides,
                &(struct grd_map){.kernel = &GRD_TYPED(grd_binary_row)[GRD_BINARY_HIDDEN_POW]});
}

/* Adds the contributions of t->others rows of x2 to `columns` columns of the gradient of x1, for a p other than 1, 2 and infinity. a[k] and sums[k]
 * hold column k of x1 and of the gradient, with one row in each lane. `exponent` is p - 1. */
static void add_powers(const struct tile *t, int64_t columns, T exponent, const vector *a, vector *sums)
{
    const vector ones = (vector){0} + 1;
    vector shares[PIECE];
    for (int64_t k = 0; k < columns; k++) {
        vector piece = {0};
        for (int64_t j = 0; j < t->others; j++) {
            const vector d = a[k] - t->b[j * t->width + k];
            const lane_bits none = (d == 0) | (t->far[j] == 0);
            shares[j] = (vector)(((lane_bits)(magnitudes(d) / t->far[j]) & ~none) | ((lane_bits)ones & none));
        }
        to_powers(t->others, shares, exponent);
        for (int64_t j = 0; j < t->others; j++)
            piece = multiply_add(t->weight[j], slope_of(POWER, a[k] - t->b[j * t->width + k], ones) * shares[j], piece);
        sums[k] += piece;
    }
}

/* Returns the largest |a[i] - b[i]| over i < n, ignoring NaN. */
static T largest_difference(int64_t n, const T *a, const T *b)
{
    T most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(a[i] - b[i]) > most ? fabs(a[i] - b[i]) : most;
    return most;
}

/* Fills t->weight and t->far with the incoming gradients and the distances of rows [i, i + rows) of x1 and t->others rows of x2, beginning with row
 * j. Lanes without a row of x1 are 0 in both. If x->distances is NULL (p is infinity), the distances are computed again. */
static void pack(const struct grd_distance_gradient *x, int64_t i, int64_t rows, int64_t j, struct tile *t)
{
    const T *grad = (const T *)x->grad + i * x->grad_strides[0] + j * x->grad_strides[1];
    for (int64_t o = 0; o < t->others; o++) {
        t->weight[o] = t->far[o] = (vector){0};
        for (int64_t l = 0; l < rows; l++) {
            t->weight[o][l] = grad[l * x->grad_strides[0] + o * x->grad_strides[1]];
            t->far[o][l] = x->distances != NULL
                               ? ((const T *)x->distances)[(i + l) * x->distance_strides[0] + (j + o) * x->distance_strides[1]]
                               : largest_difference(x->width, (const T *)x->x1 + (i + l) * x->width, (const T *)x->x2 + (j + o) * x->width);
        }
    }
}

/* Divides each weight of the tile by the distance of its pair of rows. If the distance is 0, the weight becomes 0. If a quotient would not be finite,
 * returns false and changes nothing. */
static bool divide(struct tile *t)
{
    vector ratio[PIECE];
    lane_bits beyond = {0};
    for (int64_t j = 0; j < t->others; j++) {
        ratio[j] = (vector)((lane_bits)(t->weight[j] / t->far[j]) & (t->far[j] != 0));
        beyond |= ~(magnitudes(ratio[j]) <= largest);
    }
    for (int l = 0; l < LANES; l++)
        if (beyond[l])
            return false;
    for (int64_t j = 0; j < t->others; j++)
        t->weight[j] = ratio[j];
    return true;
}

/* Adds the contributions of t->others rows of x2 to `columns` columns of the gradient of x1, for the exponent p of the distance. a[c] and sums[c]
 * hold column c of x1 and of the gradient, with one row in each lane. */
static void add_tile(struct tile *t, double p, int64_t columns, const vector *a, vector *sums)
{
    if (p == 1)
        add_all_columns(t, columns, SIGN, a, sums);
    else if (p == 2 && divide(t))
        add_all_columns(t, columns, DIFFERENCE, a, sums);
    else if (p == 2)
        add_all_columns(t, columns, QUOTIENT, a, sums);
    else if (p == (double)INFINITY)
        add_all_columns(t, columns, LARGEST, a, sums);
    else
        add_powers(t, columns, (T)(p - 1), a, sums);
}

extern grd_distance_gradient_kernel GRD_TYPED(grd_distance_gradient);
void GRD_TYPED(grd_distance_gradient)(const struct grd_distance_gradient *x)
{
    const int64_t width = x->width;
    struct tile t = {.width = width};
    vector a[TILE], sums[TILE];
    for (int64_t i = 0; i < x->rows; i += LANES) {
        const int64_t rows = grd_least(x->rows - i, LANES);
        const T *from = (const T *)x->x1 + i * width;
        T *to = (T *)x->out + i * width;
        for (int64_t k = 0; k < width; k += TILE) {
            const int64_t columns = grd_least(width - k, TILE);
            for (int64_t c = 0; c < columns; c++) {
                a[c] = sums[c] = (vector){0};
                for (int64_t l = 0; l < rows; l++)
                    a[c][l] = from[l * width + k + c];
            }
            for (int64_t j = 0; j < x->others; j += PIECE) {
                t.others = grd_least(x->others - j, PIECE);
                t.b = (const T *)x->x2 + j * width + k;
                pack(x, i, rows, j, &t);
                add_tile(&t, x->p, columns, a, sums);
            }
            for (int64_t c = 0; c < columns; c++)
                for (int64_t l = 0; l < rows; l++)
                    to[l * width + k + c] = sums[c][l];
        }
    }
}
