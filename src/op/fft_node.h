/* Describes how lines of one length are transformed (a line is the elements along one dimension): the passes, and the tables that the passes read. */
#ifndef GRD_OP_FFT_NODE_H
#define GRD_OP_FFT_NODE_H

#include "base/object.h"
#include "kernel/fft.h"

enum grd_fft_kind {
    GRD_FFT_SHORT, /* for lengths whose lines are always transformed in vector lanes, one line per lane */
    GRD_FFT_LONG,  /* for lines that are treated as an a x b matrix; the columns are transformed, then the rows */
    GRD_FFT_REAL   /* no transform; only holds the roots of unity that convert between the transforms of n real and of n / 2 complex
                    * numbers */
};

/* Describes the transform of n elements. If n has a prime factor above GRD_FFT_MOST_RADIX, the transform is computed as a convolution (Bluestein's
 * algorithm) by transforms of m elements.
 *
 * Invariant: a line undergoes the same operations in vector lanes and by itself, so its result does not depend on the number of lines. */
struct grd_fft_node {
    struct grd_object object;
    struct grd_fft_node *next; /* next node in the cache of fft_tables.c */
    const struct grd_fft_row *row;
    enum grd_fft_kind kind;
    int64_t n;
    size_t bytes; /* size of the node with its tables */
    int npasses;
    struct grd_fft_pass passes[GRD_FFT_MOST_PASSES];
    /* For GRD_FFT_LONG: the n elements are transformed as an a x b matrix, where n = a * b. */
    int64_t a, b;
    const struct grd_fft_node *columns, *rows; /* the transforms of a column (`a` elements) and of a row (`b` elements) */
    /* For GRD_FFT_LONG: roots of unity, one per element of the a x b matrix. The columns are transformed, the elements are multiplied by these roots,
     * and then the rows are transformed. */
    const char *factors;
    /* Length of Bluestein's convolution; 0 if there is none. */
    int64_t m;
    const struct grd_fft_node *inner; /* transform of m elements for the convolution; NULL if there is none */
    /* For a convolution: the numbers by which its input and output are multiplied, and the transform of the filter. */
    const char *chirp, *filter;
    /* For GRD_FFT_REAL: the roots of unity of order n that convert between the transforms of n real and of n / 2 complex numbers. */
    const char *roots;
};

#endif
