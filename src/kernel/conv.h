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

struct grd_conv_row {
    void (*multiply)(const struct grd_conv_block *b);
    /* to[j * to_column + r] = sums[r][j] for n rows and some columns; rows of sums are `width` elements apart. */
    void (*turn)(int64_t n, int64_t columns, int64_t width, const char *sums, char *to, int64_t to_column);
    int lanes;
};

#endif
