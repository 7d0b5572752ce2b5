/* Declares kernels that make multidimensional histograms, which sum the weights of points in the cells of a grid. */
#ifndef GRD_KERNEL_HISTOGRAM_H
#define GRD_KERNEL_HISTOGRAM_H

#include <stdint.h>

/* The method by which a kernel finds the bin of a coordinate. A bin contains its lower edge; the last bin contains its upper edge as well. */
enum grd_histogram_search {
    GRD_HISTOGRAM_LINEAR, /* computes the bin from the distance to the first edge; edges must be evenly spaced */
    /* Finds a bin as LINEAR does, then corrects it by comparing with the edges of this bin. So a coordinate equal to an edge is always in the bin
     * above the edge. */
    GRD_HISTOGRAM_LOCAL,
    GRD_HISTOGRAM_BINARY /* searches by bisection; edges need not be evenly spaced */
};

struct grd_histogram {
    int64_t dims;
    const int64_t *bins; /* bins[d]: number of bins along dimension d */
    const void *edges;   /* the bins[0] + 1 bin edges of dimension 0, followed by the bins[1] + 1 edges of dimension 1, and so on */
    const void *points;  /* one row of `dims` coordinates per point */
    const void *weights; /* one weight per point; NULL means that all weights are 1 */
    enum grd_histogram_search search;
};

/* The histogram kernels of one dtype. */
struct grd_histogram_row {
    /* Adds the weight of each point in [begin, end) to cells[i], where i is the cell of the grid that holds the point. Skips points outside of the
     * grid and points with a NaN. */
    void (*add)(const struct grd_histogram *h, int64_t begin, int64_t end, double *cells);
    /* Adds up `parts` histograms of n cells each, which follow each other in `cells`: ret_sums[i] receives the sum of cell i over all parts. */
    void (*merge)(int64_t parts, int64_t n, const double *cells, void *ret_sums);
};

#endif
