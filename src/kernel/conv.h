/* Convolution without a copy of its windows: what is multiplied with a panel of weights is read where it lies, by two lists of offsets. */
#ifndef GRD_KERNEL_CONV_H
#define GRD_KERNEL_CONV_H

#include <stdbool.h>
#include <stdint.h>

/* sums[r][j] += sum over k of seen[rows[r] + taps[k]] * panel[k][j], with `vectors` vectors of columns j; offsets in elements. */
struct grd_conv_block {
    int64_t nrows, depth;
    const int32_t *rows, *taps;
    const char *seen, *panel;
    const char *bias; /* of the columns; NULL: zeros */
    char *sums;
    int vectors;
    bool is_first; /* sums are not read: they begin as the bias */
};

enum { GRD_CONV_LINE_ROWS = 8, GRD_CONV_KEPT_BYTES = 4096 }; /* of weights in lines, at most; of the sums of a part of a line */

/* Up to GRD_CONV_CHAIN taps, of which each sees from a line what the one before it sees from the next line. */
enum { GRD_CONV_CHAIN = 3 };
struct grd_conv_chain {
    int32_t tap, count;   /* the offset of the first */
    int32_t weight, step; /* its number, and from each to the number of the next */
};

/* sums[r * sums_row + i * sums_line + j] = bias[r] + sum over k of weights[k][r] * seen[i * seen_line + j + taps[k]], for lines i of n places j that are neighbours. */
struct grd_conv_line {
    int64_t lines, n, depth, nchains;
    const int32_t *taps;
    const struct grd_conv_chain *chains; /* the taps again, for several lines of one row */
    const char *seen, *weights;
    const char *bias;  /* NULL: zeros */
    char *sums, *kept; /* kept: room of GRD_CONV_KEPT_BYTES */
    int64_t seen_line, sums_row, sums_line;
    int nrows;
};

/* to[i * to_row + j * step] = sums[j % parts * part + i * width + j / parts], for n rows i of `columns` elements j. */
struct grd_conv_put {
    int64_t n, columns;
    const char *sums;
    int64_t parts, part, width;
    char *to;
    int64_t to_row, step;
};

/* sums[r][k][lane] += sum over i, j of gradient[r * gradient_channel + i * n + j] * seen[i * seen_row + j + taps[k]], for i of `lines` and n places j of each. */
struct grd_conv_dots {
    int64_t lines, n, ntaps;
    const int32_t *taps;
    const char *seen, *gradient;
    int64_t seen_row, gradient_channel;
    char *sums;
    int nrows;
};

/* Places of a copy along a dimension: the element i is of number before + i, and those of one remainder by `split` follow each other, remainders `part` apart. */
struct grd_conv_places {
    int64_t n, before, split, part;
};

/* Copies of rows of neighbours, each to its place; those of one remainder are `to_row` apart. */
struct grd_conv_copy {
    struct grd_conv_places rows, columns;
    const char *from;
    char *to;
    int64_t from_row, to_row;
};

/* to[i * step] = x[i] - y[i] + (z[i] - x[i] - y[i]) * 1j + bias for n complex elements, where y and z lie `part` and 2 * `part` real elements behind x. */
struct grd_conv_join {
    int64_t n, part;
    const char *x, *bias; /* bias: one complex number; NULL: zero */
    char *to;
    int64_t step;
};

struct grd_conv_row {
    void (*copy)(const struct grd_conv_copy *c);
    void (*multiply)(const struct grd_conv_block *b);
    /* to[j * to_column + r] = sums[r][j] for n rows and some columns; rows of sums are `width` elements apart. */
    void (*turn)(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_column);
    void (*line)(const struct grd_conv_line *l);
    void (*put)(const struct grd_conv_put *p);
    void (*dots)(const struct grd_conv_dots *d);
    /* to[i] = the sum of the lanes of sums[i], for n vectors. */
    void (*add_lanes)(int64_t n, const char *sums, char *to);
    void (*join)(const struct grd_conv_join *j);
    int lanes, vectors; /* of a vector, of a panel at most */
};

#endif
