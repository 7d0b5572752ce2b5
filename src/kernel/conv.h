/* Declares kernels that compute convolutions without im2col. They read the input in place, at offsets given by two lists: one for the output
 * positions, and one for the positions of the convolution kernel ("taps"). */
#ifndef GRD_KERNEL_CONV_H
#define GRD_KERNEL_CONV_H

#include <stdbool.h>
#include <stdint.h>

/* The arguments of `multiply`, which computes a convolution at `nrows` output positions for `vectors` vectors of output channels. For position r and
 * channel j it computes sums[r][j] += sum over k < depth of seen[rows[r] + taps[k]] * panel[k][j]. `seen` is the input and `panel` holds the weights.
 * rows[] and taps[] are offsets in elements. */
struct grd_conv_block {
    int64_t nrows, depth;
    const int32_t *rows, *taps;
    const char *seen, *panel;
    const char *bias; /* one value per output channel j; NULL means zeros */
    char *sums;
    int vectors;
    bool is_first; /* if true, the sums start as the bias, and `sums` is not read */
};

/* GRD_CONV_LINE_ROWS: the most output channels that one call of `line` computes. GRD_CONV_KEPT_BYTES: bytes of the scratch memory that a call of
 * `line` needs. */
enum { GRD_CONV_LINE_ROWS = 8, GRD_CONV_KEPT_BYTES = 4096 };

/* A chain is a list of up to GRD_CONV_CHAIN taps, which are positions of the convolution kernel. Each tap reads the input one row below the tap
 * before it. So the second tap reads for output row i what the first tap reads for output row i + 1, and both use the same loaded vector. */
enum { GRD_CONV_CHAIN = 3 };
struct grd_conv_chain {
    int32_t tap, count; /* tap: offset of the first tap of the chain from `seen`, in elements; count: number of taps */
    /* The weight of tap k of the chain is weights[weight + k * step]. */
    int32_t weight, step;
};

/* The arguments of the kernel `line`, which computes some rows of the output image. For output channel r < nrows, row i < lines of the image and
 * position j < n in the row, it sets
 *
 *     sums[r * sums_row + i * sums_line + j] = bias[r] + sum over k < depth of weights[k][r] * seen[i * seen_line + j + taps[k]]
 *
 * `seen` is the input. All distances and the offsets taps[] count elements. */
struct grd_conv_line {
    int64_t lines, n, depth, nchains;
    const int32_t *taps;
    /* `nchains` chains. A chain is a group of taps (kernel positions) that read the same input row, which is loaded only once. Used if nrows is
     * 1 and lines > 1. */
    const struct grd_conv_chain *chains;
    const char *seen, *weights;
    const char *bias;  /* one value for each of the `nrows` output channels; NULL means zeros */
    char *sums, *kept; /* kept: scratch memory of GRD_CONV_KEPT_BYTES bytes */
    int64_t seen_line, sums_row, sums_line;
    int nrows;
};

/* The arguments of `put`, which copies an n x `columns` matrix of sums to the result. In `sums`, column j is in block j % parts; the blocks are
 * `part` elements apart, and each has rows of `width` elements. For 0 <= i < n and 0 <= j < columns, `put` sets
 * to[i * to_row + j * step] = sums[j % parts * part + i * width + j / parts]. */
struct grd_conv_put {
    int64_t n, columns;
    const char *sums;
    int64_t parts, part, width;
    char *to;
    int64_t to_row, step;
};

/* The arguments of `dots`, which computes the gradient of the weights of output channels r < nrows at taps k < ntaps. For all i < lines and j < n, it
 * adds gradient[r * gradient_channel + i * n + j] * seen[i * seen_row + j + taps[k]] to one lane of the vector sums[r][k]. The sum of the lanes of
 * sums[r][k] is the gradient of one weight. `seen` is the input. */
struct grd_conv_dots {
    int64_t lines, n, ntaps;
    const int32_t *taps;
    const char *seen, *gradient;
    int64_t seen_row, gradient_channel;
    char *sums;
    int nrows;
};

/* Says where a copy puts the n elements of one dimension: element i has the number p = before + i and goes to position p % split * part + p / split.
 * So elements that are `split` apart become neighbours. */
struct grd_conv_places {
    int64_t n, before, split, part;
};

/* The arguments of `copy`, which copies an image from `from` to `to`. The rows of `from` are contiguous and begin from_row elements apart. Let
 * p = rows.before + i and q = columns.before + j. Element j of row i is copied to the element of `to` with this index (see struct grd_conv_places):
 *
 *     p % rows.split * rows.part + p / rows.split * to_row + q % columns.split * columns.part + q / columns.split */
struct grd_conv_copy {
    struct grd_conv_places rows, columns;
    const char *from;
    char *to;
    int64_t from_row, to_row;
};

/* The arguments of `join`, the last step of a complex convolution that is made of three real ones (Gauss's trick). For each i < n, it sets
 *
 *     to[i * step] = x[i] - y[i] + (z[i] - x[i] - y[i]) * 1j + bias
 *
 * y and z begin `part` and 2 * `part` real elements after x. The elements of `to` and `bias` are complex. */
struct grd_conv_join {
    int64_t n, part;
    const char *x, *bias; /* bias: one complex number; NULL means zero */
    char *to;
    int64_t step;
};

/* The convolution kernels of one dtype. The comment on the struct that a kernel takes says what the kernel computes. */
struct grd_conv_row {
    void (*copy)(const struct grd_conv_copy *c);
    void (*multiply)(const struct grd_conv_block *b);
    /* Transposes sums: to[j * to_column + r] = sums[r][j], for n rows r and `columns` columns j. Rows of `sums` are `width` elements apart. */
    void (*turn)(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_column);
    void (*line)(const struct grd_conv_line *l);
    void (*put)(const struct grd_conv_put *p);
    void (*dots)(const struct grd_conv_dots *d);
    /* Sets to[i], for each i < n, to the sum of the lanes of vector number i of `sums`. */
    void (*add_lanes)(int64_t n, const char *sums, char *to);
    void (*join)(const struct grd_conv_join *j);
    int lanes, vectors; /* lanes: elements of a vector register; vectors: the most vectors in a row of `panel` of a grd_conv_block */
};

#endif
