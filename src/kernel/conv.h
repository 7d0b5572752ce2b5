/* Convolution without a copy of its windows: what is multiplied with a panel of weights is read where it lies, by two lists of offsets. */
#ifndef GRD_KERNEL_CONV_H
#define GRD_KERNEL_CONV_H

#include <stdint.h>

enum { GRD_CONV_VECTORS = 3 }; /* of a panel, at most */

/* sums[r][j] += sum over k of seen[rows[r] + taps[k]] * panel[k][j], with `vectors` vectors of columns j; offsets in elements. */
struct grd_conv_block {
    int64_t nrows, depth;
    const int32_t *rows, *taps;
    const char *seen, *panel;
    char *sums;
    int vectors;
};

/* Places that are neighbours in what is seen, as many as there are lanes, or fewer. */
struct grd_conv_vector {
    int32_t start, place; /* where the first one sees its first element; its number among those of the result, or of the gradient */
    int32_t count;
};

enum { GRD_CONV_LINE_ROWS = 8 }; /* of weights in lines, at most */

/* sums[r][v][lane] += sum over k of weights[k][r] * seen[vectors[v].start + taps[k] + lane]. */
struct grd_conv_lines {
    int64_t nvectors, depth;
    const struct grd_conv_vector *vectors;
    const int32_t *taps;
    const char *seen, *weights;
    char *sums;
    int nrows;
};

/* sums[r][k][lane] += sum over v of gradient[r * gradient_row + vectors[v].place + lane] * seen[vectors[v].start + taps[k] + lane]. */
struct grd_conv_dots {
    int64_t nvectors, ntaps;
    const struct grd_conv_vector *vectors;
    const int32_t *taps;
    const char *seen, *gradient;
    int64_t gradient_row;
    char *sums;
    int nrows;
};

/* Copies of rows of n elements, each `before` elements into its place; of them those at places of one remainder by `split` are neighbours, remainders `part` apart. */
struct grd_conv_copy {
    int64_t nrows, n, before, split, part;
    const char *from;
    char *to;
    int64_t from_row, to_row;
};

struct grd_conv_row {
    void (*copy)(const struct grd_conv_copy *c);
    void (*multiply)(const struct grd_conv_block *b);
    /* to[j * to_column + r] = sums[r][j] for n rows and some columns; rows of sums are `width` elements apart. */
    void (*turn)(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_column);
    void (*lines)(const struct grd_conv_lines *l);
    /* to[vectors[v].place * to_place + lane * step] = sums[v][lane], for n vectors. */
    void (*put)(int64_t n, const struct grd_conv_vector *vectors, const char *sums, char *to, int64_t to_place, int64_t step);
    void (*dots)(const struct grd_conv_dots *d);
    /* to[i] = the sum of the lanes of sums[i], for n vectors. */
    void (*add_lanes)(int64_t n, const char *sums, char *to);
    int lanes;
};

#endif
