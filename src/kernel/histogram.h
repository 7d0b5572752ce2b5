/* Declares kernels that make multidimensional histograms, which sum the weights of points in the cells of a grid. */
#ifndef GRD_KERNEL_HISTOGRAM_H
#define GRD_KERNEL_HISTOGRAM_H

#include <stdint.h>

/* The method by which a kernel finds the bin of a coordinate. A bin contains its lower edge; the last bin contains its upper edge as well. */
enum grd_histogram_search {
    GRD_HISTOGRAM_LINEAR, /* computes the bin from the distance to the first edge; edges must be evenly spaced */
    /* like LINEAR, but then compares with the edges next to that bin: a coordinate equal to an edge is always in the bin above the edge */
    GRD_HISTOGRAM_LOCAL,
    GRD_HISTOGRAM_BINARY /* searches by bisection; edges need not be evenly spaced */
};

struct grd_histogram {
    int64_t dims;
    const int64_t *bins; /* number of bins of each dimension */
    const void *edges;   /* bins[0] + 1 edges of dimension 0, then bins[1] + 1 of dimension 1, and so on */
    const void *points;  /* one row of `dims` coordinates per point */
    const void *weights; /* one per point; NULL means that all weights are 1 */
    enum grd_histogram_search search;
};

/* The histogram kernels of one dtype. */
struct grd_histogram_row {
    /* Adds the weights of points [begin, end) to their cells. Points outside of the grid and points with a NaN are skipped. */
    void (*add)(const struct grd_histogram *h, int64_t begin, int64_t end, double *cells);
    /* Writes ret_sums[i] = the sum of cell i over `parts` grids, which have n cells each and follow each other in memory. */
    void (*merge)(int64_t parts, int64_t n, const double *cells, void *ret_sums);
};

#endif
