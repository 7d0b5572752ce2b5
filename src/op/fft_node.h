/* How lines of a length are transformed: the passes, and the tables that they read. */
#ifndef GRD_OP_FFT_NODE_H
#define GRD_OP_FFT_NODE_H

#include "base/object.h"
#include "kernel/fft.h"

enum grd_fft_kind {
    GRD_FFT_SHORT, /* a line that is always transformed in lanes */
    GRD_FFT_LONG,  /* a line seen as a matrix of a rows and b columns: first the columns are transformed, then the rows */
    GRD_FFT_REAL   /* the roots between n real numbers and n / 2 complex ones */
};

/* The transform of n elements. A length with a prime factor above GRD_FFT_MOST_RADIX is a convolution (Bluestein): `inner` transforms m elements.
 *
 * Invariant: a line undergoes the same operations in lanes and line by line, so what it becomes does not depend on how many there are. */
struct grd_fft_node {
    struct grd_object object;
    struct grd_fft_node *next; /* next node in the list of kept ones */
    const struct grd_fft_row *row;
    enum grd_fft_kind kind;
    int64_t n;
    size_t bytes; /* size of the node with its tables */
    int npasses;
    struct grd_fft_pass passes[GRD_FFT_MOST_PASSES];
    int64_t a, b;
    const struct grd_fft_node *columns, *rows; /* transforms of a, and of b elements */
    const char *factors;
    int64_t m;
    const struct grd_fft_node *inner; /* NULL: no convolution */
    const char *chirp, *filter;
    const char *roots;
};

#endif
