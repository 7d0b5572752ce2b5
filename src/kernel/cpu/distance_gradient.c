/* The gradient of distances between rows; see kernel/distance.h. Typed: float32 float64.
 * A lane has a row of x1 of its own, so that a sum over the rows of x2 runs in one order, in pieces, at every level. */
#include <float.h>
#include <tgmath.h>

#include "gen/binary_kernels.h"
#include "kernel/cpu/lanes.h"
#include "kernel/distance.h"
#include "kernel/map.h"
#include "kernel/table.h"

enum {
    PIECE = 64, /* rows of x2 whose weights are at hand */
    TILE = 128, /* columns */
    COLUMNS = 4 /* columns whose sums are in registers */
};

/* What the weight of a difference d is multiplied by. `far` is the distance between the two rows. */
enum slope {
    DIFFERENCE, /* d; the weight was divided by far */
    SIGN,       /* its sign */
    QUOTIENT,   /* d / far */
    LARGEST,    /* its sign, if it is as large as far */
    POWER       /* its sign times (|d| / far)^(p - 1) */
};

#if GRD_TAG == GRD_TAG_float32
static const T largest = FLT_MAX;
#else
static const T largest = DBL_MAX;
#endif

/* 1 or -1 where `counts`, 0 elsewhere, NaN where d is NaN. */
GRD_INLINE vector sign_of(vector d, lane_bits counts)
{
    const lane_bits one = (lane_bits)((vector){0} + 1), sign = (lane_bits) - (vector){0};
    return (vector)(((((lane_bits)d & sign) | one) & counts) | (d != d));
}

GRD_INLINE vector slope_of(enum slope slope, vector d, vector far)
{
    if (slope == DIFFERENCE)
        return d;
    if (slope == QUOTIENT)
        return (vector)((lane_bits)(d / far) & (far != 0));
    return sign_of(d, slope == LARGEST ? (d != 0) & (magnitudes(d) == far) : d != 0);
}

/* The gradients of LANES rows of x1 with some rows of x2. */
struct tile {
    int64_t others, width;
    const T *b;                       /* rows of x2, `width` apart */
    vector weight[PIECE], far[PIECE]; /* by the row of x2 */
};

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

/* x^exponent, in place. */
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

static T largest_difference(int64_t n, const T *a, const T *b)
{
    T most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(a[i] - b[i]) > most ? fabs(a[i] - b[i]) : most;
    return most;
}

/* Weights and distances of rows [i, i + rows) of x1 and those of x2 from j on. */
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

/* Divides the weights by the distances. False, with nothing changed, where one would not be finite. */
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
        const int64_t rows = at_most(x->rows - i, LANES);
        const T *from = (const T *)x->x1 + i * width;
        T *to = (T *)x->out + i * width;
        for (int64_t k = 0; k < width; k += TILE) {
            const int64_t columns = at_most(width - k, TILE);
            for (int64_t c = 0; c < columns; c++) {
                a[c] = sums[c] = (vector){0};
                for (int64_t l = 0; l < rows; l++)
                    a[c][l] = from[l * width + k + c];
            }
            for (int64_t j = 0; j < x->others; j += PIECE) {
                t.others = at_most(x->others - j, PIECE);
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
